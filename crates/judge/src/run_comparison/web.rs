//! Compares two loads on web servers by CPU time per answer, and with verdicts whose error probability is bounded.

use super::{compute_ratio_error, compute_ratio_interval};
use crate::estimate::{PooledValue, around_at, compute_mean_and_error};
use crate::workload_groups::WorkloadGroup;
use assay_model::criterion::{Direction, Metric, Quantity};
use assay_model::doubt::Validity;
use assay_model::result::{Change, ComparisonRow, Interval};
use assay_model::units::format_significant;
use assay_model::web::Step;

/// Minimum ratio that counts as a difference. Smaller differences do not matter to users, and occur between two runs of
/// an unchanged server.
const MARGIN: f64 = 1.05;
/// Maximum probability that any figure of a comparison is called better or worse although nothing changed.
const LEVEL: f64 = 0.05;
/// Minimum number of time intervals, on each side, that contain a request as slow as the percentile. Intervals are
/// counted instead of requests, because one pause of the machine makes a hundred requests slow at once but is one
/// event.
const EVENTS: usize = 10;
/// Code of the doubt about other programs on the machine.
const FOREIGN_WORK: &str = "foreign-work";
/// Percentile from which a few slow events determine the value.
const TAIL: f64 = 99.0;

/// Returns the steps of a group that are not void.
fn list_steps<'a>(group: &WorkloadGroup<'a>) -> Vec<&'a Step> {
    let valid = group
        .samples
        .iter()
        .filter(|one| one.validity != Validity::Void);
    valid.filter_map(|one| crate::web::of(one.sample)).collect()
}

/// Whether a group is a load on a web server.
pub(super) fn is_load(group: &WorkloadGroup) -> bool {
    !list_steps(group).is_empty()
}

/// Computes the server's CPU time per answer on both sides.
pub(super) fn cpu_per_answer(a: &WorkloadGroup, b: &WorkloadGroup) -> Option<ComparisonRow> {
    let (left, right) = (pooled_cpu(a)?, pooled_cpu(b)?);
    Some(ComparisonRow {
        workload: a.workload.clone(),
        target: a.target.clone(),
        metric: Metric::all(Quantity::Cpu),
        a: left.to_estimate(),
        b: right.to_estimate(),
        ratio: right.value / left.value,
        interval: compute_ratio_interval(left, right),
        verdict: Change::Unclear,
    })
}

fn pooled_cpu(group: &WorkloadGroup) -> Option<PooledValue> {
    let answers = crate::web::estimate_per_cpu_second(&list_steps(group))?;
    Some(PooledValue {
        value: 1e9 / answers.value,
        error: error_of(&answers),
        rounds: answers.rounds,
    })
}

/// Returns the requested rate of an open loop in requests per second, on average over its rounds; `None` for a closed
/// loop.
fn asked_rate(group: &WorkloadGroup) -> Option<f64> {
    let steps = list_steps(group);
    let rates: Vec<f64> = steps.iter().filter_map(|step| step.pace.rate()).collect();
    let (mean, _) = compute_mean_and_error(&rates)?;
    (rates.len() == steps.len()).then_some(mean)
}

/// Reason why the figures of two loads are not judged.
enum Obstacle {
    /// The requested rates of the two loads differ.
    OtherRate(String),
    /// Other programs used the CPUs.
    ForeignWork(String),
}

/// Returns the reason why the figures of two loads must not be judged; `None` if they can be judged.
fn find_obstacle(a: &WorkloadGroup, b: &WorkloadGroup) -> Option<Obstacle> {
    if let (Some(left), Some(right)) = (asked_rate(a), asked_rate(b))
        && !(MARGIN.recip()..=MARGIN).contains(&(right / left))
    {
        return Some(Obstacle::OtherRate(format!(
            "{} requests per second were asked for in the first run, {} in the second; --rate asks both for the same",
            format_significant(left),
            format_significant(right)
        )));
    }
    let disturbed = |group: &WorkloadGroup| {
        let steps = list_steps(group);
        let found = steps.iter().filter_map(|step| {
            let doubts = crate::web::doubts(step).into_iter();
            let mut foreign = doubts.filter(|doubt| doubt.code == FOREIGN_WORK);
            Some(foreign.next()?.evidence)
        });
        let found: Vec<String> = found.collect();
        // One disturbed round of several is in the interval.
        (found.len() * 2 > steps.len())
            .then(|| found.into_iter().next())
            .flatten()
    };
    let of = |name: &str, evidence: String| {
        Obstacle::ForeignWork(format!(
            "in the {name} run {evidence}; repeat it on a quiet machine, or compare with `assay trial`, whose pairs \
             other work disturbs alike"
        ))
    };
    disturbed(a)
        .map(|evidence| of("first", evidence))
        .or_else(|| disturbed(b).map(|evidence| of("second", evidence)))
}

