//! Merges one store into another. Records are identified by uid and machines by name, so that repeating a merge adds
//! nothing.

use crate::database::Kind;
use crate::{Store, StoreError};
use serde::Serialize;

/// Result of a merge: numbers of records, including histories of machines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Merged {
    /// Number of records that were new in the other store.
    pub new: u64,
    /// Number of existing records that were extended.
    pub grown: u64,
    /// Number of records that already existed completely.
    pub known: u64,
}

impl Merged {
    fn count(&mut self, new: bool, grown: bool) {
        match (new, grown) {
            (true, _) => self.new += 1,
            (false, true) => self.grown += 1,
            (false, false) => self.known += 1,
        }
    }
}

/// Copies every record into another store. Each record is copied completely or not at all. The source stays unchanged.
/// `tell` receives the number of finished records and of all records, and returns whether to continue.
///
/// # Errors
/// A record cannot be read back, or a database reports an error. Records that were copied before the error remain.
pub fn merge(
    from: &Store,
    to: &mut Store,
    tell: &mut dyn FnMut(usize, usize) -> bool,
) -> Result<Merged, StoreError> {
    let runs = from.sql.names(Kind::Run)?;
    let trials = from.sql.names(Kind::Trial)?;
    let studies = from.sql.names(Kind::Study)?;
    let sessions = from.sql.names(Kind::Tune)?;
    let observations = from.sql.names(Kind::Observation)?;
    let hosts = from.hosts()?;
    let mut merged = Merged::default();
    let mut done = 0;
    let all = [
        (Kind::Run, runs),
        (Kind::Trial, trials),
        (Kind::Study, studies),
        (Kind::Tune, sessions),
        (Kind::Observation, observations),
    ];
    let of = all.iter().map(|(_, rows)| rows.len()).sum::<usize>() + hosts.len();
    for (kind, rows) in all {
        // Oldest first, so that numbers in the other store have the same order.
        for (id, ..) in rows.into_iter().rev() {
            if !tell(done, of) {
                return Ok(merged);
            }
            let (new, grown) = match kind {
                Kind::Run => run(from, to, id)?,
                Kind::Trial => trial(from, to, id)?,
                Kind::Study => study(from, to, id)?,
                Kind::Tune => session(from, to, id)?,
                Kind::Observation => observation(from, to, id)?,
            };
            merged.count(new, grown);
            done += 1;
        }
    }
    for (name, ..) in hosts {
        if !tell(done, of) {
            return Ok(merged);
        }
        let (new, grown) = crate::spans::merge_host(from, to, &name)?;
        merged.count(new, grown);
        done += 1;
    }
    tell(done, of);
    Ok(merged)
}

fn run(from: &Store, to: &mut Store, id: i64) -> Result<(bool, bool), StoreError> {
    let id = assay_model::run::RunId(id);
    let (run, samples) = (from.run(id)?, from.samples(id)?);
    let machine = from.machine_of_run(id)?;
    let (there, new) = to.import_run(&run, &samples, machine.as_ref())?;
    if new {
        return Ok((true, false));
    }
    let (known, stored) = (to.run(there)?, to.samples(there)?);
    let grown = samples.len() > stored.len() || (known.ended.is_none() && run.ended.is_some());
    if grown {
        for sample in &samples {
            to.add_sample(there, sample)?;
        }
        to.update_run(&run)?;
    }
    Ok((false, grown))
}

fn trial(from: &Store, to: &mut Store, id: i64) -> Result<(bool, bool), StoreError> {
    let id = assay_model::trial::TrialId(id);
    let (trial, slots) = (from.trial(id)?, from.slots(id)?);
    let machine = from.machine_of_trial(id)?;
    let (there, new) = to.import_trial(&trial, &slots, machine.as_ref())?;
    if new {
        return Ok((true, false));
    }
    let (known, stored) = (to.trial(there)?, to.slots(there)?);
    let grown = slots.len() > stored.len() || (known.ended.is_none() && trial.ended.is_some());
    if grown {
        for slot in &slots {
            to.add_slot(there, slot)?;
        }
        to.update_trial(&trial)?;
    }
    Ok((false, grown))
}

fn session(from: &Store, to: &mut Store, id: i64) -> Result<(bool, bool), StoreError> {
    let id = assay_tune::TuneId(id);
    let machine = from.machine_of_tune(id)?;
    to.import_tune(&from.tune(id)?, machine.as_ref())
}

fn observation(from: &Store, to: &mut Store, id: i64) -> Result<(bool, bool), StoreError> {
    let id = crate::ObservationId(id);
    let machine = from.machine_of_observation(id)?;
    let is_new = to.import_observation(&from.observation(id)?, machine.as_ref())?;
    Ok((is_new, false))
}

fn study(from: &Store, to: &mut Store, id: i64) -> Result<(bool, bool), StoreError> {
    let id = crate::StudyId(id);
    let machine = from.machine_of_study(id)?;
    to.import_study(&from.study(id)?, machine.as_ref())
}
