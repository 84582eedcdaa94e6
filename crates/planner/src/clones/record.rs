//! Parses the output of `zfs get -Hp`.

use crate::error::PlannerError;
use crate::size;
use std::collections::HashMap;

/// Properties that [`parse_zfs_get`] needs from `zfs get`.
pub const PROPERTIES: &str = "type,used,referenced,written,origin,usedbysnapshots,usedbydataset,usedbychildren,createtxg,userrefs";

/// Properties of one dataset or snapshot. Sizes are in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Full name of the dataset or snapshot.
    pub name: String,
    /// Bytes that are freed if only this object is destroyed (`used`).
    pub used: u64,
    /// Bytes that this object references (`referenced`).
    pub referenced: u64,
    /// Referenced bytes that were written since the previous snapshot (`written`).
    pub written: Option<u64>,
    /// Snapshot from which the dataset was cloned (`origin`).
    pub origin: Option<String>,
    /// Bytes used by snapshots (`usedbysnapshots`).
    pub by_snapshots: Option<u64>,
    /// Bytes used by the dataset itself (`usedbydataset`).
    pub by_dataset: Option<u64>,
    /// Transaction group of the creation (`createtxg`), which determines the order of snapshots.
    pub createtxg: Option<u64>,
    /// Number of holds (`userrefs`), which prevent a destroy.
    pub holds: u64,
    /// Number of the first input line about this object.
    pub line: usize,
}

/// Parses `zfs get -Hp PROPERTIES -t filesystem,volume,snapshot -r POOL`. Each line contains name, property, value and
/// optionally source, separated by tabs. Empty lines and lines that start with `#` are skipped. Sizes may have a unit
/// (`64MiB`), so that users can write such a file by hand to plan datasets. Unknown properties are ignored.
///
/// # Errors
/// [`PlannerError::Record`] with the line: a truncated line, an invalid size, a repeated property, or a record without
/// `used` or `referenced`.
pub fn parse_zfs_get(source: &str, text: &str) -> Result<Vec<Record>, PlannerError> {
    let mut records: Vec<Record> = Vec::new();
    let mut seen: HashMap<&str, (usize, u16)> = HashMap::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let broken = |reason: String| PlannerError::record(source, number, reason);
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let columns: Vec<&str> = line.split('\t').collect();
        let &[name, property, value, ..] = columns.as_slice() else {
            return Err(broken(format!(
                "expected name, property and value separated by tabs, found {} column{}; was the \
                 output of `zfs get -Hp` cut off?",
                columns.len(),
                if columns.len() == 1 { "" } else { "s" }
            )));
        };
        if name.is_empty() || name.starts_with('@') || name.ends_with('@') || columns.len() > 4 {
            return Err(broken(format!(
                "`{}` is not a dataset or snapshot name",
                name.escape_debug()
            )));
        }
        let (at, given) = seen.entry(name).or_insert_with(|| {
            records.push(Record {
                name: name.to_owned(),
                line: number,
                ..Record::default()
            });
            (records.len() - 1, 0)
        });
        let record = &mut records[*at];
        let bytes = || -> Result<Option<u64>, PlannerError> {
            match value {
                "-" => Ok(None),
                "0" => Ok(Some(0)),
                _ => match value.parse::<u64>() {
                    Ok(bytes) => Ok(Some(bytes)),
                    Err(_) => size::parse(value)
                        .map(|(bytes, _)| Some(bytes))
                        .map_err(|_| {
                            broken(format!(
                                "{property} of {} is `{}`, not a number of bytes; use `zfs get -p`",
                                name.escape_debug(),
                                value.escape_debug()
                            ))
                        }),
                },
            }
        };
        let bit: u16 = match property {
            "used" => {
                record.used = bytes()?.unwrap_or(0);
                1
            }
            "referenced" => {
                record.referenced = bytes()?.unwrap_or(0);
                2
            }
            "written" => {
                record.written = bytes()?;
                4
            }
            "origin" => {
                record.origin = (value != "-" && !value.is_empty()).then(|| value.to_owned());
                8
            }
            "usedbysnapshots" => {
                record.by_snapshots = bytes()?;
                16
            }
            "usedbydataset" => {
                record.by_dataset = bytes()?;
                32
            }
            "createtxg" => {
                record.createtxg = bytes()?;
                64
            }
            "userrefs" => {
                record.holds = bytes()?.unwrap_or(0);
                128
            }
            _ => 0,
        };
        if *given & bit != 0 {
            return Err(broken(format!(
                "{property} of {} is given twice; were two recordings joined?",
                name.escape_debug()
            )));
        }
        *given |= bit;
    }
    for record in &records {
        let given = seen[record.name.as_str()].1;
        for (bit, property) in [(1, "used"), (2, "referenced")] {
            if given & bit == 0 {
                return Err(PlannerError::record(
                    source,
                    record.line,
                    format!(
                        "{} has no `{property}`; was the output cut off? Record again with \
                         `zfs get -Hp -r -t filesystem,volume,snapshot {PROPERTIES} POOL`",
                        record.name.escape_debug()
                    ),
                ));
            }
        }
    }
    if records.is_empty() {
        return Err(PlannerError::record(source, 1, "holds no dataset at all"));
    }
    Ok(records)
}
