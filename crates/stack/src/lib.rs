//! Finds the layers below a path, a disk or a virtual machine. [`discover()`] reads the machine through
//! [`assay_host::Host`] and changes nothing; [`hints()`] returns known costs of the settings.

mod discover;
mod hints;
pub mod ladder;

pub use discover::{RUNS, StackError, StackTarget, discover, find_users};
pub use hints::collect_hints;
