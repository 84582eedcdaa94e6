//! Repeats published benchmarks: compares the author's figures with new ones, and judges the author's conclusions.
//!
//! A study is a file (`studies/NAME.toml`) that a [`StudyBench`] carries out in a [`BenchContext`]. Benches return raw
//! observations; `assay_judge::study` judges them.

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

/// Measures the configurations of a study. A bench serves all studies that need the same kind of objects, for example
/// guests with virtual disks, pools in a guest, or file systems on loop devices.
///
/// The calls have a fixed order: `outline` (which changes nothing), `begin` once, then `measure` for each step.
/// Dropping a bench removes everything that the bench created.
pub trait StudyBench {
    /// Describes the work of the bench for the plan that the user sees first. Parses every setting, so that mistakes
    /// are found early.
    ///
    /// # Errors
    /// A setting is missing, unknown or invalid.
    fn outline(&self, study: &Study, form: &Form) -> Result<Outline, StudyError>;

    /// Creates guests, pools and files before the first round. Returns the figures that cannot be measured here, with
    /// the reasons. They are left out.
    ///
    /// # Errors
    /// Nothing can be measured.
    fn begin(&mut self, study: &Study, form: &Form) -> Result<Vec<NotTried>, StudyError>;

    /// Measures figures of one configuration that belong together, in one round.
    ///
    /// # Errors
    /// This measurement failed. Later measurements may succeed.
    fn measure(
        &mut self,
        configuration: &Configuration,
        figures: &[&Figure],
        round: u32,
    ) -> Result<Vec<Observation>, StudyError>;

    /// Returns a description of the tested system, such as versions and sizes, as names and values. Called after
    /// `begin`.
    fn machine(&self) -> Vec<(String, String)>;

    /// Returns whether the bench used an emulated guest (TCG). Called after `begin`.
    fn emulated(&self) -> bool {
        false
    }
}

/// Description of the work of a bench, for the plan of a study.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// Objects that the bench will create, and where; one line for each object.
    pub makes: Vec<String>,
    /// Names of configurations that cannot be measured on this machine.
    pub leaves_out: Vec<String>,
    /// Whether the bench needs the guest image.
    pub guest: bool,
    /// Approximate duration of the preparation before the first round.
    pub setup: Duration,
    /// Approximate duration of one call of `measure`.
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
