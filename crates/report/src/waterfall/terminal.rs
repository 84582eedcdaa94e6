//! The waterfall in a terminal: a line for each rung, or two where there is no room.

use super::words::{READING, added, first, not_told, reconciled, settings, together, whole};
use super::{Line, View, lines};
use crate::subject;
use crate::terminal::{doubts, section};
use assay_model::criterion::Quantity;
use assay_model::ladder::Waterfall;
use assay_render::Style;
use assay_render::text::{clean, left, right, width, wrap};
use assay_render::units::{NONE, latency, value};

/// Columns that a bar has at least; below that, figures stand on a line of their own.
const LEAST_BAR: usize = 12;

/// The waterfalls of all workloads, and what they do not tell.
#[must_use]
pub fn terminal(view: &View, style: Style) -> String {
    let mut out = String::new();
    heading(view, &mut out, style);
    if view.falls.is_empty() {
        out.push_str("\nNothing was measured.\n");
    }
    for fall in view.falls {
        section(&fall.description, &mut out, style);
        chart(view, fall, &mut out, style);
        answers(view, fall, &mut out, style);
    }
    let together = together(view);
    if !together.is_empty() {
        section("Cannot be separated here", &mut out, style);
        for line in together {
            style.paragraph(&mut out, "  -", 4, &line);
        }
    }
    out.push('\n');
    let mut legend = READING.to_owned();
    legend.push_str(" ± is half a 95 % interval, over paired rounds.");
    for line in wrap(&legend, style.columns()) {
        out.push_str(&style.dim(&line));
        out.push('\n');
    }
    out.push_str(&doubts(view.judged, style));
    out
}

fn heading(view: &View, out: &mut String, style: Style) {
    let run = view.run;
    out.push_str(&style.bold(&subject::title(run)));
    out.push('\n');
    let mut say = |label: &str, text: &str| style.paragraph(out, label, 11, text);
    let name = subject::name(run);
    let when = subject::when(run);
    say(
        "  run",
        &format!("{}: {when}", name.trim_start_matches("run ")),
    );
    say("  target", &clean(&view.ladder.target));
    if let Some(target) = view.target() {
        for line in [
            subject::storage(&run.facts, target),
            subject::sizes(&run.facts, target),
        ] {
            line.into_iter().for_each(|line| say("", &line));
        }
    }
    if let Some(machine) = subject::machine(&run.facts) {
        say("  machine", &machine);
    }
    for line in settings(view) {
        say("  layer", &line);
    }
    for line in &view.ladder.left_out {
        say("  left out", &clean(line));
    }
    for remark in &run.remarks {
        say("  note", &clean(remark));
    }
}

/// What stands beside a rung's bar.
struct Cells {
    label: String,
    time: String,
    added: String,
    told: bool,
}

fn cells(line: &Line<'_>) -> Cells {
    Cells {
        label: format!("{}{}", "  ".repeat(line.depth), line.label),
        time: line.to.map_or(NONE.to_owned(), latency),
        added: line.step.map_or(String::new(), added),
        told: line.step.is_none_or(|step| step.told),
    }
}

fn chart(view: &View, fall: &Waterfall, out: &mut String, style: Style) {
    let lines = lines(view.ladder, fall);
    let rows: Vec<Cells> = lines.iter().map(cells).collect();
    let heads = Cells {
        label: "layer".to_owned(),
        time: "time/I/O".to_owned(),
        added: "adds".to_owned(),
        told: true,
    };
    let most = |cell: fn(&Cells) -> &str| {
        let all = rows.iter().chain([&heads]);
        all.map(|row| width(cell(row))).max().unwrap_or(0)
    };
    let columns = [
        most(|row| &row.label),
        most(|row| &row.time),
        most(|row| &row.added),
    ];
    let text: usize = columns.iter().sum::<usize>() + 2 + 2 * 3;
    let room = style.columns().saturating_sub(text);
    let top = lines.iter().filter_map(|line| line.to).fold(0.0, f64::max);
    if room >= LEAST_BAR {
        out.push_str(&style.dim(&format!(
            "  {}  {}  {}\n",
            left(&heads.label, columns[0]),
            right(&heads.time, columns[1]),
            heads.added,
        )));
        for (line, row) in lines.iter().zip(&rows) {
            let pad = " ".repeat(columns[2].saturating_sub(width(&row.added)));
            let added = match row.told {
                true => row.added.clone(),
                false => style.dim(&row.added),
            };
            let text = format!(
                "  {}  {}  {added}{pad}  {}",
                left(&row.label, columns[0]),
                right(&row.time, columns[1]),
                bar(line, top, room, style),
            );
            out.push_str(text.trim_end());
            out.push('\n');
        }
        return;
    }
    let room = style.columns().saturating_sub(4);
    for (line, row) in lines.iter().zip(&rows) {
        style.paragraph(out, "", 2, &row.label);
        let figures = format!("{}  {}", row.time, row.added);
        style.paragraph(out, "", 4, figures.trim_end());
        out.push_str(format!("    {}", bar(line, top, room, style)).trim_end());
        out.push('\n');
    }
}

/// From the time below a layer to the time with it: `█` is added, `▒` is taken away. What is not
/// told from noise is `·`.
fn bar(line: &Line<'_>, top: f64, room: usize, style: Style) -> String {
    let Some(to) = line.to.filter(|_| top > 0.0) else {
        return String::new();
    };
    let cell = |nanos: f64| (nanos / top * room as f64).round().clamp(0.0, room as f64) as usize;
    let (low, high) = (cell(line.from.min(to)), cell(line.from.max(to)));
    let told = line.step.is_none_or(|step| step.told);
    let (block, sgr) = match (told, to < line.from, line.step) {
        (_, _, None) => ("█", "2"),
        (false, ..) => ("·", "2"),
        (_, true, _) => ("▒", "32"),
        (_, false, _) => ("█", "33"),
    };
    // However short a step is, it takes one cell, so that it can be seen.
    let length = (high - low).max(1).min(room - low.min(room - 1));
    let start = low.min(room - 1);
    format!(
        "{}{}",
        " ".repeat(start),
        style.paint(sgr, &block.repeat(length))
    )
}

fn answers(view: &View, fall: &Waterfall, out: &mut String, style: Style) {
    out.push('\n');
    let mut said = String::new();
    for one in &fall.wholes {
        style.paragraph(out, "  whole", 14, &whole(view, one));
        let look = first(view, fall, one);
        if look != said {
            style.paragraph(out, "  look first", 14, &look);
            said = look;
        }
        if one.separate {
            style.paragraph(out, "  check", 14, &reconciled(one));
        }
    }
    let same = fall.wholes.iter().filter(|one| !one.separate).count();
    if same > 0 && same == fall.wholes.len() {
        for one in &fall.wholes {
            style.paragraph(out, "  check", 14, &reconciled(one));
        }
    }
    for line in not_told(view, fall) {
        style.paragraph(out, "  not told", 14, &line);
    }
    let rates: Vec<String> = fall
        .levels
        .iter()
        .filter(|level| view.ladder.rungs[level.rung].again.is_none())
        .filter_map(|level| {
            let name = &view.ladder.rungs[level.rung].name;
            Some(format!(
                "{name} {}",
                value(Quantity::Iops, level.iops?.value)
            ))
        })
        .collect();
    style.paragraph(out, "  I/Os per s", 14, &rates.join(", "));
}
