//! Interfaces of QEMU: the monitor protocol (QMP), and the option syntax of QEMU's programs. Guests, image servers and
//! experiments use this crate.
#![allow(
    clippy::disallowed_methods,
    reason = "the monitor waits for answers, no longer than it is told to"
)]

mod option_syntax;
mod qmp;

pub use option_syntax::{cache_option, escape, escape_path};
pub use qmp::{Qmp, QmpError};
