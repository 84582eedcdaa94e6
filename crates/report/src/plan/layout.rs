//! The page of `assay plan layout`.

pub mod words;

use super::{STYLE, contents, name, rows};
use assay_model::size::Convention::{Binary, Decimal};
use assay_planner::layout::{Growth, Plan, Segment};
use assay_render::html::{Table, page};
use assay_render::svg::draw::{Anchor, Svg};
use assay_render::text::clean;
use assay_render::units::{NONE, count, duration, probability};
use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;

const TEMPLATE: &str = include_str!("layout.html");

#[derive(Serialize)]
struct Card {
    layout: String,
    says: Vec<String>,
    disks: String,
    warnings: Vec<String>,
    growth: Vec<String>,
}

/// The page for an answer: the question, a table, and the disks of each layout.
#[must_use]
pub fn layouts(question: &str, assumptions: &[String], plans: &[Plan]) -> String {
    let all = |lines: &[String]| -> Vec<String> { lines.iter().map(|one| clean(one)).collect() };
    let head = [
        "layout",
        "usable",
        "of raw",
        "survives",
        "loss a year",
        "of some blocks",
        "rebuild",
        "random r/w",
        "stream r/w",
        "cost",
    ];
    let disks = plans.iter().flat_map(|plan| &plan.disks);
    let colours: Vec<&str> = contents(disks).into_iter().map(name).collect();
    let cards = plans.iter().enumerate().map(|(at, plan)| Card {
        layout: clean(&plan.layout),
        says: says(plan),
        disks: drawing(&plan.disks, &format!("disks-{at}")),
        warnings: all(&plan.warnings),
        growth: (plan.growth.iter())
            .map(|growth| clean(&step(growth)))
            .collect(),
    });
    page(
        &format!("Layouts for {question}"),
        STYLE,
        TEMPLATE,
        context! {
            assumptions => Serde(all(assumptions)),
            all => Serde(Table {
                head: head.map(str::to_owned).to_vec(),
                rows: plans.iter().map(row).collect(),
            }),
            colours => Serde(colours),
            cards => Serde(cards.collect::<Vec<_>>()),
            cannot_tell => assay_planner::durability::CANNOT_TELL,
        },
    )
}

/// A step of growth in words: what the tools will show, and what a widened vdev really holds.
#[must_use]
pub fn step(growth: &Growth) -> String {
    let mut text = format!("{}: {} more", growth.action, Binary.show(growth.gives));
    if let (Some(holds), Some(rewritten)) = (growth.holds, growth.holds_rewritten)
        && rewritten > growth.gives + growth.gives / 100
    {
        text += &format!(
            " in zfs list, which counts with the old parity; room for {} more, {} once all is rewritten",
            Binary.show(holds),
            Binary.show(rewritten)
        );
    }
    text
}

fn row(plan: &Plan) -> Vec<String> {
    let star = match (plan.pareto, plan.advised_against()) {
        (_, true) => " ⚠ advised against",
        (true, false) => " ★",
        (false, false) => "",
    };
    let speeds = &plan.scaling;
    vec![
        format!("{}{star}", clean(&plan.layout)),
        Binary.show(plan.usable),
        format!("{:.1} %", plan.efficiency * 100.0),
        plan.survives.to_string(),
        probability(plan.pool_loss_per_year),
        probability(plan.block_loss_per_year),
        plan.rebuild_seconds.map_or(NONE.to_owned(), duration),
        format!("{:.1} / {:.1}", speeds.random_read, speeds.random_write),
        format!("{:.1} / {:.1}", speeds.stream_read, speeds.stream_write),
        plan.cost
            .map_or(NONE.to_owned(), |cost| format!("{cost:.0}")),
    ]
}

fn says(plan: &Plan) -> Vec<String> {
    let mut lines = vec![format!(
        "{} usable of {} raw; survives any {}, at best {}; unlucky: {}.",
        Binary.show(plan.usable),
        Decimal.show(plan.raw),
        count(plan.survives as usize, "failed disk"),
        plan.survives_at_best,
        clean(&plan.unlucky),
    )];
    lines.extend(plan.zfs.as_ref().map(|zfs| {
        format!(
            "zpool list: {} · zfs list: {} · slop {} · tail {}",
            Binary.show(zfs.zpool_size),
            Binary.show(zfs.zfs_usable),
            Binary.show(zfs.slop),
            Binary.show(zfs.tail)
        )
    }));
    lines.extend(plan.costs.map(|costs| {
        format!(
            "Cost over the years: {:.2} · disks {:.2} · failed ones {:.2} · electricity {:.2} · a usable TiB and \
             year {:.2}",
            costs.total, costs.purchase, costs.replaced, costs.power, costs.per_tib_year
        )
    }));
    lines.extend(plan.btrfs.as_ref().map(|fs| {
        format!(
            "btrfs filesystem usage when new: free (estimated) {}, min {} · metadata {}",
            Binary.show(fs.usage_free_estimated),
            Binary.show(fs.usage_free_min),
            fs.metadata
        )
    }));
    lines
}

/// Disks as bars, equal neighbours once.
fn drawing(disks: &[Vec<Segment>], id: &str) -> String {
    const WIDTH: f64 = 560.0;
    const LEFT: f64 = 92.0;
    const BAR: f64 = 15.0;
    const STEP: f64 = 22.0;
    let rows = rows(disks);
    let largest = rows.iter().map(|row| row.size).max().unwrap_or(1).max(1) as f64;
    let mut svg = Svg::new(WIDTH, rows.len() as f64 * STEP + 4.0);
    for (i, row) in rows.iter().enumerate() {
        let y = i as f64 * STEP + 2.0;
        let times = match row.times {
            1 => String::new(),
            times => format!("{times} × "),
        };
        let label = format!("{times}{}", Decimal.show(row.size));
        svg.text(LEFT - 8.0, y + 12.0, Anchor::End, "n", &label);
        let mut x = LEFT;
        for segment in row.segments {
            let width = segment.bytes as f64 / largest * (WIDTH - LEFT);
            let name = name(segment.content);
            let title = format!("{name}: {}", Binary.show(segment.bytes));
            svg.titled([x, y, width.max(0.5), BAR], &format!("c-{name}"), &title);
            x += width;
        }
    }
    let description = "What lies on each disk; the same figures stand above.";
    svg.finish(id, "Disks", description)
}
