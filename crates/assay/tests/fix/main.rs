//! Tests `assay check --fix` on the configurations of Debian's packages, validated by the real programs in a separate
//! mount namespace: fixes, undo, and kills.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod bed;
mod by_hand;
mod cases;
#[path = "../common/mod.rs"]
mod common;
mod drop_ins;
mod file_groups;
mod groups;
mod line_groups;
mod outside;
mod permissions;
mod running_values;
mod setting_groups;
mod steps;

use assay_advice::Catalogue;
use bed::Bed;
use cases::{CASES, Planted};
use common::{Ran, ended};
use serde_json::Value;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Returns the validation of the configuration by the program itself.
fn accepted(bed: &Bed, rule: &str) -> Ran {
    let argv: &[&str] = match rule {
        "ssh-identities-only" | "ssh-control-path-tmp" => {
            &["ssh", "-G", "-F", "/etc/ssh/ssh_config", "git.example.org"]
        }
        rule if rule.starts_with("ssh") => &["/usr/sbin/sshd", "-T"],
        rule if rule.starts_with("nginx") => &["nginx", "-t"],
        rule if rule.starts_with("postfix") => &["postfix", "check"],
        rule if rule.starts_with("dovecot") => &["doveconf", "-n"],
        _ => &["testparm", "-s"],
    };
    bed.run(argv)
}

#[test]
fn every_remedy_that_can_be_carried_out_clears_its_finding_and_opens_none() {
    let catalogue = Catalogue::builtin().unwrap();
    let edits = |page: &&assay_model::advice::Advice| {
        let remedy = page.check.as_ref().and_then(|check| check.remedy.as_ref());
        remedy.is_some_and(|remedy| !remedy.edits.is_empty())
    };
    let all = catalogue.all();
    let alone = CASES.iter().map(|(rule, _)| *rule);
    let known: BTreeSet<&str> = alone.chain(groups::rules()).collect();
    let pages: BTreeSet<&str> = all
        .iter()
        .copied()
        .filter(|page| edits(page))
        .map(|page| &*page.id)
        .collect();
    assert_eq!(pages, known, "every page with edits is tried here");
    let Some(untouched) = Bed::new() else { return };
    let stock = &untouched.findings();
    // Each has a separate machine: two at a time.
    std::thread::scope(|scope| {
        for half in [0, 1] {
            scope.spawn(move || {
                let cases = CASES.iter().skip(half).step_by(2);
                cases.enumerate().for_each(|(number, (rule, files))| {
                    mended_and_undone(rule, files, stock, number % 7 == 0);
                });
            });
        }
    });
}

/// `stock` are the findings without a planted fault. A dry run, and a fix of what is fixed, are tried if `all_forms`:
/// they do not depend on the rule, and each costs a check.
fn mended_and_undone(rule: &str, files: &[Planted], stock: &[String], all_forms: bool) {
    let Some(bed) = Bed::new() else { return };
    for (file, plant) in files {
        let fresh = !bed.path(file).exists();
        let before = std::fs::read(bed.path(file)).unwrap_or_default();
        bed.edit(file, plant);
        assert_ne!(
            std::fs::read(bed.path(file)).unwrap(),
            before,
            "{rule}: {file}"
        );
        if !fresh {
            bed.adorn(file);
        }
    }
    let planted: Vec<_> = files.iter().map(|(file, _)| bed.look(file)).collect();
    let found = bed.findings();
    assert!(found.len() > stock.len(), "{rule} is not found: {found:?}");
    let first = accepted(&bed, rule);
    assert_eq!(first.code, Some(0), "{rule}: {}", first.stderr);

    if all_forms {
        let dry = bed.assay(&["check", "--fix", rule, "--dry-run"]);
        assert_eq!(dry.code, Some(0), "{rule}: {}{}", dry.stdout, dry.stderr);
        assert!(
            dry.stdout.lines().all(|line| line.chars().count() <= 80),
            "{}",
            dry.stdout
        );
        let again: Vec<_> = files.iter().map(|(file, _)| bed.look(file)).collect();
        assert_eq!(again, planted, "{rule}: a dry run writes nothing");
    }

    let ran = bed.mend(rule);
    assert_eq!(ran.code, Some(0), "{rule}: {}{}", ran.stdout, ran.stderr);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document["became"], "kept", "{document}");
    assert_eq!(
        document["files"].as_array().unwrap().len(),
        files.len(),
        "{document}"
    );
    assert_eq!(bed.findings(), stock, "{rule}");
    let then = accepted(&bed, rule);
    assert_eq!(then.code, Some(0), "{rule}: {}", then.stderr);
    if all_forms {
        let again = bed.assay(&["check", "--fix", rule]);
        assert_eq!(again.code, Some(0), "nothing is left to mend");
    }
    if rule == "postfix-restated-default" {
        let text = std::fs::read_to_string(bed.path("postfix/main.cf")).unwrap();
        assert!(
            text.ends_with("\nqueue_run_delay = 4m\n"),
            "what is no default stays"
        );
    }

    let number = document["change"].as_str().unwrap();
    let undone = bed.assay(&["check", "--undo", number, "--yes", "--json"]);
    common::schemas::holds("check-undo", &undone.stdout, &[]);
    assert_eq!(
        undone.code,
        Some(0),
        "{rule}: {}{}",
        undone.stdout,
        undone.stderr
    );
    let back: Vec<_> = files.iter().map(|(file, _)| bed.look(file)).collect();
    assert_eq!(
        back, planted,
        "{rule}: byte for byte, with owner, mode, attributes and times"
    );
    assert_eq!(bed.armed(), Vec::<std::path::PathBuf>::new(), "{rule}");
}

