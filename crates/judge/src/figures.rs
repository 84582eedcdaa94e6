//! The figures of one sample: rates and latency by direction.

mod latency;

pub(crate) use latency::Distribution;

use assay_model::criterion::{Direction, Metric, Quantity};
use assay_model::result::Figures;
use assay_model::sample::{IoStats, JobResult};
use std::collections::BTreeMap;

/// What was measured of one direction, all jobs together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Side {
    /// I/Os per second; for flushes, calls per second.
    pub iops: f64,
    /// Bytes per second; none for flushes.
    pub bytes_per_s: Option<f64>,
    /// Latency.
    pub latency: Distribution,
}

/// Sides by direction. `Read` and `Write` are there when the sample has both or a flush sets them
/// apart; `All` always, unless nothing was moved.
pub(crate) type Sides = BTreeMap<Direction, Side>;

/// Adds up the jobs of one sample. Rates are added as each job measured them over its own time:
/// the runtimes of jobs that ran side by side are never added.
pub(crate) fn sides(jobs: &[JobResult]) -> Sides {
    let mut reads = Vec::new();
    let mut writes = Vec::new();
    let mut flushes = Vec::new();
    for job in jobs {
        if let Some(io) = job.read.as_ref().filter(|io| io.ios > 0) {
            reads.push(side(io, Distribution::of_io(io)));
        }
        let sync = job.sync.as_ref().map(Distribution::of_calls);
        if let Some(io) = job.write.as_ref().filter(|io| io.ios > 0) {
            let write = Distribution::of_io(io);
            let with_flush = match &sync {
                Some(sync) => write.then(sync),
                None => write,
            };
            writes.push(side(io, with_flush));
        }
        if let Some(latency) = sync.filter(|sync| sync.n > 0) {
            let runtime = job.write.as_ref().map_or(job.runtime, |io| io.runtime);
            flushes.push(Side {
                iops: per_second(latency.n, runtime.as_secs_f64()),
                bytes_per_s: None,
                latency,
            });
        }
    }
    let mut sides = Sides::new();
    let mixed = !reads.is_empty() && !writes.is_empty();
    let all: Vec<Side> = reads.iter().chain(&writes).cloned().collect();
    if !all.is_empty() {
        sides.insert(Direction::All, together(&all));
    }
    if mixed {
        sides.insert(Direction::Read, together(&reads));
        sides.insert(Direction::Write, together(&writes));
    } else if !reads.is_empty() {
        sides.insert(Direction::Read, together(&reads));
    } else if !writes.is_empty() {
        sides.insert(Direction::Write, together(&writes));
    }
    if !flushes.is_empty() {
        sides.insert(Direction::Flush, together(&flushes));
    }
    sides
}

fn side(io: &IoStats, latency: Distribution) -> Side {
    let seconds = io.runtime.as_secs_f64();
    let given = |rate: f64| (rate.is_finite() && rate > 0.0).then_some(rate);
    Side {
        iops: given(io.iops).unwrap_or_else(|| per_second(io.ios, seconds)),
        bytes_per_s: Some(given(io.bytes_per_s).unwrap_or_else(|| per_second(io.bytes.0, seconds))),
        latency,
    }
}

fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        count as f64 / seconds
    } else {
        0.0
    }
}

fn together(sides: &[Side]) -> Side {
    Side {
        iops: sides.iter().map(|side| side.iops).sum(),
        bytes_per_s: sides.iter().map(|side| side.bytes_per_s).sum(),
        latency: Distribution::merged(sides.iter().map(|side| &side.latency)),
    }
}

/// The figures of a sample by metric; what was not measured is left out.
pub(crate) fn figures(sides: &Sides) -> Figures {
    let mut figures = Figures::new();
    for (&direction, side) in sides {
        for quantity in Quantity::ALL {
            if let Some(value) = side.get(quantity) {
                figures.insert(
                    Metric {
                        direction,
                        quantity,
                    },
                    value,
                );
            }
        }
    }
    figures
}

impl Side {
    /// The figure, when it was measured.
    pub(crate) fn get(&self, quantity: Quantity) -> Option<f64> {
        match quantity {
            Quantity::Iops => (self.iops > 0.0).then_some(self.iops),
            Quantity::Throughput => self.bytes_per_s.filter(|rate| *rate > 0.0),
            Quantity::Mean => self.latency.mean(),
            Quantity::Max => self.latency.max(),
            _ => self.latency.percentile(quantity.percent()?),
        }
    }
}

#[cfg(test)]
mod tests;
