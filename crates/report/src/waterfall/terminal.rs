//! The terminal report of a waterfall: one line for each measured layer, or two in a narrow terminal. Shared sentences
//! are in `waterfall_text`.

use super::waterfall_text::{
    READING, describe_first_layer, describe_inseparable_layers, describe_settings,
    describe_unexplained_rest, describe_unmeasurable, format_added_time, format_whole,
};
use super::{RungLine, WaterfallView, list_lines};
use crate::run_description;
use crate::terminal::{render_doubts, write_section_heading};
use assay_model::criterion::Quantity;
use assay_model::ladder::Waterfall;
use assay_render::Style;
use assay_render::text::{escape_line, measure_width, pad_left, pad_right, wrap_lines};
use assay_render::units::{NONE, format_latency, format_value};

/// Minimum number of columns of a bar. In a narrower terminal, the figures get a line of their own.
const LEAST_BAR: usize = 12;

/// Renders the waterfalls of all workloads, and their limitations.
#[must_use]
pub fn render_waterfall_text(view: &WaterfallView, style: Style) -> String {
    let mut out = String::new();
    write_heading(view, &mut out, style);
    if view.falls.is_empty() {
        out.push_str("\nNothing was measured.\n");
    }
    for fall in view.falls {
        write_section_heading(&fall.description, &mut out, style);
        write_chart(view, fall, &mut out, style);
        write_answers(view, fall, &mut out, style);
    }
    let together = describe_inseparable_layers(view);
    if !together.is_empty() {
        write_section_heading("Cannot be separated here", &mut out, style);
        for line in together {
            style.write_paragraph(&mut out, "  -", 4, &line);
        }
    }
    out.push('\n');
    let mut legend = READING.to_owned();
    legend.push_str(" ± is half a 95 % interval, over paired rounds.");
    for line in wrap_lines(&legend, style.columns()) {
        out.push_str(&style.dim(&line));
        out.push('\n');
    }
    out.push_str(&render_doubts(view.judged, style));
    out
}

fn write_heading(view: &WaterfallView, out: &mut String, style: Style) {
    let run = view.run;
    out.push_str(&style.bold(&run_description::format_title(run)));
    out.push('\n');
    let mut say = |label: &str, text: &str| style.write_paragraph(out, label, 11, text);
    let name = run_description::run_name(run);
    let when = run_description::format_time_and_progress(run);
    say(
        "  run",
        &format!("{}: {when}", name.trim_start_matches("run ")),
    );
    say("  target", &escape_line(&view.ladder.target));
    if let Some(target) = view.find_target() {
        for line in [
            run_description::describe_storage(&run.facts, target),
            run_description::describe_sizes(&run.facts, target),
        ] {
            line.into_iter().for_each(|line| say("", &line));
        }
    }
    if let Some(machine) = run_description::describe_machine(&run.facts) {
        say("  machine", &machine);
    }
    for line in describe_settings(view) {
        say("  layer", &line);
    }
    for line in &view.ladder.left_out {
        say("  left out", &escape_line(line));
    }
    for remark in &run.remarks {
        say("  note", &escape_line(remark));
    }
}

/// Text beside the bar of a measured layer.
struct RungCells {
    label: String,
    time: String,
    added: String,
    told: bool,
}

fn format_cells(line: &RungLine<'_>) -> RungCells {
    RungCells {
        label: format!("{}{}", "  ".repeat(line.depth), line.label),
        time: line.to.map_or(NONE.to_owned(), format_latency),
        added: line.step.map_or(String::new(), format_added_time),
        told: line.step.is_none_or(|step| step.told),
    }
}

