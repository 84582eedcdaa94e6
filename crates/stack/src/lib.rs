//! The layers under a path, a disk or a virtual machine, and what each of them costs.
//!
//! [`discover()`] looks through [`assay_host::Host`] and changes nothing; [`hints()`] says what is
//! known of the settings that were found; [`measure`] makes scratch things of its own.

mod discover;
mod hints;
pub mod measure;

pub use discover::{StackError, Target, discover};
pub use hints::hints;
