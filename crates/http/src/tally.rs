//! Counts the results of one generator thread. Times are in nanoseconds from the start of the load.

use crate::counts_over_time::CountsOverTime;
use crate::histogram::Latencies;
use assay_model::Nanos;
use assay_model::web::{FailureKind, Failures, Measured, Second, StatusCount};
use std::collections::BTreeMap;

/// Counts of one generator thread, which are merged at the end.
pub struct Tally {
    /// Start of the counted time.
    from: u64,
    /// End of the counted time. After an interruption this time is earlier. It is later while a replayed log waits for
    /// its last answers.
    until: u64,
    /// Latest permitted value of `until`.
    latest: u64,
    /// Whether the load is a closed loop, in which the service time equals the latency.
    closed: bool,
    answers: u64,
    bytes: u64,
    pub received: u64,
    latency: Latencies,
    service: Latencies,
    lateness: Latencies,
    connect: Latencies,
    failures: [(u64, Option<String>); FailureKind::ALL.len()],
    statuses: BTreeMap<u16, u64>,
    early: Option<(FailureKind, String)>,
    due: u64,
    unsent: u64,
    waited: u64,
    connections: u64,
    pub reopened: u64,
    resumed: u64,
    seconds: Vec<Second>,
    stretches: CountsOverTime,
    under_way: u32,
    /// Integral of the number of requests in flight over time, up to the time `looked`, in request-nanoseconds.
    area: u128,
    /// Integral of the number of unanswered requests over the time after `until`, in request-nanoseconds.
    beyond: u128,
    looked: u64,
    pub cpu: u64,
    pub cpu_waited: Option<u64>,
    pub gave_up: bool,
    pub interrupted: bool,
    /// Numbers of good answers and of failures, including the washout.
    pub total: (u64, u64),
}

impl Tally {
    pub fn new(from: u64, until: u64) -> Self {
        // A load of several days is counted per second, too: 24 bytes each.
        let seconds = (until - from).div_ceil(1_000_000_000);
        Self {
            from,
            until,
            latest: until,
            closed: false,
            answers: 0,
            bytes: 0,
            received: 0,
            latency: Latencies::default(),
            service: Latencies::default(),
            lateness: Latencies::default(),
            connect: Latencies::default(),
            failures: Default::default(),
            statuses: BTreeMap::new(),
            early: None,
            due: 0,
            unsent: 0,
            waited: 0,
            connections: 0,
            reopened: 0,
            resumed: 0,
            seconds: vec![Second::default(); usize::try_from(seconds).unwrap_or(0)],
            stretches: CountsOverTime::new(until - from),
            under_way: 0,
            area: 0,
            beyond: 0,
            looked: 0,
            cpu: 0,
            cpu_waited: None,
            gave_up: false,
            interrupted: false,
            total: (0, 0),
        }
    }

    /// Uses one histogram for latency and service time if the load is a closed loop, because its requests are due when
    /// they are sent.
    pub fn counting_once(mut self, closed: bool) -> Self {
        self.closed = closed;
        self
    }

    /// Extends the counted time until the last good answer has arrived, by at most `most` nanoseconds. Used for a
    /// replayed log, because no load follows the end of the log.
    pub fn stretching(mut self, most: u64) -> Self {
        self.latest = self.until.saturating_add(most);
        self
    }

    /// Extends the counted time to `now`, at which an answer arrived.
    fn stretch(&mut self, now: u64) {
        if !(self.until..self.latest).contains(&now) {
            return;
        }
        self.until = now + 1;
        self.area += std::mem::take(&mut self.beyond);
        let seconds = (self.until - self.from).div_ceil(1_000_000_000);
        let seconds = usize::try_from(seconds).unwrap_or(0);
        self.seconds
            .resize(seconds.max(self.seconds.len()), Second::default());
    }

    fn counts(&self, at: u64) -> bool {
        (self.from..self.until).contains(&at)
    }

