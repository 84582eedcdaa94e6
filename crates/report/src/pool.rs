//! What the trials of many machines amount to, in words.

use assay_model::SCHEMA_VERSION;
use assay_pool::stats::LEAST_OWNERS;
use assay_pool::{Effect, Funnel, Pooled};
use assay_render::Style;
use assay_render::text::clean;
use schemars::JsonSchema;
use serde::Serialize;

/// What a pool says.
#[derive(Serialize, JsonSchema)]
pub struct Document<'a> {
    schema: u32,
    /// One for each piece of advice, figure and set of parameters; those that are simulated apart.
    pooled: &'a [Pooled],
}

/// One JSON object.
#[must_use]
pub fn json(pooled: &[Pooled]) -> serde_json::Value {
    serde_json::json!(Document {
        schema: SCHEMA_VERSION,
        pooled,
    })
}

/// All that is known, one paragraph for each question.
#[must_use]
pub fn terminal(pooled: &[Pooled], style: Style) -> String {
    let mut out = String::new();
    for one in pooled {
        out.push_str(&style.bold(&title(one)));
        out.push('\n');
        for line in lines(one) {
            style.paragraph(&mut out, "", 2, &line);
        }
        out.push('\n');
    }
    out
}

fn title(one: &Pooled) -> String {
    let mut title = clean(&one.advice);
    for (name, value) in &one.parameters {
        title += &format!(" {}={}", clean(name), clean(value));
    }
    format!("{title}: {}", one.metric)
}

/// The headline, what it rests on, and what was never finished.
#[must_use]
pub fn lines(one: &Pooled) -> Vec<String> {
    let mut lines = Vec::new();
    if one.simulated {
        lines.push("SIMULATED: nobody measured this, it shows what a pool looks like.".to_owned());
    }
    match &one.effect {
        Some(effect) => {
            lines.push(headline(effect));
            lines.push(mean(effect, one));
            lines.extend(left_out(effect));
        }
        None => lines.push(format!(
            "{} of {}: nothing is told of fewer than {LEAST_OWNERS} owners.",
            count(one.machines, "machine"),
            count(one.owners, "owner"),
        )),
    }
    for group in &one.groups {
        if let Some(effect) = &group.effect {
            lines.push(format!(
                "{} {} ({} of {}): {}",
                group.moderator.words(),
                clean(&group.value),
                count(group.machines, "machine"),
                count(group.owners, "owner"),
                headline(effect)
            ));
        }
    }
    lines.push(funnel(&one.funnel));
    if one.pages > 1 {
        lines.push(format!(
            "These trials rest on {} versions of the page, or of assay.",
            one.pages
        ));
    }
    lines
}

/// What somebody with one machine wants to know.
#[must_use]
pub fn headline(effect: &Effect) -> String {
    let worthwhile = percent(effect.worthwhile);
    format!(
        "On a machine like yours {} to {} %; {:.0} % of such machines gain more than {} %, {:.0} % lose \
         more than that.",
        signed(effect.prediction.low),
        signed(effect.prediction.high),
        100.0 * effect.gain_more,
        worthwhile,
        100.0 * effect.lose_more,
    )
}

fn mean(effect: &Effect, one: &Pooled) -> String {
    format!(
        "The mean of {} of {} is {} % ({} to {} %).",
        count(one.machines, "machine"),
        count(one.owners, "owner"),
        signed(effect.mean),
        signed(effect.mean_interval.low),
        signed(effect.mean_interval.high),
    )
}

fn left_out(effect: &Effect) -> Option<String> {
    let without = effect.without_one.as_ref()?;
    let owner: String = without.owner.chars().take(8).collect();
    Some(format!(
        "Without any one owner the mean is {} to {} %; owner {owner} moves it most.",
        signed(without.range[0]),
        signed(without.range[1]),
    ))
}

fn funnel(funnel: &Funnel) -> String {
    format!(
        "Of {} that {} started {} came to the end, {} stopped, {} cut off; {} undecided, {} better, {} \
         worse, {} without a practical difference, {} unsafe. {} too few pairs for a figure.",
        count(funnel.started, "trial"),
        if funnel.started == 1 { "was" } else { "were" },
        funnel.done,
        were(funnel.stopped),
        were(funnel.cut_off),
        were(funnel.undecided),
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

fn were(number: usize) -> String {
    match number {
        1 => "1 was".to_owned(),
        other => format!("{other} were"),
    }
}

fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        other => format!("{other} {noun}s"),
    }
}

/// With a sign, and one digit behind the point where the number is small.
fn signed(share: f64) -> String {
    let value = 100.0 * share;
    let digits = usize::from(value.abs() < 9.95);
    let text = format!("{value:+.digits$}");
    match text.trim_start_matches(['+', '-', '0', '.']).is_empty() {
        true => "0".to_owned(),
        false => text.replace('-', "−"),
    }
}

fn percent(share: f64) -> String {
    let text = format!("{:.1}", 100.0 * share);
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}
