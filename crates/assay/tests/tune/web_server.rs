//! Goals about a real web server.

use super::planted::{json, names};
use crate::common::Home;
use assay_testing::servers::nginx::Nginx;
use std::fs;
use std::process::Command;

/// Runs a session whose goal even the smallest answer misses, and checks that nothing was touched.
fn ends_at_the_floor(server: &Nginx, url: &str, more: &[&str]) {
    let home = Home::new();
    let before = fs::read(server.config()).unwrap();
    let words = [
        "tune",
        url,
        "--want",
        "http.p50 <= 1ns",
        "--rate",
        "10",
        "--slot",
        "1s",
        "--washout",
        "200ms",
        "--budget",
        "5m",
        "--no-tail-guard",
        "--no-boot-undo",
        "--yes",
        "--json",
    ];
    let words: Vec<&str> = words.iter().chain(more).copied().collect();
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

#[test]
fn a_goal_below_the_smallest_answer_is_beyond_reach_and_nothing_is_touched() {
    let Some(server) = Nginx::with_files("location /moved { return 301 /small; }") else {
        return;
    };
    ends_at_the_floor(&server, &server.url("/large"), &[]);
}

#[test]
fn the_smallest_answer_over_tls_is_the_floor_although_handshakes_take_longer() {
    if assay_testing::servers::skip(&["nginx", "openssl"], false) {
        return;
    }
    let keys = tempfile::tempdir().unwrap();
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| keys.path().join(name));
    let made = Command::new("openssl")
        .args([
            "req", "-x509", "-newkey", "rsa:4096", "-nodes", "-days", "2",
        ])
        .args(["-subj", "/CN=localhost", "-addext"])
        .args(["subjectAltName=IP:127.0.0.1", "-addext"])
        .args(["basicConstraints=CA:FALSE", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&cert)
        .output()
        .unwrap();
    assert!(made.status.success());
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let [cert, key] = [&cert, &key].map(|path| path.to_str().unwrap());
    let server = Nginx::with_files(&format!(
        "listen 127.0.0.1:{port} ssl; ssl_certificate {cert}; ssl_certificate_key {key};"
    ));
    let Some(server) = server else { return };
    let url = format!("https://127.0.0.1:{port}/large");
    ends_at_the_floor(&server, &url, &["--insecure"]);
    ends_at_the_floor(&server, &url, &["--ca", cert]);
    // Neither option: the certificate is refused.
    let refused = Home::new().assay(&[
        "tune",
        &url,
        "--want",
        "less http.p50",
        "--budget",
        "5m",
        "--no-boot-undo",
        "--yes",
    ]);
    assert_eq!(refused.code, Some(2), "{}", refused.stdout);
}
