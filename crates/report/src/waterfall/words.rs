//! The sentences that all forms share.

use super::View;
use assay_model::ladder::{Rung, Step, Waterfall, Whole};
use assay_model::result::{Estimate, Interval};
use assay_render::text::clean;
use assay_render::units::{NONE, latency, percent, ratio};

/// A difference of times with its sign: `+12.3 µs`, `−40 ns`.
pub(crate) fn signed(nanos: f64) -> String {
    match nanos {
        ns if !ns.is_finite() => NONE.to_owned(),
        ns if ns < 0.0 => format!("−{}", latency(-ns)),
        ns => format!("+{}", latency(ns)),
    }
}

/// Half of an interval's width: `±780 µs`; empty without one. Student's interval of a mean difference
/// is symmetric.
pub(crate) fn plus_minus(estimate: &Estimate) -> String {
    let half = |interval: Interval| format!("±{}", latency((interval.high - interval.low) / 2.0));
    estimate.interval.map(half).unwrap_or_default()
}

/// A difference with its interval: `+340 µs ±12.0 µs`.
pub(crate) fn with_reach(estimate: &Estimate) -> String {
    format!("{} {}", signed(estimate.value), plus_minus(estimate))
        .trim_end()
        .to_owned()
}

/// What a layer adds: `+340 µs ±12.0 µs`.
pub(crate) fn added(step: &Step) -> String {
    let text = |added: Estimate| with_reach(&added);
    step.added.map_or(NONE.to_owned(), text)
}

/// `×4.02`, when there is a pair.
pub(crate) fn factor(estimate: Option<Estimate>) -> String {
    estimate.map_or(NONE.to_owned(), |estimate| ratio(estimate.value))
}

/// The layer of a step, with its rung where two have that layer.
pub(crate) fn layer(view: &View, fall: &Waterfall, step: usize) -> String {
    let rungs = &view.ladder.rungs;
    let own = &rungs[fall.steps[step].to];
    let alike = |rung: &&Rung| rung.again.is_none() && rung.layer == own.layer;
    match rungs.iter().filter(alike).count() {
        0 | 1 => clean(&own.layer),
        _ => clean(&format!("{} ({})", own.layer, own.name)),
    }
}

fn rung(view: &View, rung: usize) -> String {
    clean(&view.ladder.rungs[rung].layer)
}

/// Whether all layers together add time for certain.
fn costs(whole: &Whole) -> bool {
    let interval = whole.added.and_then(|added| added.interval);
    interval.is_some_and(|interval| interval.low > 0.0)
}

/// `A`, `A or B`, `A, B or C`.
fn either(names: &[String]) -> String {
    listed(names, "or")
}

fn listed(names: &[String], word: &str) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} {word} {last}", rest.join(", ")),
    }
}

/// The whole of a path: `file to ext4: +680 µs (+650 µs to +710 µs), ×7.1`.
pub(crate) fn whole(view: &View, whole: &Whole) -> String {
    let ends = format!("{} to {}", rung(view, whole.bottom), rung(view, whole.top));
    let Some(added) = whole.added else {
        return format!("{ends}: no figure");
    };
    format!("{ends}: {}, {}", with_reach(&added), factor(whole.ratio))
}

/// Which layer to look at first on a path.
pub(crate) fn first(view: &View, fall: &Waterfall, whole: &Whole) -> String {
    let names: Vec<String> = whole
        .first
        .iter()
        .map(|&step| layer(view, fall, step))
        .collect();
    let steps = whole.steps.iter().map(|&step| (step, &fall.steps[step]));
    let missing = steps.clone().filter(|(_, step)| step.added.is_none());
    let missing: Vec<String> = missing.map(|(step, _)| layer(view, fall, step)).collect();
    let unknown = match &missing[..] {
        [] => String::new(),
        names => format!("; {} has no figure and may cost more", either(names)),
    };
    let interval = |(_, step): (usize, &Step)| step.added?.interval;
    match (&whole.first[..], &names[..]) {
        ([], _) if steps.filter_map(interval).next().is_none() => match &missing[..] {
            [] => "unknown: one round has no interval (--rounds)".to_owned(),
            _ => "unknown: a rung has no figure".to_owned(),
        },
        // The whole is measured on its own, or more exactly than its parts.
        ([], _) if costs(whole) => {
            let all = whole.steps.iter().map(|&step| layer(view, fall, step));
            let all: Vec<String> = all.collect();
            format!(
                "not told: the whole costs something, but not which of {} does, which more rounds would tell (--rounds){unknown}",
                listed(&all, "and")
            )
        }
        ([], _) => {
            format!("nowhere: no layer costs anything that can be told from noise{unknown}")
        }
        ([step, ..], [name, others @ ..]) => {
            let step = &fall.steps[*step];
            let share = step.share.map_or(String::new(), |share| {
                format!(", {} % of the whole", percent(share * 100.0))
            });
            let alone = format!("{name}, {}{share}", added(step));
            match others {
                [] => alone + &unknown,
                others => format!(
                    "{alone}; but {} may cost as much, which more rounds would tell (--rounds){unknown}",
                    either(others)
                ),
            }
        }
        _ => String::new(),
    }
}

