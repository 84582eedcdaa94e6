//! Differences between two JSON documents of `assay check --json`: findings that appeared or disappeared, and why. A
//! finding that disappeared is not always fixed. The new check may not have its rule, or may be unable to read its
//! source.

use assay_model::finding::{Certainty, Looked, Seen, Severity};
use assay_render::text::escape_line;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The fields of an `assay check --json` document that the comparison uses.
#[derive(Debug, Deserialize)]
pub struct Document {
    findings: Vec<Item>,
    accepted: Vec<AcceptedItem>,
    rules: Vec<Looked>,
}

#[derive(Debug, Deserialize)]
struct Item {
    fingerprint: String,
    rule: String,
    severity: Severity,
    certainty: Certainty,
    title: String,
    text: String,
    evidence: Vec<Seen>,
}

#[derive(Debug, Deserialize)]
struct AcceptedItem {
    finding: Item,
    reason: String,
}

/// State of a rule for one subject in a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "State")]
pub enum CheckState {
    /// The machine violated the rule.
    Violated,
    /// The machine violated the rule, and the user accepted it.
    Accepted,
    /// It was unknown whether the machine violates the rule.
    Unknown,
    /// The rule applied to a subject and found no violation.
    Fine,
    /// The rule applied to no subject.
    NothingThere,
    /// The check did not contain the rule, because the rule was added or removed between the two checks.
    NoRule,
}

impl CheckState {
    fn words(self) -> &'static str {
        match self {
            Self::Violated => "a finding",
            Self::Accepted => "accepted",
            Self::Unknown => "not known",
            Self::Fine => "fine",
            Self::NothingThere => "nothing to look at",
            Self::NoRule => "no such rule",
        }
    }
}

/// A rule and a subject whose state or reason differs between two checks.
#[derive(Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Change {
    /// Identity of the rule and subject, equal in both checks.
    pub fingerprint: String,
    /// Title of the finding on one line.
    pub title: String,
    /// Severity in the new check, or in the old check if only that contains the finding.
    pub severity: Severity,
    /// State in the old check.
    pub was: CheckState,
    /// State in the new check.
    pub is: CheckState,
    /// What explains the difference: facts that differ or that supported the finding. For unknown or accepted findings,
    /// the reasons.
    pub why: Vec<String>,
}

/// How two checks differ.
#[derive(Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Difference {
    /// Findings that only the new check has, the worst first.
    pub came: Vec<Change>,
    /// Findings that only the old check has.
    pub went: Vec<Change>,
    /// Other differences of state or supporting facts.
    pub changed: Vec<Change>,
    /// Rules that only the new check has.
    pub rules_came: Vec<String>,
    /// Rules that only the old check has.
    pub rules_went: Vec<String>,
}

/// Compares the JSON documents of two checks.
#[must_use]
pub fn diff(old: &Document, new: &Document) -> Difference {
    let (old, new) = (Side::new(old), Side::new(new));
    let mut out = Difference {
        rules_came: new.rules_without(&old),
        rules_went: old.rules_without(&new),
        ..Difference::default()
    };
    let all: BTreeSet<&str> = old.items.keys().chain(new.items.keys()).copied().collect();
    for fingerprint in all {
        let known = new.items.get(fingerprint).or(old.items.get(fingerprint));
        let Some((item, _)) = known else { continue };
        let was = old.state(fingerprint, &item.rule);
        let is = new.state(fingerprint, &item.rule);
        let why = explain_change(
            old.items.get(fingerprint),
            new.items.get(fingerprint),
            was,
            is,
        );
        if was == is && why.is_empty() {
            continue;
        }
        let change = Change {
            fingerprint: fingerprint.to_owned(),
            title: item.title.clone(),
            severity: item.severity,
            was,
            is,
            why,
        };
        match (was, is) {
            (CheckState::Violated, CheckState::Violated) => out.changed.push(change),
            (_, CheckState::Violated) => out.came.push(change),
            (CheckState::Violated, _) => out.went.push(change),
            _ => out.changed.push(change),
        }
    }
    for list in [&mut out.came, &mut out.went, &mut out.changed] {
        list.sort_by_key(|change| (Reverse(change.severity), change.fingerprint.clone()));
    }
    out
}

/// One of the two checks, indexed by fingerprint.
struct Side<'a> {
    items: BTreeMap<&'a str, (&'a Item, Option<&'a str>)>,
    rules: BTreeMap<&'a str, &'a Looked>,
}