/// Lists the loads whose figures are not judged, with the reason. Work of other programs is listed once for all loads,
/// with the evidence of the first load.
pub(super) fn list_obstacles(pairs: &[(&WorkloadGroup, &WorkloadGroup)]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut foreign: Option<(String, Vec<&str>)> = None;
    for (a, b) in pairs {
        match find_obstacle(a, b) {
            Some(Obstacle::OtherRate(why)) => {
                lines.push(format!("not judged: {}: {why}", a.workload));
            }
            Some(Obstacle::ForeignWork(why)) => {
                foreign.get_or_insert((why, Vec::new())).1.push(&a.workload);
            }
            None => {}
        }
    }
    lines.extend(foreign.map(|(why, names)| format!("not judged: {}: {why}", names.join(", "))));
    lines
}

/// Sets the verdicts of all figures together. A figure is better or worse if its interval lies beyond the margin, at an
/// error level that all figures share. A percentile with too few events, and a load for which [`find_obstacle`] returns
/// a reason, are undecided. Sorts the rows so that those of one load are adjacent.
pub(super) fn judge_rows(rows: &mut [ComparisonRow], pairs: &[(&WorkloadGroup, &WorkloadGroup)]) {
    rows.sort_by_key(|row| {
        let same = |(a, _): &(&WorkloadGroup, &WorkloadGroup)| {
            a.workload == row.workload && a.target == row.target
        };
        pairs.iter().position(same)
    });
    let looked_at = rows
        .iter()
        .filter(|row| row.metric.direction == Direction::All);
    let figures = looked_at.count().max(1) as f64;
    for row in rows {
        let same = |(a, _): &&(&WorkloadGroup, &WorkloadGroup)| {
            a.workload == row.workload && a.target == row.target
        };
        let quantity = row.metric.quantity;
        let known = pairs.iter().find(same).is_some_and(|(a, b)| {
            let enough = [(a, row.a.value), (b, row.b.value)]
                .iter()
                .all(|(group, value)| has_enough_events(group, quantity, *value));
            enough && find_obstacle(a, b).is_none()
        });
        row.verdict = match known {
            true => verdict(row, LEVEL / figures),
            false => Change::Unclear,
        };
    }
}

/// Whether enough separate events determine the value of a high percentile.
fn has_enough_events(group: &WorkloadGroup, quantity: Quantity, value: f64) -> bool {
    if quantity.percent().is_none_or(|percent| percent < TAIL) {
        return true;
    }
    // The histogram of a stretch has coarse bins.
    let least = value * 0.95;
    let steps = list_steps(group);
    let stretches = steps.iter().flat_map(|step| &step.measured.stretches);
    let slow = stretches.filter(|one| one.latency.bins().any(|(nanos, _)| nanos as f64 >= least));
    slow.count() >= EVENTS
}

fn verdict(row: &ComparisonRow, level: f64) -> Change {
    let side = |estimate: &assay_model::result::Estimate| PooledValue {
        value: estimate.value,
        error: error_of(estimate),
        rounds: estimate.rounds,
    };
    let decided = compute_ratio_error(side(&row.a), side(&row.b))
        .and_then(|(error, freedom)| around_at(1.0 - level, row.ratio, error, freedom));
    let Some(decided) = decided else {
        return Change::Unclear;
    };
    let less_is_better = row.metric.quantity.is_latency();
    let within = |interval: &Interval| interval.low >= MARGIN.recip() && interval.high <= MARGIN;
    match () {
        () if decided.low > MARGIN && less_is_better => Change::Worse,
        () if decided.high < MARGIN.recip() && less_is_better => Change::Better,
        () if decided.low > MARGIN => Change::Better,
        () if decided.high < MARGIN.recip() => Change::Worse,
        () if row.interval.as_ref().is_some_and(within) => Change::Same,
        () => Change::Unclear,
    }
}

