//! History of machines: values of facts and severities of findings, each with the period in which it applied. A survey
//! reads all values of a machine, but only changes are written. If a value is unreadable for a time, this is not a
//! change and does not end the row of the value.

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
/// Value of a key that was unreadable at the first survey and at all later ones. No real value is equal to this text.
pub(crate) const UNREAD: &str = "?";

/// What a row describes: a fact or a finding.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum About {
    /// A fact, identified by its name.
    Fact,
    /// A finding, identified by its fingerprint. Its value is the severity.
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

/// Kind and key of a row, which identify it within a machine.
pub type Key = (About, String);

/// Value of a key in a survey. If the map has no entry for a key, the survey searched the key and it does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpanValue {
    /// Value that was read, as JSON.
    Value(String),
    /// The value could not be read.
    Unread,
}

/// One survey of a machine: all its facts and findings at one time.
#[derive(Clone, Debug)]
pub struct SpanSurvey<'a> {
    /// Name of the machine.
    pub host: &'a str,
    /// Time of the survey in whole seconds.
    pub at: Timestamp,
    /// Id of the set of checks that ran. A missing key counts as absent only if these checks search it. Surveys with
    /// different scopes are compared only by keys that both of them search.
    pub scope: &'a str,
    /// Value of each key that was found.
    pub seen: BTreeMap<Key, SpanValue>,
    /// Checks whose findings could not be determined. Earlier findings of these checks may still exist.
    pub lost: Vec<String>,
}

/// State of a machine in the history, after its last survey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) scope: String,
    /// Time since which all surveys have had this scope, in seconds since 1970.
    pub(crate) scoped: i64,
    pub(crate) digest: Vec<u8>,
}

/// A value of a key, and the period in which it applied.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Row {
    pub(crate) key: Key,
    pub(crate) since: i64,
    /// Last time at which the value was seen, in seconds since 1970; `None` means that the last survey saw the value.
    pub(crate) seen: Option<i64>,
    /// Value of the key; `None` means that the key was absent.
    pub(crate) value: Option<String>,
}

/// Changes of a machine's history, which are written in one transaction.
pub(crate) struct Changes<'a> {
    /// State of the machine after the changes.
    pub(crate) host: &'a Host,
    /// State of the machine that the database must contain, to detect other writers; `None` if the machine must not
    /// exist.
    pub(crate) expected: Option<&'a Host>,
    /// Rows that are new, or that have a new end.
    pub(crate) rows: &'a [Row],
    /// Whether to remove all other rows of the machine first.
    pub(crate) instead: bool,
    /// Rows that ended before this time are removed, in seconds since 1970.
    pub(crate) before: i64,
}

impl Store {
    /// Stores a survey and returns the number of changed values. Ignores a survey that is not newer than the last one.
    ///
    /// # Errors
    /// The database reports an error.
    pub fn look(&mut self, look: &SpanSurvey<'_>) -> Result<usize, StoreError> {
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

    /// Returns the machines, each with the time of the first and the last survey.
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

    /// Sets how many days ended rows are kept. Older rows are removed at the machine's next survey.
    ///
    /// # Errors
    /// The database reports an error.
    pub fn keep_days(&mut self, days: u32) -> Result<(), StoreError> {
        self.sql.keep_days(days)
    }

    /// Removes the history of a machine. Returns false if the machine is unknown.
    ///
    /// # Errors
    /// The database reports an error.
    pub fn forget_host(&mut self, name: &str) -> Result<bool, StoreError> {
        self.sql.forget_host(name)
    }
}

/// Merges the history of a machine into another store. Returns whether the machine was new, extended or already
/// complete in that store.
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
