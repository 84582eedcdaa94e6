//! Tests the output and exit status of `assay probe` and `assay pins`.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use assay_testing::servers::nginx::Nginx;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Command, Output};

fn assay(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
    command.args(words).env("COLUMNS", "80").output().unwrap()
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_real_server_of_http() {
    if assay_testing::servers::skip(&["nginx"], false) {
        return;
    }
    let nginx = Nginx::start("add_header Public-Key-Pins 'max-age=9';").unwrap();
    let host = format!("127.0.0.1:{}", nginx.port());
    let url = format!("http://{host}/");
    let found = assay(&["probe", "http", &url, "--json"]);
    assert_eq!(found.status.code(), Some(1));
    common::schemas::holds("probe", &String::from_utf8_lossy(&found.stdout), &["/http"]);
    let remarks = json(&found)["http"]["remarks"].clone();
    let ids: Vec<&str> = remarks
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["id"].as_str())
        .collect();
    assert!(ids.contains(&"http-plain"), "{ids:?}");

    let text = assay(&["probe", "http", &url]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    assert!(text.contains("[http-plain]"), "{text}");

    // Another protocol: reported on one line with exit status 3, and nothing on standard output.
    for protocol in ["tls", "ssh", "smb"] {
        let found = assay(&[
            "probe",
            protocol,
            &host,
            "--timeout",
            "1s",
            "--deadline",
            "10s",
        ]);
        let said = String::from_utf8(found.stderr).unwrap();
        assert_eq!(found.status.code(), Some(3), "{protocol}: {said}");
        assert!(found.stdout.is_empty());
        assert_eq!(said.trim_end().lines().count(), 1, "{said}");
        assert!(said.contains(&host), "{said}");
    }
}

#[test]
fn nobody_answers_and_nothing_is_meant() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let free = listener.local_addr().unwrap().to_string();
    drop(listener);
    for protocol in ["tls", "ssh", "smb", "http", "dtls"] {
        let words = [
            "probe",
            protocol,
            &free,
            "--timeout",
            "1s",
            "--deadline",
            "5s",
        ];
        assert_eq!(assay(&words).status.code(), Some(3), "{protocol}");
        let words = ["probe", protocol, "a b:c"];
        assert_eq!(assay(&words).status.code(), Some(2), "{protocol}");
    }
}

#[test]
fn pins_of_files() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../probe/fixtures");
    let path = |name: &str| fixtures.join(name).to_str().unwrap().to_owned();
    // openssl x509 -pubkey -noout | openssl pkey -pubin -outform DER | openssl dgst -sha256
    let pin = "60250524af9776091c33e1cf02ae0fbf5a21b66267f45895aaa08d61e80e3463";
    let found = assay(&[
        "pins",
        &path("cert.pem"),
        &path("request.pem"),
        "--host",
        "example.org:25",
        "--json",
    ]);
    assert_eq!(found.status.code(), Some(0));
    let found = json(&found);
    let pins = found["pins"].as_array().unwrap();
    assert_eq!(pins.len(), 2);
    for one in pins {
        assert_eq!(one["pin"]["hex"], pin);
        assert_eq!(
            one["tlsa"],
            format!("_25._tcp.example.org. IN TLSA 3 1 1 {pin}")
        );
    }
    let text = assay(&["pins", &path("cert.der")]);
    assert!(String::from_utf8(text.stdout).unwrap().contains(pin));
    let none = assay(&["pins", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")]);
    assert_eq!(none.status.code(), Some(2));
    assert_eq!(assay(&["pins", "/no/such/file"]).status.code(), Some(3));
    assert_eq!(assay(&["pins", "nofile"]).status.code(), Some(2));
}
