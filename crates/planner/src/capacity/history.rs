//! Parses histories of storage use: the number of used bytes over time.

use crate::error::PlannerError;
use crate::size;
use jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;

/// Columns for `zfs list -Hp -t snapshot -o` that [`parse_snapshots`] needs.
pub const SNAPSHOT_COLUMNS: &str = "name,creation,used,referenced,written";

/// Number of used bytes at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "Point")]
pub struct UsagePoint {
    /// Time in seconds since 1970.
    pub time: i64,
    /// Used bytes.
    pub used: u64,
}

/// A snapshot, as listed by `zfs list`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZfsSnapshot {
    /// Name of the dataset that the snapshot belongs to.
    pub dataset: String,
    /// Creation time in seconds since 1970.
    pub time: i64,
    /// Bytes that only this snapshot references.
    pub used: u64,
    /// Bytes that the snapshot references.
    pub referenced: u64,
    /// Bytes that were written since the previous snapshot and that this snapshot references.
    pub written: u64,
}

/// Parses `zfs list -Hp -t snapshot -o name,creation,used,referenced,written`.
///
/// # Errors
/// [`PlannerError::Record`] for truncated lines and invalid numbers.
pub fn parse_snapshots(source: &str, text: &str) -> Result<Vec<ZfsSnapshot>, PlannerError> {
    let mut snapshots = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let broken = |reason: String| PlannerError::record(source, index + 1, reason);
        let columns: Vec<&str> = line.split('\t').collect();
        let &[name, time, used, referenced, written] = columns.as_slice() else {
            return Err(broken(format!(
                "expected the 5 columns of `zfs list -Hp -t snapshot -o {SNAPSHOT_COLUMNS}`, found {}",
                columns.len()
            )));
        };
        let number = |what: &str, text: &str| {
            text.parse::<u64>().map_err(|_| {
                broken(format!(
                    "{what} is `{}`, not a number; use -p",
                    text.escape_debug()
                ))
            })
        };
        let Some((dataset, _)) = name.split_once('@') else {
            return Err(broken(format!("`{}` is no snapshot", name.escape_debug())));
        };
        snapshots.push(ZfsSnapshot {
            dataset: dataset.to_owned(),
            time: i64::try_from(number("creation", time)?)
                .map_err(|_| broken("creation is beyond all time".into()))?,
            used: number("used", used)?,
            referenced: number("referenced", referenced)?,
            written: number("written", written)?,
        });
    }
    Ok(snapshots)
}

/// Returns the bytes that snapshots occupy in addition to the data. All bytes that `written` counts still exist in a
/// snapshot; the data itself is what the newest snapshot references. The first snapshot of a dataset counts with all
/// bytes that it references. If the dataset is a clone, it shares these bytes with its origin, and the result is an
/// upper bound.
#[must_use]
pub fn snapshot_held_bytes(snapshots: &[ZfsSnapshot]) -> u64 {
    by_dataset(snapshots)
        .values()
        .map(|list| {
            let later = list.iter().skip(1).map(|snapshot| snapshot.written);
            let all = later.fold(list[0].referenced, u64::saturating_add);
            all.saturating_sub(list[list.len() - 1].referenced)
        })
        .fold(0, u64::saturating_add)
}

/// Groups the snapshots by dataset, oldest first; no group is empty.
fn by_dataset(snapshots: &[ZfsSnapshot]) -> BTreeMap<&str, Vec<&ZfsSnapshot>> {
    let mut by_dataset: BTreeMap<&str, Vec<&ZfsSnapshot>> = BTreeMap::new();
    for s in snapshots {
        by_dataset.entry(&s.dataset).or_default().push(s);
    }
    for list in by_dataset.values_mut() {
        list.sort_by_key(|s| s.time);
    }
    by_dataset
}

/// Returns, for the time of each snapshot, the sum of the referenced bytes of all datasets. Each dataset counts with
/// its latest snapshot up to this time.
///
/// Snapshots occupied additional space ([`snapshot_held_bytes`]), but the earlier amounts are unknown, because
/// destroyed snapshots are not listed. The series starts when every dataset that still gets snapshots has one, so that
/// a first snapshot does not look like growth.
#[must_use]
pub fn referenced_series(snapshots: &[ZfsSnapshot]) -> Vec<UsagePoint> {
    let mut first: BTreeMap<&str, i64> = BTreeMap::new();
    for s in snapshots {
        let seen = first.entry(&s.dataset).or_insert(s.time);
        *seen = (*seen).min(s.time);
    }
    let begin = first.values().copied().max().unwrap_or(0);
    let mut sorted: Vec<&ZfsSnapshot> = snapshots.iter().collect();
    sorted.sort_by_key(|s| s.time);
    let mut now: BTreeMap<&str, u64> = BTreeMap::new();
    let mut total = 0u64;
    let mut points: Vec<UsagePoint> = Vec::new();
    for s in sorted {
        let before = now.insert(&s.dataset, s.referenced).unwrap_or(0);
        total = total.saturating_sub(before).saturating_add(s.referenced);
        if s.time < begin {
            continue;
        }
        match points.last_mut() {
            Some(last) if last.time == s.time => last.used = total,
            _ => points.push(UsagePoint {
                time: s.time,
                used: total,
            }),
        }
    }
    points
}

