//! A trial of Apache's multi-processing modules: another one is loaded, Apache is restarted, and the file is
//! restored.

use super::common::Home;
use super::{args, json, text};
use assay_testing::servers::apache::Apache;
use std::fs;

/// The running module is visible in its workers: each prefork worker has one thread.
#[test]
fn another_mpm_is_loaded_under_load_and_the_old_one_comes_back() {
    let Some(server) = Apache::kept() else {
        return;
    };
    let (home, config) = (Home::new(), server.config());
    let before = fs::read(&config).unwrap();
    let seen = home.dir.path().join("seen");
    let restart = format!(
        "#!/bin/sh\n{} 2>/dev/null && {} || exit 1\npid=$(cat {})\n\
         for child in $(cat /proc/$pid/task/$pid/children); do grep ^Threads: /proc/$child/status; done >> {}\n",
        server.configtest().join(" "),
        server.restart().join(" "),
        text(&server.pid()),
        text(&seen),
    );
    let restart = super::common::script(home.dir.path(), "restart", &restart);
    let url = server.url("/small");
    let tried = |mpm: &str, more: &[&str]| {
        let longer = ["--slot", "300ms", "--washout", "300ms"];
        let mut words = args(&["trial", "apache-mpm", &url], &longer);
        words.extend(args(&["--yes", "--json", "--pairs", "2"], more));
        for set in [
            format!("config={}", text(&config)),
            format!("restart={}", text(&restart)),
            format!("mpm={mpm}"),
            "connections=8".to_owned(),
        ] {
            words.extend(["--set".into(), set.into()]);
        }
        home.assay(&words)
    };
    let ran = tried("event", &[]);
    let busy = ran.stderr.contains("three pairs in a row gave no figure")
        || ran.stderr.contains("before anything is changed");
    if !busy {
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(json(&ran)["pairs"].as_array().map(Vec::len), Some(2));
        let seen = fs::read_to_string(&seen).unwrap();
        let threads = seen
            .lines()
            .filter_map(|line| line.split_whitespace().nth(1));
        let threads: Vec<u32> = threads.map(|count| count.parse().unwrap()).collect();
        assert!(threads.contains(&1), "prefork: {seen}");
        assert!(threads.iter().any(|count| *count > 10), "event: {seen}");
    }
    assert_eq!(fs::read(&config).unwrap(), before);

    // A missing module: validation rejects the file, and the server is never stopped.
    let up = fs::read_to_string(server.pid()).unwrap();
    let ran = tried("event", &["--set", "modules=/nowhere"]);
    assert_eq!(ran.code, Some(2), "{} {}", ran.stdout, ran.stderr);
    assert_eq!(fs::read(&config).unwrap(), before);
    assert_eq!(
        fs::read_to_string(server.pid()).unwrap(),
        up,
        "{}",
        ran.stderr
    );
}
