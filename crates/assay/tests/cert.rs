//! Tests `assay cert show` on files of OpenSSL and OpenSSH.
#![allow(clippy::disallowed_methods, reason = "tests start programs")]

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn make(dir: &Path, program: &str, arguments: &[&str]) {
    let done = Command::new(program)
        .args(arguments)
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
}

fn show(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_assay"))
        .args(["cert", "show"])
        .args(arguments)
        .current_dir(dir)
        .output()
        .unwrap()
}

fn json(dir: &Path, arguments: &[&str]) -> (Value, Option<i32>) {
    let mut all = vec!["--json"];
    all.extend(arguments);
    let output = show(dir, &all);
    let value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    (value, output.status.code())
}

/// Returns kind and contents of an item.
fn unpack(item: &Value) -> (String, Value) {
    let (kind, contents) = item.as_object().unwrap().iter().next().unwrap();
    (kind.clone(), contents.clone())
}

#[test]
fn files_of_openssl() {
    if assay_testing::servers::skip(&["openssl"], false) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    let config = "subjectAltName=DNS:shop.example,IP:192.0.2.1";
    make(
        at,
        "openssl",
        &[
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out",
            "cert.pem", "-subj", "/CN=shop", "-days", "30", "-addext", config,
        ],
    );
    make(
        at,
        "openssl",
        &[
            "req", "-new", "-key", "key.pem", "-out", "next.csr", "-subj", "/CN=shop", "-addext",
            config,
        ],
    );
    make(
        at,
        "openssl",
        &[
            "x509", "-in", "cert.pem", "-outform", "DER", "-out", "cert.der",
        ],
    );
    make(
        at,
        "openssl",
        &[
            "pkey",
            "-in",
            "key.pem",
            "-aes256",
            "-passout",
            "pass:secret",
            "-out",
            "locked.pem",
        ],
    );
    let (found, status) = json(
        at,
        &[
            "./cert.pem",
            "./next.csr",
            "./key.pem",
            "./cert.der",
            "./locked.pem",
        ],
    );
    assert_eq!(status, Some(0));
    let items = |source: usize| unpack(&found["sources"][source]["items"][0]).1;
    let kind = |source: usize| unpack(&found["sources"][source]["items"][0]).0;
    let kinds: Vec<_> = (0..5).map(kind).collect();
    assert_eq!(
        kinds,
        ["certificate", "request", "key", "certificate", "key"]
    );
    for source in 0..2 {
        assert_eq!(
            items(source)["names"],
            serde_json::json!(["shop.example", "192.0.2.1"])
        );
    }
    for source in 0..4 {
        assert_eq!(items(source)["pin"], items(0)["pin"], "one key, one pin");
        assert_eq!(items(source)["key"], "RSA 2048");
    }
    assert_eq!(items(4)["encrypted"], true);
    // Several items in one file, with other text around them.
    let both = format!(
        "a comment\n{}\n{}",
        std::fs::read_to_string(at.join("cert.pem")).unwrap(),
        std::fs::read_to_string(at.join("key.pem")).unwrap()
    );
    std::fs::write(at.join("both.pem"), both).unwrap();
    let (found, _) = json(at, &["./both.pem"]);
    assert_eq!(found["sources"][0]["items"].as_array().unwrap().len(), 2);
    // No line of a private key is printed.
    let key = std::fs::read_to_string(at.join("key.pem")).unwrap();
    let printed = String::from_utf8(show(at, &["./key.pem"]).stdout).unwrap();
    assert!(key.lines().all(|line| !printed.contains(line)), "{printed}");
}

#[test]
fn an_expired_certificate_is_exit_1() {
    if assay_testing::servers::skip(&["ssh-keygen"], false) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    for name in ["ca", "old"] {
        make(
            at,
            "ssh-keygen",
            &["-q", "-t", "ed25519", "-N", "", "-f", name],
        );
    }
    let span = "20200101:20200201";
    make(
        at,
        "ssh-keygen",
        &["-q", "-s", "ca", "-h", "-I", "x", "-V", span, "old.pub"],
    );
    let (found, status) = json(at, &["./old-cert.pub"]);
    assert_eq!(status, Some(1));
    assert_eq!(
        found["sources"][0]["items"][0]["ssh-certificate"]["of"],
        "host"
    );
}

