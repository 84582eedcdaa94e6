//! Failing logins: each kind of failure has its own result, without an invented wait.

use crate::causes::ids;
use crate::common::Home;
use crate::{ADDRESS, json, skipped, ssh_as};
use assay_testing::servers::dns::SlowDns;
use assay_testing::servers::sshd::Sshd;
use serde_json::Value;
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::process::Command;
use std::time::Duration;

const NEEDS: [&str; 6] = ["sshd", "ssh", "ssh-keygen", "unshare", "nsenter", "ip"];

fn planted(settings: &str) -> Sshd {
    let dns = SlowDns::start(Some(Duration::ZERO)).unwrap();
    Sshd::configured(dns, settings, None).unwrap()
}

/// Returns the kind of a failed login.
fn failed(sshd: &Sshd, user: &str, options: &[&str]) -> String {
    let home = Home::new();
    let more = [
        "--rounds",
        "1",
        "--command-only",
        "--json",
        "--limit",
        "20s",
    ];
    let out = ssh_as(&home, sshd, &format!("{user}@{ADDRESS}"), options, &more);
    let value = json(&out);
    assert_eq!(out.code, Some(1), "{value}{}", out.stderr);
    assert_eq!(
        (ids(&value), &value["healthy"]),
        (vec![], &Value::Bool(false)),
        "{value}"
    );
    value["failure"]["kind"].as_str().unwrap().to_owned()
}

#[test]
fn what_the_server_does_not_take_is_told_apart() {
    if skipped(&NEEDS) {
        return;
    }
    let sshd = planted("UsePAM no\nUseDNS no");
    let other = sshd.dir().join("other").display().to_string();
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f", &other])
        .status();
    assert!(made.unwrap().success());
    let key = format!("IdentityFile={other}");
    assert_eq!(
        failed(&sshd, "root", &["PubkeyAuthentication=no"]),
        "authentication-refused"
    );
    assert_eq!(
        failed(&sshd, "nobody-of-that-name", &[&key]),
        "unknown-user"
    );
    assert_eq!(
        failed(
            &sshd,
            "root",
            &["Ciphers=aes128-ctr", "HostKeyAlgorithms=rsa-sha2-256"]
        ),
        "no-common-algorithm"
    );
    // The client's known hosts: none, and one with another key.
    let strict = "StrictHostKeyChecking=yes";
    let none = "UserKnownHostsFile=/dev/null";
    assert_eq!(failed(&sshd, "root", &[strict, none]), "host-key-unknown");
    let known = sshd.dir().join("wrong");
    let public = std::fs::read_to_string(format!("{other}.pub")).unwrap();
    std::fs::write(&known, format!("{ADDRESS} {public}")).unwrap();
    let wrong = format!("UserKnownHostsFile={}", known.display());
    assert_eq!(failed(&sshd, "root", &[strict, &wrong]), "host-key-changed");
    // A login to a shell that ends at once.
    sshd.dns.set_shell("/usr/sbin/nologin").unwrap();
    assert_eq!(failed(&sshd, "root", &[]), "session-ended");
}

#[test]
fn a_server_that_is_full_is_told_from_one_that_hangs_up() {
    if skipped(&NEEDS) || skipped(&["busybox"]) {
        return;
    }
    let sshd = planted("UsePAM no\nUseDNS no\nMaxStartups 2:100:2");
    let argv = sshd
        .dns
        .inside(&["busybox", "nc", &ADDRESS.to_string(), "22"]);
    let hold = || {
        let mut command = Command::new(&argv[0]);
        command
            .args(&argv[1..])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        // Its banner shows that it has a connection slot.
        let mut byte = [0];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut byte).unwrap();
        child
    };
    let mut held = [hold(), hold()];
    assert_eq!(failed(&sshd, "root", &[]), "max-startups-full");
    for child in &mut held {
        let _ = child.kill();
        let _ = child.wait();
    }
    // A service that closes the connection, or is silent.
    let home = Home::new();
    let kind = |port: u16, options: &[&str]| {
        let target = format!("root@127.0.0.1:{port}");
        let mut words = vec![
            "run", "login", "ssh", &target, "-q", "--rounds", "1", "--json", "--limit", "5s",
        ];
        words.extend(options);
        let value = json(&home.assay(&words));
        value["failure"]["kind"].as_str().unwrap().to_owned()
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    assert_eq!(kind(port, &[]), "banner-timeout");
    assert_eq!(kind(port, &["-o", "ConnectTimeout=1"]), "banner-timeout");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(b"Not allowed at this time\r\n");
        }
    });
    assert_eq!(kind(port, &[]), "closed-before-banner");
}