/// Returns the fraction of the data that is rewritten per day. Divides `written` of all snapshots, except each
/// dataset's first snapshot, by referenced bytes and time. Returns `None` if no dataset has two snapshots.
#[must_use]
pub fn daily_churn(snapshots: &[ZfsSnapshot]) -> Option<f64> {
    let (mut written, mut byte_days) = (0.0, 0.0);
    for list in by_dataset(snapshots).values() {
        for pair in list.windows(2) {
            written += pair[1].written as f64;
            byte_days +=
                pair[1].referenced as f64 * (pair[1].time - pair[0].time) as f64 / 86_400.0;
        }
    }
    (byte_days > 0.0).then(|| written / byte_days)
}

/// Parses a history. Each line contains a date or time (`2026-01-31`, RFC 3339, or seconds since 1970) and the used
/// bytes, separated by white space.
///
/// # Errors
/// [`PlannerError::Record`] for an invalid line.
pub fn parse_history(source: &str, text: &str) -> Result<Vec<UsagePoint>, PlannerError> {
    let mut points = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let broken = |reason: String| PlannerError::record(source, index + 1, reason);
        let Some((when, used)) = line.trim().split_once(char::is_whitespace) else {
            return Err(broken(
                "expected a date and a size, such as `2026-01-31 1.5TiB`".into(),
            ));
        };
        let time = when
            .parse::<i64>()
            .ok()
            .or_else(|| when.parse::<Timestamp>().ok().map(|t| t.as_second()))
            .or_else(|| {
                let date = when.parse::<jiff::civil::Date>().ok()?;
                let zoned = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
                Some(zoned.timestamp().as_second())
            })
            .ok_or_else(|| {
                broken(format!(
                    "`{}` is no date, time or number of seconds",
                    when.escape_debug()
                ))
            })?;
        let used = match used.trim() {
            "0" => 0,
            used => {
                size::parse(used)
                    .map_err(|error| broken(error.to_string()))?
                    .0
            }
        };
        points.push(UsagePoint { time, used });
    }
    points.sort_by_key(|point| point.time);
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_list_becomes_a_series() {
        let text = "p/a@1\t1000\t0\t100\t100\np/b@1\t1000\t0\t50\t50\np/a@2\t87400\t0\t120\t30\n";
        let snapshots = parse_snapshots("zfs list", text).unwrap();
        assert_eq!(
            referenced_series(&snapshots),
            [
                UsagePoint {
                    time: 1000,
                    used: 150
                },
                UsagePoint {
                    time: 87400,
                    used: 170
                }
            ]
        );
        assert!((daily_churn(&snapshots).unwrap() - 30.0 / 120.0).abs() < 1e-12);
    }

    #[test]
    fn what_snapshots_hold_is_more_than_what_the_newest_refers_to() {
        // 100 bytes of data; 30 rewritten and 10 added, then 50 deleted: the three snapshots hold 140.
        let text = "p/a@1\t1000\t0\t100\t100\np/a@2\t87400\t0\t110\t40\np/a@3\t173800\t0\t60\t0\n\
                    p/b@1\t1000\t0\t7\t7\n";
        let snapshots = parse_snapshots("zfs list", text).unwrap();
        assert_eq!(snapshot_held_bytes(&snapshots), 80);
        assert_eq!(snapshot_held_bytes(&[]), 0);
        // The list starts later: everything that the first snapshot references still exists.
        assert_eq!(snapshot_held_bytes(&snapshots[1..3]), 50);
    }

    #[test]
    fn half_read_output_is_named() {
        for (text, why) in [
            ("p/a@1\t1000\t0\t100", "found 4"),
            ("p/a\t1000\t0\t100\t1", "no snapshot"),
            ("p/a@1\tMon\t0\t100\t1", "use -p"),
        ] {
            assert!(
                parse_snapshots("x", text)
                    .unwrap_err()
                    .to_string()
                    .contains(why)
            );
        }
        let points = parse_history("h", "# t\n2026-01-01 1TiB\n1767312000 2TiB\n").unwrap();
        assert_eq!(points[1].time - points[0].time, 86_400);
        assert!(
            parse_history("h", "yesterday 1TiB")
                .unwrap_err()
                .to_string()
                .contains("line 1")
        );
    }
}
