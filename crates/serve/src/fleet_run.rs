//! Runs in the form in which the state of the fleet contains them. There may be tens of thousands of runs, which belong
//! to a few plans on a few hundred machines. Therefore names that repeat are in memory only once.

use assay_model::Machine;
use assay_model::run::{RunId, RunState};
use assay_store::RunHead;
use jiff::Timestamp;
use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

/// Identity of a run in every store: a hash of its uid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RunKey([u8; 16]);

impl RunKey {
    /// Returns the key of the run with this uid.
    fn of(uid: &str) -> Self {
        let hash = blake3::hash(uid.as_bytes());
        let mut key = [0; 16];
        key.copy_from_slice(&hash.as_bytes()[..16]);
        Self(key)
    }
}

/// A run, as the state of the fleet contains it.
#[derive(Clone, Debug)]
pub(crate) struct FleetRun {
    pub(crate) id: RunId,
    pub(crate) key: RunKey,
    /// Start of the uid, which is random. It decides between runs that are equal otherwise.
    pub(crate) tie: u64,
    pub(crate) started: Timestamp,
    pub(crate) state: RunState,
    pub(crate) planned: u64,
    pub(crate) plan: Arc<str>,
    pub(crate) targets: Arc<[String]>,
    pub(crate) machine: Option<Arc<Machine>>,
}

impl FleetRun {
    /// Returns the name of the machine as lists show it.
    pub(crate) fn machine_name(&self) -> Option<&str> {
        self.machine.as_deref().map(Machine::shown)
    }
}

/// Values that occur often, each of which is in memory only once.
#[derive(Debug)]
pub(crate) struct SharedValues<T: ?Sized>(HashSet<Arc<T>>);

impl<T: ?Sized> Default for SharedValues<T> {
    fn default() -> Self {
        Self(HashSet::new())
    }
}

impl<T: ?Sized + Eq + Hash> SharedValues<T> {
    /// Returns the stored value that equals `value`. If there is none, stores `value` first.
    pub(crate) fn share<V: AsRef<T> + Into<Arc<T>>>(&mut self, value: V) -> Arc<T> {
        if let Some(known) = self.0.get(value.as_ref()) {
            return known.clone();
        }
        let new: Arc<T> = value.into();
        self.0.insert(new.clone());
        new
    }
}

/// Names that occur in the runs of one reading of the store.
#[derive(Debug, Default)]
pub(crate) struct RunNames {
    plans: SharedValues<str>,
    targets: SharedValues<[String]>,
    machines: HashSet<Arc<Machine>>,
}

impl RunNames {
    /// Converts the head of a run, so that it refers to the shared names.
    pub(crate) fn enter(&mut self, head: RunHead) -> FleetRun {
        let machine = head
            .machine
            .map(|machine| match self.machines.get(&machine) {
                Some(known) => known.clone(),
                None => {
                    let new = Arc::new(machine);
                    self.machines.insert(new.clone());
                    new
                }
            });
        let digits = head.uid.get(..16).unwrap_or_default();
        FleetRun {
            id: head.id,
            key: RunKey::of(&head.uid),
            tie: u64::from_str_radix(digits, 16).unwrap_or_default(),
            started: head.started,
            state: head.state,
            planned: head.planned,
            plan: self.plans.share(head.plan),
            targets: self.targets.share(head.targets),
            machine,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_repeat_are_in_memory_once() {
        let mut names = RunNames::default();
        let head = |number: i64, machine: &str| RunHead {
            id: RunId(number),
            uid: format!("{number:032x}"),
            started: Timestamp::UNIX_EPOCH,
            ended: None,
            state: RunState::Complete,
            plan: "nightly".to_owned(),
            targets: vec!["/srv".to_owned()],
            planned: 6,
            machine: Some(Machine {
                id: machine.to_owned(),
                name: None,
            }),
        };
        let runs = [(1, "a"), (2, "b"), (3, "a")].map(|(id, name)| names.enter(head(id, name)));
        assert!(Arc::ptr_eq(&runs[0].plan, &runs[1].plan));
        assert!(Arc::ptr_eq(&runs[0].targets, &runs[2].targets));
        let machine = |at: usize| runs[at].machine.as_ref().unwrap();
        assert!(Arc::ptr_eq(machine(0), machine(2)));
        assert_ne!(machine(0), machine(1));
        assert_ne!(runs[0].key, runs[1].key);
    }
}
