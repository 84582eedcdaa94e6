//! Goals about a real web server.

use super::planted::{json, names};
use crate::common::Home;
use assay_testing::servers::nginx::Nginx;
use std::fs;

#[test]
fn a_goal_below_the_smallest_answer_is_beyond_reach_and_nothing_is_touched() {
    let Some(server) = Nginx::with_files("location /moved { return 301 /small; }") else {
        return;
    };
    let home = Home::new();
    let before = fs::read(server.config()).unwrap();
    let url = server.url("/large");
    let words = [
        "tune",
        &url,
        "--want",
        "http.p50 <= 1ns",
        "--rate",
        "50",
        "--slot",
        "200ms",
        "--washout",
        "50ms",
        "--budget",
        "5m",
        "--no-tail-guard",
        "--no-boot-undo",
        "--yes",
        "--json",
    ];
    let ran = home.assay(&words);
    let document = json(&ran);
    assert_eq!(ran.code, Some(1), "{}\n{document:#}", ran.stderr);
    let floor = document["bottom"]["range"][0].as_f64().unwrap();
    assert!(floor > 1e-9, "{document:#}");
    assert!(names(&document, "kept").is_empty() && names(&document, "tried").is_empty());
    assert_eq!(fs::read(server.config()).unwrap(), before);
    let shown = home.assay(&["tune", "--show"]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
}
