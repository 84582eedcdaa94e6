//! Applies the changes that a session kept to the machines of one ring, several machines at the same time. Also undoes
//! these changes. `apply.rs` reads the rings and prints the report.

use super::super::Args;
use super::super::remote::add_record;
use super::Applied;
use crate::context;
use crate::global::Global;
use crate::remote::{ConnectionParameters, Done, RemoteWork};
use assay_loads::Cancel;
use assay_render::text::escape_line;
use assay_tune::{Ending, KeptState, LeftOut, TuneId, TuneSession};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of machines whose changes are applied at the same time.
const SIDE_BY_SIDE: usize = 8;

/// What to do on each machine of a ring.
pub(super) struct RingWork<'a> {
    pub(super) work: &'a RemoteWork,
    pub(super) args: &'a Args,
    pub(super) global: &'a Global,
    pub(super) cancel: &'a Cancel,
}

impl RingWork<'_> {
    /// Applies the changes on all machines of a ring. Calls `tell` for each machine when it is finished. The results
    /// are in the order of the ring.
    pub(super) fn apply(&self, ring: &[String], tell: &(dyn Fn(&Applied) + Sync)) -> Vec<Applied> {
        let is_alone = ring.len() == 1;
        side_by_side(ring, &|host| {
            let applied = match self.cancel.is_cancelled() {
                true => Applied::failed(host, "not begun".to_owned()),
                false => self.apply_on(host, is_alone),
            };
            tell(&applied);
            applied
        })
    }

    /// Undoes the changes that these machines kept, and reports each machine. An interruption by the user does not stop
    /// this function, because it is called after an interruption.
    pub(super) fn undo(&self, kept: &mut [&mut Applied]) {
        let hosts: Vec<(String, Option<TuneId>)> = kept
            .iter()
            .map(|one| (one.host.clone(), one.session))
            .collect();
        let undone = side_by_side(&hosts, &|(host, session)| self.undo_on(host, *session));
        for (one, undone) in kept.iter_mut().zip(undone) {
            match undone {
                Ok(()) => {
                    one.outcome = "undone".to_owned();
                    (one.is_confirmed, one.is_kept) = (false, false);
                }
                Err(error) => eprintln!(
                    "{}: not undone: {}",
                    escape_line(&one.host),
                    escape_line(&format!("{error:#}"))
                ),
            }
        }
    }

    /// Applies the changes on one machine.
    fn apply_on(&self, host: &str, is_alone: bool) -> Applied {
        let done = self.carry(host, self.work, self.cancel, self.args.quiet || !is_alone);
        match done.and_then(|done| self.read_outcome(host, &done)) {
            Ok(applied) => applied,
            Err(error) => {
                let why = escape_line(&format!("{error:#}"));
                Applied::failed(host, format!("failed: {why}"))
            }
        }
    }

    fn carry(
        &self,
        host: &str,
        work: &RemoteWork,
        cancel: &Cancel,
        quiet: bool,
    ) -> anyhow::Result<Done> {
        let remote = &self.args.remote;
        let session = remote.how.session(host);
        let journey = ConnectionParameters {
            session: &session,
            silence: remote.going.silence(),
            quiet,
            stop: &|| cancel.is_cancelled(),
        };
        let mut program = remote.going.program()?;
        journey.go(&mut program, cancel.clone(), |way| {
            way.carry(work, self.global)
        })
    }

    fn read_outcome(&self, host: &str, done: &Done) -> anyhow::Result<Applied> {
        if self.args.dry_run {
            done.pass_on(false)?;
        }
        let Some((id, record)) = done.records.tunes.last() else {
            let outcome = match self.args.dry_run {
                true => "only shown".to_owned(),
                false => format!("failed there with status {}", done.status),
            };
            return Ok(Applied::failed(host, outcome));
        };
        let session = record.replay()?;
        let gain = session.gain().map(|gain| gain.said);
        let ending = match (session.ending(), &record.incident) {
            (Some(ending), _) => ending.to_string(),
            (None, Some(_)) => "interrupted: everything was reverted".to_owned(),
            (None, None) => "it did not end".to_owned(),
        };
        let outcome = match (gain, is_applied_already(&session)) {
            (Some(gain), _) => format!("{ending} ({:+.1} %)", gain * 100.0),
            (None, true) => "everything has these values already".to_owned(),
            (None, false) => ending,
        };
        Ok(Applied {
            host: host.to_owned(),
            is_confirmed: record.incident.is_none() && is_confirmed(&session),
            is_kept: matches!(record.kept, KeptState::Kept { .. }),
            outcome,
            session: Some(*id),
            gain,
        })
    }

    /// Undoes the changes that the session kept on one machine.
    fn undo_on(&self, host: &str, session: Option<TuneId>) -> anyhow::Result<()> {
        let mut work = RemoteWork {
            line: Some(vec!["tune".into()]),
            quiet: true,
            ..RemoteWork::default()
        };
        let store = context::open_store(self.global)?;
        let id = session.ok_or_else(|| anyhow::anyhow!("it has no session"))?;
        let uid = add_record(&mut work, &store, id)?;
        drop(store);
        work.more.push(format!("--undo={uid}").into());
        // The interruption that is the reason for this does not end it.
        let done = self.carry(host, &work, &Cancel::default(), true)?;
        anyhow::ensure!(
            done.status == 0,
            "`assay tune --undo` ended with {}",
            done.status
        );
        Ok(())
    }
}

/// Calls `work` for all items, up to `SIDE_BY_SIDE` at the same time. Returns the results in the order of the items.
fn side_by_side<T: Sync, R: Send>(items: &[T], work: &(dyn Fn(&T) -> R + Sync)) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done: Vec<Mutex<Option<R>>> = items.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE.min(items.len()) {
            scope.spawn(|| {
                while let Some((item, slot)) = {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    items.get(at).zip(done.get(at))
                } {
                    let result = work(item);
                    *slot
                        .lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner) = Some(result);
                }
            });
        }
    });
    let taken = done.into_iter().map(|slot| {
        slot.into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    });
    taken.flatten().collect()
}

/// Returns whether a session confirms the changes. Either the session kept them or met its goal, or every setting
/// already had the new value.
fn is_confirmed(session: &TuneSession) -> bool {
    match session.ending() {
        Some(Ending::Kept { .. } | Ending::Met { .. } | Ending::MetForNow { .. }) => true,
        _ => is_applied_already(session),
    }
}

fn is_applied_already(session: &TuneSession) -> bool {
    let already = |reason: &LeftOut| matches!(reason, LeftOut::AlreadySo { .. });
    session.ending() == Some(&Ending::NoCandidate) && session.left_out().values().all(already)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn some_run_at_the_same_time_and_results_keep_their_order() {
        // Each waits for a second one: one after the other would never end.
        let both = Barrier::new(2);
        let items: Vec<usize> = (0..20).collect();
        let most = AtomicUsize::new(0);
        let now = AtomicUsize::new(0);
        let doubled = side_by_side(&items, &|item| {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            both.wait();
            now.fetch_sub(1, Ordering::SeqCst);
            item * 2
        });
        assert_eq!(
            doubled,
            items.iter().map(|item| item * 2).collect::<Vec<_>>()
        );
        assert!((2..=SIDE_BY_SIDE).contains(&most.load(Ordering::SeqCst)));
        assert!(side_by_side(&[0_u8; 0], &|item| *item).is_empty());
    }
}
