//! Sentences that all reports of a waterfall share. The order of the lines is defined in the parent module.

use super::WaterfallView;
use assay_model::ladder::{Rung, Step, Waterfall, Whole};
use assay_model::result::{Estimate, Interval};
use assay_render::text::escape_line;
use assay_render::units::{NONE, format_latency, format_percent, format_plural, format_ratio};

/// Formats a difference of times with its sign, such as `+12.3 µs` or `−40 ns`.
pub(crate) fn format_signed_time(nanos: f64) -> String {
    match nanos {
        ns if !ns.is_finite() => NONE.to_owned(),
        ns if ns < 0.0 => format!("−{}", format_latency(-ns)),
        ns => format!("+{}", format_latency(ns)),
    }
}

/// Formats half of the width of an interval, such as `±780 µs`; empty without an interval. Student's interval of a mean
/// difference is symmetric.
pub(crate) fn format_plus_minus(estimate: &Estimate) -> String {
    let half =
        |interval: Interval| format!("±{}", format_latency((interval.high - interval.low) / 2.0));
    estimate.interval.map(half).unwrap_or_default()
}

/// Formats a difference with its interval, such as `+340 µs ±12.0 µs`.
pub(crate) fn format_difference(estimate: &Estimate) -> String {
    format!(
        "{} {}",
        format_signed_time(estimate.value),
        format_plus_minus(estimate)
    )
    .trim_end()
    .to_owned()
}

/// Formats the time that a layer adds, such as `+340 µs ±12.0 µs`.
pub(crate) fn format_added_time(step: &Step) -> String {
    let text = |added: Estimate| format_difference(&added);
    step.added.map_or(NONE.to_owned(), text)
}

/// Formats a factor, such as `×4.02`; empty without an estimate.
pub(crate) fn format_factor(estimate: Option<Estimate>) -> String {
    estimate.map_or(NONE.to_owned(), |estimate| format_ratio(estimate.value))
}

/// Returns the name of a step's layer. If several rungs have a layer with this name, adds the name of the rung.
pub(crate) fn layer_name(view: &WaterfallView, fall: &Waterfall, step: usize) -> String {
    let rungs = &view.ladder.rungs;
    let own = &rungs[fall.steps[step].to];
    let alike = |rung: &&Rung| rung.again.is_none() && rung.layer == own.layer;
    match rungs.iter().filter(alike).count() {
        0 | 1 => escape_line(&own.layer),
        _ => escape_line(&format!("{} ({})", own.layer, own.name)),
    }
}

fn rung_name(view: &WaterfallView, rung: usize) -> String {
    escape_line(&view.ladder.rungs[rung].layer)
}

/// Whether the interval shows that all layers together add time.
fn adds_time(whole: &Whole) -> bool {
    let interval = whole.added.and_then(|added| added.interval);
    interval.is_some_and(|interval| interval.low > 0.0)
}

/// Joins names: `A`, `A or B`, `A, B or C`.
fn join_with_or(names: &[String]) -> String {
    join_with_word(names, "or")
}

fn join_with_word(names: &[String], word: &str) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} {word} {last}", rest.join(", ")),
    }
}

/// Formats the total of a path, such as `file to ext4: +680 µs (+650 µs to +710 µs), ×7.1`.
pub(crate) fn format_whole(view: &WaterfallView, whole: &Whole) -> String {
    let ends = format!(
        "{} to {}",
        rung_name(view, whole.bottom),
        rung_name(view, whole.top)
    );
    let Some(added) = whole.added else {
        return format!("{ends}: no figure");
    };
    format!(
        "{ends}: {}, {}",
        format_difference(&added),
        format_factor(whole.ratio)
    )
}

