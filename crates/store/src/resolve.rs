//! Resolves the names that people use for records: `12`, `last`, `last~1`, the start of a uid.

use crate::database::Kind;
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
    /// Resolves the name of a run.
    ///
    /// # Errors
    /// No run or several runs match; the error lists them.
    pub fn resolve(&self, asked: &str) -> Result<RunId, StoreError> {
        self.resolve_among(Kind::Run, asked).map(RunId)
    }

    /// Resolves the name of a trial: `3`, `last`, `last~1`, the start of a uid.
    ///
    /// # Errors
    /// No trial or several trials match; the error lists them.
    pub fn resolve_trial(&self, asked: &str) -> Result<TrialId, StoreError> {
        self.resolve_among(Kind::Trial, asked).map(TrialId)
    }

    /// Resolves the name of a study run: `3`, `last`, `last~1`, the start of a uid, or the name of a study for
    /// its newest run.
    ///
    /// # Errors
    /// None or several match; the error lists them.
    pub fn resolve_study(&self, asked: &str) -> Result<StudyId, StoreError> {
        self.resolve_among(Kind::Study, asked).map(StudyId)
    }

    /// The session of tuning that a person means: `3`, `last`, `last~1`, the start of a uid.
    ///
    /// # Errors
    /// None, or several, fit; the error says which there are.
    pub fn resolve_tune(&self, asked: &str) -> Result<TuneId, StoreError> {
        self.resolve_among(Kind::Tune, asked).map(TuneId)
    }

    /// Resolves the name of an observation: `3`, `last`, `last~1`, the start of a uid.
    ///
    /// # Errors
    /// No observation or several match; the error lists them.
    pub fn resolve_observation(&self, asked: &str) -> Result<ObservationId, StoreError> {
        self.resolve_among(Kind::Observation, asked)
            .map(ObservationId)
    }

    /// Resolves the name of an observation of a verb: `last` and `last~1` count its own only. A number or uid of
    /// another verb is found too.
    ///
    /// # Errors
    /// As [`Store::resolve_observation`].
    pub fn resolve_observation_of(
        &self,
        by: Observer,
        asked: &str,
    ) -> Result<ObservationId, StoreError> {
        if !asked.starts_with("last") {
            return self.resolve_observation(asked);
        }
        let mut rows = self.sql.names(Kind::Observation)?;
        rows.retain(|(_, _, name)| name == by.name());
        self.resolve_in(Kind::Observation, &rows, asked)
            .map(ObservationId)
    }

    fn resolve_among(&self, kind: Kind, asked: &str) -> Result<i64, StoreError> {
        self.resolve_in(kind, &self.sql.names(kind)?, asked)
    }

    /// Resolves a name among records; `rows` contains numbers, uids and names, newest first.
    fn resolve_in(
        &self,
        kind: Kind,
        rows: &[(i64, String, String)],
        asked: &str,
    ) -> Result<i64, StoreError> {
        let named = |(_, _, name): &&(i64, String, String)| kind == Kind::Study && name == asked;
        if let Some((id, ..)) = rows.iter().find(named) {
            return Ok(*id);
        }
        let names: Vec<(i64, &str)> = rows.iter().map(|(id, uid, _)| (*id, &**uid)).collect();
        match find(&names, asked) {
            Found::One(id) => Ok(id),
            Found::Several(ids) => Err(StoreError::Ambiguous {
                asked: asked.to_owned(),
                ids: ids.join(", "),
            }),
            // The name of a study can be any word.
            Found::NoName if kind != Kind::Study => Err(StoreError::Name {
                asked: asked.escape_debug().to_string(),
            }),
            Found::None | Found::NoName => Err(missing_among(kind, asked, Some(rows))),
        }
    }

    /// Builds the error for a missing record, with the command that lists the existing ones.
    pub(crate) fn missing(&self, kind: Kind, asked: &str) -> StoreError {
        missing_among(kind, asked, self.sql.names(kind).ok().as_deref())
    }
}

/// Builds the error for a record that is not among these; `None` if they cannot be read.
fn missing_among(kind: Kind, asked: &str, rows: Option<&[(i64, String, String)]>) -> StoreError {
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
    let known = match rows {
        Some([]) => nothing.to_owned(),
        Some(names) => {
            let shown: Vec<String> = names.iter().take(8).map(|row| row.0.to_string()).collect();
            let more = if names.len() > 8 { ", …" } else { "" };
            format!("there are {}{more} ({list})", shown.join(", "))
        }
        None => list.to_owned(),
    };
    StoreError::Missing {
        what: kind.noun(),
        asked: asked.escape_debug().to_string(),
        known,
    }
}

#[derive(Debug, PartialEq)]
enum Found {
    One(i64),
    None,
    Several(Vec<String>),
    NoName,
}

/// Minimum length of a uid prefix.
const UID_CHARS: usize = 4;

/// Finds a record; `rows` contains numbers and uids, newest first.
fn find(rows: &[(i64, &str)], asked: &str) -> Found {
    let one = |row: Option<&(i64, &str)>| row.map_or(Found::None, |row| Found::One(row.0));
    if let Some(back) = asked.strip_prefix("last") {
        let back = match back.strip_prefix('~') {
            Some(number) => number.parse::<usize>().ok(),
            None => back.is_empty().then_some(0),
        };
        return back.map_or(Found::NoName, |back| one(rows.get(back)));
    }
    let digits = !asked.is_empty() && asked.bytes().all(|c| c.is_ascii_digit());
    let number = asked.parse::<i64>().ok().filter(|_| digits);
    if let Some(row) = number.and_then(|id| rows.iter().find(|row| row.0 == id)) {
        return Found::One(row.0);
    }
    let hex = asked.bytes().all(|c| c.is_ascii_hexdigit());
    match asked.len() {
        UID_CHARS.. if hex => {}
        _ if digits => return Found::None,
        _ => return Found::NoName,
    }
    let asked = asked.to_ascii_lowercase();
    let fitting: Vec<i64> = rows
        .iter()
        .filter(|(_, uid)| uid.starts_with(&asked))
        .map(|row| row.0)
        .collect();
    match fitting[..] {
        [] => Found::None,
        [id] => Found::One(id),
        _ => Found::Several(fitting.iter().rev().map(i64::to_string).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_people_use() {
        let runs = [(12, "abcd99"), (7, "abcd11"), (3, "ffff00")];
        for (asked, id) in [
            ("12", 12),
            ("last", 12),
            ("last~2", 3),
            ("ffff", 3),
            ("FFFF", 3),
            ("abcd1", 7),
        ] {
            assert_eq!(find(&runs, asked), Found::One(id), "{asked}");
        }
        for asked in ["4", "last~3", "99999", "99999999999999999999"] {
            assert_eq!(find(&runs, asked), Found::None, "{asked}");
        }
        for asked in [
            "last~x", "lastly", "last~-1", "fff", "", "-1", "+12", "quick", "1;--", "ü",
        ] {
            assert_eq!(find(&runs, asked), Found::NoName, "{asked}");
        }
        let both = vec!["7".to_owned(), "12".to_owned()];
        assert_eq!(find(&runs, "abcd"), Found::Several(both));
    }
}
