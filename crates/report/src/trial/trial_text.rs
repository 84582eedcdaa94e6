//! Formats the texts about a trial: names of metrics with the load's own noun for an operation, changes in percent, and
//! the verdict in one sentence. Tables are in `trial_tables`.

use super::TrialView;
use assay_model::Load;
use assay_model::criterion::{Direction, Metric, Quantity};
use assay_model::result::Interval;
use assay_model::trial::{GuardJudgement, Judgement, TrialPlan, Verdict};
use assay_render::text::escape_line;
use assay_render::units::{NONE, format_count, format_percent};

/// Returns the noun for operations, such as `I/Os`, `requests`, `logins` or `runs`. If the metric has a direction,
/// returns `reads`, `writes` or `flushes`.
fn operations_name(load: &Load, direction: Direction) -> String {
    match direction {
        Direction::All => format!("{}s", load.operation()),
        Direction::Read => "reads".to_owned(),
        Direction::Write => "writes".to_owned(),
        Direction::Flush => "flushes".to_owned(),
    }
}

/// Returns the name of a metric, such as `I/Os per second`, `p99 latency of requests` or `median time of a run`.
pub(crate) fn metric_name(load: &Load, metric: Metric) -> String {
    let operations = operations_name(load, metric.direction);
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

/// Returns the name of a latency quantity: `median`, `mean`, `p99`, `largest`.
fn latency_name(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::P50 => "median",
        Quantity::Max => "largest",
        Quantity::Cpu => "CPU time",
        other => other.name(),
    }
}

/// Returns a short heading for a metric, such as `I/O/s`, `logins/s`, `MB/s`, `p99` or `read p99`.
pub(crate) fn short_metric_name(load: &Load, metric: Metric) -> String {
    let operations = operations_name(load, metric.direction);
    match metric.quantity {
        Quantity::Iops => format!("{operations}/s"),
        Quantity::Throughput if metric.direction == Direction::All => "MB/s".to_owned(),
        Quantity::Throughput => format!("{operations} MB/s"),
        quantity if metric.direction == Direction::All => quantity.name().to_owned(),
        quantity => format!("{operations} {}", quantity.name()),
    }
}

/// Converts an improvement (above 1 is better) to the ratio B ÷ A of the figure.
#[must_use]
pub fn convert_improvement(metric: Metric, improvement: f64) -> f64 {
    match metric.quantity.is_lower_better() {
        true => 1.0 / improvement,
        false => improvement,
    }
}

/// Formats a ratio as a change with its sign: `+12.3 %`, `−4.0 %`, `±0 %`. From a factor of three on, formats it as
/// `×3.4`.
pub(crate) fn format_signed_ratio(ratio: f64) -> String {
    match ratio {
        r if !r.is_finite() || r < 0.0 => NONE.to_owned(),
        r if r >= 3.0 => format!("×{}", format_times(r)),
        r => {
            let change = (r - 1.0) * 100.0;
            let text = format_exact_percent(change.abs());
            match change {
                _ if text == "0.0" => "±0 %".to_owned(),
                c if c < 0.0 => format!("−{text} %"),
                _ => format!("+{text} %"),
            }
        }
    }
}

/// Formats like [`format_signed_ratio`] with two digits, for narrow columns: `+12 %`, `−4.0 %`.
pub(crate) fn format_brief_ratio(ratio: f64) -> String {
    let change = (ratio - 1.0) * 100.0;
    match change.abs() < 200.0 && format_percent(change.abs()) != "0.0" {
        true if change < 0.0 => format!("−{} %", format_percent(-change)),
        true => format!("+{} %", format_percent(change)),
        false => format_signed_ratio(ratio),
    }
}

/// Formats a factor: `3.4`, `12`, `340`.
fn format_times(ratio: f64) -> String {
    match ratio {
        r if r < 9.95 => format!("{r:.1}"),
        r => assay_model::units::format_significant(r.round())
            .trim_end_matches(".0")
            .to_owned(),
    }
}

/// Formats a percentage: two decimals between 99 and 100, otherwise one decimal from 10 on.
fn format_exact_percent(change: f64) -> String {
    match change {
        c if (99.0..100.0).contains(&c) => format!("{c:.2}"),
        c if (10.0..100.0).contains(&c) => format!("{c:.1}"),
        c => format_percent(c),
    }
}

