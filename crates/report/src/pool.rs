//! The combined results of trials on many machines. The trials are combined in `assay-pool`.

use assay_model::SCHEMA_VERSION;
use assay_pool::stats::LEAST_OWNERS;
use assay_pool::{Effect, Funnel, Pooled};
use assay_render::Style;
use assay_render::text::escape_line;
use schemars::JsonSchema;
use serde::Serialize;

/// Results of a pool of trials.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Document")]
pub struct PoolDocument<'a> {
    schema: u32,
    /// One entry for each combination of advice, figure and parameters. Simulated trials have entries of their own.
    pooled: &'a [Pooled],
}

/// Builds one JSON object of all combined results.
#[must_use]
pub fn pool_to_json(pooled: &[Pooled]) -> serde_json::Value {
    serde_json::json!(PoolDocument {
        schema: SCHEMA_VERSION,
        pooled,
    })
}

/// Formats all results, one paragraph for each question.
#[must_use]
pub fn format_pooled_results(pooled: &[Pooled], style: Style) -> String {
    let mut out = String::new();
    for one in pooled {
        out.push_str(&style.bold(&format_title(one)));
        out.push('\n');
        for line in format_effect_lines(one) {
            style.write_paragraph(&mut out, "", 2, &line);
        }
        out.push('\n');
    }
    out
}

fn format_title(one: &Pooled) -> String {
    let mut title = escape_line(&one.advice);
    for (name, value) in &one.parameters {
        title += &format!(" {}={}", escape_line(name), escape_line(value));
    }
    format!("{title}: {}", one.metric)
}

/// Formats the lines of a result: the headline, the trials that it is based on, and the trials that were never
/// finished.
#[must_use]
pub fn format_effect_lines(one: &Pooled) -> Vec<String> {
    let mut lines = Vec::new();
    if one.simulated {
        lines.push("SIMULATED: nobody measured this, it shows what a pool looks like.".to_owned());
    }
    match &one.effect {
        Some(effect) => {
            lines.push(format_headline(effect));
            lines.push(format_mean(effect, one));
            lines.extend(describe_left_out(effect));
        }
        None => lines.push(format!(
            "{} of {}: nothing is told of fewer than {LEAST_OWNERS} owners.",
            format_count(one.machines, "machine"),
            format_count(one.owners, "owner"),
        )),
    }
    for group in &one.groups {
        if let Some(effect) = &group.effect {
            lines.push(format!(
                "{} {} ({} of {}): {}",
                group.moderator.words(),
                escape_line(&group.value),
                format_count(group.machines, "machine"),
                format_count(group.owners, "owner"),
                format_headline(effect)
            ));
        }
    }
    lines.push(format_funnel(&one.funnel));
    if one.pages > 1 {
        lines.push(format!(
            "These trials rest on {} versions of the page, or of assay.",
            one.pages
        ));
    }
    lines
}

/// Formats the effect that a user with one machine can expect.
#[must_use]
pub fn format_headline(effect: &Effect) -> String {
    let worthwhile = format_percent(effect.worthwhile);
    format!(
        "On a machine like yours {} to {} %; {:.0} % of such machines gain more than {} %, {:.0} % lose \
         more than that.",
        format_signed_percent(effect.prediction.low),
        format_signed_percent(effect.prediction.high),
        100.0 * effect.gain_more,
        worthwhile,
        100.0 * effect.lose_more,
    )
}

fn format_mean(effect: &Effect, one: &Pooled) -> String {
    format!(
        "The mean of {} of {} is {} % ({} to {} %).",
        format_count(one.machines, "machine"),
        format_count(one.owners, "owner"),
        format_signed_percent(effect.mean),
        format_signed_percent(effect.mean_interval.low),
        format_signed_percent(effect.mean_interval.high),
    )
}

fn describe_left_out(effect: &Effect) -> Option<String> {
    let without = effect.without_one.as_ref()?;
    let owner: String = without.owner.chars().take(8).collect();
    Some(format!(
        "Without any one owner the mean is {} to {} %; owner {owner} moves it most.",
        format_signed_percent(without.range[0]),
        format_signed_percent(without.range[1]),
    ))
}

fn format_funnel(funnel: &Funnel) -> String {
    format!(
        "Of {} that {} started {} came to the end, {} stopped, {} cut off; {} undecided, {} better, {} \
         worse, {} without a practical difference, {} unsafe. {} too few pairs for a figure.",
        format_count(funnel.started, "trial"),
        if funnel.started == 1 { "was" } else { "were" },
        funnel.done,
        choose_was_or_were(funnel.stopped),
        choose_was_or_were(funnel.cut_off),
        choose_was_or_were(funnel.undecided),
        funnel.better,
        funnel.worse,
        funnel.same,
        funnel.not_safe,
        match funnel.without_figure {
            0 => "None has".to_owned(),
            1 => "1 has".to_owned(),
            some => format!("{some} have"),
        }
    )
}

fn choose_was_or_were(number: usize) -> String {
    match number {
        1 => "1 was".to_owned(),
        other => format!("{other} were"),
    }
}

fn format_count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        other => format!("{other} {noun}s"),
    }
}

/// Formats a percentage with its sign, and with one decimal if the number is small.
fn format_signed_percent(share: f64) -> String {
    let value = 100.0 * share;
    let digits = usize::from(value.abs() < 9.95);
    let text = format!("{value:+.digits$}");
    match text.trim_start_matches(['+', '-', '0', '.']).is_empty() {
        true => "0".to_owned(),
        false => text.replace('-', "−"),
    }
}

fn format_percent(share: f64) -> String {
    let text = format!("{:.1}", 100.0 * share);
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}
