//! Trials of nginx: a line is changed or added in its block, nginx reloads, and the file is restored.

use super::common::Home;
use super::{args, json, text};
use assay_testing::servers::nginx::Nginx;
use std::fs;
use std::process::Command;

/// Runs two pairs of a page: nginx reads the file with and without the line, and the file is
/// restored. On a busy machine the generator may have no figure; this is reported, and everything
/// is reverted too.
fn tried(nginx: &Nginx, page: &str, url: &str, line: &str, sets: &[&str]) {
    let (home, config) = (Home::new(), nginx.config());
    let before = fs::read(&config).unwrap();
    let seen = home.dir.path().join("seen");
    let reload = format!(
        "sh -c 'echo == >> {0}; cat {1} >> {0}; exec {2}'",
        text(&seen),
        text(&config),
        nginx.reload().join(" ")
    );
    let own = [
        format!("config={}", text(&config)),
        format!("validate={}", nginx.validate().join(" ")),
        format!("reload={reload}"),
    ];
    // Old workers respond for a moment after a reload.
    let longer = ["--slot", "200ms", "--washout", "600ms"];
    let mut words = args(&["trial", page, url], &longer);
    words.extend(args(&["--yes", "--json", "--pairs", "2"], &[]));
    for set in own.iter().map(String::as_str).chain(sets.iter().copied()) {
        words.extend(["--set".into(), set.into()]);
    }
    let ran = home.assay(&words);
    let busy = ran.stderr.contains("three pairs in a row gave no figure")
        || ran.stderr.contains("before anything is changed");
    if !busy {
        assert_eq!(ran.code, Some(0), "{page}: {}", ran.stderr);
        let pairs = json(&ran)["pairs"].as_array().map(Vec::len);
        assert_eq!(pairs, Some(2), "{page}: {}", ran.stdout);
    }
    let seen = fs::read_to_string(seen).unwrap_or_default();
    let mut with = seen.split("==\n").skip(1).map(|file| file.contains(line));
    let (some, first) = (seen.contains(line), with.next());
    let both = some && with.any(|has| Some(has) != first);
    assert!(busy || both, "{page}: {seen} {}", ran.stderr);
    assert_eq!(fs::read(&config).unwrap(), before, "{page}");
}

#[test]
fn lines_of_nginx_are_changed_under_load_and_come_back() {
    let Some(nginx) = Nginx::with_files("gzip on; gzip_types *;") else {
        return;
    };
    let large = nginx.url("/large");
    tried(
        &nginx,
        "nginx-gzip-level",
        &large,
        "gzip_comp_level 6;",
        &["level=6"],
    );
    let small = nginx.url("/small");
    tried(
        &nginx,
        "nginx-worker-connections",
        &small,
        "worker_connections 2048;",
        &["limit=2048", "connections=8"],
    );
}

#[test]
fn a_cache_of_sessions_is_put_in_and_taken_out_again() {
    if assay_testing::servers::skip(&["nginx", "openssl"], false) {
        return;
    }
    let keys = tempfile::tempdir().unwrap();
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| keys.path().join(name));
    let made = Command::new("openssl")
        .args([
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
        ])
        .args(["-subj", "/CN=localhost", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&cert)
        .output()
        .unwrap();
    assert!(made.status.success());
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let (cert, key) = (text(&cert), text(&key));
    let nginx = Nginx::with_files(&format!(
        "listen 127.0.0.1:{port} ssl; ssl_certificate {cert}; ssl_certificate_key {key}; ssl_session_tickets off;"
    ));
    let Some(nginx) = nginx else { return };
    let url = format!("https://127.0.0.1:{port}/small");
    tried(
        &nginx,
        "nginx-ssl-session-cache",
        &url,
        "ssl_session_cache shared:SSL:10m;",
        &[],
    );
}
