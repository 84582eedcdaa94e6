//! Tests the judgement of steps and rounds that change over time.

use super::*;

/// Replaces the figures over time by forty intervals of a step of 40 s, with the latency and rate that `of` returns.
fn over_time(step: &mut Step, of: impl Fn(u64) -> (u64, u64)) {
    step.measured.window = Nanos(40 * S);
    step.measured.stretch = Nanos(S);
    step.measured.stretches = (0..40)
        .map(|at| {
            let (answers, latency) = of(at);
            assay_model::web::Stretch {
                answers,
                failures: 0,
                latency: [(latency, answers)].into_iter().collect(),
            }
        })
        .collect();
}

#[test]
fn a_server_that_becomes_slower_raises_a_doubt_and_noise_raises_none() {
    let drifts = |step: &Step| {
        let found = doubts(step).into_iter().find(|doubt| doubt.code == "drift");
        found.map(|doubt| doubt.evidence)
    };
    let mut slower = open();
    over_time(&mut slower, |at| match at {
        0..20 => (500, 1_000_000 + at % 7 * 10_000),
        _ => (500, 18_000_000 + at % 5 * 90_000),
    });
    insta::assert_snapshot!(drifts(&slower).unwrap(), @"p99 went from 1.03 ms to 18.2 ms (× 17.7) 20.5 s after the beginning");
    // The rate of a closed loop falls with the latency.
    let mut closed = closed();
    over_time(&mut closed, |at| match at {
        0..30 => (500 + at % 3, 1_000_000 + at % 7 * 10_000),
        _ => (250 + at % 3, 2_000_000 + at % 5 * 90_000),
    });
    assert!(drifts(&closed).is_some());
    // A gradual change consists of shifts that are small each.
    for base in [super::closed(), open()] {
        let mut ramp = base;
        over_time(&mut ramp, |at| {
            let latency = 6_000_000 + at * 400_000 + at % 3 * 50_000;
            (8_000_000_000 / latency, latency)
        });
        let found = drifts(&ramp).unwrap();
        assert!(found.contains("went from"), "{found}");
    }
    // Noise, a single bad second, and a shift below the threshold.
    for noise in [
        |at: u64| (500, 1_000_000 + at * 7919 % 13 * 100_000),
        |at: u64| {
            (
                500,
                if at == 17 {
                    90_000_000
                } else {
                    1_000_000 + at % 7 * 10_000
                },
            )
        },
        |at: u64| {
            (
                500,
                if at < 20 { 1_000_000 } else { 1_200_000 } + at % 7 * 10_000,
            )
        },
    ] {
        let mut step = open();
        over_time(&mut step, noise);
        assert_eq!(drifts(&step), None);
    }
    let judged = judge(std::slice::from_ref(&slower), 1);
    assert_eq!(judged.steps[0].over_time[0].points.len(), 40);
}

#[test]
fn an_open_loop_that_is_slower_than_the_capacity_raises_a_doubt() {
    let of = |millis: u64| {
        let mut open = open();
        open.share = Some(0.25);
        let latency: Histogram = [(millis * 1_000_000, 20_000)].into_iter().collect();
        (open.measured.latency, open.measured.service) = (latency.clone(), latency);
        let judged = judge(&[closed(), open], 1);
        let drifts = |doubt: &Doubt| doubt.code == "drift";
        judged.steps[1].doubts.iter().any(drifts)
    };
    assert!(of(18) && !of(1));
}

/// A server that is slow every other second answers most requests of a closed loop in its fast seconds. It is no drift
/// that half of the evenly sent requests of an open loop take longer.
#[test]
fn a_server_that_is_slow_from_time_to_time_is_not_slower_than_its_capacity() {
    let of = |slow: u64| {
        let mut closed = closed();
        over_time(&mut closed, |at| match at % 2 {
            0 => (4000, 2_000_000),
            _ => (800, slow),
        });
        closed.measured.latency = [(2_000_000, 80_000), (slow, 16_000)].into_iter().collect();
        closed.measured.service = closed.measured.latency.clone();
        closed.measured.answers = closed.measured.latency.count();
        closed.measured.under_way =
            closed.measured.rate() * closed.measured.latency.mean().unwrap() / 1e9;
        let mut open = open();
        open.share = Some(0.5);
        open.measured.latency = [(10_000_000, 20_000)].into_iter().collect();
        open.measured.service = open.measured.latency.clone();
        let judged = judge(&[closed, open], 1);
        let drifts = |doubt: &Doubt| doubt.code == "drift";
        judged.steps[1].doubts.iter().any(drifts)
    };
    assert!(!of(10_000_000));
    // Its slow seconds do not explain 10 ms.
    assert!(of(3_000_000));
}

#[test]
fn failures_that_begin_late_say_when() {
    let of = |first: usize| {
        let mut step = closed();
        over_time(&mut step, |_| (500, 1_000_000));
        for stretch in &mut step.measured.stretches[first..] {
            stretch.failures = 10;
        }
        fail(&mut step, FailureKind::Reset, 300);
        let found = doubts(&step).into_iter();
        let mut found = found.filter(|doubt| doubt.code == "requests-failed");
        found.next().unwrap().evidence
    };
    assert!(of(20).contains("none in the first 20"), "{}", of(20));
    assert!(!of(2).contains("none in the first"), "{}", of(2));
}

/// Rounds that differ by a factor of two are reported in the order of their numbers.
#[test]
fn rounds_of_a_server_that_slows_down_differ() {
    let round = |round: u32, answers: u64| {
        let mut step = closed();
        step.round = round;
        step.measured.answers = answers;
        step.measured.under_way = answers as f64 / 2000.0;
        step
    };
    let codes = |steps: &[Step]| -> Vec<String> {
        let judged = judge(steps, 1);
        judged.steps[0]
            .doubts
            .iter()
            .map(|doubt| doubt.code.clone())
            .collect()
    };
    let slower = [round(0, 20_000), round(1, 18_000), round(2, 1_100)];
    assert_eq!(codes(&slower), ["rounds-differ"]);
    let noisy = [round(0, 20_000), round(1, 14_000), round(2, 19_000)];
    assert_eq!(codes(&noisy), [""; 0]);
}
