//! Tests a program with an embedded copy of OpenSSL, and a dynamically linked program.
#![allow(clippy::disallowed_methods, reason = "builds programs and starts them")]

use assay_facts::{CollectOptions, collect};
use assay_host::{Host, LiveHost, Root};
use assay_model::Facts;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Source of a program that waits until its input ends.
const PROGRAM: &str = "
#include <openssl/crypto.h>
#include <stdio.h>
int main(void) { puts(OpenSSL_version(OPENSSL_VERSION)); fflush(stdout); getchar(); return 0; }
";

fn build(dir: &Path, name: &str, library: &str) -> Option<PathBuf> {
    let source = dir.join("program.c");
    std::fs::write(&source, PROGRAM).unwrap();
    let program = dir.join(name);
    let built = Command::new("cc")
        .arg("-o")
        .arg(&program)
        .arg(&source)
        .args([library, "-ldl", "-lpthread"])
        .stderr(Stdio::null())
        .status();
    if built.is_ok_and(|status| status.success()) {
        return Some(program);
    }
    assay_testing::skipped("libssl-dev", "needs a C compiler and libcrypto.a");
    None
}

fn facts(host: &dyn Host) -> Facts {
    let options = CollectOptions {
        services: true,
        accounts: true,
        ..CollectOptions::default()
    };
    collect(host, &options)
}

struct Runs(Child);
impl Runs {
    fn start(program: &Path) -> Self {
        let mut command = Command::new(program);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null());
        Self(child.spawn().unwrap())
    }
}
impl Drop for Runs {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_copy_is_found_where_it_runs_and_where_it_lies() {
    let dir = tempfile::tempdir().unwrap();
    let Some(copied) = build(dir.path(), "copied", "-l:libcrypto.a") else {
        return;
    };
    let Some(linked) = build(dir.path(), "linked", "-lcrypto") else {
        return;
    };
    let said = Command::new(&copied).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    let release = said.split(' ').nth(1).unwrap();

    // In a tree of files.
    let root = dir.path().join("root");
    std::fs::create_dir_all(root.join("usr/local/bin")).unwrap();
    std::fs::create_dir_all(root.join("opt/agent/lib")).unwrap();
    std::fs::copy(&linked, root.join("usr/local/bin/linked")).unwrap();
    std::fs::copy(&copied, root.join("opt/agent/lib/libagent.so")).unwrap();
    let found = facts(&Root::open(&root).unwrap());
    let ours: Vec<&String> = found
        .map
        .keys()
        .filter(|key| key.starts_with("openssl-copy"))
        .collect();
    assert_eq!(ours, ["openssl-copy.libagent.so.release"]);
    assert_eq!(found.str(ours[0]), Some(release));

    // On this machine while both run; a program whose file was deleted is read too.
    let runs = [Runs::start(&copied), Runs::start(&linked)];
    std::fs::remove_file(&copied).unwrap();
    let found = facts(&LiveHost);
    let of = |child: &Runs| format!("/proc/{}/exe", child.0.id());
    let places: Vec<String> = found
        .map
        .iter()
        .filter(|(key, _)| key.starts_with("openssl-copy.a program of a user"))
        .map(|(_, fact)| fact.place.to_string())
        .collect();
    assert!(places.contains(&of(&runs[0])), "{places:?}");
    assert!(!places.contains(&of(&runs[1])), "{places:?}");
}
