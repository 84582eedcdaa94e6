//! Finds results that form a grid of block size × queue depth. The tables of a grid are in
//! `terminal` and `html`.

use assay_model::plan::Plan;
use assay_model::result::{Judged, WorkloadResult};
use assay_model::workload::{Durability, Engine, Pattern};
use assay_model::{Bytes, Planned, Workload};

/// Results whose workloads differ only in block size and queue depth.
pub struct ResultGrid<'a> {
    /// Name of the target of all results.
    pub target: &'a str,
    /// Common part of the workloads' descriptions, such as `random read`.
    pub title: String,
    /// Block sizes (rows), ascending.
    pub block_sizes: Vec<Bytes>,
    /// Queue depths (columns), ascending.
    pub depths: Vec<u32>,
    /// Results, row by row; `None` if the plan has no such workload, or the workload has no result.
    pub cells: Vec<Option<&'a WorkloadResult>>,
}

impl<'a> ResultGrid<'a> {
    /// Returns the result at a row and a column.
    #[must_use]
    pub fn cell(&self, row: usize, column: usize) -> Option<&'a WorkloadResult> {
        self.cells
            .get(row * self.depths.len() + column)
            .copied()
            .flatten()
    }
}

/// Properties of a workload other than block size and queue depth.
#[derive(PartialEq)]
struct WorkloadKind<'a> {
    target: &'a str,
    pattern: Pattern,
    read_percent: Option<u8>,
    jobs: u32,
    engine: Engine,
    direct: bool,
    durability: Durability,
}

/// Splits the results into grids of at least 2 × 2, in the order of the plan, and the remaining results. At least half
/// of the cells of a grid must have a result, so that two unrelated workloads do not form a grid.
#[must_use]
pub fn split_into_grids<'a>(
    plan: &'a Plan,
    judged: &'a Judged,
) -> (Vec<ResultGrid<'a>>, Vec<&'a WorkloadResult>) {
    type GridMember<'a> = (&'a Workload, &'a WorkloadResult);
    let mut groups: Vec<(WorkloadKind, Vec<GridMember>)> = Vec::new();
    let mut rest = Vec::new();
    for result in &judged.results {
        let planned = plan.workloads.iter().find(|w| w.name == result.workload);
        let Some(workload) = planned.and_then(Planned::fio) else {
            rest.push(result);
            continue;
        };
        let kind = WorkloadKind {
            target: &result.target,
            pattern: workload.pattern,
            read_percent: workload.read_percent,
            jobs: workload.jobs,
            engine: workload.engine,
            direct: workload.direct,
            durability: workload.durability,
        };
        match groups.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, members)) => members.push((workload, result)),
            None => groups.push((kind, vec![(workload, result)])),
        }
    }
    let mut grids = Vec::new();
    for (kind, members) in groups {
        match build_grid(&kind, &members) {
            Some(grid) => grids.push(grid),
            None => rest.extend(members.into_iter().map(|(_, result)| result)),
        }
    }
    let place =
        |result: &WorkloadResult| judged.results.iter().position(|r| std::ptr::eq(r, result));
    rest.sort_by_key(|result| place(result));
    (grids, rest)
}

fn build_grid<'a>(
    kind: &WorkloadKind<'a>,
    members: &[(&'a Workload, &'a WorkloadResult)],
) -> Option<ResultGrid<'a>> {
    let mut block_sizes: Vec<Bytes> = members.iter().map(|(w, _)| w.block_size).collect();
    let mut depths: Vec<u32> = members.iter().map(|(w, _)| w.queue_depth).collect();
    block_sizes.sort_unstable();
    block_sizes.dedup();
    depths.sort_unstable();
    depths.dedup();
    let places = block_sizes.len() * depths.len();
    if block_sizes.len() < 2 || depths.len() < 2 || members.len() * 2 < places {
        return None;
    }
    let mut cells = vec![None; places];
    for (workload, result) in members {
        let row = block_sizes.binary_search(&workload.block_size).ok()?;
        let column = depths.binary_search(&workload.queue_depth).ok()?;
        let cell = &mut cells[row * depths.len() + column];
        if cell.is_some() {
            // Two workloads of the same shape under different names: a grid would hide one.
            return None;
        }
        *cell = Some(*result);
    }
    let title = describe_pattern(members.first()?.0);
    Some(ResultGrid {
        target: kind.target,
        title,
        block_sizes,
        depths,
        cells,
    })
}

/// Describes a workload as `Workload::describe` does, but without block size and queue depth.
fn describe_pattern(workload: &Workload) -> String {
    let size = workload.block_size.to_string();
    let depth = format!("queue depth {}", workload.queue_depth);
    let description = workload.describe();
    let kept = description
        .split(", ")
        .filter(|part| *part != size && *part != depth);
    kept.collect::<Vec<_>>().join(", ")
}
