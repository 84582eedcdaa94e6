//! Targets for files that assay reads back, and that may come from another machine or a damaged disk: captures, indexes
//! of duplicates with their journals, trials and studies of a store.

use super::seeds::{text_seeds, to_text};
use crate::ParserTarget;
use assay_config::effective::files::{FileFault, Files};
use assay_config::effective::{Program, read_effective};
use assay_dups::act::journal::Journal;
use assay_dups::{Control, Index, ScanOptions, ScanProgress};
use assay_facts::CollectOptions;
use assay_host::seal::seal;
use assay_host::{Bundle, Recorded, Root};
use assay_model::study::StudyRun;
use assay_model::trial::{Slot, Trial, TrialId};
use assay_render::Style;
use assay_report::{study, trial};
use serde::{Deserialize, Serialize};
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

const STYLE: Style = Style {
    color: false,
    width: 80,
};

pub(super) fn targets() -> Vec<ParserTarget> {
    vec![
        ParserTarget {
            name: "capture",
            seeds: text_seeds(&[include_str!("../../fixtures/capture.json")]),
            run: |bytes| {
                in_memory(|dir| {
                    write(&dir.join("assay-capture.json"), bytes);
                    if let Ok(root) = Root::open(dir) {
                        let _ = assay_facts::collect(&root, &CollectOptions::default());
                    }
                });
            },
        },
        ParserTarget {
            name: "bundle",
            // What the collector writes of a machine with a few files.
            seeds: vec![include_bytes!("../../fixtures/bundle.tar").to_vec()],
            run: |bytes| {
                if let Ok(bundle) = Bundle::read(bytes, "it") {
                    let options = CollectOptions {
                        services: true,
                        ..CollectOptions::default()
                    };
                    let _ = assay_facts::collect(&bundle, &options);
                }
            },
        },
        ParserTarget {
            name: "machine-files",
            seeds: vec![
                include_bytes!("../../../facts/fixtures/dmsetup-1.02.185-table.txt").to_vec(),
                include_bytes!("../../../facts/fixtures/zfs-2.1.11/arcstats.txt").to_vec(),
                include_bytes!("../../../facts/fixtures/nginx-1.22.1-debian12.conf").to_vec(),
                b"processor\t: 0\nmodel name\t: x\nflags\t\t: fpu aes sha_ni\n\nMemTotal: 1 kB\n"
                    .to_vec(),
                b"[always] madvise never\n0-3,7\n32K\n1024\n8:0\nmax 100000\n".to_vec(),
                b"options zfs zfs_arc_max=1 # x\nblacklist a\nvm.swappiness = 10\n".to_vec(),
            ],
            run: machine_files,
        },
        ParserTarget {
            name: "unredacted",
            seeds: vec![
                include_bytes!(
                    "../../../../advice/network/openvpn-pass-any/fires/wizard/conf/config.xml"
                )
                .to_vec(),
                include_bytes!(
                    "../../../../advice/tls/openssl-copy-ended/fires/ended/opt/agent/bin/agent"
                )
                .to_vec(),
                include_bytes!("../../../facts/fixtures/openssh-9.2p1-host-cert.pub").to_vec(),
            ],
            run: |bytes| {
                let host = Recorded::new()
                    .file("/conf/config.xml", bytes)
                    .file(
                        "/etc/ssh/sshd_config",
                        "HostCertificate /etc/ssh/a\nTrustedUserCAKeys /etc/ssh/a\n",
                    )
                    .file("/etc/ssh/a", bytes)
                    .file("/etc/ssh/ssh_known_hosts", bytes)
                    .file("/usr/local/bin/agent", bytes);
                let options = CollectOptions {
                    services: true,
                    accounts: true,
                    ..CollectOptions::default()
                };
                let found = assay_facts::collect(&host, &options);
                let lines = bytes.split(|byte| *byte == b'\n').count();
                let ours = |key: &str| key.starts_with("openvpn") || key.starts_with("pfsense");
                for (_, fact) in found.map.iter().filter(|(key, _)| ours(key)) {
                    assert!(fact.place.line().is_none_or(|line| line <= lines));
                }
            },
        },
        ParserTarget {
            name: "effective",
            seeds: text_seeds(&[
                "Include *\nPort 22\nMatch user a\n  UseDNS yes\n",
                "http { include *; server { listen 80; location / { sendfile on; } } }\n",
                "!include *\nauth_mechanisms = plain\npassdb {\n  driver = pam\n}\n",
                "smtpd_banner = $a\na = ${b?x}\nsmtp inet n - y - - smtpd -o a=b\n",
                "[Manager]\nLogLevel=info\nvm.swappiness = 1\npasswd: files\n",
            ]),
            run: |bytes| {
                for (program, main) in Program::USUAL {
                    let all = read_effective(program, Path::new(main), &Same(bytes));
                    let Ok(all) = all else { continue };
                    // A lookup tells all lines of a list, so each list is asked for once.
                    let mut asked = BTreeSet::new();
                    for said in all.settings() {
                        assert!(bytes.get(said.place.span.clone()).is_some());
                        let _ = said.text();
                        if asked.insert((said.scope, &said.key)) {
                            let counts = all.get(said.scope, &said.key);
                            let others = all.overridden(said.scope, &said.key);
                            assert!(counts.len() + others.len() > 0);
                        }
                    }
                }
            },
        },
        ParserTarget {
            name: "dups-index",
            seeds: index_seeds(),
            run: index,
        },
        ParserTarget {
            name: "dups-journal",
            seeds: journal_seeds(),
            run: |bytes| {
                in_memory(|dir| {
                    let path = dir.join("1.jsonl");
                    write(&path, bytes);
                    let first = Journal::load(&path).expect("it can be read");
                    let again = Journal::load(&path).expect("it can be read");
                    assert_eq!(again, first, "reading changes nothing");
                    // It goes on behind what could be read, and nothing of that is lost.
                    let mut journal = Journal::reopen(&path).expect("it can be written");
                    journal.end(first.damaged.len()).expect("it can be written");
                    let after = Journal::load(&path).expect("it can be read");
                    assert_eq!(
                        (after.entries, after.damaged),
                        (first.entries, first.damaged)
                    );
                });
            },
        },
        ParserTarget {
            name: "trial",
            seeds: trial_seeds(),
            run: |bytes| {
                if let Ok(Measured { trial, slots }) = serde_json::from_slice(bytes) {
                    show(&trial, &slots);
                }
            },
        },
        ParserTarget {
            name: "pool-bundle",
            seeds: pool_bundles(),
            run: |bytes| {
                let _ = assay_pool::read(bytes);
                // Nobody changes a byte and keeps the signature: what lies behind it is looked at by itself.
                if let Ok(bundle) = assay_pool::parse_body(bytes) {
                    let mut pool = assay_pool::Pool::default();
                    if pool.add(&bundle).is_ok() {
                        let again = pool.add(&bundle).expect("it does not contradict itself");
                        assert_eq!((again.new, again.longer), (0, 0));
                    }
                    let advice: BTreeSet<_> = (pool.trials())
                        .map(|held| held.trial.plan.advice.as_str())
                        .collect();
                    for id in advice {
                        let all = assay_pool::pool_effects(&pool, id, 0.03, &[]);
                        let _ = assay_report::pool::pool_to_json(&all);
                        let _ = assay_report::pool::format_pooled_results(&all, STYLE);
                    }
                }
            },
        },
        ParserTarget {
            name: "study-run",
            seeds: study_seeds(),
            run: |bytes| {
                if let Ok(run) = serde_json::from_slice::<StudyRun>(bytes) {
                    let result = assay_judge::study::judge_study(&run);
                    let view = study::StudyView {
                        run: &run,
                        result: &result,
                        id: Some(1),
                    };
                    let _ = (study::render_study_page(&view), study::study_to_json(&view));
                    let _ = study::render_study_text(&view, STYLE);
                }
            },
        },
    ]
}

