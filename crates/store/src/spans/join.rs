//! Merges the histories of one machine from two stores.

use super::{Host, Key, Row, UNREAD};
use std::collections::{BTreeMap, BTreeSet};

/// Merges two histories of a machine. The order of the arguments does not matter, and rows that are in both appear
/// once.
pub(super) fn join(a: (&Host, &[Row]), b: (&Host, &[Row])) -> (Host, Vec<Row>) {
    let newest = match (a.0.last, &a.0.scope) >= (b.0.last, &b.0.scope) {
        true => a.0,
        false => b.0,
    };
    let mut host = newest.clone();
    host.first = a.0.first.min(b.0.first);
    let mut keys: BTreeMap<Key, Vec<Row>> = BTreeMap::new();
    for (known, rows) in [a, b] {
        for row in rows {
            let mut row = row.clone();
            row.seen = Some(row.seen.unwrap_or(known.last));
            keys.entry(row.key.clone()).or_default().push(row);
        }
    }
    let mut all: Vec<Row> = keys.into_values().flat_map(one).collect();
    for row in &mut all {
        // An unreadable value lasts only as long as it was observed, even if that was the last look.
        row.seen = row.seen.filter(|seen| *seen < host.last || unread(row));
    }
    all.sort();
    (host, all)
}

fn unread(row: &Row) -> bool {
    row.value.as_deref() == Some(UNREAD)
}

/// Merges the rows of one key from both stores. If one store first or last saw a value during a row of the other store,
/// that row is split at this time.
fn one(mut rows: Vec<Row>) -> Vec<Row> {
    let begin = rows
        .iter()
        .filter(|row| !unread(row))
        .map(|row| row.since)
        .min();
    // An unreadable value is no evidence of another value.
    let first = rows.iter().map(|row| row.since).min();
    rows.retain(|row| {
        !unread(row) || (Some(row.since) == first && begin.is_none_or(|at| row.since < at))
    });
    let mut rest: BTreeSet<(i64, i64, Option<String>)> = rows
        .iter()
        .map(|row| (row.since, row.seen.unwrap_or(row.since), row.value.clone()))
        .collect();
    let Some(key) = rows.pop().map(|row| row.key) else {
        return Vec::new();
    };
    let mut joined: Vec<(i64, i64, Option<String>)> = Vec::new();
    while let Some((since, seen, value)) = rest.pop_first() {
        let Some(last) = joined.last_mut() else {
            joined.push((since, seen, value));
            continue;
        };
        if last.2 == value {
            last.1 = last.1.max(seen);
        } else if since > last.1 {
            joined.push((since, seen, value));
        } else if since == last.0 {
            // Both rows start at once; the shorter one comes first.
            if seen > last.1 {
                rest.insert((last.1 + 1, seen, value));
            }
        } else {
            if last.1 > seen {
                rest.insert((seen + 1, last.1, last.2.clone()));
            } else if last.1 > since {
                // The value was seen at the end of this time.
                rest.insert((last.1, last.1, last.2.clone()));
            }
            last.1 = since - 1;
            joined.push((since, seen, value));
        }
    }
    let row = |(since, seen, value)| Row {
        key: key.clone(),
        since,
        seen: Some(seen),
        value,
    };
    joined.into_iter().map(row).collect()
}
