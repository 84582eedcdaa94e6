//! Measuring and changing on another machine over plain ssh.
//!
//! This program goes to the machine, runs there as what it is, with the journal there, and goes away
//! again:
//!
//! ```text
//! here                                    there
//! link ── ssh ── sh (see `boot`) ──────── serve ──── the verb, as if it were typed there
//!   │      frames of `assay_protocol`           │
//!   └── heartbeats ────────────────────────►├──── guard: takes everything back when `serve` is gone
//! ```
//!
//! Who hears nothing from the other for too long ends: [`serve`] asks the verb to end, which takes back
//! what it changed. When that is not possible any more, the guard does it from the journal.
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

/// How long nothing may be heard from the other side when nothing else is said.
pub const SILENCE: Duration = Duration::from_secs(60);

/// How often each side says that it is there.
const HEARTBEAT: Duration = Duration::from_secs(5);
