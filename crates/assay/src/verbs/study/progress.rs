//! Shows the progress of a study: an overwritten line on a terminal, or occasional lines in a log.

use crate::context::shown;
use crate::progress::{Clock, LOG_EVERY, bar, now, whole};
use assay_model::Nanos;
use assay_studies::MeasureEvent;
use indicatif::ProgressBar;
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

/// The display on standard error.
pub(super) struct Progress {
    quiet: bool,
    bar: Option<ProgressBar>,
    clock: Clock,
    /// Planned duration of a step.
    step: Duration,
    begun: Option<Instant>,
    logged: Option<Instant>,
    doing: String,
}

impl Progress {
    pub(super) fn new(quiet: bool, all: Duration, step: Duration) -> Self {
        let clock = Clock::new(Nanos::from(all));
        let shown = !quiet && std::io::stderr().is_terminal();
        Self {
            quiet,
            bar: shown.then(|| bar(&clock)),
            clock,
            step,
            begun: None,
            logged: None,
            doing: String::new(),
        }
    }

    /// Shows `what` as the current step.
    pub(super) fn say(&mut self, what: &str) {
        let text = match self.doing.is_empty() {
            true => what.to_owned(),
            false => format!("{}: {what}", self.doing),
        };
        self.line(text);
    }

    pub(super) fn tell(&mut self, event: &MeasureEvent<'_>) {
        match event {
            MeasureEvent::Ready { not_tried, .. } => {
                for not in *not_tried {
                    self.stays(&format!("not tried: {}: {}", not.configuration, not.why));
                }
            }
            MeasureEvent::Begin {
                done,
                of,
                workload,
                target,
                ..
            } => {
                let begun = *self.begun.get_or_insert_with(now);
                // After a few steps their measured duration replaces that of the plan.
                let each = match *done {
                    0..=2 => self.step,
                    done => (now() - begun) / u32::try_from(done).unwrap_or(u32::MAX),
                };
                let left = each.saturating_mul(u32::try_from(of - done).unwrap_or(u32::MAX));
                self.clock.expect(Nanos::from(left));
                self.doing = format!("{} of {of}, {target}", done + 1);
                self.line(format!("{}: {workload}", self.doing));
            }
            MeasureEvent::Failed(lost) => {
                for not in *lost {
                    let figure = not.figure.as_deref().unwrap_or("everything");
                    self.stays(&format!(
                        "failed: {figure} of {}: {}",
                        not.configuration, not.why
                    ));
                }
            }
            _ => {}
        }
    }

    fn line(&mut self, text: String) {
        if let Some(bar) = &self.bar {
            bar.set_message(shown(&text).into_owned());
        } else if !self.quiet && self.logged.is_none_or(|at| now() - at >= LOG_EVERY) {
            self.logged = Some(now());
            eprintln!("{} left, {text}", whole(self.clock.read().0));
        }
    }

    fn stays(&self, text: &str) {
        match &self.bar {
            _ if self.quiet => {}
            Some(bar) => bar.println(shown(text)),
            None => eprintln!("{text}"),
        }
    }

    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
