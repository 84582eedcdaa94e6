//! If only the machine itself can provide a fact, the result of a remote check must report this: for each page that
//! uses such a fact, `not_asked` contains the page.
#![allow(
    clippy::disallowed_methods,
    reason = "reads the catalogue's own directories"
)]

use assay_advice::{Catalogue, findings};
use assay_facts::{CollectOptions, collect, script};
use assay_host::{Bundle, CommandOutput, Host, HostError, Limits, Root, Stat, StatFs};
use assay_model::advice::Advice;
use assay_model::finding::Certainty;
use assay_model::{FactValue, Facts};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Facts of pages that no Linux fixture has: values of a running kernel, which remote checks can read, and a tunnel of
/// pfSense.
const WITHOUT_FIXTURE: &[&str] = &[
    "pfsense.openvpn_pass_any",
    "sysctl.fs.protected_fifos",
    "sysctl.fs.protected_regular",
    "sysctl.net.ipv4.conf.all.accept_redirects",
];

/// Subjects that the collector of remote checks also reads, under other names or from a subset of the files. The test
/// `collector` of assay-facts compares both.
const COLLECTED: [&str; 2] = ["vm.", "postgresql.cluster."];

#[test]
fn a_remote_check_names_each_question_that_it_cannot_ask() {
    let catalogue = Catalogue::builtin().unwrap();
    let mut pages = catalogue.all();
    pages.retain(|page| page.check.is_some() && !assay_wifi::judges(page));
    // The collector of remote checks needs Linux, in contrast to pfSense, whose saved file is read.
    let is_linux = |tree: &PathBuf| !tree.join("conf/config.xml").exists();
    let trees: Vec<PathBuf> = pages.iter().flat_map(|page| trees_of(page)).collect();
    // The collector does not read the boot loader's command line, a second source of these settings.
    let is_sent = |tree: &PathBuf| !tree.ends_with("sysctl-aslr-off/fires/command-line");
    let trees: Vec<PathBuf> = trees.into_iter().filter(is_linux).filter(is_sent).collect();
    let bundle = bundle();
    let (next, all) = (
        AtomicUsize::new(0),
        Mutex::new((BTreeSet::new(), BTreeSet::new())),
    );
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(tree) = trees.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let root = Root::open(tree).unwrap();
                    let here = read(&root, true);
                    // Others only show which facts exist.
                    let silent = match tree.parent().is_some_and(|kind| kind.ends_with("fires")) {
                        true => {
                            let remote = Remote {
                                root: &root,
                                bundle: &bundle,
                            };
                            unnamed(&pages, &here, &read(&remote, false))
                        }
                        false => Vec::new(),
                    };
                    let mut all = all.lock().unwrap();
                    all.0.extend(here.map.into_keys());
                    all.1.extend(silent);
                }
            });
        }
    });
    let (known, silent) = all.into_inner().unwrap();
    assert!(silent.is_empty(), "{silent:#?}");
    let named: BTreeSet<&str> = pages.iter().flat_map(|page| facts_of(page)).collect();
    let unseen: Vec<&str> = named
        .into_iter()
        .filter(|key| !known.contains(*key) && !WITHOUT_FIXTURE.contains(key))
        .collect();
    assert!(unseen.is_empty(), "no fixture has {unseen:#?}");
}

/// Returns the pages that use a fact which only the machine itself can provide, and that the result of the remote check
/// does not list.
fn unnamed(pages: &[&Advice], here: &Facts, there: &Facts) -> Vec<String> {
    let known = |facts: &Facts, key: &str| {
        let fact = facts.map.get(key);
        fact.is_some_and(|fact| matches!(fact.value, FactValue::Known(_)))
    };
    let only_here: Vec<&str> = here.map.keys().map(String::as_str).collect();
    let only_here: Vec<&str> = only_here
        .into_iter()
        .filter(|key| known(here, key) && !there.map.contains_key(*key))
        .filter(|key| !COLLECTED.iter().any(|kind| key.starts_with(kind)))
        .collect();
    let mut silent = Vec::new();
    for page in pages {
        let key = only_here.iter().find(|key| uses(page, key));
        let Some(key) = key else { continue };
        let checked = findings([*page], there);
        let is_found = checked
            .findings
            .iter()
            .any(|finding| finding.certainty == Certainty::Violated);
        if checked.not_asked.is_empty() && !is_found {
            silent.push(format!("{}: {key}", page.id));
        }
    }
    silent
}