#[test]
fn what_is_not_confirmed_is_taken_back() {
    let Some(bed) = Bed::new() else { return };
    bed.edit("ssh/sshd_config", |text| format!("UseDNS yes\n{text}"));
    bed.adorn("ssh/sshd_config");
    let before = bed.look("ssh/sshd_config");
    let fix = [
        "check",
        "--fix",
        "ssh-usedns",
        "--yes",
        "--confirm-within",
        "1s",
    ];
    let ran = bed.assay(&fix);
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(bed.look("ssh/sshd_config"), before);
    assert_eq!(bed.armed(), Vec::<std::path::PathBuf>::new());
    assert_eq!(
        bed.assay(&["check", "--confirm"]).code,
        Some(1),
        "nothing waits"
    );
    assert_eq!(
        bed.assay(&["check", "--undo"]).code,
        Some(2),
        "nothing is kept"
    );
    assert_eq!(
        bed.assay(&["trial", "--recover"]).stdout,
        "Nothing to revert.\n"
    );
}

#[test]
fn a_page_without_edits_is_to_be_done_by_hand() {
    let Some(bed) = Bed::new() else { return };
    bed.edit("postfix/master.cf", |text| {
        format!("{text}slow unix n - n 300 1 qmgr\n  -o maximal_queue_lifetime=2h\n")
    });
    let before = bed.look("postfix/master.cf");
    // A line in an unsupported syntax, and another one.
    bed.edit("postfix/main.cf", |text| {
        format!("{text}maximal_queue_lifetime = 1h\n")
    });
    let ran = bed.mend("postfix-queue-lifetime");
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document["became"], "kept", "{document}");
    assert_eq!(
        document["by_hand"].as_array().unwrap().len(),
        1,
        "{document}"
    );
    let ran = bed.mend("postfix-queue-lifetime");
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document["became"], "by-hand", "{document}");
    assert_eq!(bed.look("postfix/master.cf"), before);
    for (args, code) in [
        (&["check", "--fix", "nobody", "--yes"][..], 2),
        (&["check", "--fix", "ssh-usedns", "--root", "/"], 2),
        (&["check", "--fix", "ssh-usedns", "--host", "box"], 2),
        (&["check", "--dry-run"], 2),
        (&["check", "--undo", "nobody"], 2),
        // There is no terminal to ask on.
        (&["check", "--undo"], 2),
        (&["check", "--fix", "zfs-recordsize", "--yes"], 2),
        (&["check", "--fix", "nginx-sslv3", "--yes"], 0),
    ] {
        let ran = bed.assay(args);
        assert_eq!(
            ran.code,
            Some(code),
            "{args:?}: {}{}",
            ran.stdout,
            ran.stderr
        );
    }
}

