//! The words of a trial: its figures by the load's own name for an operation, changes in percent,
//! and the verdict in one sentence.

use super::View;
use assay_model::Load;
use assay_model::criterion::{Direction, Metric, Quantity};
use assay_model::result::Interval;
use assay_model::trial::{GuardJudgement, Judgement, TrialPlan, Verdict};
use assay_render::text::clean;
use assay_render::units::{NONE, count, percent};

/// `I/Os`, `requests`, `logins`, `runs`; `reads`, `writes`, `flushes` where the metric says so.
fn operations(load: &Load, direction: Direction) -> String {
    match direction {
        Direction::All => format!("{}s", load.operation()),
        Direction::Read => "reads".to_owned(),
        Direction::Write => "writes".to_owned(),
        Direction::Flush => "flushes".to_owned(),
    }
}

/// What a metric counts: `I/Os per second`, `p99 latency of requests`, `median time of a run`.
pub(crate) fn metric(load: &Load, metric: Metric) -> String {
    let operations = operations(load, metric.direction);
    match (metric.quantity, load) {
        (Quantity::Iops, _) => format!("{operations} per second"),
        (Quantity::Throughput, _) if metric.direction == Direction::All => "throughput".to_owned(),
        (Quantity::Throughput, _) => format!("throughput of {operations}"),
        (quantity, Load::Command { .. }) => format!("{} time of a run", latency_name(quantity)),
        (quantity, Load::Imap { .. }) => format!("{} time of a login", latency_name(quantity)),
        (quantity, _) if metric.direction == Direction::All => {
            format!("{} latency", latency_name(quantity))
        }
        (quantity, _) => format!("{} latency of {operations}", latency_name(quantity)),
    }
}

/// `median`, `mean`, `p99`, `largest`.
fn latency_name(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::P50 => "median",
        Quantity::Max => "largest",
        Quantity::Cpu => "CPU time",
        other => other.name(),
    }
}

/// A heading of few columns: `I/O/s`, `logins/s`, `MB/s`, `p99`, `read p99`.
pub(crate) fn short_metric(load: &Load, metric: Metric) -> String {
    let operations = operations(load, metric.direction);
    match metric.quantity {
        Quantity::Iops => format!("{operations}/s"),
        Quantity::Throughput if metric.direction == Direction::All => "MB/s".to_owned(),
        Quantity::Throughput => format!("{operations} MB/s"),
        quantity if metric.direction == Direction::All => quantity.name().to_owned(),
        quantity => format!("{operations} {}", quantity.name()),
    }
}

/// The change of a figure from A to B as a ratio B ÷ A, from its improvement (above 1 is better).
#[must_use]
pub fn change_of(metric: Metric, improvement: f64) -> f64 {
    match metric.quantity.is_latency() {
        true => 1.0 / improvement,
        false => improvement,
    }
}

/// A ratio as a change with its sign: `+12.3 %`, `−4.0 %`, `±0 %`; from three times on `×3.4`.
pub(crate) fn signed(ratio: f64) -> String {
    match ratio {
        r if !r.is_finite() || r < 0.0 => NONE.to_owned(),
        r if r >= 3.0 => format!("×{}", times(r)),
        r => {
            let change = (r - 1.0) * 100.0;
            let text = exact(change.abs());
            match change {
                _ if text == "0.0" => "±0 %".to_owned(),
                c if c < 0.0 => format!("−{text} %"),
                _ => format!("+{text} %"),
            }
        }
    }
}

/// Like [`signed`] with two digits, for narrow columns: `+12 %`, `−4.0 %`.
pub(crate) fn brief(ratio: f64) -> String {
    let change = (ratio - 1.0) * 100.0;
    match change.abs() < 200.0 && percent(change.abs()) != "0.0" {
        true if change < 0.0 => format!("−{} %", percent(-change)),
        true => format!("+{} %", percent(change)),
        false => signed(ratio),
    }
}

/// `3.4`, `12`, `340`.
fn times(ratio: f64) -> String {
    match ratio {
        r if r < 9.95 => format!("{r:.1}"),
        r => assay_model::units::significant(r.round())
            .trim_end_matches(".0")
            .to_owned(),
    }
}

/// A percentage: one decimal where it says something, more when it nears 100 from below.
fn exact(change: f64) -> String {
    match change {
        c if (99.0..100.0).contains(&c) => format!("{c:.2}"),
        c if (10.0..100.0).contains(&c) => format!("{c:.1}"),
        c => percent(c),
    }
}