/// Describes which layer of a path to examine first.
pub(crate) fn describe_first_layer(
    view: &WaterfallView,
    fall: &Waterfall,
    whole: &Whole,
) -> String {
    let names: Vec<String> = whole
        .first
        .iter()
        .map(|&step| layer_name(view, fall, step))
        .collect();
    let steps = whole.steps.iter().map(|&step| (step, &fall.steps[step]));
    let missing = steps.clone().filter(|(_, step)| step.added.is_none());
    let missing: Vec<String> = missing
        .map(|(step, _)| layer_name(view, fall, step))
        .collect();
    let unknown = match &missing[..] {
        [] => String::new(),
        names => format!("; {} has no figure and may cost more", join_with_or(names)),
    };
    let interval = |(_, step): (usize, &Step)| step.added?.interval;
    match (&whole.first[..], &names[..]) {
        ([], _) if steps.filter_map(interval).next().is_none() => match &missing[..] {
            [] => "unknown: one round has no interval (--rounds)".to_owned(),
            _ => "unknown: a rung has no figure".to_owned(),
        },
        // The whole is measured separately, or more precisely than its parts.
        ([], _) if adds_time(whole) => {
            let all = whole.steps.iter().map(|&step| layer_name(view, fall, step));
            let all: Vec<String> = all.collect();
            format!(
                "not told: the whole costs something, but not which of {} does, which more rounds \
                 would tell (--rounds){unknown}",
                join_with_word(&all, "and")
            )
        }
        ([], _) => {
            format!("nowhere: no layer costs anything that can be told from noise{unknown}")
        }
        ([step, ..], [name, others @ ..]) => {
            let step = &fall.steps[*step];
            let share = step.share.map_or(String::new(), |share| {
                format!(", {} % of the whole", format_percent(share * 100.0))
            });
            let alone = format!("{name}, {}{share}", format_added_time(step));
            match others {
                [] => alone + &unknown,
                others => format!(
                    "{alone}; but {} may cost as much, which more rounds would tell (--rounds){unknown}",
                    join_with_or(others)
                ),
            }
        }
        _ => String::new(),
    }
}

/// Compares the sum of the steps with the total of the path, and describes the rest.
pub(crate) fn describe_unexplained_rest(whole: &Whole) -> String {
    let Some(sum) = whole.sum else {
        return "the parts cannot be added up: no round has a figure of every rung".to_owned();
    };
    let sum = format_signed_time(sum.value);
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
        .map_or(NONE.to_owned(), |added| format_signed_time(added.value));
    let apart = format!(
        "the parts add up to {sum}, the whole was {own} on samples of its own: {} apart",
        format_difference(&closing)
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

/// Describes what a workload cannot show, one line each.
pub(crate) fn describe_unmeasurable(view: &WaterfallView, fall: &Waterfall) -> Vec<String> {
    let rounds_of = |rung: usize| fall.levels[rung].latency.map(|latency| latency.rounds);
    let other_rounds = |(index, step): (usize, &Step)| {
        let added = step.added?.rounds;
        let [from, to] = [rounds_of(step.from)?, rounds_of(step.to)?];
        (from != added || to != added).then(|| {
            format!(
                "{}: what it adds is over the {} that both layers have; the times beside it are over {from} and {to}",
                layer_name(view, fall, index),
                format_plural(u64::from(added), "round", "rounds")
            )
        })
    };
    let line = |(index, step): (usize, &Step)| {
        let name = layer_name(view, fall, index);
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
                    format_latency(most)
                ))
            }
            _ => None,
        }
    };
    let steps = || fall.steps.iter().enumerate();
    steps()
        .filter_map(line)
        .chain(steps().filter_map(other_rounds))
        .collect()
}

/// Describes the layers that were only measured together with others, one line for each.
pub(crate) fn describe_inseparable_layers(view: &WaterfallView) -> Vec<String> {
    let rungs = view.ladder.rungs.iter();
    rungs
        .filter(|rung| rung.again.is_none() && !rung.holds.is_empty())
        .map(|rung| {
            format!(
                "{}: {}",
                escape_line(&rung.layer),
                escape_line(&rung.holds.join("; "))
            )
        })
        .collect()
}

/// Describes how the measured layers were opened, one line for each layer with settings.
pub(crate) fn describe_settings(view: &WaterfallView) -> Vec<String> {
    let rungs = view.ladder.rungs.iter();
    rungs
        .filter(|rung| rung.again.is_none() && !rung.settings.is_empty())
        .map(|rung| {
            let pairs = rung.settings.iter();
            let pairs: Vec<String> = pairs.map(|(key, value)| format!("{key}={value}")).collect();
            escape_line(&format!("{}: {}", rung.layer, pairs.join(" ")))
        })
        .collect()
}

/// Text that explains the chart in two sentences.
pub(crate) const READING: &str = "Time per I/O is its mean latency over all operations, a write's \
with its flush. Times add up from layer to layer; throughput does not, so only times are added.";
