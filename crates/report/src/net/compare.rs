//! Two runs beside each other: for whom it got better, and which network people would take.

use super::{grade, mbit, ms, percent};
use assay_model::SCHEMA_VERSION;
use assay_net::result::{Run, experience};
use assay_net::role::{Role, Workload};
use assay_net::verdict::{PersonVerdict, RoleVerdict};
use assay_page::style::Style;
use assay_page::table::table;
use assay_page::text::clean;
use assay_page::units::NONE;
use std::cmp::Ordering;

/// A run with its name.
pub struct Named<'a> {
    /// How it is called.
    pub name: String,
    /// As carried out.
    pub run: &'a Run,
}

fn moved(judged: &[PersonVerdict]) -> f64 {
    let roles = judged.iter().flat_map(|person| &person.roles);
    roles.filter_map(|role| role.bit_per_s).sum()
}

/// One JSON object.
#[must_use]
pub fn json(runs: &[Named<'_>; 2]) -> String {
    let judged = runs.each_ref().map(|named| named.run.judged());
    let of = judged.each_ref().map(|judged| experience(judged));
    let better = match of[0].order(&of[1]) {
        Ordering::Less => Some(&runs[0].name),
        Ordering::Greater => Some(&runs[1].name),
        Ordering::Equal => None,
    };
    let value = serde_json::json!({
        "schema": SCHEMA_VERSION,
        "kind": "net-comparison",
        "runs": runs.each_ref().map(|named| &named.name),
        "experience": of,
        "bit_per_s": judged.each_ref().map(|judged| moved(judged)),
        "better": better,
        "judged": judged,
    });
    format!("{value:#}\n")
}

/// For a terminal: every role of everybody in both, then which run was the better one.
#[must_use]
pub fn compared(runs: &[Named<'_>; 2], style: Style) -> String {
    let judged = runs.each_ref().map(|named| named.run.judged());
    let names = runs.each_ref().map(|named| clean(&named.name));
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
                clean(&verdict.person),
                clean(&one.role),
                said(role, one),
                two.map_or_else(|| NONE.to_owned(), |two| said(role, two)),
            ]);
        }
    }
    let mut out = table(0, "llll", &["", "role", &names[0], &names[1]], &rows);
    out.push('\n');
    let [a, b] = judged.each_ref().map(|judged| experience(judged));
    let [fast, slow] = judged.each_ref().map(|judged| moved(judged));
    let (better, worse, more) = match a.order(&b) {
        Ordering::Equal => {
            style.paragraph(
                &mut out,
                "",
                0,
                "People would not notice which of the two they have.",
            );
            return out;
        }
        Ordering::Less => (0, 1, fast < slow),
        Ordering::Greater => (1, 0, slow < fast),
    };
    let of = [a, b];
    let mut text = format!(
        "{} is the better network: bad for {} instead of {}, tolerable for {} instead of {}.",
        names[better], of[better].bad, of[worse].bad, of[better].tolerable, of[worse].tolerable
    );
    if more {
        text += " It moved fewer bytes, which nobody noticed.";
    }
    if of.iter().any(|of| of.unknown > 0) {
        text += " Of some people nothing is known.";
    }
    style.paragraph(&mut out, "", 0, &text);
    out
}

fn said(role: &Role, verdict: &RoleVerdict) -> String {
    let word = grade(verdict.grade);
    match &role.workload {
        Workload::Bulk { .. } | Workload::Responsiveness { .. } => {
            let rate = verdict.bit_per_s.map_or_else(|| NONE.to_owned(), mbit);
            format!("{word}, {rate}")
        }
        _ => {
            let share = verdict
                .share_over()
                .map_or_else(|| NONE.to_owned(), percent);
            format!("{word}, {share} over, p50 {}", ms(verdict.latency.p50))
        }
    }
}
