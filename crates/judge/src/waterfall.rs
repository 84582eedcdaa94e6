//! Waterfalls: the cost of each layer of a storage stack, from paired rounds. The measured layers come from
//! `assay-stack`, where a stack is a `Ladder` and a layer a `Rung`.
//!
//! Time per I/O adds up from layer to layer, throughput does not. A layer that takes 20 µs takes the same time above a
//! fast disk and above a slow disk, but the loss in IOPS depends on the layers below. A layer's cost is therefore the
//! mean latency with the layer minus the mean latency without the layer in the same round, so that drift from round to
//! round cancels out.

mod layers_to_check;
mod paired_rounds;

use assay_model::Planned;
use assay_model::criterion::{Metric, Quantity};
use assay_model::doubt::Validity;
use assay_model::ladder::{Ladder, Level, Step, Waterfall, Whole};
use assay_model::result::{CountedDoubt, Estimate, JudgedSample};
use paired_rounds::{
    FigureByRound, estimate_mean, estimate_ratio, keep_common_rounds, subtract_rounds,
};
use std::collections::BTreeMap;

/// Builds one waterfall for each workload, in the order of `workloads`; workloads without any
/// sample are left out.
#[must_use]
pub fn build_waterfalls(
    ladder: &Ladder,
    workloads: &[Planned],
    samples: &[JudgedSample],
) -> Vec<Waterfall> {
    let of = |workload: &Planned| {
        let ours: Vec<&JudgedSample> = samples
            .iter()
            .filter(|sample| sample.workload == workload.name)
            .collect();
        (!ours.is_empty()).then(|| RungFigures::collect(ladder, &ours).build_waterfall(workload))
    };
    workloads.iter().filter_map(of).collect()
}

/// Figures of one workload, by measured layer (`Rung`).
struct RungFigures<'a> {
    ladder: &'a Ladder,
    /// Mean latency in nanoseconds by round.
    latency: Vec<FigureByRound>,
    /// I/Os per second by round.
    iops: Vec<FigureByRound>,
    left_out: Vec<u32>,
    doubts: Vec<Vec<CountedDoubt>>,
}

impl<'a> RungFigures<'a> {
    fn collect(ladder: &'a Ladder, samples: &[&JudgedSample]) -> Self {
        let rungs = ladder.rungs.len();
        let mut all = Self {
            ladder,
            latency: vec![FigureByRound::new(); rungs],
            iops: vec![FigureByRound::new(); rungs],
            left_out: vec![0; rungs],
            doubts: vec![Vec::new(); rungs],
        };
        for (index, rung) in ladder.rungs.iter().enumerate() {
            for sample in samples.iter().filter(|sample| sample.target == rung.name) {
                all.add_sample(index, sample);
            }
        }
        keep_common_rounds(&mut all.latency);
        for (iops, latency) in all.iops.iter_mut().zip(&all.latency) {
            iops.retain(|round, _| latency.contains_key(round));
        }
        all
    }

    fn add_sample(&mut self, rung: usize, sample: &JudgedSample) {
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

    fn build_waterfall(&self, workload: &Planned) -> Waterfall {
        let mut steps = self.build_steps();
        let tops = self.ladder.tops().into_iter();
        let mut wholes: Vec<Whole> = tops
            .filter_map(|top| self.build_whole(top, &steps))
            .collect();
        // The path with the check comes first.
        wholes.sort_by_key(|whole| !whole.separate);
        for (index, step) in steps.iter_mut().enumerate() {
            let on = wholes.iter().find(|whole| whole.steps.contains(&index));
            step.share = on.and_then(|whole| share_of_whole(step, whole));
        }
        Waterfall {
            workload: workload.name.clone(),
            description: workload.describe(),
            levels: (0..self.ladder.rungs.len())
                .map(|rung| Level {
                    rung,
                    latency: estimate_level(&self.latency[rung]),
                    iops: estimate_level(&self.iops[rung]),
                    left_out: self.left_out[rung],
                    doubts: self.doubts[rung].clone(),
                })
                .collect(),
            steps,
            wholes,
        }
    }

    fn build_steps(&self) -> Vec<Step> {
        let rungs = self.ladder.rungs.iter().enumerate();
        rungs
            .filter_map(|(to, rung)| Some((rung.parent?, to)))
            .filter(|(from, _)| *from < self.ladder.rungs.len())
            .map(|(from, to)| {
                let added = estimate_mean(&self.added_time(from, to));
                Step {
                    from,
                    to,
                    told: added.is_some_and(differs_from_zero),
                    added,
                    ratio: estimate_ratio(&self.latency[from], &self.latency[to]),
                    share: None,
                }
            })
            .collect()
    }

    /// Computes how much longer `to` takes than `from`, in nanoseconds by round.
    fn added_time(&self, from: usize, to: usize) -> FigureByRound {
        subtract_rounds(&self.latency[to], &self.latency[from])
    }

    fn build_whole(&self, top: usize, steps: &[Step]) -> Option<Whole> {
        let path = self.ladder.path(top);
        let (&bottom, true) = (path.first()?, path.len() > 1) else {
            return None;
        };
        let own = self.ladder.again(bottom).zip(self.ladder.again(top));
        let (low, high) = own.unwrap_or((bottom, top));
        let whole = self.added_time(low, high);
        let sum = self.sum_path(&path);
        let on_path: Vec<usize> = (0..steps.len())
            .filter(|&step| {
                path.windows(2)
                    .any(|two| two == [steps[step].from, steps[step].to])
            })
            .collect();
        Some(Whole {
            bottom,
            top,
            first: layers_to_check::find_layers_to_check(steps, &on_path, &|step: &Step| {
                self.added_time(step.from, step.to)
            }),
            steps: on_path,
            added: estimate_mean(&whole),
            ratio: estimate_ratio(&self.latency[low], &self.latency[high]),
            closing: own.and_then(|_| estimate_mean(&subtract_rounds(&sum, &whole))),
            sum: estimate_mean(&sum),
            separate: own.is_some(),
        })
    }

    /// Adds up the steps of a path, for the rounds in which all layers of the path have a figure.
    fn sum_path(&self, path: &[usize]) -> FigureByRound {
        let mut sum = BTreeMap::new();
        let (Some(bottom), Some(top)) = (path.first(), path.last()) else {
            return sum;
        };
        for (round, added) in self.added_time(*bottom, *top) {
            // Adjacent differences telescope, so their sum is the difference of the ends.
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

/// Estimates a latency or a rate; the interval is cut off at zero.
fn estimate_level(rounds: &FigureByRound) -> Option<Estimate> {
    let mut estimate = estimate_mean(rounds)?;
    if let Some(interval) = &mut estimate.interval {
        interval.low = interval.low.max(0.0);
    }
    Some(estimate)
}

/// Whether an estimate's interval excludes zero.
fn differs_from_zero(estimate: Estimate) -> bool {
    estimate
        .interval
        .is_some_and(|interval| interval.low > 0.0 || interval.high < 0.0)
}

fn share_of_whole(step: &Step, whole: &Whole) -> Option<f64> {
    let all = whole
        .added
        .filter(|added| differs_from_zero(*added) && added.value > 0.0)?;
    let part = step.added.filter(|_| step.told)?;
    Some(part.value / all.value)
}

#[cfg(test)]
mod tests;