    fn second(&mut self, at: u64) -> Option<&mut Second> {
        let second = at.checked_sub(self.from)? / 1_000_000_000;
        self.seconds.get_mut(usize::try_from(second).ok()?)
    }

    /// Advances the time to `now`. Adds (requests in flight × elapsed time) to the integral, from which the mean
    /// concurrency is computed.
    pub fn pass(&mut self, now: u64) {
        let under_way = u128::from(self.under_way);
        let within = |from: u64, until: u64| {
            under_way * u128::from(now.min(until).saturating_sub(self.looked.max(from)))
        };
        let (counted, beyond) = (
            within(self.from, self.until),
            within(self.until, self.latest),
        );
        self.area += counted;
        self.beyond += beyond;
        self.looked = now.max(self.looked);
    }

    /// Counts the start of a request.
    pub fn begin(&mut self, intended: u64) {
        self.under_way += 1;
        self.due += u64::from(self.counts(intended));
    }

    /// Counts a due request that had to wait for a free connection.
    pub fn waited(&mut self, intended: u64) {
        self.waited += u64::from(self.counts(intended));
    }

    /// Records that the generator itself was late by `by` nanoseconds at the time `now`.
    pub fn late(&mut self, now: u64, by: u64) {
        if self.counts(now) {
            self.lateness.record(by);
        }
    }

    /// Counts a good answer.
    pub fn good(&mut self, intended: u64, begun: u64, now: u64, bytes: u64) {
        self.under_way -= 1;
        self.total.0 += 1;
        self.stretch(now);
        let latency = now.saturating_sub(intended);
        if self.counts(intended) {
            self.latency.record(latency);
            self.stretches.record(intended - self.from, latency);
            if !self.closed {
                self.service.record(now.saturating_sub(begun));
            }
        }
        if self.counts(now) {
            self.answers += 1;
            self.bytes += bytes;
            self.stretches.answer(now - self.from);
            if let Some(second) = self.second(now) {
                second.answers += 1;
                second.longest = second.longest.max(Nanos(latency));
            }
        }
    }

    /// Counts a failed request.
    pub fn fail(
        &mut self,
        kind: FailureKind,
        intended: u64,
        now: u64,
        why: impl FnOnce() -> String,
    ) {
        self.under_way -= 1;
        self.total.1 += 1;
        if self.counts(intended) {
            let (count, first) = &mut self.failures[kind as usize];
            *count += 1;
            first.get_or_insert_with(why);
        } else if self.early.is_none() {
            self.early = Some((kind, why()));
        }
        if self.counts(now) {
            self.stretches.failure(now - self.from);
            if let Some(second) = self.second(now) {
                second.failures += 1;
            }
        }
    }

    /// Counts an unexpected status. The failure itself is counted by [`Self::fail`].
    pub fn count_status(&mut self, status: u16, intended: u64) {
        if self.counts(intended) {
            *self.statuses.entry(status).or_default() += 1;
        }
    }

    /// Counts a new connection and the time it took to open.
    pub fn connected(&mut self, now: u64, took: u64, resumed: bool) {
        if self.counts(now) {
            self.connections += 1;
            self.resumed += u64::from(resumed);
            self.connect.record(took);
        }
    }

    /// Counts a due request that is never sent, because the load ends.
    pub fn unsent(&mut self, intended: u64) {
        if self.counts(intended) {
            self.due += 1;
            self.unsent += 1;
        }
    }

    /// Ends the counted time early, at `now`.
    pub fn cut(&mut self, now: u64) {
        self.pass(now);
        self.until = now.clamp(self.from, self.until);
    }

