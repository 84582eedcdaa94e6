//! Shows the progress of a build or of a boot on standard error.

use crate::progress::whole;
use assay_lab::BuildProgress;
use assay_model::Nanos;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Progress display: a bar on a terminal, or a line for each step in a log.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    said: String,
}

impl Progress {
    pub(super) fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("[{bar:20}] {wide_msg}")
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .progress_chars("=  ");
            ProgressBar::new(1000).with_style(style)
        });
        Self {
            bar,
            said: String::new(),
        }
    }

    pub(super) fn tell(&mut self, step: &BuildProgress<'_>) {
        let left = step.left.map_or(String::new(), |left| {
            let minutes = left.as_secs().div_ceil(60);
            format!(", about {minutes} min left")
        });
        if let Some(bar) = &self.bar {
            bar.set_position((step.done * 1000.0) as u64);
            bar.set_message(format!("guest image: {}{left}", step.step));
        } else if self.said != step.step {
            step.step.clone_into(&mut self.said);
            eprintln!("guest image: {}{left}", step.step);
        }
    }

    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Shows a spinner. Shows nothing if standard error is not a terminal.
pub(super) fn spinner(text: &'static str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = ProgressBar::new_spinner()
        .with_style(style)
        .with_message(text);
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

/// Shows the progress of `count` steps of similar duration: finished steps and remaining time. Until two steps are
/// finished, the remaining time is computed from `usually`, if known. If `count` is 0, the number of steps is still
/// unknown.
pub(super) fn steps(text: &'static str, count: u64, usually: Option<Duration>) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    // indicatif's own estimate may be weeks when a step takes a minute.
    let pace = Arc::new(Mutex::new(Pace::default()));
    let left = move |state: &ProgressState, out: &mut dyn Write| {
        let mut pace = pace.lock().unwrap_or_else(PoisonError::into_inner);
        pace.seen(state.pos(), state.elapsed());
        let all = state.len().unwrap_or(0);
        if let Some(left) = pace.left(all, state.elapsed(), usually) {
            let left = u64::try_from(left.as_nanos()).unwrap_or(u64::MAX);
            let _ = write!(out, ", {} left", whole(Nanos(left)));
        }
    };
    let count_of = |state: &ProgressState, out: &mut dyn Write| {
        if let Some(all @ 1..) = state.len() {
            let _ = write!(out, " {}/{all}", state.pos());
        }
    };
    let style = ProgressStyle::with_template("{spinner} {msg}{count} ({elapsed}{left})")
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
        .with_key("count", count_of)
        .with_key("left", left);
    let bar = ProgressBar::new(count).with_style(style).with_message(text);
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

/// Speed of the steps. The first step is not used, because it includes booting a guest or filling disks.
#[derive(Debug, Default)]
struct Pace {
    /// First observation of a finished step, as (number of finished steps, time).
    first: (u64, Duration),
    /// Latest observation of a finished step, as (number of finished steps, time).
    last: (u64, Duration),
}

impl Pace {
    fn seen(&mut self, done: u64, passed: Duration) {
        if done == self.last.0 {
            return;
        }
        if self.first.0 == 0 {
            self.first = (done, passed);
        }
        self.last = (done, passed);
    }

    /// Returns the remaining time of `all` steps; `None` if there is no estimate yet. The result is at least the time
    /// of the steps that have not begun.
    fn left(&self, all: u64, passed: Duration, usually: Option<Duration>) -> Option<Duration> {
        let (done, at) = self.last;
        let each = match done - self.first.0 {
            0 => usually?,
            more => at.saturating_sub(self.first.1).div_f64(more as f64),
        };
        let open = all.saturating_sub(done);
        let expected = each.mul_f64(open as f64);
        let least = each.mul_f64(open.saturating_sub(1) as f64);
        Some(
            expected
                .saturating_sub(passed.saturating_sub(at))
                .max(least),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_follows_what_the_steps_took() {
        let seconds = Duration::from_secs;
        let usually = Some(seconds(60));
        let mut pace = Pace::default();
        assert_eq!(pace.left(5, seconds(9), None), None);
        assert_eq!(pace.left(5, seconds(9), usually), Some(seconds(291)));
        // A step that takes longer than usual does not change the estimate of the others.
        assert_eq!(pace.left(5, seconds(99), usually), Some(seconds(240)));
        pace.seen(1, seconds(100));
        assert_eq!(pace.left(5, seconds(100), None), None);
        assert_eq!(pace.left(5, seconds(110), usually), Some(seconds(230)));
        pace.seen(3, seconds(120));
        assert_eq!(pace.left(5, seconds(124), usually), Some(seconds(16)));
        pace.seen(5, seconds(140));
        assert_eq!(pace.left(5, seconds(141), usually), Some(seconds(0)));
    }
}
