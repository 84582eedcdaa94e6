//! Shows progress on standard error: a bar with the remaining time on a terminal, or occasional lines in a log.

use crate::context::shown;
use assay_measure::engine::MeasureEvent;
use assay_model::Nanos;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Minimum time between two lines in a log.
pub const LOG_EVERY: Duration = Duration::from_secs(10);

/// Start and expected end of an operation. The expected end may be corrected.
#[derive(Clone)]
pub struct Clock(Arc<Mutex<(Instant, Instant)>>);

/// Returns the monotonic time for progress displays.
#[allow(
    clippy::disallowed_methods,
    reason = "progress shows the time that passes"
)]
pub fn now() -> Instant {
    Instant::now()
}

impl Clock {
    /// Starts the clock now; `left` is the expected duration.
    pub fn new(left: Nanos) -> Self {
        let now = now();
        Self(Arc::new(Mutex::new((now, now + Duration::from(left)))))
    }

    /// Corrects the expected end: `left` is the remaining time.
    pub fn expect(&self, left: Nanos) {
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        times.1 = now() + Duration::from(left);
    }

    /// Returns the remaining time, and the completed fraction from 0 to 1.
    pub fn read(&self) -> (Nanos, f64) {
        let (start, end) = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = now();
        let left = end.saturating_duration_since(now);
        let passed = now - start;
        let whole = (passed + left).as_secs_f64().max(1e-9);
        // Whole seconds, because flickering digits carry no information. Rounded, so that 10 s begin as 10 s.
        let seconds = (left + Duration::from_millis(500)).as_secs();
        (Nanos(seconds * 1_000_000_000), passed.as_secs_f64() / whole)
    }
}

/// Formats a time in whole seconds, because fractions would flicker in the display.
pub fn whole(time: Nanos) -> String {
    let seconds = Nanos(time.0 / 1_000_000_000 * 1_000_000_000);
    match seconds.0 < 60_000_000_000 {
        true => format!("{} s", seconds.0 / 1_000_000_000),
        false => seconds.to_string(),
    }
}

/// Progress display of a long operation.
pub struct Meter {
    bar: Option<ProgressBar>,
    log: bool,
    logged: Option<Instant>,
    clock: Clock,
    announced: bool,
}

impl Meter {
    /// Creates a bar on a terminal, or lines in a log. With `quiet`, shows nothing. `estimate` is the expected total
    /// time.
    pub fn new(quiet: bool, estimate: Nanos) -> Self {
        let clock = Clock::new(estimate);
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| bar(&clock));
        Self {
            log: !quiet && bar.is_none(),
            bar,
            logged: None,
            clock,
            announced: quiet,
        }
    }

    /// Shows a text for the current step.
    pub fn say(&mut self, text: String) {
        if let Some(bar) = &self.bar {
            bar.set_message(shown(&text).into_owned());
        } else if self.log && self.logged.is_none_or(|at| now() - at >= LOG_EVERY) {
            self.logged = Some(now());
            eprintln!("{} left, {text}", whole(self.clock.read().0));
        }
    }

    /// Prints a line above the bar that stays visible.
    pub fn line(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(shown(line)),
            None if self.log => eprintln!("{line}"),
            None => {}
        }
    }

    /// Prints a result on standard output above the bar.
    pub fn print(&self, text: &str) -> anyhow::Result<()> {
        match &self.bar {
            Some(bar) => bar.suspend(|| crate::context::print(text)),
            None => crate::context::print(text),
        }
    }

    /// Corrects the remaining time. Prints the first estimate that is computed from measurements.
    pub fn expect(&mut self, left: Nanos) {
        self.clock.expect(left);
        if !std::mem::replace(&mut self.announced, true) {
            self.line(&format!("about {} in all", whole(left)));
        }
    }

    /// Updates the display after an event of a measurement.
    pub fn tell(&mut self, event: &MeasureEvent<'_>) {
        match event {
            MeasureEvent::Making("guest") => self.say("booting a guest".to_owned()),
            MeasureEvent::Making(what) => self.say(format!("making {what}")),
            MeasureEvent::Layout {
                target,
                written,
                size,
            } => self.say(format!(
                "writing the test file in {}: {written} of {size}",
                target.escape_debug()
            )),
            MeasureEvent::Remark(remark) => self.line(&format!("note: {remark}")),
            MeasureEvent::Left(left) => self.expect(*left),
            MeasureEvent::Begin {
                done,
                of,
                workload,
                target,
                round,
            } => self.say(format!(
                "{} of {of}: {workload} on {}, round {round}",
                done + 1,
                target.escape_debug()
            )),
            _ => {}
        }
    }

    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Creates a bar that follows a clock.
pub fn bar(clock: &Clock) -> ProgressBar {
    let (for_bar, for_left) = (clock.clone(), clock.clone());
    let style = ProgressStyle::with_template("{gauge} {left}  {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
        .with_key("gauge", move |_: &ProgressState, out: &mut dyn Write| {
            const WIDTH: usize = 20;
            let full = (for_bar.read().1.clamp(0.0, 1.0) * WIDTH as f64) as usize;
            let _ = write!(out, "[{}{}]", "=".repeat(full), " ".repeat(WIDTH - full));
        })
        .with_key("left", move |_: &ProgressState, out: &mut dyn Write| {
            let _ = write!(out, "{} left", whole(for_left.read().0));
        });
    let bar = ProgressBar::new_spinner().with_style(style);
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}