impl<'a> Side<'a> {
    fn new(document: &'a Document) -> Self {
        let accepted = document.accepted.iter();
        let accepted = accepted.map(|one| (&one.finding, Some(one.reason.as_str())));
        let found = document.findings.iter().map(|item| (item, None));
        let all = accepted.chain(found);
        Self {
            items: all
                .map(|(item, reason)| (item.fingerprint.as_str(), (item, reason)))
                .collect(),
            rules: document
                .rules
                .iter()
                .map(|rule| (rule.rule.as_str(), rule))
                .collect(),
        }
    }

    fn rules_without(&self, other: &Self) -> Vec<String> {
        let mine = self.rules.keys();
        mine.filter(|rule| !other.rules.contains_key(**rule))
            .map(|rule| (*rule).to_owned())
            .collect()
    }

    fn state(&self, fingerprint: &str, rule: &str) -> CheckState {
        // If a kind could not be listed, the state of each of its items is unknown.
        let whole = self.items.get(rule);
        let hidden = whole.is_some_and(|(item, _)| item.certainty == Certainty::Unknown);
        match (self.items.get(fingerprint), self.rules.get(rule)) {
            (Some((_, Some(_))), _) => CheckState::Accepted,
            (Some((item, None)), _) if item.certainty == Certainty::Violated => {
                CheckState::Violated
            }
            (Some(_), _) => CheckState::Unknown,
            (None, _) if hidden => CheckState::Unknown,
            (None, None) => CheckState::NoRule,
            (None, Some(looked)) if looked.applied == 0 => CheckState::NothingThere,
            (None, Some(_)) => CheckState::Fine,
        }
    }
}

type Known<'a> = Option<&'a (&'a Item, Option<&'a str>)>;

fn explain_change(old: Known<'_>, new: Known<'_>, was: CheckState, is: CheckState) -> Vec<String> {
    let mut why = Vec::new();
    if let (Some((old, _)), Some((new, _))) = (old, new) {
        if old.severity != new.severity {
            let (a, b) = (old.severity.name(), new.severity.name());
            why.push(format!("the rule says {b} now, it said {a}"));
        }
        why.extend(list_differing_facts(&old.evidence, &new.evidence));
        let reasons = [(old, was), (new, is)];
        let unknown = reasons
            .iter()
            .filter(|(_, state)| *state == CheckState::Unknown);
        if was != is {
            why.extend(unknown.map(|(item, _)| item.text.clone()));
        }
    } else if let Some((one, _)) = old.or(new) {
        match one.certainty {
            Certainty::Unknown => why.push(one.text.clone()),
            Certainty::Violated => why.extend(one.evidence.iter().map(format_seen)),
        }
    }
    let accepted = [(old, was), (new, is)];
    for (known, state) in accepted {
        if let (Some((_, Some(reason))), CheckState::Accepted, true) = (known, state, was != is) {
            why.push(format!("accepted: {reason}"));
        }
    }
    why
}

/// Returns the facts whose values differ, and the facts that only one side has.
fn list_differing_facts(old: &[Seen], new: &[Seen]) -> Vec<String> {
    let value = |side: &[Seen], key: &str| {
        let found = side.iter().find(|seen| seen.key == key);
        found.map(|seen| format_value(&seen.value))
    };
    let mut keys: Vec<&str> = old
        .iter()
        .chain(new)
        .map(|seen| seen.key.as_str())
        .collect();
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter()
        .filter_map(|key| match (value(old, key), value(new, key)) {
            (Some(a), Some(b)) if a != b => Some(format!("{key}: {a} became {b}")),
            (Some(a), None) => Some(format!("{key}: {a} is no longer said")),
            (None, Some(b)) => Some(format!("{key}: {b} is said now")),
            _ => None,
        })
        .collect()
}

fn format_seen(seen: &Seen) -> String {
    format!(
        "{} is {} ({})",
        seen.key,
        format_value(&seen.value),
        seen.place
    )
}

