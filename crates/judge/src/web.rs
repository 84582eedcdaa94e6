//! Judges the steps of an HTTP load: the limit of each step, its doubts, the capacity and the ranking.

mod doubts;
mod drift;
mod limit;
mod many;
mod rank;
mod stalls;
#[cfg(test)]
mod tests;
mod waits;

pub use doubts::{ALL as DOUBTS, by_status, doubts};
pub use limit::limit;

use crate::estimate::{compute_mean_and_error, interval_on_log_scale};
use assay_model::doubt::{Doubt, Validity};
use assay_model::result::{Estimate, LimitKind};
use assay_model::web::result::{
    Capacity, Judged, Limit, Limited, OverTime, Percentiles, StepResult,
};
use assay_model::web::{Measured, Pace, Step};
use assay_model::{Histogram, Nanos, Sample};

/// Fraction of the best rate that a smaller number of connections must reach to count as equally good.
const KNEE: f64 = 0.95;
/// Minimum factor of the rate from which more connections count as an improvement.
pub const GAIN: f64 = 1.05;

/// Judges the steps of a load on `targets` targets.
#[must_use]
pub fn judge(steps: &[Step], targets: usize) -> Judged {
    let mut shapes: Vec<Vec<&Step>> = Vec::new();
    for step in steps {
        match shapes
            .iter_mut()
            .find(|shape| is_same_shape(shape[0], step))
        {
            Some(shape) => shape.push(step),
            None => shapes.push(vec![step]),
        }
    }
    let mut results: Vec<StepResult> = shapes.iter().map(|shape| summarize_shape(shape)).collect();
    waits::add_flat_bytes(&mut results);
    let capacity: Vec<Option<Capacity>> = (0..targets)
        .map(|target| find_capacity(results.iter().filter(|result| result.target == target)))
        .collect();
    drift::add_slower_than_capacity(&mut results, &capacity);
    let rankings = rank::rank_targets(steps, &capacity);
    Judged {
        steps: results,
        capacity,
        rankings,
    }
}

/// Returns the HTTP step of a sample; `None` for other loads.
#[must_use]
pub fn of(sample: &Sample) -> Option<&Step> {
    let mut workers = sample.workers.iter();
    workers.find_map(|worker| worker.http.as_deref())
}

/// Returns what limited the samples of one HTTP load; `None` for other loads.
pub(crate) fn limit_of(samples: &[&Sample]) -> Option<crate::Answer> {
    let steps: Vec<&Step> = samples.iter().filter_map(|sample| of(sample)).collect();
    if steps.is_empty() {
        return None;
    }
    let limit = most_often(&steps, 1);
    Some(crate::Answer {
        what: match limit.who {
            Limited::Rate => LimitKind::RateAsked,
            Limited::Server => LimitKind::Server,
            Limited::Backend => LimitKind::Backend,
            Limited::Quota => LimitKind::RateLimit,
            Limited::AcceptQueue => LimitKind::AcceptQueue,
            Limited::Generator => LimitKind::ToolCpu,
            Limited::Network => LimitKind::Network,
            Limited::Schedule => LimitKind::Schedule,
            Limited::Ports => LimitKind::Ports,
            Limited::NotKnown => LimitKind::Unknown,
        },
        evidence: limit.evidence,
    })
}

/// Whether two steps have the same parameters and target; their rounds may differ.
fn is_same_shape(a: &Step, b: &Step) -> bool {
    let open = |step: &Step| match step.pace {
        Pace::Closed => None,
        Pace::Constant { .. } => Some(0),
        Pace::Poisson { .. } => Some(1),
        Pace::Replay { .. } => Some(2),
    };
    let rate = |step: &Step| step.share.or(step.pace.rate());
    a.target == b.target
        && a.connections == b.connections
        && open(a) == open(b)
        && rate(a) == rate(b)
}

/// Whether none of the doubts about a step makes the step void.
pub(crate) fn is_counted(step: &Step) -> bool {
    Validity::of(&doubts(step)) != Validity::Void && step.measured.answers > 0
}

