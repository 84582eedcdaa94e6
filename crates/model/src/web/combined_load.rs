//! A load from several load generators (machines) at once: the contribution of each generator, and the combined result.

use super::{
    FailureKind, Failures, LinkUse, MachineUse, Measured, Pace, Second, StatusCount, Step, Stretch,
};
use crate::clock::Offset;
use crate::histogram::Histogram;
use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// Contribution of one generator to a step that has several generators.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Part {
    /// Machine of the generator, as the user wrote it.
    pub generator: String,
    /// Maximum number of connections of this generator.
    pub connections: u32,
    /// Schedule of this generator, which is a part of the total schedule.
    pub pace: Pace,
    /// Offset between the generator's clock and the clock of the coordinating machine, measured just before the start.
    /// `None` if the generator had already failed.
    pub clock: Option<Offset>,
    /// Delay of the generator's start in microseconds, by its own clock.
    pub late_us: i64,
    /// Reason why the generator has no result: its process died, or the connection was lost. `None` if it has a result.
    pub lost: Option<String>,
    /// Counts and latencies that this generator measured.
    pub measured: Measured,
    /// Use of the generator's network link, or the reason why it is unknown.
    pub link: Result<LinkUse, String>,
    /// Use of the generator's machine.
    pub machine: MachineUse,
}

impl Part {
    /// Returns the maximum difference in microseconds between the start of this generator and the planned start: the
    /// delay of the start plus the error of the clock offset.
    #[must_use]
    pub fn apart_us(&self) -> i64 {
        let error = self.clock.map_or(0, |clock| clock.error_us);
        self.late_us.saturating_abs().saturating_add(error)
    }

    /// Returns a copy of the step with only the contribution of this generator.
    #[must_use]
    pub fn alone(&self, step: &Step) -> Step {
        Step {
            connections: self.connections,
            pace: self.pace,
            measured: self.measured.clone(),
            server: Err("it is on another machine".to_owned()),
            link: self.link.clone(),
            machine: self.machine.clone(),
            parts: Vec::new(),
            ..step.clone()
        }
    }
}

/// Returns the duration of the common window. If some generators ended early, the duration is chosen so that the total
/// rate is the sum of the generators' rates. The longest window would give a lower rate.
fn counted_time(all: &[&Measured]) -> Nanos {
    let longest = all.iter().map(|one| one.window).max().unwrap_or_default();
    let there = all.iter().filter(|one| one.window.0 > 0);
    let (answers, rate) = there.fold((0.0, 0.0), |(answers, rate), one| {
        (answers + one.answers as f64, rate + one.rate())
    });
    match rate > 0.0 && all.iter().any(|one| one.window != longest) {
        true => Nanos((answers / rate * 1e9) as u64).min(longest),
        false => longest,
    }
}

