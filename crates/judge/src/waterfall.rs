//! What each layer of a stack costs, from paired rounds.
//!
//! Time per I/O adds up from layer to layer, throughput does not: a layer that takes 20 µs takes
//! 20 µs below a fast disk and a slow one, while the IOPS it costs depend on what lies below. So a
//! layer's cost is the mean latency with it less the mean latency without it, in the same round:
//! what drifts from round to round meets both.

mod first;
mod paired;

use assay_model::Planned;
use assay_model::criterion::{Metric, Quantity};
use assay_model::doubt::Validity;
use assay_model::ladder::{Ladder, Level, Step, Waterfall, Whole};
use assay_model::result::{CountedDoubt, Estimate, JudgedSample};
use paired::{Rounds, difference, geometric, linear};
use std::collections::BTreeMap;

/// One waterfall for each workload, in the order of `workloads`; those without any sample are left
/// out.
#[must_use]
pub fn waterfalls(
    ladder: &Ladder,
    workloads: &[Planned],
    samples: &[JudgedSample],
) -> Vec<Waterfall> {
    let of = |workload: &Planned| {
        let ours: Vec<&JudgedSample> = samples
            .iter()
            .filter(|sample| sample.workload == workload.name)
            .collect();
        (!ours.is_empty()).then(|| Evidence::of(ladder, &ours).waterfall(workload))
    };
    workloads.iter().filter_map(of).collect()
}

/// What was measured of one workload, by rung.
struct Evidence<'a> {
    ladder: &'a Ladder,
    /// Mean latency, ns, by round.
    latency: Vec<Rounds>,
    /// I/Os per second by round.
    iops: Vec<Rounds>,
    left_out: Vec<u32>,
    doubts: Vec<Vec<CountedDoubt>>,
}

impl<'a> Evidence<'a> {
    fn of(ladder: &'a Ladder, samples: &[&JudgedSample]) -> Self {
        let rungs = ladder.rungs.len();
        let mut all = Self {
            ladder,
            latency: vec![Rounds::new(); rungs],
            iops: vec![Rounds::new(); rungs],
            left_out: vec![0; rungs],
            doubts: vec![Vec::new(); rungs],
        };
        for (index, rung) in ladder.rungs.iter().enumerate() {
            for sample in samples.iter().filter(|sample| sample.target == rung.name) {
                all.take(index, sample);
            }
        }
        all
    }

    fn take(&mut self, rung: usize, sample: &JudgedSample) {
        for doubt in &sample.doubts {
            let known = &mut self.doubts[rung];
            match known
                .iter_mut()
                .find(|one| one.doubt.code == doubt.code && one.doubt.severity == doubt.severity)
            {
                Some(one) => one.samples += 1,
                None => known.push(CountedDoubt {
                    doubt: doubt.clone(),
                    samples: 1,
                }),
            }
        }
        let figure = |quantity| sample.figures.get(&Metric::all(quantity)).copied();
        let latency = figure(Quantity::Mean).filter(|ns| ns.is_finite() && *ns > 0.0);
        match latency.filter(|_| sample.validity != Validity::Void) {
            Some(latency) => {
                self.latency[rung].insert(sample.round, latency);
                if let Some(iops) = figure(Quantity::Iops) {
                    self.iops[rung].insert(sample.round, iops);
                }
            }
            None => self.left_out[rung] += 1,
        }
    }

    fn waterfall(&self, workload: &Planned) -> Waterfall {
        let mut steps = self.steps();
        let tops = self.ladder.tops().into_iter();
        let mut wholes: Vec<Whole> = tops.filter_map(|top| self.whole(top, &steps)).collect();
        // The one that is checked comes first.
        wholes.sort_by_key(|whole| !whole.separate);
        for (index, step) in steps.iter_mut().enumerate() {
            let on = wholes.iter().find(|whole| whole.steps.contains(&index));
            step.share = on.and_then(|whole| share(step, whole));
        }
        Waterfall {
            workload: workload.name.clone(),
            description: workload.describe(),
            levels: (0..self.ladder.rungs.len())
                .map(|rung| Level {
                    rung,
                    latency: level(&self.latency[rung]),
                    iops: level(&self.iops[rung]),
                    left_out: self.left_out[rung],
                    doubts: self.doubts[rung].clone(),
                })
                .collect(),
            steps,
            wholes,
        }
    }

    fn steps(&self) -> Vec<Step> {
        let rungs = self.ladder.rungs.iter().enumerate();
        rungs
            .filter_map(|(to, rung)| Some((rung.parent?, to)))
            .filter(|(from, _)| *from < self.ladder.rungs.len())
            .map(|(from, to)| {
                let added = linear(&self.added(from, to));
                Step {
                    from,
                    to,
                    told: added.is_some_and(told),
                    added,
                    ratio: geometric(&self.latency[from], &self.latency[to]),
                    share: None,
                }
            })
            .collect()
    }

    /// What `to` takes longer than `from`, round by round.
    fn added(&self, from: usize, to: usize) -> Rounds {
        difference(&self.latency[to], &self.latency[from])
    }

    fn whole(&self, top: usize, steps: &[Step]) -> Option<Whole> {
        let path = self.ladder.path(top);
        let (&bottom, true) = (path.first()?, path.len() > 1) else {
            return None;
        };
        let own = self.ladder.again(bottom).zip(self.ladder.again(top));
        let (low, high) = own.unwrap_or((bottom, top));
        let whole = self.added(low, high);
        let sum = self.sum(&path);
        let on_path: Vec<usize> = (0..steps.len())
            .filter(|&step| {
                path.windows(2)
                    .any(|two| two == [steps[step].from, steps[step].to])
            })
            .collect();
        Some(Whole {
            bottom,
            top,
            first: first::first(steps, &on_path, &|step: &Step| {
                self.added(step.from, step.to)
            }),
            steps: on_path,
            added: linear(&whole),
            ratio: geometric(&self.latency[low], &self.latency[high]),
            closing: own.and_then(|_| linear(&difference(&sum, &whole))),
            sum: linear(&sum),
            separate: own.is_some(),
        })
    }

    /// The parts added up, in the rounds in which all rungs of a path have a figure.
    fn sum(&self, path: &[usize]) -> Rounds {
        let mut sum = BTreeMap::new();
        let (Some(bottom), Some(top)) = (path.first(), path.last()) else {
            return sum;
        };
        for (round, added) in self.added(*bottom, *top) {
            // Adjacent differences telescope, so the sum of all of them is that of the ends.
            if path
                .iter()
                .all(|rung| self.latency[*rung].contains_key(&round))
            {
                sum.insert(round, added);
            }
        }
        sum
    }
}

/// A level is a latency or a rate: nothing below zero can be true.
fn level(rounds: &Rounds) -> Option<Estimate> {
    let mut estimate = linear(rounds)?;
    if let Some(interval) = &mut estimate.interval {
        interval.low = interval.low.max(0.0);
    }
    Some(estimate)
}

/// Whether an estimate is told from zero.
fn told(estimate: Estimate) -> bool {
    estimate
        .interval
        .is_some_and(|interval| interval.low > 0.0 || interval.high < 0.0)
}

fn share(step: &Step, whole: &Whole) -> Option<f64> {
    let all = whole
        .added
        .filter(|added| told(*added) && added.value > 0.0)?;
    let part = step.added.filter(|_| step.told)?;
    Some(part.value / all.value)
}

#[cfg(test)]
mod tests;
