//! Watches running measurements. Measurements write each sample into the store, so it is enough to watch the store. One
//! task for all streams compares the mark of the store once a second, and reads a record only after a change. The task
//! ends when there are no streams.

use crate::answer::Refusal;
use crate::live_state::{LiveState, RecordKind, read_state};
use crate::site::Site;
use crate::store_access::ContentMark;
use assay_store::StoreError;
use axum::body::Bytes;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// Interval at which the mark of the store is compared.
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);

/// Kind and number of a watched record.
pub(crate) type RecordKey = (RecordKind, i64);

/// An event that all streams of a record send.
#[derive(Clone, Debug)]
pub(crate) struct LiveEvent {
    pub(crate) bytes: Bytes,
    /// Whether no event follows.
    pub(crate) is_last: bool,
}

impl LiveEvent {
    /// Formats the state of a record as an event.
    pub(crate) fn of_state(state: &LiveState) -> Self {
        let name = if state.is_running { "progress" } else { "end" };
        let text = format!("event: {name}\ndata: {}\n\n", serde_json::json!(state));
        Self {
            bytes: text.into(),
            is_last: !state.is_running,
        }
    }

    /// Returns the event that the record was deleted or that the store does not exist any more.
    fn gone() -> Self {
        Self {
            bytes: Bytes::from_static(b"event: gone\ndata: {}\n\n"),
            is_last: true,
        }
    }
}

/// A record that at least one stream follows.
#[derive(Debug)]
struct WatchedRecord {
    events: watch::Sender<LiveEvent>,
    /// Content of the last event: number of measured parts, and whether the measurement is running.
    shown: (u64, bool),
    /// Whether the record must be read the next time, whatever the mark is. A sample may have been stored before the
    /// record was added.
    is_new: bool,
}

/// All watched records of a server.
#[derive(Debug, Default)]
pub(crate) struct LiveWatch {
    watched: Mutex<Watched>,
}

#[derive(Debug, Default)]
struct Watched {
    records: HashMap<RecordKey, WatchedRecord>,
    has_task: bool,
    /// How often the task has read a record.
    #[cfg(test)]
    reads: usize,
}

impl LiveWatch {
    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the events of a record that is already watched; `None` for any other record.
    fn follow(&self, key: RecordKey) -> Option<watch::Receiver<LiveEvent>> {
        let watched = self.lock();
        Some(watched.records.get(&key)?.events.subscribe())
    }

    /// Adds a record whose state was just read. Returns its events, and whether the task must be started.
    fn enter(&self, key: RecordKey, state: &LiveState) -> (watch::Receiver<LiveEvent>, bool) {
        let mut watched = self.lock();
        let record = watched.records.entry(key).or_insert_with(|| WatchedRecord {
            events: watch::Sender::new(LiveEvent::of_state(state)),
            shown: (state.done, state.is_running),
            is_new: true,
        });
        let events = record.events.subscribe();
        let needs_task = !std::mem::replace(&mut watched.has_task, true);
        (events, needs_task)
    }

    /// Removes the records that no stream follows. Returns the remaining records, and whether one of them is new.
    /// Returns `None` if no record remains, so that the task ends.
    fn list_followed(&self) -> Option<(Vec<RecordKey>, bool)> {
        let mut watched = self.lock();
        watched
            .records
            .retain(|_, record| record.events.receiver_count() > 0);
        if watched.records.is_empty() {
            watched.has_task = false;
            return None;
        }
        let keys = watched.records.keys().copied().collect();
        let has_new = watched.records.values().any(|record| record.is_new);
        Some((keys, has_new))
    }

    /// Sends an event if the state of a record has changed.
    fn send(&self, key: RecordKey, state: Option<&LiveState>) {
        let mut watched = self.lock();
        #[cfg(test)]
        {
            watched.reads += 1;
        }
        let Some(record) = watched.records.get_mut(&key) else {
            return;
        };
        record.is_new = false;
        let is_last = match state {
            Some(state) => {
                let shown = (state.done, state.is_running);
                if shown == record.shown {
                    return;
                }
                record.shown = shown;
                record.events.send_replace(LiveEvent::of_state(state));
                !state.is_running
            }
            None => {
                record.events.send_replace(LiveEvent::gone());
                true
            }
        };
        if is_last {
            // Followers still receive the last event.
            watched.records.remove(&key);
        }
    }
}

/// Returns the events of a record. Starts the task if this is the first watched record.
///
/// # Errors
/// The record does not exist, or the store cannot be read.
pub(crate) async fn follow_record(
    site: &Arc<Site>,
    kind: RecordKind,
    name: String,
) -> Result<watch::Receiver<LiveEvent>, Refusal> {
    let reader = site.clone();
    let read = tokio::task::spawn_blocking(move || {
        let read = reader.store.read(|store| {
            let key = (kind, kind.resolve(store, &name)?);
            if let Some(events) = reader.live.follow(key) {
                return Ok((events, false));
            }
            let state = read_state(store, key.0, key.1)?;
            Ok(reader.live.enter(key, &state))
        })?;
        read.ok_or_else(|| Refusal::missing("There is no store."))
    });
    let (events, needs_task) = match read.await {
        Ok(read) => read?,
        Err(_) => return Err(Refusal::missing("The record could not be read.")),
    };
    if needs_task {
        tokio::spawn(watch_store(site.clone()));
    }
    Ok(events)
}

/// Compares the mark of the store regularly, until no stream follows a record any more.
async fn watch_store(site: Arc<Site>) {
    let mut last = None;
    loop {
        tokio::time::sleep(INTERVAL).await;
        let Some((keys, has_new)) = site.live.list_followed() else {
            return;
        };
        let looking = site.clone();
        let look = tokio::task::spawn_blocking(move || {
            let mark = look_at_store(&looking, &keys, has_new, last.as_ref());
            mark.or(last)
        });
        // After a panic everything is read again.
        last = look.await.unwrap_or(None);
    }
}

/// Reads the followed records if the store has changed since the mark `last`. Returns the new mark; `None` if the store
/// must be read again.
fn look_at_store(
    site: &Site,
    keys: &[RecordKey],
    has_new: bool,
    last: Option<&ContentMark>,
) -> Option<ContentMark> {
    // An error shows when the store is read, and says whether the store is gone.
    let mark = site.store.mark().ok();
    if mark.is_some() && mark.as_ref() == last && !has_new {
        return mark;
    }
    let states = site.store.read(|store| {
        let read = |key: &RecordKey| (*key, read_state(store, key.0, key.1));
        Ok(keys.iter().map(read).collect::<Vec<_>>())
    });
    let states = match states {
        Ok(Some(states)) => states,
        // A locked store is looked at again.
        Err(StoreError::Busy { .. }) => return None,
        Ok(None) | Err(_) => {
            keys.iter().for_each(|key| site.live.send(*key, None));
            return None;
        }
    };
    let mut is_busy = false;
    for (key, state) in states {
        match state {
            Ok(state) => site.live.send(key, Some(&state)),
            Err(StoreError::Busy { .. }) => is_busy = true,
            Err(_) => site.live.send(key, None),
        }
    }
    mark.filter(|_| !is_busy)
}

#[cfg(test)]
mod tests;
