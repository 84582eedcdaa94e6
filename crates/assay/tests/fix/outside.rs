//! A change that may lock the user out is reverted when both processes of assay are gone: by cron and atd, which run
//! once a minute.

use super::bed::Bed;
use super::common::{Ran, ended, sent};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Applies the change, kills all processes of the session, and waits for the file.
const KILLED: &str = r#"
assay=$1; bed=$2
"$assay" check --fix ssh-usedns --yes --confirm-within 60s > "$bed/out" 2>&1 &
fix=$!
for _ in $(seq 600); do
    [ -n "$(find "$bed/state/journal/sessions" -name waits 2>/dev/null)" ] && break
    kill -0 $fix 2>/dev/null || { cat "$bed/out" >&2; exit 9; }
    sleep 0.1
done
grep -q '^UseDNS yes' /etc/ssh/sshd_config && { echo "nothing was changed" >&2; exit 8; }
# The process that stands by names the journal, and no other process of the machine does. It may be about to start.
for _ in $(seq 600); do
    pgrep -f "stand-by.*$bed/state/journal" >/dev/null && break
    sleep 0.1
done
pkill -KILL -f "stand-by.*$bed/state/journal"
kill -KILL $fix
sleep 1
# With no process of the session left, it is the scheduler that reverts, at any second of its minute.
pgrep -f "stand-by.*$bed/state/journal" >&2 && { echo "a process that stands by is left" >&2; exit 7; }
for _ in $(seq 600); do
    grep -q '^UseDNS yes' /etc/ssh/sshd_config && exit 0
    sleep 0.5
done
exit 6
"#;

fn bed() -> Option<Bed> {
    let bed = Bed::new()?;
    bed.edit("ssh/sshd_config", |text| format!("UseDNS yes\n{text}"));
    bed.adorn("ssh/sshd_config");
    Some(bed)
}

fn killed(bed: &Bed, scheduler: &str) -> Ran {
    let place = bed.home.dir.path().to_str().unwrap().to_owned();
    let mut command = bed.command(&["sh", "-c", KILLED, "sh", sent(), &place]);
    command.env("BED_SCHEDULER", scheduler);
    ended(command)
}

/// Waits until all orders are gone: the one that reverted the change may still run.
fn nothing_is_armed(bed: &Bed) -> bool {
    let begun = Instant::now();
    while !bed.armed().is_empty() && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(100));
    }
    bed.armed() == Vec::<PathBuf>::new()
}

#[test]
fn attack_both_processes_are_killed() {
    let kept: Vec<bool> = std::thread::scope(|scope| {
        let all = ["cron", "at"].map(|scheduler| {
            scope.spawn(move || {
                let bed = bed()?;
                let before = bed.look("ssh/sshd_config");
                let ran = killed(&bed, scheduler);
                assert_eq!(ran.code, Some(0), "{scheduler}: {}", ran.stderr);
                let back = bed.look("ssh/sshd_config") == before;
                Some(back && nothing_is_armed(&bed))
            })
        });
        all.into_iter()
            .filter_map(|one| one.join().unwrap())
            .collect()
    });
    let held = kept.iter().filter(|held| **held).count();
    assay_testing::attacked(
        "a change that waits, without any process of assay",
        kept.len() as u64,
        held as u64,
    );
}

/// Kills everything that looks after a change, lets a check of atd fail, and then one succeed.
const FAILED: &str = r#"
assay=$1; bed=$2
"$assay" check --fix ssh-usedns --yes --confirm-within 1h > "$bed/out" 2>&1 &
fix=$!
for _ in $(seq 600); do
    [ -n "$(find "$bed/state/journal/sessions" -name waits 2>/dev/null)" ] && break
    kill -0 $fix 2>/dev/null || { cat "$bed/out" >&2; exit 9; }
    sleep 0.1
done
for _ in $(seq 600); do
    pgrep -f "stand-by.*$bed/state/journal" >/dev/null && break
    sleep 0.1
