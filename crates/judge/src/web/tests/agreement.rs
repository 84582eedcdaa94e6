//! Tests that the figures of one table row agree with each other, with the rankings and with a comparison of two runs,
//! even if the rounds differ.

use super::*;

/// Returns a round with this rate and this number of CPUs used by the server.
fn round(target: usize, number: u32, rate: u64, cpus: f64) -> Step {
    let mut step = closed();
    let nanos = 10 * S / rate;
    let answers = 2 * rate;
    (step.target, step.round) = (target, number);
    let measured = &mut step.measured;
    (measured.answers, measured.due) = (answers, answers);
    measured.bytes = answers * 1000;
    measured.latency = [(nanos, answers)].into_iter().collect();
    measured.service = measured.latency.clone();
    let server = step.server.as_mut().unwrap();
    server.cpu = Nanos((2.0 * S as f64 * cpus) as u64);
    server.busiest = Some(cpus.min(1.0));
    server.what = format!("nginx at {rate}");
    step
}

/// Returns five rounds, of which one is slow and needs more CPU time per answer.
fn rounds(target: usize, factor: u64) -> Vec<Step> {
    [
        (10_000, 0.95),
        (10_000, 0.96),
        (500, 0.99),
        (10_000, 0.95),
        (9_000, 0.94),
    ]
    .into_iter()
    .zip(0..)
    .map(|((rate, cpus), number)| round(target, number, rate * factor, cpus))
    .collect()
}

#[test]
fn rate_cpus_and_answers_per_cpu_second_agree_where_rounds_differ() {
    let steps: Vec<Step> = rounds(0, 1).into_iter().chain(rounds(1, 2)).collect();
    let judged = judge(&steps, 2);
    for result in &judged.steps {
        let (rate, cpus) = (result.rate.unwrap().value, result.server_cpus.unwrap());
        let per_second = result.per_cpu_second.unwrap();
        assert!(
            (per_second.value / (rate / cpus) - 1.0).abs() < 1e-9,
            "{rate} {cpus} {per_second:?}"
        );
        let of_percent = result.per_percent.unwrap() * 100.0 / f64::from(steps[0].server_cpus().0);
        assert!((of_percent / per_second.value - 1.0).abs() < 1e-9);
        let interval = per_second.interval.unwrap();
        assert!(interval.low < per_second.value && per_second.value < interval.high);
        assert!((result.bytes_per_s / rate / 1000.0 - 1.0).abs() < 1e-9);
        // Rate × mean time of an answer is the number of connections.
        let mean = result.histogram.mean().unwrap();
        assert!(
            (rate * mean / 1e9 / 10.0 - 1.0).abs() < 1e-3,
            "{rate} {mean}"
        );
    }
    for ranking in &judged.rankings {
        for place in &ranking.places {
            let result = judged
                .steps
                .iter()
                .find(|one| one.target == place.target)
                .unwrap();
            let printed = match ranking.by {
                RankedBy::Capacity => result.rate.unwrap(),
                RankedBy::Efficiency => result.per_cpu_second.unwrap(),
            };
            assert_eq!(place.value.value, printed.value, "{:?}", ranking.by);
        }
    }
    assert_eq!(judged.rankings.len(), 2);
}

#[test]
fn evidence_of_one_round_names_the_round_and_is_of_a_usual_one() {
    let judged = judge(&rounds(0, 1), 1);
    let limit = &judged.steps[0].limit;
    assert_eq!(limit.who, Limited::Server);
    assert!(
        limit.evidence.contains("nginx at 10000"),
        "{}",
        limit.evidence
    );
    assert!(limit.evidence.contains(" of 5"), "{}", limit.evidence);
    let mut steps = rounds(0, 1);
    fail(&mut steps[3], FailureKind::Reset, 100);
    let judged = judge(&steps, 1);
    let doubts = &judged.steps[0].doubts;
    let failed = doubts
        .iter()
        .find(|doubt| doubt.code == "requests-failed")
        .unwrap();
    assert!(
        failed.evidence.contains("round 4 of 5"),
        "{}",
        failed.evidence
    );
    // A round that does not count is a round all the same.
    steps[0].measured.cpu = Nanos(2 * S);
    let judged = judge(&steps, 1);
    let result = &judged.steps[0];
    assert_eq!((result.rounds, result.rounds_void), (4, 1));
    assert!(
        result.limit.evidence.contains(" of 5"),
        "{}",
        result.limit.evidence
    );
    // A single round needs no number.
    let alone = judge(&rounds(0, 1)[..1], 1);
    assert!(
        !alone.steps[0].limit.evidence.contains("round"),
        "{:?}",
        alone.steps[0].limit
    );
}
