//! What changed on a machine between two bundles of it, and why. Both are read by the collectors of this
//! version, so a difference is one of the machine; what another catalogue made of the older one is told apart.
//! What changes all the time, such as free memory, is no change.

mod cause;
mod packages;
mod volatile;

pub use packages::Packages;

use crate::history::{Entry, Told, told};
use assay_model::drift::{Change, Kind};
use assay_model::finding::{Certainty, Checked, Finding};
use assay_model::{Fact, FactPlace, FactValue, Facts, Subject};
use std::collections::{BTreeMap, BTreeSet};

/// A machine at one time.
pub struct Then<'a> {
    /// What is known of it, read by this version.
    pub facts: &'a Facts,
    /// What this version's catalogue finds.
    pub checked: &'a Checked,
    /// What was written down then.
    pub entry: &'a Entry,
    /// When its kernel started, in seconds since 1970.
    pub booted: Option<i64>,
    /// All packages, where they are known.
    pub packages: Option<Packages>,
}

/// A fact under a key that means the same on both sides.
pub type ComparableFact<'a> = BTreeMap<String, &'a Fact>;

/// What changed, findings first, the worst of them first.
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

/// What is true otherwise where facts alone are known, such as those that are stored with a run.
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

/// Facts under keys that mean the same the next time: mounts by where they are, not by their number in a list;
/// nothing that changes all the time.
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

/// Keys whose value is another one. What could not be asked then, or cannot be now, says nothing.
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

/// Things of which facts are known, and how many.
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
    // A machine may tell of as many things as it likes: each is looked at once.
    let (things_before, things_after) = (subjects(before), subjects(after));
    for key in differ {
        let (old, new) = (before.get(key).copied(), after.get(key).copied());
        // A thing that came or went is one change, and not one for each thing that is known of it.
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
            // It was so before; only nobody looked for it.
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
    // What was found then and would not be found today on the same bundle.
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

/// The file of a place, with the line where it is known.
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
