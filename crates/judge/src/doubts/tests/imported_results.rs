//! Tests the doubts about results of fio with several sections or from other systems.

use super::*;

/// The job file and the recorded results must give the same answers: which sections ran at the same time, and which
/// sections are summed.
#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "recorded results are read by name"
)]
fn sections_of_a_job_file() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/sections/");
    let only = ["jobs-together", "grouped-jobs", "depth-not-reached"];
    for (name, of_result, of_file) in [
        ("stonewall-two", &[][..], &[][..]),
        ("stonewall-three", &[], &[]),
        ("stonewall-ramp", &[], &[]),
        (
            "together",
            &["jobs-together", "jobs-together"],
            &["jobs-together", "jobs-together"],
        ),
        (
            "new-group-together",
            &["jobs-together", "jobs-together"],
            &["jobs-together", "jobs-together"],
        ),
        (
            "grouped-three",
            &["grouped-jobs:void"],
            &[
                "jobs-together",
                "grouped-jobs:void",
                "jobs-together",
                "grouped-jobs:void",
                "jobs-together",
                "grouped-jobs:void",
            ],
        ),
        (
            "grouped-copies",
            &["grouped-jobs:void"],
            &[
                "jobs-together",
                "grouped-jobs:void",
                "jobs-together",
                "grouped-jobs:void",
            ],
        ),
        (
            "grouped-depths",
            &["grouped-jobs:void"],
            &[
                "jobs-together",
                "grouped-jobs:void",
                "jobs-together",
                "grouped-jobs:void",
            ],
        ),
        ("grouped-one-section", &["grouped-jobs"], &["grouped-jobs"]),
        ("grouped-stonewall", &[], &[]),
        ("windows", &[], &[]),
    ] {
        let seen = |doubts: Vec<Doubt>| -> Vec<String> {
            let wanted = doubts
                .into_iter()
                .filter(|doubt| only.contains(&doubt.code.as_str()));
            wanted
                .map(|doubt| match doubt.severity {
                    Severity::Void => doubt.code + ":void",
                    _ => doubt.code,
                })
                .collect()
        };
        let read = |end: &str| std::fs::read_to_string(format!("{root}{name}{end}"));
        let document = assay_fio::json::parse(read(".json").unwrap())
            .unwrap()
            .remove(0);
        let found = judge_result(&document)
            .into_iter()
            .flat_map(|jobs| jobs.doubts);
        assert_eq!(seen(found.collect()), of_result, "{name}.json");
        if let Ok(text) = read(".fio") {
            let jobs = assay_fio::options::job_file(&text, name).unwrap();
            let found = judge_options(&jobs).into_iter().flatten();
            assert_eq!(seen(found.collect()), of_file, "{name}.fio");
        }
    }
}

/// A result without the engine's name comes from a system with another default engine.
#[test]
fn the_default_engine_of_other_systems() {
    let result = |options: &str, alone: f64| {
        let text = format!(
            r#"{{"fio version": "fio-3.28", "jobs": [{{"jobname": "t", "groupid": 0, "error": 0, "elapsed": 20,
            "job options": {{"rw": "randread", "bs": "4k", "iodepth": "32", "size": "100g", "randrepeat": "0",
            "runtime": "15", "time_based": "1", "direct": "1" {options}}},
            "read": {{"io_bytes": 40960000, "runtime": 15000, "total_ios": 10000, "iops": 666.6, "bw_bytes": 2730666}},
            "iodepth_level": {{"1": {alone}, "32": {}}}}}]}}"#,
            100.0 - alone
        );
        let document = assay_fio::json::parse(text).unwrap().remove(0);
        let doubts = judge_result(&document)
            .into_iter()
            .flat_map(|jobs| jobs.doubts);
        doubts.map(|doubt| doubt.code).collect::<Vec<_>>()
    };
    for (options, alone, wanted) in [
        ("", 100.0, &["depth-not-reached"][..]),
        ("", 0.1, &[]),
        (r#", "filename": "C\\:\\t.dat""#, 0.1, &[]),
        (r#", "filename": ".\\x.dat""#, 100.0, &["depth-not-reached"]),
        (r#", "filename": "\\\\.\\PhysicalDrive1""#, 3.0, &[]),
        (r#", "ioengine": "windowsaio""#, 0.1, &[]),
        (r#", "ioengine": "psync""#, 100.0, &["depth-not-reached"]),
        (r#", "ioengine": "posixaio", "nrfiles": "64""#, 0.5, &[]),
        (r#", "ioengine": "sync""#, 100.0, &["depth-not-reached"]),
    ] {
        let mut found = result(options, alone);
        found.retain(|code| code == "depth-not-reached");
        assert_eq!(found, wanted, "{options} {alone}");
    }
}

/// posixaio: glibc executes the requests to a file one after another, macOS and the BSDs limit the number of requests.
/// fio's own depth count shows which limit applies.
#[test]
fn posixaio_of_other_systems() {
    let result = |options: &str, levels: &str| {
        let text = format!(
            r#"{{"fio version": "fio-3.41", "jobs": [{{"jobname": "t", "groupid": 0, "error": 0, "elapsed": 20,
            "job options": {{"rw": "randread", "bs": "4k", "iodepth": "64", "size": "100g", "randrepeat": "0",
            "ioengine": "posixaio", "runtime": "15", "time_based": "1", "direct": "1" {options}}},
            "read": {{"io_bytes": 40960000, "runtime": 15000, "total_ios": 10000, "iops": 666.6, "bw_bytes": 2730666}},
            "iodepth_level": {{{levels}}}}}]}}"#
        );
        let document = assay_fio::json::parse(text).unwrap().remove(0);
        let doubts = judge_result(&document)
            .into_iter()
            .flat_map(|jobs| jobs.doubts);
        let found = doubts.filter(|doubt| doubt.code == "depth-not-reached");
        found.map(|doubt| doubt.evidence).collect::<Vec<_>>()
    };
    let (linux, limited) = (r#""1": 0.1, ">=64": 99.9"#, r#""8": 48.6, "16": 51.4"#);
    let file = r#", "filename": "t.dat""#;
    let found = result(file, linux);
    assert!(found[0].contains("glibc"), "{found:?}");
    for options in [
        file,
        r#", "filename": "/Users/x/t.dat""#,
        r#", "nrfiles": "64""#,
    ] {
        let found = result(options, limited);
        assert!(found[0].contains("at most 16"), "{options}: {found:?}");
    }
    for name in [
        "/Users/x/t.dat",
        "/Volumes/ssd/t.dat",
        "/dev/rdisk2",
        "/dev/nvd0",
        "/dev/ada1",
    ] {
        let options = format!(r#", "filename": "{name}""#);
        assert_eq!(result(&options, linux), Vec::<String>::new(), "{name}");
    }
}
