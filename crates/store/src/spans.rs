//! History of machines: values of facts and severities of findings, with the time for which they applied. Only
//! changes are written. An unreadable value is neither a change nor an end.

mod decide;
mod join;
pub(crate) mod listing;

use crate::{Store, StoreError};
use jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;

pub use listing::{Ask, Span};

/// Default number of days for which ended rows are kept.
pub const DAYS: u32 = 2 * 365;
/// Marks a value that was unreadable at the first look and ever since. No real value has this form.
pub(crate) const UNREAD: &str = "?";

/// Kind of a row.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum About {
    /// A fact.
    Fact,
    /// A finding, identified by its fingerprint; its value is the severity.
    Finding,
}

impl About {
    pub(crate) fn number(self) -> i64 {
        match self {
            Self::Fact => 0,
            Self::Finding => 1,
        }
    }

    pub(crate) fn of(number: i64) -> Self {
        match number {
            0 => Self::Fact,
            _ => Self::Finding,
        }
    }
}

/// Kind and key of a row.
pub type Key = (About, String);

/// Observed value of a key. A missing key was looked for and not found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpanValue {
    /// Value as JSON.
    Value(String),
    /// The value could not be read.
    Unread,
}

/// One look at a machine.
#[derive(Clone, Debug)]
pub struct SpanLook<'a> {
    /// Name of the machine.
    pub host: &'a str,
    /// Time in whole seconds.
    pub at: Timestamp,
    /// Set of rules. A key that these rules do not check is not absent. Looks with different scopes are
    /// compared only in common keys.
    pub scope: &'a str,
    /// Observed values.
    pub seen: BTreeMap<Key, SpanValue>,
    /// Rules whose findings could not be determined; earlier findings of these rules may still exist.
    pub lost: Vec<String>,
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) scope: String,
    /// Time since which this scope is used.
    pub(crate) scoped: i64,
    pub(crate) digest: Vec<u8>,
}

/// A row: the value of a key over a time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Row {
    pub(crate) key: Key,
    pub(crate) since: i64,
    /// Last time at which the value was seen; `None` means at the last look.
    pub(crate) seen: Option<i64>,
    /// Value; `None` means that the key was absent.
    pub(crate) value: Option<String>,
}

/// Changes of a machine, written in one transaction.
pub(crate) struct Changes<'a> {
    /// New state of the machine.
    pub(crate) host: &'a Host,
    /// Expected state, to detect other writers; `None` if the machine must not exist.
    pub(crate) expected: Option<&'a Host>,
    /// Rows that are new or have a new end.
    pub(crate) rows: &'a [Row],
    /// Remove all other rows.
    pub(crate) instead: bool,
    /// Remove rows that ended before this time.
    pub(crate) before: i64,
}

impl Store {
    /// Stores a look and returns the number of changed values. A look that is not newer than the last one adds
    /// nothing.
    ///
    /// # Errors
    /// The database reports an error.
    pub fn look(&mut self, look: &SpanLook<'_>) -> Result<usize, StoreError> {
        let at = look.at.as_second();
        let digest = decide::digest(look);
        let before = at - 86_400 * i64::from(self.days()?);
        // Another process may look at the same machine.
        loop {
            let known = self.sql.host(look.host)?;
            if known.as_ref().is_some_and(|host| host.last >= at) {
                return Ok(0);
            }
            let latest = match &known {
                Some(host) if host.digest != digest => self.sql.rows(look.host, true)?,
                _ => Vec::new(),
            };
            let (host, rows, changed) = decide::decide(known.as_ref(), latest, look, &digest);
            let changes = Changes {
                host: &host,
                expected: known.as_ref(),
                rows: &rows,
                instead: false,
                before,
            };
            if self.sql.write(&changes)? {
                return Ok(changed);
            }
        }
    }

    /// Returns the requested rows, newest first.
    ///
    /// # Errors
    /// The database reports an error.
    pub fn spans(&self, ask: &Ask<'_>) -> Result<Vec<Span>, StoreError> {
        self.sql.spans(ask)
    }

    /// Returns the machines with their first and last look.
    ///
    /// # Errors
    /// The database reports an error.
    pub fn hosts(&self) -> Result<Vec<(String, Timestamp, Timestamp)>, StoreError> {
        let time = |second| Timestamp::from_second(second).unwrap_or(Timestamp::UNIX_EPOCH);
        let hosts = self.sql.hosts()?;
        let all = hosts.into_iter();
        Ok(all
            .map(|host| (host.name, time(host.first), time(host.last)))
            .collect())
    }

    /// Returns how many days ended rows are kept.
    ///
    /// # Errors
    /// The database reports an error.
    pub fn days(&self) -> Result<u32, StoreError> {
        Ok(self.sql.days()?.unwrap_or(DAYS))
    }

    /// Sets how many days ended rows are kept. They are removed at the machine's next look.
    ///
    /// # Errors
    /// The database reports an error.
    pub fn keep_days(&mut self, days: u32) -> Result<(), StoreError> {
        self.sql.keep_days(days)
    }

    /// Removes the history of a machine. Returns false if it is unknown.
    ///
    /// # Errors
    /// The database reports an error.
    pub fn forget_host(&mut self, name: &str) -> Result<bool, StoreError> {
        self.sql.forget_host(name)
    }
}

/// Merges the history of a machine into another store. Returns whether it is new, extended or known there.
pub(crate) fn merge_host(
    from: &Store,
    to: &mut Store,
    name: &str,
) -> Result<(bool, bool), StoreError> {
    loop {
        let Some(host) = from.sql.host(name)? else {
            return Ok((false, false));
        };
        let rows = from.sql.rows(name, false)?;
        let known = to.sql.host(name)?;
        let there = to.sql.rows(name, false)?;
        let (merged, joined) = match &known {
            None => (host, rows),
            Some(known) => join::join((known, &there), (&host, &rows)),
        };
        if known.as_ref() == Some(&merged) && joined == there {
            return Ok((false, false));
        }
        let changes = Changes {
            host: &merged,
            expected: known.as_ref(),
            rows: &joined,
            instead: true,
            before: i64::MIN,
        };
        if to.sql.write(&changes)? {
            return Ok((known.is_none(), known.is_some()));
        }
    }
}

#[cfg(test)]
mod tests;
