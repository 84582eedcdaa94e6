//! Detects figures that change during a load: between rounds with equal parameters, and within one step.

use crate::doubts::suspect_doubt;
use crate::shift;
use assay_model::units::format_significant;
use assay_model::web::result::{Capacity, StepResult};
use assay_model::web::{Pace, Point, Second, Step};
use assay_model::{Doubt, Nanos};

/// Ratio between rounds with equal parameters from which the state of the server must have changed.
const FACTOR: f64 = 2.0;
/// Minimum factor by which a rate or a median must shift within a step for a report.
const SHIFT: f64 = 1.5;
/// Number of series per step that are tested for shifts.
const SERIES: f64 = 4.0;
/// Minimum increase of a median in nanoseconds that is reported. A smaller one may come from an idle server that must
/// wake up.
const SLOWER: u64 = 1_000_000;
/// Minimum length of a step in whole seconds for a comparison of its beginning and end.
const SECONDS: usize = 4;

/// Returns a doubt if rounds with equal parameters differ by more than a factor of two: in rate for a closed loop, in
/// median latency for an open loop. `rounds` contains the steps that are not void.
pub(super) fn rounds_differ(rounds: &[&Step]) -> Option<Doubt> {
    let closed = rounds.first()?.pace == Pace::Closed;
    let figure = |step: &Step| match closed {
        true => Some(step.measured.rate()),
        false => step
            .measured
            .latency
            .percentile(50.0)
            .map(|nanos| nanos as f64 / 1e6),
    };
    let mut figures: Vec<(u32, f64)> = rounds
        .iter()
        .filter_map(|step| Some((step.round, figure(step)?)))
        .collect();
    figures.sort_by_key(|(round, _)| *round);
    let least = figures
        .iter()
        .map(|(_, figure)| *figure)
        .fold(f64::INFINITY, f64::min);
    let most = figures
        .iter()
        .map(|(_, figure)| *figure)
        .fold(0.0, f64::max);
    if figures.len() < 2 || least <= 0.0 || most < FACTOR * least {
        return None;
    }
    let each: Vec<String> = figures
        .iter()
        .map(|(_, figure)| match closed {
            true => format!("{figure:.0}/s"),
            false => format!("{figure:.2} ms"),
        })
        .collect();
    Some(suspect_doubt(
        "rounds-differ",
        format!(
            "the rounds differ by a factor of {:.1}, in their order: {}",
            most / least,
            each.join(", ")
        ),
        "The server changed while it was measured, or other work slowed it down. Find out which (`--rounds 10` \
         shows whether it goes on), and do not use the mean.",
    ))
}

/// Returns a doubt if the rate of a closed loop or the latency of any load shifts within a step.
pub(super) fn doubt_drift(step: &Step) -> Option<Doubt> {
    if step.measured.interrupted {
        return None;
    }
    let points = step.measured.over_time();
    let evidence = match points.is_empty() {
        // Runs of older versions have no stretches.
        true => rate_of_quarters(step)?,
        false => shift_over_time(step, &points)?,
    };
    Some(suspect_doubt(
        "drift",
        evidence,
        "Do not use the mean. Measure longer, until the figures are steady, and look at what the server does when \
         they shift (a cache that fills, memory, a CPU quota).",
    ))
}

/// A figure for each interval of a step, and the factor from which its shift is reported.
struct Series {
    name: &'static str,
    factor: f64,
    values: Vec<(f64, f64)>,
    show: fn(f64) -> String,
}

/// Describes the largest shift of rate or latency within a step, and the interval at which it begins.
fn shift_over_time(step: &Step, points: &[Point]) -> Option<String> {
    let latency = |name, factor, of: fn(&Point) -> Option<Nanos>| Series {
        name,
        factor,
        values: points
            .iter()
            .filter_map(|point| Some((point.at.as_secs_f64(), of(point)?.0 as f64)))
            .collect(),
        show: |nanos| Nanos(nanos as u64).to_string(),
    };
    let rate = Series {
        name: "the rate",
        factor: SHIFT,
        values: points
            .iter()
            .map(|point| (point.at.as_secs_f64(), point.rate))
            .collect(),
        show: |rate| format!("{}/s", format_significant(rate)),
    };
    let closed = step.pace == Pace::Closed;
    let all = [
        latency("p50", SHIFT, |point| point.p50),
        latency("p90", FACTOR, |point| point.p90),
        latency("p99", FACTOR, |point| point.p99),
    ];
    let all = closed.then_some(rate).into_iter().chain(all);
    let found = all.filter_map(|series| series.largest_shift());
    found
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, evidence)| evidence)
}

