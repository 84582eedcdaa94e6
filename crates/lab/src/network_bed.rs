//! Networks to try things on: a server, some people, and between them one bottleneck with a queue. All of it
//! lies in network namespaces without names and goes with the process, whatever becomes of it.
//!
//! The bottleneck is in user space, because not every kernel has the queue that is asked for: packets go through
//! two TUN devices, and in between they wait in a plain queue or in fq_codel.
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
