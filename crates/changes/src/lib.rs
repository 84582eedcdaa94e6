//! Reversible changes of a machine, and the journal with which they are rolled back. Before assay changes a setting or
//! creates an object, the journal on disk records the action and how to undo it. A [`ChangeSession`] holds a kernel
//! lock while its process lives. [`Journal::recover`] rolls back the changes of ended processes, newest first, and
//! reads back each setting. Recovery itself may be killed at any time and repeated.
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
