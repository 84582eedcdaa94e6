//! Compares two bundles of a machine and explains the differences. The collectors of this version of assay parse both
//! bundles, so a difference comes from the machine and not from assay. Differences due to another catalogue are
//! reported separately. Values that change all the time, such as free memory, are ignored.

mod cause;
mod packages;
mod volatile;

pub use packages::Packages;

use crate::history::{Entry, Told, told};
use assay_model::drift::{Change, Kind};
use assay_model::finding::{Certainty, Checked, Finding};
use assay_model::{Fact, FactPlace, FactValue, Facts, Subject};
use std::collections::{BTreeMap, BTreeSet};

/// State of a machine at the time of one check.
pub struct Then<'a> {
    /// Facts, parsed from the bundle by this version of assay.
    pub facts: &'a Facts,
    /// Findings according to the catalogue of this version.
    pub checked: &'a Checked,
    /// Record of the check at that time.
    pub entry: &'a Entry,
    /// Boot time in seconds since 1970.
    pub booted: Option<i64>,
    /// All packages of the machine; `None` if the list is missing or incomplete.
    pub packages: Option<Packages>,
}

/// Facts under keys that mean the same in both bundles.
pub type ComparableFact<'a> = BTreeMap<String, &'a Fact>;

/// Returns the changes: first the changes of findings, the most severe first, then the changes of facts.
#[must_use]
pub fn changes(old: &Then<'_>, new: &Then<'_>) -> Vec<Change> {
    let (before, after) = (named(old.facts), named(new.facts));
    let differ = differing(&before, &after);
    let causes = cause::Causes::new(old, new, &before, &after, &differ);
    let mut all = findings(old, new, &causes);
    all.extend(facts(&before, &after, &differ, &causes));
    all.extend(packages::changes(
        old.packages.as_ref(),
        new.packages.as_ref(),
        &differ,
    ));
    all.sort_by(|a, b| {
        let rank = |change: &Change| (change.kind, std::cmp::Reverse(change.severity));
        rank(a).cmp(&rank(b)).then_with(|| a.what.cmp(&b.what))
    });
    all
}

/// Compares only facts, such as the facts that are stored with a run.
#[must_use]
pub fn of_facts(old: &Facts, new: &Facts) -> Vec<Change> {
    let checked = Checked::default();
    let entry = Entry {
        at: jiff::Timestamp::UNIX_EPOCH,
        bundle: String::new(),
        assay: String::new(),
        findings: Vec::new(),
    };
    let then = |facts| Then {
        facts,
        checked: &checked,
        entry: &entry,
        booted: None,
        packages: None,
    };
    changes(&then(old), &then(new))
}

/// Returns the facts under stable keys; for example, mounts have their mount point in the key instead of a number.
/// Omits values that change all the time.
#[must_use]
pub fn named(facts: &Facts) -> ComparableFact<'_> {
    let mut found = ComparableFact::new();
    for (key, fact) in &facts.map {
        if volatile::is(key) {
            continue;
        }
        let Some(key) = volatile::stable(facts, key) else {
            continue;
        };
        found.entry(key).or_insert(fact);
    }
    found
}

/// Returns the keys with different values. A value that is unknown on one side is not a difference.
fn differing(before: &ComparableFact<'_>, after: &ComparableFact<'_>) -> BTreeSet<String> {
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differ = |key: &&&String| {
        let (old, new) = (before.get(**key), after.get(**key));
        let unknown = |fact: Option<&&Fact>| match fact.map(|fact| &fact.value) {
            Some(FactValue::Unknown(why)) => Some(why.clone()),
            _ => None,
        };
        match (unknown(old), unknown(new)) {
            (Some(_), Some(_)) => false,
            (Some(why), None) | (None, Some(why)) => {
                !why.contains("not in the captured directory")
                    && !why.contains("not taken by the collector")
            }
            (None, None) => old.map(|fact| &fact.value) != new.map(|fact| &fact.value),
        }
    };
    keys.iter()
        .filter(differ)
        .map(|key| (*key).clone())
        .collect()
}

/// Counts the facts that belong to each subject.
fn subjects<'a>(side: &ComparableFact<'a>) -> BTreeMap<&'a Subject, usize> {
    let mut found = BTreeMap::new();
    for fact in side.values() {
        *found.entry(&fact.subject).or_default() += 1;
    }
    found
}

