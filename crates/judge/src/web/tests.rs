//! Tests the judgement of constructed steps of HTTP loads.

mod agreement;
mod capacity;
mod drift;
mod generators;
mod limits;
mod stalls;

use super::*;
use assay_model::clock::Offset;
use assay_model::doubt::Severity;
use assay_model::web::result::RankedBy;
use assay_model::web::{
    FailureKind, Failures, LinkUse, MachineUse, Part, Protocol, QuotaUse, ServerMachine, ServerUse,
    SocketUse, Upstream,
};

const S: u64 = 1_000_000_000;

/// Returns a valid closed loop: 10 connections, 1 ms per request, 10,000 requests per second for 2 s; the server's only
/// thread is fully busy.
fn closed() -> Step {
    let latency: Histogram = [(1_000_000, 20_000)].into_iter().collect();
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
            answers: 20_000,
            bytes: 20_000_000,
            latency: latency.clone(),
            service: latency,
            due: 20_000,
            under_way: 10.0,
            cpu: Nanos(S / 5),
            cpu_waited: Some(Nanos(0)),
            threads: 1,
            ..Measured::default()
        },
        server: Ok(ServerUse {
            what: "nginx".to_owned(),
            window: Nanos(2 * S),
            cpu: Nanos(2 * S),
            waited: Some(Nanos(0)),
            busiest: Some(0.99),
            active: 1,
            ..ServerUse::default()
        }),
        link: Ok(LinkUse {
            interface: "lo".to_owned(),
            received: 1e8,
            sent: 1e8,
            speed: None,
        }),
        machine: MachineUse {
            cpus: 4,
            window: Nanos(2 * S),
            busy: Nanos(2 * S + S / 4),
            ..MachineUse::default()
        },
        parts: Vec::new(),
    }
}

fn open() -> Step {
    let mut step = closed();
    step.pace = Pace::Constant { per_s: 10_000.0 };
    step.share = Some(0.5);
    step.measured.lateness = [(20_000, 20_000)].into_iter().collect();
    step.connections = 64;
    step
}

fn idle_server(step: &mut Step) {
    let server = step.server.as_mut().unwrap();
    (server.cpu, server.busiest) = (Nanos(S / 10), Some(0.05));
}

fn fail(step: &mut Step, kind: FailureKind, count: u64) {
    step.measured.failures.push(Failures {
        kind,
        count,
        first: "x".to_owned(),
    });
    step.measured.due += count;
}

fn codes(step: &Step) -> Vec<(String, Severity)> {
    doubts(step)
        .into_iter()
        .map(|doubt| (doubt.code, doubt.severity))
        .collect()
}

#[test]
fn a_sound_step_has_no_doubt() {
    assert_eq!(codes(&closed()), []);
    assert_eq!(codes(&open()), []);
}