/// A rejected configuration is not kept, and a configuration that was invalid before is not
/// changed.
#[test]
fn what_the_program_refuses_is_taken_back() {
    let Some(bed) = Bed::new() else { return };
    bed.edit("nginx/conf.d/tls.conf", |_| {
        "ssl_ciphers RC4;\nnonsense;\n".to_owned()
    });
    let before = bed.look("nginx/conf.d/tls.conf");
    let ran = bed.assay(&["check", "--fix", "nginx-rc4", "--yes"]);
    assert_eq!(ran.code, Some(2), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("nginx -t"), "{}", ran.stderr);
    assert_eq!(bed.look("nginx/conf.d/tls.conf"), before);
    // The value that is read back decides, not the written one.
    bed.edit("nginx/conf.d/tls.conf", |_| "ssl_ciphers RC4;\n".to_owned());
    let fake = bed.home.dir.path().join("fake");
    std::fs::create_dir(&fake).unwrap();
    let program = fake.join("nginx");
    std::fs::write(
        &program,
        "#!/bin/sh\ngrep -q RC4 /etc/nginx/conf.d/tls.conf\n",
    )
    .unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let before = bed.look("nginx/conf.d/tls.conf");
    let argv = [common::sent(), "check", "--fix", "nginx-rc4", "--yes"];
    let mut command = bed.command(&argv);
    command.env(
        "PATH",
        format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", fake.display()),
    );
    let ran = ended(command);
    assert_eq!(ran.code, Some(2), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(bed.look("nginx/conf.d/tls.conf"), before);
    assert_eq!(
        bed.assay(&["trial", "--recover"]).stdout,
        "Nothing to revert.\n"
    );
}

/// Killed at any time: a fix that was not kept is reverted by the next recovery at the latest, and
/// a kept one can be undone. A fix that could lock the user out is reverted without any command.
#[test]
fn attack_kills() {
    let Some(bed) = Bed::new() else { return };
    bed.edit("ssh/sshd_config", |text| format!("UseDNS yes\n{text}"));
    bed.edit("nginx/nginx.conf", |text| {
        text.replace("ssl_protocols TLSv1 ", "ssl_protocols SSLv3 TLSv1 ")
    });
    let files = ["ssh/sshd_config", "nginx/nginx.conf"];
    files.iter().for_each(|file| bed.adorn(file));
    let before: Vec<_> = files.iter().map(|file| bed.look(file)).collect();
    let rounds = 12 * assay_testing::attack_factor();
    let (mut tried, mut held, mut changed) = (0, 0, 0);
    for round in 0..rounds {
        let (rule, file) = match round % 2 {
            0 => ("ssh-usedns", 0),
            _ => ("nginx-sslv3", 1),
        };
        let argv = [
            common::sent(),
            "check",
            "--fix",
            rule,
            "--yes",
            "--confirm-within",
            "60s",
        ];
        let mut child = bed
            .command(&argv)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Some at the start, some in the middle, some at the end; of the first kind one that waits.
        let begun = Instant::now();
        let wait = Duration::from_millis(60 + 60 * (round / 2));
        match round % 4 {
            0 => {
                while !bed.waits() && begun.elapsed() < Duration::from_secs(30) {
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
            _ => while bed.look(files[file]) == before[file] && begun.elapsed() < wait {},
        }
        let pid = rustix::process::Pid::from_child(&child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        child.wait().unwrap();
        tried += 1;
        let after = bed.look(files[file]);
        changed += u64::from(after != before[file]);
        if rule == "ssh-usedns" {
            // The stand-by process reverts it.
            let begun = Instant::now();
            while bed.look(files[file]) != before[file] && begun.elapsed() < Duration::from_secs(20)
            {
                std::thread::sleep(Duration::from_millis(20));
            }
        } else {
            let ran = bed.assay(&["trial", "--recover"]);
            assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
            if bed.look(files[file]) != before[file] {
                let ran = bed.assay(&["check", "--undo", "--yes"]);
                assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
            }
        }
        held += u64::from(bed.look(files[file]) == before[file]);
    }
    assert!(changed > 0, "no kill came while something was changed");
    // The next start removes the remaining order of a killed process.
    bed.assay(&["check", "--only", "ssh-usedns"]);
    assert_eq!(bed.armed(), Vec::<std::path::PathBuf>::new());
    assay_testing::attacked("kills while a finding is mended", tried, held);
}

/// A hanging assay, as in a dead terminal, keeps nobody locked out.
#[test]
fn attack_an_assay_that_hangs() {
    let Some(bed) = Bed::new() else { return };
    bed.edit("ssh/sshd_config", |text| format!("UseDNS yes\n{text}"));
    bed.adorn("ssh/sshd_config");
    let before = bed.look("ssh/sshd_config");
    let assay = common::sent();
    let argv = [
        assay,
        "check",
        "--fix",
        "ssh-usedns",
        "--yes",
        "--confirm-within",
        "1s",
    ];
    let mut command = bed.command(&argv);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while !bed.waits() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never waited");
        std::thread::sleep(Duration::from_millis(2));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let changed = bed.look("ssh/sshd_config") != before;
    let begun = Instant::now();
    while bed.look("ssh/sshd_config") != before && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let held = bed.look("ssh/sshd_config") == before;
    assert!(changed, "it was stopped too late");
    child.wait().unwrap();
    assay_testing::attacked("an assay that hangs", 1, held.into());
}

/// A running service reloads its file, and reloads the old one after a revert.
#[test]
fn a_running_server_follows() {
    let Some(bed) = Bed::new() else { return };
    let script = r#"set -e
assay=$1
printf 'server { listen 127.0.0.1:18089; add_header X-Tls "$ssl_protocol"; return 200 old; }\nssl_ciphers RC4:HIGH;\n' > /etc/nginx/conf.d/tls.conf
rm -f /etc/nginx/sites-enabled/default
nginx
trap 'nginx -s stop' EXIT
master=$(cat /run/nginx.pid)
workers() { pgrep -P "$master" | sort | tr '\n' ' '; }
first=$(workers)
"$assay" check --fix nginx-rc4 --yes --json > "$2"
sleep 1
second=$(workers)
test "$first" != "$second" || { echo "not reloaded" >&2; exit 9; }
"$assay" check --undo --yes >&2
sleep 1
test "$second" != "$(workers)" || { echo "not reloaded on undo" >&2; exit 9; }
"#;
    let out = bed.home.dir.path().join("out.json");
    let argv = [
        "sh",
        "-c",
        script,
        "sh",
        common::sent(),
        out.to_str().unwrap(),
    ];
    let ran = bed.run(&argv);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let document: Value = serde_json::from_str(&std::fs::read_to_string(out).unwrap()).unwrap();
    assert_eq!(
        document["files"][0]["reload"],
        serde_json::json!(["nginx", "-s", "reload"])
    );
}