fn facts(
    before: &ComparableFact<'_>,
    after: &ComparableFact<'_>,
    differ: &BTreeSet<String>,
    causes: &cause::Causes<'_>,
) -> Vec<Change> {
    let mut all = Vec::new();
    let mut told: BTreeSet<&Subject> = BTreeSet::new();
    // A machine may report any number of subjects, so each is visited only once.
    let (things_before, things_after) = (subjects(before), subjects(after));
    for key in differ {
        let (old, new) = (before.get(key).copied(), after.get(key).copied());
        // A new or missing subject is one change, and not one per fact.
        if let (Some(fact), None) | (None, Some(fact)) = (old, new)
            && !fact.subject.is_machine()
        {
            let (there, here) = match new.is_some() {
                true => (&things_before, &things_after),
                false => (&things_after, &things_before),
            };
            if !there.contains_key(&fact.subject) {
                if told.insert(&fact.subject) {
                    let text = Some(match here.get(&fact.subject) {
                        Some(many) if *many > 1 => format!("{many} facts"),
                        _ => shown(fact),
                    });
                    all.push(Change {
                        kind: Kind::Fact,
                        what: fact.subject.to_string(),
                        severity: None,
                        title: None,
                        before: text.clone().filter(|_| new.is_none()),
                        after: text.filter(|_| new.is_some()),
                        cause: causes.of(key),
                    });
                }
                continue;
            }
        }
        all.push(Change {
            kind: Kind::Fact,
            what: key.clone(),
            severity: None,
            title: None,
            before: old.map(shown),
            after: new.map(shown),
            cause: causes.of(key),
        });
    }
    all
}

fn shown(fact: &Fact) -> String {
    match &fact.value {
        FactValue::Known(serde_json::Value::String(text)) => text.clone(),
        FactValue::Known(value) => value.to_string(),
        FactValue::Unknown(why) => format!("not known ({why})"),
    }
}

fn findings(old: &Then<'_>, new: &Then<'_>, causes: &cause::Causes<'_>) -> Vec<Change> {
    let violated = |checked: &Checked| -> BTreeMap<String, Finding> {
        let all = checked.findings.iter();
        let all = all.filter(|finding| finding.certainty == Certainty::Violated);
        all.map(|finding| (finding.fingerprint(), finding.clone()))
            .collect()
    };
    let (before, after) = (violated(old.checked), violated(new.checked));
    let now = told(old.checked);
    let (judged_then, judged_now) = (names(&old.entry.findings), names(&now));
    let change = |kind, finding: &Finding, cause| Change {
        kind,
        what: finding.fingerprint(),
        severity: Some(finding.severity),
        title: Some(finding.title.clone()),
        before: None,
        after: None,
        cause,
    };
    let mut all = Vec::new();
    for (name, finding) in &after {
        if !before.contains_key(name) {
            all.push(change(
                Kind::FindingCame,
                finding,
                causes.of_finding(finding),
            ));
        } else if !judged_then.contains(name.as_str()) && judged_now.contains(name.as_str()) {
            // The finding existed before, but no rule checked for it.
            all.push(change(
                Kind::FindingCame,
                finding,
                Some(causes.of_catalogue()),
            ));
        }
    }
    for (name, finding) in &before {
        if !after.contains_key(name) {
            all.push(change(
                Kind::FindingGone,
                finding,
                causes.of_finding(finding),
            ));
        }
    }
    // Findings of the old check that this version's catalogue does not find in the same bundle.
    for one in &old.entry.findings {
        if !judged_now.contains(one.fingerprint.as_str()) {
            all.push(Change {
                kind: Kind::FindingGone,
                what: one.fingerprint.clone(),
                severity: Some(one.severity),
                title: None,
                before: None,
                after: None,
                cause: Some(causes.of_catalogue()),
            });
        }
    }
    all
}

fn names(told: &[Told]) -> BTreeSet<&str> {
    told.iter().map(|one| one.fingerprint.as_str()).collect()
}

/// Returns the path of the file in which a fact was found. Also returns this path with the line, if the line is known.
fn file_of(place: &FactPlace) -> Option<(&str, String)> {
    match place {
        FactPlace::File {
            path,
            line: Some(line),
            ..
        } => Some((path, format!("{path}:{line}"))),
        FactPlace::File {
            path, line: None, ..
        } => {
            let bare = path
                .rsplit_once(':')
                .filter(|(_, line)| line.parse::<usize>().is_ok());
            Some((bare.map_or(path.as_str(), |(file, _)| file), path.clone()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
