//! Fixes of permissions: the bits change and nothing else, they come back, and a link leads nowhere.

use super::bed::Bed;
use super::common::{self, Ran, sent};
use serde_json::Value;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A rule, its file, and the permission bits with the fault and without it.
type Case = (&'static str, &'static str, u32, u32);

const CASES: [Case; 5] = [
    ("secret-file-readable", "shadow", 0o644, 0o640),
    ("root-program-writable", "own/run", 0o4757, 0o4755),
    ("key-file-open", "own/site.key", 0o644, 0o640),
    ("cron-job-not-executable", "cron.daily/own", 0o640, 0o751),
    ("system-file-writable", "passwd", 0o646, 0o644),
];

/// Returns the rules whose fixes are tried here.
pub fn rules() -> impl Iterator<Item = &'static str> {
    let tried = CASES.iter().map(|case| case.0);
    // `steps` executes the same command, and the edit is that of the others.
    tried.chain(["ssh-authorized-keys-open", "shell-gives-root"])
}

fn set_mode(bed: &Bed, file: &str, mode: u32) {
    let mode = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(bed.path(file), mode).unwrap();
}

fn mode(bed: &Bed, file: &str) -> u32 {
    std::fs::metadata(bed.path(file)).unwrap().mode() & 0o7777
}

fn planted() -> Option<Bed> {
    let bed = Bed::new()?;
    std::fs::create_dir(bed.path("own")).unwrap();
    for (file, text) in [
        ("own/run", "#!/bin/sh\n"),
        ("cron.daily/own", "#!/bin/sh\n"),
        (
            "systemd/system/own.service",
            "[Service]\nExecStart=/etc/own/run --all\n",
        ),
        (
            "nginx/conf.d/own.conf",
            "server { listen 4421; ssl_certificate_key /etc/own/site.key; }\n",
        ),
    ] {
        bed.edit(file, |_| text.to_owned());
    }
    let key = bed.path("own/site.key");
    let made = std::process::Command::new("openssl")
        .args(["genpkey", "-algorithm", "EC", "-pkeyopt"])
        .args(["ec_paramgen_curve:P-256", "-out"])
        .arg(&key)
        .stderr(Stdio::null())
        .status();
    if !made.is_ok_and(|status| status.success()) {
        assay_testing::skipped("program", "openssl");
        return None;
    }
    for (_, file, open, _) in CASES {
        let before = std::fs::metadata(bed.path(file)).unwrap();
        bed.adorn(file);
        // The group of /etc/shadow and others stays.
        std::os::unix::fs::chown(bed.path(file), None, Some(before.gid())).unwrap();
        set_mode(&bed, file, open);
    }
    Some(bed)
}

fn fix(bed: &Bed, rule: &str) -> Ran {
    bed.assay(&["check", "--fix", rule, "--yes", "--json"])
}

#[test]
fn permissions_are_taken_away_and_come_back() {
    let Some(bed) = planted() else { return };
    let before: Vec<_> = CASES.iter().map(|case| bed.look(case.1)).collect();
    let found = bed.findings();
    let mut changes = Vec::new();
    for (rule, file, open, closed) in CASES {
        let violated = format!("\"{rule}\" \"violated\"");
        assert!(found.contains(&violated), "{rule}: {found:?}");
        let dry = bed.assay(&["check", "--fix", rule, "--dry-run"]);
        assert_eq!(dry.code, Some(0), "{rule}: {}{}", dry.stdout, dry.stderr);
        assert!(
            dry.stdout.contains(&format!("{closed:04o}")),
            "{}",
            dry.stdout
        );
        assert_eq!(mode(&bed, file), open, "{rule}: a dry run changes nothing");
        let ran = fix(&bed, rule);
        assert_eq!(ran.code, Some(0), "{rule}: {}{}", ran.stdout, ran.stderr);
        common::schemas::holds("check-fix", &ran.stdout, &[]);
        let document: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(document["became"], "kept", "{document}");
        assert_eq!(
            document["modes"][0]["real"],
            format!("/etc/{file}"),
            "{document}"
        );
        assert_eq!(
            document["modes"][0]["after"],
            format!("{closed:04o}"),
            "{document}"
        );
        assert_eq!(mode(&bed, file), closed, "{rule}");
        changes.push((rule, document["change"].as_str().unwrap().to_owned()));
    }
    let left = bed.findings();
    for (rule, ..) in CASES {
        assert!(
            !left.contains(&format!("\"{rule}\" \"violated\"")),
            "{rule}"
        );
    }
    assert_eq!(left.len() + CASES.len(), found.len(), "{left:?}");
    for (rule, change) in changes.iter().rev() {
        let undone = bed.assay(&["check", "--undo", change, "--yes"]);
        assert_eq!(
            undone.code,
            Some(0),
            "{rule}: {}{}",
            undone.stdout,
            undone.stderr
        );
    }
    let back: Vec<_> = CASES.iter().map(|case| bed.look(case.1)).collect();
    assert_eq!(back, before, "content, mode, owner, attributes and times");
    assert_eq!(bed.findings(), found);
}

