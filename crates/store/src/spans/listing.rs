//! Queries of the history: current values, since when they apply, and earlier values.

use super::{About, UNREAD};
use jiff::Timestamp;
use serde::Serialize;

/// Filter for rows of the history.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ask<'a> {
    /// Names of machines; empty means all machines.
    pub hosts: &'a [String],
    /// Whether to return only facts or only findings; `None` returns both.
    pub about: Option<About>,
    /// Text with which the keys must start.
    pub key: Option<&'a str>,
    /// Time after which changes are returned; `None` returns current values instead.
    pub since: Option<Timestamp>,
    /// Maximum number of rows.
    pub most: u32,
}

/// A value of a key, with the period in which it applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Span {
    /// Name of the machine.
    pub machine: String,
    /// What the row describes: a fact or a finding.
    pub about: About,
    /// Name of the fact, or fingerprint of the finding.
    pub key: String,
    /// Value as JSON; null means that the key was absent.
    pub value: Option<serde_json::Value>,
    /// Whether the key had another value before. If it did not, `since` is the time of the first survey.
    pub changed: bool,
    /// Previous value as JSON; null means that it was absent or is unknown.
    pub before: Option<serde_json::Value>,
    /// Last time at which the previous value was seen. The change happened after this time.
    pub after: Option<Timestamp>,
    /// First time at which the value was seen.
    pub since: Timestamp,
    /// Last time at which the value was seen.
    pub seen: Timestamp,
    /// First time at which another value was seen. Null means that the value still applies, as far as it is readable.
    pub until: Option<Timestamp>,
}

/// A row of the history, as the database returns it.
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

/// Properties in which the databases differ.
#[derive(Clone, Copy)]
pub(crate) struct Dialect {
    /// Prefix of each table name, such as the name of the schema.
    pub(crate) schema: &'static str,
    /// Whether texts are compared by their hash, because only the hash is indexed.
    pub(crate) hashed: bool,
    /// Whether neighbouring rows are looked up with LATERAL, after the newest rows were selected. If this is false, the
    /// query plan follows the index on `since` with all joins, and reads only the rows that are shown.
    pub(crate) lateral: bool,
}

/// Strategy by which the rows of a query are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowStrategy {
    /// Read rows by the index on time, newest first, until there are enough. Used for queries that match many rows.
    Time,
    /// Read rows by the indexes on machines and keys. Used for queries that match few rows.
    Names,
}

/// Inverse of the fraction of matching rows above which the time index is used. If the fraction s of all rows matches,
/// [`RowStrategy::Names`] reads s of all rows, and [`RowStrategy::Time`] reads the shown rows divided by s. Both cost
/// about the same at 1/16 for a year of some hundred machines. The choice is made here, because query planners do not
/// know how many keys start with a text.
const SHARE: u64 = 16;

/// Returns SQL that counts the matching keys, all keys, and all machines, as input for [`way`]. Its parameter is the
/// prefix of the key.
pub(crate) fn counts(ask: &Ask<'_>, schema: &str) -> String {
    format!(
        "SELECT (SELECT count(*) FROM {schema}subject WHERE substr(key, 1, {}) = $1{}),
                (SELECT count(*) FROM {schema}subject), (SELECT count(*) FROM {schema}host)",
        ask.key.unwrap_or_default().chars().count(),
        of_kind(ask)
    )
}

/// Returns an SQL condition that selects facts or findings; empty without a restriction.
fn of_kind(ask: &Ask<'_>) -> String {
    ask.about.map_or_else(String::new, |about| {
        format!(" AND kind = {}", about.number())
    })
}

/// Chooses the strategy for a query from the results of [`counts`]: the number of matching keys, of all keys and of all
/// machines.
pub(crate) fn way(ask: &Ask<'_>, [fitting, keys, hosts]: [i64; 3]) -> RowStrategy {
    let number = |count: i64| u64::try_from(count).unwrap_or(0);
    let asked = match ask.hosts.len() as u64 {
        0 => number(hosts),
        some => some,
    };
    let part = number(fitting).saturating_mul(asked).saturating_mul(SHARE);
    match part >= number(keys).saturating_mul(number(hosts)) {
        true => RowStrategy::Time,
        false => RowStrategy::Names,
    }
}

/// Returns SQL for the columns of [`Found`]. `$1` and so on are the parameters from [`values`].
pub(crate) fn sql(ask: &Ask<'_>, way: RowStrategy, dialect: Dialect) -> String {
    let schema = dialect.schema;
    // An expression has no index, which keeps the planner from using the wrong index.
    let (by_time, by_name) = match way {
        RowStrategy::Time => ("", " + 0"),
        RowStrategy::Names => (" + 0", ""),
    };
    let unread = match dialect.hashed {
        true => format!("md5(text) = md5('{UNREAD}')"),
        false => format!("text = '{UNREAD}'"),
    };
    // The numbers 0 and -1 are never used, so all these rows count as readable.
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
            // Not a join: looked up per row in a result that is computed once.
            RowStrategy::Time => format!("({wants}) IS TRUE"),
            RowStrategy::Names => wants,
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
            // True for all rows; makes the planner use this index.
            wanted.push(format!("span.since{by_time} > -{}", i64::MAX));
        }
    }
    let now = ask.since.is_none();
    match dialect.lateral {
        true => cut(&wanted.join(" AND "), now, &unread, ask.most, schema),
        false => joined(wanted, now, &unread, ask.most, schema),
    }
}

/// Returns SQL that first selects the newest rows, and then looks up names. The previous and the next row of each need
/// one index lookup.
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
        // The planner assumes that null is rare, and would then look up names row by row.
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

/// Returns SQL that joins all tables at once. The database stops when it has enough rows.
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
        // Without an earlier row this is null, which does not match.
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

/// Returns the parameters for the statement of [`sql`].
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
