//! The page of `assay plan layout`. The answer as text is in `layout_text`.

pub mod layout_text;

use super::{STYLE, content_name, join_equal_disks, list_contents};
use assay_model::size::Convention::{Binary, Decimal};
use assay_planner::layout::{Growth, LayoutPlan, Segment};
use assay_render::html::{ChartTable, render_page};
use assay_render::svg::canvas::{Svg, TextAnchor};
use assay_render::text::escape_line;
use assay_render::units::{NONE, format_count, format_duration, format_probability};
use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;

const TEMPLATE: &str = include_str!("layout.html");

#[derive(Serialize)]
struct LayoutCard {
    layout: String,
    says: Vec<String>,
    disks: String,
    warnings: Vec<String>,
    growth: Vec<String>,
}

/// Renders the page: the question, a table, and the disks of each layout.
#[must_use]
pub fn render_layouts_page(question: &str, assumptions: &[String], plans: &[LayoutPlan]) -> String {
    let all =
        |lines: &[String]| -> Vec<String> { lines.iter().map(|one| escape_line(one)).collect() };
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
    let colours: Vec<&str> = list_contents(disks).into_iter().map(content_name).collect();
    let cards = plans.iter().enumerate().map(|(at, plan)| LayoutCard {
        layout: escape_line(&plan.layout),
        says: describe_plan(plan),
        disks: draw_disks(&plan.disks, &format!("disks-{at}")),
        warnings: all(&plan.warnings),
        growth: (plan.growth.iter())
            .map(|growth| escape_line(&describe_growth_step(growth)))
            .collect(),
    });
    render_page(
        &format!("Layouts for {question}"),
        STYLE,
        TEMPLATE,
        context! {
            assumptions => Serde(all(assumptions)),
            all => Serde(ChartTable {
                head: head.map(str::to_owned).to_vec(),
                rows: plans.iter().map(format_row).collect(),
            }),
            colours => Serde(colours),
            cards => Serde(cards.collect::<Vec<_>>()),
            cannot_tell => assay_planner::durability::CANNOT_TELL,
        },
    )
}

/// Describes a step of growth: the sizes that the tools will show, and the real capacity of a vdev that was widened.
#[must_use]
pub fn describe_growth_step(growth: &Growth) -> String {
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

fn format_row(plan: &LayoutPlan) -> Vec<String> {
    let star = match (plan.pareto, plan.advised_against()) {
        (_, true) => " ⚠ advised against",
        (true, false) => " ★",
        (false, false) => "",
    };
    let speeds = &plan.scaling;
    vec![
        format!("{}{star}", escape_line(&plan.layout)),
        Binary.show(plan.usable),
        format!("{:.1} %", plan.efficiency * 100.0),
        plan.survives.to_string(),
        format_probability(plan.pool_loss_per_year),
        format_probability(plan.block_loss_per_year),
        plan.rebuild_seconds
            .map_or(NONE.to_owned(), format_duration),
        format!("{:.1} / {:.1}", speeds.random_read, speeds.random_write),
        format!("{:.1} / {:.1}", speeds.stream_read, speeds.stream_write),
        plan.cost
            .map_or(NONE.to_owned(), |cost| format!("{cost:.0}")),
    ]
}

fn describe_plan(plan: &LayoutPlan) -> Vec<String> {
    let mut lines = vec![format!(
        "{} usable of {} raw; survives any {}, at best {}; unlucky: {}.",
        Binary.show(plan.usable),
        Decimal.show(plan.raw),
        format_count(plan.survives as usize, "failed disk"),
        plan.survives_at_best,
        escape_line(&plan.unlucky),
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

/// Draws disks as bars. Equal neighbouring disks are drawn once.
fn draw_disks(disks: &[Vec<Segment>], id: &str) -> String {
    const WIDTH: f64 = 560.0;
    const LEFT: f64 = 92.0;
    const BAR: f64 = 15.0;
    const STEP: f64 = 22.0;
    let rows = join_equal_disks(disks);
    let largest = rows.iter().map(|row| row.size).max().unwrap_or(1).max(1) as f64;
    let mut svg = Svg::new(WIDTH, rows.len() as f64 * STEP + 4.0);
    for (i, row) in rows.iter().enumerate() {
        let y = i as f64 * STEP + 2.0;
        let times = match row.times {
            1 => String::new(),
            times => format!("{times} × "),
        };
        let label = format!("{times}{}", Decimal.show(row.size));
        svg.add_text(LEFT - 8.0, y + 12.0, TextAnchor::End, "n", &label);
        let mut x = LEFT;
        for segment in row.segments {
            let width = segment.bytes as f64 / largest * (WIDTH - LEFT);
            let name = content_name(segment.content);
            let title = format!("{name}: {}", Binary.show(segment.bytes));
            svg.add_titled_rect([x, y, width.max(0.5), BAR], &format!("c-{name}"), &title);
            x += width;
        }
    }
    let description = "What lies on each disk; the same figures stand above.";
    svg.finish(id, "Disks", description)
}
