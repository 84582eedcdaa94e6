//! Candidates and loads for unit tests.

use crate::budget::Costs;
use crate::candidate::{Acts, Applicability, Candidate, LoadShape, Prior, Toggle};
use crate::goal::Goal;
use crate::left_out::Allowed;
use crate::plan::TunePlan;
use assay_model::advice::{RiskLevel, Standing};
use assay_model::{Bytes, Nanos};

/// Returns a candidate that may be tried.
pub(crate) fn candidate(id: &str) -> Candidate {
    Candidate {
        id: id.to_owned(),
        title: id.to_owned(),
        state: Applicability::Applies,
        touches: vec![format!("planted/{id}")],
        excludes: Vec::new(),
        risk: RiskLevel::Low,
        never_kept: None,
        literature: Standing::Conditional,
        literature_text: String::new(),
        acts: Acts::default(),
        share: None,
        before: None,
        prior: Prior::by_literature(Standing::Conditional),
        toggle: Toggle::Cheap,
        switch: Nanos(300_000_000),
    }
}

/// Returns a load of durable direct writes.
pub(crate) fn load() -> LoadShape {
    LoadShape {
        kind: "fio".to_owned(),
        reads: false,
        writes: true,
        flushes: true,
        direct: true,
        opaque: false,
        random: Some(true),
        block_size: Some(Bytes(4096)),
        in_flight: Some(1),
    }
}

/// Returns a plan for these sub-goals and candidates, with a budget of one hour.
pub(crate) fn plan(wants: &[&str], candidates: &[&str]) -> TunePlan {
    let second = Nanos(1_000_000_000);
    TunePlan {
        goal: Goal {
            wants: wants.iter().map(|want| want.parse().unwrap()).collect(),
            guards: Vec::new(),
            margin: 0.03,
        },
        candidates: candidates.iter().map(|id| candidate(id)).collect(),
        allowed: Allowed::default(),
        load: load(),
        limit: None,
        bottom: None,
        diagnose: false,
        anyway: false,
        costs: Costs {
            slot: second,
            washout: Nanos(0),
            start: Nanos(0),
            set_up: second,
            set_back: second,
        },
        budget: Nanos(3600 * second.0),
        between_visits: second,
        together: false,
        keep_nothing: false,
        hold: Nanos(0),
        screen: false,
        seed: 1,
    }
}