/// Takes the set-user-ID bit of a program away, and puts it back; prints the mode after each.
const SET_USER_ID: &str = r#"set -e
program=$1; bed=$2
cp -p /usr/bin/find "$bed/find"
chmod 4755 "$bed/find"
mount --bind "$bed/find" /usr/bin/find
"$program" check --fix shell-gives-root --yes --json
stat --format=%a /usr/bin/find >&2
"$program" check --undo --yes > /dev/null
stat --format=%a /usr/bin/find >&2
"#;

#[test]
fn a_set_user_id_bit_is_taken_away_and_comes_back() {
    let Some(bed) = Bed::new() else { return };
    let place = bed.home.dir.path().to_str().unwrap();
    let ran = bed.run(&["sh", "-c", SET_USER_ID, "sh", sent(), place]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document["became"], "kept", "{document}");
    assert_eq!(document["modes"][0]["real"], "/usr/bin/find", "{document}");
    assert_eq!(ran.stderr.lines().collect::<Vec<_>>(), ["755", "4755"]);
}

/// Somebody else changes the permissions after the fix: they stay as that person wants them.
#[test]
fn permissions_of_somebody_else_are_left_alone() {
    let Some(bed) = planted() else { return };
    let ran = fix(&bed, "secret-file-readable");
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    set_mode(&bed, "shadow", 0o600);
    let undone = bed.assay(&["check", "--undo", "--yes"]);
    assert_eq!(undone.code, Some(1), "{}{}", undone.stdout, undone.stderr);
    assert_eq!(mode(&bed, "shadow"), 0o600);
}

#[test]
fn attack_links_and_marks_are_refused() {
    let Some(bed) = planted() else { return };
    let target = bed.path("own/target");
    std::fs::write(&target, "#!/bin/sh\n").unwrap();
    let open = std::fs::Permissions::from_mode(0o757);
    std::fs::set_permissions(&target, open).unwrap();
    let run = bed.path("own/run");
    let mut held = 0;
    // A symbolic link.
    std::fs::remove_file(&run).unwrap();
    std::os::unix::fs::symlink("/etc/own/target", &run).unwrap();
    let ran = fix(&bed, "root-program-writable");
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document["became"], "by-hand", "{document}");
    held += u64::from(mode(&bed, "own/target") == 0o757);
    // A second name.
    std::fs::remove_file(&run).unwrap();
    std::fs::hard_link(&target, &run).unwrap();
    let ran = fix(&bed, "root-program-writable");
    assert_eq!(ran.code, Some(2), "{}{}", ran.stdout, ran.stderr);
    held += u64::from(mode(&bed, "own/target") == 0o757);
    std::fs::remove_file(&target).unwrap();
    // A file that shall stay as it is.
    let chattr = |flag: &str| {
        std::process::Command::new("chattr")
            .arg(flag)
            .arg(&run)
            .status()
    };
    if chattr("+i").is_ok_and(|status| status.success()) {
        let ran = fix(&bed, "root-program-writable");
        assert!(chattr("-i").unwrap().success());
        assert_eq!(ran.code, Some(2), "{}{}", ran.stdout, ran.stderr);
        assert!(
            ran.stderr.contains("chattr -i /etc/own/run"),
            "{}",
            ran.stderr
        );
        held += u64::from(mode(&bed, "own/run") == 0o757);
    } else {
        assay_testing::skipped("chattr", "this file system has no marks");
        held += 1;
    }
    let recovered = bed.assay(&["trial", "--recover"]);
    assert_eq!(recovered.stdout, "Nothing to revert.\n");
    assay_testing::attacked("permissions through links", 3, held);
}

/// Killed at any time: what was not kept is reverted by the next recovery, and what was kept can be undone.
#[test]
fn attack_kills_while_permissions_change() {
    let Some(bed) = planted() else { return };
    let before = bed.look("shadow");
    let rounds = 8 * assay_testing::attack_factor();
    let (mut held, mut changed) = (0, 0);
    for round in 0..rounds {
        let argv = [sent(), "check", "--fix", "secret-file-readable", "--yes"];
        let mut command = bed.command(&argv);
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = quiet.spawn().unwrap();
        let begun = Instant::now();
        let wait = Duration::from_millis(200 * (round % 4));
        while bed.look("shadow") == before && begun.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_micros(500));
        }
        std::thread::sleep(wait);
        let pid = rustix::process::Pid::from_child(&child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        child.wait().unwrap();
        changed += u64::from(bed.look("shadow") != before);
        let ran = bed.assay(&["trial", "--recover"]);
        assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
        if bed.look("shadow") != before {
            let ran = bed.assay(&["check", "--undo", "--yes"]);
            assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
        }
        held += u64::from(bed.look("shadow") == before);
    }
    assert!(changed > 0, "no kill came while something was changed");
    assay_testing::attacked("kills while permissions change", rounds, held);
}
