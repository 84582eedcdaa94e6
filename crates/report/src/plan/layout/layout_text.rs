//! The answer of `assay plan layout` as text and tables. The page is in the parent module.

use crate::plan::{draw_bars, format_legend};
use assay_model::size::Convention::{Binary, Decimal};
use assay_model::size::Unit;
use assay_planner::layout::{BlockShare, Context, Disk, LayoutPlan};
use assay_render::text::{format_named_value, pad_left, pad_right, wrap_indented};
use assay_render::units::{format_duration, format_probability};
use std::fmt::Write as _;

/// Describes the disks; equal disks are counted.
#[must_use]
pub fn describe_disks(disks: &[Disk]) -> String {
    let mut runs: Vec<(usize, u64)> = Vec::new();
    for disk in disks {
        match runs.last_mut() {
            Some((times, size)) if *size == disk.size => *times += 1,
            _ => runs.push((1, disk.size)),
        }
    }
    let total: u64 = disks.iter().map(|disk| disk.size).sum();
    let words: Vec<String> = runs
        .iter()
        .take(12)
        .map(|&(times, size)| match times {
            1 => Decimal.show(size),
            _ => format!("{times} × {}", Decimal.show(size)),
        })
        .collect();
    let more = if runs.len() > 12 { ", …" } else { "" };
    format!(
        "{} disk{} ({}{more}), {} = {} raw",
        disks.len(),
        if disks.len() == 1 { "" } else { "s" },
        words.join(", "),
        Decimal.show(total),
        Binary.show(total)
    )
}

/// Describes the units in which the sizes were given.
#[must_use]
pub fn describe_units(units: &[Unit]) -> &'static str {
    let has = |unit| units.contains(&unit);
    match (has(Unit::Decimal), has(Unit::Binary)) {
        (true, true) => "sizes given in decimal and in binary units, kept apart",
        (true, false) => "sizes given in decimal units, T = 10^12",
        (false, true) => "sizes given in binary units, TiB = 2^40",
        (false, false) => "sizes in bytes",
    }
}

/// Lists the assumptions of the answer, one sentence each.
#[must_use]
pub fn list_assumptions(context: &Context) -> Vec<String> {
    let failures = &context.failures;
    vec![
        format!(
            "ZFS: OpenZFS {}, ashift {}{}. btrfs: progs 6.2, Linux 6.18.",
            context.zfs,
            context.ashift,
            match context.whole_disk {
                Some(lba) => format!(", whole disks with {lba}-byte sectors"),
                None => ", disks used as they are".into(),
            }
        ),
        format!(
            "Assumed: {:.1} % of disks fail a year, {:.0} h until replaced, rebuild at {}/s and \
             {:.0} % full, 1 unreadable bit in {:.0e}, others fail {:.0} times as often while one is down.",
            failures.afr * 100.0,
            failures.replace_hours,
            Decimal.show(context.disk_speed),
            context.fill * 100.0,
            1.0 / failures.ure_per_bit.max(1e-30),
            failures.correlation
        ),
    ]
}

/// Headings of the table with the widths of the columns, the most important column first.
const HEADINGS: [(&str, usize); 6] = [
    ("usable", 11),
    ("raw", 6),
    ("any", 5),
    ("loss/yr", 9),
    ("rebuild", 9),
    ("random rw", 10),
];

/// Width of the column with the marks and the name of a layout: in a terminal of 80 columns, and in a narrower
/// terminal.
const NAMES: (usize, usize) = (30, 22);

