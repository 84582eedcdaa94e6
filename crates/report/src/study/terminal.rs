//! A study for a terminal: conclusions first.

use super::curves::{self, Curve, label};
use super::{View, words};
use assay_model::study::{Cell, Configuration, Figure, JudgedConclusion, Ranking, Support};
use assay_render::Style;
use assay_render::text::{clean, left, right, width};
use assay_render::units::time;

/// The whole study.
#[must_use]
pub fn terminal(view: &View<'_>, style: Style) -> String {
    let (run, study) = (view.run, &view.run.study);
    let mut out = format!("{}\n", style.bold(&clean(&study.title)));
    style.paragraph(&mut out, "", 2, &clean(&study.question));
    let source = format!(
        "{}; measured on {}",
        clean(&words::source(study)),
        clean(&study.source.machine)
    );
    out.push('\n');
    style.paragraph(&mut out, "Source", 8, &source);
    let cut = if run.complete {
        ""
    } else {
        ", cut off before its end"
    };
    let here = format!(
        "{} form, {}, {}{cut}, seed {}",
        clean(&run.form),
        words::rounds(run),
        time(run.started),
        run.seed
    );
    style.paragraph(&mut out, "Here", 8, &here);
    if run.emulated {
        let text = "The guest was emulated (TCG): compare figures of throughput with each other, \
                    not with real machines.";
        style.paragraph(&mut out, "", 8, text);
    }
    out.push_str(&format!("\n{}\n", style.bold("Conclusions")));
    for one in &view.result.conclusions {
        conclusion(&mut out, view, one, style);
    }
    for ranking in &view.result.rankings {
        ranked(&mut out, view, ranking, style);
    }
    let all = curves::curves(study);
    for curve in &all {
        drawn(&mut out, view, &curve.known(view), style);
    }
    if !all.is_empty() {
        let text = "Their intervals are in --json, --markdown and --html. ?: with a doubt; void: it does not mean what it says.";
        out.push('\n');
        style.paragraph(&mut out, "", 0, text);
    }
    figures(&mut out, view, style);
    if !run.not_tried.is_empty() {
        out.push_str(&format!("\n{}\n", style.bold("Not tried")));
        for not in &run.not_tried {
            style.paragraph(&mut out, "  -", 4, &clean(&words::not_tried(study, not)));
        }
    }
    out.push_str(&format!("\n{}\n", style.bold("Machine")));
    let longest = run.machine.keys().map(|name| name.chars().count()).max();
    let indent = longest.unwrap_or(0).clamp(14, 24) + 4;
    for (name, value) in &run.machine {
        style.paragraph(
            &mut out,
            &format!("  {}", clean(name)),
            indent,
            &clean(value),
        );
    }
    out
}

fn conclusion(out: &mut String, view: &View<'_>, one: &JudgedConclusion, style: Style) {
    let study = &view.run.study;
    let word = words::finding(one.finding);
    let sgr = match one.finding {
        Support::Supported => "32",
        Support::Contradicted => "31",
        Support::Unresolved => "33",
        Support::NotTried => "2",
    };
    out.push_str(&format!("  {}\n", style.paint(sgr, word)));
    let mut line = |indent: usize, label: &str, text: &str| {
        style.paragraph(out, label, indent, &clean(text));
    };
    line(4, "", &one.says);
    for claim in &one.claims {
        line(6, "    -", &words::claim(study, &claim.claim));
        let evidence = words::evidence(study, claim);
        let why = match evidence.is_empty() {
            true => format!("{}: {}", words::finding(claim.finding), claim.why),
            false => format!(
                "{}: {evidence}: {}",
                words::finding(claim.finding),
                claim.why
            ),
        };
        line(8, "", &why);
    }
    if !one.why.is_empty() {
        line(4, "", &one.why);
    }
    if let Some(told) = words::published_finding(one.published_finding) {
        line(4, "", told);
    }
    if !one.today.is_empty() {
        line(4, "", &format!("Today: {}", one.today));
    }
}

