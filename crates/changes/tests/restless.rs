//! Tests that changes by other programs during the planning of a fix are not attributed to the fix.
#![allow(clippy::disallowed_methods, reason = "reads a page of the catalogue")]

use assay_advice::Catalogue;
use assay_advice::page::parse;
use assay_changes::fixes::{FixError, plan};
use assay_facts::{CollectOptions, collect};
use assay_host::{CommandOutput, Host, HostError, HostMut as _, Limits, Recorded, Stat, StatFs};
use assay_model::advice::Advice;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

const SSHD: &str = "/etc/ssh/sshd_config";
const GUEST: &str = "/etc/pve/qemu-server/100.conf";

/// A machine that another user changes. After `quiet` reads of the guests, the user adds a guest whose disk ignores
/// flushes, and after `until` reads removes it.
struct Restless {
    machine: Recorded,
    looks: AtomicUsize,
    quiet: usize,
    until: usize,
}

impl Restless {
    fn new(quiet: usize, until: usize) -> Self {
        let machine = Recorded::new()
            .file(SSHD, "UseDNS yes\n")
            .file(GUEST, "name: web\n")
            .file("/etc/pve/storage.cfg", "dir: local\n\tpath /var/lib/vz\n");
        Self {
            machine,
            looks: AtomicUsize::new(0),
            quiet,
            until,
        }
    }
}

impl Host for Restless {
    fn read(&self, path: &Path) -> Result<Vec<u8>, HostError> {
        if path == Path::new(GUEST) {
            let looks = self.looks.fetch_add(1, Ordering::Relaxed);
            let disk = match (self.quiet..self.until).contains(&looks) {
                true => "scsi0: local:100/vm-100-disk-0.raw,cache=unsafe\n",
                false => "",
            };
            let text = format!("name: web\n{disk}");
            self.machine.write_in_place(path, text.as_bytes())?;
        }
        self.machine.read(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<OsString>, HostError> {
        self.machine.list(dir)
    }

    fn link(&self, path: &Path) -> Result<PathBuf, HostError> {
        self.machine.link(path)
    }

    fn realpath(&self, path: &Path) -> Result<PathBuf, HostError> {
        self.machine.realpath(path)
    }

    fn stat(&self, path: &Path) -> Result<Stat, HostError> {
        self.machine.stat(path)
    }

    fn statfs(&self, path: &Path) -> Result<StatFs, HostError> {
        self.machine.statfs(path)
    }

    fn open_exclusive(&self, path: &Path) -> Result<(), HostError> {
        self.machine.open_exclusive(path)
    }

    fn run(&self, argv: &[&OsStr], limits: Limits) -> Result<CommandOutput, HostError> {
        self.machine.run(argv, limits)
    }

    fn which(&self, name: &OsStr) -> Option<PathBuf> {
        self.machine.which(name)
    }
}

/// Returns how many times one check reads the guests.
fn looks_of_a_check() -> usize {
    let host = Restless::new(0, 0);
    let options = CollectOptions {
        services: true,
        accounts: true,
        ..CollectOptions::default()
    };
    let _ = collect(&host, &options);
    host.looks.into_inner()
}

fn catalogue_text(id: &str) -> String {
    Catalogue::builtin()
        .unwrap()
        .file(id)
        .map(|path| std::fs::read_to_string(format!("../../{path}")).unwrap())
        .unwrap()
}

fn planned(host: &Restless, more: &[&Advice]) -> Result<(), FixError> {
    let catalogue = Catalogue::builtin().unwrap();
    let mut pages = catalogue.all();
    pages.extend(more);
    let page = catalogue.get("ssh-usedns").unwrap();
    plan(host, &pages, page).map(|plan| assert_eq!(plan.files.len(), 1))
}

#[test]
fn what_others_do_meanwhile_is_not_of_the_change() {
    let check = looks_of_a_check();
    assert!(check > 0, "no check looks at guests");
    for quiet in [check, check + 1, 2 * check, 3 * check, 4 * check] {
        planned(&Restless::new(quiet, usize::MAX), &[]).unwrap();
        planned(&Restless::new(quiet, quiet + check), &[]).unwrap();
    }
}

#[test]
fn what_comes_with_the_change_is_found_at_every_look() {
    // A page that recommends the opposite.
    let text = catalogue_text("ssh-usedns")
        .replace("about = [\"sshd.scope.*\"]\n", "")
        .replace("this.usedns != \"\"", "true")
        .replace(
            "this.usedns == \"yes\"",
            "!(\"sshd.usedns\" in facts) || facts[\"sshd.usedns\"] != \"yes\"",
        )
        .replace(
            "[[check.remedy.edits]]\nfact = \"usedns\"\nprogram = \"sshd\"\nkey = \"UseDNS\"\n",
            "",
        );
    let other = parse("advice/ssh/needs-names.md", &text).unwrap();
    let refused = planned(&Restless::new(0, 0), &[&other]).unwrap_err();
    let FixError::WouldNotDo { problems, .. } = refused else {
        panic!("{refused}");
    };
    assert_eq!(problems.len(), 1, "{problems:?}");
}