done
pkill -KILL -f "stand-by.*$bed/state/journal"
kill -KILL $fix
dir=$(echo /var/lib/assay/undo/*)
mv "$bed/state/journal" "$bed/state/away"
for job in $(atq | cut -f 1); do atrm "$job"; done
"$dir/assay" dev undo-unconfirmed --dir "$dir" 2>/dev/null && exit 8
[ "$(atq | wc -l)" = 1 ] || { atq >&2; exit 7; }
mv "$bed/state/away" "$bed/state/journal"
"$dir/assay" dev undo-unconfirmed --dir "$dir" >/dev/null || exit 6
"#;

#[test]
fn a_check_that_fails_is_followed_by_another() {
    let Some(bed) = bed() else { return };
    let before = bed.look("ssh/sshd_config");
    let place = bed.home.dir.path().to_str().unwrap().to_owned();
    let mut command = bed.command(&["sh", "-c", FAILED, "sh", sent(), &place]);
    command.env("BED_SCHEDULER", "at");
    let ran = ended(command);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(bed.look("ssh/sshd_config"), before);
    assert!(nothing_is_armed(&bed), "{:?}", bed.armed());
}

#[test]
fn where_nothing_could_take_it_back_nothing_is_changed() {
    let Some(bed) = bed() else { return };
    let before = bed.look("ssh/sshd_config");
    let assay = sent();
    let mut command = bed.command(&[assay, "check", "--fix", "ssh-usedns", "--yes"]);
    command.env("BED_SCHEDULER", "none");
    let ran = ended(command);
    assert_eq!(ran.code, Some(2), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(bed.look("ssh/sshd_config"), before);
    assert_eq!(bed.armed(), Vec::<PathBuf>::new());
    assert_eq!(
        bed.assay(&["trial", "--recover"]).stdout,
        "Nothing to revert.\n"
    );
    // A change without this risk needs no watchdog.
    bed.edit("nginx/conf.d/tls.conf", |_| {
        "ssl_ciphers RC4:HIGH;\n".to_owned()
    });
    let mut command = bed.command(&[assay, "check", "--fix", "nginx-rc4", "--yes"]);
    command.env("BED_SCHEDULER", "none");
    assert_eq!(ended(command).code, Some(0));
}

/// A file that cannot be replaced is refused with the command that permits it, and so is one in
/// such a directory.
#[test]
fn a_file_that_is_marked_is_not_replaced() {
    let Some(bed) = bed() else { return };
    let file = bed.path("ssh/sshd_config");
    let before = bed.look("ssh/sshd_config");
    for (mark, path) in [
        ("i", file.clone()),
        ("a", file.clone()),
        ("i", bed.path("ssh")),
        ("a", bed.path("ssh")),
    ] {
        let chattr = |sign: &str| {
            let flag = format!("{sign}{mark}");
            std::process::Command::new("chattr")
                .arg(flag)
                .arg(&path)
                .status()
        };
        if !chattr("+").is_ok_and(|status| status.success()) {
            return assay_testing::skipped("chattr", "this file system has no marks");
        }
        let ran = bed.assay(&[
            "check",
            "--fix",
            "ssh-usedns",
            "--yes",
            "--confirm-within",
            "60s",
        ]);
        assert!(chattr("-").unwrap().success());
        assert_eq!(ran.code, Some(2), "{}{}", ran.stdout, ran.stderr);
        assert!(
            ran.stderr.contains(&format!("chattr -{mark} /etc/ssh")),
            "{}",
            ran.stderr
        );
        assert_eq!(bed.look("ssh/sshd_config"), before);
        assert_eq!(bed.armed(), Vec::<PathBuf>::new());
        assert_eq!(
            bed.assay(&["trial", "--recover"]).stdout,
            "Nothing to revert.\n"
        );
    }
}

/// One of two recoveries does the work; the other reports this without an error.
#[test]
fn attack_recoveries_that_race() {
    let Some(bed) = bed() else { return };
    let before = bed.look("ssh/sshd_config");
    let rounds = 4 * assay_testing::attack_factor();
    let mut held = 0;
    for _ in 0..rounds {
        let script = r#"
assay=$1; bed=$2
"$assay" check --fix ssh-usedns --yes --confirm-within 60s > "$bed/out" 2>&1 &
fix=$!
for _ in $(seq 600); do
    [ -n "$(find "$bed/state/journal/sessions" -name waits 2>/dev/null)" ] && break
    sleep 0.1
done
kill -KILL $fix
for one in 1 2 3; do "$assay" trial --recover > "$bed/recover.$one" 2>&1 & eval "pid$one=$!"; done
status=0
for one in 1 2 3; do eval "wait \$pid$one" || { status=5; cat "$bed/recover.$one" >&2; }; done
exit $status
"#;
        let place = bed.home.dir.path().to_str().unwrap().to_owned();
        let ran = bed.run(&["sh", "-c", script, "sh", sent(), &place]);
        let begun = Instant::now();
        while bed.look("ssh/sshd_config") != before && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        held += u64::from(bed.look("ssh/sshd_config") == before);
    }
    assay_testing::attacked("recoveries that race", rounds, held);
}
