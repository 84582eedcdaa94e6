//! Carrying a study out: rounds, each with everything once in an order of its own.

use crate::{Bench, StudyError};
use assay_instruments::Cancel;
use assay_model::shuffle;
use assay_model::study::{Configuration, Figure, Form, NotTried, Observation, Study};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use std::collections::BTreeSet;

/// What is to be carried out.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// The study.
    pub study: &'a Study,
    /// How much of it.
    pub form: &'a Form,
    /// Seed of the order.
    pub seed: u64,
    /// Go on with the rest when something fails.
    pub keep_going: bool,
    /// What was observed before an interruption: it is not measured again.
    pub done: &'a [Observation],
}

/// One call of [`Bench::measure`].
#[derive(Clone, Debug, PartialEq)]
pub struct Step<'a> {
    /// 1-based round.
    pub round: u32,
    /// What is measured.
    pub configuration: &'a Configuration,
    /// Which figures of it: those that belong together.
    pub figures: Vec<&'a Figure>,
}

/// What happens.
#[derive(Debug)]
pub enum Event<'a> {
    /// Everything is there; the first step comes next.
    Ready {
        /// What it runs on.
        machine: &'a [(String, String)],
        /// Whether that is an emulated guest.
        emulated: bool,
        /// What cannot be tried here.
        not_tried: &'a [NotTried],
    },
    /// A step begins.
    Begin {
        /// Steps done.
        done: usize,
        /// Steps in all.
        of: usize,
        /// Which.
        step: &'a Step<'a>,
    },
    /// What a step has given.
    Observed(&'a [Observation]),
    /// A step failed, and the others go on.
    Failed(&'a [NotTried]),
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Every step was taken.
    Complete,
    /// The user stopped it.
    Cancelled,
}

/// The steps of a form in the order that the seed gives them.
#[must_use]
pub fn steps<'a>(study: &'a Study, form: &Form, seed: u64) -> Vec<Step<'a>> {
    let groups = groups(study);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut all = Vec::new();
    for round in 1..=form.rounds {
        let mut steps: Vec<Step> = Vec::new();
        for configuration in study.tried(form) {
            for group in &groups {
                // What is counted is the same in every round.
                let asked = |figure: &&&Figure| {
                    study.asks(form, configuration, figure) && !(figure.exact && round > 1)
                };
                let figures = group.iter().filter(asked);
                let figures: Vec<&Figure> = figures.copied().collect();
                if !figures.is_empty() {
                    steps.push(Step {
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

/// The figures that are measured in one go.
pub(crate) fn groups(study: &Study) -> Vec<Vec<&Figure>> {
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

/// Takes every step and hands over what it gives, as it comes.
///
/// # Errors
/// The bench cannot begin, or, unless the rest shall go on, a step fails. What was handed over
/// before stands.
pub fn execute(
    bench: &mut dyn Bench,
    task: &Task<'_>,
    cancel: &Cancel,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<End, StudyError> {
    let not_tried = match bench.begin(task.study, task.form) {
        Err(_) if cancel.is_cancelled() => return Ok(End::Cancelled),
        begun => begun?,
    };
    tell(Event::Ready {
        machine: &bench.machine(),
        emulated: bench.emulated(),
        not_tried: &not_tried,
    });
    let mut steps = steps(task.study, task.form, task.seed);
    leave_out(&mut steps, &not_tried, task.done);
    let of = steps.len();
    let mut failed = BTreeSet::new();
    for (done, step) in steps.iter().enumerate() {
        if cancel.is_cancelled() {
            return Ok(End::Cancelled);
        }
        let name = (&step.configuration.name, &step.figures[0].name);
        if failed.contains(&name) {
            continue;
        }
        tell(Event::Begin { done, of, step });
        let measured = bench.measure(step.configuration, &step.figures, step.round);
        match measured.and_then(|observed| belongs(step, observed)) {
            Ok(observed) => tell(Event::Observed(&observed)),
            // It failed because it was stopped.
            Err(_) if cancel.is_cancelled() => return Ok(End::Cancelled),
            Err(error) if task.keep_going => {
                failed.insert(name);
                let lost: Vec<NotTried> =
                    step.figures.iter().map(|f| lost(step, f, &error)).collect();
                tell(Event::Failed(&lost));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(End::Complete)
}

fn lost(step: &Step<'_>, figure: &Figure, error: &StudyError) -> NotTried {
    NotTried {
        configuration: step.configuration.name.clone(),
        figure: Some(figure.name.clone()),
        why: format!("in round {}: {error}", step.round),
    }
}

/// What cannot be tried and what was observed already is not asked for.
fn leave_out(steps: &mut Vec<Step<'_>>, not_tried: &[NotTried], done: &[Observation]) {
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

/// A bench may leave figures out, but gives nothing that was not asked for, and numbers only.
fn belongs(step: &Step<'_>, observed: Vec<Observation>) -> Result<Vec<Observation>, StudyError> {
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
