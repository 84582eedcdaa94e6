//! Fetches records in chunks while a verb runs, so that other messages are not delayed.

use super::FETCH;
use crate::remote::records::{LONGEST, Records};
use assay_protocol::Reply;
use std::time::Instant;

/// State of records that are being fetched.
pub(super) struct Fetch {
    pub(super) request: u64,
    pub(super) bytes: Vec<u8>,
    last: Instant,
    busy: bool,
}

impl Default for Fetch {
    fn default() -> Self {
        Self {
            request: 0,
            bytes: Vec::new(),
            last: Instant::now(),
            busy: false,
        }
    }
}

impl Fetch {
    pub(super) fn is_due(&mut self) -> bool {
        let due = !self.busy && self.last.elapsed() >= FETCH;
        self.busy |= due;
        due
    }

    /// Adds a chunk. Returns the records after the last chunk, else `None`.
    pub(super) fn take(&mut self, reply: Reply) -> Option<Records> {
        match reply {
            Reply::Piece(piece) if self.bytes.len() + piece.len() <= LONGEST => {
                self.bytes.extend(piece);
                return None;
            }
            Reply::Done(_) => {}
            _ => self.bytes.clear(),
        }
        self.busy = false;
        self.last = Instant::now();
        Records::read(&std::mem::take(&mut self.bytes)).ok()
    }
}
