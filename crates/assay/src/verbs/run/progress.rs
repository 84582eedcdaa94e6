//! What the user sees while a run goes on.

use crate::progress::Meter;
use crate::sweep;
use assay_runner::{Event, Prepared};

/// What the user sees while a run goes on.
pub(super) struct Progress(Meter);

impl Progress {
    /// Says what will be done and how long it takes.
    pub(super) fn new(quiet: bool, prepared: &Prepared) -> Self {
        sweep::said(&prepared.swept);
        if !quiet {
            introduce(prepared);
        }
        Self(Meter::new(quiet, prepared.estimate))
    }

    /// Takes note of what happens.
    pub(super) fn tell(&mut self, event: &Event<'_>) {
        match event {
            Event::Layout {
                target,
                written,
                size,
            } => self.0.say(format!(
                "writing the test file in {}: {written} of {size}",
                target.escape_debug()
            )),
            Event::Begin {
                done,
                of,
                workload,
                round,
                ..
            } => self
                .0
                .say(format!("{} of {of}: {workload}, round {round}", done + 1)),
            Event::Left(left) => self.0.expect(*left),
            Event::Making(_) | Event::Remark(_) | Event::Stored(_) => {}
        }
    }

    /// Removes the bar.
    pub(super) fn end(&self) {
        self.0.end();
    }
}

fn introduce(prepared: &Prepared) {
    let run = &prepared.run;
    for remark in &run.remarks {
        eprintln!("note: {remark}");
    }
    let targets: Vec<String> = run
        .targets
        .iter()
        .map(|target| target.name.escape_debug().to_string())
        .collect();
    let file = match run.plan.needs_file() {
        true => format!(", test file {}", run.plan.file_size),
        false => String::new(),
    };
    eprintln!(
        "{}: {} samples on {}{file}",
        run.plan.name,
        prepared.todo.len(),
        targets.join(", "),
    );
}
