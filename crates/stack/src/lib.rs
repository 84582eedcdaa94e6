//! The layers under a path, a disk or a virtual machine: [`discover()`] looks through
//! [`assay_host::Host`] and changes nothing; [`hints()`] says what is known of the settings that were
//! found.

mod discover;
mod hints;
pub mod ladder;

pub use discover::{RUNS, StackError, StackTarget, discover, find_users};
pub use hints::collect_hints;
