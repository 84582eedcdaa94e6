//! Trials of many machines: what a trial contributes, the signed bundle it travels in, and what all
//! of them amount to together. Pure: bytes and keys are passed in.

pub mod bundle;
mod check;
mod collect;
mod contribute;
mod effect;
mod sign;
pub mod stats;

#[cfg(test)]
mod tests;

pub use bundle::{Bundle, Pair};
pub use check::{Fault, body, trial as check_trial};
pub use collect::{Added, Conflict, Held, Pool};
pub use contribute::contribution;
pub use effect::{Effect, Funnel, Group, LeaveOut, Pooled, pooled};
pub use sign::{BundleError, Key, LONGEST, read};
