//! Figures that change while a load lasts: between the rounds of a shape, and within one step.

use crate::doubts::suspect_doubt;
use assay_model::Doubt;
use assay_model::web::{Pace, Second, Step};

/// Rounds of one shape that differ by this factor were not measured on the same server.
const FACTOR: f64 = 2.0;
/// Fewest whole seconds of a step whose beginning and end are compared.
const SECONDS: usize = 4;

/// Returns a doubt when the rounds of one shape differ by more than a factor of two: in rate in a closed
/// loop, in median latency in an open one. `rounds` are the steps of the shape that count.
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

/// Returns a doubt when the last quarter of a step has less than half of the answers per second of its first
/// quarter, or more than twice as many. Steps of fewer than four whole seconds are not judged.
pub(super) fn drift(step: &Step) -> Option<Doubt> {
    let whole = usize::try_from(step.measured.window.0 / 1_000_000_000).ok()?;
    let seconds = step.measured.seconds.get(..whole)?;
    if whole < SECONDS || step.measured.interrupted || step.pace != Pace::Closed {
        return None;
    }
    let quarter = whole / 4;
    let mean = |part: &[Second]| {
        part.iter().map(|second| second.answers as f64).sum::<f64>() / part.len() as f64
    };
    let (first, last) = (mean(&seconds[..quarter]), mean(&seconds[whole - quarter..]));
    (first.max(last) >= FACTOR * first.min(last)).then(|| {
        suspect_doubt(
            "drift",
            format!("{first:.0} answers per second at its beginning, {last:.0} at its end"),
            "Measure longer, until the rate is steady, and look at what the server does then (a cache that \
             fills, memory, a CPU quota).",
        )
    })
}
