//! Candidates and loads for unit tests.

use crate::candidate::{Acts, Applicability, Candidate, LoadShape, Prior, Toggle};
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
