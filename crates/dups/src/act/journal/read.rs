//! How the bytes of a journal become steps, whatever a crash or a bad disk made of them. Each line has
//! a number and a checksum ([`assay_host::seal`]); journals of assay 0.1 have neither.

use super::{JournalStep, Line, StepState};
use assay_host::seal::{has_seal, is_torn_line, unseal};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A journal as far as it can be read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// The steps by their numbers.
    pub entries: BTreeMap<u64, JournalStep>,
    /// Lines, counted from 1, that are not what was written, and what is wrong with each. What a
    /// crash tore at the end is none of them: nothing was begun that it would have announced.
    pub damaged: Vec<(usize, String)>,
    /// So many damaged lines were told of already.
    pub told: u64,
    /// Whether the run came to its end, or was set right.
    pub ended: bool,
    /// Whether an undo began and did not come to its end.
    pub undoing: bool,
    /// Lines have numbers and checksums.
    pub(super) sealed: bool,
    /// Number of the next line.
    pub(super) next: u64,
    /// How many bytes to keep when it goes on.
    pub(super) keep: usize,
}

impl Loaded {
    /// Whether something is half done, or not told yet.
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

/// Reads a journal.
pub(super) fn read(bytes: &[u8]) -> Loaded {
    // What a power cut leaves where a line was to be.
    let zeros = bytes.iter().rev().take_while(|byte| **byte == 0).count();
    let text = &bytes[..bytes.len() - zeros];
    let mut lines = text.split(|byte| *byte == b'\n');
    // Also one whose first line was cut off.
    let first = lines.clone().next().unwrap_or_default();
    let sealed = is_torn_line(first, 0) || lines.any(has_seal);
    let mut found = Loaded {
        sealed,
        // Those of 0.1 have no line that says so.
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
