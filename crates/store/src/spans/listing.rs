//! Listings: what is so, since when, and what was before.

use super::{About, UNREAD};
use jiff::Timestamp;
use serde::Serialize;

/// What is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ask<'a> {
    /// These machines; all when there are none.
    pub hosts: &'a [String],
    /// Only facts, or only findings.
    pub about: Option<About>,
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
    /// Whether what stands beside a row is looked up by LATERAL, with the newest rows cut off first. Elsewhere the plan
    /// follows the index on `since` with all that is joined, and reads no more than is shown anyway.
    pub(crate) lateral: bool,
}

/// How the rows are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// From the newest on, by the index on their time, until there are enough: where a good part of all fits.
    Time,
    /// By the indexes on machines and keys, where few fit.
    Names,
}

/// From which share of all rows on they are found by their time. At the share s, about as many rows are read in one
/// way, s of all, as in the other, those that are shown divided by s, when a year of some hundred machines is
/// asked for its newest thousands. No planner knows how many keys begin with a text.
const SHARE: u64 = 16;

/// Keys that begin so, all keys, and all machines: what [`way`] is told. The parameter is the key.
pub(crate) fn counts(ask: &Ask<'_>, schema: &str) -> String {
    format!(
        "SELECT (SELECT count(*) FROM {schema}subject WHERE substr(key, 1, {}) = $1{}),
                (SELECT count(*) FROM {schema}subject), (SELECT count(*) FROM {schema}host)",
        ask.key.unwrap_or_default().chars().count(),
        of_kind(ask)
    )
}

/// Restricts subjects to facts or findings.
fn of_kind(ask: &Ask<'_>) -> String {
    ask.about.map_or_else(String::new, |about| {
        format!(" AND kind = {}", about.number())
    })
}

/// The way to the rows that are asked for, by the counts of the store.
pub(crate) fn way(ask: &Ask<'_>, [fitting, keys, hosts]: [i64; 3]) -> Way {
    let number = |count: i64| u64::try_from(count).unwrap_or(0);
    let asked = match ask.hosts.len() as u64 {
        0 => number(hosts),
        some => some,
    };
    let part = number(fitting).saturating_mul(asked).saturating_mul(SHARE);
    match part >= number(keys).saturating_mul(number(hosts)) {
        true => Way::Time,
        false => Way::Names,
    }
}

/// The columns of [`Found`], with `$1` and so on for what [`values`] returns.
pub(crate) fn sql(ask: &Ask<'_>, way: Way, dialect: Dialect) -> String {
    let schema = dialect.schema;
    // A sum has no index: the planner is kept from the index that is not the way.
    let (by_time, by_name) = match way {
        Way::Time => ("", " + 0"),
        Way::Names => (" + 0", ""),
    };
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
    let mut named = |column: &str, numbers: String| {
        let wants = format!("span.{column}{by_name} IN ({numbers})");
        wanted.push(match way {
            // Not a join: looked up for each row on the way, in what was found once.
            Way::Time => format!("({wants}) IS TRUE"),
            Way::Names => wants,
        });
    };
    if !ask.hosts.is_empty() {
        let names: Vec<String> = ask.hosts.iter().map(|_| next()).collect();
        let names = names.join(", ");
        named(
            "host",
            format!("SELECT id FROM {schema}host WHERE name IN ({names})"),
        );
    }
    let begins = ask
        .key
        .map(|key| format!("substr(key, 1, {}) = {}", key.chars().count(), next()));
    if begins.is_some() || ask.about.is_some() {
        let begins = begins.unwrap_or_else(|| "true".to_owned());
        named(
            "subject",
            format!(
                "SELECT id FROM {schema}subject WHERE {begins}{}",
                of_kind(ask)
            ),
        );
    }
    match ask.since {
        Some(since) => wanted.push(format!("span.since{by_time} > {}", since.as_second())),
        None => {
            wanted.push("span.value IS NOT NULL".to_owned());
            // All are, and it makes the index the way.
            wanted.push(format!("span.since{by_time} > -{}", i64::MAX));
        }
    }
    let now = ask.since.is_none();
    match dialect.lateral {
        true => cut(&wanted.join(" AND "), now, &unread, ask.most, schema),
        false => joined(wanted, now, &unread, ask.most, schema),
    }
}

