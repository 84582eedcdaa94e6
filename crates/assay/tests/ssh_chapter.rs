//! Runs the commands of the chapter on access by certificate unchanged, with a real sshd and a real git, in separate
//! namespaces.
#![allow(clippy::disallowed_methods, reason = "tests drive the real programs")]

mod common;

use common::{Home, ended};
use std::path::Path;
use std::process::{Command, Stdio};

const CHAPTER: &str = include_str!("../../../docs/src/ssh-certificates.md");

/// Returns the commands of all blocks as one script. A command after `!` must fail, which `set -e`
/// does not check.
fn script(chapter: &str) -> String {
    let mut out = String::new();
    let (mut inside, mut document) = (false, false);
    for line in chapter.lines() {
        match line {
            "```sh" => inside = true,
            "```" => inside = false,
            _ if !inside => continue,
            line if document => {
                document = line != "END";
                out.push_str(&format!("{line}\n"));
            }
            line => {
                document = line.ends_with("<<'END'");
                match line.strip_prefix("! ") {
                    Some(fails) => out.push_str(&format!(
                        "if {fails}; then echo 'this worked and must not: {}' >&2; exit 9; fi\n",
                        fails.replace('\'', "\"")
                    )),
                    None => out.push_str(&format!("{line}\n")),
                }
            }
        }
    }
    out
}

/// A machine with an sshd as Debian configures it, with separate files and network.
const MACHINE: &str = r#"set -e
bed=$1; script=$2; assay=$3
cp -a /etc "$bed/etc"
mount --bind "$bed/etc" /etc
# What this machine has of its own is not the chapter's.
rm -rf /etc/ssh/sshd_config.d/* /etc/ssh/ssh_host_*
for dir in /run /srv /root /usr/local/sbin; do mount -t tmpfs -o mode=755 tmpfs "$dir"; done
mkdir -p /run/sshd
ln -s "$assay" /usr/local/sbin/assay
export HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
cd /root
ip link set lo up
ssh-keygen -A > /dev/null
/usr/sbin/sshd -E /run/sshd.log
code=0
sh -eu "$script" || code=$?
kill "$(cat /run/sshd.pid)"
cat /run/sshd.log
exit $code
"#;

#[test]
fn the_chapter_on_certificates_does_what_it_says() {
    for (program, package) in [
        ("git", "git"),
        ("sshd", "openssh-server"),
        ("adduser", "adduser"),
        ("ip", "iproute2"),
    ] {
        let there = ["/usr/bin", "/usr/sbin", "/bin", "/sbin"];
        if !there
            .iter()
            .any(|dir| Path::new(dir).join(program).exists())
        {
            assay_testing::skipped(program, format!("needs {package}"));
            return;
        }
    }
    let usable = Command::new("unshare")
        .args(["-m", "-n", "mount", "-t", "tmpfs", "tmpfs", "/run"])
        .stderr(Stdio::null())
        .status();
    if !usable.is_ok_and(|status| status.success()) {
        assay_testing::skipped("root", "needs mount and network namespaces");
        return;
    }
    let text = script(CHAPTER);
    let (works, fails) = (
        text.matches("\ngit push").count(),
        text.matches("\nif ").count(),
    );
    assert!(works >= 1 && fails >= 7, "{text}");
    let home = Home::new();
    let path = home.dir.path().join("script");
    std::fs::write(&path, text).unwrap();
    let mut command = Command::new("unshare");
    command
        // Its processes end with it.
        .args([
            "-m",
            "-n",
            "-p",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "sh",
            "-c",
            MACHINE,
            "sh",
        ])
        .arg(home.dir.path())
        .arg(&path)
        .arg(env!("CARGO_BIN_EXE_assay"))
        .env_remove("SSH_AUTH_SOCK")
        .stdin(Stdio::null());
    let ran = ended(command);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    // Lines of sshd's log with the name and number of the certificate.
    for told in [
        "ID alice (serial 1)",
        "ID alice (serial 2)",
        "ID alice (serial 6)",
    ] {
        assert!(ran.stdout.contains(told), "{told}: {}", ran.stdout);
    }
    assert!(ran.stdout.contains("revoked"), "{}", ran.stdout);
}
