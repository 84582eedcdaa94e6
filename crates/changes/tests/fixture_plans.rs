//! Plans the fix of every page with edits, on the trees on which the page fires. With the planned lines the finding
//! must disappear, and no other finding may appear. [`plan`] itself refuses any other plan.
#![allow(
    clippy::disallowed_methods,
    reason = "tests read trees of the catalogue"
)]

use assay_advice::Catalogue;
use assay_changes::fixes::plan;
use std::path::Path;

/// Pages that the test skips. The trees of some contain a file that the edits leave to the user, Debian's
/// memcached.conf. The trees of others have the modes of files in captured answers, because git does not keep modes.
const LEFT: [&str; 5] = [
    "memcached-udp",
    "root-program-writable",
    "shell-gives-root",
    "ssh-authorized-keys-open",
    "system-file-writable",
];

#[test]
fn every_page_with_edits_fixes_a_tree_on_which_it_fires() {
    let catalogue = Catalogue::builtin().unwrap();
    let pages = catalogue.all();
    let advice = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../advice");
    let mut without = Vec::new();
    for page in &pages {
        let remedy = page.check.as_ref().and_then(|check| check.remedy.as_ref());
        if remedy.is_none_or(|remedy| remedy.edits.is_empty()) {
            continue;
        }
        let fires = advice.join(&page.domain).join(&page.id).join("fires");
        let mut reasons = Vec::new();
        // Facts in a file are no tree.
        let trees = std::fs::read_dir(&fires).into_iter().flatten().flatten();
        let trees: Vec<_> = trees.filter(|tree| tree.path().is_dir()).collect();
        if trees.is_empty() {
            continue;
        }
        let planned = trees.into_iter().any(|tree| {
            let host = assay_host::open(&tree.path()).unwrap().host;
            match plan(host.as_ref(), &pages, page) {
                Ok(plan) if plan.does_something() && plan.by_hand.is_empty() => true,
                Ok(plan) => {
                    reasons.extend(plan.by_hand.into_iter().map(|one| one.why));
                    false
                }
                Err(error) => {
                    reasons.push(error.to_string());
                    false
                }
            }
        });
        if !planned && !LEFT.contains(&&*page.id) {
            without.push(format!("{}: {reasons:?}", page.id));
        }
    }
    assert!(without.is_empty(), "{without:#?}");
}
