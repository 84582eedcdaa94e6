//! Commands on this machine: what a study of one's own needs at first.
//!
//! A configuration says what is run (`run = ["sort", "file"]`, no shell), a figure what is asked
//! about it: `of = "time"`, the mean time of a run in nanoseconds, or `of = "printed"`, the first
//! number that it prints. The form says for how long it is run again and again (`time = "1s"`).

use crate::{Bench, Outline, Place, StudyError, observed, settings};
use assay_host::Limits;
use assay_instruments::command::{Request, run};
use assay_instruments::measured::Timing;
use assay_model::Nanos;
use assay_model::sample::Operation;
use assay_model::study::{Configuration, Figure, Form, NotTried, Observation, Study};
use serde::Deserialize;
use std::ffi::OsStr;
use std::time::Duration;

/// A run that takes longer has failed.
const LIMIT: Duration = Duration::from_secs(600);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Command {
    run: Vec<String>,
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
    Printed,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Length {
    time: Nanos,
}

/// Runs commands.
pub(super) struct Commands<'a> {
    place: &'a Place<'a>,
    time: Nanos,
}

impl<'a> Commands<'a> {
    pub fn new(place: &'a Place<'a>) -> Self {
        Self {
            place,
            time: Nanos(0),
        }
    }

    fn time(&self, argv: &[String]) -> Result<f64, StudyError> {
        let request = Request {
            argv: argv.iter().map(Into::into).collect(),
            timing: Timing {
                washout: Nanos(0),
                runtime: self.time,
                limit: Nanos::from(LIMIT),
            },
        };
        let fail = |reason: &dyn std::fmt::Display| StudyError::measure(argv.join(" "), reason);
        let measured = run(&request, self.place.cancel).map_err(|error| fail(&error))?;
        if let Some(failures) = measured.errors.first() {
            return Err(fail(&failures.first));
        }
        let job = measured.worker.of(Operation::Run).map(|runs| runs.lat.mean);
        job.ok_or_else(|| fail(&"it was not run to its end"))
    }

    fn printed(&self, argv: &[String]) -> Result<f64, StudyError> {
        let words: Vec<&OsStr> = argv.iter().map(OsStr::new).collect();
        let output = self.place.host.run(&words, Limits { timeout: LIMIT })?;
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

impl Bench for Commands<'_> {
    fn outline(&self, study: &Study, form: &Form) -> Result<Outline, StudyError> {
        let mut makes = Vec::new();
        for one in study.tried(form) {
            let command: Command = settings::of_configuration(one)?;
            if command.run.is_empty() {
                return Err(StudyError::Setting {
                    of: format!("configuration `{}`", one.name),
                    message: "run is empty: give a program and its arguments".to_owned(),
                });
            }
            makes.push(format!("runs {}", command.run.join(" ")));
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
        let command: Command = settings::of_configuration(configuration)?;
        let mut all = Vec::new();
        for figure in figures {
            let value = match settings::of_figure::<Wanted>(figure)?.of {
                Of::Time => self.time(&command.run)?,
                Of::Printed => self.printed(&command.run)?,
            };
            all.push(observed(configuration, figure, round, value));
        }
        Ok(all)
    }

    fn machine(&self) -> Vec<(String, String)> {
        let argv = [OsStr::new("uname"), OsStr::new("-srm")];
        let kernel = self.place.host.run(&argv, Limits::default());
        let told = kernel.map(|output| ("kernel".to_owned(), output.text().trim().to_owned()));
        told.into_iter().collect()
    }
}
