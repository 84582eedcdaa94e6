//! Load generators, each in its own file, and the kernel counters that are read before and after a load.
//!
//! A load generator runs a load with the given parameters and returns observations. It does not choose parameters,
//! print or judge.
#![allow(
    clippy::disallowed_methods,
    reason = "this crate starts load generators and owns its scratch files"
)]

pub mod attributes;
pub mod cancel;
pub mod command;
pub mod command_helper;
mod connect;
pub mod counters;
pub mod file_state;
pub mod fio;
pub mod imap;
mod latencies;
pub mod layout;
pub mod measured;
pub mod null;
pub mod printed_figures;
pub mod scratch;
mod watch;

pub use cancel::Cancel;
pub use measured::{Failures, LoadError, LoadResult, Timing};
pub use watch::watch;
