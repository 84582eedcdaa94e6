//! Computes the probability that a group of disks loses data within a year: by a Markov chain, and by a
//! Monte-Carlo simulation for comparison.

mod chain;
mod simulate;

pub use chain::{
    Assumptions, CANNOT_TELL, DiskGroup, Loss, loss_in, loss_of_groups, losses_in,
    mean_hours_to_loss,
};
pub use simulate::{LossEstimate, simulate_arrays};

/// Hours per year of 365.25 days.
pub const HOURS_A_YEAR: f64 = 8766.0;