fn summarize_shape(shape: &[&Step]) -> StepResult {
    let first = shape[0];
    let judged: Vec<(&Step, Vec<Doubt>)> = shape.iter().map(|step| (*step, doubts(step))).collect();
    let valid: Vec<&Step> = shape
        .iter()
        .copied()
        .filter(|step| is_counted(step))
        .collect();
    // For a shape of which no step counts, the measured figures are shown with a note that they do not count.
    let shown = if valid.is_empty() { shape } else { &valid[..] };
    let rates: Vec<f64> = valid.iter().map(|step| step.measured.rate()).collect();
    let all = merge_steps(shown);
    let mean = |of: &dyn Fn(&Step) -> Option<f64>| {
        let values: Vec<f64> = shown.iter().filter_map(|step| of(step)).collect();
        compute_mean_and_error(&values).map(|(mean, _)| mean)
    };
    let seconds = |time: Nanos| time.0 as f64 / 1e9;
    let server_cpus = mean(&|step| {
        let server = step.server.as_ref().ok()?;
        (server.window.0 > 0).then(|| seconds(server.cpu) / seconds(server.window))
    });
    let rate = estimate(&rates);
    StepResult {
        target: first.target,
        connections: first.connections,
        pace: first.pace,
        share: first.share,
        rounds: valid.len() as u32,
        rounds_void: (shape.len() - valid.len()) as u32,
        rate,
        bytes_per_s: mean(&|step| {
            let window = seconds(step.measured.window);
            (window > 0.0).then(|| step.measured.bytes as f64 / window)
        })
        .unwrap_or(0.0),
        latency: compute_percentiles(&all, &all.latency),
        service: compute_percentiles(&all, &all.service),
        due: all.due,
        failed: all.failed(),
        failures: all.failures.clone(),
        statuses: all.statuses.clone(),
        over_time: shown.iter().map(|step| over_time(step)).collect(),
        histogram: all.latency,
        generators: many::sum_contributions(shown),
        server_cpus,
        generator_cpus: mean(&|step| {
            let window = seconds(step.measured.window);
            (window > 0.0).then(|| seconds(step.measured.cpu) / window)
        })
        .unwrap_or(0.0),
        per_cpu_second: estimate_per_cpu_second(&valid),
        per_percent: rate.zip(server_cpus).and_then(|(rate, cpus)| {
            let all = f64::from(first.server_cpus().0);
            (cpus > 0.0 && all > 0.0).then(|| rate.value / (cpus / all * 100.0))
        }),
        link: mean(&|step| {
            step.link
                .as_ref()
                .ok()
                .map(|link| link.received.max(link.sent))
        }),
        limit: most_often(shown, shape.len()),
        doubts: each_once(
            judged
                .into_iter()
                .flat_map(|(step, doubts)| {
                    let name = name_round(step, shape.len());
                    doubts.into_iter().map(move |doubt| Doubt {
                        evidence: format!("{}{name}", doubt.evidence),
                        ..doubt
                    })
                })
                .chain(drift::rounds_differ(&valid)),
        ),
    }
}

fn over_time(step: &Step) -> OverTime {
    OverTime {
        round: step.round,
        rate: step.measured.rate(),
        points: step.measured.over_time(),
    }
}

/// Computes good answers per second of the server's CPU time.
pub(crate) fn per_cpu_second(step: &Step) -> Option<f64> {
    let server = step.server.as_ref().ok()?;
    let rate = step.measured.rate();
    (server.cpu.0 > 0).then(|| rate / (server.cpu.0 as f64 / server.window.0.max(1) as f64))
}

/// Estimates good answers per second of the server's CPU time over several rounds: the mean rate ÷ the mean number of
/// CPUs, so that it agrees with these printed figures. (The mean of the rounds' quotients would differ if the rounds
/// differ.) The interval comes from the rounds' quotients, on the log scale.
pub(crate) fn estimate_per_cpu_second(steps: &[&Step]) -> Option<Estimate> {
    let known: Vec<(f64, f64)> = steps
        .iter()
        .filter_map(|step| Some((step.measured.rate(), per_cpu_second(step)?)))
        .filter(|(rate, quotient)| *rate > 0.0 && *quotient > 0.0)
        .collect();
    let (rates, cpus) = known
        .iter()
        .fold((0.0, 0.0), |(rates, cpus), (rate, quotient)| {
            (rates + rate, cpus + rate / quotient)
        });
    let logs: Vec<f64> = known.iter().map(|(_, quotient)| quotient.ln()).collect();
    let (_, error) = compute_mean_and_error(&logs)?;
    let (value, freedom) = (rates / cpus, logs.len() as f64 - 1.0);
    Some(Estimate {
        value,
        interval: error.and_then(|error| interval_on_log_scale(value, error, freedom)),
        rounds: logs.len() as u32,
    })
}

/// Computes the mean of positive figures of several rounds, with an interval on the log scale.
fn estimate(values: &[f64]) -> Option<Estimate> {
    let (mean, _) = compute_mean_and_error(values)?;
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let (_, error) = compute_mean_and_error(&logs)?;
    let freedom = values.len() as f64 - 1.0;
    Some(Estimate {
        value: mean,
        interval: error.and_then(|error| interval_on_log_scale(mean, error, freedom)),
        rounds: values.len() as u32,
    })
}

