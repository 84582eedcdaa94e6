//! QEMU's languages: the monitor that a running QEMU is asked and told with, and the words that its
//! programs take. Guests, image servers and experiments speak them here.
#![allow(
    clippy::disallowed_methods,
    reason = "the monitor waits for answers, no longer than it is told to"
)]

mod option_syntax;
mod qmp;

pub use option_syntax::{cache_option, escape, escape_path};
pub use qmp::{Qmp, QmpError};
