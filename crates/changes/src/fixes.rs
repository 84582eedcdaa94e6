//! Carries out the remedy of a finding.
//!
//! [`plan`] settles it without touching anything: which lines of which files become what, tried on a
//! machine in memory until the finding is gone there and no other has come. [`carry_out`] makes exactly
//! that through the journal of `assay-changes`, asks the program itself, reads everything back, and takes
//! it back when any of these fails. [`StandBy`] is the process that takes it back when the user was locked
//! out, and [`OutsideUndo`] lets the machine do so when that process is gone as well.

mod carry_out;
mod error;
mod line_diff;
mod outside;
mod overlay;
mod plan;
mod program;
mod stand_by;
mod text;

pub use carry_out::{Confirmation, FixOutcome, Wish, carry_out, session_label};
pub use error::FixError;
pub use line_diff::{Hunk, diff_hunks};
pub use outside::{OutsideError, OutsideUndo, Unconfirmed, sweep_outside, undo_unconfirmed};
pub use overlay::Overlay;
pub use plan::{ByHand, FileChange, FixPlan, plan};
pub use stand_by::{StandBy, StandByOrder, watch};
pub use text::{FixDocument, empty_document, plan_document, render_plan};