/// Computes the standard error on the log scale from an estimate's interval.
fn error_of(estimate: &assay_model::result::Estimate) -> Option<f64> {
    let interval = estimate.interval?;
    let freedom = f64::from(estimate.rounds) - 1.0;
    crate::estimate::error_of(estimate.value, interval, freedom)
}

#[cfg(test)]
mod tests {
    use crate::run_comparison::compare_runs;
    use crate::tests::rounds;
    use assay_model::criterion::{Metric, Quantity};
    use assay_model::result::{Change, RunComparison};
    use assay_model::web::{LinkUse, MachineUse, Measured, Pace, Protocol, ServerUse, Step};
    use assay_model::{Histogram, Nanos, Run, Sample};

    const S: u64 = 1_000_000_000;

    /// Builds a round of a closed loop with `factor` × 10,000 answers per second, and `slow` answers of 20 ms
    /// among 20,000.
    fn step(factor: f64, slow: u64) -> Step {
        let latency: Histogram = [((1e6 / factor) as u64, 20_000 - slow), (20_000_000, slow)]
            .into_iter()
            .collect();
        let mean = latency.mean().unwrap();
        let answers = (20_000.0 * factor) as u64;
        Step {
            target: 0,
            round: 0,
            connections: 10,
            protocol: Protocol::Http1,
            streams: 1,
            pace: Pace::Closed,
            share: None,
            measured: Measured {
                window: Nanos(2 * S),
                answers,
                latency: latency.clone(),
                service: latency,
                due: 20_000,
                under_way: answers as f64 / 2.0 * mean / 1e9,
                cpu: Nanos(S / 5),
                cpu_waited: Some(Nanos(0)),
                threads: 1,
                ..Measured::default()
            },
            server: Ok(ServerUse {
                what: "nginx".to_owned(),
                window: Nanos(2 * S),
                cpu: Nanos(2 * S),
                busiest: Some(0.99),
                active: 1,
                ..ServerUse::default()
            }),
            link: Ok(LinkUse {
                interface: "lo".to_owned(),
                received: 0.0,
                sent: 0.0,
                speed: None,
            }),
            machine: MachineUse::default(),
            parts: Vec::new(),
        }
    }

    fn run(uid: &str, steps: &[(f64, u64)]) -> (Run, Vec<Sample>) {
        let (mut run, mut samples) = rounds("clean-read", &vec![1.0; steps.len()]);
        run.uid = uid.to_owned();
        for (sample, (factor, slow)) in samples.iter_mut().zip(steps) {
            sample.workers = vec![step(*factor, *slow).into_worker()];
        }
        (run, samples)
    }

    fn compared(a: &[(f64, u64)], b: &[(f64, u64)]) -> RunComparison {
        let (a, b) = (run("a", a), run("b", b));
        compare_runs((&a.0, &a.1), (&b.0, &b.1))
    }

    fn verdict(comparison: &RunComparison, quantity: Quantity) -> Change {
        let metric = Metric::all(quantity);
        let row = comparison.rows.iter().find(|row| row.metric == metric);
        row.unwrap_or_else(|| panic!("{metric} is not compared"))
            .verdict
    }

    #[test]
    fn the_same_server_twice_is_neither_better_nor_worse() {
        // The tail of one run contains a few more slow answers by chance.
        let a = [(1.0, 40), (1.002, 36), (0.998, 44)];
        let b = [(1.001, 12), (0.999, 14), (1.0, 11)];
        let comparison = compared(&a, &b);
        assert!(comparison.requests);
        for row in &comparison.rows {
            let undecided = matches!(row.verdict, Change::Same | Change::Unclear);
            assert!(undecided, "{row:?}");
        }
        assert_eq!(verdict(&comparison, Quantity::Iops), Change::Same);
        assert_eq!(verdict(&comparison, Quantity::Cpu), Change::Same);
    }

    fn compared_steps(a: Vec<Step>, b: Vec<Step>) -> RunComparison {
        let of = |uid: &str, steps: Vec<Step>| {
            let (mut run, mut samples) = rounds("clean-read", &vec![1.0; steps.len()]);
            run.uid = uid.to_owned();
            for (sample, step) in samples.iter_mut().zip(steps) {
                sample.workers = vec![step.into_worker()];
            }
            (run, samples)
        };
        let (a, b) = (of("a", a), of("b", b));
        compare_runs((&a.0, &a.1), (&b.0, &b.1))
    }