impl Series {
    /// Returns the largest shift with its factor; `None` below the factor of the series.
    fn largest_shift(&self) -> Option<(f64, String)> {
        let values = self.values.iter().filter(|(_, value)| *value > 0.0);
        let values: Vec<(f64, f64)> = values.copied().collect();
        let logs = values
            .iter()
            .enumerate()
            .map(|(at, (_, value))| shift::RunFigure {
                log: value.ln(),
                // Breaks ties by a hash of the position, which is independent of the figures.
                tie: (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            });
        let logs: Vec<shift::RunFigure> = logs.collect();
        let found = shift::find_shifts(&logs, shift::LEVEL / SERIES);
        let change = |from: &Level, to: &Level| (to.median / from.median).ln().abs();
        // A gradual change is several shifts, of which each may be small.
        let levels = split_at_shifts(&values, &found);
        let pairs = levels
            .iter()
            .enumerate()
            .flat_map(|(at, from)| levels[at + 1..].iter().map(move |to| (from, to)));
        let (from, to) = pairs.max_by(|a, b| change(a.0, a.1).total_cmp(&change(b.0, b.1)))?;
        let ratio = to.median / from.median;
        let factor = ratio.max(ratio.recip());
        (factor >= self.factor && factor.is_finite()).then(|| {
            let evidence = format!(
                "{} went from {} to {} ({} {}) {:.1} s after the beginning",
                self.name,
                (self.show)(from.median),
                (self.show)(to.median),
                if ratio > 1.0 { "×" } else { "÷" },
                format_significant(factor),
                to.begin,
            );
            (factor, evidence)
        })
    }
}

/// A part of a series between two shifts.
struct Level {
    /// Seconds from the start of the step.
    begin: f64,
    median: f64,
}

/// Splits a series (seconds and figures) at its shifts.
fn split_at_shifts(values: &[(f64, f64)], shifts: &[shift::FigureShift]) -> Vec<Level> {
    let starts = std::iter::once(0).chain(shifts.iter().map(|shift| shift.at));
    let ends = shifts.iter().map(|shift| shift.at).chain([values.len()]);
    let levels = starts.zip(ends).filter_map(|(start, end)| {
        let part = values.get(start..end)?;
        let mut sorted: Vec<f64> = part.iter().map(|(_, value)| *value).collect();
        sorted.sort_by(f64::total_cmp);
        Some(Level {
            begin: part.first()?.0,
            median: *sorted.get(sorted.len() / 2)?,
        })
    });
    levels.collect()
}

/// Compares the rate in the last quarter of a closed loop with that in the first. `None` for steps of fewer
/// than four whole seconds.
fn rate_of_quarters(step: &Step) -> Option<String> {
    let whole = usize::try_from(step.measured.window.0 / 1_000_000_000).ok()?;
    let seconds = step.measured.seconds.get(..whole)?;
    if whole < SECONDS || step.pace != Pace::Closed {
        return None;
    }
    let quarter = whole / 4;
    let mean = |part: &[Second]| {
        part.iter().map(|second| second.answers as f64).sum::<f64>() / part.len() as f64
    };
    let (first, last) = (mean(&seconds[..quarter]), mean(&seconds[whole - quarter..]));
    (first.max(last) >= FACTOR * first.min(last))
        .then(|| format!("{first:.0} answers per second at its beginning, {last:.0} at its end"))
}

/// Returns the median latency that three of four intervals of a closed loop do not exceed. The median over all requests
/// cannot be compared between a closed and an open loop. If a server is slow from time to time, a closed loop sends
/// most of its requests while the server is fast, but an open loop sends equally many at any time.
fn slow_median(result: &StepResult) -> Option<Nanos> {
    let points = result.over_time.iter().flat_map(|round| &round.points);
    let mut medians: Vec<Nanos> = points.filter_map(|point| point.p50).collect();
    medians.sort_unstable();
    medians
        .get(medians.len() * 3 / 4)
        .copied()
        .or(result.latency.p50)
}

/// Adds a doubt to each open loop at no more than half of the capacity, if its answers take longer than at the
/// capacity. The server has then become slower since the capacity was measured.
pub(super) fn add_slower_than_capacity(results: &mut [StepResult], capacity: &[Option<Capacity>]) {
    let full: Vec<Option<Nanos>> = results
        .iter()
        .map(|result| {
            let capacity = capacity.get(result.target).copied().flatten()?;
            let at = |other: &&StepResult| {
                other.target == result.target
                    && other.pace == Pace::Closed
                    && other.connections == capacity.connections
            };
            slow_median(results.iter().find(at)?)
        })
        .collect();
    for (result, full) in results.iter_mut().zip(full) {
        let part = result.share.is_some_and(|share| share <= 0.5);
        let (Some(full), Some(now), true) = (full, result.service.p50, part) else {
            continue;
        };
        let known = result.doubts.iter().any(|doubt| doubt.code == "drift");
        if !known && now.0 as f64 > FACTOR * full.0 as f64 && now.0 > full.0 + SLOWER {
            result.doubts.push(suspect_doubt(
                "drift",
                format!(
                    "half of the answers take longer than {now} at this share of the capacity, and took {full} at the \
                     capacity itself, even in its slower stretches"
                ),
                "The server is slower than when its capacity was measured. Find out what changed, and measure again.",
            ));
        }
    }
}