/// Returns a journal of assay 0.1, and the same journal in the current format.
fn journal_seeds() -> Vec<Vec<u8>> {
    let old = include_str!("../../fixtures/dups-journal.jsonl");
    let sealed = (0..).zip(old.lines()).map(|(number, line)| {
        let line: serde_json::Value = serde_json::from_str(line).expect("it is JSON");
        seal(number, &line).expect("it is JSON")
    });
    vec![old.as_bytes().to_vec(), sealed.flatten().collect()]
}

/// Runs `work` with a directory of this thread in memory, for parsers that need a real file.
fn in_memory(work: impl FnOnce(&Path)) {
    thread_local!(static DIR: OnceCell<tempfile::TempDir> = const { OnceCell::new() });
    DIR.with(|dir| {
        let made = dir.get_or_init(|| {
            let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
            dir.expect("a directory can be made")
        });
        work(made.path());
    });
}

fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).expect("it can be written");
}

/// Paths that collectors read. Each file contains the whole input.
const PATHS: [&str; 31] = [
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/cmdline",
    "/proc/mounts",
    "/proc/self/mountinfo",
    "/proc/self/cgroup",
    "/proc/spl/kstat/zfs/arcstats",
    "/proc/version",
    "/proc/swaps",
    "/proc/modules",
    "/proc/mdstat",
    "/etc/os-release",
    "/etc/ssh/sshd_config",
    "/etc/nginx/nginx.conf",
    "/etc/dovecot/dovecot.conf",
    "/etc/sysctl.conf",
    "/etc/modprobe.d/a.conf",
    "/sys/fs/cgroup/cpu.max",
    "/sys/fs/cgroup/cpuset.cpus.effective",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/module/zfs/version",
    "/sys/block/sda/queue/scheduler",
    "/etc/crontab",
    "/etc/letsencrypt/live/a/fullchain.pem",
    "/etc/postfix/main.cf",
    "/etc/samba/smb.conf",
    "/proc/77/cgroup",
    "/proc/77/maps",
    "/proc/stat",
    "/proc/uptime",
    "/var/lib/dpkg/status",
];