fn write_chart(view: &WaterfallView, fall: &Waterfall, out: &mut String, style: Style) {
    let lines = list_lines(view.ladder, fall);
    let rows: Vec<RungCells> = lines.iter().map(format_cells).collect();
    let heads = RungCells {
        label: "layer".to_owned(),
        time: "time/I/O".to_owned(),
        added: "adds".to_owned(),
        told: true,
    };
    let most = |cell: fn(&RungCells) -> &str| {
        let all = rows.iter().chain([&heads]);
        all.map(|row| measure_width(cell(row))).max().unwrap_or(0)
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
            pad_right(&heads.label, columns[0]),
            pad_left(&heads.time, columns[1]),
            heads.added,
        )));
        for (line, row) in lines.iter().zip(&rows) {
            let pad = " ".repeat(columns[2].saturating_sub(measure_width(&row.added)));
            let added = match row.told {
                true => row.added.clone(),
                false => style.dim(&row.added),
            };
            let text = format!(
                "  {}  {}  {added}{pad}  {}",
                pad_right(&row.label, columns[0]),
                pad_left(&row.time, columns[1]),
                format_bar(line, top, room, style),
            );
            out.push_str(text.trim_end());
            out.push('\n');
        }
        return;
    }
    let room = style.columns().saturating_sub(4);
    for (line, row) in lines.iter().zip(&rows) {
        style.write_paragraph(out, "", 2, &row.label);
        let figures = format!("{}  {}", row.time, row.added);
        style.write_paragraph(out, "", 4, figures.trim_end());
        out.push_str(format!("    {}", format_bar(line, top, room, style)).trim_end());
        out.push('\n');
    }
}

/// Draws the bar from the time below a layer to the time with the layer. `█` is added time, `▒` is removed time, and
/// `·` is a difference within the noise.
fn format_bar(line: &RungLine<'_>, top: f64, room: usize, style: Style) -> String {
    let Some(to) = line.to.filter(|_| top > 0.0) else {
        return String::new();
    };
    let cell = |nanos: f64| (nanos / top * room as f64).round().clamp(0.0, room as f64) as usize;
    let (low, high) = (cell(line.from.min(to)), cell(line.from.max(to)));
    let is_significant = line.step.is_none_or(|step| step.told);
    let (block, sgr) = match (is_significant, to < line.from, line.step) {
        (_, _, None) => ("█", "2"),
        (false, ..) => ("·", "2"),
        (_, true, _) => ("▒", "32"),
        (_, false, _) => ("█", "33"),
    };
    // A short step still takes one cell, so that it stays visible.
    let length = (high - low).max(1).min(room - low.min(room - 1));
    let start = low.min(room - 1);
    format!(
        "{}{}",
        " ".repeat(start),
        style.paint(sgr, &block.repeat(length))
    )
}

fn write_answers(view: &WaterfallView, fall: &Waterfall, out: &mut String, style: Style) {
    out.push('\n');
    let mut said = String::new();
    for one in &fall.wholes {
        style.write_paragraph(out, "  whole", 14, &format_whole(view, one));
        let look = describe_first_layer(view, fall, one);
        if look != said {
            style.write_paragraph(out, "  look first", 14, &look);
            said = look;
        }
        if one.separate {
            style.write_paragraph(out, "  check", 14, &describe_unexplained_rest(one));
        }
    }
    let same = fall.wholes.iter().filter(|one| !one.separate).count();
    if same > 0 && same == fall.wholes.len() {
        for one in &fall.wholes {
            style.write_paragraph(out, "  check", 14, &describe_unexplained_rest(one));
        }
    }
    for line in describe_unmeasurable(view, fall) {
        style.write_paragraph(out, "  not told", 14, &line);
    }
    let rates: Vec<String> = fall
        .levels
        .iter()
        .filter(|level| view.ladder.rungs[level.rung].again.is_none())
        .filter_map(|level| {
            let name = &view.ladder.rungs[level.rung].name;
            Some(format!(
                "{name} {}",
                format_value(Quantity::Iops, level.iops?.value)
            ))
        })
        .collect();
    style.write_paragraph(out, "  I/Os per s", 14, &rates.join(", "));
}
