//! Tests `assay check` as a user runs it: a planted machine, a stock one, output formats, exit statuses.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use common::{Home, Ran};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn catalogue() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../advice")
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir_all(&to).unwrap();
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// One fault of several domains in one machine.
const PLANTED: [&str; 6] = [
    "ssh/sshd-ca-for-all",
    "web/nginx-hpkp",
    "mail/postfix-queue-lifetime",
    "smb/smb-signing-off",
    "filesystems/barriers-off",
    "zfs/zfs-sync-disabled",
];

fn planted(home: &Home) -> PathBuf {
    let dir = home.dir.path().join("planted");
    std::fs::create_dir(&dir).unwrap();
    for page in PLANTED {
        let fires = catalogue().join(page).join("fires");
        let tree = std::fs::read_dir(&fires)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir())
            .min()
            .unwrap();
        copy(&tree, &dir);
    }
    dir
}

fn check(home: &Home, root: &Path, more: &[&str]) -> Ran {
    let root = root.to_str().unwrap();
    let args: Vec<&str> = ["check", "--root", root]
        .iter()
        .chain(more)
        .copied()
        .collect();
    home.assay(&args)
}

#[test]
fn a_planted_machine_is_told_line_by_line_in_every_form() {
    let home = Home::new();
    let root = planted(&home);
    let ran = check(&home, &root, &["--json"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let document = json(&ran.stdout);
    let findings = document["findings"].as_array().unwrap();
    for page in PLANTED {
        let id = page.split('/').nth(1).unwrap();
        let found = findings.iter().find(|finding| finding["rule"] == id);
        let found = found.unwrap_or_else(|| panic!("{id}: {}", ran.stdout));
        assert_eq!(found["certainty"], "violated", "{found}");
    }
    let pins = findings
        .iter()
        .find(|finding| finding["rule"] == "nginx-hpkp");
    let place = &pins.unwrap()["places"][0]["file"];
    assert_eq!(place["path"], "/etc/nginx/sites-enabled/shop");
    assert!(place["line"].as_u64() > Some(1), "{place}");
    // The same machine gives the same bytes.
    assert_eq!(check(&home, &root, &["--json"]).stdout, ran.stdout);

    let text = check(&home, &root, &[]);
    assert_eq!(text.code, Some(1));
    assert!(
        text.stdout.contains("/etc/nginx/sites-enabled/shop:"),
        "{}",
        text.stdout
    );
    assert!(text.stdout.contains("^^^^"), "{}", text.stdout);
    for line in text.stdout.lines() {
        let copied = line.contains("--> ") || line.contains('`');
        assert!(line.chars().count() <= 80 || copied, "{line}");
    }

    let sarif = json(&check(&home, &root, &["--format", "sarif"]).stdout);
    assert_eq!(sarif["version"], "2.1.0");
    let run = &sarif["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    for result in run["results"].as_array().unwrap() {
        let index = result["ruleIndex"].as_u64().unwrap();
        assert_eq!(rules[index as usize]["id"], result["ruleId"]);
    }

    let junit = check(
        &home,
        &root,
        &["--format", "junit", "--fail-on", "critical"],
    );
    let failures = junit.stdout.matches("<failure ").count();
    assert_eq!(failures, 2, "{}", junit.stdout);
    let nagios = check(&home, &root, &["--format", "nagios"]);
    assert_eq!(nagios.code, Some(2), "{}", nagios.stdout);
    assert_eq!(nagios.stdout.lines().count(), 1);
    let numbers = check(&home, &root, &["--format", "prometheus"]);
    assert!(
        numbers
            .stdout
            .contains("assay_check_findings{severity=\"critical\"} 2\n"),
        "{}",
        numbers.stdout
    );
    for form in ["markdown", "html"] {
        let ran = check(&home, &root, &["--format", form]);
        assert!(ran.stdout.contains("nginx-hpkp"), "{}", ran.stdout);
    }
}

#[test]
fn statuses_tell_findings_from_what_is_not_known() {
    let home = Home::new();
    let fires = |page: &str, case: &str| catalogue().join(page).join(case).join("debian-12");
    let low = fires("ssh/sshd-principals-as-root", "fires");
    assert_eq!(check(&home, &low, &["--only", "ssh"]).code, Some(1));
    let high = ["--only", "ssh", "--fail-on", "high"];
    assert_eq!(check(&home, &low, &high).code, Some(0));
    let quiet = fires("ssh/ssh-usedns", "quiet");
    let quiet = if quiet.exists() {
        quiet
    } else {
        fires("ssh/ssh-usedns", "quiet")
    };
    assert_eq!(check(&home, &quiet, &["--only", "ssh"]).code, Some(0));
    assert_eq!(check(&home, &quiet, &["--only", "shh"]).code, Some(2));
    assert_eq!(check(&home, Path::new("/nowhere"), &[]).code, Some(3));
    // An include that leads out of the tree is not read and gives an unknown finding.
    let tree = home.dir.path().join("tree");
    std::fs::create_dir(&tree).unwrap();
    copy(&quiet, &tree);
    let dir = tree.join("etc/ssh/sshd_config.d");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::create_dir(dir.join("own.conf")).unwrap();
    let ran = check(&home, &tree, &["--only", "ssh"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stdout);
    assert_eq!(
        home.assay(&["check", "--explain", "ssh-usedns"]).code,
        Some(0)
    );
}

#[test]
fn what_is_accepted_is_listed_and_does_not_fail() {
    let home = Home::new();
    let root = catalogue().join("ssh/sshd-principals-as-root/fires/debian-12");
    let file = home.dir.path().join("own.toml");
    let entry = |expires: &str| {
        format!(
            "[[accept]]\nrule = \"sshd-principals-as-root\"\nreason = \"until March\"\nexpires = \"{expires}\"\n"
        )
    };
    let with = |text: String| {
        std::fs::write(&file, text).unwrap();
        let more = [
            "--json",
            "--only",
            "ssh",
            "--accept",
            file.to_str().unwrap(),
        ];
        check(&home, &root, &more)
    };
    let accepted = with(entry("2999-01-01"));
    assert_eq!(accepted.code, Some(0), "{}", accepted.stdout);
    assert_eq!(
        json(&accepted.stdout)["accepted"][0]["reason"],
        "until March"
    );
    let expired = with(entry("2020-01-01"));
    assert_eq!(expired.code, Some(1));
    assert_eq!(
        json(&expired.stdout)["remarks"].as_array().unwrap().len(),
        1
    );
}

/// This machine has servers with their packages' files. Modified files may cause findings; files
/// that dpkg reports as unchanged must not.
#[test]
fn defaults_of_the_distribution_are_no_findings() {
    let home = Home::new();
    let ran = home.assay(&["check", "--json", "--only", "web,mail,smb,network"]);
    let document = json(&ran.stdout);
    let findings = document["findings"].as_array().unwrap();
    let packages = ["nginx-common", "postfix", "dovecot-core", "samba-common"];
    let mut changed = String::new();
    for package in packages {
        let verified = std::process::Command::new("dpkg")
            .args(["--verify", package])
            .output();
        match verified {
            Ok(output) => changed += &String::from_utf8_lossy(&output.stdout),
            Err(_) => return assay_testing::skipped("dpkg", "this is no Debian"),
        }
    }
    for finding in findings {
        let places = finding["places"].as_array().unwrap();
        let own = places
            .iter()
            .filter_map(|place| place["file"]["path"].as_str())
            .any(|path| changed.contains(path) || !path.starts_with("/etc/"));
        assert!(own, "{finding}");
    }
}

/// A hostile tree: blocking names, links out of it, endless includes and lines. Each gives one
/// unknown finding; nothing outside is read, and the rest is checked.
#[test]
fn attack_a_hostile_tree_is_checked_to_its_end() {
    let home = Home::new();
    let outside = home.dir.path().join("outside");
    std::fs::write(&outside, "UseDNS yes\nHostbasedAuthentication yes\n").unwrap();
    let dir = home.dir.path().join("hostile");
    for below in [
        "etc/ssh",
        "etc/nginx/conf.d",
        "etc/postfix",
        "etc/samba",
        "proc",
    ] {
        std::fs::create_dir_all(dir.join(below)).unwrap();
    }
    std::os::unix::fs::symlink(&outside, dir.join("etc/ssh/sshd_config")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        dir.join("etc/ssh/ssh_config"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let own = "include /etc/nginx/nginx.conf;\ninclude /etc/nginx/conf.d/*;\n";
    std::fs::write(dir.join("etc/nginx/nginx.conf"), own).unwrap();
    std::fs::write(dir.join("etc/nginx/conf.d/x"), own).unwrap();
    let long = std::fs::File::create(dir.join("etc/postfix/main.cf")).unwrap();
    long.set_len(1 << 30).unwrap();
    std::fs::write(dir.join("proc/swaps"), [0xff; 4096]).unwrap();
    std::fs::write(
        dir.join("etc/samba/smb.conf"),
        "[global]\nserver signing = disabled\n",
    )
    .unwrap();
    let begun = std::time::Instant::now();
    let ran = check(&home, &dir, &["--json"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    // Only a hang exceeds this limit.
    assert!(begun.elapsed() < std::time::Duration::from_secs(60));
    let document = json(&ran.stdout);
    let findings = document["findings"].as_array().unwrap();
    let of = |rule: &str| -> Vec<&Value> {
        let found = findings.iter();
        found.filter(|finding| finding["rule"] == rule).collect()
    };
    assert_eq!(of("smb-signing-off").len(), 1, "{}", ran.stdout);
    for rule in [
        "ssh-control-path-tmp",
        "nginx-hpkp",
        "postfix-queue-lifetime",
    ] {
        let found = of(rule);
        let unknown = found
            .iter()
            .all(|finding| finding["certainty"] == "unknown");
        assert!(unknown && !found.is_empty(), "{rule}: {found:#?}");
    }
    let usedns = of("ssh-usedns");
    assert!(
        !usedns
            .iter()
            .any(|finding| finding["certainty"] == "violated")
    );
    assay_testing::attacked("hostile trees in a check", 6, 6);
}

/// Documents match their published schema: on a planted machine, on a stock one, and with an
/// accepted finding.
#[test]
fn the_document_is_as_its_schema_says() {
    let schema = include_str!("../../../docs/src/schemas/check.schema.json");
    let schema = jsonschema::validator_for(&json(schema)).unwrap();
    let home = Home::new();
    let root = planted(&home);
    let accept = home.dir.path().join("accept.toml");
    std::fs::write(
        &accept,
        "[[accept]]\nrule = \"nginx-hpkp\"\nreason = \"old clients\"\nexpires = \"2999-01-31\"\n",
    )
    .unwrap();
    let accept = accept.to_str().unwrap();
    let empty = home.dir.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let runs = [
        check(&home, &root, &["--json"]),
        check(&home, &root, &["--json", "--accept", accept]),
        check(&home, &empty, &["--json"]),
        home.assay(&["check", "--json"]),
    ];
    for ran in &runs {
        let document = json(&ran.stdout);
        let faults: Vec<String> = schema
            .iter_errors(&document)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(faults.is_empty(), "{faults:#?}");
    }
    let accepted = json(&runs[1].stdout);
    assert_eq!(accepted["accepted"].as_array().unwrap().len(), 1);
    // A schema that permits everything would pass too.
    let mut wrong = accepted;
    wrong["findings"][0]["severity"] = "terrible".into();
    assert!(!schema.is_valid(&wrong));
}

#[test]
fn what_changed_is_told_with_its_reason() {
    let home = Home::new();
    let root = planted(&home);
    let write = |name: &str| {
        let ran = check(&home, &root, &["--json"]);
        let path = home.dir.path().join(name);
        std::fs::write(&path, &ran.stdout).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let before = write("before.json");
    let same = home.assay(&["check", "diff", &before, &before]);
    assert_eq!(same.code, Some(0), "{}", same.stderr);
    // One finding is fixed, one appears, one has another value.
    std::fs::remove_file(root.join("etc/nginx/sites-enabled/shop")).unwrap();
    let sshd = root.join("etc/ssh/sshd_config");
    let text = std::fs::read_to_string(&sshd).unwrap();
    std::fs::write(&sshd, format!("UseDNS yes\n{text}")).unwrap();
    let postfix = root.join("etc/postfix/main.cf");
    let text = std::fs::read_to_string(&postfix).unwrap();
    std::fs::write(&postfix, format!("{text}\nmaximal_queue_lifetime = 3h\n")).unwrap();
    let after = write("after.json");
    let ran = home.assay(&["check", "diff", &before, &after, "--json"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    common::schemas::holds("check-diff", &ran.stdout, &["/came/0"]);
    let found = json(&ran.stdout);
    let names = |list: &str| -> Vec<String> {
        let list = found[list].as_array().unwrap().iter();
        list.map(|change| change["fingerprint"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names("came"), ["ssh-usedns@sshd.scope.everywhere"]);
    assert!(
        names("went")
            .iter()
            .any(|name| name.starts_with("nginx-hpkp@"))
    );
    let changed = found["changed"].as_array().unwrap();
    let lifetime = changed.iter().find(|change| {
        let name = change["fingerprint"].as_str().unwrap();
        name.starts_with("postfix-queue-lifetime@")
    });
    let why = lifetime.unwrap()["why"].to_string();
    assert!(why.contains("10800"), "{why}");
    let text = home.assay(&["check", "diff", &before, &after]);
    assert!(text.stdout.contains("ssh-usedns"), "{}", text.stdout);
    let other = home.dir.path().join("other.json");
    std::fs::write(&other, "{}").unwrap();
    for wrong in ["nothing.json", other.to_str().unwrap()] {
        let ran = home.assay(&["check", "diff", &before, wrong]);
        assert_eq!(ran.code, Some(2), "{}", ran.stdout);
    }
}

/// The first lines list the checked services; a machine without any readable source is not reported
/// as clean.
#[test]
fn a_check_says_what_it_asked() {
    let home = Home::new();
    let root = planted(&home);
    let text = check(&home, &root, &[]).stdout;
    let head: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
    let head = head.join(" ");
    for service in ["sshd: ", "nginx: ", "Postfix: ", "Samba: ", "ZFS: "] {
        assert!(head.contains(service), "{service}: {head}");
    }
    let document = json(&check(&home, &root, &["--json"]).stdout);
    let services = document["services"].as_array().unwrap();
    let sshd = services.iter().find(|one| one["service"] == "sshd");
    let sshd = sshd.unwrap_or_else(|| panic!("{services:?}"));
    assert!(sshd["asked"].as_u64() > Some(10) && sshd["found"].as_u64() >= Some(1));
    let listed = check(&home, &root, &["--coverage"]);
    assert_eq!(listed.code, Some(1), "{}", listed.stderr);
    for rule in document["rules"].as_array().unwrap() {
        let id = rule["rule"].as_str().unwrap();
        let here = rule["outcome"] != "no-service";
        assert!(!here || listed.stdout.contains(id), "{id}");
    }
    let empty = home.dir.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let ran = check(&home, &empty, &[]);
    assert_eq!(ran.code, Some(3), "{}", ran.stdout);
    assert!(!ran.stdout.contains("Found: nothing"), "{}", ran.stdout);
}
