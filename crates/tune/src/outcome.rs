//! How a session ends, and the gain that it reports.

use crate::budget::Row;
use crate::hold::HoldEnd;
use crate::step::Incident;
use assay_model::Nanos;
use assay_model::result::Interval;
use assay_model::trial::Judgement;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How a session ends, and what happened to the changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "ending")]
pub enum Ending {
    /// All criteria are met. Nothing was changed.
    Met {
        /// Smallest probability among the criteria, 0 to 1.
        probability: f64,
    },
    /// All criteria seem to be met, but the budget is too short for the visits that would decide this. Nothing was
    /// changed.
    MetForNow {
        /// Smallest probability among the criteria, 0 to 1.
        probability: f64,
        /// Time that the missing visits need.
        needs: Nanos,
    },
    /// Even the lowest layer misses the goal. Nothing was changed.
    Beyond {
        /// Description of the lowest layer that was measured.
        what: String,
        /// Figure of the lowest layer in base units.
        figure: Interval,
    },
    /// Every candidate was left out for a reason, so that nothing can be tried.
    NoCandidate,
    /// No change was proved. All changes were reverted.
    NothingProved,
    /// Each accepted change was proved alone, but not all of them together. All changes were
    /// reverted.
    WholeNotProved,
    /// The accepted changes are proved together, but the user chose to keep nothing. All changes were reverted.
    Proved {
        /// Indices of the proved candidates.
        row: Row,
    },
    /// The accepted changes are kept as one session.
    Kept {
        /// Indices of the kept candidates.
        row: Row,
    },
    /// The accepted changes are proved together in short slots, but not good for longer. All changes were reverted.
    DoesNotLast {
        /// Indices of the proved candidates.
        row: Row,
        /// What the hold showed.
        end: HoldEnd,
    },
    /// The session was interrupted. All changes were reverted.
    Stopped {
        /// Event that interrupted the session.
        incident: Incident,
    },
}

/// Gain that a session reports for all kept changes together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// Gain of all accepted changes together, 0.2 for 20 %. It comes from new pairs whose number was fixed in advance.
    pub said: f64,
    /// 90 % interval of the gain; `None` if the pairs do not bound it.
    pub interval: Option<Interval>,
    /// Number of pairs from which the gain was estimated.
    pub pairs: u32,
    /// Gain that the single proofs predict for all changes together: the product of their improvement factors minus 1,
    /// 0.2 for 20 %.
    pub promised: f64,
}

impl Gain {
    pub(crate) fn of(judgement: &Judgement, promised: f64) -> Self {
        Self {
            said: judgement.ratio.unwrap_or(1.0) - 1.0,
            interval: judgement.interval.map(|interval| Interval {
                low: interval.low - 1.0,
                high: interval.high - 1.0,
                ..interval
            }),
            pairs: judgement.pairs,
            promised: promised.exp_m1(),
        }
    }

    /// Returns whether the changes overlap: the gain of all changes together is clearly smaller than the product of the
    /// single gains.
    #[must_use]
    pub fn is_less_than_its_parts(&self) -> bool {
        self.interval
            .is_some_and(|interval| interval.high < self.promised)
    }
}

/// Paragraph about the error probability of a session, which is the same for every session.
pub const ERROR_STATEMENT: &str = "Nothing is kept that was not proved twice: by itself, against everything kept \
before it, and together with all the rest against the machine as it was, each time in new pairs in randomised \
order. Of sessions on a machine that nothing helps at most one in twenty keeps anything, and of all sessions at \
most one in twenty keeps a change that does nothing. How changes were chosen cannot alter that. The gain shown is \
that of the last proof and not of the search.";

/// Paragraph about the error probability of a session that only proves all changes together.
pub const TOGETHER_STATEMENT: &str = "The changes were proved together, against the machine as it was, in fresh pairs \
in randomised order whose number was fixed before. Of sessions on a machine that they do not help at most one in \
twenty keeps them. A single change among them may do nothing.";

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Met { probability } => write!(
                f,
                "the goal is met ({:.1} % sure); nothing was touched",
                probability * 100.0
            ),
            Self::MetForNow { probability, needs } => write!(
                f,
                "the goal is met for now ({:.1} %); settling it takes {needs}; nothing was touched",
                probability * 100.0
            ),
            Self::Beyond { what, .. } => write!(
                f,
                "the goal cannot be reached: {what} alone misses it; nothing was touched"
            ),
            Self::NoCandidate => f.write_str("no change can move this figure; nothing was touched"),
            Self::NothingProved => {
                f.write_str("nothing was proved to help; the machine is as it was")
            }
            Self::WholeNotProved => {
                f.write_str("the changes are not proved together; the machine is as it was")
            }
            Self::Proved { row } => write!(
                f,
                "{} changes are proved and not kept; the machine is as it was",
                row.len()
            ),
            Self::DoesNotLast {
                end: HoldEnd::Fails { error },
                ..
            } => write!(
                f,
                "the load fails when the changes stay in effect: {error}; the machine is as it was"
            ),
            Self::DoesNotLast { .. } => f.write_str("the gain wears off; the machine is as it was"),
            Self::Kept { row } => write!(f, "{} changes are kept as one session", row.len()),
            Self::Stopped { incident } => {
                write!(f, "stopped: {incident}; the machine is as it was")
            }
        }
    }
}

impl fmt::Display for Incident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stop => f.write_str("by the user"),
            Self::Finish => f.write_str("the user wanted the best so far"),
            Self::GuardCommand { error } => write!(f, "the guard command failed: {error}"),
            Self::Meddled { setting, found } => {
                write!(
                    f,
                    "somebody else set {setting} to {found}; it is left alone"
                )
            }
            Self::TargetGone { error } => write!(f, "the target cannot be used any more: {error}"),
        }
    }
}