/// Formats every layout on a line. In a narrow terminal, the last columns are left out.
#[must_use]
pub fn format_layouts(plans: &[LayoutPlan], found: usize, columns: usize) -> String {
    let all: usize = NAMES.0 + HEADINGS.iter().map(|(_, room)| room).sum::<usize>();
    let names = if columns < all { NAMES.1 } else { NAMES.0 };
    let mut taken = names;
    let fit = HEADINGS.iter().take_while(|(_, room)| {
        taken += room;
        taken <= columns
    });
    let shown = fit.count().max(1);
    let line = |layout: &str, cells: [String; 6]| {
        let mut line = pad_right(layout, names);
        for (cell, (_, room)) in cells.iter().zip(HEADINGS).take(shown) {
            line.push_str(&pad_left(cell, room));
        }
        line + "\n"
    };
    let mut text = "\n".to_owned();
    text.push_str(&line(
        "   layout",
        HEADINGS.map(|(name, _)| name.to_owned()),
    ));
    for plan in plans {
        let mut layout = plan.layout.clone();
        if layout.chars().count() > names - 4 {
            layout = layout.chars().take(names - 5).collect::<String>() + "…";
        }
        let layout = format!(
            "{}{} {layout}",
            if plan.pareto { '*' } else { ' ' },
            if plan.advised_against() { '!' } else { ' ' },
        );
        let cells = [
            format!(
                "{}{}",
                if plan.exact { "" } else { "~" },
                Binary.show(plan.usable)
            ),
            format!("{:.0}%", plan.efficiency * 100.0),
            plan.survives.to_string(),
            format_probability(plan.loss_per_year),
            plan.rebuild_seconds.map_or("-".into(), format_duration),
            format!(
                "{:.1}/{:.1}",
                plan.scaling.random_read, plan.scaling.random_write
            ),
        ];
        text.push_str(&line(&layout, cells));
    }
    let mut note = "* not beaten in everything by another; ! advised against by its own manual; any: failed \
                    disks survived, whichever; loss/yr: of any data, if only a block; random rw: in multiples \
                    of one disk; ~ a bound."
        .to_owned();
    if shown < HEADINGS.len() {
        let left_out: Vec<&str> = HEADINGS[shown..].iter().map(|(name, _)| *name).collect();
        let _ = write!(
            note,
            " A wider terminal also shows: {}.",
            left_out.join(", ")
        );
    }
    match found.saturating_sub(plans.len()) {
        0 => {}
        more => {
            let _ = write!(note, " {more} more with --limit {found}.");
        }
    }
    let _ = writeln!(text, "\n{}", wrap_indented(&note, 2, columns));
    text
}

/// Chooses the layout that is shown in full: the first one that a file system supports and that its manual does not
/// discourage.
#[must_use]
pub fn choose_shown_plan(plans: &[LayoutPlan]) -> &LayoutPlan {
    let real = plans
        .iter()
        .find(|plan| plan.family != "declustered" && !plan.advised_against());
    real.unwrap_or(&plans[0])
}

