//! Estimates how long a stack measurement takes.

use assay_measure::runner::estimate::{self, PaceEstimate};
use assay_model::Nanos;
use assay_model::ladder::RungPlace;
use assay_model::run::Run;

/// Time that a sample takes in addition to its load, on the host and in a guest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paces {
    pub host: PaceEstimate,
    pub guest: PaceEstimate,
}

impl Paces {
    pub(crate) fn new() -> Self {
        let pace = |overhead| PaceEstimate {
            layout: None,
            overhead: Nanos(overhead),
        };
        Self {
            host: pace(400_000_000),
            guest: pace(2_000_000_000),
        }
    }

    pub(crate) fn of(&mut self, place: RungPlace) -> &mut PaceEstimate {
        match place {
            RungPlace::Guest => &mut self.guest,
            RungPlace::Host | RungPlace::Nbd => &mut self.host,
        }
    }

    /// Returns how long the remaining slots take after `done` slots.
    pub(crate) fn left(&self, run: &Run, done: usize) -> Nanos {
        let guest = |target: usize| {
            let rung = run
                .ladder
                .as_ref()
                .and_then(|ladder| ladder.rungs.get(target));
            rung.is_some_and(|rung| rung.place == RungPlace::Guest)
        };
        let slots = run.plan.order.get(done..).unwrap_or_default();
        let part = |wanted: bool, pace: &PaceEstimate| {
            let ours = slots.iter().filter(|slot| guest(slot.target) == wanted);
            estimate::estimate_slots(&run.plan, ours, pace).0
        };
        Nanos(part(true, &self.guest).saturating_add(part(false, &self.host)))
    }
}
