//! Selects what the store tracks over time for a machine: its facts, and the severity of its findings.

use crate::changed::named;
use assay_model::finding::{Certainty, Checked};
use assay_model::{FactValue, Facts};
use assay_store::{About, Key, SpanValue};
use std::collections::BTreeMap;

/// Returns the tracked facts and findings of a machine, and the checks that could not be evaluated.
#[must_use]
pub fn collect_seen(facts: &Facts, checked: &Checked) -> (BTreeMap<Key, SpanValue>, Vec<String>) {
    let mut seen: BTreeMap<Key, SpanValue> = named(facts)
        .into_iter()
        .map(|(key, fact)| {
            let value = match &fact.value {
                FactValue::Known(value) => SpanValue::Value(value.to_string()),
                FactValue::Unknown(_) => SpanValue::Unread,
            };
            ((About::Fact, key), value)
        })
        .collect();
    let mut lost = Vec::new();
    for finding in &checked.findings {
        let key = (About::Finding, finding.fingerprint());
        match finding.certainty {
            Certainty::Violated => {
                let severity = serde_json::json!(finding.severity);
                seen.insert(key, SpanValue::Value(severity.to_string()));
            }
            _ => {
                seen.entry(key).or_insert(SpanValue::Unread);
                lost.push(finding.rule.clone());
            }
        }
    }
    lost.sort();
    lost.dedup();
    (seen, lost)
}