/// Collects the facts of a machine on which every file contains the input.
fn machine_files(bytes: &[u8]) {
    let host = PATHS
        .iter()
        .fold(Recorded::new(), |host, path| host.file(path, bytes));
    let options = CollectOptions {
        services: true,
        ..CollectOptions::default()
    };
    let _ = assay_facts::collect(&host, &options);
}

/// A file system in which every directory contains two files with the same content.
struct Same<'a>(&'a [u8]);

impl Files for Same<'_> {
    fn read(&self, _: &Path) -> Result<Vec<u8>, FileFault> {
        Ok(self.0.to_vec())
    }

    fn list(&self, _: &Path) -> Result<Vec<OsString>, FileFault> {
        Ok(vec!["a.conf".into(), "master.cf".into()])
    }

    fn exists(&self, _: &Path) -> Result<bool, FileFault> {
        Ok(true)
    }
}

/// Returns the bytes of an index of two files.
fn small_index() -> Vec<u8> {
    let dir = tempfile::tempdir().expect("a directory can be made");
    let (tree, path) = (dir.path().join("tree"), dir.path().join("index"));
    std::fs::create_dir(&tree).expect("a directory can be made");
    for name in ["a", "b"] {
        write(&tree.join(name), &[7; 5000]);
    }
    let mut index = Index::open(&path).expect("it is new");
    let control = Control {
        stop: &AtomicBool::new(false),
        progress: &ScanProgress::default(),
        tick: &|| {},
        threads: Some(1),
    };
    assay_dups::scan(&[tree], &ScanOptions::default(), Some(&mut index), &control)
        .expect("it can be read");
    drop(index);
    std::fs::read(&path).expect("it was written")
}

/// Returns seeds for parts of an index. The first byte of an input selects its meaning: the block of a folder, the
/// settings of a scanned root, or pieces of the index file.
fn index_seeds() -> Vec<Vec<u8>> {
    let seed = |kind: u8, bytes: &[u8]| [&[kind][..], bytes].concat();
    let dir = tempfile::tempdir().expect("a directory can be made");
    let path = dir.path().join("index");
    write(&path, &small_index());
    let db = rusqlite::Connection::open(&path).expect("it is a database");
    let block: Vec<u8> = db
        .query_row("SELECT block FROM folders LIMIT 1", [], |row| row.get(0))
        .expect("it has a folder");
    let manner: String = db
        .query_row("SELECT manner FROM roots LIMIT 1", [], |row| row.get(0))
        .expect("it has a root");
    vec![
        seed(0, &block),
        seed(1, manner.as_bytes()),
        seed(2, &[0, 0, 20, 4, 1, 2, 3, 4]),
    ]
}

