//! Test networks: a server, several clients ("people"), and one bottleneck with a queue between them. All parts are in
//! unnamed network namespaces and end with the process.
//!
//! The bottleneck is implemented in user space, because not every kernel supports the requested queue. Packets pass
//! through two TUN devices, and wait between them in a FIFO queue or in FQ-CoDel.
#![allow(
    clippy::disallowed_methods,
    reason = "a shaper reads the clock, and forwarding is switched on in /proc/sys of its own namespace"
)]

pub mod fq_codel;
mod namespaces;
mod pace;
pub mod queue;
mod shaper;
pub mod trace;

pub use namespaces::{Bed, BedError, PEOPLE, SERVER};
pub use queue::Discipline;
pub use shaper::{LinkCounters, LinkShape, Rate};
pub use trace::Trace;
