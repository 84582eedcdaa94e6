//! Figures of one sample: rates and latency by direction. Estimates over several samples are in
//! `estimate`.

mod latency_distribution;

pub(crate) use latency_distribution::LatencyDistribution;

use assay_model::criterion::{Direction, Metric, Quantity};
use assay_model::result::Figures;
use assay_model::sample::{Operation, Operations, Worker};
use std::collections::BTreeMap;

/// The figures of one direction, over all workers.
#[derive(Clone, Debug, Default)]
pub(crate) struct SideFigures {
    /// Operations per second.
    pub iops: f64,
    /// Bytes per second; `None` for flushes.
    pub bytes_per_s: Option<f64>,
    /// Latencies of the operations.
    pub latency: LatencyDistribution,
    /// Geometric mean of the figures that the runs of a command printed.
    pub printed: Option<f64>,
}

/// Figures by direction; a direction without operations is missing. `All` contains every operation of the requested
/// load.
pub(crate) type FiguresByDirection = BTreeMap<Direction, SideFigures>;

/// Adds up the workers of one sample. The rate of each worker is computed over its own run time; the run times of
/// parallel workers are never added.
pub(crate) fn sum_workers(workers: &[Worker]) -> FiguresByDirection {
    let mut parts: BTreeMap<Direction, Vec<SideFigures>> = BTreeMap::new();
    for worker in workers {
        let flush = worker.flush().map(LatencyDistribution::of_calls);
        // Other programs print rates without counts.
        let any = |done: &Operations| done.count > 0 || done.per_s > 0.0 || done.bytes_per_s > 0.0;
        for (kind, done) in worker.asked().filter(|(_, done)| any(done)) {
            let latency = LatencyDistribution::of_operations(done);
            let latency = match (kind, &flush) {
                (Operation::Write, Some(flush)) => latency.followed_by(flush),
                _ => latency,
            };
            let side = build_side(done, latency);
            let direction = match kind {
                Operation::Read => Some(Direction::Read),
                Operation::Write => Some(Direction::Write),
                _ => None,
            };
            for direction in [Direction::All].into_iter().chain(direction) {
                parts.entry(direction).or_default().push(side.clone());
            }
        }
        if let Some(latency) = flush.filter(|flush| flush.n > 0) {
            let runtime = worker.write().map_or(worker.runtime, |io| io.runtime);
            parts
                .entry(Direction::Flush)
                .or_default()
                .push(SideFigures {
                    iops: compute_rate(latency.n, runtime.as_secs_f64()),
                    bytes_per_s: None,
                    latency,
                    printed: None,
                });
        }
    }
    let whole = |(direction, sides): (_, Vec<SideFigures>)| (direction, combine_sides(&sides));
    parts.into_iter().map(whole).collect()
}

fn build_side(io: &Operations, latency: LatencyDistribution) -> SideFigures {
    let seconds = io.runtime.as_secs_f64();
    let given = |rate: f64| (rate.is_finite() && rate > 0.0).then_some(rate);
    SideFigures {
        iops: given(io.per_s).unwrap_or_else(|| compute_rate(io.count, seconds)),
        bytes_per_s: Some(
            given(io.bytes_per_s).unwrap_or_else(|| compute_rate(io.bytes.0, seconds)),
        ),
        latency,
        printed: compute_geometric_mean(&io.printed),
    }
}

fn compute_geometric_mean(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().map(|value| value.ln()).sum();
    let mean = (sum / values.len() as f64).exp();
    (!values.is_empty() && mean.is_finite() && mean > 0.0).then_some(mean)
}

fn compute_rate(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        count as f64 / seconds
    } else {
        0.0
    }
}

fn combine_sides(sides: &[SideFigures]) -> SideFigures {
    SideFigures {
        iops: sides.iter().map(|side| side.iops).sum(),
        bytes_per_s: sides.iter().map(|side| side.bytes_per_s).sum(),
        latency: LatencyDistribution::merge(sides.iter().map(|side| &side.latency)),
        // Only one worker prints.
        printed: sides.iter().find_map(|side| side.printed),
    }
}

/// Computes the figures of a sample by metric; a metric that was not measured is missing.
pub(crate) fn compute_figures(sides: &FiguresByDirection) -> Figures {
    let mut figures = Figures::new();
    for (&direction, side) in sides {
        let printed = [Quantity::Printed, Quantity::PrintedLess];
        for quantity in Quantity::ALL.into_iter().chain(printed) {
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

impl SideFigures {
    /// Returns the figure of a quantity, if measured.
    pub(crate) fn get(&self, quantity: Quantity) -> Option<f64> {
        match quantity {
            Quantity::Iops => (self.iops > 0.0).then_some(self.iops),
            Quantity::Throughput => self.bytes_per_s.filter(|rate| *rate > 0.0),
            Quantity::Mean => self.latency.mean(),
            Quantity::Max => self.latency.max(),
            Quantity::Printed | Quantity::PrintedLess => self.printed,
            _ => self.latency.percentile(quantity.percent()?),
        }
    }
}

#[cfg(test)]
mod tests;
