//! The terminal report of a study, conclusions first. Shared text is in `study_text`.

use super::curve_tables::{self, StudyCurve, choose_row_label};
use super::{StudyView, study_text};
use assay_model::study::{Cell, Configuration, Figure, JudgedConclusion, Ranking, Support};
use assay_render::Style;
use assay_render::text::{escape_line, measure_width, pad_left, pad_right};
use assay_render::units::format_timestamp;

/// Renders the report of a study for a terminal.
#[must_use]
pub fn render_study_text(view: &StudyView<'_>, style: Style) -> String {
    let (run, study) = (view.run, &view.run.study);
    let mut out = format!("{}\n", style.bold(&escape_line(&study.title)));
    style.write_paragraph(&mut out, "", 2, &escape_line(&study.question));
    let source = format!(
        "{}; measured on {}",
        escape_line(&study_text::format_source(study)),
        escape_line(&study.source.machine)
    );
    out.push('\n');
    style.write_paragraph(&mut out, "Source", 8, &source);
    let cut = if run.complete {
        ""
    } else {
        ", cut off before its end"
    };
    let here = format!(
        "{} form, {}, {}{cut}, seed {}",
        escape_line(&run.form),
        study_text::format_rounds(run),
        format_timestamp(run.started),
        run.seed
    );
    style.write_paragraph(&mut out, "Here", 8, &here);
    if run.emulated {
        let text = "The guest was emulated (TCG): compare figures of throughput with each other, \
                    not with real machines.";
        style.write_paragraph(&mut out, "", 8, text);
    }
    out.push_str(&format!("\n{}\n", style.bold("Conclusions")));
    for one in &view.result.conclusions {
        write_conclusion(&mut out, view, one, style);
    }
    for ranking in &view.result.rankings {
        write_ranking(&mut out, view, ranking, style);
    }
    let all = curve_tables::collect_curves(study);
    for curve in &all {
        write_curve(&mut out, view, &curve.restrict_to_known(view), style);
    }
    if !all.is_empty() {
        let text = "Their intervals are in --json, --markdown and --html. ?: with a doubt; void: it \
            does not mean what it says.";
        out.push('\n');
        style.write_paragraph(&mut out, "", 0, text);
    }
    write_figures(&mut out, view, style);
    if !run.not_tried.is_empty() {
        out.push_str(&format!("\n{}\n", style.bold("Not tried")));
        for not in &run.not_tried {
            style.write_paragraph(
                &mut out,
                "  -",
                4,
                &escape_line(&study_text::describe_not_tried(study, not)),
            );
        }
    }
    out.push_str(&format!("\n{}\n", style.bold("Machine")));
    let longest = run.machine.keys().map(|name| name.chars().count()).max();
    let indent = longest.unwrap_or(0).clamp(14, 24) + 4;
    for (name, value) in &run.machine {
        style.write_paragraph(
            &mut out,
            &format!("  {}", escape_line(name)),
            indent,
            &escape_line(value),
        );
    }
    out
}

fn write_conclusion(out: &mut String, view: &StudyView<'_>, one: &JudgedConclusion, style: Style) {
    let study = &view.run.study;
    let word = study_text::finding_word(one.finding);
    let sgr = match one.finding {
        Support::Supported => "32",
        Support::Contradicted => "31",
        Support::Unresolved => "33",
        Support::NotTried => "2",
    };
    out.push_str(&format!("  {}\n", style.paint(sgr, word)));
    let mut line = |indent: usize, label: &str, text: &str| {
        style.write_paragraph(out, label, indent, &escape_line(text));
    };
    line(4, "", &one.says);
    for claim in &one.claims {
        line(6, "    -", &study_text::describe_claim(study, &claim.claim));
        let evidence = study_text::describe_evidence(study, claim);
        let why = match evidence.is_empty() {
            true => format!("{}: {}", study_text::finding_word(claim.finding), claim.why),
            false => format!(
                "{}: {evidence}: {}",
                study_text::finding_word(claim.finding),
                claim.why
            ),
        };
        line(8, "", &why);
    }
    if !one.why.is_empty() {
        line(4, "", &one.why);
    }
    if let Some(finding_text) = study_text::describe_published_finding(one.published_finding) {
        line(4, "", finding_text);
    }
    if !one.today.is_empty() {
        line(4, "", &format!("Today: {}", one.today));
    }
}

/// Writes a ranking, best first, and marks neighbours that differ significantly.
fn write_ranking(out: &mut String, view: &StudyView<'_>, ranking: &Ranking, style: Style) {
    let study = &view.run.study;
    let Some(figure) = study.figure(&ranking.figure) else {
        return;
    };
    out.push('\n');
    let title = escape_line(&format!("Ranked by {}", figure.title()));
    for line in assay_render::text::wrap_lines(&title, style.columns()) {
        out.push_str(&format!("{}\n", style.bold(&line)));
    }
    let rows: Vec<Vec<String>> = study_text::rank_rows(study, figure, ranking)
        .into_iter()
        .map(|mut row| {
            let known = study.configuration(&ranking.places[row.at].configuration);
            row.cells[1] = known.map_or(String::new(), choose_row_label);
            if !row.cells[3].is_empty() {
                "≈".clone_into(&mut row.cells[3]);
            }
            row.cells
        })
        .collect();
    out.push_str(&assay_render::table::render_table(
        2,
        "rlrlr",
        &["", "", "here", "", "published"],
        &rows,
    ));
    if rows.iter().any(|row| !row[3].is_empty()) {
        out.push_str(&format!(
            "{}\n",
            style.dim("  ≈: not told apart from the next")
        ));
    }
}

