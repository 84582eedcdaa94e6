//! Copies results from a remote machine to the local store, as new records of that machine. The records never replace
//! records of other machines.

use assay_model::run::Run;
use assay_model::trial::{Slot, Trial};
use assay_model::{Machine, Sample};
use assay_store::{Store, StoreError};
use assay_tune::{TuneId, TuneRecord};
use serde::{Deserialize, Serialize};

/// Maximum size of a document in bytes. A trial of 100,000 pairs has about ten million bytes.
pub(crate) const LONGEST: usize = 256 << 20;

/// Runs, trials and tuning sessions as they were measured, without their evaluation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Records {
    /// Machine to which the records belong; `None` if unknown.
    pub machine: Option<Machine>,
    /// Runs with their samples.
    pub runs: Vec<(Run, Vec<Sample>)>,
    /// Trials with their slots.
    pub trials: Vec<(Trial, Vec<Slot>)>,
    /// Tuning sessions with their numbers. A number is unique only within one store.
    #[serde(default)]
    pub tunes: Vec<(TuneId, TuneRecord)>,
}

/// Reason why records of another machine were refused.
#[derive(Debug, thiserror::Error)]
pub enum RecordsError {
    /// The document is invalid.
    #[error("what it measured cannot be read: {0}")]
    Form(#[source] serde_json::Error),
    /// A record has an invalid uid, or a uid that already exists.
    #[error("it sent a record whose name {0} is another's, or is none: it is not taken")]
    Name(String),
    /// The local store returned an error.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Records {
    /// Reads all records of a store.
    ///
    /// # Errors
    /// The database reported an error.
    pub fn of(store: &Store, machine: Option<Machine>) -> Result<Self, StoreError> {
        let mut all = Self {
            machine,
            ..Self::default()
        };
        for row in store.runs()? {
            all.runs.push((store.run(row.id)?, store.samples(row.id)?));
        }
        for trial in store.trials()? {
            let slots = store.slots(trial.id)?;
            all.trials.push((trial, slots));
        }
        all.tunes = store.tunes()?;
        // In order of creation.
        all.tunes.reverse();
        all.runs.reverse();
        all.trials.reverse();
        Ok(all)
    }

    /// Parses a document of records.
    ///
    /// # Errors
    /// [`RecordsError::Form`].
    pub fn read(bytes: &[u8]) -> Result<Self, RecordsError> {
        serde_json::from_slice(bytes).map_err(RecordsError::Form)
    }

    /// Encodes the records as a document.
    ///
    /// # Errors
    /// [`RecordsError::Form`].
    pub fn write(&self) -> Result<Vec<u8>, RecordsError> {
        serde_json::to_vec(self).map_err(RecordsError::Form)
    }

    /// Returns whether there are no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.trials.is_empty() && self.tunes.is_empty()
    }

    /// Stores the records in a store that was opened for their machine, and assigns numbers. `ours` contains the uids
    /// of records that were sent to the machine to be continued. An existing record is replaced if it is in `ours`, and
    /// otherwise refused.
    ///
    /// # Errors
    /// [`RecordsError`]. Records before the error are stored.
    pub fn keep(&mut self, store: &mut Store, ours: &[String]) -> Result<(), RecordsError> {
        for (run, samples) in &mut self.runs {
            check(&run.uid)?;
            match store.resolve(&run.uid) {
                Ok(id) if ours.contains(&run.uid) => {
                    run.id = id;
                    store.update_run(run)?;
                }
                Ok(_) => return Err(RecordsError::Name(run.uid.clone())),
                Err(_) => store.create_run(run)?,
            }
            for sample in samples {
                store.add_sample(run.id, sample)?;
            }
        }
        for (trial, slots) in &mut self.trials {
            check(&trial.uid)?;
            match store.resolve_trial(&trial.uid) {
                Ok(id) if ours.contains(&trial.uid) => {
                    trial.id = id;
                    store.update_trial(trial)?;
                }
                Ok(_) => return Err(RecordsError::Name(trial.uid.clone())),
                Err(_) => store.create_trial(trial)?,
            }
            for slot in slots {
                store.add_slot(trial.id, slot)?;
            }
        }
        for (id, tune) in &mut self.tunes {
            check(&tune.uid)?;
            let is_known = store.resolve_tune(&tune.uid).is_ok();
            if is_known && !ours.contains(&tune.uid) {
                return Err(RecordsError::Name(tune.uid.clone()));
            }
            *id = store.put_tune(tune)?;
        }
        Ok(())
    }
}

/// Checks that a uid consists of 128 bits in hexadecimal, because another text could refer to an existing record.
fn check(uid: &str) -> Result<(), RecordsError> {
    match Machine::is_id(uid) {
        true => Ok(()),
        false => Err(RecordsError::Name(
            uid.escape_debug().take(40).collect::<String>(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_model::plan::{Settings, builtin_plan};
    use assay_model::run::Origin;
    use assay_model::workload::Engine;
    use assay_model::{Facts, RunId};

    fn run(uid: &str) -> Run {
        let settings = Settings {
            targets: vec!["/srv".to_owned()],
            engine: Engine::Libaio,
            seed: 1,
        };
        Run {
            id: RunId(0),
            uid: uid.to_owned(),
            assay_version: "0".to_owned(),
            started: jiff::Timestamp::UNIX_EPOCH,
            ended: None,
            state: assay_model::run::RunState::Running,
            origin: Origin::Measured,
            plan: builtin_plan("quick").unwrap().resolve(&settings).unwrap(),
            targets: vec![],
            facts: Facts::default(),
            remarks: vec![],
            ladder: None,
        }
    }

    fn records(uid: &str) -> Records {
        Records {
            runs: vec![(run(uid), Vec::new())],
            ..Records::default()
        }
    }

    #[test]
    fn what_is_here_is_not_replaced_by_what_another_machine_sends() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(&dir.path().join("s.db")).unwrap();
        let (mine, new) = ("ab".repeat(16), "cd".repeat(16));
        store.create_run(&mut run(&mine)).unwrap();
        let mut hostile = records(&mine);
        hostile.runs[0].0.remarks.push("mine now".to_owned());
        let refused = hostile.keep(&mut store, &[]);
        assert!(matches!(refused, Err(RecordsError::Name(_))), "{refused:?}");
        assert!(store.run(RunId(1)).unwrap().remarks.is_empty());
        // Words that refer to another record are invalid names.
        for odd in ["last", "1", "abab", "", "../x"] {
            let refused = records(odd).keep(&mut store, &[odd.to_owned()]);
            assert!(matches!(refused, Err(RecordsError::Name(_))), "{odd:?}");
        }
        // A record that was sent to be continued may come back.
        hostile
            .keep(&mut store, std::slice::from_ref(&mine))
            .unwrap();
        assert_eq!(store.run(RunId(1)).unwrap().remarks.len(), 1);
        let mut fresh = records(&new);
        fresh.keep(&mut store, &[]).unwrap();
        assert_eq!(fresh.runs[0].0.id, RunId(2));
    }

    #[test]
    fn records_come_through_as_they_are() {
        let all = records(&"ab".repeat(16));
        let read = Records::read(&all.write().unwrap()).unwrap();
        assert_eq!(read.runs, all.runs);
        for garbage in [&b""[..], b"{", b"[]", b"{\"runs\":1}"] {
            assert!(Records::read(garbage).is_err());
        }
    }
}