impl Measured {
    /// Combines the measurements of several generators: adds counts, and histograms bin by bin. All histograms have the
    /// same bins, so nothing is lost.
    #[must_use]
    pub fn together<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut out = Self {
            cpu_waited: Some(Nanos(0)),
            ..Self::default()
        };
        let all: Vec<&Self> = all.into_iter().collect();
        for one in &all {
            out.add(one);
        }
        out.window = counted_time(&all);
        if all.is_empty() {
            out.cpu_waited = None;
        }
        out
    }

    fn add(&mut self, one: &Self) {
        let sum = |own: &mut u64, more: u64| *own = own.saturating_add(more);
        sum(&mut self.answers, one.answers);
        sum(&mut self.bytes, one.bytes);
        sum(&mut self.received, one.received);
        sum(&mut self.due, one.due);
        sum(&mut self.unsent, one.unsent);
        sum(&mut self.waited, one.waited);
        sum(&mut self.connections, one.connections);
        sum(&mut self.reopened, one.reopened);
        sum(&mut self.resumed, one.resumed);
        sum(&mut self.cpu.0, one.cpu.0);
        let waited = self.cpu_waited.zip(one.cpu_waited);
        self.cpu_waited = waited.map(|(a, b)| Nanos(a.0.saturating_add(b.0)));
        self.threads = self.threads.saturating_add(one.threads);
        self.under_way += one.under_way;
        self.gave_up |= one.gave_up;
        self.interrupted |= one.interrupted;
        let own: [&mut Histogram; 4] = [
            &mut self.latency,
            &mut self.service,
            &mut self.lateness,
            &mut self.connect,
        ];
        let more = [&one.latency, &one.service, &one.lateness, &one.connect];
        for (own, more) in own.into_iter().zip(more) {
            own.merge(more);
        }
        let more = self.seconds.len().max(one.seconds.len());
        self.seconds.resize(more, Second::default());
        for (own, more) in self.seconds.iter_mut().zip(&one.seconds) {
            sum(&mut own.answers, more.answers);
            sum(&mut own.failures, more.failures);
            own.longest = own.longest.max(more.longest);
        }
        self.add_stretches(one);
        self.add_failures(&one.failures);
        self.add_statuses(&one.statuses);
    }

    /// Adds rate and latency over time of another generator. Drops both if the intervals have different durations.
    fn add_stretches(&mut self, one: &Self) {
        if self.stretches.is_empty() {
            self.stretch = one.stretch;
        }
        if one.stretches.is_empty() || self.stretch != one.stretch {
            return;
        }
        let more = self.stretches.len().max(one.stretches.len());
        self.stretches.resize(more, Stretch::default());
        for (own, more) in self.stretches.iter_mut().zip(&one.stretches) {
            own.answers = own.answers.saturating_add(more.answers);
            own.failures = own.failures.saturating_add(more.failures);
            own.latency.merge(&more.latency);
        }
    }

    /// Adds responses with an unexpected status, by status.
    pub fn add_statuses(&mut self, more: &[StatusCount]) {
        for one in more {
            match self
                .statuses
                .binary_search_by_key(&one.status, |own| own.status)
            {
                Ok(at) => {
                    self.statuses[at].count = self.statuses[at].count.saturating_add(one.count)
                }
                Err(at) => self.statuses.insert(at, *one),
            }
        }
    }

    /// Adds the counts of failures, by kind of failure.
    pub fn add_failures(&mut self, more: &[Failures]) {
        for failures in more {
            let kind = |own: &&mut Failures| own.kind == failures.kind;
            match self.failures.iter_mut().find(kind) {
                Some(own) => own.count = own.count.saturating_add(failures.count),
                None => self.failures.push(failures.clone()),
            }
        }
        let place = |kind: FailureKind| FailureKind::ALL.iter().position(|one| *one == kind);
        self.failures.sort_by_key(|failures| place(failures.kind));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_ended_early_takes_nothing_from_the_rate() {
        let one = |seconds: u64, answers: u64| Measured {
            window: Nanos(seconds * 1_000_000_000),
            answers,
            ..Measured::default()
        };
        let together = |all: &[Measured]| Measured::together(all);
        let even = together(&[one(8, 800), one(8, 400)]);
        assert_eq!((even.window, even.rate()), (Nanos(8_000_000_000), 150.0));
        // Interrupted: 100 and 50 per second, and the second generator ended one second earlier.
        let cut = together(&[one(4, 400), one(3, 150)]);
        assert!((cut.rate() - 150.0).abs() < 1e-6, "{}", cut.rate());
        assert!(cut.window < Nanos(4_000_000_000));
        // Ended before the window.
        let none = together(&[one(4, 400), one(0, 0)]);
        assert_eq!((none.window, none.rate()), (Nanos(4_000_000_000), 100.0));
        assert_eq!(
            together(&[one(4, 0), one(3, 0)]).window,
            Nanos(4_000_000_000)
        );
        assert_eq!(together(&[]), Measured::default());
    }
}
