//! The waterfall as a page of its own: no network, no script.

use super::words::{added, factor, first, not_told, reconciled, settings, together, whole};
use super::{View, lines};
use crate::html::doubt::DoubtView;
use crate::html::page::facts;
use crate::subject;
use crate::terminal::carried;
use assay_model::criterion::Quantity;
use assay_model::ladder::Waterfall;
use assay_render::html::{Chart, Table, page};
use assay_render::svg::waterfall::{Row, Shape, Waterfall as Drawing, draw};
use assay_render::text::clean;
use assay_render::units::{NONE, latency, value};
use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;

const PAGE: &str = include_str!("page.html");
const OWN_STYLE: &str = include_str!("page.css");

#[derive(Serialize)]
struct Section {
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

/// The page.
#[must_use]
pub fn html(view: &View) -> String {
    let run = view.run;
    let target = view.target();
    let subject: Vec<(&str, String)> = [
        ("target", Some(clean(&view.ladder.target))),
        (
            "storage",
            target.and_then(|target| subject::storage(&run.facts, target)),
        ),
        (
            "sizes",
            target.and_then(|target| subject::sizes(&run.facts, target)),
        ),
        ("machine", subject::machine(&run.facts)),
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
    let sections: Vec<Section> = falls.map(|(id, fall)| section(view, id, fall)).collect();
    let remarks = view
        .ladder
        .left_out
        .iter()
        .map(|line| format!("Left out: {line}"));
    let remarks: Vec<String> = remarks
        .chain(run.remarks.iter().cloned())
        .map(|line| clean(&line))
        .collect();
    page(
        &format!("{} ({})", run.plan.title, subject::name(run)),
        OWN_STYLE,
        PAGE,
        context! {
            title => clean(&run.plan.title),
            name => subject::name(run),
            when => subject::when(run),
            uid => clean(&run.uid),
            version => clean(&run.assay_version),
            seed => run.plan.seed.to_string(),
            subject => Serde(subject),
            tiles => Serde(tiles),
            remarks => Serde(remarks),
            sections => Serde(sections),
            together => Serde(together(view)),
            settings => Serde(settings(view)),
            doubts => Serde(doubts(view)),
            facts => Serde(facts(&run.facts)),
        },
    )
}

fn section(view: &View, id: usize, fall: &Waterfall) -> Section {
    let wholes = fall.wholes.iter().map(|one| WholeView {
        whole: whole(view, one),
        first: first(view, fall, one),
        check: reconciled(one),
    });
    Section {
        id,
        title: clean(&fall.description),
        name: clean(&fall.workload),
        chart: chart(view, id, fall),
        wholes: wholes.collect(),
        not_told: not_told(view, fall),
    }
}

fn chart(view: &View, id: usize, fall: &Waterfall) -> Chart {
    let lines = lines(view.ladder, fall);
    let row_of = |rung: usize| lines.iter().position(|line| line.rung == rung);
    let row = |line: &super::Line<'_>| {
        let step = line.step;
        let figure = step.and_then(|step| step.added);
        let interval = figure.and_then(|figure| figure.interval);
        Row {
            label: line.label.clone(),
            depth: line.depth,
            from: line.from,
            to: line.to,
            interval: interval.map(|one| (line.from + one.low, line.from + one.high)),
            parent: step.and_then(|step| row_of(step.from)),
            shape: match step {
                None => Shape::Base,
                Some(step) if !step.told => Shape::Open,
                Some(_) if line.to.is_some_and(|to| to < line.from) => Shape::Takes,
                Some(_) => Shape::Adds,
            },
            text: match step {
                None => line.to.map_or(NONE.to_owned(), latency),
                Some(step) => format!("{}  {}", added(step), factor(step.ratio)),
            },
        }
    };
    let title = "Time per I/O, layer by layer".to_owned();
    let answers: Vec<String> = fall.wholes.iter().map(|one| whole(view, one)).collect();
    Chart {
        svg: draw(&Drawing {
            id: format!("fall-{id}"),
            title: title.clone(),
            description: answers.join("; "),
            rows: lines.iter().map(row).collect(),
            tick: &latency,
        }),
        table: table(view, fall),
        title,
    }
}

fn table(view: &View, fall: &Waterfall) -> Table {
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
    let row = |line: super::Line<'_>| {
        let level = fall.levels.iter().find(|level| level.rung == line.rung);
        let step = line.step;
        vec![
            line.label.clone(),
            clean(&view.ladder.rungs[line.rung].name),
            line.to.map_or(NONE.to_owned(), latency),
            step.map_or(String::new(), added),
            step.map_or(String::new(), |step| factor(step.ratio)),
            step.and_then(|step| step.share)
                .map_or(String::new(), |share| {
                    format!("{} %", assay_render::units::percent(share * 100.0))
                }),
            level
                .and_then(|level| level.iops)
                .map_or(NONE.to_owned(), |iops| value(Quantity::Iops, iops.value)),
            level
                .and_then(|level| level.latency)
                .map_or(0, |latency| latency.rounds)
                .to_string(),
        ]
    };
    Table {
        head: heads.map(str::to_owned).to_vec(),
        rows: lines(view.ladder, fall).into_iter().map(row).collect(),
    }
}

fn doubts(view: &View) -> Vec<DoubtView> {
    let doubt = |one: crate::terminal::Carried<'_>| {
        let samples = assay_render::units::count(one.samples as usize, "sample");
        let workloads = crate::terminal::some_names(&one.workloads, 6);
        DoubtView::new(one.doubt, format!("{samples}: {workloads}"))
    };
    carried(view.judged).into_iter().map(doubt).collect()
}
