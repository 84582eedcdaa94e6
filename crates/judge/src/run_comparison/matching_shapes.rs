//! Matches workloads of two runs by pattern, block size and depth, and summarises their ratios by block size. This is
//! needed because imported results and plans of different authors use different names for the same workload.

use super::WorkloadGroup;
use assay_model::criterion::{Direction, Metric, Quantity};
use assay_model::result::SizeFactor;
use assay_model::workload::{Durability, Engine, Workload};
use std::collections::BTreeMap;

type Pair<'a, 'r> = (&'a WorkloadGroup<'r>, &'a WorkloadGroup<'r>);

/// Pairs the groups with the same pattern, block size, number of I/Os in flight and fraction of reads. If several
/// match, prefers the one with the same durability and caching.
pub(super) fn pair_by_shape<'a, 'r>(
    a: &'a [WorkloadGroup<'r>],
    b: &'a [WorkloadGroup<'r>],
) -> Vec<Pair<'a, 'r>> {
    let mut used = vec![false; b.len()];
    let mut pairs = Vec::new();
    for one in a {
        let Some(shape) = find_workload(one) else {
            continue;
        };
        let fitting = b.iter().enumerate().filter(|(index, other)| {
            !used[*index] && find_workload(other).is_some_and(|other| same_shape(shape, other))
        });
        let best = fitting.max_by_key(|(index, other)| {
            let alike = find_workload(other).map(|other| {
                (
                    other.durability == shape.durability,
                    other.direct == shape.direct,
                )
            });
            (alike, std::cmp::Reverse(*index))
        });
        if let Some((index, other)) = best {
            used[index] = true;
            pairs.push((one, other));
        }
    }
    pairs
}

fn find_workload<'r>(group: &WorkloadGroup<'r>) -> Option<&'r Workload> {
    // A block size of 0 is unknown.
    group
        .spec?
        .fio()
        .filter(|workload| workload.block_size.0 > 0)
}

fn same_shape(a: &Workload, b: &Workload) -> bool {
    let share = |workload: &Workload| match workload.pattern.mixed() {
        true => Some(workload.read_percent.unwrap_or(50)),
        false => None,
    };
    (a.pattern, a.block_size, a.in_flight(), share(a))
        == (b.pattern, b.block_size, b.in_flight(), share(b))
}

/// Returns a name for the shape of a group, such as `randread-4k-qd32`.
pub(super) fn shape_name(group: &WorkloadGroup) -> Option<String> {
    let workload = Workload {
        durability: Durability::None,
        direct: true,
        engine: Engine::Auto,
        ..find_workload(group)?.clone()
    };
    Some(workload.default_name())
}

/// Describes the settings in which pairs of the same shape differ.
pub(super) fn describe_other_differences(pairs: &[Pair<'_, '_>]) -> Vec<String> {
    let mut out = vec![
        "the workloads have different names and were matched by pattern, block size and depth"
            .to_owned(),
    ];
    let differing = |differ: fn(&Workload, &Workload) -> bool| {
        let pairs = pairs.iter().filter_map(|(a, b)| {
            let differs = differ(find_workload(a)?, find_workload(b)?);
            differs.then(|| shape_name(a)).flatten()
        });
        pairs.collect::<Vec<String>>()
    };
    for (what, names) in [
        (
            "when a write counts as done",
            differing(|a, b| a.durability != b.durability),
        ),
        (
            "whether the page cache takes part",
            differing(|a, b| a.direct != b.direct),
        ),
    ] {
        if !names.is_empty() {
            out.push(format!("{what} is not the same: {}", names.join(", ")));
        }
    }
    out
}

/// Computes the ratios of the rates by block size.
pub(super) fn find_size_factors(pairs: &[Pair<'_, '_>]) -> Vec<SizeFactor> {
    let metric = Metric {
        direction: Direction::All,
        quantity: Quantity::Iops,
    };
    let mut ratios: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for (a, b) in pairs {
        let Some(workload) = find_workload(a) else {
            continue;
        };
        let value = |group: &WorkloadGroup| group.pool_samples().get(&metric).map(|one| one.value);
        let (Some(a), Some(b)) = (value(a), value(b)) else {
            continue;
        };
        if a > 0.0 && b > 0.0 {
            ratios.entry(workload.block_size.0).or_default().push(b / a);
        }
    }
    let sum_up = |(size, ratios): (u64, Vec<f64>)| {
        let mean_log = ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64;
        SizeFactor {
            block_size: assay_model::Bytes(size),
            workloads: ratios.len(),
            factor: mean_log.exp(),
            lowest: ratios.iter().copied().fold(f64::INFINITY, f64::min),
            highest: ratios.iter().copied().fold(0.0, f64::max),
        }
    };
    ratios.into_iter().map(sum_up).collect()
}
