//! Goals about figures that a load prints: real load generators on real servers.

use super::planted::{Planted, json, names};
use assay_testing::servers::nginx::Nginx;
use assay_testing::servers::postgres::Postgres;
use serde_json::Value;
use std::fs;

/// A load that prints its figure: 1000, or 1500 with `mode = fast`.
const PRINTS: &str = "#!/bin/sh
case $(cat \"$1\") in *\"mode = fast\"*) rate=1500 ;; *) rate=1000 ;; esac
echo \"requests: 500\"
echo \"done in 0.5 s at $rate per second\"
echo \"tps = $((rate + $$ % 50))\"
";

/// Returns the figures of the first visit.
fn first_figures(document: &Value) -> Vec<f64> {
    let seen = document["seen"].as_array().unwrap();
    let visit = seen.iter().find(|one| one["seen"] == "visit").unwrap();
    let figures = visit["visit"]["figures"][0].as_array().unwrap();
    figures.iter().filter_map(Value::as_f64).collect()
}

#[test]
fn a_printed_figure_is_tuned_for_and_a_missing_one_is_named() {
    let planted = Planted::new();
    let load = planted.script("prints", PRINTS);
    let load = format!("{} {}", load.display(), planted.conf().display());
    let tune = |words: &[&str]| {
        let fast = planted.page("fast");
        let idle = planted.page("idle");
        let only = format!("{},{}", fast.display(), idle.display());
        let all = [
            "tune", "--load", &load, "--only", &only, "--yes", "--json", "--slot", "100ms",
        ];
        let all: Vec<&str> = all.iter().chain(words).copied().collect();
        planted.home.assay(&all)
    };
    let missing = tune(&["--want", "more qps", "--budget", "2m", "--no-boot-undo"]);
    assert_eq!(missing.code, Some(2), "{}", missing.stdout);
    assert!(
        missing.stderr.contains("qps") && missing.stderr.contains("tps"),
        "{}",
        missing.stderr
    );
    let ran = tune(&["--want", "more tps", "--budget", "2m", "--no-boot-undo"]);
    let document = json(&ran);
    assert_eq!(ran.code, Some(0), "{}\n{document:#}", ran.stderr);
    assert_eq!(names(&document, "kept"), ["fast"]);
    let gain = document["gain"].as_f64().unwrap();
    assert!((0.4..0.6).contains(&gain), "{document:#}");
    assert_eq!(document["wanted"][0], "more tps");
    assert_eq!(planted.home.assay(&["tune", "--undo"]).code, Some(0));
    // A pattern of the goal file finds what has no name.
    let file = planted.conf().with_file_name("goal.toml");
    let text = "[goal]\nwant = [\"rate >= 900\"]\n[figures]\nrate = 'at ([0-9]+) per second'\n";
    fs::write(&file, format!("{text}[budget]\ntime = \"1m\"\n")).unwrap();
    let met = tune(&["--goal", file.to_str().unwrap()]);
    let document = json(&met);
    assert_eq!(met.code, Some(0), "{}\n{document:#}", met.stderr);
    let figures = first_figures(&document);
    let is_read = |figure: &f64| (figure - 1000.0).abs() < 1e-6;
    assert!(
        figures.len() == 8 && figures.iter().all(is_read),
        "{figures:?}"
    );
    assert!(planted.is_as_before(), "{}", planted.text());
}

/// The figures of a goal that is met at once by a real load generator.
fn figures_of(load: &str, want: &str, environment: &[(String, String)]) -> Vec<f64> {
    let planted = Planted::new();
    let only = planted.page("idle");
    let words = [
        "tune",
        "--load",
        load,
        "--want",
        want,
        "--only",
        only.to_str().unwrap(),
        "--yes",
        "--json",
        "--slot",
        "100ms",
        "--budget",
        "2m",
        "--no-boot-undo",
    ];
    let mut command = planted.home.command(&words);
    command.envs(environment.iter().cloned());
    let ran = crate::common::ended(command);
    let document = json(&ran);
    assert_eq!(ran.code, Some(0), "{want}: {}\n{document:#}", ran.stderr);
    assert!(planted.is_as_before());
    first_figures(&document)
}

#[test]
fn web_load_generators_print_their_figures() {
    if assay_testing::servers::skip(&["nginx", "wrk", "ab"], false) {
        return;
    }
    let Some(server) = Nginx::with_files("") else {
        return;
    };
    let url = server.url("/small");
    let wrk = format!("wrk -t1 -c4 -d1s --latency {url}");
    let ab = format!("ab -q -n 200 -c 4 {url}");
    for (load, want) in [
        (&wrk, "requests/sec >= 1"),
        (&wrk, "99% <= 30s"),
        (&ab, "requests per second >= 1"),
    ] {
        let figures = figures_of(load, want, &[]);
        assert_eq!(figures.len(), 8, "{want}");
        assert!(figures.iter().all(|figure| *figure > 0.0), "{figures:?}");
    }
}

#[test]
fn pgbench_prints_its_figures() {
    let Some(server) = Postgres::kept() else {
        return;
    };
    if assay_testing::servers::skip(&["pgbench"], false) {
        return;
    }
    let script = tempfile::NamedTempFile::new().unwrap();
    fs::write(script.path(), "SELECT 1;\n").unwrap();
    let load = format!("pgbench -n -t 100 -f {} postgres", script.path().display());
    let environment: Vec<(String, String)> = server
        .environment()
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect();
    let rates = figures_of(&load, "tps >= 1", &environment);
    let times = figures_of(&load, "latency average <= 10s", &environment);
    // Each run has its own figures; one transaction at a time takes one over the rate.
    let (rate, time) = (rates[0], times[0]);
    assert!(
        rate > 1.0 && time < 1.0 && time > 0.0,
        "{rates:?} {times:?}"
    );
}
