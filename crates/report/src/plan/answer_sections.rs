//! Chart sections of the planner's answers, one function for each question. The page around the
//! sections is in `planner_page`.

use super::planner_page::{BarLine, BarPart, PlanSection};
use assay_model::size::Convention::{Binary, Decimal};
use assay_planner::cache::{CacheAnswer, CacheQuestion};
use assay_planner::capacity::Bill;
use assay_planner::distribute::{AllocationRules, Distribution};
use assay_planner::durability::LossEstimate;
use assay_render::units::{format_probability, format_share};

fn build_part(colour: &'static str, amount: f64, says: String) -> BarPart {
    BarPart {
        colour,
        amount,
        says,
    }
}

/// Builds the section of a capacity bill. For each factor it shows the capacity before the factor, and the capacity
/// that the factor takes.
#[must_use]
pub fn build_capacity_section(bill: &Bill) -> PlanSection {
    let first = BarLine {
        label: "data".into(),
        lanes: vec![vec![build_part(
            "data",
            bill.data as f64,
            Decimal.show(bill.data),
        )]],
        cells: vec!["".into(), Decimal.show(bill.data), "what there is".into()],
        ..BarLine::default()
    };
    let mut before = bill.data;
    let steps = bill.lines.iter().map(|(factor, total)| {
        let kept = before.min(*total);
        let more = total.abs_diff(before);
        let (colour, word) = match *total >= before {
            true => ("parity", "more"),
            false => ("idle", "less"),
        };
        before = *total;
        let value = format!("{:.4}", factor.value);
        let value = value.trim_end_matches('0').trim_end_matches('.');
        BarLine {
            label: factor.name.clone(),
            lanes: vec![vec![
                build_part("data", kept as f64, Decimal.show(kept)),
                build_part(
                    colour,
                    more as f64,
                    format!("{} {word}", Decimal.show(more)),
                ),
            ]],
            cells: vec![
                format!("× {value}"),
                Decimal.show(*total),
                factor.why.clone(),
            ],
            ..BarLine::default()
        }
    });
    PlanSection {
        heading: format!(
            "{} to buy for {}",
            Decimal.show(bill.total),
            Binary.show(bill.data)
        ),
        about: "Each factor in turn: what was needed before it, and what it adds. Disks are in \
                decimal units, T = 10^12."
            .into(),
        columns: vec!["step", "factor", "to buy so far", "why"],
        rows: [first].into_iter().chain(steps).collect(),
        notes: vec![format!(
            "{} for each system, {}:1 as a rule of thumb; one TB of disk holds {:.2} TiB of data, \
             before redundancy.",
            Decimal.show(bill.per_system),
            bill.rule_of_thumb,
            bill.tib_per_tb
        )],
        ..PlanSection::default()
    }
}

/// Builds the section that shows how a write is distributed: for each vdev its share of the write, its busy time, and
/// its fill level after the write.
#[must_use]
pub fn build_distribution_section(outcome: &Distribution) -> PlanSection {
    let name = match outcome.rules {
        AllocationRules::FreeSpace => "before 0.7, or without the allocation throttle",
        AllocationRules::Throttle => "0.7 to 2.3",
        AllocationRules::Performance => "2.4",
    };
    let rows = outcome.vdevs.iter().map(|vdev| {
        let lane = |colour, of: f64, what: &str| {
            vec![build_part(
                colour,
                of,
                format!("{what} {}", format_share(of)),
            )]
        };
        BarLine {
            label: vdev.name.clone(),
            lanes: vec![
                lane("data", vdev.share, "share of the write"),
                lane("parity", vdev.busy, "busy"),
                lane("copy", vdev.full, "full afterwards"),
            ],
            cells: vec![
                format_share(vdev.share),
                Binary.show(vdev.bytes),
                format_share(vdev.busy),
                format_share(vdev.full),
            ],
            ..BarLine::default()
        }
    });
    PlanSection {
        heading: format!("OpenZFS {name}"),
        about: format!(
            "{}/s, {} of what the vdevs could do together. Upper bar: share of the write; middle: \
             share of the time it was busy; lower: how full it is then.",
            Decimal.show(outcome.speed.max(0.0) as u64),
            format_share(outcome.of_possible)
        ),
        columns: vec!["vdev", "share", "bytes", "busy", "full"],
        rows: rows.collect(),
        full: Some(1.0),
        ticks: (0..=4)
            .map(|i| (f64::from(i) / 4.0, format!("{} %", i * 25)))
            .collect(),
        ..PlanSection::default()
    }
}

