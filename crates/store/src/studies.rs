//! Studies that were carried out: one row each, raw.

use crate::resolve::{Found, find};
use crate::{Store, StoreError};
use assay_model::study::StudyRun;
use rusqlite::{OptionalExtension as _, params};

/// Number of a study that was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct StudyId(pub i64);

impl std::fmt::Display for StudyId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Store {
    /// Stores a run of a study, or what has become of one that is stored: it is on the disk when
    /// this returns.
    ///
    /// # Errors
    /// What SQLite says: full, locked, read-only.
    pub fn put_study(&mut self, run: &StudyRun) -> Result<StudyId, StoreError> {
        let body = self.pack("the study", run)?;
        let id = self.connection.query_row(
            "INSERT INTO study_run (uid, started, name, complete, body) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (uid) DO UPDATE SET complete = ?4, body = ?5 RETURNING id",
            params![
                run.uid,
                run.started.to_string(),
                run.study.name,
                run.complete,
                body
            ],
            |row| row.get(0),
        );
        id.map(StudyId).map_err(|source| self.fail(source))
    }

    /// All runs of studies, newest first.
    ///
    /// # Errors
    /// One does not read back, or what SQLite says.
    pub fn studies(&self) -> Result<Vec<(StudyId, StudyRun)>, StoreError> {
        let fail = |source| self.fail(source);
        let mut statement = self
            .connection
            .prepare("SELECT id, body FROM study_run ORDER BY id DESC")
            .map_err(fail)?;
        let mut rows = statement.query([]).map_err(fail)?;
        let mut all = Vec::new();
        while let Some(row) = rows.next().map_err(fail)? {
            let id = StudyId(row.get(0).map_err(fail)?);
            let body: Vec<u8> = row.get(1).map_err(fail)?;
            all.push((id, self.unpack(&format!("study {id}"), &body)?));
        }
        Ok(all)
    }

    /// A run of a study.
    ///
    /// # Errors
    /// It is not there, or does not read back.
    pub fn study(&self, id: StudyId) -> Result<StudyRun, StoreError> {
        let body: Option<Vec<u8>> = self
            .connection
            .query_row("SELECT body FROM study_run WHERE id = ?1", [id.0], |row| {
                row.get(0)
            })
            .optional()
            .map_err(|source| self.fail(source))?;
        let body = body.ok_or_else(|| self.no_study(&id.to_string()))?;
        self.unpack(&format!("study {id}"), &body)
    }

    /// The run of a study that a person means: `3`, `last`, `last~1`, the start of a uid, or the
    /// name of a study for its newest run.
    ///
    /// # Errors
    /// None, or several, fit; the error says which there are.
    pub fn resolve_study(&self, asked: &str) -> Result<StudyId, StoreError> {
        let rows = self.study_names()?;
        if let Some((id, ..)) = rows.iter().find(|(_, _, name)| name == asked) {
            return Ok(StudyId(*id));
        }
        let names: Vec<(i64, &str)> = rows
            .iter()
            .map(|(id, uid, _)| (*id, uid.as_str()))
            .collect();
        match find(&names, asked) {
            Found::One(id) => Ok(StudyId(id)),
            Found::Several(ids) => Err(StoreError::Ambiguous {
                asked: asked.to_owned(),
                ids: ids.join(", "),
            }),
            Found::None | Found::NoName => Err(self.no_study(asked)),
        }
    }

    /// Number, uid and name of each, newest first.
    fn study_names(&self) -> Result<Vec<(i64, String, String)>, StoreError> {
        let fail = |source| self.fail(source);
        let mut statement = self
            .connection
            .prepare("SELECT id, uid, name FROM study_run ORDER BY id DESC")
            .map_err(fail)?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        rows.and_then(Iterator::collect).map_err(fail)
    }

    fn no_study(&self, asked: &str) -> StoreError {
        let known = match self.study_names() {
            Ok(names) if names.is_empty() => "none was carried out yet: `assay study`",
            _ => "`assay study --list` shows them",
        };
        StoreError::NoStudy {
            asked: asked.escape_debug().to_string(),
            known: known.to_owned(),
        }
    }
}
