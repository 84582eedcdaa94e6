//! Carries out a study in rounds. Each round measures everything once, in a new random order.

use crate::{StudyBench, StudyError};
use assay_loads::Cancel;
use assay_measure::engine::{Carried, MeasureEvent, Steps, Tell, carry_out};
use assay_model::shuffle;
use assay_model::study::{Configuration, Figure, Form, NotTried, Observation, Study};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use std::collections::BTreeSet;

/// A study to carry out, with the options of the user.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// Study from the catalogue or from the user.
    pub study: &'a Study,
    /// Form of the study, which sets the amount of work.
    pub form: &'a Form,
    /// Seed of the random order of steps.
    pub seed: u64,
    /// Whether to continue after an error.
    pub keep_going: bool,
    /// Observations from before an interruption. They are not measured again.
    pub done: &'a [Observation],
}

/// Arguments of one call of [`crate::StudyBench::measure`].
#[derive(Clone, Debug, PartialEq)]
pub struct StudyStep<'a> {
    /// Number of the round, from 1.
    pub round: u32,
    /// Configuration that is measured.
    pub configuration: &'a Configuration,
    /// Figures that are measured together.
    pub figures: Vec<&'a Figure>,
}

/// Returns the steps of a form in the order that the seed determines.
#[must_use]
pub fn plan_steps<'a>(study: &'a Study, form: &Form, seed: u64) -> Vec<StudyStep<'a>> {
    let groups = group_figures(study);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut all = Vec::new();
    for round in 1..=form.rounds {
        let mut steps: Vec<StudyStep> = Vec::new();
        for configuration in study.tried(form) {
            for group in &groups {
                // Counted values are the same in every round.
                let asked = |figure: &&&Figure| {
                    study.asks(form, configuration, figure) && !(figure.exact && round > 1)
                };
                let figures = group.iter().filter(asked);
                let figures: Vec<&Figure> = figures.copied().collect();
                if !figures.is_empty() {
                    steps.push(StudyStep {
                        round,
                        configuration,
                        figures,
                    });
                }
            }
        }
        shuffle(&mut steps, &mut random);
        all.extend(steps);
    }
    all
}

/// Groups the figures of a study by what is measured together.
pub(crate) fn group_figures(study: &Study) -> Vec<Vec<&Figure>> {
    let mut groups: Vec<Vec<&Figure>> = Vec::new();
    for figure in study.measured() {
        let mates = groups.iter_mut().find(|group| {
            let first = group.first().and_then(|first| first.together.as_ref());
            first.is_some() && first == figure.together.as_ref()
        });
        match mates {
            Some(group) => group.push(figure),
            None => groups.push(vec![figure]),
        }
    }
    groups
}

/// Executes every step, and passes each observation to the caller immediately.
///
/// # Errors
/// The bench cannot start, or a step fails and `keep_going` is not set. Earlier observations stay valid.
pub fn execute(
    bench: &mut dyn StudyBench,
    task: &Task<'_>,
    cancel: &Cancel,
    tell: &mut Tell<'_>,
) -> Result<Carried, StudyError> {
    let not_tried = match bench.begin(task.study, task.form) {
        Err(_) if cancel.is_cancelled() => return Ok(Carried::Interrupted),
        begun => begun?,
    };
    tell(MeasureEvent::Ready {
        machine: &bench.machine(),
        emulated: bench.emulated(),
        not_tried: &not_tried,
    });
    let mut steps = plan_steps(task.study, task.form, task.seed);
    leave_out(&mut steps, &not_tried, task.done);
    let mut course = Course {
        bench,
        steps: &steps,
        keep_going: task.keep_going,
        cancel,
        done: 0,
        failed: BTreeSet::new(),
    };
    carry_out(&mut course, cancel, tell)
}

/// Runs the steps of a study in sequence.
struct Course<'a, 'b> {
    bench: &'b mut dyn StudyBench,
    steps: &'a [StudyStep<'a>],
    keep_going: bool,
    cancel: &'a Cancel,
    done: usize,
    /// Failed steps, identified by the configuration and the first figure. They are not tried again in later rounds.
    failed: BTreeSet<(&'a str, &'a str)>,
}

