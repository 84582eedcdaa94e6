//! Estimates the duration of a run: layout + Σ (ramp + runtime + overhead of the load generator).

use assay_model::plan::{Plan, Slot};
use assay_model::{Bytes, Nanos};

/// Rates from which the duration is estimated. They are updated during the run.
#[derive(Clone, Copy, Debug)]
pub struct PaceEstimate {
    /// Layout rate in bytes per second; `None` before the first layout.
    pub layout: Option<f64>,
    /// Time that a sample takes beyond its ramp and runtime.
    pub overhead: Nanos,
}

/// Assumed layout rate before any measurement: a single hard disk, 150 MB/s.
const UNKNOWN_LAYOUT: f64 = 150e6;

/// Returns how long it takes to lay out this many bytes.
#[must_use]
pub fn layout(bytes: Bytes, pace: &PaceEstimate) -> Nanos {
    Nanos::from_secs_f64(bytes.0 as f64 / pace.layout.unwrap_or(UNKNOWN_LAYOUT).max(1.0))
}

/// Returns how long it takes to measure these slots.
#[must_use]
pub fn estimate_slots<'a>(
    plan: &Plan,
    slots: impl Iterator<Item = &'a Slot>,
    pace: &PaceEstimate,
) -> Nanos {
    let one = |slot: &Slot| {
        let load = plan.workloads[slot.workload].time().0;
        load.saturating_add(pace.overhead.0)
    };
    Nanos(slots.map(one).fold(0, u64::saturating_add))
}

impl PaceEstimate {
    /// Updates the overhead from a finished sample. An exponentially weighted mean makes the estimate adapt to a slow
    /// start or a busy machine.
    pub fn learn(&mut self, wall: Nanos, load: Nanos) {
        let seen = wall.0.saturating_sub(load.0);
        self.overhead = Nanos(
            (self.overhead.0 / 10)
                .saturating_mul(9)
                .saturating_add(seen / 10),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_model::plan::{Settings, builtin_plan};
    use assay_model::workload::Engine;

    #[test]
    fn quick_is_about_a_minute() {
        let settings = Settings {
            targets: vec!["/srv".to_owned()],
            engine: Engine::Libaio,
            seed: 1,
        };
        let plan = builtin_plan("quick").unwrap().resolve(&settings).unwrap();
        let pace = PaceEstimate {
            layout: Some(500e6),
            overhead: Nanos(300_000_000),
        };
        let seconds = (estimate_slots(&plan, plan.order.iter(), &pace).as_secs_f64())
            + layout(plan.file_size, &pace).as_secs_f64();
        assert!((50.0..75.0).contains(&seconds), "{seconds}");
    }

    #[test]
    fn overhead_follows_what_is_seen() {
        let mut pace = PaceEstimate {
            layout: None,
            overhead: Nanos(300_000_000),
        };
        for _ in 0..50 {
            pace.learn(Nanos(2_000_000_000), Nanos(1_000_000_000));
        }
        assert!((950_000_000..=1_000_000_000).contains(&pace.overhead.0));
    }
}
