//! The layers under a path, a disk or a virtual machine, and what each of them costs.
//!
//! [`discover()`] looks through [`assay_host::Host`] and changes nothing; [`hints()`] says what is
//! known of the settings that were found; [`follow`] takes the settings of a virtual disk for a scratch
//! one; [`measure`] makes scratch things of its own.

mod discover;
pub mod follow;
mod hints;
pub mod measure;

pub use discover::{StackError, Target, discover, users};
pub use hints::hints;
