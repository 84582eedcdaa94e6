//! Parses the bytes of a journal, even after a crash or disk error. Each line has a number and a checksum
//! ([`assay_host::seal`]); journals of assay 0.1 have neither.

use super::{JournalStep, Line, StepState};
use assay_host::seal::{has_seal, is_torn_line, unseal};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The readable part of a journal, and a list of its damaged lines.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// The steps by their numbers.
    pub entries: BTreeMap<u64, JournalStep>,
    /// Damaged lines: line number from 1, and description. An incomplete line at the end does not count,
    /// because its step was never started.
    pub damaged: Vec<(usize, String)>,
    /// Number of damaged lines that were already reported to the user.
    pub told: u64,
    /// Whether the run completed or was recovered.
    pub ended: bool,
    /// Whether an undo started and did not complete.
    pub undoing: bool,
    /// Whether lines have numbers and checksums.
    pub(super) sealed: bool,
    /// Number of the next line.
    pub(super) next: u64,
    /// Number of bytes to keep when the journal is continued.
    pub(super) keep: usize,
}

impl Loaded {
    /// Returns whether a step is incomplete, or a damaged line has not been reported yet.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        let open = self
            .entries
            .values()
            .any(|one| one.state == StepState::Open);
        open || !self.ended || self.damaged.len() as u64 > self.told
    }

    fn damage(&mut self, line: usize, what: &str) {
        self.damaged.push((line, what.to_owned()));
    }

    fn take(&mut self, line: Line) {
        match line {
            Line::Intent {
                number,
                step,
                aside,
                target,
            } => {
                let entry = JournalStep {
                    step: *step,
                    aside,
                    target: target.map(Arc::new),
                    found: None,
                    state: StepState::Open,
                };
                self.entries.insert(number, entry);
            }
            Line::Found { number, found } => {
                if let Some(entry) = self.entries.get_mut(&number) {
                    entry.found = Some(found);
                }
            }
            Line::Outcome { number, state } => {
                if let Some(entry) = self.entries.get_mut(&number) {
                    entry.state = state;
                }
            }
            Line::Undoing {} => {
                self.ended = false;
                self.undoing = true;
            }
            Line::End { told } => {
                self.ended = true;
                self.undoing = false;
                self.told = self.told.max(told);
            }
        }
    }
}

/// Parses a journal.
pub(super) fn read(bytes: &[u8]) -> Loaded {
    // A power cut may leave zeros in place of a line.
    let zeros = bytes.iter().rev().take_while(|byte| **byte == 0).count();
    let text = &bytes[..bytes.len() - zeros];
    let mut lines = text.split(|byte| *byte == b'\n');
    // This includes a journal whose first line is incomplete.
    let first = lines.clone().next().unwrap_or_default();
    let sealed = is_torn_line(first, 0) || lines.any(has_seal);
    let mut found = Loaded {
        sealed,
        // Journals of version 0.1 have no end line.
        ended: !sealed,
        ..Loaded::default()
    };
    let mut end = 0;
    for (number, whole) in (1..).zip(text.split_inclusive(|byte| *byte == b'\n')) {
        end += whole.len();
        let line = whole.strip_suffix(b"\n").unwrap_or(whole);
        let is_whole = line.len() < whole.len();
        if line.is_empty() {
            found.keep = end;
            continue;
        }
        let body = match (sealed, unseal(line)) {
            (false, _) => line.to_vec(),
            (true, Some((own, _))) if own < found.next => {
                found.damage(number, "it was written earlier than the lines before it");
                found.keep = end;
                continue;
            }
            (true, Some((own, body))) => {
                if own > found.next {
                    found.damage(number, "lines before it are missing");
                }
                found.next = own.saturating_add(1);
                body
            }
            (true, None) => {
                if is_whole || !is_torn_line(line, found.next) {
                    found.damage(number, "it does not match its checksum");
                    found.next += 1;
                    found.keep = end;
                }
                continue;
            }
        };
        match serde_json::from_slice::<Line>(&body) {
            Ok(line) => found.take(line),
            Err(_) if !sealed && !is_whole => continue,
            Err(error) => found.damage(number, &format!("this assay does not know it ({error})")),
        }
        found.keep = end;
    }
    found
}

#[cfg(test)]
mod tests;