fn format_value(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Renders the differences for people. Texts of a document may be untrusted, so they are escaped.
#[must_use]
pub fn diff_text(difference: &Difference) -> String {
    let mut out = String::new();
    let lists = [
        ("New findings", &difference.came),
        ("Findings that are gone", &difference.went),
        ("Judged otherwise", &difference.changed),
    ];
    for (heading, list) in lists {
        if list.is_empty() {
            continue;
        }
        let _ = writeln!(out, "{heading}:");
        for change in list {
            let severity = change.severity.name();
            let _ = writeln!(out, "  {severity:<8} {}", escape_line(&change.title));
            let (was, is) = (change.was.words(), change.is.words());
            let _ = writeln!(
                out,
                "           {}: {was}, now {is}",
                escape_line(&change.fingerprint)
            );
            for why in &change.why {
                let _ = writeln!(out, "           {}", escape_line(why));
            }
        }
        out.push('\n');
    }
    for (what, rules) in [
        ("Rules that are new", &difference.rules_came),
        ("Rules that are gone", &difference.rules_went),
    ] {
        if !rules.is_empty() {
            let _ = writeln!(out, "{what}: {}", escape_line(&rules.join(", ")));
        }
    }
    if out.is_empty() {
        out.push_str("Nothing is judged otherwise.\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn item(rule: &str, certainty: &str, severity: &str, value: Value) -> Value {
        json!({
            "fingerprint": format!("{rule}@x"), "rule": rule, "severity": severity,
            "certainty": certainty, "title": format!("title {rule}"), "text": "it could not be read",
            "evidence": [{"key": "x.k", "value": value, "kind": "configured",
                "place": {"file": {"path": "/etc/x", "line": 3, "span": null}}}],
        })
    }

    fn document(findings: &[Value], accepted: &[Value], rules: &[(&str, usize)]) -> Document {
        let rules: Vec<Value> = rules
            .iter()
            .map(|(rule, applied)| {
                json!({"rule": rule, "domain": "ssh", "statement": "s", "severity": "low", "applied": applied})
            })
            .collect();
        let accepted: Vec<Value> = accepted
            .iter()
            .map(|finding| json!({"finding": finding, "reason": "on purpose"}))
            .collect();
        serde_json::from_value(json!({"findings": findings, "accepted": accepted, "rules": rules}))
            .unwrap()
    }

    fn states(difference: &Difference) -> Vec<(&str, CheckState, CheckState)> {
        let all = [&difference.came, &difference.went, &difference.changed];
        all.into_iter()
            .flatten()
            .map(|one| (&one.fingerprint[..1], one.was, one.is))
            .collect()
    }

    #[test]
    fn each_way_of_coming_and_going_has_its_reason() {
        let old = document(
            &[
                item("a", "violated", "high", json!(1)),
                item("b", "violated", "low", json!("no")),
                item("c", "violated", "low", json!(1)),
                item("d", "violated", "low", json!(1)),
                item("g", "violated", "low", json!(1)),
            ],
            &[],
            &[
                ("a", 1),
                ("b", 1),
                ("c", 1),
                ("d", 1),
                ("e", 1),
                ("f", 0),
                ("g", 2),
            ],
        );
        let new = document(
            &[
                item("b", "violated", "high", json!("yes")),
                item("c", "unknown", "low", json!(1)),
                item("e", "violated", "low", json!(1)),
                item("f", "violated", "critical", json!(1)),
                item("h", "violated", "low", json!(1)),
            ],
            &[item("d", "violated", "low", json!(1))],
            &[
                ("b", 1),
                ("c", 1),
                ("d", 1),
                ("e", 1),
                ("f", 1),
                ("g", 2),
                ("h", 1),
            ],
        );
        let found = diff(&old, &new);
        use CheckState::{Accepted, Fine, NoRule, NothingThere, Unknown, Violated};
        assert_eq!(
            states(&found),
            [
                ("f", NothingThere, Violated),
                ("e", Fine, Violated),
                ("h", NoRule, Violated),
                ("a", Violated, NoRule),
                ("c", Violated, Unknown),
                ("d", Violated, Accepted),
                ("g", Violated, Fine),
                ("b", Violated, Violated),
            ]
        );
        assert_eq!(found.rules_came, ["h"]);
        assert_eq!(found.rules_went, ["a"]);
        assert!(
            found.went[2]
                .why
                .contains(&"accepted: on purpose".to_owned())
        );
        assert_eq!(found.changed[0].why.len(), 2, "{:?}", found.changed[0].why);
        assert_eq!(diff(&old, &old), Difference::default());
        assert!(diff_text(&found).lines().count() > 16);
    }

    #[test]
    fn what_cannot_be_listed_hides_all_of_its_kind() {
        let old = document(&[item("a", "violated", "high", json!(1))], &[], &[("a", 1)]);
        let mut whole = item("a", "unknown", "high", json!(1));
        whole["fingerprint"] = "a".into();
        let new = document(&[whole], &[], &[("a", 0)]);
        let found = diff(&old, &new);
        assert_eq!(found.went[0].is, CheckState::Unknown);
    }
}
