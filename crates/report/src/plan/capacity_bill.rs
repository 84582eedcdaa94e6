//! The answer about capacity as text. The charts of the answer are in `answer_sections` and `growth_chart`.

use super::{build_capacity_section, build_growth_section, format_section};
use assay_model::size::Convention::Binary;
use assay_planner::capacity::{CapacityAnswer, Forecast, Trend};
use assay_render::text::{format_named_value, wrap_indented};
use jiff::Timestamp;
use std::fmt::Write as _;

/// Builds the chart sections of the answer: the capacity bill and the growth.
#[must_use]
pub fn build_answer_sections(answer: &CapacityAnswer) -> Vec<super::PlanSection> {
    let bill = answer.bill.as_ref().map(build_capacity_section).into_iter();
    let growth = answer
        .trend
        .as_ref()
        .map(|trend| build_growth_section(trend, answer.size, &answer.forecasts, format_date));
    bill.chain(growth).collect()
}

/// Minimum number of terminal columns at which the reason of a factor is printed beside the factor instead of below it.
const WIDE: usize = 60;

/// Formats decimal terabytes with two decimals, as disk vendors count them.
fn format_terabytes(bytes: u64) -> String {
    format!("{:.2} TB", bytes as f64 / 1e12)
}

fn format_date(time: i64) -> String {
    match Timestamp::from_second(time) {
        Ok(time) => time.strftime("%Y-%m-%d").to_string(),
        Err(_) => "beyond all calendars".into(),
    }
}

/// Formats the whole answer for a terminal. Sentences are wrapped at `columns`.
#[must_use]
pub fn format_answer(answer: &CapacityAnswer, columns: usize) -> String {
    let size = answer.size;
    let wrap = |text: &str, indent| wrap_indented(text, indent, columns);
    let mut text = String::new();
    if let Some(bill) = &answer.bill {
        let _ = writeln!(text, "{} of data", Binary.show(bill.data));
        for (factor, total) in &bill.lines {
            let name: String = factor.name.escape_debug().to_string();
            let _ = write!(
                text,
                "  × {:<7} {name:<12} {:>10}",
                format!("{:.4}", factor.value)
                    .trim_end_matches('0')
                    .trim_end_matches('.'),
                format_terabytes(*total),
            );
            let _ = match columns >= WIDE {
                true => writeln!(text, "   {}", wrap(&factor.why, 38).trim_start()),
                false => writeln!(text, "\n{}", wrap(&factor.why, 4)),
            };
        }
        let _ = write!(
            text,
            "\n{}",
            format_section(&build_capacity_section(bill), 1, columns)
        );
        text.push('\n');
        for (name, value) in [
            (
                "to buy for all systems",
                format!(
                    "{} ({:.2} TB for each TiB)",
                    format_terabytes(bill.total),
                    bill.factor
                ),
            ),
            (
                "to buy for each system",
                format!(
                    "{} (rule of thumb {}:1)",
                    format_terabytes(bill.per_system),
                    bill.rule_of_thumb
                ),
            ),
            (
                "one TB of disk holds",
                format!("{:.2} TiB of data, before redundancy", bill.tib_per_tb),
            ),
        ] {
            text.push_str(&format_named_value(name, &value, 31, columns));
        }
        let last = "--factor NAME=VALUE replaces any of them.";
        let _ = writeln!(text, "\n{}", wrap(last, 2));
    }
    if let Some(trend) = &answer.trend {
        let signed = |value: f64| {
            format!(
                "{}{}",
                if value < 0.0 { "-" } else { "" },
                Binary.show(value.abs() as u64)
            )
        };
        let line = format!(
            "Growth {} a day (95 %: {} to {}), from {} points over {:.0} days; {} on {}.",
            signed(trend.per_day),
            signed(trend.interval.0),
            signed(trend.interval.1),
            trend.points,
            trend.days,
            Binary.show(trend.now.max(0.0) as u64),
            format_date(trend.at)
        );
        let _ = writeln!(text, "\n{}", wrap(&line, 0));
        if size.is_none() {
            text.push_str("Give --size to see when it is full.\n");
        }
    }
    if let (Some(trend), Some(size)) = (&answer.trend, size) {
        for forecast in &answer.forecasts {
            let _ = writeln!(
                text,
                "{}",
                wrap(&describe_forecast(forecast, trend, size), 2)
            );
        }
        let _ = writeln!(text, "{}", wrap(&describe_backtest(trend), 0));
    }
    for (i, line) in describe_snapshots(answer).iter().enumerate() {
        let indent = if i == 0 { 0 } else { 2 };
        let start = if i == 0 { "\n" } else { "" };
        let _ = writeln!(text, "{start}{}", wrap(line, indent));
    }
    text
}

/// Describes in a sentence when a fill level will be reached.
fn describe_forecast(forecast: &Forecast, trend: &Trend, size: u64) -> String {
    let share = forecast.share * 100.0;
    if forecast.already {
        let now = trend.now / size.max(1) as f64 * 100.0;
        return format!(
            "{share:.0} % full already: {now:.0} % on {}",
            format_date(trend.at)
        );
    }
    let when = |time: Option<i64>| time.map_or("perhaps never".to_owned(), format_date);
    match (forecast.when, forecast.earliest) {
        (None, None) => format!(
            "{share:.0} % full: not within {:.0} days, ten times this history",
            trend.days * 10.0
        ),
        (None, Some(earliest)) => format!(
            "{share:.0} % full perhaps never, at the earliest on {} (95 %)",
            format_date(earliest)
        ),
        (Some(_), _) => format!(
            "{share:.0} % full on {} (95 %: {} to {})",
            when(forecast.when),
            when(forecast.earliest),
            when(forecast.latest)
        ),
    }
}

/// Describes how reliable the forecast dates are, from a backtest on the history itself.
fn describe_backtest(trend: &Trend) -> String {
    let seen = trend.coverage;
    match seen.tried {
        0..6 => "The history is too short to try such dates on itself.".to_owned(),
        tried => format!(
            "Said at earlier days of this history, {} of {tried} such dates held ({:.0} %).",
            seen.held,
            seen.held as f64 / tried as f64 * 100.0
        ),
    }
}

/// Describes the space that snapshots use, in one sentence for each policy.
#[must_use]
pub fn describe_snapshots(answer: &CapacityAnswer) -> Vec<String> {
    let Some(rate) = answer.churn_per_day else {
        return Vec::new();
    };
    let measured = if answer.churn_measured {
        " (measured)"
    } else {
        ""
    };
    let mut lines = Vec::new();
    if let Some(held) = answer.held_by_snapshots {
        lines.push(format!(
            "Snapshots hold {} beside the data now; growth is that of the data, with that much added.",
            Binary.show(held)
        ));
    }
    lines.push(format!(
        "Snapshots, with {:.2} % of the data rewritten a day{measured}:",
        rate * 100.0
    ));
    lines.extend(answer.retention.iter().map(|policy| {
        format!(
            "{}: {} snapshots over {:.0} days hold {:.0} % of the data",
            policy.dataset.escape_debug(),
            policy.outcome.snapshots,
            policy.outcome.days,
            policy.outcome.share * 100.0
        )
    }));
    lines
}