#[test]
fn each_rule_speaks_for_its_case_alone() {
    let void = Severity::Void;
    let one = |change: &dyn Fn(&mut Step), base: Step, code: &str, severity: Severity| {
        let mut step = base;
        change(&mut step);
        assert_eq!(codes(&step), [(code.to_owned(), severity)]);
        assert!(ALL_IN_BOOK.contains(&format!("### `{code}`")), "{code}");
    };
    one(
        &|step| step.measured.lateness = [(2_000_000, 20_000)].into_iter().collect(),
        open(),
        "late-sends",
        void,
    );
    one(
        &|step| step.measured.lateness = [(90_000, 20_000)].into_iter().collect(),
        open(),
        "late-sends",
        Severity::Suspect,
    );
    one(
        &|step| step.measured.cpu = Nanos(2 * S),
        closed(),
        "generator-full",
        void,
    );
    one(
        &|step| step.measured.cpu_waited = Some(Nanos(2 * S)),
        closed(),
        "generator-full",
        void,
    );
    one(
        &|step| step.measured.under_way = 9.0,
        closed(),
        "littles-law",
        void,
    );
    one(
        &|step| step.measured.due = 21_000,
        open(),
        "rate-not-reached",
        Severity::Suspect,
    );
    one(
        &|step| fail(step, FailureKind::Reset, 100),
        closed(),
        "requests-failed",
        Severity::Suspect,
    );
    one(
        &|step| fail(step, FailureKind::Reset, 3000),
        closed(),
        "requests-failed",
        void,
    );
    // Failures without any time do not mean that the rate was not reached.
    one(
        &|step| {
            fail(step, FailureKind::WrongStatus, 2000);
            step.measured.due -= 2000;
            step.measured.answers -= 2000;
        },
        open(),
        "requests-failed",
        Severity::Suspect,
    );
    one(
        &|step| {
            step.measured.window = Nanos(8 * S);
            let second = |answers| assay_model::web::Second {
                answers,
                ..Default::default()
            };
            step.measured.seconds = [4500, 4500, 2500, 2500, 2000, 2000, 1000, 1000]
                .map(second)
                .to_vec();
            step.measured.under_way = 2.5;
        },
        closed(),
        "drift",
        Severity::Suspect,
    );
    one(
        &|step| step.measured.interrupted = true,
        closed(),
        "interrupted",
        Severity::Suspect,
    );
    one(
        &|step| step.machine.busy = Nanos(4 * S),
        closed(),
        "foreign-work",
        Severity::Suspect,
    );
    one(
        &|step| step.machine.stolen = Nanos(S),
        closed(),
        "foreign-work",
        Severity::Suspect,
    );
    one(
        &|step| {
            step.measured.answers = 0;
            step.measured.latency = Histogram::default();
            step.measured.service = Histogram::default();
        },
        closed(),
        "nothing-answered",
        void,
    );
    one(
        &|step| {
            step.measured.latency = [(1_000_000, 50)].into_iter().collect();
        },
        closed(),
        "few-answers",
        Severity::Suspect,
    );
}

const ALL_IN_BOOK: &str = include_str!("../../../../docs/src/web.md");

#[test]
fn every_rule_is_in_the_book() {
    for code in DOUBTS {
        assert!(ALL_IN_BOOK.contains(&format!("### `{code}`")), "{code}");
    }
}

#[test]
fn lateness_is_judged_beside_the_latency() {
    let with = |late: u64, latency: u64| {
        let mut step = open();
        step.measured.lateness = [(late, 20_000)].into_iter().collect();
        step.measured.latency = [(latency, 20_000)].into_iter().collect();
        let late = |doubt: &&Doubt| doubt.code == "late-sends";
        doubts(&step).iter().find(late).map(|doubt| doubt.severity)
    };
    // 2 ms are negligible compared with 100 ms, and 90 µs are most of 100 µs.
    assert_eq!(with(2_000_000, 100_000_000), None);
    assert_eq!(with(90_000, 100_000), Some(Severity::Void));
    assert_eq!(with(10_000, 100_000), Some(Severity::Suspect));
    assert_eq!(with(1_000, 100_000), None);
}

#[test]
fn percentiles_need_enough_requests() {
    let mut step = closed();
    step.measured.latency = [(1_000_000, 50)].into_iter().collect();
    let judged = judge(&[step], 1);
    let latency = judged.steps[0].latency;
    assert!(latency.p90.is_some() && latency.p99.is_none());
    assert!(judged.steps[0].service.p999.is_some());
}

#[test]
fn a_moment_of_standing_still_at_an_edge_is_no_wrong_count() {
    // Ten requests hang for 150 ms across the start of the window, so no latency contains their time.
    let mut step = closed();
    step.measured.under_way = 10.7;
    let alone = |step: &Step| codes(step).iter().any(|(code, _)| code == "littles-law");
    assert!(alone(&step));
    step.measured.seconds = vec![assay_model::web::Second {
        longest: Nanos(150_000_000),
        ..Default::default()
    }];
    assert!(!alone(&step));
    // The edges do not explain every deviation.
    step.measured.under_way = 12.0;
    assert!(alone(&step));
}
