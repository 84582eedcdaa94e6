//! What many people notice on one network: a server, clients on their devices, a run that all begin together,
//! and a verdict for each person.
//!
//! What is pure lies beside what is not: [`role`], [`plan`], [`record`], [`air`], [`player`], [`queue`],
//! [`verdict`], [`cause`], [`trial`], [`invite`], [`wire`] and [`server::hub`] know no network.
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
