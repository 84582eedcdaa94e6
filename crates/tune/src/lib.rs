//! The tuning loop as a planner: a session and what was seen, then the next step. Pure: no I/O, no
//! clock; randomness comes from the plan's seed. Estimates and tests are those of `assay_judge`.
//!
//! ```text
//! set up → baseline (met? stop) → diagnosis (beyond reach? stop) → each alone once → screen → proofs → whole → keep or revert
//! ```
//!
//! - *Baseline*: spaced visits settle whether the goal is met (`baseline.rs`).
//! - *Diagnosis*: what limits the load, and what its lowest layer reaches (`diagnosis.rs`). Every candidate
//!   is ordered by expected gain per second, or left out with one reason (`left_out.rs`).
//! - *Screen*: six or more cheap candidates in the same fold-over pairs. It chooses and claims nothing
//!   (`screen.rs`).
//! - *Proofs*: the best few, each against all accepted before, in fresh pairs (`proof.rs`). Together they
//!   spend a level of 5 %. A proof that accepts gives its level back.
//! - *Whole*: all accepted against the machine as it was, in fresh pairs whose number is settled before,
//!   with the guardrails. Its centre is the gain that is shown (`outcome.rs`).
//!
//! # How it is carried out
//! [`carry_out`] asks [`Session::next`] for a step, has a [`Driver`] do it, stores what was seen, and gives
//! it to [`Session::observe`]. A session that was killed is read back with [`Session::replay`]; the step
//! that was cut is measured again with the same order of sides, and nothing else.
//!
//! The driver for a real machine is `assay_measure::tuning`. What is stored of a session is a
//! [`TuneRecord`].

mod baseline;
mod budget;
mod candidate;
mod diagnosis;
mod driver;
mod goal;
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

pub use baseline::{BottomRung, ROUNDS, STEADY_VISITS, Standing, VISITS, Visit, judge_visits};
pub use budget::{Clock, Costs, Row};
pub use candidate::{
    Acts, Applicability, Before, Candidate, LoadShape, OperationShare, Prior, Toggle,
};
pub use diagnosis::{Diagnosis, OperationPart, PartTime};
pub use driver::{Driver, carry_out};
pub use goal::{EXAMPLES, Figure, Goal, GoalError, Want};
pub use left_out::{Allowed, LeftOut, leave_out};
pub use outcome::{ERROR_STATEMENT, Ending, Gain};
pub use page_candidate::{candidate_of_page, touched_settings};
pub use plan::{TunePlan, TunePlanError};
pub use proof::{Proof, ProofEnd};
pub use record::{CandidateChange, KeptState, TuneId, TuneRecord, TuneState};
pub use screen::{LEAST_CANDIDATES, Screen, Screened, matrix_order};
pub use session::{ReplayError, SessionPhase, TuneSession, Unexpected};
pub use step::{Incident, PairOrder, Stage, Step, StepOutcome, combine};

#[cfg(test)]
mod planted;
