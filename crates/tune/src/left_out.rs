//! Decides which candidates are not tried. The possible reasons are checked in a fixed order, and the first reason that
//! applies is reported.

use crate::candidate::{Applicability, Candidate, LoadShape, Toggle};
use assay_model::Nanos;
use assay_model::advice::{AccessOrder, Between, CachePath, MovedOperations, RiskLevel, Standing};
use assay_model::criterion::Metric;
use assay_model::trial::Verdict;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a session may change, as far as the user restricts it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowed {
    /// Highest accepted risk: `none`, `low` or `service`. Changes that can lock the user out or
    /// lose data are never accepted.
    pub risk: RiskLevel,
    /// Settings that are never changed. Each entry is a name, or the beginning of a name followed by `*`.
    pub never: Vec<String>,
    /// Reason for `never`, given by the user.
    pub because: String,
}

impl Default for Allowed {
    fn default() -> Self {
        Self {
            risk: RiskLevel::Low,
            never: Vec::new(),
            because: String::new(),
        }
    }
}

/// Reason why a candidate is not tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "why")]
pub enum LeftOut {
    /// The page does not apply to this machine or target.
    DoesNotApply {
        /// Reason from the page.
        because: String,
    },
    /// The setting already has the page's value.
    AlreadySo {
        /// Current value of the setting.
        value: String,
    },
    /// The user excluded the setting.
    Never {
        /// Name of the setting.
        setting: String,
        /// Reason given by the user.
        because: String,
    },
    /// The risk of the change is higher than the user accepts.
    Risk {
        /// Risk of the candidate.
        level: RiskLevel,
    },
    /// The change must not be kept, so there is no use in trying it.
    NeverKept {
        /// Reason why the change must not be kept.
        because: String,
    },
    /// The change takes effect only at the next boot, and a session cannot reboot.
    NeedsReboot,
    /// The literature calls the change useless, obsolete or dangerous.
    Literature {
        /// Assessment of the literature.
        standing: Standing,
        /// Assessment in the literature, as a sentence.
        because: String,
    },
    /// The change is only useful for other kinds of loads.
    OtherLoad {
        /// Kinds of loads for which the change is useful.
        loads: Vec<String>,
        /// Kind of the session's load.
        kind: String,
    },
    /// The change does not influence the objective, but other figures.
    OtherFigure {
        /// Names of the figures that the change influences.
        figures: Vec<String>,
        /// Name of the objective's figure.
        wanted: String,
    },
    /// The change only affects the page cache, which the load bypasses.
    CacheOnly,
    /// The change only influences operations that the load does not perform.
    OtherOperations {
        /// Sentence about the operations that the change influences and the operations of the load.
        because: String,
    },
    /// Even the largest possible gain of the change is smaller than the margin.
    Ceiling {
        /// Name of the part of an operation that the change influences.
        part: String,
        /// Duration of the part.
        takes: Nanos,
        /// Duration of the whole operation.
        of: Nanos,
        /// Largest possible gain, 0.02 for 2 %.
        gain: f64,
        /// Smallest relevant gain, 0.03 for 3 %.
        margin: f64,
    },
    /// An earlier session on this machine decided against the change.
    MeasuredBefore {
        /// Verdict with which the earlier session decided.
        verdict: Verdict,
        /// Session and date of the verdict, as text.
        when: String,
    },
    /// The load failed when only this change was in effect.
    FailsLoad {
        /// Error message of the load.
        error: String,
    },
    /// The screen found no sign of a gain.
    ScreenedOut {
        /// Estimated gain as a natural logarithm.
        effect: f64,
        /// Standard error of the estimated gain.
        error: f64,
    },
    /// A change that was accepted before excludes this candidate.
    Excluded {
        /// Id of the accepted candidate.
        by: String,
    },
    /// The remaining budget is too short to prove the candidate.
    NoTime {
        /// Time that the candidate needs.
        needs: Nanos,
        /// Time that is left for the candidate.
        left: Nanos,
    },
}

/// Returns why a candidate is left out before anything is measured; `None` if it may be tried.
#[must_use]
pub fn leave_out(
    candidate: &Candidate,
    allowed: &Allowed,
    load: &LoadShape,
    objective: Metric,
    margin: f64,
) -> Option<LeftOut> {
    by_present_value(candidate)
        .or_else(|| by_literature(candidate))
        .or_else(|| by_kind(candidate, load))
        .or_else(|| by_page(candidate))
        .or_else(|| by_risk(candidate, allowed))
        .or_else(|| by_load(candidate, load, objective))
        .or_else(|| by_ceiling(candidate, margin))
        .or_else(|| by_history(candidate))
}

fn by_present_value(candidate: &Candidate) -> Option<LeftOut> {
    let Applicability::AlreadySo { value } = &candidate.state else {
        return None;
    };
    Some(LeftOut::AlreadySo {
        value: value.clone(),
    })
}

fn by_page(candidate: &Candidate) -> Option<LeftOut> {
    let Applicability::DoesNotApply { why } = &candidate.state else {
        return None;
    };
    Some(LeftOut::DoesNotApply {
        because: why.clone(),
    })
}

