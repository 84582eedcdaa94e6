//! Progress of a build and of a boot, on standard error.

use crate::progress::whole;
use assay_lab::Progress as Step;
use assay_model::Nanos;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A bar on a terminal, a line for each step in a log.
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

    pub(super) fn tell(&mut self, step: &Step<'_>) {
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

/// Something that takes a while; nothing where nobody looks.
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

/// A number of things that take about as long each: how many are done, and the time left. Until the
/// first is done that rests on what one `usually` takes, where that is known.
pub(super) fn steps(text: &'static str, count: u64, usually: Option<Duration>) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    // When the last one was done; indicatif's own estimate speaks of weeks where one takes a minute.
    let last = Arc::new(Mutex::new((0, Duration::ZERO)));
    let said = move |state: &ProgressState, out: &mut dyn Write| {
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.0 != state.pos() {
            *last = (state.pos(), state.elapsed());
        }
        let all = state.len().unwrap_or(0);
        if let Some(left) = left(all, *last, state.elapsed(), usually) {
            let left = i64::try_from(left.as_nanos()).unwrap_or(i64::MAX);
            let _ = write!(out, ", {} left", whole(Nanos(left.unsigned_abs())));
        }
    };
    let style = ProgressStyle::with_template("{spinner} {msg} {pos}/{len} ({elapsed}{left})")
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
        .with_key("left", said);
    let bar = ProgressBar::new(count).with_style(style).with_message(text);
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

/// Time left of `all` things, the last of which was done at `last`; never less than the ones need that
/// were not begun.
fn left(
    all: u64,
    last: (u64, Duration),
    passed: Duration,
    usually: Option<Duration>,
) -> Option<Duration> {
    let (done, at) = last;
    let each = match done {
        0 => usually?,
        _ => at.div_f64(done as f64),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_follows_what_the_steps_took() {
        let seconds = Duration::from_secs;
        assert_eq!(left(5, (0, seconds(0)), seconds(9), None), None);
        let usually = Some(seconds(60));
        assert_eq!(
            left(5, (0, seconds(0)), seconds(9), usually),
            Some(seconds(291))
        );
        // One that takes longer than usual says nothing of the others yet.
        assert_eq!(
            left(5, (0, seconds(0)), seconds(99), usually),
            Some(seconds(240))
        );
        assert_eq!(
            left(5, (2, seconds(60)), seconds(70), usually),
            Some(seconds(80))
        );
        assert_eq!(
            left(5, (5, seconds(60)), seconds(61), usually),
            Some(seconds(0))
        );
        assert_eq!(
            left(0, (0, seconds(0)), seconds(1), usually),
            Some(seconds(0))
        );
    }
}
