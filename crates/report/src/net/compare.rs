//! Compares two runs of a network test: which people have a better experience, and which network they would choose.

use super::{format_mbit, format_ms, format_percent, grade_word};
use assay_model::SCHEMA_VERSION;
use assay_net::result::{Experience, Run, experience};
use assay_net::role::{Role, Workload};
use assay_net::verdict::{PersonVerdict, RoleVerdict};
use assay_render::table::render_table;
use assay_render::terminal_style::Style;
use assay_render::text::escape_line;
use assay_render::units::NONE;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Ordering;

/// A run with the name under which it is shown.
pub struct NamedRun<'a> {
    /// Name that the report shows for the run.
    pub name: String,
    /// The run as it is stored.
    pub run: &'a Run,
}

fn sum_bit_rates(judged: &[PersonVerdict]) -> f64 {
    let roles = judged.iter().flat_map(|person| &person.roles);
    roles.filter_map(|role| role.bit_per_s).sum()
}

/// Comparison of two networks by the experience of the people on each.
#[derive(Serialize, JsonSchema)]
pub struct Document<'a> {
    schema: u32,
    /// Always `net-comparison`.
    kind: &'static str,
    /// Names of the two runs.
    runs: [&'a str; 2],
    experience: [Experience; 2],
    /// Transferred bits per second of each run.
    bit_per_s: [f64; 2],
    /// Name of the better run; null if people would not notice a difference.
    better: Option<&'a str>,
    judged: [Vec<PersonVerdict>; 2],
}

/// Returns the comparison as one JSON object.
#[must_use]
pub fn json(runs: &[NamedRun<'_>; 2]) -> String {
    let judged = runs.each_ref().map(|named| named.run.judged());
    let of = judged.each_ref().map(|judged| experience(judged));
    let better = match of[0].order(&of[1]) {
        Ordering::Less => Some(runs[0].name.as_str()),
        Ordering::Greater => Some(runs[1].name.as_str()),
        Ordering::Equal => None,
    };
    let value = serde_json::json!(Document {
        schema: SCHEMA_VERSION,
        kind: "net-comparison",
        runs: runs.each_ref().map(|named| named.name.as_str()),
        experience: of,
        bit_per_s: judged.each_ref().map(|judged| sum_bit_rates(judged)),
        better,
        judged,
    });
    format!("{value:#}\n")
}

/// Renders the comparison for a terminal: every role of all people in both runs, then the better run.
#[must_use]
pub fn compared(runs: &[NamedRun<'_>; 2], style: Style) -> String {
    let judged = runs.each_ref().map(|named| named.run.judged());
    let names = runs.each_ref().map(|named| escape_line(&named.name));
    let mut rows: Vec<Vec<String>> = Vec::new();
    let people = runs[0].run.plan.people.iter().zip(&judged[0]);
    for (person, verdict) in people {
        let roles = runs[0].run.plan.roles_of(person).unwrap_or_default();
        let other = judged[1]
            .iter()
            .find(|other| other.person == verdict.person);
        for (role, one) in roles.iter().zip(&verdict.roles) {
            let two = other.and_then(|other| other.roles.iter().find(|two| two.role == one.role));
            rows.push(vec![
                escape_line(&verdict.person),
                escape_line(&one.role),
                describe_role(role, one),
                two.map_or_else(|| NONE.to_owned(), |two| describe_role(role, two)),
            ]);
        }
    }
    let mut out = render_table(0, "llll", &["", "role", &names[0], &names[1]], &rows);
    out.push('\n');
    style.write_paragraph(&mut out, "", 0, &describe_preference(runs, &judged));
    out
}

/// Returns sentences about which network the people would choose.
pub(super) fn describe_preference(
    runs: &[NamedRun<'_>; 2],
    judged: &[Vec<PersonVerdict>; 2],
) -> String {
    let names = runs.each_ref().map(|named| escape_line(&named.name));
    let of = judged.each_ref().map(|judged| experience(judged));
    let [one, two] = judged.each_ref().map(|judged| sum_bit_rates(judged));
    let (better, worse, fewer) = match of[0].order(&of[1]) {
        Ordering::Equal => {
            return "People would not notice which of the two they have.".to_owned();
        }
        Ordering::Less => (0, 1, one < two),
        Ordering::Greater => (1, 0, two < one),
    };
    let counts = |at: usize| (of[at].bad, of[at].tolerable);
    let mut text = match counts(better) == counts(worse) {
        true => format!(
            "{} is the better network: on average {} of what was due missed its goal, instead of {}; as many people \
             suffered.",
            names[better],
            format_percent(of[better].over),
            format_percent(of[worse].over)
        ),
        false => format!(
            "{} is the better network: bad for {} instead of {}, tolerable for {} instead of {}.",
            names[better], of[better].bad, of[worse].bad, of[better].tolerable, of[worse].tolerable
        ),
    };
    if fewer {
        text += " It moved fewer bytes, which nobody noticed.";
    }
    if of.iter().any(|of| of.unknown > 0) {
        text += " Of some people nothing is known.";
    }
    text
}

pub(super) fn describe_role(role: &Role, verdict: &RoleVerdict) -> String {
    let word = grade_word(verdict.grade);
    match &role.workload {
        Workload::Bulk { .. } | Workload::Responsiveness { .. } => {
            let rate = verdict
                .bit_per_s
                .map_or_else(|| NONE.to_owned(), format_mbit);
            format!("{word}, {rate}")
        }
        _ => {
            let share = verdict
                .share_over()
                .map_or_else(|| NONE.to_owned(), format_percent);
            format!(
                "{word}, {share} over, p50 {}",
                format_ms(verdict.latency.p50)
            )
        }
    }
}