fn index(bytes: &[u8]) {
    thread_local!(static WHOLE: Vec<u8> = small_index());
    let Some((kind, rest)) = bytes.split_first() else {
        return;
    };
    in_memory(|dir| {
        let path = dir.join("index");
        let mut whole = WHOLE.with(Clone::clone);
        if kind % 3 == 2 {
            // Three bytes of place, one of length, as many bytes.
            let mut rest = rest;
            while let [a, b, c, length, after @ ..] = rest {
                let at = u32::from_be_bytes([0, *a, *b, *c]) as usize % whole.len();
                let (piece, left) = after.split_at(usize::from(*length).min(after.len()));
                let end = (at + piece.len()).min(whole.len());
                whole[at..end].copy_from_slice(&piece[..end - at]);
                rest = left;
            }
        }
        write(&path, &whole);
        if kind % 3 != 2 {
            let db = rusqlite::Connection::open(&path).expect("it is a database");
            let set = |sql: &str, value: &dyn rusqlite::ToSql| {
                db.execute_batch("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY")
                    .and_then(|()| db.execute(sql, [value]))
                    .expect("it can be changed");
            };
            match kind % 3 {
                0 => set("UPDATE folders SET block = ?1", &rest),
                _ => set("UPDATE roots SET manner = ?1", &to_text(rest)),
            }
        }
        let Ok(index) = Index::read(&path) else {
            return;
        };
        let roots = index.roots().unwrap_or_default();
        let paths: Vec<PathBuf> = roots.into_iter().map(|root| root.path).collect();
        let _ = index.remember(&paths);
        if let Ok(files) = index.load(&[]) {
            let groups = assay_dups::group::by_hash(&files);
            for group in groups.iter() {
                let _ = group.gain();
            }
        }
    });
}

/// A trial as it is stored, with some of its slots.
#[derive(Serialize, Deserialize)]
struct Measured {
    trial: Trial,
    slots: Vec<Slot>,
}

/// Calls `read` with a store of assay 0.1.
pub(super) fn with_old_store<T>(read: impl FnOnce(&assay_store::Store) -> T) -> T {
    let packed = include_bytes!("../../../store/tests/fixtures/store-0.1.db.zst");
    let dir = tempfile::tempdir().expect("a directory can be made");
    let path = dir.path().join("assay.db");
    write(
        &path,
        &zstd::decode_all(&packed[..]).expect("it was packed"),
    );
    read(&assay_store::Store::open(&path).expect("it can be opened"))
}

fn trial_seeds() -> Vec<Vec<u8>> {
    with_old_store(|store| {
        let trials = store.trials().expect("they can be read");
        let seeds = trials.into_iter().map(|trial| {
            let slots = store.slots(TrialId(trial.id.0)).expect("they can be read");
            let slots = slots.into_iter().take(2).collect();
            serde_json::to_vec(&Measured { trial, slots }).expect("it is JSON")
        });
        seeds.collect()
    })
}

/// Returns a bundle of the pool, with and without its signature.
fn pool_bundles() -> Vec<Vec<u8>> {
    let whole = include_bytes!("../../fixtures/simulated.pool").to_vec();
    let end = whole[..whole.len() - 1]
        .iter()
        .rposition(|byte| *byte == b'\n');
    let body = whole[..end.map_or(0, |end| end + 1)].to_vec();
    vec![whole, body]
}

fn study_seeds() -> Vec<Vec<u8>> {
    with_old_store(|store| {
        let studies = store.studies().expect("they can be read");
        let seeds = studies
            .iter()
            .map(|(_, run)| serde_json::to_vec(run).expect("it is JSON"));
        seeds.collect()
    })
}

/// Renders a trial in every output format.
fn show(trial: &Trial, slots: &[Slot]) {
    let (pairs, judgement) = assay_judge::trial::judge_trial(trial, slots);
    let shown = assay_judge::trial::judge_slots_for_display(trial, slots, &pairs);
    let view = trial::TrialView {
        trial,
        slots,
        samples: &shown.samples,
        pairs: &pairs,
        judgement: &judgement,
        latency: &shown.latency,
        smallest: &[],
    };
    let _ = (trial::render_trial_page(&view), trial::trial_to_json(&view));
    let _ = trial::render_trial_text(&view, STYLE);
}
