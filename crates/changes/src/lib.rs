//! Reversible changes of a machine, and the journal that takes them back.
//!
//! Nothing is changed or made before the journal on disk says so and says what undoes it. A
//! [`Session`] holds a kernel lock as long as its process lives; [`Journal::recover`] puts back
//! what a dead one left, newest first, reads it back, and may itself be killed at any moment.
#![allow(
    clippy::disallowed_methods,
    reason = "this crate owns its journal, which has to be forced to disk"
)]

mod directory;
mod disk;
mod error;
pub mod fixes;
mod journal;
mod journal_format;
mod kept_changes;
mod machine_claims;
mod never_kept;
mod read;
mod recover;
mod session;
mod setting;
pub mod side_by_side;
mod stored;
mod switch;
mod temporary_objects;

pub use directory::OwnDirectory;
pub use error::{ChangeError, Orphan};
pub use journal::{Journal, Pending, Recovering};
pub use kept_changes::{KeptSession, SessionState, Waiting};
pub use machine_claims::Elsewhere;
pub use never_kept::{never_kept, survives_reboot};
pub use recover::{Foreign, Recovered, RecoveryOutcome};
pub use session::{ChangeSession, MadeId};
pub use setting::{
    AsFound, CurrentValue, Original, ValueOrigin, inspect_setting, join_values, setting_name,
    split_values,
};
pub use switch::Switch;
pub use temporary_objects::{Made, is_lvm_name};
