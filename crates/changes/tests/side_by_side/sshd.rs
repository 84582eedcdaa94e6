//! Starts a second real sshd, with a real login.
#![allow(clippy::disallowed_methods, reason = "it makes keys and logs in")]

use crate::bench::{Bench, alive};
use assay_changes::side_by_side::{ArmError, Built, Endpoint, build};
use assay_host::LiveHost;
use assay_loads::Cancel;
use assay_model::Bytes;
use assay_model::change::Arm;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn make<'a>(
    bench: &'a Bench,
    name: &str,
    config: &Path,
    set: &[(&str, &str)],
) -> Result<Built<'a>, ArmError> {
    if rustix::process::geteuid().is_root() {
        // Debian's service makes it when it starts; a machine on which it never ran has none.
        let _ = std::fs::create_dir("/run/sshd");
    }
    let set = set
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let arm = Arm::Sshd {
        config: config.to_str().unwrap().to_owned(),
        set: set.collect(),
    };
    let place = bench.place(name, Bytes(0));
    build(&LiveHost, &bench.session, &arm, &place, &Cancel::default())
}

fn port(built: &Built<'_>) -> u16 {
    match built.endpoint() {
        Endpoint::Address { host, port } => {
            assert_eq!(host, "127.0.0.1");
            port
        }
        other => panic!("{other:?}"),
    }
}

fn user() -> String {
    let output = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn key(dir: &Path) {
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f", "key"])
        .current_dir(dir)
        .status();
    assert!(made.unwrap().success());
}

fn ssh(dir: &Path, port: u16) -> Command {
    let mut command = Command::new("ssh");
    command
        .current_dir(dir)
        .args(["-F", "none", "-i", "key", "-p", &port.to_string()]);
    for option in [
        "BatchMode=yes",
        "IdentitiesOnly=yes",
        "StrictHostKeyChecking=no",
        "UserKnownHostsFile=/dev/null",
        "ConnectTimeout=20",
    ] {
        command.args(["-o", option]);
    }
    command.arg(format!("{}@127.0.0.1", user()));
    command
}

fn login(dir: &Path, port: u16) -> Output {
    ssh(dir, port).arg("echo logged in").output().unwrap()
}

#[test]
fn two_sshds_side_by_side_take_logins() {
    let bench = Bench::below("a b,c\n'é");
    let files = tempfile::tempdir().unwrap();
    key(files.path());
    let at = |name: &str| files.path().join(name);
    // Includes that set an address, and conditions that must not affect other lines.
    std::fs::create_dir(at("more d")).unwrap();
    std::fs::write(
        at("more d/1.conf"),
        "Port 2222\nMatch User nobody\n  X11Forwarding no\n",
    )
    .unwrap();
    std::fs::write(
        at("config"),
        format!(
            "Port 22\nListenAddress 0.0.0.0\nInclude \"{}/more d/*.conf\"\nUseDNS no\nX11Forwarding yes\n\
             StrictModes no\nAuthorizedKeysFile {}\nHostKey /etc/ssh/none\nMatch User nobody\n  PermitTTY no\n",
            files.path().display(),
            at("key.pub").display()
        ),
    )
    .unwrap();
    let original = std::fs::read(at("config")).unwrap();
    let now = make(&bench, "now", &at("config"), &[]).unwrap();
    let changed = make(&bench, "changed", &at("config"), &[("UseDNS", "yes")]).unwrap();
    let (read_now, read_changed) = (now.read_back().unwrap(), changed.read_back().unwrap());
    assert!(
        !read_now.contains("usedns"),
        "it is the default: {read_now}"
    );
    assert!(read_changed.contains("usedns yes"), "{read_changed}");
    for read in [&read_now, &read_changed] {
        assert!(read.contains("x11forwarding yes"), "{read}");
        assert!(!read.contains("port "), "{read}");
    }
    for built in [&now, &changed] {
        let output = login(files.path(), port(built));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.stdout, b"logged in\n", "{said}");
    }
    // A user who is still logged in must be logged out too.
    let mut stays = ssh(files.path(), port(&now))
        .arg("echo here; sleep 600")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = [0; 5];
    std::io::Read::read_exact(stays.stdout.as_mut().unwrap(), &mut line).unwrap();
    let pid = now.server_pid().unwrap();
    drop((now, changed));
    assert!(!alive(pid));
    assert!(!stays.wait().unwrap().success());
    assert!(bench.nothing_left());
    assert_eq!(std::fs::read(at("config")).unwrap(), original);
}

#[test]
fn what_sshd_refuses_is_told_with_the_original_line() {
    let bench = Bench::new();
    let files = tempfile::tempdir().unwrap();
    let config = files.path().join("config");
    std::fs::write(&config, "# one\nNoSuchKeyword yes\n").unwrap();
    let error = make(&bench, "now", &config, &[]).err().unwrap().to_string();
    let place = format!("{} line 2", config.display());
    let place = [place.clone(), place.replace(" line", ": line")];
    assert!(place.iter().any(|place| error.contains(place)), "{error}");
    assert!(
        error.contains("NoSuchKeyword") || error.contains("nosuchkeyword"),
        "{error}"
    );
    assert!(bench.nothing_left());
    for (set, said) in [
        (("Port", "22"), "assay settles"),
        (("UseDNS", "no\nPort 22"), "one line"),
        (("Use DNS", "no"), "not a keyword"),
        (("UseDNS", "perhaps"), "`usedns perhaps`: unsupported"),
    ] {
        std::fs::write(&config, "").unwrap();
        let error = make(&bench, "now", &config, &[set])
            .err()
            .unwrap()
            .to_string();
        assert!(error.to_lowercase().contains(said), "{error}");
    }
    let missing = files.path().join("none");
    assert!(make(&bench, "now", &missing, &[]).is_err());
    std::fs::write(&config, format!("Include {}\n", config.display())).unwrap();
    let error = make(&bench, "now", &config, &[]).err().unwrap();
    insta::assert_snapshot!(assay_testing::normalize_output(error, &[(&config, "CONFIG")]), @"CONFIG: Include leads more than 16 files deep");
    assert!(bench.nothing_left());
}