/// Best first, and which neighbours are told apart.
fn ranked(out: &mut String, view: &View<'_>, ranking: &Ranking, style: Style) {
    let study = &view.run.study;
    let Some(figure) = study.figure(&ranking.figure) else {
        return;
    };
    out.push('\n');
    let title = clean(&format!("Ranked by {}", figure.title()));
    for line in assay_render::text::wrap(&title, style.columns()) {
        out.push_str(&format!("{}\n", style.bold(&line)));
    }
    let rows: Vec<Vec<String>> = words::places(study, figure, ranking)
        .into_iter()
        .map(|mut row| {
            let known = study.configuration(&ranking.places[row.at].configuration);
            row.cells[1] = known.map_or(String::new(), label);
            if !row.cells[3].is_empty() {
                "≈".clone_into(&mut row.cells[3]);
            }
            row.cells
        })
        .collect();
    out.push_str(&assay_render::table::table(
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

/// A curve as a table, as many points side by side as there is room for.
fn drawn(out: &mut String, view: &View<'_>, curve: &Curve<'_>, style: Style) {
    let rows = curve.rows(view);
    let (unit, by) = curve.unit(&rows);
    let cells: Vec<Vec<String>> = rows.iter().map(|row| row.texts(by)).collect();
    let names: Vec<String> = rows
        .iter()
        .map(|row| match row.published {
            true if row.alone => format!("{} (published)", label(row.configuration)),
            true => "  published".to_owned(),
            false => label(row.configuration),
        })
        .collect();
    let name = names.iter().map(|name| width(name)).max().unwrap_or(0);
    let points = curve.points.iter();
    let heads: Vec<String> = points.map(|(at, _)| at.to_string()).collect();
    let texts = cells.iter().flatten().chain(&heads);
    let cell = texts.map(|text| width(text)).max().unwrap_or(0) + 2;
    let room = style.columns().saturating_sub(name + 2) / cell;
    for from in (0..curve.points.len()).step_by(room.max(1)) {
        let until = (from + room.max(1)).min(curve.points.len());
        out.push('\n');
        for line in assay_render::text::wrap(&curve.title(&unit), style.columns()) {
            out.push_str(&format!("{}\n", style.bold(&line)));
        }
        let line = |name_of: &str, cells: &[String]| {
            let cells: String = cells.iter().map(|text| right(text, cell)).collect();
            format!("{}{cells}", left(name_of, name + 2))
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

/// Columns of a configuration's name, and of one figure.
const NAME: usize = 26;
const COLUMN: usize = 18;

/// Configurations as rows, figures as columns, as many side by side as there is room for.
fn figures(out: &mut String, view: &View<'_>, style: Style) {
    let study = &view.run.study;
    let room = (style.columns().saturating_sub(NAME) / COLUMN).max(1);
    for figures in curves::single(study).chunks(room) {
        let titles: Vec<Vec<String>> = figures
            .iter()
            .map(|figure| assay_render::text::wrap(&clean(figure.title()), COLUMN - 2))
            .collect();
        out.push('\n');
        for line in 0..titles.iter().map(Vec::len).max().unwrap_or(0) {
            let columns: String = titles
                .iter()
                .map(|title| right(title.get(line).map_or("", String::as_str), COLUMN))
                .collect();
            let text = format!("{}{columns}", " ".repeat(NAME));
            out.push_str(&style.bold(text.trim_end()));
            out.push('\n');
        }
        for configuration in &study.configurations {
            row(out, view, configuration, figures, style);
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
        for (doubt, times) in super::words::doubts(&doubtful) {
            style.paragraph(out, "  -", 4, &clean(&format!("{doubt} ({times})")));
        }
    }
}

fn row(
    out: &mut String,
    view: &View<'_>,
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
            estimate.map_or(String::new(), |one| words::estimate(figure, one))
        })
        .collect();
    let published: Vec<String> = figures
        .iter()
        .map(|figure| {
            let one = cell(figure).and_then(|cell| cell.published.as_ref());
            one.map_or(String::new(), |one| words::published(figure, one))
        })
        .collect();
    let mut line = |label: &str, texts: &[String], dim: bool| {
        if texts.iter().all(String::is_empty) {
            return;
        }
        let label = clean(label);
        // A long name has a line of its own.
        let lead = match width(&label) < NAME {
            true => left(&label, NAME),
            false => format!("{label}\n{}", " ".repeat(NAME)),
        };
        let columns: String = texts.iter().map(|text| right(text, COLUMN)).collect();
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
