//! Measures what many people notice on one network, with a server, clients on the people's devices, runs that all
//! clients start together, and a verdict for each person.
//!
//! These modules perform no network I/O: [`role`], [`plan`], [`record`], [`air`], [`player`], [`queue`], [`verdict`],
//! [`cause`], [`trial`], [`invite`], [`wire`] and [`server::hub`].
#![allow(
    clippy::disallowed_methods,
    reason = "it measures a network: it reads the clock that only goes forward"
)]

pub mod air;
pub mod cause;
pub mod client;
pub mod congestion;
pub mod controller;
pub mod invite;
pub mod plan;
pub mod player;
pub mod queue;
pub mod record;
pub mod result;
pub mod role;
pub mod server;
pub mod trial;
pub mod verdict;
pub mod wire;
