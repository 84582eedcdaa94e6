//! Repeats published benchmarks: compares the author's figures with new ones and judges the conclusions.
//!
//! A study is a file (`studies/NAME.toml`) that a [`StudyBench`] carries out in a [`BenchContext`].
//! Observations are returned raw; `assay_judge::study` judges them.

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

/// Carries out the configurations of a study. A bench serves all studies that need the same kind of objects: guests
/// with virtual disks, pools in a guest, file systems on loop devices.
///
/// Order of calls: `outline` (changes nothing), `begin` once, then `measure` for each step. Dropping a bench removes
/// everything it created.
pub trait StudyBench {
    /// Describes the work for the plan that is shown first. Parses every setting, so that mistakes are found
    /// early.
    ///
    /// # Errors
    /// A setting is missing, unknown or invalid.
    fn outline(&self, study: &Study, form: &Form) -> Result<Outline, StudyError>;

    /// Creates guests, pools and files before the first round. Returns what cannot be tested here, with
    /// reasons; these are not measured.
    ///
    /// # Errors
    /// Nothing can be tested.
    fn begin(&mut self, study: &Study, form: &Form) -> Result<Vec<NotTried>, StudyError>;

    /// Measures figures of one configuration that belong together, in one round.
    ///
    /// # Errors
    /// This measurement failed; later ones may succeed.
    fn measure(
        &mut self,
        configuration: &Configuration,
        figures: &[&Figure],
        round: u32,
    ) -> Result<Vec<Observation>, StudyError>;

    /// Describes the tested system as names and values: versions, sizes. Called after `begin`.
    fn machine(&self) -> Vec<(String, String)>;

    /// Returns whether the bench used an emulated guest (TCG). Called after `begin`.
    fn emulated(&self) -> bool {
        false
    }
}

/// Description of a bench's work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// Objects that the bench will create, and where; one line each.
    pub makes: Vec<String>,
    /// Names of configurations that cannot be measured on this machine.
    pub leaves_out: Vec<String>,
    /// The bench needs the guest image.
    pub guest: bool,
    /// Approximate time before the first round.
    pub setup: Duration,
    /// Approximate time of one call of `measure`.
    pub step: Duration,
}

/// Builds an observation without doubts.
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
