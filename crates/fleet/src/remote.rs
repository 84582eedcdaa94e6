//! Measures and changes another machine over plain ssh.
//!
//! This program is copied to the machine, runs there with its own journal, and is removed at the end:
//!
//! ```text
//! local                                   remote
//! link ── ssh ── sh (see `boot`) ──────── serve ──── the verb, as if typed on the machine
//!   │      frames of `assay_protocol`           │
//!   └── heartbeats ────────────────────────►├──── guard: rolls everything back when `serve` is gone
//! ```
//!
//! A side that receives nothing for too long ends. [`serve`] then asks the verb to end, and the verb rolls its
//! changes back. If that is impossible, the guard rolls them back from the journal.
#![allow(
    clippy::disallowed_methods,
    reason = "it starts ssh, and the verb on the other machine, and keeps files in a directory of its own"
)]

pub mod boot;
pub mod guard;
mod link;
mod outbox;
mod program;
mod records;
pub mod serve;

pub use link::{Ran, RemoteLink, Speaker, Talk, Wishes};
pub use program::Program;
pub use records::Records;

use std::time::Duration;

/// Default time without contact after which a side ends.
pub const SILENCE: Duration = Duration::from_secs(60);

/// Interval of heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(5);
