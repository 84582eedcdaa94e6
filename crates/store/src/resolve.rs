//! Runs by the names people use: `12`, `last`, `last~1`, the start of a uid.

use crate::{Store, StoreError};
use assay_model::run::RunId;

impl Store {
    /// The run that a person means.
    ///
    /// # Errors
    /// No run, or several, fit; the error says which there are.
    pub fn resolve(&self, asked: &str) -> Result<RunId, StoreError> {
        let runs = self.runs()?;
        let names: Vec<(i64, &str)> = runs
            .iter()
            .map(|run| (run.id.0, run.uid.as_str()))
            .collect();
        match find(&names, asked) {
            Found::One(id) => Ok(RunId(id)),
            Found::None => Err(self.no_run(asked)),
            Found::Several(ids) => Err(StoreError::Ambiguous {
                asked: asked.to_owned(),
                ids: ids.join(", "),
            }),
            Found::NoName => Err(StoreError::Name {
                asked: asked.escape_debug().to_string(),
            }),
        }
    }

    pub(crate) fn no_run(&self, asked: &str) -> StoreError {
        let known = match self.runs() {
            Ok(runs) if runs.is_empty() => {
                "nothing has been measured yet: `assay run quick .`".to_owned()
            }
            Ok(runs) => {
                let shown: Vec<String> =
                    runs.iter().take(8).map(|run| run.id.to_string()).collect();
                let more = if runs.len() > 8 { ", …" } else { "" };
                format!(
                    "there are {}{more} (`assay runs` lists them)",
                    shown.join(", ")
                )
            }
            Err(_) => "`assay runs` lists them".to_owned(),
        };
        StoreError::NoRun {
            asked: asked.escape_debug().to_string(),
            known,
        }
    }
}

#[derive(Debug, PartialEq)]
pub(crate) enum Found {
    One(i64),
    None,
    Several(Vec<String>),
    NoName,
}

/// Fewer characters of a uid name nothing.
const UID_CHARS: usize = 4;

/// `rows` are numbers and uids, newest first.
pub(crate) fn find(rows: &[(i64, &str)], asked: &str) -> Found {
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
