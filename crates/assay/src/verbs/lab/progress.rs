//! Progress of a build and of a boot, on standard error.

use assay_lab::Progress as Step;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal as _;
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

/// A number of things that take about as long each: how many are done, and the time left.
pub(super) fn steps(text: &'static str, count: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {msg} {pos}/{len} ({elapsed}, {eta} left)")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = ProgressBar::new(count).with_style(style).with_message(text);
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}
