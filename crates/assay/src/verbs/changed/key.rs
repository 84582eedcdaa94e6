//! `assay fleet changed --key`: shows the history of facts and findings.

use crate::context::{self, print};
use crate::global::Global;
use crate::status::Status;
use assay_fleet::Entry;
use assay_model::SCHEMA_VERSION;
use assay_render::text::escape_line;
use assay_render::units::format_timestamp;
use assay_store::{About, Ask, Span, Store};
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Maximum number of lines of a listing.
const MOST: u32 = 10_000;
/// Maximum number of characters of a value that are shown.
const SHOWN: usize = 60;

/// Document of `assay fleet changed --key`: the history of facts and findings.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub(in crate::verbs) struct Document<'a> {
    schema: u32,
    /// Periods in which a value did not change, newest first: the current values, or every change since a time.
    spans: &'a [Span],
}

/// Prints the history of the facts and findings whose names begin with the key.
pub(super) fn run(
    key: &str,
    machines: &[String],
    since: Option<Timestamp>,
    json: bool,
    global: &Global,
) -> anyhow::Result<Status> {
    let Some(store) = context::existing_store(global)? else {
        anyhow::bail!(
            "no machine was looked at yet: `assay fleet check` and `assay fleet watch now` do"
        );
    };
    let ask = Ask {
        hosts: machines,
        about: None,
        key: Some(key),
        since,
        most: MOST,
    };
    let spans = store.spans(&ask)?;
    if spans.is_empty() && !json {
        let hosts = store.hosts()?;
        if let Some(name) = machines
            .iter()
            .find(|name| hosts.iter().all(|host| host.0 != **name))
        {
            let hosts: Vec<String> = hosts.iter().map(|host| escape_line(&host.0)).collect();
            anyhow::bail!(
                "{}: was not looked at yet; there are {}",
                escape_line(name),
                hosts.join(", ")
            );
        }
        eprintln!("note: nothing is known under {} then", escape_line(key));
    }
    print(&match json {
        true => {
            let document = Document {
                schema: SCHEMA_VERSION,
                spans: &spans,
            };
            format!("{:#}\n", serde_json::json!(document))
        }
        false => text(&spans, global),
    })?;
    if spans.len() >= MOST as usize {
        eprintln!(
            "note: only the newest {MOST} are shown: name machines, a longer key, or --since"
        );
    }
    Ok(Status::Ok)
}

fn text(spans: &[Span], global: &Global) -> String {
    let style = context::style(global);
    let mut out = String::new();
    for span in spans {
        let what = match (&span.value, span.about) {
            (None, _) => "is gone".to_owned(),
            (Some(value), About::Fact) => format!("= {}", shown(value)),
            (Some(value), About::Finding) => format!("is found: {}", shown(value)),
        };
        let _ = writeln!(
            out,
            "{}  {} {what}",
            style.bold(&escape_line(&span.machine)),
            escape_line(&span.key)
        );
        let since = match span.after {
            Some(after) => format!(
                "since between {} and {}",
                format_timestamp(after),
                format_timestamp(span.since)
            ),
            None => format!(
                "since {} at the latest: it was first looked at then",
                format_timestamp(span.since)
            ),
        };
        let before = match (&span.before, span.changed) {
            (Some(before), _) => format!("; it was {} before", shown(before)),
            (None, true) => "; it was not there before".to_owned(),
            (None, false) => String::new(),
        };
        let until = match span.until {
            Some(until) => format!(
                "; until between {} and {}",
                format_timestamp(span.seen),
                format_timestamp(until)
            ),
            None => format!("; last seen {}", format_timestamp(span.seen)),
        };
        style.write_paragraph(&mut out, "", 6, &format!("{since}{before}{until}"));
    }
    out
}

fn shown(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let text = escape_line(&text);
    match text.chars().count() > SHOWN {
        true => text.chars().take(SHOWN).chain(['…']).collect(),
        false => text,
    }
}

/// Returns a narrower time interval for each change between two bundles. This is possible if the store has surveys
/// between the bundles.
pub(super) fn when(
    store: &Store,
    machine: &str,
    (old, new): (&Entry, &Entry),
) -> anyhow::Result<BTreeMap<String, [Timestamp; 2]>> {
    let hosts = [machine.to_owned()];
    let ask = Ask {
        hosts: &hosts,
        about: None,
        key: None,
        since: Some(old.at),
        most: MOST,
    };
    let mut when = BTreeMap::new();
    for span in store.spans(&ask)? {
        // The newest span comes first; the newer bundle shows it.
        if let (Some(after), None) = (span.after, span.until) {
            let closer = after.as_second() > old.at.as_second()
                || span.since.as_second() < new.at.as_second();
            if closer && span.since <= new.at {
                when.insert(span.key, [after, span.since]);
            }
        }
    }
    Ok(when)
}
