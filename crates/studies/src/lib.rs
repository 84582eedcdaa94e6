//! Published benchmarks as experiments that anybody can run again: the author's figures beside
//! ours, and a verdict on what was concluded from them.
//!
//! A study is a file (`studies/NAME.toml`), which a [`Bench`] carries out in a [`Place`]. What is
//! observed is handed over raw; what it means is for `assay_judge::study` to say.

#![allow(
    clippy::disallowed_methods,
    reason = "benches make the files that they measure, and remove them"
)]

mod bench_context;
mod benches;
pub mod catalogue;
mod error;
mod execute;
mod fio;
pub mod guest;
pub mod settings;

pub use assay_measure::engine::{Carried, Environment, MeasureEvent};
pub use bench_context::BenchContext;
pub use benches::{BENCHES, NamedBench, UserTarget, find_bench};
pub use error::StudyError;
pub use execute::{StudyStep, Task, execute, plan_steps};

use assay_model::study::{Configuration, Figure, Form, NotTried, Observation, Study};
use std::time::Duration;

/// Carries out the configurations of a study. One bench serves every study that needs the same
/// kind of things: guests with virtual disks, pools in a guest, file systems on loop devices.
///
/// In this order: `outline` without touching anything, `begin` once, then `measure` for each step.
/// Dropping a bench takes away what it made.
pub trait StudyBench {
    /// What would be done, for the plan that is shown before anything is made. Every setting of
    /// the study is read here, so that a mistake in its file is found first.
    ///
    /// # Errors
    /// A setting that is missing, unknown or does not fit.
    fn outline(&self, study: &Study, form: &Form) -> Result<Outline, StudyError>;

    /// Makes what has to be there before the first round, once: guests, pools, files. What cannot
    /// be tried here is returned with its reason and not asked for.
    ///
    /// # Errors
    /// When nothing can be tried.
    fn begin(&mut self, study: &Study, form: &Form) -> Result<Vec<NotTried>, StudyError>;

    /// Measures some figures of one configuration, those that belong together, in one round.
    ///
    /// # Errors
    /// When it could not be measured; others may still be.
    fn measure(
        &mut self,
        configuration: &Configuration,
        figures: &[&Figure],
        round: u32,
    ) -> Result<Vec<Observation>, StudyError>;

    /// What it ran on: versions, sizes; a name and a value each. Asked after `begin`.
    fn machine(&self) -> Vec<(String, String)>;

    /// Whether it ran in an emulated guest (TCG). Asked after `begin`.
    fn emulated(&self) -> bool {
        false
    }
}

/// What a bench would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// What it makes, and where; a line each.
    pub makes: Vec<String>,
    /// Configurations that cannot be tried here, as far as that is known before.
    pub leaves_out: Vec<String>,
    /// Whether it needs the guest image.
    pub guest: bool,
    /// Time until the first round, roughly.
    pub setup: Duration,
    /// Time of one step, roughly: what `measure` is called for once.
    pub step: Duration,
}

/// An observation that nothing speaks against.
#[must_use]
pub fn to_observation(
    configuration: &Configuration,
    figure: &Figure,
    round: u32,
    value: f64,
) -> Observation {
    Observation {
        configuration: configuration.name.clone(),
        figure: figure.name.clone(),
        round,
        value,
        doubts: Vec::new(),
        void: false,
    }
}
