//! Checks many machines: lists them, opens one ssh session with each, stores what was collected, and explains changes.
//!
//! Nothing is installed on the machines. The script of [`assay_facts::script`] is sent on standard input and returns a
//! bundle. All checks are evaluated locally.
#![allow(
    clippy::disallowed_methods,
    reason = "it starts ssh and keeps what was collected in files of its own"
)]

pub mod alarms;
pub mod changed;
mod followed_state;
pub mod history;
pub mod inventory;
mod lanes;
pub mod line;
pub mod remote;
pub mod resolve;
pub mod round;
pub mod session;

pub use followed_state::collect_seen;
pub use history::{Entry, History};
pub use inventory::{Inventory, InventoryError, Machine};
pub use lanes::IN_LANE;
pub use round::{Outcome, Round};
pub use session::{SessionError, SshSession};
