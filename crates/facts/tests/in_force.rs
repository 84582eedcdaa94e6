//! Compares the effective values of a block with the values that sshd itself reports for a connection that matches the
//! block.
#![allow(
    clippy::disallowed_methods,
    reason = "asks the real sshd about files of its own"
)]

use assay_facts::{CollectOptions, collect};
use assay_host::Root;
use std::path::Path;
use std::process::Command;

const OUTSIDE: [&str; 4] = [
    "",
    "RevokedKeys /etc/ssh/outside\n",
    "TrustedUserCAKeys /etc/ssh/ca-outside\n",
    "TrustedUserCAKeys /etc/ssh/ca-outside\nRevokedKeys /etc/ssh/outside\n",
];

const INSIDE: [&str; 6] = [
    "TrustedUserCAKeys /etc/ssh/ca-inside\n",
    "RevokedKeys /etc/ssh/inside\n",
    "RevokedKeys none\n",
    "TrustedUserCAKeys /etc/ssh/ca-inside\nRevokedKeys none\n",
    "TrustedUserCAKeys none\n",
    "TrustedUserCAKeys /etc/ssh/ca-inside\nRevokedKeys /etc/ssh/inside\n",
];

/// Blocks before and after the tested block.
const ALWAYS: [&str; 3] = [
    "",
    "Match all\n    RevokedKeys /etc/ssh/always\n",
    "Match All\n    TrustedUserCAKeys /etc/ssh/ca-always\n",
];

/// Returns the value of a keyword in the output of `sshd -T`. `none` is printed literally.
fn says(answer: &str, key: &str) -> String {
    let line = answer.lines().find_map(|line| line.strip_prefix(key));
    line.map_or("none", str::trim).to_owned()
}

#[test]
fn a_block_has_what_sshd_has_for_its_user() {
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("host_key");
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(&key)
        .status();
    if made.is_err() || !Path::new("/usr/sbin/sshd").exists() {
        return assay_testing::skipped("sshd", "openssh-server is not installed");
    }
    // The service creates it when it starts.
    let _ = std::fs::create_dir("/run/sshd");
    let etc = dir.path().join("root/etc/ssh");
    std::fs::create_dir_all(&etc).unwrap();
    let file = etc.join("sshd_config");
    let mut asked = 0;
    for outside in OUTSIDE {
        for inside in INSIDE {
            for before in ALWAYS {
                for after in ALWAYS {
                    let block = format!("Match User git\n    {}", inside.replace('\n', "\n    "));
                    let text = format!("{outside}{before}{block}\n{after}");
                    std::fs::write(&file, &text).unwrap();
                    let output = Command::new("/usr/sbin/sshd")
                        .args(["-T", "-C", "user=git,host=x,addr=192.0.2.1", "-h"])
                        .arg(&key)
                        .arg("-f")
                        .arg(&file)
                        .output()
                        .unwrap();
                    let answer = String::from_utf8_lossy(&output.stdout);
                    assert!(output.status.success(), "{text}: {output:?}");
                    let root = Root::open(&dir.path().join("root")).unwrap();
                    let options = CollectOptions {
                        services: true,
                        ..CollectOptions::default()
                    };
                    let facts = collect(&root, &options);
                    // The user's block is the second one if another block precedes it.
                    let number = 1 + usize::from(!before.is_empty());
                    for keyword in ["trustedusercakeys", "revokedkeys"] {
                        let fact = format!("sshd.scope.Match-{number}.{keyword}_in_force");
                        let ours = facts.str(&fact).unwrap_or("none");
                        assert_eq!(ours, says(&answer, keyword), "{keyword}\n{text}");
                        asked += 1;
                    }
                }
            }
        }
    }
    assert_eq!(asked, 4 * 6 * 3 * 3 * 2);
}
