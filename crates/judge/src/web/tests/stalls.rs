//! Tests the judgement of servers that stop from time to time.

use super::*;

/// Adds 4 stalls of 200 ms in 4 s, each of which meets 8 connections; all other requests take 0.4 ms.
fn stopped(base: Step) -> Step {
    let times: Histogram = [(400_000, 60_000), (200_000_000, 32)].into_iter().collect();
    let mut step = base;
    step.connections = 8;
    step.measured = Measured {
        window: Nanos(4 * S),
        answers: 60_032,
        due: 60_032,
        latency: times.clone(),
        service: times,
        under_way: 7.6,
        ..step.measured
    };
    step
}

fn codes(step: &Step) -> Vec<String> {
    doubts(step).into_iter().map(|doubt| doubt.code).collect()
}

#[test]
fn few_slow_answers_that_hold_much_time_are_a_stall() {
    let has = |step: &Step| codes(step).contains(&"stalls".to_owned());
    assert!(has(&stopped(closed())));
    assert!(!has(&closed()) && !has(&open()));
    // p99 shows slow answers that are not rare.
    let mut bimodal = closed();
    let times: Histogram = [(400_000, 18_000), (50_000_000, 2_000)]
        .into_iter()
        .collect();
    (bimodal.measured.latency, bimodal.measured.service) = (times.clone(), times);
    assert!(!has(&bimodal));
    // Rare answers of 3 ms are noise of a scheduler.
    let mut noisy = closed();
    let times: Histogram = [(100_000, 20_000), (3_000_000, 190)].into_iter().collect();
    (noisy.measured.latency, noisy.measured.service) = (times.clone(), times);
    assert!(!has(&noisy));
    // A generator that waits for a CPU reads answers tens of milliseconds late, but not 200 ms.
    let mut busy = stopped(closed());
    busy.measured.cpu_waited = Some(Nanos(S));
    assert!(has(&busy));
    let short: Histogram = [(400_000, 60_000), (60_000_000, 120)].into_iter().collect();
    (busy.measured.latency, busy.measured.service) = (short.clone(), short);
    assert!(!has(&busy));
    busy.measured.cpu_waited = Some(Nanos(0));
    assert!(has(&busy));
    // A generator that waits most of the time.
    let mut starved = stopped(closed());
    starved.measured.cpu_waited = Some(Nanos(3 * S));
    assert!(!has(&starved));
}

#[test]
fn requests_that_wait_behind_a_stall_lack_no_connection() {
    let mut step = stopped(open());
    idle_server(&mut step);
    step.measured.waited = 30_000;
    // At this rate the stalls hold most of the time.
    let times: Histogram = [(100_000, 40_000), (200_000_000, 32)].into_iter().collect();
    step.measured.service = times;
    assert_eq!(limit(&step).who, Limited::Server);
    // Packets that are lost on the way look the same.
    step.link.as_mut().unwrap().interface = "eth0".to_owned();
    assert_eq!(limit(&step).who, Limited::NotKnown);
}
