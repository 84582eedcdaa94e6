//! Runs by the names people use: `12`, `last`, `last~1`, the start of a uid.

use crate::{RunRow, Store, StoreError};
use assay_model::run::RunId;

impl Store {
    /// The run that a person means.
    ///
    /// # Errors
    /// No run, or several, fit; the error says which there are.
    pub fn resolve(&self, asked: &str) -> Result<RunId, StoreError> {
        let runs = self.runs()?;
        match find(&runs, asked) {
            Found::One(id) => Ok(id),
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
enum Found {
    One(RunId),
    None,
    Several(Vec<String>),
    NoName,
}

/// Fewer characters of a uid name nothing.
const UID_CHARS: usize = 4;

/// `runs` newest first.
fn find(runs: &[RunRow], asked: &str) -> Found {
    let one = |run: Option<&RunRow>| run.map_or(Found::None, |run| Found::One(run.id));
    if let Some(back) = asked.strip_prefix("last") {
        let back = match back.strip_prefix('~') {
            Some(number) => number.parse::<usize>().ok(),
            None => back.is_empty().then_some(0),
        };
        return back.map_or(Found::NoName, |back| one(runs.get(back)));
    }
    let digits = !asked.is_empty() && asked.bytes().all(|c| c.is_ascii_digit());
    let number = asked.parse::<i64>().ok().filter(|_| digits);
    if let Some(run) = number.and_then(|id| runs.iter().find(|run| run.id.0 == id)) {
        return Found::One(run.id);
    }
    let hex = asked.bytes().all(|c| c.is_ascii_hexdigit());
    match asked.len() {
        UID_CHARS.. if hex => {}
        _ if digits => return Found::None,
        _ => return Found::NoName,
    }
    let asked = asked.to_ascii_lowercase();
    let fitting: Vec<&RunRow> = runs
        .iter()
        .filter(|run| run.uid.starts_with(&asked))
        .collect();
    match fitting[..] {
        [] => Found::None,
        [run] => Found::One(run.id),
        _ => Found::Several(fitting.iter().rev().map(|run| run.id.to_string()).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_model::run::RunState;

    fn row(id: i64, uid: &str) -> RunRow {
        RunRow {
            id: RunId(id),
            uid: uid.to_owned(),
            started: jiff::Timestamp::UNIX_EPOCH,
            ended: None,
            state: RunState::Complete,
            plan: "quick".to_owned(),
            targets: vec![],
            samples: 0,
            planned: 0,
        }
    }

    #[test]
    fn names_people_use() {
        let runs = [row(12, "abcd99"), row(7, "abcd11"), row(3, "ffff00")];
        for (asked, id) in [
            ("12", 12),
            ("last", 12),
            ("last~2", 3),
            ("ffff", 3),
            ("FFFF", 3),
            ("abcd1", 7),
        ] {
            assert_eq!(find(&runs, asked), Found::One(RunId(id)), "{asked}");
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
