//! Targets for files that users give to assay: results and job files of fio, plans, studies, advice pages, criteria,
//! sizes, runs.

use super::seeds::{text_seeds, to_text};
use crate::ParserTarget;
use assay_fio::{import, json, options};
use assay_model::{Bytes, Criterion, Facts, Nanos, PlanSpec};
use assay_planner as planner;
use std::collections::BTreeMap;

pub(super) fn targets() -> Vec<ParserTarget> {
    vec![
        ParserTarget {
            name: "fio-json",
            seeds: vec![
                include_bytes!("../../../fio/fixtures/fio-3.33-mix.json").to_vec(),
                include_bytes!("../../../fio/fixtures/handmade-fio-2.1.11.json").to_vec(),
                include_bytes!("../../../fio/fixtures/handmade-fio-3.7.json").to_vec(),
                include_bytes!("../../../fio/fixtures/handmade-fio-2.6-client-unified.json").to_vec(),
                br#"x {"fio version":"fio-3.33","timestamp":1,"jobs":[{"jobname":"a","job options":{"rw":"read","bs":"4k"},"read":{"io_bytes":1,"total_ios":1,"clat_ns":{"min":1,"max":2,"mean":1.5,"N":1,"bins":{"1":1}}}}]} y"#.to_vec(),
            ],
            run: |bytes| {
                let documents = json::parse(bytes).unwrap_or_default();
                for document in &documents {
                    let about = import::Context {
                        file: String::new(),
                        uid: String::new(),
                        version: String::new(),
                        now: Default::default(),
                    };
                    let (run, samples) = import::run(document, &about);
                    let _ = assay_judge::judge_run(&run, &samples);
                    let _ = assay_judge::doubts::judge_result(document);
                }
            },
        },
        ParserTarget {
            name: "fio-job-file",
            seeds: text_seeds(&[
                "[global]\nioengine=libaio\nbs=4k,64k\nsize=1g ; x\n[a]\nrw=randrw\nbssplit=4k/50:8k/50\nruntime=1m\n",
                "# x\n[b]\nreadwrite=write\nfsync=1\nfilename=/dev/sda:/dev/sdb\nsize=50%\ntime_based\n",
            ]),
            run: |bytes| judge(options::job_file(&to_text(bytes), "x").unwrap_or_default()),
        },
        ParserTarget {
            name: "fio-command-line",
            seeds: text_seeds(&[
                "$ sudo fio --name=a --rw=randread --bs=4k \\\n --iodepth 32 --filename='/dev/sd a' > out; fio –name=b –rw=read",
                "fio \"--name=a\" --section=x job.fio --size=1g --runtime=1h --time_based",
            ]),
            run: |bytes| {
                for call in options::read_text(&to_text(bytes), "x").unwrap_or_default() {
                    judge(call.jobs);
                }
            },
        },
        ParserTarget {
            name: "access-log",
            seeds: text_seeds(&[
                "127.0.0.1 - - [22/Nov/2026:18:05:01 +0000] \"GET /a\\x22b HTTP/1.1\" 200 615 \"-\" \"curl\"\n",
                "host:80 ::1 - a[b [22/Nov/2026:19:05:02 +0100] \"HEAD / HTTP/1.0\" 304 -\n\"\\x16\" 400\n",
            ]),
            run: |bytes| {
                let log = assay_web::list::log::read(bytes, 1);
                assert!(log.times.len() as u64 + log.left_out.count() == log.lines);
                assert!(log.times.iter().all(|(_, which)| (*which as usize) < log.requests.len()));
            },
        },
        ParserTarget {
            name: "list-of-urls",
            seeds: text_seeds(&["# x\n/a\nhttp://h/b?c#d\nhttp://[::1]/\n"]),
            run: |bytes| {
                if let Ok(base) = assay_http::Url::parse("http://h/") {
                    let (paths, _) = assay_web::list::paths(bytes, &base);
                    // What is taken may be sent as it is.
                    assert!(paths.iter().all(|path| base.with_path(path).is_some()));
                }
            },
        },
        ParserTarget {
            name: "ssh-verbose",
            seeds: text_seeds(&[
                "debug1: Connecting to h [::1] port 22.\ndebug1: Connection established.\nAuthenticated to h\n",
                "debug1: Next authentication method: publickey\nroot@h: Permission denied (publickey).\n",
            ]),
            run: |bytes| {
                let mut transcript = assay_login::ssh::Transcript::default();
                for (at, line) in (0..).zip(to_text(bytes).lines()) {
                    transcript.line(Nanos(at), line);
                }
                let _ = transcript.complaint();
                let _ = transcript.cut(Nanos(u64::MAX)).total();
            },
        },
        ParserTarget {
            name: "plan",
            seeds: text_seeds(&[
                include_str!("../../../../plans/quick.toml"),
                include_str!("../../../../plans/database.toml"),
                include_str!("../../../../plans/sync.toml"),
            ]),
            run: |bytes| drop(PlanSpec::from_toml(&to_text(bytes), "x")),
        },
        ParserTarget {
            name: "study",
            seeds: text_seeds(&[
                include_str!("../../../../studies/zfs-tuning.toml"),
                include_str!("../../../../studies/mutt-drives.toml"),
            ]),
            run: |bytes| drop(assay_studies::catalogue::parse(&to_text(bytes), "x")),
        },
        ParserTarget {
            name: "page",
            seeds: text_seeds(&[
                include_str!("../../../../advice/filesystems/noatime.md"),
                include_str!("../../../../advice/filesystems/io-scheduler.md"),
            ]),
            run: |bytes| {
                let page = assay_advice::page::parse_own("storage/x.md", &to_text(bytes));
                if let Ok(page) = page {
                    let _ = assay_advice::applies(&page, &Facts::default(), None, &BTreeMap::new(), None);
                }
            },
        },
        ParserTarget {
            name: "sizes",
            seeds: text_seeds(&["4k", "1.5GiB", "16 MiB", "3.84TB", "0x10", "1h 30m", "250ms", "90d", "50%"]),
            run: |bytes| {
                let input = to_text(bytes);
                let _ = (input.parse::<Bytes>().map(|size| size.short()), input.parse::<Nanos>());
                let _ = (options::parse_bytes(&input, 1024), planner::size::parse(&input));
                let _ = options::unit_trap(&input, 1024);
            },
        },
        ParserTarget {
            name: "url",
            seeds: text_seeds(&["http://h:80/a?b#c", "http://[::1]:8080", "http://u:p@h/", "https://h/"]),
            run: |bytes| drop(assay_http::url::Url::parse(&to_text(bytes))),
        },
        ParserTarget {
            name: "criterion",
            seeds: text_seeds(&[
                "randread-4k-qd1.p99 <= 1ms",
                "seqwrite.MB/s >= 500",
                "mix.write.p99.9 < 2.5 ms on /srv",
                "x.iops >= 0.9 * run 3",
            ]),
            run: |bytes| {
                if let Ok(criterion) = to_text(bytes).parse::<Criterion>() {
                    let said = criterion.to_string();
                    let again = said.parse::<Criterion>().expect("what we say can be read");
                    assert_eq!(again, criterion, "{said}");
                }
            },
        },
        ParserTarget {
            name: "run-export",
            seeds: export_seeds(),
            run: |bytes| {
                if let Ok(export) = assay_store::from_json(&to_text(bytes)) {
                    let _ = assay_judge::judge_run(&export.run, &export.samples);
                    assay_store::to_json(&export.run, &export.samples, None).expect("it was JSON before");
                }
            },
        },
        ParserTarget {
            name: "planner-tables",
            seeds: text_seeds(&[
                include_str!("../../../planner/fixtures/lsblk-2.38.1.json"),
                include_str!("../../../planner/fixtures/sanoid.conf"),
                include_str!("../../../planner/fixtures/zfs/zpool-list-vHp-2.1.11.txt"),
                "tank\tused\t64MiB\t-\ntank\treferenced\t1\t-\ntank/a@b\tused\t0\t-\ntank/a@b\torigin\t-\t-\n",
                "2024-01-01 10\n2024-02-01 20 TiB\n# x\n",
                "raidz2 4x12TB + special mirror 2x1TB",
            ]),
            run: |bytes| {
                let input = to_text(bytes);
                let _ = planner::lsblk::parse(&input);
                let _ = planner::capacity::parse_sanoid("x", &input);
                let _ = planner::capacity::parse_snapshots("x", &input);
                let _ = planner::capacity::parse_history("x", &input).map(|points| planner::capacity::compute_outlook(&points).map(|found| found.forecast(1 << 40, 0.8)));
                let _ = planner::distribute::parse_zpool_list("x", &input, 1.0);
                let _ = planner::distribute::parse_zpool_iostat("x", &input);
                let _ = planner::cache::parse_arcstats("x", &input);
                let _ = planner::zfs::parse_spec(&input, &[1 << 40; 8]);
                if let Ok(records) = planner::clones::parse_zfs_get("x", &input) {
                    let _ = planner::clones::Graph::new(records).map(|graph| planner::clones::report(&graph, None));
                }
            },
        },
    ]
}

fn judge(jobs: Vec<options::JobOptions>) {
    let _ = assay_judge::doubts::judge_options(&jobs);
    for job in jobs {
        let again = options::JobOptions::from_given(&job.name, job.given.clone(), job.source);
        // What was read once is read again, and cleaned no further.
        assert_eq!(again.expect("it was read before").given, job.given);
    }
}

fn export_seeds() -> Vec<Vec<u8>> {
    let result = include_bytes!("../../../fio/fixtures/handmade-fio-3.7.json");
    let about = import::Context {
        file: "r.json".to_owned(),
        uid: "5eed".to_owned(),
        version: "0".to_owned(),
        now: Default::default(),
    };
    let documents = json::parse(result).unwrap_or_default();
    let runs = documents
        .iter()
        .map(|document| import::run(document, &about));
    // One of a smaller kind, and one that was measured.
    let measured = super::stored_files::with_old_store(|store| {
        let id = assay_model::run::RunId(3);
        let run = store.run(id).expect("it can be read");
        (run, store.samples(id).expect("they can be read"))
    });
    runs.chain([measured])
        .filter_map(|(run, samples)| assay_store::to_json(&run, &samples[..1], None).ok())
        .map(String::into_bytes)
        .collect()
}
