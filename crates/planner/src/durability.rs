//! Computes the probability that a group of disks loses data within a year, by a Markov chain. A Monte-Carlo simulation
//! gives the same probability for comparison.

mod chain;
mod simulate;

pub use chain::{
    Assumptions, CANNOT_TELL, DiskGroup, Loss, loss_in, loss_of_groups, losses_in,
    mean_hours_to_loss,
};
pub use simulate::{LossEstimate, simulate_arrays};

/// Number of hours in a year of 365.25 days.
pub const HOURS_A_YEAR: f64 = 8766.0;