/// The newest rows are cut off before any name is looked up for them. What was before and what is next is one look into
/// the index for each.
fn cut(wanted: &str, now: bool, unread: &str, most: u32, schema: &str) -> String {
    let beside = |name: &str, than: &str, order: &str| {
        format!(
            "LATERAL (SELECT {name}.since, {name}.seen, {name}.value FROM {schema}span AS {name}
                      WHERE {name}.host = span.host AND {name}.subject = span.subject AND {name}.since {than} span.since
                      ORDER BY {name}.since{order} LIMIT 1) AS {name}"
        )
    };
    let (before, next) = (beside("before", "<", " DESC"), beside("next", ">", ""));
    let newest = "ORDER BY span.since DESC, span.host DESC, span.subject DESC";
    let fits = match now {
        // That it is null is thought to be rare, and then the names would be looked for row by row.
        true => format!("LEFT JOIN {before} ON true WHERE coalesce(next.since, 0) = 0"),
        false => format!("JOIN {before} ON coalesce(before.value, 0) <> {unread}"),
    };
    format!(
        "SELECT host.name, subject.kind, subject.key, span.since, span.seen, value.text, host.last,
                span.until, span.before_since, span.before_seen, past.text
         FROM (SELECT span.*, next.since AS until, before.since AS before_since, before.seen AS before_seen,
                      before.value AS before_value
               FROM (SELECT * FROM {schema}span AS span WHERE {wanted} {newest}) AS span
               LEFT JOIN {next} ON true {fits} {newest} LIMIT {most}) AS span
         JOIN {schema}host AS host ON host.id = span.host
         JOIN {schema}subject AS subject ON subject.id = span.subject
         LEFT JOIN {schema}value AS value ON value.id = span.value
         LEFT JOIN {schema}value AS past ON past.id = span.before_value
         ORDER BY span.since DESC, host.name, subject.kind DESC, subject.key"
    )
}

/// All in one join, which goes on until there are enough rows.
fn joined(mut wanted: Vec<String>, now: bool, unread: &str, most: u32, schema: &str) -> String {
    let early = format!(
        "FROM {schema}span AS early WHERE early.host = span.host AND early.subject = span.subject
         AND early.since < span.since"
    );
    let next = format!(
        "FROM {schema}span AS next WHERE next.host = span.host AND next.subject = span.subject
         AND next.since > span.since"
    );
    wanted.push(match now {
        true => format!("NOT EXISTS (SELECT 1 {next})"),
        // Without an earlier one this is null, which is not true either.
        false => format!(
            "(SELECT coalesce(early.value, 0) {early} ORDER BY early.since DESC LIMIT 1) <> {unread}"
        ),
    });
    format!(
        "SELECT host.name, subject.kind, subject.key, span.since, span.seen, value.text, host.last,
                (SELECT min(next.since) {next}), before.since, before.seen, past.text
         FROM {schema}span AS span
         JOIN {schema}host AS host ON host.id = span.host
         JOIN {schema}subject AS subject ON subject.id = span.subject
         LEFT JOIN {schema}value AS value ON value.id = span.value
         LEFT JOIN {schema}span AS before ON before.host = span.host AND before.subject = span.subject
              AND before.since = (SELECT max(early.since) {early})
         LEFT JOIN {schema}value AS past ON past.id = before.value
         WHERE {}
         ORDER BY span.since DESC, host.name, subject.kind DESC, subject.key LIMIT {most}",
        wanted.join(" AND ")
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
