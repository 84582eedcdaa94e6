//! Measures web servers: checks whether a server may be loaded, finds its capacity, and measures the latency at
//! fractions of the capacity. Records what the servers, this machine and the network did during each load.
//!
//! [`Settings`] determine all steps except the capacity, which is measured first. This crate judges only the capacity,
//! and prints nothing.
#![allow(
    clippy::disallowed_methods,
    reason = "it reads the kernel's counters around a load, on one clock with it, and those of another machine over ssh"
)]

pub mod consent;
mod link;
pub mod list;
mod load;
mod machine;
pub mod many;
mod procfs;
mod quickest_answer;
mod quota;
pub mod record;
mod remote_counters;
mod server;
mod session;
mod sockets;
mod step;
mod target;
mod waits;

pub use consent::Consent;
pub use link::is_here;
pub use load::{AskedError, Ready};
pub use quickest_answer::QuickestAnswer;
pub use remote_counters::{RemoteCounted, There, told};
pub use server::{ServerError, ServerProcesses};
pub use session::{
    CarryError, Loading, Search, Settings, WebEvent, carry_out, carry_out_on, estimate,
};
pub use step::{Bench, Manner, Shape, measure};
pub use target::{ConsentRequest, Family, Target, TargetError, What, find};