    /// Merges the counts of all threads into one result.
    pub fn finish(tallies: Vec<Self>) -> Measured {
        let mut out = Measured::default();
        let mut hdr = <[Latencies; 4]>::default();
        let mut failures: [(u64, Option<String>); FailureKind::ALL.len()] = Default::default();
        let mut early = None;
        let mut area = 0;
        let closed = tallies.iter().any(|tally| tally.closed);
        let mut waited = Some(0);
        let mut stretches: Option<CountsOverTime> = None;
        for tally in tallies {
            let window = tally.until - tally.from;
            out.window = out.window.max(Nanos(window));
            out.answers += tally.answers;
            out.bytes += tally.bytes;
            out.received += tally.received;
            out.due += tally.due;
            out.unsent += tally.unsent;
            out.waited += tally.waited;
            out.connections += tally.connections;
            out.reopened += tally.reopened;
            out.resumed += tally.resumed;
            out.cpu.0 += tally.cpu;
            waited = waited.zip(tally.cpu_waited).map(|(a, b)| a + b);
            out.threads += 1;
            out.gave_up |= tally.gave_up;
            out.interrupted |= tally.interrupted;
            area += tally.area;
            for (all, one) in hdr.iter_mut().zip([
                &tally.latency,
                &tally.service,
                &tally.lateness,
                &tally.connect,
            ]) {
                all.merge(one);
            }
            for (all, one) in failures.iter_mut().zip(tally.failures) {
                all.0 += one.0;
                all.1 = all.1.take().or(one.1);
            }
            let statuses = tally.statuses.iter();
            let statuses: Vec<StatusCount> = statuses
                .map(|(&status, &count)| StatusCount { status, count })
                .collect();
            out.add_statuses(&statuses);
            early = early.or(tally.early);
            match &mut stretches {
                Some(all) => all.merge(&tally.stretches),
                None => stretches = Some(tally.stretches),
            }
            out.seconds.resize(
                out.seconds.len().max(tally.seconds.len()),
                Second::default(),
            );
            for (all, one) in out.seconds.iter_mut().zip(&tally.seconds) {
                all.answers += one.answers;
                all.failures += one.failures;
                all.longest = all.longest.max(one.longest);
            }
        }
        let shown = usize::try_from(out.window.0.div_ceil(1_000_000_000)).unwrap_or(usize::MAX);
        out.seconds.truncate(shown);
        if let Some(stretches) = stretches {
            (out.stretch, out.stretches) = stretches.to_model(out.window.0);
        }
        out.under_way = match out.window.0 {
            0 => 0.0,
            window => area as f64 / window as f64,
        };
        out.cpu_waited = waited.map(Nanos);
        let [latency, service, lateness, connect] = hdr;
        out.latency = latency.to_model();
        out.service = match closed {
            true => out.latency.clone(),
            false => service.to_model(),
        };
        out.lateness = lateness.to_model();
        out.connect = connect.to_model();
        let kinds = FailureKind::ALL.into_iter().zip(failures);
        out.failures = kinds
            .filter(|(_, (count, _))| *count > 0)
            .map(|(kind, (count, first))| Failures {
                kind,
                count,
                first: first.unwrap_or_default(),
            })
            .collect();
        if let (true, Some((kind, first)), []) = (out.gave_up, early, &out.failures[..]) {
            // The load ended before anything was counted; the reason must not be lost.
            out.failures.push(Failures {
                kind,
                count: 1,
                first,
            });
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_counted_in_their_order() {
        for (at, kind) in FailureKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, at);
        }
    }

    #[test]
    fn the_washout_is_not_counted_and_what_begins_in_the_window_is_awaited() {
        let mut tally = Tally::new(100, 1_100);
        for intended in [50, 90, 600, 1_000, 1_100] {
            tally.pass(intended);
            tally.begin(intended);
        }
        tally.good(50, 50, 99, 7);
        tally.good(90, 95, 150, 7); // ends in the window: counts for the rate alone
        tally.good(600, 700, 900, 7);
        tally.good(1_000, 1_000, 5_000, 7); // begins in it: counts for latency alone
        tally.fail(FailureKind::Reset, 1_100, 6_000, String::new);
        tally.cut(6_000);
        let out = Tally::finish(vec![tally]);
        assert_eq!((out.answers, out.bytes, out.due), (2, 14, 2));
        let (latency, service) = (out.latency, out.service);
        assert_eq!((latency.count(), service.count()), (2, 2));
        assert_eq!(latency.percentile(50.0), Some(300));
        assert_eq!(service.percentile(50.0), Some(200));
        assert!(out.failures.is_empty() && out.window == Nanos(1_000));
    }

