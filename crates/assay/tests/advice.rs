//! Tests `assay advice` as a user runs it.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use common::{Home, Ran};
use serde_json::Value;

fn advice(home: &Home, args: &[&str]) -> Ran {
    let mut command = home.command(&["advice"]);
    // Without the pages of the user who runs the tests.
    command.args(args).env("XDG_CONFIG_HOME", home.dir.path());
    common::ran(command.output().unwrap())
}

fn fits(text: &str) -> bool {
    text.lines().all(|line| line.chars().count() <= 80)
}

#[test]
fn lists_by_domain_with_standing() {
    let home = Home::new();
    let all = advice(&home, &[]);
    assert_eq!(all.code, Some(0), "{}", all.stderr);
    assert!(fits(&all.stdout), "{}", all.stdout);
    let at = |text: &str| all.stdout.find(text).unwrap_or_else(|| panic!("{text}"));
    assert!(at("filesystems\n") < at("  noatime") && at("  noatime") < at("images\n"));
    let line = all
        .stdout
        .lines()
        .find(|line| line.contains("cache-unsafe"));
    assert!(line.unwrap().contains("dangerous"), "{line:?}");
    // Ids are separated from the next column.
    let ids = assay_advice::Catalogue::builtin().unwrap();
    for page in ids.all() {
        let alone = |line: &&str| line.split_whitespace().next() == Some(&page.id);
        assert!(all.stdout.lines().any(|line| alone(&line)), "{}", page.id);
    }
    let ssh = advice(&home, &["--domain", "ssh"]);
    assert!(ssh.stdout.starts_with("ssh\n"), "{}", ssh.stdout);
    let wrong = advice(&home, &["--domain", "sssh"]);
    assert_eq!(wrong.code, Some(2));
    insta::assert_snapshot!(wrong.stderr, @"assay: unknown domain `sssh`; use one of database, filesystems, images, kernel, mail, network, nfs, packages, power, smb, ssh, system, tls, web, zfs");
}

#[test]
fn explains_one() {
    let home = Home::new();
    let one = advice(&home, &["qcow2-cluster-size", "--set", "size=2M"]);
    assert_eq!(one.code, Some(0), "{}", one.stderr);
    assert!(fits(&one.stdout), "{}", one.stdout);
    for text in [
        "Standing",
        "assay trial qcow2-cluster-size --set size=2M",
        "tool.qemu-img",
        "How we test",
        "advice/images/qcow2-cluster-size.md",
    ] {
        assert!(one.stdout.contains(text), "{text}: {}", one.stdout);
    }
    let keyfile = advice(&home, &["ssh-usedns"]);
    assert!(
        keyfile.stdout.contains("--set keyfile=…"),
        "{}",
        keyfile.stdout
    );
}

#[test]
fn errors_name_the_nearest() {
    let home = Home::new();
    let mut said = String::new();
    for args in [
        &["qcow2-clustersize"][..],
        &["qcow2-cluster-size", "--set", "size=9K"],
        &["qcow2-cluster-size", "--set", "sice=8K"],
        &["qcow2-cluster-size", "--set", "8K"],
        &["qcow2-cluster-size", "--domain", "ssh"],
    ] {
        let ran = advice(&home, args);
        assert_eq!(ran.code, Some(2), "{args:?}");
        said += &format!("{args:?}: {}", ran.stderr);
    }
    insta::assert_snapshot!(said, @r#"
    ["qcow2-clustersize"]: assay: there is no advice `qcow2-clustersize`; did you mean `qcow2-cluster-size`?; `assay advice` lists all
    ["qcow2-cluster-size", "--set", "size=9K"]: assay: `9K` is not a value of `size`: it is one of `512`, `1K`, `2K`, `4K`, `8K`, `16K`, `32K`, `128K`, `256K`, `512K`, `1M` and `2M`; did you mean `1K`?
    ["qcow2-cluster-size", "--set", "sice=8K"]: assay: `qcow2-cluster-size` has no parameter `sice`; did you mean `size`?; it has `size`
    ["qcow2-cluster-size", "--set", "8K"]: error: invalid value '8K' for '--set <NAME=VALUE>': write NAME=VALUE, such as size=64K

    For more information, try '--help'.
    ["qcow2-cluster-size", "--domain", "ssh"]: error: the argument '[ID]' cannot be used with '--domain <DOMAIN>'

    Usage: assay advice --store <FILE|URL> <ID>

    For more information, try '--help'.
    "#);
    let missing = advice(&home, &["--target", "/nonexistent/x"]);
    assert_eq!(missing.code, Some(3));
    assert!(
        missing.stderr.contains("/nonexistent/x"),
        "{}",
        missing.stderr
    );
}

#[test]
fn search_and_json() {
    let home = Home::new();
    let found = advice(&home, &["--search", "resolver", "ssh", "--json"]);
    let document: Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!(document["schema"], assay_model::SCHEMA_VERSION);
    let entries = document["advice"].as_array().unwrap();
    let ids: Vec<&str> = entries.iter().map(|e| e["id"].as_str().unwrap()).collect();
    assert!(
        ids.contains(&"ssh-usedns") && !ids.contains(&"noatime"),
        "{ids:?}"
    );
    for entry in entries {
        let applies = entry["here"]["applies"].as_str().unwrap();
        assert!(["yes", "no", "unknown"].contains(&applies), "{entry}");
    }
    let nothing = advice(&home, &["--search", "zzzz"]);
    insta::assert_snapshot!(nothing.stdout, @"no advice contains these words: `assay advice` lists all");
}

#[test]
fn pages_of_the_user_are_read_and_their_faults_named() {
    let home = Home::new();
    let own = home.dir.path().join("assay/advice/kernel");
    std::fs::create_dir_all(&own).unwrap();
    let shipped = include_str!("../../../advice/filesystems/noatime.md");
    std::fs::write(own.join("mine.md"), shipped).unwrap();
    let mine = advice(&home, &["mine"]);
    assert_eq!(mine.code, Some(0), "{}", mine.stderr);
    assert!(mine.stdout.contains("kernel/mine.md"), "{}", mine.stdout);
    std::fs::write(own.join("mine.md"), shipped.replace("title =", "titel =")).unwrap();
    let broken = advice(&home, &["mine"]);
    assert_eq!(broken.code, Some(3));
    insta::assert_snapshot!(home.told(&broken.stderr), @"assay: HOME/assay/advice/kernel/mine.md:2: unknown field `titel`, expected one of `title`, `statement`, `synonyms`, `source`, `when`, `predicts`, `risk`, `literature`, `parameters`, `trial`, `acts`, `moderators`, `check`; did you mean `title`?");
    let none = advice(&home, &["--advice-dir", "/nonexistent/advice"]);
    assert_eq!(none.code, Some(3));
    assert!(none.stderr.contains("DIR/DOMAIN/ID.md"), "{}", none.stderr);
}
