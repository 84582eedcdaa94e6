//! The layers under a path, a disk or a virtual machine, and what each of them costs.
//!
//! [`discover()`] looks through [`assay_host::Host`] and changes nothing.

mod discover;

pub use discover::{StackError, Target, discover};