fn by_risk(candidate: &Candidate, allowed: &Allowed) -> Option<LeftOut> {
    let never = |setting: &&String| allowed.never.iter().any(|rule| is_covered(rule, setting));
    if let Some(setting) = candidate.touches.iter().find(never) {
        return Some(LeftOut::Never {
            setting: setting.clone(),
            because: allowed.because.clone(),
        });
    }
    let acceptable = matches!(
        candidate.risk,
        RiskLevel::None | RiskLevel::Low | RiskLevel::Service
    );
    if !acceptable || rank(candidate.risk) > rank(allowed.risk) {
        return Some(LeftOut::Risk {
            level: candidate.risk,
        });
    }
    if candidate.toggle == Toggle::Reboot {
        return Some(LeftOut::NeedsReboot);
    }
    let because = candidate.never_kept.clone()?;
    Some(LeftOut::NeverKept { because })
}

fn is_covered(rule: &str, setting: &str) -> bool {
    match rule.strip_suffix('*') {
        Some(beginning) => setting.starts_with(beginning.trim_end_matches('*')),
        None => rule == setting,
    }
}

fn rank(level: RiskLevel) -> u8 {
    match level {
        RiskLevel::None => 0,
        RiskLevel::Low => 1,
        RiskLevel::Service => 2,
        RiskLevel::Lockout => 3,
        RiskLevel::DataLoss => 4,
    }
}

fn by_literature(candidate: &Candidate) -> Option<LeftOut> {
    let usable = matches!(
        candidate.literature,
        Standing::Confirmed | Standing::Conditional
    );
    (!usable).then(|| LeftOut::Literature {
        standing: candidate.literature,
        because: candidate.literature_text.clone(),
    })
}

fn by_kind(candidate: &Candidate, load: &LoadShape) -> Option<LeftOut> {
    let loads = &candidate.acts.loads;
    let is_other = !loads.is_empty() && !loads.contains(&load.kind);
    is_other.then(|| LeftOut::OtherLoad {
        loads: loads.clone(),
        kind: load.kind.clone(),
    })
}

fn by_load(candidate: &Candidate, load: &LoadShape, objective: Metric) -> Option<LeftOut> {
    let moves = &candidate.acts.moves;
    if !load.opaque && load.direct && moves.cache == Some(CachePath::Buffered) {
        return Some(LeftOut::CacheOnly);
    }
    let operations = &moves.operations;
    let counted =
        operations.is_empty() || operations.iter().any(|one| load.counts(*one, objective));
    let quantity = |metric: &Metric| metric.quantity == objective.quantity;
    if !counted || !(moves.metrics.is_empty() || moves.metrics.iter().any(quantity)) {
        let operations = operations.iter().map(|one| format!("{}.*", one.name()));
        let metrics = moves.metrics.iter().map(Metric::to_string);
        return Some(LeftOut::OtherFigure {
            figures: operations.chain(metrics).collect(),
            wanted: objective.to_string(),
        });
    }
    by_operations(moves, load)
}

/// Returns a reason to leave the candidate out if the load performs none of the operations that the change influences.
fn by_operations(moves: &MovedOperations, load: &LoadShape) -> Option<LeftOut> {
    if load.opaque {
        return None;
    }
    let other = |because: String| Some(LeftOut::OtherOperations { because });
    if moves.cache == Some(CachePath::Direct) && !load.direct {
        return other("acts on direct I/O; the load uses the page cache".to_owned());
    }
    match (moves.durable, load.flushes) {
        (Some(true), false) => {
            return other("acts on durable writes; the load makes none".to_owned());
        }
        (Some(false), true) => {
            return other("acts on writes that are not flushed; the load flushes each".to_owned());
        }
        _ => {}
    }
    match (moves.access, load.random) {
        (Some(AccessOrder::Random), Some(false)) => {
            return other("acts on random access; the load is sequential".to_owned());
        }
        (Some(AccessOrder::Sequential), Some(true)) => {
            return other("acts on sequential access; the load is random".to_owned());
        }
        _ => {}
    }
    if let (Some(range), Some(size)) = (moves.block_size, load.block_size)
        && !range.contains(size)
    {
        return other(format!(
            "acts on blocks of {}; the load's are {size}",
            words(&range)
        ));
    }
    if let (Some(range), Some(depth)) = (moves.in_flight, load.in_flight)
        && !range.contains(depth)
    {
        return other(format!(
            "acts with {} requests in flight; the load has {depth}",
            words(&range)
        ));
    }
    None
}

fn words<T: fmt::Display>(range: &Between<T>) -> String {
    match (&range.from, &range.to) {
        (Some(from), Some(to)) => format!("{from} to {to}"),
        (Some(from), None) => format!("at least {from}"),
        (None, Some(to)) => format!("at most {to}"),
        (None, None) => "any number".to_owned(),
    }
}

fn by_ceiling(candidate: &Candidate, margin: f64) -> Option<LeftOut> {
    let share = candidate.share.as_ref()?;
    let gain = share.ceiling().filter(|gain| *gain < margin)?;
    Some(LeftOut::Ceiling {
        part: share.part.clone(),
        takes: share.takes,
        of: share.of,
        gain,
        margin,
    })
}

/// Returns a reason to leave the candidate out if an earlier session decided against the change. A change that was
/// better in an earlier session is tried again: either it was reverted since then, or the earlier session ran on
/// another machine.
fn by_history(candidate: &Candidate) -> Option<LeftOut> {
    let before = candidate.before.as_ref()?;
    let settled = !matches!(before.verdict, Verdict::Better | Verdict::Undecided);
    settled.then(|| LeftOut::MeasuredBefore {
        verdict: before.verdict,
        when: before.when.clone(),
    })
}

mod reason_words;

#[cfg(test)]
mod tests;