/// Returns whether a page uses a fact: its conditions contain the key, or the fact belongs to a subject that the rule
/// checks.
fn uses(page: &Advice, key: &str) -> bool {
    let check = page.check.as_ref().unwrap();
    let of_kind = |kind: &str| {
        let rest = key.strip_prefix(kind);
        rest.is_some_and(|rest| rest.starts_with('.'))
    };
    check.about.iter().any(|about| of_kind(about.kind())) || facts_of(page).contains(&key)
}

/// Returns the keys of facts in the conditions of a page: quoted texts with a dot, before ` in facts` or in `facts[…]`.
fn facts_of(page: &Advice) -> Vec<&str> {
    let check = page.check.as_ref().unwrap();
    let conditions = [Some(&check.violated), check.applies.as_ref()];
    let mut found = Vec::new();
    for condition in conditions.into_iter().flatten() {
        let parts: Vec<&str> = condition.split('"').collect();
        for (at, part) in parts.iter().enumerate().skip(1).step_by(2) {
            let before = parts[at - 1].ends_with("facts[");
            let after = parts.get(at + 1).is_some_and(|after| {
                after.starts_with(" in facts") || (before && after.starts_with(']'))
            });
            if after {
                found.push(*part);
            }
        }
    }
    found
}

fn read(host: &dyn Host, accounts: bool) -> Facts {
    let options = CollectOptions {
        services: true,
        accounts,
        ..CollectOptions::default()
    };
    collect(host, &options)
}

/// Returns what the script of remote checks collects on this machine. It contains the list of paths that the script
/// reads.
fn bundle() -> Bundle {
    let mut shell = Command::new("sh");
    shell.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = shell.stderr(Stdio::null()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(script("test").as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    Bundle::read(&output.stdout[..], "the bundle").unwrap()
}

/// A tree of files, as the collector of remote checks sees it. A path that the tree lacks and that the collector does
/// not read may exist.
struct Remote<'a> {
    root: &'a Root,
    bundle: &'a Bundle,
}

impl Remote<'_> {
    fn missing<T>(&self, path: &Path, found: Result<T, HostError>) -> Result<T, HostError> {
        match (found, self.bundle.stat(path)) {
            (Err(HostError::NotFound { .. }), Err(error @ HostError::NotCaptured { .. })) => {
                Err(error)
            }
            (found, _) => found,
        }
    }
}

impl Host for Remote<'_> {
    fn read(&self, path: &Path) -> Result<Vec<u8>, HostError> {
        self.root.read(path)
    }
    fn list(&self, dir: &Path) -> Result<Vec<OsString>, HostError> {
        self.root.list(dir)
    }
    fn link(&self, path: &Path) -> Result<PathBuf, HostError> {
        self.root.link(path)
    }
    fn realpath(&self, path: &Path) -> Result<PathBuf, HostError> {
        self.root.realpath(path)
    }
    fn stat(&self, path: &Path) -> Result<Stat, HostError> {
        self.missing(path, self.root.stat(path))
    }
    fn statfs(&self, path: &Path) -> Result<StatFs, HostError> {
        self.root.statfs(path)
    }
    fn open_exclusive(&self, path: &Path) -> Result<(), HostError> {
        self.root.open_exclusive(path)
    }
    fn run(&self, argv: &[&OsStr], limits: Limits) -> Result<CommandOutput, HostError> {
        self.root.run(argv, limits)
    }
    fn which(&self, name: &OsStr) -> Option<PathBuf> {
        self.root.which(name)
    }
}

fn trees_of(page: &Advice) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../advice");
    let dir = root.join(&page.domain).join(&page.id);
    let kinds = ["fires", "quiet", "not-applicable"];
    let entries = kinds
        .iter()
        .filter_map(|kind| std::fs::read_dir(dir.join(kind)).ok());
    let entries = entries.flatten().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_dir()).collect()
}
