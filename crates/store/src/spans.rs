//! What was true of machines, and from when to when: facts, and findings with how bad they are. What is written is what
//! changed. What could not be read is neither a change nor an end.

mod decide;
mod join;
pub(crate) mod listing;

use crate::{Store, StoreError};
use jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;

pub use listing::{Ask, Span};

/// Days that what is over is kept, unless the store says otherwise.
pub const DAYS: u32 = 2 * 365;
/// What stands for what could not be read from the first look on. No value is written like this.
pub(crate) const UNREAD: &str = "?";

/// What a row is about.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum About {
    /// A fact.
    Fact,
    /// A finding, by what names it; its value is how bad it is.
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

/// What a key names.
pub type Key = (About, String);

/// What was seen of a key; one that was looked for and is not there is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpanValue {
    /// Its value, as JSON.
    Value(String),
    /// It could not be read.
    Unread,
}

/// One look at a machine.
#[derive(Clone, Debug)]
pub struct SpanLook<'a> {
    /// What the machine is called.
    pub host: &'a str,
    /// When, in whole seconds.
    pub at: Timestamp,
    /// By which rules: what they do not look for is not absent. Looks with another scope are compared only in what
    /// both saw.
    pub scope: &'a str,
    /// What was seen.
    pub seen: BTreeMap<Key, SpanValue>,
    /// Whose findings of the rule could not be asked: all that were there may still be.
    pub lost: Vec<String>,
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) scope: String,
    /// Since when it is looked at by this scope.
    pub(crate) scoped: i64,
    pub(crate) digest: Vec<u8>,
}

/// A row: a value of a key over a time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Row {
    pub(crate) key: Key,
    pub(crate) since: i64,
    /// The last time that it was seen; as of the last look when there is none.
    pub(crate) seen: Option<i64>,
    /// None: it was not there.
    pub(crate) value: Option<String>,
}

/// What is written of a machine, in one transaction.
pub(crate) struct Changes<'a> {
    /// The machine as it is to be.
    pub(crate) host: &'a Host,
    /// As it must be, so that nobody wrote meanwhile; none when it must not be there.
    pub(crate) expected: Option<&'a Host>,
    /// Rows that are new, or have another end.
    pub(crate) rows: &'a [Row],
    /// Whether all others go.
    pub(crate) instead: bool,
    /// What was over before this goes.
    pub(crate) before: i64,
}

impl Store {
    /// Keeps what a look saw: how many values changed. A look that is not newer than the last one adds nothing.
    ///
    /// # Errors
    /// What the database says.
    pub fn look(&mut self, look: &SpanLook<'_>) -> Result<usize, StoreError> {
        let at = look.at.as_second();
        let digest = decide::digest(look);
        let before = at - 86_400 * i64::from(self.days()?);
        // Somebody else may look at the same machine at this moment.
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

    /// The rows that are asked for, the newest first.
    ///
    /// # Errors
    /// What the database says.
    pub fn spans(&self, ask: &Ask<'_>) -> Result<Vec<Span>, StoreError> {
        self.sql.spans(ask)
    }

    /// Machines that were looked at: name, first and last time.
    ///
    /// # Errors
    /// What the database says.
    pub fn hosts(&self) -> Result<Vec<(String, Timestamp, Timestamp)>, StoreError> {
        let time = |second| Timestamp::from_second(second).unwrap_or(Timestamp::UNIX_EPOCH);
        let hosts = self.sql.hosts()?;
        let all = hosts.into_iter();
        Ok(all
            .map(|host| (host.name, time(host.first), time(host.last)))
            .collect())
    }

    /// How many days what is over is kept.
    ///
    /// # Errors
    /// What the database says.
    pub fn days(&self) -> Result<u32, StoreError> {
        Ok(self.sql.days()?.unwrap_or(DAYS))
    }

    /// Says how many days what is over is kept from now on. It is let go when the machine is looked at the next time.
    ///
    /// # Errors
    /// What the database says.
    pub fn keep_days(&mut self, days: u32) -> Result<(), StoreError> {
        self.sql.keep_days(days)
    }

    /// Forgets a machine: what was true of it, and when. False when it was not known.
    ///
    /// # Errors
    /// What the database says.
    pub fn forget_host(&mut self, name: &str) -> Result<bool, StoreError> {
        self.sql.forget_host(name)
    }
}

/// What is known of the machines of one store into another: whether each is new there, has grown, or was known.
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
