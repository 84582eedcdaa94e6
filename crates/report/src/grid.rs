//! Results that form a table of block size × queue depth.

use assay_model::plan::Plan;
use assay_model::result::{Judged, WorkloadResult};
use assay_model::workload::{Durability, Engine, Pattern};
use assay_model::{Bytes, Planned, Workload};

/// Workloads that differ in block size and queue depth only.
pub struct Grid<'a> {
    /// Target of all of them.
    pub target: &'a str,
    /// What they have in common, for people: `random read`.
    pub title: String,
    /// Rows, ascending.
    pub block_sizes: Vec<Bytes>,
    /// Columns, ascending.
    pub depths: Vec<u32>,
    /// Row by row; none where the plan has no such workload or nothing came of it.
    pub cells: Vec<Option<&'a WorkloadResult>>,
}

impl<'a> Grid<'a> {
    /// The result at a row and a column.
    #[must_use]
    pub fn cell(&self, row: usize, column: usize) -> Option<&'a WorkloadResult> {
        self.cells
            .get(row * self.depths.len() + column)
            .copied()
            .flatten()
    }
}

/// Everything about a workload but block size and queue depth.
#[derive(PartialEq)]
struct Kind<'a> {
    target: &'a str,
    pattern: Pattern,
    read_percent: Option<u8>,
    jobs: u32,
    engine: Engine,
    direct: bool,
    durability: Durability,
}

/// The results that form grids of at least 2 × 2, in plan order, and all others. Half of a grid's
/// cells must be filled: two workloads that happen to differ are no table.
#[must_use]
pub fn split<'a>(plan: &'a Plan, judged: &'a Judged) -> (Vec<Grid<'a>>, Vec<&'a WorkloadResult>) {
    type Member<'a> = (&'a Workload, &'a WorkloadResult);
    let mut groups: Vec<(Kind, Vec<Member>)> = Vec::new();
    let mut rest = Vec::new();
    for result in &judged.results {
        let planned = plan.workloads.iter().find(|w| w.name == result.workload);
        let Some(workload) = planned.and_then(Planned::fio) else {
            rest.push(result);
            continue;
        };
        let kind = Kind {
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
        match grid(&kind, &members) {
            Some(grid) => grids.push(grid),
            None => rest.extend(members.into_iter().map(|(_, result)| result)),
        }
    }
    let place =
        |result: &WorkloadResult| judged.results.iter().position(|r| std::ptr::eq(r, result));
    rest.sort_by_key(|result| place(result));
    (grids, rest)
}

fn grid<'a>(kind: &Kind<'a>, members: &[(&'a Workload, &'a WorkloadResult)]) -> Option<Grid<'a>> {
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
            // Two workloads of one shape under different names: a table would hide one.
            return None;
        }
        *cell = Some(*result);
    }
    let title = title(members.first()?.0);
    Some(Grid {
        target: kind.target,
        title,
        block_sizes,
        depths,
        cells,
    })
}

/// `Workload::describe` without block size and queue depth.
fn title(workload: &Workload) -> String {
    let size = workload.block_size.to_string();
    let depth = format!("queue depth {}", workload.queue_depth);
    let description = workload.describe();
    let kept = description
        .split(", ")
        .filter(|part| *part != size && *part != depth);
    kept.collect::<Vec<_>>().join(", ")
}
