//! Measures and changes another machine over plain ssh.
//!
//! This program is copied to the machine, runs there with its own journal, and is removed at the end. A verb in this
//! module is an assay command, such as `run`:
//!
//! ```text
//! local                                   remote
//! link ── ssh ── sh (see `boot`) ──────── serve ──── the verb, as if typed on the machine
//!   │      frames of `assay_protocol`           │
//!   └── heartbeats ────────────────────────►├──── guard: rolls everything back when `serve` is gone
//! ```
//!
//! If the client or the server receives nothing for too long, it ends. [`serve`] then stops the verb, which rolls back
//! its changes. If the verb cannot do this, the watchdog in `guard` rolls the changes back from the journal.
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

/// Default time without contact after which the client or the server ends.
pub const SILENCE: Duration = Duration::from_secs(60);

/// Interval at which each side sends a heartbeat.
const HEARTBEAT: Duration = Duration::from_secs(5);
