//! Tests the judgement of capacities and rankings over several steps.

use super::*;

#[test]
fn capacity_is_where_more_connections_bring_no_more() {
    let steps: Vec<Step> = [(1, 5_000), (2, 9_700), (4, 10_000), (8, 9_900)]
        .into_iter()
        .map(|(connections, rate)| {
            let mut step = closed();
            step.connections = connections;
            step.measured.answers = rate * 2;
            step.measured.under_way = rate as f64 / 1000.0;
            step
        })
        .collect();
    let judged = judge(&steps, 1);
    let capacity = judged.capacity[0].unwrap();
    assert_eq!((capacity.connections, capacity.rate), (2, 9_700.0));
    assert!(judged.rankings.is_empty() && judged.steps.len() == 4);
    // 9,700 answers with 2 s of CPU time in 2 s, on 4 CPUs.
    let two = &judged.steps[1];
    assert!((two.per_cpu_second.unwrap().value - 9_700.0).abs() < 1e-6);
    assert!((two.per_percent.unwrap() - 9_700.0 / 25.0).abs() < 1e-6);
}

/// A server that is limited by latency does more with each additional connection, so the highest measured rate is not
/// its capacity.
#[test]
fn a_capacity_that_still_rises_is_a_lower_bound() {
    let rising = |rates: &[(u32, u64)]| {
        let steps = rates.iter().map(|&(connections, rate)| {
            let mut step = closed();
            step.connections = connections;
            step.measured.answers = rate * 2;
            step.measured.under_way = rate as f64 / 1000.0;
            step
        });
        judge(&steps.collect::<Vec<_>>(), 1).capacity[0]
            .unwrap()
            .rising
    };
    assert!(rising(&[(1, 900), (2, 1_800), (10, 8_835)]));
    assert!(rising(&[(8, 8_000), (16, 8_500)]));
    assert!(!rising(&[(1, 9_000), (2, 9_900), (4, 10_000), (8, 9_900)]));
    assert!(!rising(&[(16, 10_000), (32, 10_400)]));
    // A single number of connections shows neither.
    assert!(!rising(&[(64, 10_000)]));
}

#[test]
fn void_rounds_do_not_count() {
    let mut late = closed();
    late.measured.cpu = Nanos(2 * S);
    late.round = 1;
    let judged = judge(&[closed(), late.clone()], 1);
    assert_eq!(
        (judged.steps[0].rounds, judged.steps[0].rounds_void),
        (1, 1)
    );
    let judged = judge(&[late], 1);
    assert!(judged.capacity[0].is_none() && judged.steps[0].rate.is_none());
}

#[test]
fn ranks_that_are_not_told_apart_say_so() {
    let figures = [
        [10_000, 10_300, 9_900, 10_100],
        [9_950, 10_350, 9_850, 10_050],
        [5_000, 5_100, 4_900, 5_000],
    ];
    let mut steps = Vec::new();
    for (target, rates) in figures.iter().enumerate() {
        for (round, rate) in rates.iter().enumerate() {
            let mut step = closed();
            (step.target, step.round) = (target, round as u32);
            step.measured.answers = rate * 2;
            step.measured.under_way = *rate as f64 / 1000.0;
            steps.push(step);
        }
    }
    let judged = judge(&steps, 3);
    let [capacity, efficiency] = &judged.rankings[..] else {
        panic!("two rankings")
    };
    assert_eq!(
        (capacity.by, efficiency.by),
        (RankedBy::Capacity, RankedBy::Efficiency)
    );
    let places: Vec<_> = capacity
        .places
        .iter()
        .map(|place| (place.target, place.apart))
        .collect();
    assert_eq!(places, [(0, Some(false)), (1, Some(true)), (2, None)]);
}

/// A server that limits the number of connections fails the requests of additional ones, so its capacity is known.
#[test]
fn a_server_that_refuses_more_connections_rises_no_further() {
    let step = |connections: u32, rate: u64, failed: u64| {
        let mut step = closed();
        step.connections = connections;
        step.measured.answers = rate * 2;
        step.measured.due = rate * 2;
        step.measured.under_way = rate as f64 / 1000.0;
        if failed > 0 {
            fail(&mut step, FailureKind::Reset, failed);
        }
        step
    };
    let steps = [
        step(8, 400, 0),
        step(16, 800, 0),
        step(32, 1_500, 0),
        step(64, 1_500, 4_000),
    ];
    let capacity = judge(&steps, 1).capacity[0].unwrap();
    assert_eq!((capacity.connections, capacity.rising), (32, false));
    assert!(judge(&steps[..3], 1).capacity[0].unwrap().rising);
}
