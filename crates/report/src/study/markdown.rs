//! The Markdown report of a study, for issues, wikis and commit messages. Shared text is in
//! `study_text`.

use super::{StudyView, curve_tables, study_text};
use crate::markdown::end_sentence;
use assay_render::markdown::{escape_markdown, render_table};
use assay_render::units::{NONE, format_timestamp};

/// Renders GitHub-flavoured Markdown: conclusions, figures, a list of what was not tried, and the machine.
#[must_use]
pub fn render_study_markdown(view: &StudyView<'_>) -> String {
    let (run, study) = (view.run, &view.run.study);
    let mut out = format!(
        "# {}\n\n{}\n\n",
        escape_markdown(&study.title),
        escape_markdown(&study.question)
    );
    let cut = if run.complete {
        ""
    } else {
        ", cut off before its end"
    };
    out.push_str(&format!(
        "- Published: {}; {}\n- Here: {} form, {}, {}{cut}, seed {}\n",
        escape_markdown(&study_text::format_source(study)),
        escape_markdown(&study.source.machine),
        escape_markdown(&run.form),
        study_text::format_rounds(run),
        format_timestamp(run.started),
        run.seed
    ));
    if run.emulated {
        out.push_str(
            "- The guest was emulated (TCG): figures of throughput compare with each \
            other, not with real machines.\n",
        );
    }
    out.push_str("\n## Conclusions\n\n");
    for one in &view.result.conclusions {
        out.push_str(&format!(
            "- **{}**: {}\n",
            study_text::finding_word(one.finding),
            end_sentence(&escape_markdown(&one.says))
        ));
        for claim in &one.claims {
            let evidence = study_text::describe_evidence(study, claim);
            let evidence = match evidence.is_empty() {
                true => String::new(),
                false => format!("{}: ", escape_markdown(&evidence)),
            };
            out.push_str(&format!(
                "  - {}: {}: {evidence}{}\n",
                escape_markdown(&study_text::describe_claim(study, &claim.claim)),
                study_text::finding_word(claim.finding),
                end_sentence(&escape_markdown(&claim.why))
            ));
        }
        let finding_text = study_text::describe_published_finding(one.published_finding);
        let finding_text =
            finding_text.map(|finding_text| format!("By the same rule {finding_text}"));
        let today = (!one.today.is_empty()).then(|| format!("Today: {}", one.today));
        let why = (!one.why.is_empty()).then(|| one.why.clone());
        for line in why.into_iter().chain(finding_text).chain(today) {
            out.push_str(&format!("  - {}\n", end_sentence(&escape_markdown(&line))));
        }
    }
    write_rankings(view, &mut out);
    write_curves(view, &mut out);
    write_figures(view, &mut out);
    if !run.not_tried.is_empty() {
        out.push_str("\n## Not tried\n\n");
    }
    for not in &run.not_tried {
        out.push_str(&format!(
            "- {}\n",
            escape_markdown(&study_text::describe_not_tried(study, not))
        ));
    }
    out.push_str("\n## Machine\n\n");
    for (name, value) in &run.machine {
        out.push_str(&format!(
            "- {}: {}\n",
            escape_markdown(name),
            escape_markdown(value)
        ));
    }
    out
}

fn write_rankings(view: &StudyView<'_>, out: &mut String) {
    let study = &view.run.study;
    for ranking in &view.result.rankings {
        let Some(figure) = study.figure(&ranking.figure) else {
            continue;
        };
        let rows = study_text::rank_rows(study, figure, ranking).into_iter();
        let rows = rows.map(|row| {
            row.cells
                .iter()
                .map(|cell| escape_markdown(cell))
                .collect::<Vec<_>>()
        });
        let head = ["rank", "configuration", "here", "", "published rank"];
        let table = render_table(&head, "rlrlr", rows);
        out.push_str(&format!(
            "\n## Ranked by {}\n\n{table}",
            escape_markdown(figure.title())
        ));
    }
}

fn write_curves(view: &StudyView<'_>, out: &mut String) {
    for curve in curve_tables::collect_curves(&view.run.study) {
        let curve = curve.restrict_to_known(view);
        let rows = curve.build_rows(view);
        let cells = rows.iter().map(|row| {
            let title = row.configuration.title();
            let name = match row.published {
                true => format!("{title}, published"),
                false => title.to_owned(),
            };
            let cells = row.cells_with_intervals(&curve);
            [name]
                .into_iter()
                .chain(cells)
                .map(|cell| escape_markdown(&cell))
                .collect::<Vec<_>>()
        });
        let points: Vec<String> = curve.points.iter().map(|(at, _)| at.to_string()).collect();
        let head: Vec<&str> = ["configuration"]
            .into_iter()
            .chain(points.iter().map(String::as_str))
            .collect();
        let sides = format!("l{}", "r".repeat(points.len()));
        let table = render_table(&head, &sides, cells);
        out.push_str(&format!(
            "\n## {}\n\n{table}",
            escape_markdown(&curve.format_title(""))
        ));
    }
}

fn write_figures(view: &StudyView<'_>, out: &mut String) {
    for figure in curve_tables::list_single_figures(&view.run.study) {
        let cells = view.result.cells.iter();
        let cells: Vec<_> = cells.filter(|cell| cell.figure == figure.name).collect();
        if cells.is_empty() {
            continue;
        }
        let rows = cells.into_iter().map(|cell| {
            let ours = cell.estimate.as_ref();
            let published = cell.published.as_ref();
            let mark = if cell.doubts.is_empty() { "" } else { " ?" };
            [
                escape_markdown(study_text::configuration_title(
                    &view.run.study,
                    &cell.configuration,
                )),
                ours.map_or(NONE.to_owned(), |one| {
                    study_text::format_estimate(figure, one) + mark
                }),
                published.map_or(NONE.to_owned(), |one| {
                    study_text::format_published(figure, one)
                }),
            ]
        });
        let table = render_table(&["configuration", "here", "published"], "lrr", rows);
        out.push_str(&format!(
            "\n## {}\n\n{table}",
            escape_markdown(figure.title())
        ));
    }
}
