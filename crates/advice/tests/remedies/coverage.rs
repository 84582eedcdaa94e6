//! Checks that every remedy of the catalogue is executed: here on the machine of a fixture, or in another test on real
//! disks or services. Remedies that no test can execute are listed with the reason.

use super::cases::{self, Case};
use super::lists::{EXECUTED_ELSEWHERE, NOT_EXECUTED, TREES_LEFT};
use super::lists_applied::{APPLIED, NOT_APPLIED};
use super::lists_in_guest::IN_GUEST;
use super::machine::Machine;
use assay_advice::Catalogue;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Executes every remedy on every machine on which its rule has a finding.
#[test]
fn every_remedy_clears_its_findings_and_opens_none() {
    if !Machine::is_possible() {
        return;
    }
    let catalogue = Catalogue::builtin().unwrap();
    let only = std::env::var("ASSAY_TEST_REMEDY").unwrap_or_default();
    let work: Vec<(&Case, PathBuf)> = cases::all()
        .filter(|case| only.split(',').any(|part| case.page.contains(part)) && is_there(case))
        .flat_map(|case| {
            let trees = cases::trees(catalogue.get(case.page).unwrap());
            trees
                .into_iter()
                .filter(|tree| case.is_about(tree))
                .map(move |tree| (case, tree))
        })
        .collect();
    assert!(!work.is_empty());
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some((case, tree)) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let page = catalogue.get(case.page).unwrap();
                    if let Err(error) = case.execute(page, tree) {
                        wrong
                            .lock()
                            .unwrap()
                            .push(format!("{}: {error}", tree.display()));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

fn is_there(case: &Case) -> bool {
    let ask = format!("command -v {}", case.needs);
    let mut shell = Command::new("sh");
    shell.args(["-c", &ask]).env("PATH", "/usr/sbin:/usr/bin");
    let there = case.needs.is_empty() || shell.output().unwrap().status.success();
    if !there {
        assay_testing::skipped(case.needs, format!("{} is not installed", case.needs));
    }
    there
}

/// Each page is either executed, or listed with the reason why it is not.
#[test]
fn every_remedy_is_executed_or_has_a_reason() {
    let catalogue = Catalogue::builtin().unwrap();
    let (mut wrong, mut listed) = (BTreeSet::new(), 0);
    for page in catalogue.all() {
        let remedy = page.check.as_ref().and_then(|check| check.remedy.as_ref());
        let Some(remedy) = remedy else { continue };
        // `every_remedy_that_can_be_carried_out…` compares its cases with these.
        let by_assay = !remedy.edits.is_empty();
        let here = cases::all().any(|case| case.page == page.id);
        let elsewhere = EXECUTED_ELSEWHERE
            .iter()
            .chain(APPLIED)
            .chain(IN_GUEST)
            .any(|(id, ..)| *id == page.id);
        let reason = NOT_EXECUTED
            .iter()
            .chain(NOT_APPLIED)
            .find(|(id, _)| *id == page.id);
        listed += usize::from(reason.is_some());
        match (by_assay || here || elsewhere, reason) {
            (true, Some(_)) => wrong.insert(format!("{}: executed: take it off the list", page.id)),
            (false, None) => wrong.insert(format!("{}: nobody executes its remedy", page.id)),
            (false, Some((_, ""))) => wrong.insert(format!("{}: why not?", page.id)),
            _ => false,
        };
        if !here {
            continue;
        }
        for tree in cases::trees(page) {
            let name = tree.file_name().unwrap().to_str().unwrap();
            let left = TREES_LEFT
                .iter()
                .any(|(id, tree, _)| *id == page.id && *tree == name);
            let tried = cases::all().any(|case| case.page == page.id && case.is_about(&tree));
            if tried == left {
                wrong.insert(format!(
                    "{}/{name}: executed {tried}, listed {left}",
                    page.id
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(
        listed,
        NOT_EXECUTED.len() + NOT_APPLIED.len(),
        "a page of the list is gone"
    );
}

/// Cases refer to existing pages and fixtures.
#[test]
fn every_case_names_a_fixture() {
    let catalogue = Catalogue::builtin().unwrap();
    for case in cases::all() {
        let trees = cases::trees(catalogue.get(case.page).unwrap());
        for name in case.trees {
            let there = trees.iter().any(|tree| tree.ends_with(name));
            assert!(there, "{}: {name}", case.page);
        }
        assert!(!case.acts.is_empty(), "{}", case.page);
    }
}

/// The test that executes a remedy elsewhere contains the id of the remedy's page.
#[test]
fn tests_elsewhere_execute_what_is_said_of_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (page, file, mark) in EXECUTED_ELSEWHERE.iter().chain(APPLIED).chain(IN_GUEST) {
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        let mark = mark.replace('@', page);
        assert!(text.contains(&mark), "{file}: no {mark}");
    }
}