/// Formats a fraction as a percentage, without a sign and without needless decimals, such as `3 %` or `2.5 %`.
pub(crate) fn format_share(share: f64) -> String {
    let text = format!("{:.1}", share * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Formats an error rate like [`format_share`] with two significant digits: `5 %`, `0.63 %`.
pub(crate) fn format_error_rate(share: f64) -> String {
    let percent = share * 100.0;
    // Rounded up: an error rate must not look smaller than it is.
    let up = |digits: f64| (percent * digits - 1e-6).ceil() / digits;
    let text = match percent {
        p if p >= 1.0 => format!("{:.1}", up(10.0)),
        _ => format!("{:.2}", up(100.0)),
    };
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Converts the ends of an interval of improvement to changes of the figure, the smaller end first.
pub(crate) fn convert_interval(metric: Metric, low: f64, high: f64) -> (f64, f64) {
    let (a, b) = (
        convert_improvement(metric, low),
        convert_improvement(metric, high),
    );
    (a.min(b), a.max(b))
}

/// Formats an interval of ratios B ÷ A, such as `−1.2 to +3.4 %`.
pub(crate) fn format_span(low: f64, high: f64) -> String {
    let (low, high) = (format_signed_ratio(low), format_signed_ratio(high));
    match (low.strip_suffix(" %"), high.ends_with(" %")) {
        (Some(short), true) => format!("{short} to {high}"),
        _ => format!("{low} to {high}"),
    }
}

/// Formats an interval without signs, such as `8.1 to 17.0 %`, for sentences that contain the direction.
fn format_unsigned_span(low: f64, high: f64) -> String {
    let (mut a, mut b) = (low, high);
    if high <= 1.0 {
        (a, b) = (2.0 - high, 2.0 - low);
    }
    match b >= 3.0 {
        true => format!("{} to {} times", format_times(a), format_times(b)),
        false => format!(
            "{} to {} %",
            format_exact_percent((a - 1.0) * 100.0),
            format_exact_percent((b - 1.0) * 100.0)
        ),
    }
}

/// Formats ` (90 % interval −1.2 to +3.4 %)`, or nothing without an interval. `oriented` is an interval of improvement
/// factors: above 1 is better, also for latencies.
pub(crate) fn format_interval(metric: Metric, oriented: Option<Interval>) -> String {
    let Some(interval) = oriented else {
        return String::new();
    };
    let (low, high) = convert_interval(metric, interval.low, interval.high);
    format!(
        " ({} interval {})",
        format_share(interval.confidence),
        format_span(low, high)
    )
}

/// Describes a change, such as `12.3 % more I/Os per second (90 % interval 8.1 to 17 %)`. A loss is `fewer`; latencies
/// are `lower` or `higher`.
pub(crate) fn describe_metric_change(
    load: &Load,
    of: Metric,
    improvement: f64,
    interval: Option<Interval>,
) -> String {
    let name = metric_name(load, of);
    let ratio = convert_improvement(of, improvement);
    let one_sided = interval
        .map(|i| convert_interval(of, i.low, i.high))
        .filter(|(low, high)| low.is_finite() && high.is_finite())
        .filter(|(low, high)| (*low >= 1.0 && ratio >= 1.0) || (*high <= 1.0 && ratio <= 1.0));
    let range = match (one_sided, interval) {
        (Some((low, high)), Some(interval)) => {
            format!(
                " ({} interval {})",
                format_share(interval.confidence),
                format_unsigned_span(low, high)
            )
        }
        _ => format_interval(of, interval),
    };
    let (more, less) = match of.quantity {
        Quantity::Iops => ("more", "fewer"),
        _ => ("higher", "lower"),
    };
    let text = format_exact_percent((ratio - 1.0).abs() * 100.0);
    match ratio {
        r if !r.is_finite() => format!("no ratio of {name}"),
        r if r >= 3.0 => format!("{} times the {name}{range}", format_times(r)),
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

/// Returns a verdict in capitals, for the beginning of a line.
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

/// Returns the word before the sentence: the verdict or, in an A/A trial, `NOISE`, `FALSE ALARM` or `UNSAFE`.
pub(crate) fn headline_word(view: &TrialView) -> &'static str {
    match (view.trial.plan.aa, view.judgement.verdict) {
        (true, Verdict::Better | Verdict::Worse) => "FALSE ALARM",
        (true, Verdict::Unsafe) => "UNSAFE",
        (true, _) => "NOISE",
        (false, verdict) => verdict_word(verdict),
    }
}

/// Formats the verdict in one plain sentence that begins with the word for the verdict.
#[must_use]
pub fn format_verdict_line(view: &TrialView) -> String {
    format!("{}: {}", headline_word(view), describe_verdict(view))
}

/// Describes the verdict in a sentence, without the word for it.
pub(crate) fn describe_verdict(view: &TrialView) -> String {
    let (plan, judgement) = (&view.trial.plan, view.judgement);
    let pairs = format_count(judgement.pairs as usize, "pair");
    let seen = describe_evidence_so_far(plan, judgement);
    match judgement.verdict {
        Verdict::Unsafe => escape_line(&judgement.reason),
        _ if plan.aa => describe_noise(view, &pairs),
        Verdict::Better => format!("{seen}, {pairs}"),
        Verdict::Worse => match judgement.guards.iter().find(|guard| guard.broken) {
            Some(guard) => format!(
                "{}, {pairs}; the figure itself: {seen}",
                describe_broken_guard(plan, guard)
            ),
            None => match describe_loss_in_total(judgement)
                .filter(|_| judgement.ratio.is_some_and(|r| r >= 1.0))
            {
                Some(total) => format!("{total}, {pairs}; the typical pair: {seen}"),
                None => format!("{seen}, {pairs}"),
            },
        },
        Verdict::NoPracticalDifference => format!(
            "{seen}: less than the {} that matter, {pairs}",
            format_share(plan.margin)
        ),
        Verdict::Undecided if judgement.pairs == 0 => escape_line(&judgement.reason),
        Verdict::Undecided => {
            let needed = match judgement.forecast.filter(|n| *n > judgement.pairs) {
                Some(n) => format!("; about {n} would be needed"),
                None => describe_open_guards(plan, judgement),
            };
            format!("so far {seen}, {pairs}{needed}")
        }
    }
}

/// Describes a total that is worse, even if the typical pair is not worse.
fn describe_loss_in_total(judgement: &Judgement) -> Option<String> {
    let total = judgement.total.filter(|total| total.worse)?;
    Some(format!(
        "over all slots the same work took {} longer",
        format_share(total.time - 1.0)
    ))
}

/// Describes the unproved guardrails because of which a better change is not kept.
fn describe_open_guards(plan: &TrialPlan, judgement: &Judgement) -> String {
    let open: Vec<String> = judgement
        .guards
        .iter()
        .filter(|guard| !guard.held)
        .map(|guard| metric_name(&plan.load, guard.metric))
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

fn describe_evidence_so_far(plan: &TrialPlan, judgement: &Judgement) -> String {
    match judgement.ratio {
        Some(ratio) => describe_metric_change(&plan.load, plan.metric, ratio, judgement.interval),
        None => "no pair gave a ratio".to_owned(),
    }
}

fn describe_broken_guard(plan: &TrialPlan, guard: &GuardJudgement) -> String {
    let flipped = guard.interval.map(|interval| Interval {
        low: 1.0 / interval.high,
        high: 1.0 / interval.low,
        ..interval
    });
    format!(
        "{}, where {} was allowed",
        describe_metric_change(&plan.load, guard.metric, 1.0 / guard.worsening, flipped),
        format_share(guard.margin)
    )
}

/// Describes the noise of the machine that an A/A trial measured.
fn describe_noise(view: &TrialView, pairs: &str) -> String {
    let judgement = view.judgement;
    let Some(sd) = judgement.pair_sd else {
        return format!("{pairs} are too few to say how much the machine varies by itself");
    };
    let name = metric_name(&view.trial.plan.load, view.trial.plan.metric);
    let mut text = format!(
        "two equal sides differ by {} in {name} from pair to pair (standard deviation), {pairs}",
        format_share(sd.exp_m1())
    );
    if !view.smallest.is_empty() {
        let parts: Vec<String> = view
            .smallest
            .iter()
            .map(|(pairs, least)| format!("{} in {pairs}", format_share(*least)))
            .collect();
        text.push_str(&format!(
            "; the smallest difference that could be told: {} pairs",
            parts.join(", ")
        ));
    }
    if matches!(judgement.verdict, Verdict::Better | Verdict::Worse) {
        text = format!(
            "the two equal sides were told apart ({}); chance does this in at most {} of such \
             trials, or something differs between the sides besides the change. {}",
            describe_evidence_so_far(&view.trial.plan, judgement),
            format_error_rate(2.0 * view.trial.plan.alpha),
            capitalize(&text)
        );
    }
    text
}

/// Capitalises the first letter. Words such as `p99` stay unchanged.
pub(crate) fn capitalize(text: &str) -> String {
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
            describe_metric_change(&http(), p99, 1.0 / 0.9, Some(interval)),
            "10.0 % lower p99 latency (90 % interval 4.8 to 20.0 %)"
        );
        assert_eq!(
            describe_metric_change(&http(), Metric::all(Quantity::Iops), 3.4, None),
            "3.4 times the requests per second"
        );
        assert_eq!(format_signed_ratio(0.9996), "±0 %");
        assert_eq!(format_span(0.988, 1.034), "−1.2 to +3.4 %");
        assert_eq!(format_error_rate(0.05 / 8.0), "0.63 %");
    }

    proptest! {
        #[test]
        fn no_ratio_shows_nan(ratio in any::<f64>(), low in any::<f64>(), high in any::<f64>()) {
            let interval = Some(Interval { low, high, confidence: 0.9 });
            for quantity in [Quantity::Iops, Quantity::P99] {
                let text = describe_metric_change(&http(), Metric::all(quantity), ratio, interval);
                prop_assert!(!text.contains("NaN") && !text.contains("inf "), "{}", text);
            }
            prop_assert!(!format_brief_ratio(ratio).contains("NaN") && !format_brief_ratio(ratio).contains("inf"));
        }
    }
}
