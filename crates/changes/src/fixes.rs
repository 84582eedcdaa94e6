//! Applies the remedy of a finding.
//!
//! - [`plan`] changes nothing. It determines which lines of which files change, and tests the result on an in-memory
//!   copy of the machine until the finding disappears and no new finding appears.
//! - [`carry_out`] applies exactly this plan through the journal of `assay-changes`, runs the program's own check,
//!   reads everything back, and rolls back if any step fails.
//! - [`StandBy`] is a process that rolls back if the user is locked out. [`OutsideUndo`] makes the machine's scheduler
//!   roll back if the stand-by process has ended too.

mod carry_out;
mod draft_edits;
mod error;
mod line_diff;
mod line_edits;
mod new_files;
mod outside;
mod overlay;
mod plan;
mod program;
mod properties;
mod stand_by;
mod text;

pub use carry_out::{Confirmation, FixOutcome, Wish, carry_out, session_label};
pub use error::FixError;
pub use line_diff::{Hunk, diff_hunks};
pub use line_edits::ModeChange;
pub use outside::{OutsideError, OutsideUndo, Unconfirmed, sweep_outside, undo_unconfirmed};
pub use overlay::Overlay;
pub use plan::{ByHand, FileChange, FixPlan, plan};
pub use properties::PropertyChange;
pub use stand_by::{StandBy, StandByOrder, watch};
pub use text::{FixDocument, empty_document, plan_document, render_plan};
