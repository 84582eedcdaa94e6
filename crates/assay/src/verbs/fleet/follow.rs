//! What was seen of a machine, into the store: facts and findings, written when they change.

use crate::context;
use crate::global::Global;
use assay_fleet::changed::named;
use assay_model::finding::{Certainty, Checked};
use assay_model::{FactValue, Facts};
use assay_render::text::escape_line;
use assay_store::{About, Key, SpanLook, SpanValue, Store};
use jiff::Timestamp;
use std::collections::BTreeMap;

/// How a machine was looked at: what one way does not see is not gone because of it.
#[derive(Clone, Copy)]
pub enum Way {
    /// By the collector of this version.
    Collector,
    /// By this program on the machine itself.
    Here,
}

/// A machine and what was seen of it.
pub struct Followed<'a> {
    /// What it is called.
    pub host: &'a str,
    /// When.
    pub at: Timestamp,
    /// How.
    pub way: Way,
    /// What is true of it.
    pub facts: &'a Facts,
    /// What the whole catalogue finds, also what was accepted.
    pub checked: &'a Checked,
}

/// Keeps it. That it could not be kept is said and is no reason to fail: what was asked for is there.
pub fn follow<'a>(global: &Global, all: impl Iterator<Item = Followed<'a>>) {
    let all: Vec<Followed<'a>> = all.collect();
    if all.is_empty() {
        return;
    }
    match context::open_store(global) {
        Ok(mut store) => all.iter().for_each(|one| said(keep(&mut store, one))),
        Err(error) => said(Err(error)),
    }
}

/// The same where there is a store already: none is made by looking at a machine.
pub fn follow_if_kept(global: &Global, one: &Followed<'_>) {
    said(
        context::existing_store(global).and_then(|store| match store {
            Some(mut store) => keep(&mut store, one),
            None => Ok(()),
        }),
    );
}

fn said(kept: anyhow::Result<()>) {
    if let Err(error) = kept {
        eprintln!("note: since when it is so was not written down: {error:#}");
    }
}

fn keep(store: &mut Store, one: &Followed<'_>) -> anyhow::Result<()> {
    let way = match one.way {
        Way::Collector => "collector",
        Way::Here => "here",
    };
    let scope = format!("assay {} {way}", env!("CARGO_PKG_VERSION"));
    let (seen, lost) = seen(one.facts, one.checked);
    let look = SpanLook {
        host: one.host,
        at: one.at,
        scope: &scope,
        seen,
        lost,
    };
    match store.look(&look) {
        Ok(_) => Ok(()),
        Err(error) => anyhow::bail!("{}: {error}", escape_line(one.host)),
    }
}

/// What there is, and the rules that could not be asked.
fn seen(facts: &Facts, checked: &Checked) -> (BTreeMap<Key, SpanValue>, Vec<String>) {
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
