//! The planner of the tuning loop. From the plan of a session and the outcomes so far, it computes the next step. It
//! has no I/O and no clock; random choices come from the seed of the plan. `assay_judge` contains the estimates and
//! tests.
//!
//! ```text
//! set up → baseline (met? stop) → diagnosis (beyond reach? stop) → each alone once → screen → proofs → whole → hold
//! → keep or revert
//! ```
//!
//! - *Baseline*: visits with pauses between them decide whether the goal is met (`baseline.rs`).
//! - *Diagnosis*: what limits the load, and what its lowest layer reaches (`diagnosis.rs`). Every candidate is ordered
//!   by expected gain per second, or left out with one reason (`left_out.rs`).
//! - *Screen*: six or more cheap candidates in the same fold-over pairs. It selects candidates and proves nothing
//!   (`screen.rs`).
//! - *Proofs*: each of the best candidates, against all changes accepted before, in new pairs (`proof.rs`). All proofs
//!   share an error level of 5 %. A proof that accepts a candidate returns its level.
//! - *Whole*: all accepted changes together against the machine without changes, in new pairs whose number is fixed in
//!   advance, with the guardrails. Its estimate is the gain that is reported (`outcome.rs`).
//! - *Hold*: the same comparison after the changes were in effect for a while, because the slots of all pairs before
//!   are short. A gain that wears off is reverted (`hold.rs`).
//!
//! # Execution
//!
//! [`carry_out`] takes a step from [`TuneSession::next`], lets a [`Driver`] execute it, stores the outcome, and passes
//! it to [`TuneSession::observe`]. [`TuneSession::replay`] rebuilds a session whose process was killed. Only the
//! interrupted step is measured again, with the same order of sides.
//!
//! The driver for a real machine is `assay_measure::tuning`. A session is stored as a [`TuneRecord`].

mod baseline;
mod budget;
mod candidate;
mod diagnosis;
mod driver;
mod goal;
mod hold;
mod left_out;
mod outcome;
mod page_candidate;
mod plan;
mod proof;
mod record;
mod screen;
mod seeds;
mod session;
mod step;

pub use baseline::{BottomRung, GoalState, ROUNDS, STEADY_VISITS, VISITS, Visit, judge_visits};
pub use budget::{Clock, Costs, Row};
pub use candidate::{
    Acts, Applicability, Before, Candidate, LoadShape, OperationShare, Prior, Toggle,
};
pub use diagnosis::{Diagnosis, OperationPart, PartTime};
pub use driver::{Driver, carry_out};
pub use goal::{EXAMPLES, Figure, Goal, GoalError, PrintedWant, Want};
pub use hold::{HOLD_ERROR, Hold, HoldEnd};
pub use left_out::{Allowed, LeftOut, leave_out};
pub use outcome::{ERROR_STATEMENT, Ending, Gain, TOGETHER_STATEMENT};
pub use page_candidate::{candidate_of_page, touched_settings};
pub use plan::{TunePlan, TunePlanError};
pub use proof::{Proof, ProofEnd};
pub use record::{
    CandidateChange, ComparedArms, KeptState, ShownChange, TuneId, TuneRecord, TuneState,
};
pub use screen::{LEAST_CANDIDATES, Screen, Screened, matrix_order};
pub use session::{ReplayError, SessionPhase, TuneSession, Unexpected};
pub use step::{Incident, PairOrder, Stage, Step, StepOutcome, combine};

#[cfg(test)]
mod planted;