/// Builds the sections of caches: the bytes that caches use, and the fractions of requests that they serve.
#[must_use]
pub fn build_cache_sections(question: &CacheQuestion, answer: &CacheAnswer) -> Vec<PlanSection> {
    let sizes = [
        ("memory", question.memory, "idle"),
        ("guests", question.guests, "spare"),
        ("ARC now", answer.arc.map(|arc| arc.size), "data"),
        ("ARC at most", answer.arc.map(|arc| arc.max), "copy"),
        ("headers of the L2ARC", answer.l2_header_bytes, "special"),
        ("log device, at most", answer.slog_bytes, "spare"),
    ];
    let shares = [
        ("served from memory", answer.arc.map(|arc| arc.hit_ratio)),
        (
            "misses from L2ARC",
            answer.arc.and_then(|arc| arc.l2_hit_ratio),
        ),
        ("working set in ARC", answer.working_set_in_arc),
        ("with the L2ARC", answer.working_set_with_l2),
    ];
    let row = |name: &str, colour, amount: f64, says: String| BarLine {
        label: name.into(),
        lanes: vec![vec![build_part(colour, amount, says.clone())]],
        cells: vec![says],
        ..BarLine::default()
    };
    let sizes = sizes.into_iter().filter_map(|(name, bytes, colour)| {
        bytes.map(|bytes| row(name, colour, bytes as f64, Binary.show(bytes)))
    });
    let shares = shares
        .into_iter()
        .filter_map(|(name, of)| of.map(|of| row(name, "data", of, format_share(of))));
    let sections = [
        PlanSection {
            heading: "Memory and devices".into(),
            about: "Bytes that each takes, on one scale.".into(),
            columns: vec!["what", "size"],
            rows: sizes.collect(),
            notes: answer.advice.clone(),
            ..PlanSection::default()
        },
        PlanSection {
            heading: "What is served".into(),
            about: "Shares of 100 %.".into(),
            columns: vec!["what", "share"],
            rows: shares.collect(),
            full: Some(1.0),
            ..PlanSection::default()
        },
    ];
    let drawn = |section: &PlanSection| !section.rows.is_empty() || !section.notes.is_empty();
    sections.into_iter().filter(drawn).collect()
}

/// Builds the section of the probability of data loss within a year, on a logarithmic scale: for one group, for all
/// groups, and from the simulation.
#[must_use]
pub fn build_durability_section(
    one: f64,
    all: f64,
    groups: u64,
    seen: Option<&LossEstimate>,
) -> PlanSection {
    let mut values = vec![one, all];
    values.extend(
        seen.iter()
            .flat_map(|e| [e.loss, e.interval.0, e.interval.1]),
    );
    let least = values
        .into_iter()
        .filter(|v| v.is_finite() && *v > 0.0)
        .fold(0.01, f64::min);
    // Whole decades, starting one below the smallest figure.
    let decades = 1.0 - least.log10().floor();
    let at = |value: f64| match value {
        v if v.is_finite() && v > 0.0 => (v.log10() + decades).max(0.0),
        _ => 0.0,
    };
    let row = |label: &str, value: f64, interval: Option<(f64, f64)>| BarLine {
        label: label.into(),
        lanes: vec![vec![build_part(
            "special",
            at(value),
            format_probability(value),
        )]],
        interval: interval.map(|(low, high)| (at(low), at(high))),
        cells: vec![
            format_probability(value),
            interval.map_or(String::new(), |(low, high)| {
                format!(
                    "{} to {}",
                    format_probability(low),
                    format_probability(high)
                )
            }),
        ],
        ..BarLine::default()
    };
    let mut rows = vec![row("chain, one group", one, None)];
    if groups > 1 {
        rows.push(row(&format!("chain, {groups} groups"), all, None));
    }
    if let Some(seen) = seen {
        rows.push(row("simulated, one group", seen.loss, Some(seen.interval)));
    }
    let step = (decades / 8.0).ceil().max(1.0);
    let ticks = (0..=8)
        .map(|i| f64::from(i) * step)
        .filter(|down| *down <= decades)
        .map(|down| {
            let name = match down {
                0.0 => "1".to_owned(),
                _ => format!("1e-{down:.0}"),
            };
            (decades - down, name)
        });
    PlanSection {
        heading: "Loss within a year".into(),
        about: "A logarithmic scale, so that equal steps are equal factors. The line over a bar is the \
                95 % interval of the simulation."
            .into(),
        columns: vec!["by", "probability", "95 % interval"],
        rows,
        full: Some(decades),
        ticks: ticks.collect(),
        ..PlanSection::default()
    }
}
