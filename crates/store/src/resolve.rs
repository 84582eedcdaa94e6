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
        find(&runs, asked).ok_or_else(|| self.no_run(asked))
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

/// `runs` newest first.
fn find(runs: &[RunRow], asked: &str) -> Option<RunId> {
    if let Ok(number) = asked.parse::<i64>()
        && let Some(run) = runs.iter().find(|run| run.id.0 == number)
    {
        return Some(run.id);
    }
    if let Some(back) = asked.strip_prefix("last") {
        let back: usize = match back.strip_prefix('~') {
            Some(number) => number.parse().ok()?,
            None if back.is_empty() => 0,
            None => return None,
        };
        return runs.get(back).map(|run| run.id);
    }
    let mut fitting = runs
        .iter()
        .filter(|run| asked.len() >= 4 && run.uid.starts_with(asked));
    let first = fitting.next()?;
    fitting.next().is_none().then_some(first.id)
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
            ("abcd1", 7),
        ] {
            assert_eq!(find(&runs, asked), Some(RunId(id)), "{asked}");
        }
        for asked in ["4", "last~3", "last~x", "lastly", "abcd", "fff", "", "-1"] {
            assert_eq!(find(&runs, asked), None, "{asked}");
        }
    }
}