    #[test]
    fn requests_under_way_are_counted_over_the_window() {
        let mut tally = Tally::new(100, 1_100);
        tally.begin(0);
        tally.pass(600);
        tally.begin(600);
        tally.pass(2_000);
        let out = Tally::finish(vec![tally]);
        assert!((out.under_way - 1.5).abs() < 1e-9, "{}", out.under_way);
    }

    /// Merging the merged results of several machines must give the same result as merging all threads on one machine.
    #[test]
    fn generators_are_merged_as_exactly_as_threads() {
        let one = |seed: u64| {
            let mut tally = Tally::new(0, 3_000_000_000);
            for at in 0..500u64 {
                let begun = at * 5_000_000;
                let took = (at * at * 977 * seed) % 90_000_000 + 1;
                tally.pass(begun);
                tally.begin(begun);
                tally.late(begun, at * seed);
                tally.connected(begun, took / 7, at % 3 == 0);
                match at % 50 {
                    0 => tally.fail(FailureKind::Reset, begun, begun + took, || "x".to_owned()),
                    1 => tally.fail(FailureKind::TimedOut, begun, begun + took, String::new),
                    _ => tally.good(begun, begun, begun + took, at),
                }
            }
            tally.received = seed;
            tally.cpu = 10 * seed;
            tally.cpu_waited = Some(seed);
            tally
        };
        let all = Tally::finish((1..=5).map(one).collect());
        let [here, there] = [1..=2, 3..=5].map(|seeds| Tally::finish(seeds.map(one).collect()));
        let merged = Measured::together([&here, &there]);
        assert!((merged.under_way - all.under_way).abs() < 1e-9);
        let under_way = all.under_way;
        assert_eq!(
            Measured {
                under_way,
                ..merged
            },
            all
        );
    }

    #[test]
    fn the_last_answers_of_a_log_are_part_of_it() {
        let mut tally = Tally::new(0, 1_000).stretching(500);
        let begin = |tally: &mut Tally, at: u64| {
            tally.pass(at);
            tally.begin(at);
        };
        begin(&mut tally, 0);
        begin(&mut tally, 800);
        tally.pass(900);
        tally.good(0, 0, 900, 7);
        begin(&mut tally, 999);
        tally.pass(1_199);
        tally.good(800, 800, 1_199, 7);
        // Too late for the rate: this answer is slower than the log.
        tally.pass(1_600);
        tally.good(999, 999, 1_600, 7);
        let out = Tally::finish(vec![tally]);
        assert_eq!((out.answers, out.due, out.window), (2, 3, Nanos(1_200)));
        assert_eq!(out.latency.count(), 3);
        assert_eq!(out.seconds[0].answers, 2);
        // 900 of the first, 399 of the second and 201 of the last, in 1,200.
        assert!((out.under_way - 1.25).abs() < 1e-9, "{}", out.under_way);
    }

    #[test]
    fn what_never_began_in_time_is_still_said() {
        let mut tally = Tally::new(100, 200);
        tally.begin(1);
        tally.fail(FailureKind::Refused, 1, 2, || "no".to_owned());
        tally.gave_up = true;
        tally.cut(50);
        let out = Tally::finish(vec![tally]);
        assert_eq!(
            (out.window, out.failures[0].kind),
            (Nanos(0), FailureKind::Refused)
        );
    }
}
