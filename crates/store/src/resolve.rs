//! Resolves names of records from users: `12`, `last`, `last~1`, or the start of a uid.

use crate::database::{Kind, Listing};
use crate::{ObservationId, Observer, Store, StoreError, StudyId};
use assay_model::{RunId, TrialId};
use assay_tune::TuneId;

impl Kind {
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Trial => "trial",
            Self::Study => "study",
            Self::Tune => "session",
            Self::Observation => "observation",
        }
    }
}

impl Store {
    /// Returns the run with this name.
    ///
    /// # Errors
    /// No run or several runs match. The error lists them.
    pub fn resolve(&self, asked: &str) -> Result<RunId, StoreError> {
        self.resolve_among(Kind::Run, asked).map(RunId)
    }

    /// Returns the trial with this name: `3`, `last`, `last~1`, or the start of a uid.
    ///
    /// # Errors
    /// No trial or several trials match. The error lists them.
    pub fn resolve_trial(&self, asked: &str) -> Result<TrialId, StoreError> {
        self.resolve_among(Kind::Trial, asked).map(TrialId)
    }

    /// Returns the study run with this name: `3`, `last`, `last~1`, the start of a uid, or the name of a study, which
    /// means its newest run.
    ///
    /// # Errors
    /// No study run or several match. The error lists them.
    pub fn resolve_study(&self, asked: &str) -> Result<StudyId, StoreError> {
        self.resolve_among(Kind::Study, asked).map(StudyId)
    }

    /// Returns the tuning session with this name: `3`, `last`, `last~1`, or the start of a uid.
    ///
    /// # Errors
    /// No session or several sessions match. The error lists them.
    pub fn resolve_tune(&self, asked: &str) -> Result<TuneId, StoreError> {
        self.resolve_among(Kind::Tune, asked).map(TuneId)
    }

    /// Returns the observation with this name: `3`, `last`, `last~1`, or the start of a uid.
    ///
    /// # Errors
    /// No observation or several match. The error lists them.
    pub fn resolve_observation(&self, asked: &str) -> Result<ObservationId, StoreError> {
        self.resolve_among(Kind::Observation, asked)
            .map(ObservationId)
    }

    /// Returns the observation of a command with this name. `last` and `last~1` count only observations of this
    /// command. A number or uid may also belong to an observation of another command.
    ///
    /// # Errors
    /// See [`Store::resolve_observation`].
    pub fn resolve_observation_of(
        &self,
        by: Observer,
        asked: &str,
    ) -> Result<ObservationId, StoreError> {
        if !asked.starts_with("last") {
            return self.resolve_observation(asked);
        }
        let Some(RecordName::Back(back)) = RecordName::parse(asked) else {
            return self.resolve_observation(asked);
        };
        let listing = Listing {
            name: Some(by.name()),
            most: back.saturating_add(1),
            ..Listing::ALL
        };
        let rows = self.sql.list(Kind::Observation, &listing)?;
        let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
        match ids.get(back) {
            Some(id) => Ok(ObservationId(*id)),
            None => Err(missing_among(
                Kind::Observation,
                asked,
                ids.get(..ids.len().min(MOST_LISTED + 1)),
            )),
        }
    }

    fn resolve_among(&self, kind: Kind, asked: &str) -> Result<i64, StoreError> {
        if kind == Kind::Study {
            // The name of a study can be any word.
            let rows = self.sql.names(kind)?;
            if let Some((id, ..)) = rows.iter().find(|(_, _, name)| name == asked) {
                return Ok(*id);
            }
        }
        let found = match RecordName::parse(asked) {
            None if kind != Kind::Study => {
                return Err(StoreError::Name {
                    asked: asked.escape_debug().to_string(),
                });
            }
            None => None,
            Some(RecordName::Back(back)) => self.sql.newest(kind, back, 1)?.pop(),
            Some(RecordName::Number { number, digits }) => {
                let by_number = number.map(|id| self.sql.head(kind, id)).transpose()?;
                match by_number.flatten() {
                    Some(row) => Some(row.id),
                    // Digits that are no number of a record.
                    None => digits
                        .map(|digits| self.resolve_uid(kind, asked, &digits))
                        .transpose()?
                        .flatten(),
                }
            }
            Some(RecordName::Uid(digits)) => self.resolve_uid(kind, asked, &digits)?,
        };
        found.ok_or_else(|| self.missing(kind, asked))
    }

