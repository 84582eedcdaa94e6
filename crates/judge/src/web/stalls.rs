//! Detects servers that stall for a moment. In a closed loop only few requests meet such a stall, because each
//! connection waits for its answer, so the percentiles do not show the stall. The total time of these few requests
//! shows it.

use super::doubts::generator;
use super::limit::{build_limit, format_percent};
use crate::doubts::suspect_doubt;
use assay_model::units::format_significant;
use assay_model::web::result::{Limit, Limited};
use assay_model::web::{Measured, Pace, Step};
use assay_model::{Doubt, Nanos};

/// Multiple of the median from which an answer counts as slow.
const SLOW: u64 = 10;
/// Minimum time of a slow answer in nanoseconds, because a scheduler may delay a thread by some milliseconds.
const SHORTEST: u64 = 10_000_000;
/// Minimum time of a slow answer in nanoseconds if the generator itself waits for a CPU, because it then reads answers
/// tens of milliseconds late.
const SHORTEST_BESIDE: u64 = 100_000_000;
/// Fraction of the answers from which slow answers are visible in p99.
const VISIBLE: f64 = 0.01;
/// Minimum fraction of the requests' total time that slow answers must take for a doubt.
const HOLDS: f64 = 0.10;
/// Fraction of the requests' total time from which slow answers are the limit.
const MOST: f64 = 0.50;
/// Fraction of the median rate below which an interval of time belongs to a stall.
const DIP: f64 = 0.5;
/// Fraction of the time spent waiting for a CPU from which this waiting affects the answers.
const STARVED: f64 = 0.05;

/// Slow answers that are too few to be visible in p99.
struct Stall {
    /// Slow answers as a fraction of all answers.
    answers: f64,
    /// Time of the slow answers as a fraction of the total time of all requests.
    time: f64,
    /// Duration from which an answer counted as slow.
    from: Nanos,
}

fn find_stall(measured: &Measured) -> Option<Stall> {
    let times = match measured.service.is_empty() {
        true => &measured.latency,
        false => &measured.service,
    };
    let (_, waited) = generator(measured)?;
    let shortest = match waited < STARVED {
        true => SHORTEST,
        false => SHORTEST_BESIDE,
    };
    let from = times.percentile(50.0)?.saturating_mul(SLOW).max(shortest);
    let (mut all, mut slow) = ((0.0, 0.0), (0.0, 0.0));
    for (nanos, count) in times.bins() {
        let (count, time) = (count as f64, nanos as f64 * count as f64);
        all = (all.0 + count, all.1 + time);
        if nanos >= from {
            slow = (slow.0 + count, slow.1 + time);
        }
    }
    let stall = Stall {
        answers: slow.0 / all.0,
        time: slow.1 / all.1.max(1.0),
        from: Nanos(from),
    };
    // A generator without any CPU is void, and says nothing about the server.
    let found = stall.answers < VISIBLE && stall.time >= HOLDS && waited < MOST;
    found.then_some(stall)
}

impl Stall {
    fn describe(&self, step: &Step) -> String {
        let mut out = format!(
            "{} % of the answers took {} or longer, and {} of the time that requests were under way went into them",
            format_significant(self.answers * 100.0),
            self.from,
            format_percent(self.time)
        );
        let dips = count_dips(&step.measured);
        if step.pace == Pace::Closed && dips > 0 {
            out.push_str(&format!(
                "; the rate fell by half or more in {dips} stretches of {}",
                step.measured.stretch
            ));
        }
        let waited = step.server.as_ref().ok().and_then(|server| {
            let waited = server.waited?.0 as f64 / server.window.0.max(1) as f64;
            (waited >= STARVED).then_some(waited)
        });
        if let Some(waited) = waited {
            out.push_str(&format!(
                "; the server's threads waited for a CPU for {} of the time",
                format_percent(waited)
            ));
        }
        out
    }
}

/// Counts the time intervals with less than half of the median rate.
fn count_dips(measured: &Measured) -> usize {
    let points = measured.over_time();
    let mut rates: Vec<f64> = points.iter().map(|point| point.rate).collect();
    rates.sort_by(f64::total_cmp);
    let median = rates.get(rates.len() / 2).copied().unwrap_or_default();
    rates.iter().filter(|rate| **rate < DIP * median).count()
}

/// Returns a doubt about a closed loop whose percentiles hide a stall.
pub(super) fn doubt_stalls(step: &Step) -> Option<Doubt> {
    if step.pace != Pace::Closed {
        return None;
    }
    let stall = find_stall(&step.measured)?;
    Some(suspect_doubt(
        "stalls",
        stall.describe(step),
        "The server, or the way to it, stopped from time to time, or few requests are slow. The percentiles of a \
         closed loop hide that: read p99 at a rate (--at, --rate), and look for pauses such as garbage collection, a \
         lock, a flush, or lost packets.",
    ))
}

/// Checks whether stalls took most of the requests' time. Within one machine packets cannot be lost, so lost packets
/// are excluded as the cause.
pub(super) fn limit_by_stalls(step: &Step) -> Option<Limit> {
    let stall = find_stall(&step.measured).filter(|stall| stall.time >= MOST)?;
    let local = step.link.as_ref().is_ok_and(|link| link.interface == "lo");
    let who = match local && step.server.is_ok() {
        true => Limited::Server,
        false => Limited::NotKnown,
    };
    let what = match who {
        Limited::Server => "it stopped from time to time",
        _ => "the server stopped from time to time, or packets were lost",
    };
    build_limit(who, format!("{what}: {}", stall.describe(step)))
}
