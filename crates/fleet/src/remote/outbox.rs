//! Sends all output through one thread, so that a measurement never waits for a connection that hangs.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Maximum number of bytes in the queue. When the queue is full, the output of a verb blocks until the other side reads
/// or is given up.
const ROOM: usize = 4 << 20;

#[derive(Default)]
struct State {
    waiting: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Whether writing failed or was given up.
    gone: bool,
    /// Whether the queue is closed, so that no more bytes are added.
    closed: bool,
    busy: bool,
}

/// A queue of bytes that a thread writes to a connection.
#[derive(Clone, Default)]
pub(crate) struct Outbox {
    shared: Arc<(Mutex<State>, Condvar)>,
}

impl Outbox {
    /// Creates a queue whose bytes a separate thread writes to `line`, in order.
    pub(crate) fn to(mut line: impl Write + Send + 'static) -> Self {
        let new = Self::default();
        let outbox = new.clone();
        std::thread::spawn(move || {
            while let Some(bytes) = outbox.take() {
                let written = line.write_all(&bytes).and_then(|()| line.flush());
                outbox.taken(written.is_err());
            }
        });
        new
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let waited = self.shared.1.wait(state);
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the next bytes to write; `None` at the end, when the connection is closed too.
    fn take(&self) -> Option<Vec<u8>> {
        let mut state = self.state();
        loop {
            if state.gone {
                return None;
            }
            if let Some(bytes) = state.waiting.pop_front() {
                state.bytes -= bytes.len();
                state.busy = true;
                self.shared.1.notify_all();
                return Some(bytes);
            }
            if state.closed {
                return None;
            }
            state = self.wait(state);
        }
    }

    fn taken(&self, failed: bool) {
        let mut state = self.state();
        state.busy = false;
        state.gone |= failed;
        self.shared.1.notify_all();
    }

    /// Adds bytes immediately, however long the queue is. Intended for heartbeats and answers, of which there are few.
    pub(crate) fn put(&self, bytes: Vec<u8>) {
        let mut state = self.state();
        if !state.gone {
            state.bytes += bytes.len();
            state.waiting.push_back(bytes);
            self.shared.1.notify_all();
        }
    }

    /// Waits until the queue has room, then adds bytes. Discards the bytes if writing has failed or was given up.
    pub(crate) fn put_when_there_is_room(&self, bytes: Vec<u8>) {
        let mut state = self.state();
        while !state.gone && state.bytes > ROOM {
            state = self.wait(state);
        }
        drop(state);
        self.put(bytes);
    }

    /// Stops writing, and wakes the threads that wait for room.
    pub(crate) fn give_up(&self) {
        self.state().gone = true;
        self.shared.1.notify_all();
    }

    /// Returns whether writing failed or was given up.
    pub(crate) fn is_gone(&self) -> bool {
        self.state().gone
    }

    /// Returns the number of bytes in the queue.
    pub(crate) fn waits(&self) -> usize {
        self.state().bytes
    }

    /// Closes the connection after the queued bytes are written.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.shared.1.notify_all();
    }

    /// Waits until all bytes are written, at most `most`.
    pub(crate) fn flush(&self, most: std::time::Duration) {
        let until = std::time::Instant::now() + most;
        let mut state = self.state();
        while !state.gone && (state.busy || !state.waiting.is_empty()) {
            let left = until.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.shared.1.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn everything_comes_out_in_order() {
        let (mut read, write) = std::io::pipe().unwrap();
        let outbox = Outbox::to(write);
        for byte in 0..100u8 {
            outbox.put_when_there_is_room(vec![byte]);
        }
        outbox.flush(Duration::from_secs(5));
        outbox.close();
        let mut all = Vec::new();
        std::io::Read::read_to_end(&mut read, &mut all).unwrap();
        assert_eq!(all, (0..100).collect::<Vec<u8>>());
    }

    #[test]
    fn who_waits_for_a_line_that_hangs_goes_on_when_it_is_given_up() {
        let (_read, write) = std::io::pipe().unwrap();
        let outbox = Outbox::to(write);
        let other = outbox.clone();
        let waits = std::thread::spawn(move || {
            for _ in 0..100 {
                other.put_when_there_is_room(vec![0; 256 << 10]);
            }
        });
        std::thread::sleep(Duration::from_millis(50));
        assert!(!waits.is_finished());
        outbox.give_up();
        waits.join().unwrap();
        assert!(outbox.is_gone());
    }
}