#[test]
fn files_of_openssh() {
    if assay_testing::servers::skip(&["ssh-keygen"], false) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    make(
        at,
        "ssh-keygen",
        &["-q", "-t", "ed25519", "-N", "", "-f", "ca"],
    );
    for (kind, name) in [("ed25519", "user"), ("ecdsa", "curve"), ("rsa", "rsa")] {
        make(
            at,
            "ssh-keygen",
            &["-q", "-t", kind, "-N", "", "-C", "me@box", "-f", name],
        );
        make(
            at,
            "ssh-keygen",
            &[
                "-q",
                "-s",
                "ca",
                "-I",
                "ticket 7",
                "-z",
                "42",
                "-n",
                "root,deploy",
                "-V",
                "+1d",
                "-O",
                "force-command=/bin/true",
                &format!("{name}.pub"),
            ],
        );
        let (found, status) = json(
            at,
            &[
                &format!("./{name}-cert.pub"),
                &format!("./{name}"),
                &format!("./{name}.pub"),
                "./ca.pub",
            ],
        );
        assert_eq!(status, Some(0), "{name}");
        let item = |source: usize| unpack(&found["sources"][source]["items"][0]).1;
        let kind = unpack(&found["sources"][0]["items"][0]).0;
        assert_eq!(kind, "ssh-certificate");
        assert_eq!(item(0)["of"], "user");
        assert_eq!(item(0)["key_id"], "ticket 7");
        assert_eq!(item(0)["serial"], 42);
        assert_eq!(item(0)["principals"], serde_json::json!(["root", "deploy"]));
        assert_eq!(
            item(0)["critical_options"],
            serde_json::json!(["force-command=/bin/true"])
        );
        assert_eq!(item(0)["authority"], item(3)["fingerprint"]);
        for source in [1, 2] {
            assert_eq!(
                item(source)["fingerprint"],
                item(0)["fingerprint"],
                "{name}"
            );
        }
        assert_eq!(item(2)["comment"], "me@box");
        // The same as OpenSSH itself reports.
        let output = Command::new("ssh-keygen")
            .args(["-l", "-f", &format!("{name}.pub")])
            .current_dir(at)
            .output()
            .unwrap();
        let line = String::from_utf8(output.stdout).unwrap();
        assert!(
            line.contains(item(2)["fingerprint"].as_str().unwrap()),
            "{line}"
        );
    }
    make(
        at,
        "ssh-keygen",
        &["-q", "-t", "ed25519", "-N", "secret", "-f", "locked"],
    );
    let (found, _) = json(at, &["./locked"]);
    assert_eq!(
        found["sources"][0]["items"][0]["ssh-key"]["encrypted"],
        true
    );
    // A line of authorized_keys with options, and one of known_hosts.
    let key = std::fs::read_to_string(at.join("user.pub")).unwrap();
    std::fs::write(
        at.join("authorized_keys"),
        format!("# mine\n\nfrom=\"10.0.0.0/8\",command=\"a b\" {key}host,192.0.2.1 {key}"),
    )
    .unwrap();
    let (found, _) = json(at, &["./authorized_keys"]);
    let items = found["sources"][0]["items"].as_array().unwrap();
    assert_eq!(
        items[0]["ssh-key"]["options"],
        "from=\"10.0.0.0/8\",command=\"a b\""
    );
    assert_eq!(items[1]["ssh-key"]["options"], "host,192.0.2.1");
}

#[test]
fn what_cannot_be_read_is_an_error_and_never_a_panic() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    let cut = "-----BEGIN CERTIFICATE-----\nMIIB";
    for (name, bytes, status) in [
        ("empty", &b""[..], 2),
        ("text", b"hello\nworld\n", 2),
        ("cut.pem", cut.as_bytes(), 2),
        ("zeros", &[0; 4096], 2),
        ("short.pub", b"ssh-ed25519 AAAA\n", 2),
        ("cert.pub", b"ssh-ed25519-cert-v01@openssh.com AAAAIHNzaC1lZDI1NTE5LWNlcnQtdjAxQG9wZW5zc2guY29t x\n", 2),
    ] {
        std::fs::write(at.join(name), bytes).unwrap();
        let output = show(at, &[&format!("./{name}")]);
        assert_eq!(output.status.code(), Some(status), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(!output.stderr.is_empty());
    }
    assert_eq!(show(at, &["/no/such/file"]).status.code(), Some(3));
    assert_eq!(show(at, &["nofile"]).status.code(), Some(2));
}
