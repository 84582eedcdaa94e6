//! Probability that a group of disks loses data within a year: a Markov chain, and a Monte-Carlo
//! that checks it.

mod chain;
mod simulate;

pub use chain::{
    Assumptions, CANNOT_TELL, DiskGroup, Loss, loss_in, loss_of_groups, losses_in,
    mean_hours_to_loss,
};
pub use simulate::{LossEstimate, simulate_arrays};

/// Hours of a year of 365.25 days.
pub const HOURS_A_YEAR: f64 = 8766.0;