/// Adds up the counts of several rounds.
fn merge_steps(steps: &[&Step]) -> Measured {
    let mut all = Measured::default();
    for step in steps {
        let one = &step.measured;
        all.latency.merge(&one.latency);
        all.service.merge(&one.service);
        all.due += one.due;
        all.unsent += one.unsent;
        all.add_failures(&one.failures);
        all.add_statuses(&one.statuses);
    }
    all
}

fn compute_percentiles(all: &Measured, histogram: &Histogram) -> Percentiles {
    let requests = histogram.count() + all.failed();
    // A percentile with fewer than one request beyond it equals the maximum, so it is omitted.
    let told = |percent: f64, fewest: u64| match requests >= fewest {
        true => all.percentile(histogram, percent),
        false => None,
    };
    Percentiles {
        p50: told(50.0, 2),
        p90: told(90.0, 10),
        p99: told(99.0, 100),
        p999: told(99.9, 1000),
    }
}

/// Finds the smallest number of connections that reaches a fraction of the rate of the best closed loop.
fn find_capacity<'a>(results: impl Iterator<Item = &'a StepResult>) -> Option<Capacity> {
    let all: Vec<&StepResult> = results
        .filter(|result| result.pace == Pace::Closed)
        .collect();
    let closed: Vec<(u32, Estimate)> = all
        .iter()
        .filter_map(|result| Some((result.connections, result.rate?)))
        .collect();
    let best = |of: &dyn Fn(u32) -> bool| {
        let rates = closed.iter().filter(|(connections, _)| of(*connections));
        rates.map(|(_, rate)| rate.value).fold(0.0, f64::max)
    };
    let most = closed.iter().map(|(connections, _)| *connections).max()?;
    let enough = closed
        .iter()
        .filter(|(_, rate)| rate.value >= KNEE * best(&|_| true));
    let (connections, rate) = enough.min_by_key(|(connections, _)| *connections)?;
    let fewer = best(&|connections| connections < most);
    // A server that refuses more connections has no higher capacity with them.
    let refuses_more = all
        .iter()
        .any(|result| result.connections > most && fails_mostly(result.failed, result.due));
    let gains = fewer > 0.0 && best(&|connections| connections == most) > GAIN * fewer;
    (rate.value > 0.0).then_some(Capacity {
        connections: *connections,
        rate: rate.value,
        interval: rate.interval,
        rising: gains && !refuses_more,
    })
}

/// Returns whether so many requests failed that a closed loop is void.
#[must_use]
pub fn fails_mostly(failed: u64, due: u64) -> bool {
    failed as f64 > doubts::FAILED_MOST * due.max(1) as f64
}

/// Returns the round of a figure that comes from one round only, as text: ` (round 2 of 5)`; empty if there is only one
/// round.
fn name_round(step: &Step, rounds: usize) -> String {
    match rounds {
        0 | 1 => String::new(),
        rounds => format!(" (round {} of {rounds})", step.round + 1),
    }
}

/// Returns the limit that was found in most steps. The evidence comes from that step among them that has the median
/// rate. If no limit has a majority, returns all of them. `rounds` is the total number of rounds that the evidence
/// mentions; with 1 it mentions none.
fn most_often(steps: &[&Step], rounds: usize) -> Limit {
    let limits: Vec<Limit> = steps.iter().map(|step| limit(step)).collect();
    let count = |who: Limited| limits.iter().filter(|limit| limit.who == who).count();
    let most = limits.iter().max_by_key(|limit| count(limit.who));
    match most {
        Some(most) if count(most.who) * 2 > limits.len() => {
            let agreeing = steps
                .iter()
                .zip(&limits)
                .filter(|(_, limit)| limit.who == most.who);
            let mut agreeing: Vec<(&&Step, &Limit)> = agreeing.collect();
            agreeing.sort_by(|(a, _), (b, _)| a.measured.rate().total_cmp(&b.measured.rate()));
            let (step, limit) = agreeing[(agreeing.len() - 1) / 2];
            Limit {
                who: limit.who,
                evidence: format!("{}{}", limit.evidence, name_round(step, rounds)),
            }
        }
        _ => Limit {
            who: Limited::NotKnown,
            evidence: match limits.is_empty() {
                true => "nothing was measured".to_owned(),
                false => {
                    let each = limits.iter().map(|limit| limit.who.name());
                    format!(
                        "the rounds do not agree: {}",
                        each.collect::<Vec<_>>().join(", ")
                    )
                }
            },
        },
    }
}

fn each_once(doubts: impl Iterator<Item = Doubt>) -> Vec<Doubt> {
    let mut all: Vec<Doubt> = Vec::new();
    for doubt in doubts {
        match all.iter_mut().find(|own| own.code == doubt.code) {
            Some(own) if own.severity < doubt.severity => *own = doubt,
            Some(_) => {}
            None => all.push(doubt),
        }
    }
    all
}