/// Writes a curve as tables. Each has as many points side by side as fit.
fn write_curve(out: &mut String, view: &StudyView<'_>, curve: &StudyCurve<'_>, style: Style) {
    let rows = curve.build_rows(view);
    let (unit, by) = curve.choose_unit(&rows);
    let cells: Vec<Vec<String>> = rows.iter().map(|row| row.short_cells(by)).collect();
    let names: Vec<String> = rows
        .iter()
        .map(|row| match row.published {
            true if row.alone => format!("{} (published)", choose_row_label(row.configuration)),
            true => "  published".to_owned(),
            false => choose_row_label(row.configuration),
        })
        .collect();
    let name = names
        .iter()
        .map(|name| measure_width(name))
        .max()
        .unwrap_or(0);
    let points = curve.points.iter();
    let heads: Vec<String> = points.map(|(at, _)| at.to_string()).collect();
    let texts = cells.iter().flatten().chain(&heads);
    let cell = texts.map(|text| measure_width(text)).max().unwrap_or(0) + 2;
    let room = style.columns().saturating_sub(name + 2) / cell;
    for from in (0..curve.points.len()).step_by(room.max(1)) {
        let until = (from + room.max(1)).min(curve.points.len());
        out.push('\n');
        for line in assay_render::text::wrap_lines(&curve.format_title(&unit), style.columns()) {
            out.push_str(&format!("{}\n", style.bold(&line)));
        }
        let line = |name_of: &str, cells: &[String]| {
            let cells: String = cells.iter().map(|text| pad_left(text, cell)).collect();
            format!("{}{cells}", pad_right(name_of, name + 2))
                .trim_end()
                .to_owned()
        };
        let head = line("", &heads[from..until]);
        out.push_str(&format!("{}\n", style.dim(&head)));
        for ((row, name), cells) in rows.iter().zip(&names).zip(&cells) {
            if cells[from..until].iter().all(String::is_empty) {
                continue;
            }
            let text = line(name, &cells[from..until]);
            out.push_str(&if row.published {
                style.dim(&text)
            } else {
                text
            });
            out.push('\n');
        }
    }
}

/// Number of terminal columns for the name of a configuration.
const NAME: usize = 26;
/// Number of terminal columns for one figure.
const COLUMN: usize = 18;

/// Writes tables with configurations as rows and figures as columns. Each has as many figures side by side as fit.
fn write_figures(out: &mut String, view: &StudyView<'_>, style: Style) {
    let study = &view.run.study;
    let room = (style.columns().saturating_sub(NAME) / COLUMN).max(1);
    for figures in curve_tables::list_single_figures(study).chunks(room) {
        let titles: Vec<Vec<String>> = figures
            .iter()
            .map(|figure| assay_render::text::wrap_lines(&escape_line(figure.title()), COLUMN - 2))
            .collect();
        out.push('\n');
        for line in 0..titles.iter().map(Vec::len).max().unwrap_or(0) {
            let columns: String = titles
                .iter()
                .map(|title| pad_left(title.get(line).map_or("", String::as_str), COLUMN))
                .collect();
            let text = format!("{}{columns}", " ".repeat(NAME));
            out.push_str(&style.bold(text.trim_end()));
            out.push('\n');
        }
        for configuration in &study.configurations {
            write_row(out, view, configuration, figures, style);
        }
    }
    let doubtful: Vec<&Cell> = view
        .result
        .cells
        .iter()
        .filter(|cell| !cell.doubts.is_empty())
        .collect();
    if !doubtful.is_empty() {
        out.push_str(&format!("\n{}\n", style.bold("Doubts")));
        for (doubt, times) in super::study_text::list_doubts(&doubtful) {
            style.write_paragraph(out, "  -", 4, &escape_line(&format!("{doubt} ({times})")));
        }
    }
}

fn write_row(
    out: &mut String,
    view: &StudyView<'_>,
    configuration: &Configuration,
    figures: &[&Figure],
    style: Style,
) {
    let cell = |figure: &Figure| {
        let mut cells = view.result.cells.iter();
        cells.find(|cell| cell.configuration == configuration.name && cell.figure == figure.name)
    };
    let ours: Vec<String> = figures
        .iter()
        .map(|figure| {
            let estimate = cell(figure).and_then(|cell| cell.estimate.as_ref());
            estimate.map_or(String::new(), |one| {
                study_text::format_estimate(figure, one)
            })
        })
        .collect();
    let published: Vec<String> = figures
        .iter()
        .map(|figure| {
            let one = cell(figure).and_then(|cell| cell.published.as_ref());
            one.map_or(String::new(), |one| {
                study_text::format_published(figure, one)
            })
        })
        .collect();
    let mut line = |label: &str, texts: &[String], dim: bool| {
        if texts.iter().all(String::is_empty) {
            return;
        }
        let label = escape_line(label);
        // A long name gets a line of its own.
        let lead = match measure_width(&label) < NAME {
            true => pad_right(&label, NAME),
            false => format!("{label}\n{}", " ".repeat(NAME)),
        };
        let columns: String = texts.iter().map(|text| pad_left(text, COLUMN)).collect();
        let text = format!("{lead}{}", columns.trim_end());
        out.push_str(&if dim { style.dim(&text) } else { text });
        out.push('\n');
    };
    line(configuration.title(), &ours, false);
    let label = match ours.iter().all(String::is_empty) {
        true => format!("{} (published)", configuration.title()),
        false => "  published".to_owned(),
    };
    line(&label, &published, true);
}
