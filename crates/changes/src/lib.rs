//! Reversible changes of a machine, and the journal that takes them back.
//!
//! Nothing is changed or made before the journal on disk says so and says what undoes it. A
//! [`Session`] holds a kernel lock as long as its process lives; [`Journal::recover`] puts back
//! what a dead one left, newest first, reads it back, and may itself be killed at any moment.
#![allow(
    clippy::disallowed_methods,
    reason = "this crate owns its journal, which has to be forced to disk"
)]

mod claims;
mod directory;
mod disk;
mod error;
pub mod fixes;
mod journal;
mod kept;
mod lines;
mod made;
mod never;
mod read;
mod recover;
mod session;
mod setting;
pub mod side_by_side;
mod stored;
mod switch;

pub use claims::Elsewhere;
pub use directory::OwnDirectory;
pub use error::{ChangeError, Orphan};
pub use journal::{Journal, Pending, Recovering};
pub use kept::{Kept, Standing, Waiting};
pub use made::{Made, is_lvm_name};
pub use never::{never_kept, survives_reboot};
pub use recover::{Foreign, Outcome, Recovered};
pub use session::{MadeId, Session};
pub use setting::{AsFound, Origin, Original};
pub use switch::Switch;
