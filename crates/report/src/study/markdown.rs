//! A study as Markdown, for issues, wikis and commit messages.

use super::{View, curves, words};
use crate::markdown::sentence;
use assay_render::markdown::{plain, table};
use assay_render::units::{NONE, time};

/// GitHub-flavoured Markdown: conclusions, figures, what was not tried, the machine.
#[must_use]
pub fn markdown(view: &View<'_>) -> String {
    let (run, study) = (view.run, &view.run.study);
    let mut out = format!(
        "# {}\n\n{}\n\n",
        plain(&study.title),
        plain(&study.question)
    );
    let cut = if run.complete {
        ""
    } else {
        ", cut off before its end"
    };
    out.push_str(&format!(
        "- Published: {}; {}\n- Here: {} form, {}, {}{cut}, seed {}\n",
        plain(&words::source(study)),
        plain(&study.source.machine),
        plain(&run.form),
        words::rounds(run),
        time(run.started),
        run.seed
    ));
    if run.emulated {
        out.push_str("- The guest was emulated (TCG): figures of throughput compare with each other, not with real machines.\n");
    }
    out.push_str("\n## Conclusions\n\n");
    for one in &view.result.conclusions {
        out.push_str(&format!(
            "- **{}**: {}\n",
            words::finding(one.finding),
            sentence(&plain(&one.says))
        ));
        for claim in &one.claims {
            let evidence = words::evidence(study, claim);
            let evidence = match evidence.is_empty() {
                true => String::new(),
                false => format!("{}: ", plain(&evidence)),
            };
            out.push_str(&format!(
                "  - {}: {}: {evidence}{}\n",
                plain(&words::claim(study, &claim.claim)),
                words::finding(claim.finding),
                sentence(&plain(&claim.why))
            ));
        }
        let told = words::published_finding(one.published_finding);
        let told = told.map(|told| format!("By the same rule {told}"));
        let today = (!one.today.is_empty()).then(|| format!("Today: {}", one.today));
        let why = (!one.why.is_empty()).then(|| one.why.clone());
        for line in why.into_iter().chain(told).chain(today) {
            out.push_str(&format!("  - {}\n", sentence(&plain(&line))));
        }
    }
    rankings(view, &mut out);
    curves(view, &mut out);
    figures(view, &mut out);
    if !run.not_tried.is_empty() {
        out.push_str("\n## Not tried\n\n");
    }
    for not in &run.not_tried {
        out.push_str(&format!("- {}\n", plain(&words::not_tried(study, not))));
    }
    out.push_str("\n## Machine\n\n");
    for (name, value) in &run.machine {
        out.push_str(&format!("- {}: {}\n", plain(name), plain(value)));
    }
    out
}

fn rankings(view: &View<'_>, out: &mut String) {
    let study = &view.run.study;
    for ranking in &view.result.rankings {
        let Some(figure) = study.figure(&ranking.figure) else {
            continue;
        };
        let rows = words::places(study, figure, ranking).into_iter();
        let rows = rows.map(|row| row.cells.iter().map(|cell| plain(cell)).collect::<Vec<_>>());
        let head = ["rank", "configuration", "here", "", "published rank"];
        let table = table(&head, "rlrlr", rows);
        out.push_str(&format!(
            "\n## Ranked by {}\n\n{table}",
            plain(figure.title())
        ));
    }
}

fn curves(view: &View<'_>, out: &mut String) {
    for curve in curves::curves(&view.run.study) {
        let curve = curve.known(view);
        let rows = curve.rows(view);
        let cells = rows.iter().map(|row| {
            let title = row.configuration.title();
            let name = match row.published {
                true => format!("{title}, published"),
                false => title.to_owned(),
            };
            let cells = row.whole(&curve);
            [name]
                .into_iter()
                .chain(cells)
                .map(|cell| plain(&cell))
                .collect::<Vec<_>>()
        });
        let points: Vec<String> = curve.points.iter().map(|(at, _)| at.to_string()).collect();
        let head: Vec<&str> = ["configuration"]
            .into_iter()
            .chain(points.iter().map(String::as_str))
            .collect();
        let sides = format!("l{}", "r".repeat(points.len()));
        let table = table(&head, &sides, cells);
        out.push_str(&format!("\n## {}\n\n{table}", plain(&curve.title(""))));
    }
}

fn figures(view: &View<'_>, out: &mut String) {
    for figure in curves::single(&view.run.study) {
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
                plain(words::title(&view.run.study, &cell.configuration)),
                ours.map_or(NONE.to_owned(), |one| words::estimate(figure, one) + mark),
                published.map_or(NONE.to_owned(), |one| words::published(figure, one)),
            ]
        });
        let table = table(&["configuration", "here", "published"], "lrr", rows);
        out.push_str(&format!("\n## {}\n\n{table}", plain(figure.title())));
    }
}
