//! Computes how one survey of a machine changes its history.

use super::{About, Host, Key, Row, SpanSurvey, SpanValue, UNREAD};
use std::collections::{BTreeMap, BTreeSet};

/// Computes a hash of all observed values. If the hash is equal to the previous one, nothing changed.
pub(super) fn digest(look: &SpanSurvey<'_>) -> Vec<u8> {
    let mut hash = blake3::Hasher::new();
    let mut text = |text: &str| {
        hash.update(&(text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    };
    text(look.scope);
    for ((about, key), seen) in &look.seen {
        text(if *about == About::Fact { "f" } else { "!" });
        text(key);
        match seen {
            SpanValue::Value(value) => text(value),
            SpanValue::Unread => text(UNREAD),
        }
    }
    for rule in &look.lost {
        text(rule);
    }
    hash.finalize().as_bytes()[..16].to_vec()
}

/// Returns the machine's new state, the rows to write, and the number of changed values.
pub(super) fn decide(
    known: Option<&Host>,
    latest: Vec<Row>,
    look: &SpanSurvey<'_>,
    digest: &[u8],
) -> (Host, Vec<Row>, usize) {
    let at = look.at.as_second();
    let same_scope = known.is_some_and(|host| host.scope == look.scope);
    let host = Host {
        name: look.host.to_owned(),
        first: known.map_or(at, |host| host.first),
        last: at,
        scope: look.scope.to_owned(),
        scoped: known.filter(|_| same_scope).map_or(at, |host| host.scoped),
        digest: digest.to_vec(),
    };
    let (mut rows, mut changed) = (Vec::new(), 0);
    if known.is_some_and(|host| host.digest == digest) {
        return (host, rows, changed);
    }
    let last = known.map_or(at, |host| host.last);
    let scoped = known.map_or(at, |host| host.scoped);
    let mut latest: BTreeMap<Key, Row> = latest
        .into_iter()
        .map(|row| (row.key.clone(), row))
        .collect();
    let keys: BTreeSet<Key> = latest.keys().chain(look.seen.keys()).cloned().collect();
    for key in keys {
        let old = latest.remove(&key);
        // Keys that these rules have never seen are not absent because the rules do not see them.
        let ours = |row: &Row| same_scope && row.seen.unwrap_or(last) >= scoped;
        let new = match (look.seen.get(&key), &old) {
            (Some(SpanValue::Value(value)), _) => Some(Some(value.clone())),
            (Some(SpanValue::Unread), _) => None,
            (None, Some(row)) if ours(row) && !lost(look, &key) => Some(None),
            (None, _) => None,
        };
        let begin = |since, seen, value| Row {
            key: key.clone(),
            since,
            seen,
            value,
        };
        match (old, new) {
            (None, None) => rows.push(begin(at, Some(at), Some(UNREAD.to_owned()))),
            (None, Some(value)) => {
                if same_scope {
                    // The key was looked for all the time and was absent.
                    rows.push(begin(scoped, Some(last), None));
                    changed += 1;
                }
                rows.push(begin(at, None, value));
            }
            (Some(old), None) => {
                if old.seen.is_none() {
                    rows.push(Row {
                        seen: Some(last),
                        ..old
                    });
                }
            }
            (Some(old), Some(value)) if old.value == value => {
                if old.seen.is_some() {
                    rows.push(Row { seen: None, ..old });
                }
            }
            (Some(old), Some(value)) => {
                changed += usize::from(old.value.as_deref() != Some(UNREAD));
                if old.seen.is_none() {
                    rows.push(Row {
                        seen: Some(last),
                        ..old
                    });
                }
                rows.push(begin(at, None, value));
            }
        }
    }
    (host, rows, changed)
}

/// Returns whether a finding that is missing in the survey may still exist, because its check could not be evaluated.
fn lost(look: &SpanSurvey<'_>, (about, key): &Key) -> bool {
    let rule = key.split_once('@').map_or(key.as_str(), |(rule, _)| rule);
    *about == About::Finding && look.lost.iter().any(|lost| lost == rule)
}
