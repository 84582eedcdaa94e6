//! Listings: what is so, since when, and what was before.

use super::{About, UNREAD};
use jiff::Timestamp;
use serde::Serialize;

/// What is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ask<'a> {
    /// These machines; all when there are none.
    pub hosts: &'a [String],
    /// Only keys that begin so.
    pub key: Option<&'a str>,
    /// Only what changed after this time; without it, what is so now.
    pub since: Option<Timestamp>,
    /// At most so many.
    pub most: u32,
}

/// A value of a key over a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Span {
    /// The machine.
    pub machine: String,
    /// What it is about.
    pub about: About,
    /// The fact, or what names the finding.
    pub key: String,
    /// What it is, as JSON; null: it was not there.
    pub value: Option<serde_json::Value>,
    /// Whether something else is known to have been before. Without, `since` is when it was first looked at.
    pub changed: bool,
    /// What it was before; null: it was not there, or is not known.
    pub before: Option<serde_json::Value>,
    /// When it was last seen to be as before: it changed after that.
    pub after: Option<Timestamp>,
    /// When it was first seen to be so.
    pub since: Timestamp,
    /// When it was last seen to be so.
    pub seen: Timestamp,
    /// When it was first seen to be otherwise; null: it is so, as far as can be read.
    pub until: Option<Timestamp>,
}

/// A row as a database returns it.
pub(crate) struct Found {
    pub(crate) host: String,
    pub(crate) kind: i64,
    pub(crate) key: String,
    pub(crate) since: i64,
    pub(crate) seen: Option<i64>,
    pub(crate) value: Option<String>,
    pub(crate) last: i64,
    pub(crate) until: Option<i64>,
    pub(crate) before_since: Option<i64>,
    pub(crate) before_seen: Option<i64>,
    pub(crate) before: Option<String>,
}

/// The columns of [`Found`], with `$1` and so on for what [`values`] returns; `schema` stands before each table.
pub(crate) fn sql(ask: &Ask<'_>, schema: &str) -> String {
    let mut wanted = vec![format!("(value.text IS NULL OR value.text <> '{UNREAD}')")];
    let mut number = 0;
    let mut next = || {
        number += 1;
        format!("${number}")
    };
    if !ask.hosts.is_empty() {
        let names: Vec<String> = ask.hosts.iter().map(|_| next()).collect();
        wanted.push(format!(
            "span.host IN (SELECT id FROM {schema}host WHERE name IN ({}))",
            names.join(", ")
        ));
    }
    if let Some(key) = ask.key {
        let name = next();
        // So that the index on the subject is used, whichever database it is.
        wanted.push(format!(
            "span.subject IN (SELECT id FROM {schema}subject WHERE substr(key, 1, {}) = {name})",
            key.chars().count()
        ));
    }
    match ask.since {
        Some(since) => wanted.push(format!(
            "span.since > {} AND before.since IS NOT NULL AND (past.text IS NULL OR past.text <> '{UNREAD}')",
            since.as_second()
        )),
        None => wanted.push(format!(
            "value.text IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {schema}span AS next
             WHERE next.host = span.host AND next.subject = span.subject AND next.since > span.since)"
        )),
    }
    format!(
        "SELECT host.name, subject.kind, subject.key, span.since, span.seen, value.text, host.last,
                (SELECT min(next.since) FROM {schema}span AS next WHERE next.host = span.host
                 AND next.subject = span.subject AND next.since > span.since),
                before.since, before.seen, past.text
         FROM {schema}span AS span
         JOIN {schema}host AS host ON host.id = span.host
         JOIN {schema}subject AS subject ON subject.id = span.subject
         LEFT JOIN {schema}value AS value ON value.id = span.value
         LEFT JOIN {schema}span AS before ON before.host = span.host AND before.subject = span.subject
              AND before.since = (SELECT max(early.since) FROM {schema}span AS early WHERE early.host = span.host
                                  AND early.subject = span.subject AND early.since < span.since)
         LEFT JOIN {schema}value AS past ON past.id = before.value
         WHERE {}
         ORDER BY span.since DESC, host.name, subject.kind DESC, subject.key LIMIT {}",
        wanted.join(" AND "),
        ask.most
    )
}

/// What stands for the numbers of [`sql`].
pub(crate) fn values<'a>(ask: &Ask<'a>) -> Vec<&'a str> {
    let hosts = ask.hosts.iter().map(String::as_str);
    hosts.chain(ask.key).collect()
}

impl Found {
    pub(crate) fn span(self) -> Span {
        let time = |second| Timestamp::from_second(second).unwrap_or(Timestamp::UNIX_EPOCH);
        let json = |text: Option<String>| {
            let text = text.filter(|text| text != UNREAD)?;
            Some(serde_json::from_str(&text).unwrap_or(serde_json::Value::String(text)))
        };
        let unread = self.before.as_deref() == Some(UNREAD);
        Span {
            machine: self.host,
            about: About::of(self.kind),
            key: self.key,
            value: json(self.value),
            changed: self.before_since.is_some() && !unread,
            before: json(self.before),
            after: self.before_seen.filter(|_| !unread).map(time),
            since: time(self.since),
            seen: time(self.seen.unwrap_or(self.last)),
            until: self.until.map(time),
        }
    }
}
