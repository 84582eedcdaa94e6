//! Shows the progress of a running session.

use crate::context::shown;
use assay_measure::engine::MeasureEvent;
use assay_measure::tuning::TuneEvent;
use assay_model::Nanos;
use assay_report::tune::format_progress;
use assay_tune::{Step, TuneSession};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal as _;
use std::time::Duration;

/// The progress display: one line that is overwritten, and lines that stay.
pub(super) struct LiveView {
    quiet: bool,
    bar: Option<ProgressBar>,
    /// Copy of the session's state, which each event updates.
    session: TuneSession,
}

impl LiveView {
    pub(super) fn new(quiet: bool, session: TuneSession) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let style = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner());
            let bar = ProgressBar::new_spinner().with_style(style);
            bar.enable_steady_tick(Duration::from_millis(250));
            bar
        });
        Self {
            quiet,
            bar,
            session,
        }
    }

    pub(super) fn tell(&mut self, event: &TuneEvent<'_>) {
        match event {
            TuneEvent::Stored(id) => self.line(&format!("session {id}")),
            TuneEvent::Step(step) => self.doing(&self.describe(step)),
            TuneEvent::Seen(seen) => {
                let before = self.session.clone();
                if self.session.observe((*seen).clone()).is_ok()
                    && let Some(line) = format_progress(&before, seen, &self.session)
                {
                    self.line(&line);
                }
            }
            TuneEvent::Measuring(MeasureEvent::Layout { written, size, .. }) => {
                self.doing(&format!("writing the test file: {written} of {size}"));
            }
            TuneEvent::Measuring(MeasureEvent::MovedFile(astray)) => {
                eprintln!("{astray}");
            }
            TuneEvent::Measuring(_) => {}
            TuneEvent::Remark(text) => self.line(text),
        }
    }

    pub(super) fn describe(&self, step: &Step) -> String {
        let name = |at: &usize| self.session.plan().candidates[*at].id.clone();
        let left = self.session.clock();
        let left =
            Nanos(left.budget.0.saturating_sub(left.spent.0) / 1_000_000_000 * 1_000_000_000);
        let what = match step {
            Step::SetUp => "setting up".to_owned(),
            Step::Visit { .. } => "measuring the machine as it is".to_owned(),
            Step::Diagnose { .. } => "looking for what limits the load".to_owned(),
            Step::TryAlone { candidate } => format!("trying {} once", name(candidate)),
            Step::Pair(order) => match order.stage {
                assay_tune::Stage::Screen { .. } => format!("screen, pair {}", order.number),
                assay_tune::Stage::Proof { candidate, .. } => {
                    format!("{}, pair {}", name(&candidate), order.number)
                }
                assay_tune::Stage::Whole { .. } => format!("the whole, pair {}", order.number),
                assay_tune::Stage::Hold => format!("holding the changes, pair {}", order.number),
            },
            Step::Keep { .. } => "keeping what is proved".to_owned(),
            Step::Revert => "reverting everything".to_owned(),
            Step::Done => String::new(),
        };
        format!("{what} ({left} left)")
    }

    pub(super) fn doing(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(shown(what).into_owned());
        }
    }

    pub(super) fn line(&self, line: &str) {
        match &self.bar {
            _ if self.quiet => {}
            Some(bar) => bar.println(shown(line)),
            None => eprintln!("{line}"),
        }
    }

    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
