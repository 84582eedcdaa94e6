//! Measures commands and other loads on this machine. This bench is a simple start for a user's own study.
//!
//! A configuration contains a command (`run = ["sort", "file"]`, without a shell) or a load without a file
//! (`load = { kind = "http", … }`). A figure selects the value: `of = "time"` is the mean time of an operation in
//! nanoseconds, `of = "rate"` the operations per second, `of = "printed"` the first number that the command prints. The
//! form sets how long the command is repeated (`time = "1s"`).

use crate::{BenchContext, Outline, StudyBench, StudyError, settings, to_observation};
use assay_host::Limits;
use assay_loads::counters::Sources;
use assay_measure::engine::{MeterSlot, Tools};
use assay_model::sample::{Operations, Outcome};
use assay_model::study::{Configuration, Figure, Form, NotTried, Observation, Study};
use assay_model::{Bytes, Load, Nanos};
use serde::Deserialize;
use std::ffi::OsStr;
use std::time::Duration;

/// Time limit of one run of the command. A run that takes longer has failed.
const LIMIT: Duration = Duration::from_secs(600);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configured {
    run: Option<Vec<String>>,
    load: Option<Load>,
}

impl Configured {
    fn of(configuration: &Configuration) -> Result<Load, StudyError> {
        let fail = |message: &str| StudyError::Setting {
            of: format!("configuration `{}`", configuration.name),
            message: message.to_owned(),
        };
        let load = match settings::of_configuration::<Self>(configuration)? {
            Self {
                run: Some(argv),
                load: None,
            } => Load::Command { argv, prints: None },
            Self {
                run: None,
                load: Some(load),
            } => load,
            _ => return Err(fail("say either `run` or `load`")),
        };
        match &load {
            Load::Command { argv, .. } if argv.is_empty() => {
                Err(fail("run is empty: give a program and its arguments"))
            }
            Load::Fio { .. } | Load::Attributes { .. } => Err(fail(
                "this load works on a file: use the bench `points`, or another load",
            )),
            _ => Ok(load),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    of: Of,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Of {
    Time,
    Rate,
    Printed,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Length {
    time: Nanos,
}

/// Bench that runs commands and other loads.
pub(super) struct Commands<'a> {
    place: &'a BenchContext<'a>,
    time: Nanos,
}

impl<'a> Commands<'a> {
    pub fn new(place: &'a BenchContext<'a>) -> Self {
        Self {
            place,
            time: Nanos(0),
        }
    }

    /// Runs a load and returns the operations that it completed.
    fn done(&self, load: &Load) -> Result<Operations, StudyError> {
        let fail = |reason: &dyn std::fmt::Display| StudyError::measure(load.describe(), reason);
        let env = &self.place.env;
        let tools = Tools::find(env, self.place.seed, [load]).map_err(|error| fail(&error))?;
        let meter = env.meter(&self.place.dir, &tools);
        let slot = MeterSlot {
            load,
            name: load.name(),
            ramp: Nanos(0),
            runtime: self.time,
            limit: Nanos::from(LIMIT),
            size: Bytes(0),
            seed: self.place.seed,
            place: &assay_measure::engine::LoadTarget::Itself,
            sources: &Sources::find(env.host, &[]),
            target: "",
            round: 0,
            number: 0,
        };
        let sample = meter.take(&slot).map_err(|error| fail(&error))?;
        match sample.outcome {
            Outcome::Completed => {}
            Outcome::Failed { error } => return Err(fail(&error)),
            Outcome::Interrupted | Outcome::TimedOut { .. } => return Err(StudyError::Cancelled),
        }
        let worker = sample.workers.into_iter().next();
        let done = worker.and_then(|worker| worker.operations.into_values().next());
        done.ok_or_else(|| fail(&"it was not done to its end"))
    }

    fn printed(&self, argv: &[String]) -> Result<f64, StudyError> {
        let words: Vec<&OsStr> = argv.iter().map(OsStr::new).collect();
        let output = self.place.env.host.run(&words, Limits { timeout: LIMIT })?;
        let fail = |reason: String| StudyError::measure(argv.join(" "), reason);
        if !output.success() {
            return Err(fail(output.complaint()));
        }
        let text = output.text();
        let mut numbers = text.split_whitespace().filter_map(|word| word.parse().ok());
        numbers
            .find(|number: &f64| number.is_finite())
            .ok_or_else(|| fail("it printed no number".to_owned()))
    }
}

impl StudyBench for Commands<'_> {
    fn outline(&self, study: &Study, form: &Form) -> Result<Outline, StudyError> {
        let mut makes = Vec::new();
        for one in study.tried(form) {
            makes.push(match Configured::of(one)? {
                Load::Command { argv, .. } => format!("runs {}", argv.join(" ")),
                load => load.describe(),
            });
        }
        for one in study.measured() {
            settings::of_figure::<Wanted>(one)?;
        }
        let length: Length = settings::of_form(form)?;
        Ok(Outline {
            makes,
            leaves_out: Vec::new(),
            guest: false,
            setup: Duration::ZERO,
            step: length.time.into(),
        })
    }

    fn begin(&mut self, _: &Study, form: &Form) -> Result<Vec<NotTried>, StudyError> {
        self.time = settings::of_form::<Length>(form)?.time;
        Ok(Vec::new())
    }

    fn measure(
        &mut self,
        configuration: &Configuration,
        figures: &[&Figure],
        round: u32,
    ) -> Result<Vec<Observation>, StudyError> {
        let load = Configured::of(configuration)?;
        let mut all = Vec::new();
        for figure in figures {
            let value = match (settings::of_figure::<Wanted>(figure)?.of, &load) {
                (Of::Time, load) => self.done(load)?.lat.mean,
                (Of::Rate, load) => self.done(load)?.per_s,
                (Of::Printed, Load::Command { argv, .. }) => self.printed(argv)?,
                (Of::Printed, load) => {
                    return Err(StudyError::measure(
                        load.describe(),
                        "only a command prints",
                    ));
                }
            };
            all.push(to_observation(configuration, figure, round, value));
        }
        Ok(all)
    }

    fn machine(&self) -> Vec<(String, String)> {
        let argv = [OsStr::new("uname"), OsStr::new("-srm")];
        let kernel = self.place.env.host.run(&argv, Limits::default());
        let told = kernel.map(|output| ("kernel".to_owned(), output.text().trim().to_owned()));
        told.into_iter().collect()
    }
}
