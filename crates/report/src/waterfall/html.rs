//! The HTML page of a waterfall. `assay-render` renders the chart.

use super::waterfall_text::{
    describe_first_layer, describe_inseparable_layers, describe_settings,
    describe_unexplained_rest, describe_unmeasurable, format_added_time, format_factor,
    format_whole,
};
use super::{WaterfallView, list_lines};
use crate::html::doubt_view::DoubtView;
use crate::html::run_page::group_facts;
use crate::run_description;
use crate::terminal::collect_doubts;
use assay_model::criterion::Quantity;
use assay_model::ladder::Waterfall;
use assay_render::html::{Chart, ChartTable, render_page};
use assay_render::svg::waterfall::{BarKind, WaterfallBar, WaterfallChart, draw_waterfall};
use assay_render::text::escape_line;
use assay_render::units::{NONE, format_latency, format_value};
use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;

const PAGE: &str = include_str!("page.html");
const OWN_STYLE: &str = include_str!("page.css");

#[derive(Serialize)]
struct WaterfallSection {
    id: usize,
    title: String,
    name: String,
    chart: Chart,
    wholes: Vec<WholeView>,
    not_told: Vec<String>,
}

#[derive(Serialize)]
struct WholeView {
    whole: String,
    first: String,
    check: String,
}

/// Renders the page of a waterfall.
#[must_use]
pub fn render_waterfall_page(view: &WaterfallView) -> String {
    let run = view.run;
    let target = view.find_target();
    let subject: Vec<(&str, String)> = [
        ("target", Some(escape_line(&view.ladder.target))),
        (
            "storage",
            target.and_then(|target| run_description::describe_storage(&run.facts, target)),
        ),
        (
            "sizes",
            target.and_then(|target| run_description::describe_sizes(&run.facts, target)),
        ),
        ("machine", run_description::describe_machine(&run.facts)),
    ]
    .into_iter()
    .filter_map(|(label, text)| Some((label, text?)))
    .collect();
    let rungs = view
        .ladder
        .rungs
        .iter()
        .filter(|rung| rung.again.is_none())
        .count();
    let tiles = [
        (rungs.to_string(), "rungs"),
        (run.plan.rounds.to_string(), "rounds"),
        (view.samples.len().to_string(), "samples"),
    ];
    let falls = view.falls.iter().enumerate();
    let sections: Vec<WaterfallSection> = falls
        .map(|(id, fall)| build_section(view, id, fall))
        .collect();
    let remarks = view
        .ladder
        .left_out
        .iter()
        .map(|line| format!("Left out: {line}"));
    let remarks: Vec<String> = remarks
        .chain(run.remarks.iter().cloned())
        .map(|line| escape_line(&line))
        .collect();
    render_page(
        &format!("{} ({})", run.plan.title, run_description::run_name(run)),
        OWN_STYLE,
        PAGE,
        context! {
            title => escape_line(&run.plan.title),
            name => run_description::run_name(run),
            when => run_description::format_time_and_progress(run),
            uid => escape_line(&run.uid),
            version => escape_line(&run.assay_version),
            seed => run.plan.seed.to_string(),
            subject => Serde(subject),
            tiles => Serde(tiles),
            remarks => Serde(remarks),
            sections => Serde(sections),
            together => Serde(describe_inseparable_layers(view)),
            settings => Serde(describe_settings(view)),
            doubts => Serde(build_doubt_views(view)),
            facts => Serde(group_facts(&run.facts)),
        },
    )
}

fn build_section(view: &WaterfallView, id: usize, fall: &Waterfall) -> WaterfallSection {
    let wholes = fall.wholes.iter().map(|one| WholeView {
        whole: format_whole(view, one),
        first: describe_first_layer(view, fall, one),
        check: describe_unexplained_rest(one),
    });
    WaterfallSection {
        id,
        title: escape_line(&fall.description),
        name: escape_line(&fall.workload),
        chart: build_chart(view, id, fall),
        wholes: wholes.collect(),
        not_told: describe_unmeasurable(view, fall),
    }
}

fn build_chart(view: &WaterfallView, id: usize, fall: &Waterfall) -> Chart {
    let lines = list_lines(view.ladder, fall);
    let row_of = |rung: usize| lines.iter().position(|line| line.rung == rung);
    let row = |line: &super::RungLine<'_>| {
        let step = line.step;
        let figure = step.and_then(|step| step.added);
        let interval = figure.and_then(|figure| figure.interval);
        WaterfallBar {
            label: line.label.clone(),
            depth: line.depth,
            from: line.from,
            to: line.to,
            interval: interval.map(|one| (line.from + one.low, line.from + one.high)),
            parent: step.and_then(|step| row_of(step.from)),
            shape: match step {
                None => BarKind::Base,
                Some(step) if !step.told => BarKind::Open,
                Some(_) if line.to.is_some_and(|to| to < line.from) => BarKind::Takes,
                Some(_) => BarKind::Adds,
            },
            text: match step {
                None => line.to.map_or(NONE.to_owned(), format_latency),
                Some(step) => format!("{}  {}", format_added_time(step), format_factor(step.ratio)),
            },
        }
    };
    let title = "Time per I/O, layer by layer".to_owned();
    let answers: Vec<String> = fall
        .wholes
        .iter()
        .map(|one| format_whole(view, one))
        .collect();
    Chart {
        svg: draw_waterfall(&WaterfallChart {
            id: format!("fall-{id}"),
            title: title.clone(),
            description: answers.join("; "),
            rows: lines.iter().map(row).collect(),
            tick: &format_latency,
        }),
        table: build_table(view, fall),
        title,
    }
}

fn build_table(view: &WaterfallView, fall: &Waterfall) -> ChartTable {
    let heads = [
        "layer",
        "rung",
        "time per I/O",
        "adds",
        "95 % interval",
        "factor",
        "share",
        "I/Os per second",
        "rounds",
    ];
    let row = |line: super::RungLine<'_>| {
        let level = fall.levels.iter().find(|level| level.rung == line.rung);
        let step = line.step;
        vec![
            line.label.clone(),
            escape_line(&view.ladder.rungs[line.rung].name),
            line.to.map_or(NONE.to_owned(), format_latency),
            step.map_or(String::new(), format_added_time),
            step.map_or(String::new(), |step| format_factor(step.ratio)),
            step.and_then(|step| step.share)
                .map_or(String::new(), |share| {
                    format!("{} %", assay_render::units::format_percent(share * 100.0))
                }),
            level
                .and_then(|level| level.iops)
                .map_or(NONE.to_owned(), |iops| {
                    format_value(Quantity::Iops, iops.value)
                }),
            level
                .and_then(|level| level.latency)
                .map_or(0, |latency| latency.rounds)
                .to_string(),
        ]
    };
    ChartTable {
        head: heads.map(str::to_owned).to_vec(),
        rows: list_lines(view.ladder, fall).into_iter().map(row).collect(),
    }
}

fn build_doubt_views(view: &WaterfallView) -> Vec<DoubtView> {
    let doubt = |one: crate::terminal::CarriedDoubt<'_>| {
        let samples = assay_render::units::format_count(one.samples as usize, "sample");
        let workloads = crate::terminal::format_some_names(&one.workloads, 6);
        DoubtView::new(one.doubt, format!("{samples}: {workloads}"))
    };
    collect_doubts(view.judged).into_iter().map(doubt).collect()
}
