//! Combines trials of many machines: the contribution of a trial, the signed bundle that transports contributions, and
//! the combined effect. This crate performs no I/O; bytes and keys are parameters.

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
pub use check::{BundleFault, parse_body, trial as check_trial};
pub use collect::{Added, Conflict, Held, Pool};
pub use contribute::build_contribution;
pub use effect::{
    Effect, Funnel, LeaveOut, MachineGroup, Pooled, USUAL_MARGIN, page_effects, pool_effects,
};
pub use sign::{BundleError, LONGEST, OwnerKey, read};