/// A share as a percentage without a sign and needless decimals: `3 %`, `2.5 %`.
pub(crate) fn share(share: f64) -> String {
    let text = format!("{:.1}", share * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Like [`share`] with two digits that mean something, for error rates: `5 %`, `0.63 %`.
pub(crate) fn rate(share: f64) -> String {
    let percent = share * 100.0;
    // Rounded up: an error rate must not look smaller than it is.
    let up = |digits: f64| (percent * digits - 1e-6).ceil() / digits;
    let text = match percent {
        p if p >= 1.0 => format!("{:.1}", up(10.0)),
        _ => format!("{:.2}", up(100.0)),
    };
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// The ends of an interval of improvement as changes of the figure, the smaller first.
pub(crate) fn ends(metric: Metric, low: f64, high: f64) -> (f64, f64) {
    let (a, b) = (change_of(metric, low), change_of(metric, high));
    (a.min(b), a.max(b))
}

/// `−1.2 to +3.4 %`, from ratios B ÷ A.
pub(crate) fn span(low: f64, high: f64) -> String {
    let (low, high) = (signed(low), signed(high));
    match (low.strip_suffix(" %"), high.ends_with(" %")) {
        (Some(short), true) => format!("{short} to {high}"),
        _ => format!("{low} to {high}"),
    }
}

/// The same without signs, for sentences that say the direction: `8.1 to 17.0 %`.
fn unsigned_span(low: f64, high: f64) -> String {
    let (mut a, mut b) = (low, high);
    if high <= 1.0 {
        (a, b) = (2.0 - high, 2.0 - low);
    }
    match b >= 3.0 {
        true => format!("{} to {} times", times(a), times(b)),
        false => format!(
            "{} to {} %",
            exact((a - 1.0) * 100.0),
            exact((b - 1.0) * 100.0)
        ),
    }
}

/// ` (90 % interval −1.2 to +3.4 %)`, or nothing. `oriented` is of improvement.
pub(crate) fn within(metric: Metric, oriented: Option<Interval>) -> String {
    let Some(interval) = oriented else {
        return String::new();
    };
    let (low, high) = ends(metric, interval.low, interval.high);
    format!(
        " ({} interval {})",
        share(interval.confidence),
        span(low, high)
    )
}

/// `12.3 % more I/Os per second (90 % interval 8.1 to 17 %)`; the other way round `fewer`, and for
/// latencies `lower` and `higher`.
pub(crate) fn change(
    load: &Load,
    of: Metric,
    improvement: f64,
    interval: Option<Interval>,
) -> String {
    let name = metric(load, of);
    let ratio = change_of(of, improvement);
    let one_sided = interval
        .map(|i| ends(of, i.low, i.high))
        .filter(|(low, high)| low.is_finite() && high.is_finite())
        .filter(|(low, high)| (*low >= 1.0 && ratio >= 1.0) || (*high <= 1.0 && ratio <= 1.0));
    let range = match (one_sided, interval) {
        (Some((low, high)), Some(interval)) => {
            format!(
                " ({} interval {})",
                share(interval.confidence),
                unsigned_span(low, high)
            )
        }
        _ => within(of, interval),
    };
    let (more, less) = match of.quantity {
        Quantity::Iops => ("more", "fewer"),
        _ => ("higher", "lower"),
    };
    let text = exact((ratio - 1.0).abs() * 100.0);
    match ratio {
        r if !r.is_finite() => format!("no ratio of {name}"),
        r if r >= 3.0 => format!("{} times the {name}{range}", times(r)),
        _ if text == "0.0" => format!("no change of {name}{range}"),
        r if of.quantity == Quantity::Iops => {
            format!(
                "{text} % {} {name}{range}",
                if r > 1.0 { more } else { less }
            )
        }
        r => format!(
            "{text} % {} {name}{range}",
            if r > 1.0 { more } else { less }
        ),
    }
}

/// A verdict in capitals, as it stands at the beginning of a line.
#[must_use]
pub fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "BETTER",
        Verdict::Worse => "WORSE",
        Verdict::NoPracticalDifference => "NO PRACTICAL DIFFERENCE",
        Verdict::Undecided => "UNDECIDED",
        Verdict::Unsafe => "UNSAFE",
    }
}

/// The word before the sentence: the verdict's, or in an A/A trial what it says of the machine.
pub(crate) fn headline(view: &View) -> &'static str {
    match (view.trial.plan.aa, view.judgement.verdict) {
        (true, Verdict::Better | Verdict::Worse) => "FALSE ALARM",
        (true, Verdict::Unsafe) => "UNSAFE",
        (true, _) => "NOISE",
        (false, verdict) => verdict_word(verdict),
    }
}

/// The verdict in one plain sentence, its word first.
#[must_use]
pub fn verdict_line(view: &View) -> String {
    format!("{}: {}", headline(view), sentence(view))
}

/// The sentence without its word.
pub(crate) fn sentence(view: &View) -> String {
    let (plan, judgement) = (&view.trial.plan, view.judgement);
    let pairs = count(judgement.pairs as usize, "pair");
    let seen = seen(plan, judgement);
    match judgement.verdict {
        Verdict::Unsafe => clean(&judgement.reason),
        _ if plan.aa => noise(view, &pairs),
        Verdict::Better => format!("{seen}, {pairs}"),
        Verdict::Worse => match judgement.guards.iter().find(|guard| guard.broken) {
            Some(guard) => format!(
                "{}, {pairs}; the figure itself: {seen}",
                broken(plan, guard)
            ),
            None => match in_total(judgement).filter(|_| judgement.ratio.is_some_and(|r| r >= 1.0))
            {
                Some(total) => format!("{total}, {pairs}; the typical pair: {seen}"),
                None => format!("{seen}, {pairs}"),
            },
        },
        Verdict::NoPracticalDifference => format!(
            "{seen}: less than the {} that matter, {pairs}",
            share(plan.margin)
        ),
        Verdict::Undecided if judgement.pairs == 0 => clean(&judgement.reason),
        Verdict::Undecided => {
            let needed = match judgement.forecast.filter(|n| *n > judgement.pairs) {
                Some(n) => format!("; about {n} would be needed"),
                None => open(plan, judgement),
            };
            format!("so far {seen}, {pairs}{needed}")
        }
    }
}