    /// Half of the capacity is not the same load in two runs, if each run measured its own capacity.
    #[test]
    fn open_loops_at_different_rates_are_not_judged() {
        let of = |factor: f64, per_s: f64| -> Vec<Step> {
            let all = [(1.0, 40), (1.002, 36), (0.998, 44)].map(|(noise, slow)| {
                let mut step = step(factor * noise, slow);
                (step.pace, step.share) = (Pace::Constant { per_s }, Some(0.5));
                step
            });
            all.into()
        };
        let undecided = |comparison: &RunComparison| {
            let mut verdicts = comparison.rows.iter().map(|row| row.verdict);
            verdicts.all(|verdict| verdict == Change::Unclear)
        };
        let own = compared_steps(of(1.0, 10_000.0), of(1.3, 13_000.0));
        assert!(undecided(&own), "{:?}", own.rows);
        let said = own.cautions.iter().any(|text| text.contains("--rate"));
        assert!(said, "{:?}", own.cautions);
        let same = compared_steps(of(1.0, 10_000.0), of(0.5, 10_000.0));
        assert_eq!(verdict(&same, Quantity::Iops), Change::Worse);
    }

    /// A run during which another program used the CPUs is slower although the server did not change.
    #[test]
    fn a_run_with_foreign_work_is_not_judged() {
        let of = |factor: f64, foreign: u64| -> Vec<Step> {
            let all = [(1.0, 40), (1.002, 36), (0.998, 44)].map(|(noise, slow)| {
                let mut step = step(factor * noise, slow);
                step.machine = MachineUse {
                    cpus: 4,
                    window: Nanos(2 * S),
                    busy: Nanos(2 * S + S / 5 + foreign),
                    ..MachineUse::default()
                };
                step
            });
            all.into()
        };
        let quiet = compared_steps(of(1.0, 0), of(0.5, 0));
        assert_eq!(verdict(&quiet, Quantity::Iops), Change::Worse);
        let loud = compared_steps(of(1.0, 0), of(0.5, 4 * S));
        assert_eq!(verdict(&loud, Quantity::Iops), Change::Unclear);
        let said = loud
            .cautions
            .iter()
            .filter(|text| text.contains("not judged"));
        assert_eq!(said.count(), 1, "{:?}", loud.cautions);
    }

    /// The CPU time per answer equals that in the run's own report, even if one round is slow.
    #[test]
    fn cpu_per_answer_is_the_figure_of_the_run_itself() {
        let (a, b) = (
            [(1.0, 40), (0.05, 36), (1.0, 44)],
            [(1.0, 40), (1.0, 36), (1.0, 44)],
        );
        let comparison = compared(&a, &b);
        let row = comparison
            .rows
            .iter()
            .find(|row| row.metric.quantity == Quantity::Cpu);
        let row = row.unwrap();
        for (side, factors) in [(row.a, a), (row.b, b)] {
            let steps: Vec<Step> = factors.map(|(factor, slow)| step(factor, slow)).into();
            let judged = crate::web::judge(&steps, 1);
            let printed = judged.steps[0].per_cpu_second.unwrap();
            assert!((side.value * printed.value / 1e9 - 1.0).abs() < 1e-9);
        }
        // The slow round is named, because it explains the difference.
        let named = |text: &&String| text.contains("first run, round 2");
        assert!(
            comparison.cautions.iter().any(|text| named(&text)),
            "{:?}",
            comparison.cautions
        );
    }

    #[test]
    fn a_server_that_is_twice_as_fast_is_better_in_rate_median_and_cpu() {
        let a = [(1.0, 40), (1.002, 36), (0.998, 44), (1.001, 39)];
        let b = [(2.0, 40), (2.002, 36), (1.998, 44), (2.001, 39)];
        let comparison = compared(&a, &b);
        for quantity in [Quantity::Iops, Quantity::P50, Quantity::Cpu] {
            assert_eq!(
                verdict(&comparison, quantity),
                Change::Better,
                "{quantity:?}"
            );
        }
        let worse = compared(&b, &a);
        assert_eq!(verdict(&worse, Quantity::Cpu), Change::Worse);
    }
}
