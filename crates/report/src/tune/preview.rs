//! The plan of a tuning session, shown before the session begins.

use assay_model::Nanos;
use assay_render::Style;
use assay_render::table::render_table;
use assay_render::text::{escape_line, format_paragraph};
use assay_tune::{LeftOut, TunePlan, TuneRecord};
use std::collections::BTreeMap;

/// Renders the plan of a session: the goal, the commands that run, the candidates in order, the candidates that are
/// left out with the reasons, and the time.
#[must_use]
pub fn render_tune_preview(record: &TuneRecord, style: Style) -> String {
    let plan = &record.plan;
    let columns = style.columns();
    let mut out = style.bold("Goal");
    out.push('\n');
    for want in &plan.goal.wants {
        out.push_str(&format!("  {}\n", escape_line(&want.to_string())));
    }
    out.push_str(&format_paragraph(
        &format!("Load: {}.", escape_line(&record.load.describe())),
        2,
        columns,
    ));
    if let Some(command) = &record.guard_command {
        let command = escape_line(&command.join(" "));
        let text = format!("Must succeed with every change: `{command}`.");
        out.push_str(&format_paragraph(&text, 2, columns));
    }
    for guard in &plan.goal.guards {
        out.push_str(&format!(
            "  {} must not get worse by more than {:.0} % (judged on all kept changes together)\n",
            guard.metric,
            guard.margin * 100.0
        ));
    }
    let limit = match plan.limit {
        Some(limit) => format!("{limit:?}").to_lowercase(),
        None => "not known before the first measurement".to_owned(),
    };
    out.push_str(&format!("  What limits: {limit}\n\n"));
    let (order, left_out) = plan.diagnose(0);
    out.push_str(&style.bold(&format!("Would be tried, in this order: {}", order.len())));
    out.push('\n');
    let rows: Vec<Vec<String>> = order
        .iter()
        .filter_map(|at| {
            let (candidate, change) = (&plan.candidates[*at], record.shown_change(*at)?);
            Some(vec![
                escape_line(&candidate.id),
                escape_line(&change.name),
                escape_line(&change.was),
                escape_line(change.value.as_deref().unwrap_or("no line for it")),
                format!(
                    "{:.0} %, {:+.0} %",
                    candidate.prior.helps * 100.0,
                    candidate.prior.gain * 100.0
                ),
            ])
        })
        .collect();
    if rows.is_empty() {
        out.push_str("  none: no page of the catalogue can move this figure here\n");
    } else {
        let head = ["advice", "setting", "is", "would be", "guess: helps, by"];
        out.push_str(&render_table(2, "lllll", &head, &rows));
    }
    if !left_out.is_empty() {
        out.push('\n');
        out.push_str(&style.bold(&format!("Left out: {}", left_out.len())));
        out.push('\n');
        for (reason, ids) in group_by_reason(plan, &left_out) {
            let reason = reason.trim_end_matches('.');
            out.push_str(&format_paragraph(
                &format!("{}:", escape_line(reason)),
                2,
                columns,
            ));
            out.push_str(&format_paragraph(&escape_line(&ids.join(", ")), 6, columns));
        }
    }
    out.push('\n');
    out.push_str(&style.bold("Time"));
    out.push('\n');
    let round = |time: Nanos| Nanos(time.0.div_ceil(1_000_000_000) * 1_000_000_000);
    out.push_str(&format_paragraph(
        &format!(
            "At most {} in all; the shortest session that can prove something takes about {}. Everything is \
             reverted at the end, unless it is proved; what is kept is undone by `assay tune --undo`.",
            plan.budget,
            round(plan.shortest())
        ),
        2,
        columns,
    ));
    out
}

/// Groups advice pages by reason, in the order of their first candidate. A page with several values is listed once.
fn group_by_reason(
    plan: &TunePlan,
    left_out: &BTreeMap<usize, LeftOut>,
) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for (at, why) in left_out {
        let id = plan.candidates[*at].id.as_str();
        let page = id.split('=').next().unwrap_or(id).to_owned();
        // A reason that contains the id of its page counts as the same for all pages.
        let reason = why
            .to_string()
            .replace(&format!("`{page}`"), "the advice")
            .replace(&format!("`assay trial {page}`"), "`assay trial ADVICE`");
        match groups.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, pages)) if pages.last() == Some(&page) => {}
            Some((_, pages)) => pages.push(page),
            None => groups.push((reason, vec![page])),
        }
    }
    groups
}
