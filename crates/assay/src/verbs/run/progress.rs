//! Progress on standard error: a bar with the time left on a terminal, a line now and then in a log.

use assay_model::Nanos;
use assay_runner::{Event, Prepared};
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// In a log a line is written no more often than this.
pub(in crate::verbs) const LOG_EVERY: Duration = Duration::from_secs(10);

/// When the run is expected to end; it moves as the run goes on.
#[derive(Clone)]
pub(in crate::verbs) struct Clock(Arc<Mutex<(Instant, Instant)>>);

#[allow(
    clippy::disallowed_methods,
    reason = "progress shows the time that passes"
)]
pub(in crate::verbs) fn now() -> Instant {
    Instant::now()
}

impl Clock {
    pub(in crate::verbs) fn new(left: Nanos) -> Self {
        let now = now();
        Self(Arc::new(Mutex::new((now, now + Duration::from(left)))))
    }

    pub(in crate::verbs) fn expect(&self, left: Nanos) {
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        times.1 = now() + Duration::from(left);
    }

    /// Time left and share done.
    pub(in crate::verbs) fn read(&self) -> (Nanos, f64) {
        let (start, end) = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = now();
        let left = end.saturating_duration_since(now);
        let passed = now - start;
        let whole = (passed + left).as_secs_f64().max(1e-9);
        // Whole seconds: a figure that flickers in its last digits is no information.
        (
            Nanos(left.as_secs() * 1_000_000_000),
            passed.as_secs_f64() / whole,
        )
    }
}

/// In whole seconds: figures that flicker in their last digits are no information.
pub(in crate::verbs) fn whole(time: Nanos) -> String {
    let seconds = Nanos(time.0 / 1_000_000_000 * 1_000_000_000);
    match seconds.0 < 60_000_000_000 {
        true => format!("{} s", seconds.0 / 1_000_000_000),
        false => seconds.to_string(),
    }
}

/// What the user sees while a run goes on.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    log: bool,
    logged: Option<Instant>,
    clock: Clock,
    announced: bool,
}

impl Progress {
    /// Says what will be done and how long it takes.
    pub(super) fn new(quiet: bool, prepared: &Prepared) -> Self {
        let clock = Clock::new(prepared.estimate);
        if quiet {
            return Self {
                bar: None,
                log: false,
                logged: None,
                clock,
                announced: true,
            };
        }
        introduce(prepared);
        let bar = std::io::stderr().is_terminal().then(|| bar(&clock));
        Self {
            log: bar.is_none(),
            bar,
            logged: None,
            clock,
            announced: false,
        }
    }

    /// Takes note of what happens.
    pub(super) fn tell(&mut self, event: &Event<'_>) {
        let text = match event {
            Event::Layout {
                target,
                written,
                size,
            } => {
                format!(
                    "writing the test file in {}: {written} of {size}",
                    target.escape_debug()
                )
            }
            Event::Begin {
                done,
                of,
                workload,
                round,
                ..
            } => {
                format!("{} of {of}: {workload}, round {round}", done + 1)
            }
            Event::Left(left) => return self.expect(*left),
            Event::Stored(_) => return,
        };
        if let Some(bar) = &self.bar {
            bar.set_message(text);
        } else if self.log && self.logged.is_none_or(|at| now() - at >= LOG_EVERY) {
            self.logged = Some(now());
            eprintln!("{} left, {text}", whole(self.clock.read().0));
        }
    }

    /// The first estimate that rests on how fast this target really takes data is said aloud.
    fn expect(&mut self, left: Nanos) {
        self.clock.expect(left);
        if !std::mem::replace(&mut self.announced, true) {
            let line = format!("about {} in all", whole(left));
            match &self.bar {
                Some(bar) => bar.println(line),
                None => eprintln!("{line}"),
            }
        }
    }

    /// Removes the bar.
    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn introduce(prepared: &Prepared) {
    for swept in &prepared.swept {
        let path = swept.path.to_string_lossy();
        let path = path.escape_debug();
        match &swept.error {
            None => eprintln!("removed {path}, left by an assay that was killed"),
            Some(error) => eprintln!(
                "{path} was left by an assay that was killed and cannot be removed: {error}"
            ),
        }
    }
    let run = &prepared.run;
    for remark in &run.remarks {
        eprintln!("note: {remark}");
    }
    let targets: Vec<String> = run
        .targets
        .iter()
        .map(|target| target.name.escape_debug().to_string())
        .collect();
    eprintln!(
        "{}: {} samples on {}, test file {}",
        run.plan.name,
        prepared.todo.len(),
        targets.join(", "),
        run.plan.file_size,
    );
}

pub(in crate::verbs) fn bar(clock: &Clock) -> ProgressBar {
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