/// Worse in total, though perhaps not in the typical pair.
fn in_total(judgement: &Judgement) -> Option<String> {
    let total = judgement.total.filter(|total| total.worse)?;
    Some(format!(
        "over all slots the same work took {} longer",
        share(total.time - 1.0)
    ))
}

/// What keeps a change that is better from being kept: guardrails that are not proved.
fn open(plan: &TrialPlan, judgement: &Judgement) -> String {
    let open: Vec<String> = judgement
        .guards
        .iter()
        .filter(|guard| !guard.held)
        .map(|guard| metric(&plan.load, guard.metric))
        .collect();
    let better = judgement.interval.is_some_and(|i| i.low > 1.0);
    match open.is_empty() {
        true if better && judgement.total.is_some_and(|total| !total.stands) => {
            "; over all slots the gain is not certain: one slow slot more would eat it".to_owned()
        }
        true => String::new(),
        false => format!(
            "; not proved to stay within its margin: {}",
            open.join(", ")
        ),
    }
}

fn seen(plan: &TrialPlan, judgement: &Judgement) -> String {
    match judgement.ratio {
        Some(ratio) => change(&plan.load, plan.metric, ratio, judgement.interval),
        None => "no pair gave a ratio".to_owned(),
    }
}

fn broken(plan: &TrialPlan, guard: &GuardJudgement) -> String {
    let flipped = guard.interval.map(|interval| Interval {
        low: 1.0 / interval.high,
        high: 1.0 / interval.low,
        ..interval
    });
    format!(
        "{}, where {} was allowed",
        change(&plan.load, guard.metric, 1.0 / guard.worsening, flipped),
        share(guard.margin)
    )
}

/// A/A: what the machine does by itself.
fn noise(view: &View, pairs: &str) -> String {
    let judgement = view.judgement;
    let Some(sd) = judgement.pair_sd else {
        return format!("{pairs} are too few to say how much the machine varies by itself");
    };
    let name = metric(&view.trial.plan.load, view.trial.plan.metric);
    let mut text = format!(
        "two equal sides differ by {} in {name} from pair to pair (standard deviation), {pairs}",
        share(sd.exp_m1())
    );
    if !view.smallest.is_empty() {
        let told: Vec<String> = view
            .smallest
            .iter()
            .map(|(pairs, least)| format!("{} in {pairs}", share(*least)))
            .collect();
        text.push_str(&format!(
            "; the smallest difference that could be told: {} pairs",
            told.join(", ")
        ));
    }
    if matches!(judgement.verdict, Verdict::Better | Verdict::Worse) {
        text = format!(
            "the two equal sides were told apart ({}); chance does this in at most {} of such \
             trials, or something differs between the sides besides the change. {}",
            seen(&view.trial.plan, judgement),
            rate(2.0 * view.trial.plan.alpha),
            capital(&text)
        );
    }
    text
}

/// With its first letter large; `p99` stays as it is.
pub(crate) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    if text.starts_with('p') && text[1..].starts_with(|c: char| c.is_ascii_digit()) {
        return text.to_owned();
    }
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn http() -> Load {
        Load::Http(Box::new(assay_model::load::Http {
            url: "http://127.0.0.1/".to_owned(),
            ..assay_model::load::Http::default()
        }))
    }

    #[test]
    fn changes_are_of_the_figure_itself() {
        let p99 = Metric::all(Quantity::P99);
        let interval = Interval {
            low: 1.05,
            high: 1.25,
            confidence: 0.9,
        };
        assert_eq!(
            change(&http(), p99, 1.0 / 0.9, Some(interval)),
            "10.0 % lower p99 latency (90 % interval 4.8 to 20.0 %)"
        );
        assert_eq!(
            change(&http(), Metric::all(Quantity::Iops), 3.4, None),
            "3.4 times the requests per second"
        );
        assert_eq!(signed(0.9996), "±0 %");
        assert_eq!(span(0.988, 1.034), "−1.2 to +3.4 %");
        assert_eq!(rate(0.05 / 8.0), "0.63 %");
    }

    proptest! {
        #[test]
        fn no_ratio_shows_nan(ratio in any::<f64>(), low in any::<f64>(), high in any::<f64>()) {
            let interval = Some(Interval { low, high, confidence: 0.9 });
            for quantity in [Quantity::Iops, Quantity::P99] {
                let text = change(&http(), Metric::all(quantity), ratio, interval);
                prop_assert!(!text.contains("NaN") && !text.contains("inf "), "{}", text);
            }
            prop_assert!(!brief(ratio).contains("NaN") && !brief(ratio).contains("inf"));
        }
    }
}
