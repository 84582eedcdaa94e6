//! The figures of one sample: rates and latency by direction.

mod latency;

pub(crate) use latency::Distribution;

use assay_model::criterion::{Direction, Metric, Quantity};
use assay_model::result::Figures;
use assay_model::sample::{Operation, Operations, Worker};
use std::collections::BTreeMap;

/// What was measured of one direction, all workers together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Side {
    /// Operations per second.
    pub iops: f64,
    /// Bytes per second; none for flushes.
    pub bytes_per_s: Option<f64>,
    /// Latency.
    pub latency: Distribution,
}

/// Sides by direction: those that there was anything of. `All` is every operation that the load was
/// asked to do.
pub(crate) type Sides = BTreeMap<Direction, Side>;

/// Adds up the workers of one sample. Rates are added as each measured them over its own time:
/// the runtimes of workers that ran side by side are never added.
pub(crate) fn sides(workers: &[Worker]) -> Sides {
    let mut parts: BTreeMap<Direction, Vec<Side>> = BTreeMap::new();
    for worker in workers {
        let flush = worker.flush().map(Distribution::of_calls);
        for (kind, done) in worker.asked().filter(|(_, done)| done.count > 0) {
            let latency = Distribution::of(done);
            let latency = match (kind, &flush) {
                (Operation::Write, Some(flush)) => latency.then(flush),
                _ => latency,
            };
            let side = side(done, latency);
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
            parts.entry(Direction::Flush).or_default().push(Side {
                iops: per_second(latency.n, runtime.as_secs_f64()),
                bytes_per_s: None,
                latency,
            });
        }
    }
    let whole = |(direction, sides): (_, Vec<Side>)| (direction, together(&sides));
    parts.into_iter().map(whole).collect()
}

fn side(io: &Operations, latency: Distribution) -> Side {
    let seconds = io.runtime.as_secs_f64();
    let given = |rate: f64| (rate.is_finite() && rate > 0.0).then_some(rate);
    Side {
        iops: given(io.per_s).unwrap_or_else(|| per_second(io.count, seconds)),
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