    /// Returns the number of the record whose uid starts with these characters.
    fn resolve_uid(
        &self,
        kind: Kind,
        asked: &str,
        digits: &str,
    ) -> Result<Option<i64>, StoreError> {
        let ids = self.sql.starting_with(kind, digits, MOST_LISTED + 1)?;
        match ids[..] {
            [] => Ok(None),
            [id] => Ok(Some(id)),
            _ => Err(StoreError::Ambiguous {
                asked: asked.to_owned(),
                ids: join_numbers(&ids),
            }),
        }
    }

    /// Builds the error for a missing record. It contains the command that lists the existing records.
    pub(crate) fn missing(&self, kind: Kind, asked: &str) -> StoreError {
        let newest = self.sql.newest(kind, 0, MOST_LISTED + 1);
        missing_among(kind, asked, newest.ok().as_deref())
    }
}

/// Builds the error for a record that is not among these numbers. `ids` is `None` if the numbers cannot be read.
fn missing_among(kind: Kind, asked: &str, ids: Option<&[i64]>) -> StoreError {
    let (nothing, list) = match kind {
        Kind::Run => (
            "nothing has been measured yet: `assay run quick .`",
            "`assay report runs` lists them",
        ),
        Kind::Trial => (
            "nothing was tried yet: `assay advice`",
            "`assay trial --list` shows them",
        ),
        Kind::Study => (
            "none was carried out yet: `assay study`",
            "`assay study --list` shows them",
        ),
        Kind::Tune => (
            "nothing was tuned yet: `assay tune`",
            "`assay tune --list` shows them",
        ),
        Kind::Observation => (
            "nothing was observed yet: `assay why`",
            "`assay why --list` shows them",
        ),
    };
    let known = match ids {
        Some([]) => nothing.to_owned(),
        Some(ids) => format!("there are {} ({list})", join_numbers(ids)),
        None => list.to_owned(),
    };
    StoreError::Missing {
        what: kind.noun(),
        asked: asked.escape_debug().to_string(),
        known,
    }
}

/// Maximum number of record numbers that an error lists.
const MOST_LISTED: usize = 8;

/// Joins the first numbers, as in `12, 7, …`.
fn join_numbers(ids: &[i64]) -> String {
    let shown: Vec<String> = ids.iter().take(MOST_LISTED).map(i64::to_string).collect();
    let more = if ids.len() > MOST_LISTED { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// Name of a record from a user.
#[derive(Debug, PartialEq)]
enum RecordName {
    /// `last` or `last~1`. Contains how many newer records there are.
    Back(usize),
    /// A number. If no record has this number and there are enough digits, the start of a uid.
    Number {
        number: Option<i64>,
        digits: Option<String>,
    },
    /// Start of a uid, in lower case.
    Uid(String),
}

/// Minimum length of a uid prefix.
const UID_CHARS: usize = 4;

impl RecordName {
    /// Parses a name; `None` if the text cannot be the name of a record.
    fn parse(asked: &str) -> Option<Self> {
        if let Some(back) = asked.strip_prefix("last") {
            let back = match back.strip_prefix('~') {
                Some(number) => number.parse().ok(),
                None => back.is_empty().then_some(0),
            };
            return back.map(Self::Back);
        }
        let uid = || {
            let is_uid = asked.len() >= UID_CHARS && asked.bytes().all(|c| c.is_ascii_hexdigit());
            is_uid.then(|| asked.to_ascii_lowercase())
        };
        if !asked.is_empty() && asked.bytes().all(|c| c.is_ascii_digit()) {
            return Some(Self::Number {
                number: asked.parse().ok(),
                digits: uid(),
            });
        }
        uid().map(Self::Uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_people_use() {
        let number = |number, digits: Option<&str>| RecordName::Number {
            number,
            digits: digits.map(str::to_owned),
        };
        for (asked, name) in [
            ("12", number(Some(12), None)),
            ("1234", number(Some(1234), Some("1234"))),
            (
                "99999999999999999999",
                number(None, Some("99999999999999999999")),
            ),
            ("last", RecordName::Back(0)),
            ("last~2", RecordName::Back(2)),
            ("FFFF", RecordName::Uid("ffff".to_owned())),
        ] {
            assert_eq!(RecordName::parse(asked), Some(name), "{asked}");
        }
        for asked in [
            "last~x", "lastly", "last~-1", "fff", "", "-1", "+12", "quick", "1;--", "ü",
        ] {
            assert_eq!(RecordName::parse(asked), None, "{asked}");
        }
    }
}