/// The parts against the whole.
pub(crate) fn reconciled(whole: &Whole) -> String {
    let Some(sum) = whole.sum else {
        return "the parts cannot be added up: no round has a figure of every rung".to_owned();
    };
    let sum = signed(sum.value);
    let Some(closing) = whole.closing else {
        return match whole.separate {
            true => format!("the parts add up to {sum}; the whole has no figure of its own"),
            false => format!(
                "the parts add up to {sum}; its ends were not measured a second time, so that is the \
                 whole by construction and no check"
            ),
        };
    };
    let own = whole
        .added
        .map_or(NONE.to_owned(), |added| signed(added.value));
    let apart = format!(
        "the parts add up to {sum}, the whole was {own} on samples of its own: {} apart",
        with_reach(&closing)
    );
    let end = match closing.interval {
        None => "; one round does not tell how far they may be apart",
        Some(interval) if interval.low <= 0.0 && interval.high >= 0.0 => ", which is noise",
        Some(_) => {
            ", which is more than noise: something changed between them (a cache, other load), and no \
             part is known better than that"
        }
    };
    apart + end
}

/// What a workload cannot tell, a line each.
pub(crate) fn not_told(view: &View, fall: &Waterfall) -> Vec<String> {
    let line = |(index, step): (usize, &Step)| {
        let name = layer(view, fall, index);
        match (step.added, step.added.and_then(|added| added.interval)) {
            (None, _) => {
                let left_out = [step.from, step.to].map(|rung| fall.levels[rung].left_out);
                let why = match left_out {
                    [0, 0] => "no round has both rungs",
                    _ => "its samples, or those below it, are void; see Doubts",
                };
                Some(format!("{name}: no figure, {why}"))
            }
            (Some(_), None) => Some(format!("{name}: one round has no interval")),
            (Some(_), Some(interval)) if !step.told => {
                let most = interval.high.max(-interval.low);
                Some(format!(
                    "{name}: not told from noise here; at most {} either way",
                    latency(most)
                ))
            }
            _ => None,
        }
    };
    fall.steps.iter().enumerate().filter_map(line).collect()
}

/// What this ladder cannot separate, a line for each layer that comes with others.
pub(crate) fn together(view: &View) -> Vec<String> {
    let rungs = view.ladder.rungs.iter();
    rungs
        .filter(|rung| rung.again.is_none() && !rung.holds.is_empty())
        .map(|rung| format!("{}: {}", clean(&rung.layer), clean(&rung.holds.join("; "))))
        .collect()
}

/// What was opened how, a line for each layer with settings.
pub(crate) fn settings(view: &View) -> Vec<String> {
    let rungs = view.ladder.rungs.iter();
    rungs
        .filter(|rung| rung.again.is_none() && !rung.settings.is_empty())
        .map(|rung| {
            let pairs = rung.settings.iter();
            let pairs: Vec<String> = pairs.map(|(key, value)| format!("{key}={value}")).collect();
            clean(&format!("{}: {}", rung.layer, pairs.join(" ")))
        })
        .collect()
}

/// How to read it, in two sentences.
pub(crate) const READING: &str = "Time per I/O is its mean latency over all operations, a write's \
with its flush. Times add up from layer to layer; throughput does not, so only times are added.";