impl<'a> Steps<StudyError> for Course<'a, '_> {
    type Step = &'a StudyStep<'a>;
    /// Observations of a step, or the error that made the step fail.
    type Taken = Result<Vec<Observation>, StudyError>;

    fn next(&mut self, tell: &mut Tell<'_>) -> Result<Option<Self::Step>, StudyError> {
        while let Some(step) = self.steps.get(self.done) {
            if !self.failed.contains(&step.key()) {
                tell(MeasureEvent::Begin {
                    done: self.done,
                    of: self.steps.len(),
                    workload: &step.what(),
                    target: step.configuration.title(),
                    round: step.round,
                });
                return Ok(Some(step));
            }
            self.done += 1;
        }
        Ok(None)
    }

    fn take(&mut self, step: &Self::Step) -> Result<Option<Self::Taken>, StudyError> {
        let measured = self
            .bench
            .measure(step.configuration, &step.figures, step.round);
        match measured.and_then(|observed| check_observations(step, observed)) {
            // The step failed because it was stopped.
            Err(_) if self.cancel.is_cancelled() => Ok(None),
            taken => Ok(Some(taken)),
        }
    }

    fn keep(
        &mut self,
        step: Self::Step,
        taken: Self::Taken,
        tell: &mut Tell<'_>,
    ) -> Result<(), StudyError> {
        self.done += 1;
        match taken {
            Ok(observed) => tell(MeasureEvent::Observed(&observed)),
            Err(error) if self.keep_going => {
                self.failed.insert(step.key());
                let lost = step
                    .figures
                    .iter()
                    .map(|figure| step_not_tried(step, figure, &error));
                tell(MeasureEvent::Failed(&lost.collect::<Vec<_>>()));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

impl<'a> StudyStep<'a> {
    /// Returns the configuration and the first figure, which together identify a step in all rounds.
    fn key(&self) -> (&'a str, &'a str) {
        (&self.configuration.name, &self.figures[0].name)
    }

    /// Lists the figures of the step, for users.
    fn what(&self) -> String {
        let figures: Vec<&str> = self.figures.iter().map(|figure| figure.title()).collect();
        match figures[..] {
            [first, second, _, ..] => format!("{first}, {second} and {} more", figures.len() - 2),
            _ => figures.join(", "),
        }
    }
}

fn step_not_tried(step: &StudyStep<'_>, figure: &Figure, error: &StudyError) -> NotTried {
    NotTried {
        configuration: step.configuration.name.clone(),
        figure: Some(figure.name.clone()),
        why: format!("in round {}: {error}", step.round),
    }
}

/// Removes the steps that cannot be measured, and the steps whose observations exist already.
fn leave_out(steps: &mut Vec<StudyStep<'_>>, not_tried: &[NotTried], done: &[Observation]) {
    let known: BTreeSet<(u32, &str, &str)> = done
        .iter()
        .map(|one| (one.round, one.configuration.as_str(), one.figure.as_str()))
        .collect();
    for step in steps.iter_mut() {
        let name = step.configuration.name.as_str();
        step.figures.retain(|figure| {
            !not_tried.iter().any(|not| {
                let all = not.figure.as_ref().is_none_or(|one| *one == figure.name);
                not.configuration == name && all
            })
        });
    }
    steps.retain(|step| {
        let name = step.configuration.name.as_str();
        let mut figures = step.figures.iter();
        figures.any(|figure| !known.contains(&(step.round, name, &figure.name)))
    });
}

/// Checks the observations of a bench. A bench may omit figures. It must not return figures that were not requested, or
/// values that are not finite numbers.
fn check_observations(
    step: &StudyStep<'_>,
    observed: Vec<Observation>,
) -> Result<Vec<Observation>, StudyError> {
    let wrong = observed.iter().find(|one| {
        one.configuration != step.configuration.name
            || one.round != step.round
            || !one.value.is_finite()
            || !step.figures.iter().any(|figure| figure.name == one.figure)
    });
    match wrong {
        None => Ok(observed),
        Some(one) => Err(StudyError::measure(
            format!("{} of {}", one.figure, one.configuration),
            format!("{} is no figure of this step", one.value),
        )),
    }
}
