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

/// What the databases do not say in the same way.
#[derive(Clone, Copy)]
pub(crate) struct Dialect {
    /// Stands before each table.
    pub(crate) schema: &'static str,
    /// Whether the text of a value, and that of a parameter, are compared by their hash, which has the index.
    pub(crate) hashed: bool,
    /// Whether the newest spans are cut off before anything is looked up for them. Where the plan follows the index
    /// on `since`, no more is read than is shown anyway; elsewhere a year would be joined for a page of it.
    pub(crate) cut: bool,
    /// Behind a time that is not to be looked up by its index, where the planner knows too little to leave that index
    /// alone: all machines have their first values of the same moment.
    pub(crate) plain: &'static str,
}

/// The columns of [`Found`], with `$1` and so on for what [`values`] returns.
pub(crate) fn sql(ask: &Ask<'_>, dialect: Dialect) -> String {
    let Dialect { schema, plain, .. } = dialect;
    let unread = match dialect.hashed {
        true => format!("md5(text) = md5('{UNREAD}')"),
        false => format!("text = '{UNREAD}'"),
    };
    // No value has the number 0, and none -1: it is known of all that they are not unread.
    let unread = format!("coalesce((SELECT id FROM {schema}value WHERE {unread}), -1)");
    let mut wanted = vec![format!("coalesce(span.value, 0) <> {unread}")];
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
        // Without an earlier one this is null, which is not true either.
        Some(since) => wanted.push(format!(
            "span.since{} > {} AND (SELECT coalesce(early.value, 0) FROM {schema}span AS early WHERE early.host = span.host
             AND early.subject = span.subject AND early.since < span.since ORDER BY early.since DESC LIMIT 1) <> {unread}",
            match ask.hosts.is_empty() && ask.key.is_none() {
                true => "",
                false => plain,
            },
            since.as_second()
        )),
        None => wanted.push(format!(
            "span.value IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {schema}span AS next
             WHERE next.host = span.host AND next.subject = span.subject AND next.since > span.since)"
        )),
    }
    let cut = match dialect.cut {
        // Which of those of one second are shown is decided by their names, below.
        true => format!(
            "ORDER BY span.since DESC FETCH FIRST {} ROWS WITH TIES",
            ask.most
        ),
        false => String::new(),
    };
    format!(
        "SELECT host.name, subject.kind, subject.key, span.since, span.seen, value.text, host.last,
                (SELECT min(next.since) FROM {schema}span AS next WHERE next.host = span.host
                 AND next.subject = span.subject AND next.since > span.since),
                before.since, before.seen, past.text
         FROM (SELECT span.host, span.subject, span.since, span.seen, span.value,
                      (SELECT max(early.since) FROM {schema}span AS early WHERE early.host = span.host
                       AND early.subject = span.subject AND early.since < span.since) AS early
               FROM {schema}span AS span WHERE {} {cut}) AS span
         JOIN {schema}host AS host ON host.id = span.host
         JOIN {schema}subject AS subject ON subject.id = span.subject
         LEFT JOIN {schema}value AS value ON value.id = span.value
         LEFT JOIN {schema}span AS before ON before.host = span.host AND before.subject = span.subject
              AND before.since{plain} = span.early
         LEFT JOIN {schema}value AS past ON past.id = before.value
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