/// Formats a layout in full.
#[must_use]
pub fn format_plan(plan: &LayoutPlan, columns: usize) -> String {
    let title = format!(
        "{}: {} usable of {} raw ({:.1} %)",
        plan.layout,
        Binary.show(plan.usable),
        Decimal.show(plan.raw),
        plan.efficiency * 100.0
    );
    let mut text = format!("\n{}\n\n", wrap_indented(&title, 0, columns));
    text.push_str(&draw_bars(&plan.disks, columns));
    let _ = writeln!(text, "\n  {}\n", format_legend(&plan.disks));
    let mut line =
        |name: &str, value: String| text.push_str(&format_named_value(name, &value, 25, columns));
    if let Some(zfs) = &plan.zfs {
        line(
            "zpool list SIZE",
            format!("{} ({} bytes)", Binary.show(zfs.zpool_size), zfs.zpool_size),
        );
        line(
            "zfs list USED+AVAIL",
            format!("{} ({} bytes)", Binary.show(zfs.zfs_usable), zfs.zfs_usable),
        );
        line(
            "kept back",
            format!(
                "slop {}, log {}, tail {}",
                Binary.show(zfs.slop),
                Binary.show(zfs.embedded_log),
                Binary.show(zfs.tail)
            ),
        );
    }
    if let Some(fs) = &plan.btrfs {
        line(
            "can be stored",
            format!("{} ({} bytes)", Binary.show(fs.stored), fs.stored),
        );
        line(
            "btrfs fi usage, new",
            format!(
                "free (estimated) {}, min {}",
                Binary.show(fs.usage_free_estimated),
                Binary.show(fs.usage_free_min)
            ),
        );
        line("metadata profile", fs.metadata.to_string());
    }
    line(
        "survives",
        format!("any {}, at best {}", plan.survives, plan.survives_at_best),
    );
    line(
        "unlucky",
        format!(
            "{} ({:.0} % of the sets of {})",
            plan.unlucky,
            plan.unlucky_share * 100.0,
            plan.survives + 1
        ),
    );
    if let Some(seconds) = plan.rebuild_seconds {
        line("rebuild", format!("about {}", format_duration(seconds)));
    }
    line(
        "loss a year",
        format!(
            "the whole {}, some blocks {}",
            format_probability(plan.pool_loss_per_year),
            format_probability(plan.block_loss_per_year)
        ),
    );
    line(
        "speed, × one disk",
        format!(
            "stream {:.1} read {:.1} write, random {:.1} read {:.1} write",
            plan.scaling.stream_read,
            plan.scaling.stream_write,
            plan.scaling.random_read,
            plan.scaling.random_write
        ),
    );
    if plan.zfs.is_some() && !plan.blocks.is_empty() {
        let shares: Vec<String> = plan.blocks.iter().map(describe_block_share).collect();
        line("efficiency by block", shares.join("  "));
        let pointers: Vec<String> = plan.blocks.iter().filter_map(describe_pointers).collect();
        line(
            "special vdev, if full",
            format!(
                "block pointers {}, and about 1 GiB for a million files; small blocks of files get three \
                 quarters of it at most",
                pointers.join("  ")
            ),
        );
    }
    if let (Some(cost), Some(each)) = (plan.cost, plan.cost_per_tib) {
        line("cost", format!("{cost:.2}, {each:.2} a usable TiB"));
    }
    if let Some(costs) = &plan.costs {
        line(
            "cost over the years",
            format!(
                "{:.2}: disks {:.2}, failed ones {:.2}, electricity {:.2}; {:.2} a usable TiB and year",
                costs.total, costs.purchase, costs.replaced, costs.power, costs.per_tib_year
            ),
        );
    }
    for step in &plan.growth {
        line("next", super::describe_growth_step(step));
    }
    for warning in &plan.warnings {
        let _ = writeln!(
            text,
            "{}",
            wrap_indented(&format!("! {warning}"), 2, columns)
        );
    }
    text
}

/// Formats the space that a volume takes in the pool, by block size, for a question about Proxmox. Empty without a
/// volume.
#[must_use]
pub fn format_volumes(plan: &LayoutPlan, volume: u64, columns: usize) -> String {
    let rows: Vec<&BlockShare> = (plan.blocks.iter())
        .filter(|share| share.refreservation.is_some())
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\n  A volume of {} by volblocksize\n  {:>9} {:>11} {:>9} {:>15} {:>7}\n",
        Binary.show(volume),
        "block",
        "on a vdev",
        "of raw",
        "refreservation",
        "× size"
    );
    for share in rows {
        let reserved = share.refreservation.unwrap_or(0);
        let _ = writeln!(
            text,
            "  {:>9} {:>11} {:>7.0} % {:>15} {:>7.2}",
            assay_model::Bytes(share.block).short(),
            Binary.show(share.allocated.unwrap_or(0)),
            share.share * 100.0,
            Binary.show(reserved),
            reserved as f64 / volume.max(1) as f64
        );
    }
    let _ = writeln!(
        text,
        "\n{}",
        wrap_indented(
            "refreservation is what `zfs create -V` takes off the pool at once; a sparse volume (-s; on \
             Proxmox the storage's `thin provision`) reserves nothing and costs as much once it is full.",
            2,
            columns
        )
    );
    text
}

fn describe_pointers(share: &BlockShare) -> Option<String> {
    let name = assay_model::Bytes(share.block).short();
    Some(format!("{name} {}", Binary.show(share.pointers?)))
}

fn describe_block_share(share: &BlockShare) -> String {
    let name = assay_model::Bytes(share.block).short();
    format!("{name} {:.0}%", share.share * 100.0)
}
