//! Judges constructed steps of a load.

use super::*;
use assay_model::clock::Offset;
use assay_model::doubt::Severity;
use assay_model::web::result::RankedBy;
use assay_model::web::{
    FailureKind, Failures, LinkUse, MachineUse, Part, Protocol, QuotaUse, ServerMachine, ServerUse,
    SocketUse, Upstream,
};

const S: u64 = 1_000_000_000;

/// A valid closed loop: 10 connections, 1 ms each, 10,000 per second for 2 s; the server's only thread is
/// full.
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

/// The cause of the server's waiting, from its sockets and control groups.
#[test]
fn who_keeps_the_server_waiting() {
    let with = |change: &dyn Fn(&mut Step, &mut SocketUse)| {
        let mut step = closed();
        idle_server(&mut step);
        let mut sockets = SocketUse {
            looks: 10,
            clients: 10.0,
            ..SocketUse::default()
        };
        change(&mut step, &mut sockets);
        step.server.as_mut().unwrap().sockets = Some(sockets);
        limit(&step)
    };
    let behind = |used: Result<ServerUse, String>, waiting: f64| Upstream {
        address: "127.0.0.1:9000".to_owned(),
        waiting,
        used,
    };
    let full = ServerUse {
        what: "php-fpm (3 processes)".to_owned(),
        window: Nanos(2 * S),
        cpu: Nanos(4 * S - 1),
        busiest: Some(1.0),
        active: 2,
        ..ServerUse::default()
    };
    // Nothing visible causes the waiting.
    assert_eq!(with(&|_, _| {}).who, Limited::NotKnown);
    let backend = with(&|_, sockets| sockets.upstreams = vec![behind(Ok(full.clone()), 9.5)]);
    assert_eq!(backend.who, Limited::Backend);
    insta::assert_snapshot!(backend.evidence, @"of 10.0 requests under way 9.5 waited for 127.0.0.1:9000: php-fpm (3 processes), 2.00 CPUs, its busiest of 2 threads 100 %");
    let far = Err("it is on another machine".to_owned());
    let far = with(&|_, sockets| sockets.upstreams = vec![behind(far.clone(), 6.0)]);
    assert_eq!(far.who, Limited::Backend);
    // Most requests are not in the backend.
    let few = with(&|_, sockets| sockets.upstreams = vec![behind(Ok(full.clone()), 4.0)]);
    assert_eq!(few.who, Limited::NotKnown);
    // The server's own thread is full, whatever else waits.
    let own = with(&|step, sockets| {
        step.server = closed().server;
        sockets.upstreams = vec![behind(Ok(full.clone()), 9.5)];
    });
    assert_eq!(own.who, Limited::Server);
    let unsent = with(&|_, sockets| sockets.sending = 8.0);
    assert_eq!(unsent.who, Limited::Network);
    // A generator that reads late also keeps answers in the server's queues.
    let slow = with(&|step, sockets| {
        sockets.sending = 8.0;
        step.measured.cpu = Nanos(2 * S * 6 / 10);
    });
    assert_eq!(slow.who, Limited::NotKnown);
    let quota = with(&|step, _| {
        step.server.as_mut().unwrap().quota = Some(QuotaUse {
            group: "/sys/fs/cgroup/web".to_owned(),
            cpus: Some(0.05),
            periods: 20,
            throttled: 19,
            time: Nanos(S),
        });
    });
    assert_eq!(quota.who, Limited::Quota);
    insta::assert_snapshot!(quota.evidence, @"nginx: 0.05 CPUs; its quota of 0.05 CPUs (/sys/fs/cgroup/web) was used up in 19 of 20 periods");
}

/// Forty stretches of a step of 40 s with the latency and rate that `of` returns.
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
fn who_limited() {
    let who = |base: Step, change: &dyn Fn(&mut Step)| {
        let mut step = base;
        change(&mut step);
        limit(&step).who
    };
    assert_eq!(who(closed(), &|_| {}), Limited::Server);
    // The server's threads share the time of the requests evenly: no thread is full, but the server is the
    // limit.
    let spread = |step: &mut Step| {
        let server = step.server.as_mut().unwrap();
        (server.cpu, server.busiest, server.active) = (Nanos(7 * S), Some(0.44), 8);
        step.machine.cpus = 16;
    };
    assert_eq!(who(closed(), &spread), Limited::Server);
    // The server waits for something else: a backend, or a shaped link.
    assert_eq!(who(closed(), &idle_server), Limited::NotKnown);
    assert_eq!(who(open(), &idle_server), Limited::Rate);
    assert_eq!(
        who(closed(), &|step| step.measured.cpu = Nanos(2 * S)),
        Limited::Generator
    );
    assert_eq!(
        who(closed(), &|step| fail(step, FailureKind::NoPort, 5000)),
        Limited::Ports
    );
    let shaped = |step: &mut Step| {
        idle_server(step);
        step.link = Ok(LinkUse {
            interface: "eth0".to_owned(),
            received: 95e6,
            sent: 1e6,
            speed: Some(100e6),
        });
    };
    assert_eq!(who(closed(), &shaped), Limited::Network);
    let queue = |step: &mut Step| {
        step.machine.listen_overflows = 700;
        step.measured.connections = 900;
        step.measured.connect = [(1_010_000_000, 900)].into_iter().collect();
    };
    assert_eq!(who(closed(), &queue), Limited::AcceptQueue);
    let few = |step: &mut Step| {
        idle_server(step);
        step.measured.waited = 15_000;
    };
    assert_eq!(who(open(), &few), Limited::Schedule);
    let late = |step: &mut Step| {
        idle_server(step);
        step.measured.lateness = [(30_000_000, 20_000)].into_iter().collect();
    };
    assert_eq!(who(open(), &late), Limited::Schedule);
    let unseen = |step: &mut Step| {
        step.server = Err("another machine".to_owned());
        step.link = Err("no such interface".to_owned());
    };
    assert_eq!(who(closed(), &unseen), Limited::NotKnown);
}

/// The server runs on another machine: that machine's CPUs and queue count, not the local ones.
#[test]
fn a_server_on_another_machine_is_judged_by_that_machine() {
    let there = |change: &dyn Fn(&mut ServerUse, &mut ServerMachine)| {
        let mut step = closed();
        // On a local server, CPU use by other programs would be a doubt.
        step.machine.busy = Nanos(S / 4);
        let server = step.server.as_mut().unwrap();
        let mut machine = ServerMachine {
            cpus: 8,
            busy: Nanos(2 * S),
            stolen: Nanos(0),
            listen_overflows: 0,
        };
        server.busiest = Some(0.3);
        change(server, &mut machine);
        server.machine = Some(machine);
        step
    };
    let quiet = there(&|_, _| {});
    assert!(doubts(&quiet).is_empty(), "{:?}", doubts(&quiet));
    let judged = judge(std::slice::from_ref(&quiet), 1);
    // 10,000 per second with one CPU of eight.
    assert!((judged.steps[0].per_percent.unwrap() - 10_000.0 / 12.5).abs() < 1e-6);
    let full = there(&|server, machine| {
        server.cpu = Nanos(15 * S);
        machine.busy = Nanos(16 * S - 1);
    });
    let limited = limit(&full);
    assert_eq!(limited.who, Limited::Server);
    insta::assert_snapshot!(limited.evidence, @"nginx: 7.50 of 8 CPUs, all of which were 100 % busy; its threads waited 0.00 CPUs long");
    let foreign = there(&|_, machine| machine.busy = Nanos(6 * S));
    insta::assert_snapshot!(doubts(&foreign)[0].evidence, @"others than the server used 25 % of the CPUs of its machine");
    let stolen = there(&|_, machine| machine.stolen = Nanos(2 * S));
    insta::assert_snapshot!(doubts(&stolen)[0].evidence, @"the hypervisor took 12 % of the CPU time of the server's machine");
    let mut queue = there(&|_, machine| machine.listen_overflows = 700);
    queue.measured.connections = 900;
    queue.measured.connect = [(1_010_000_000, 900)].into_iter().collect();
    assert_eq!(limit(&queue).who, Limited::AcceptQueue);
    let mut ours = there(&|_, _| {});
    ours.machine.listen_overflows = 700;
    ours.measured = queue.measured;
    assert_ne!(limit(&ours).who, Limited::AcceptQueue);
}

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

/// A server limited by latency does more with each additional connection, so the highest measured rate is not
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

/// Rounds that differ by a factor of two are reported in their order.
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

/// Three generators with the same load.
fn of_three() -> Step {
    let whole = closed();
    let part = |generator: &str| Part {
        generator: generator.to_owned(),
        connections: 10,
        pace: Pace::Closed,
        clock: Some(Offset {
            offset_us: 5_000_000,
            error_us: 300,
        }),
        late_us: 120,
        lost: None,
        measured: whole.measured.clone(),
        link: whole.link.clone(),
        machine: whole.machine.clone(),
    };
    let parts: Vec<Part> = ["a", "b", "c"].into_iter().map(part).collect();
    Step {
        connections: 30,
        measured: Measured::together(parts.iter().map(|part| &part.measured)),
        server: Err("elsewhere".to_owned()),
        link: Err("of each".to_owned()),
        machine: MachineUse::default(),
        parts,
        ..whole
    }
}

#[test]
fn several_generators_are_one_load_and_each_is_judged_for_itself() {
    let step = of_three();
    assert!(codes(&step).is_empty(), "{:?}", doubts(&step));
    let judged = judge(&[step.clone(), step.clone()], 1);
    let result = &judged.steps[0];
    assert_eq!((result.rounds, result.rounds_void), (2, 0));
    assert!((result.rate.unwrap().value - 30_000.0).abs() < 1e-6);
    let names: Vec<&str> = result
        .generators
        .iter()
        .map(|one| one.generator.as_str())
        .collect();
    assert_eq!(names, ["a", "b", "c"]);
    for one in &result.generators {
        assert!((one.rate - 10_000.0).abs() < 1e-6 && (one.share - 1.0 / 3.0).abs() < 1e-9);
    }

    // One full generator limits all, although the three together are not full.
    let mut full = step.clone();
    full.parts[1].measured.cpu = Nanos(2 * S);
    let found = doubts(&full);
    assert_eq!(
        codes(&full),
        [("generator-full".to_owned(), Severity::Void)]
    );
    assert!(found[0].evidence.starts_with("b: "), "{found:?}");
    let limited = limit(&full);
    assert_eq!(limited.who, Limited::Generator);
    assert!(limited.evidence.starts_with("b: "), "{limited:?}");
    full.parts[2].measured.cpu = Nanos(2 * S);
    let both = &doubts(&full)[0].evidence;
    insta::assert_snapshot!(both, @"b: the generator's threads (it has 1) were on a CPU for 100 % of the time and waited for one for 0 %; c: the generator's threads (it has 1) were on a CPU for 100 % of the time and waited for one for 0 %");

    let mut lost = step.clone();
    lost.parts[0].lost = Some("killed\u{1b}[2J".to_owned());
    assert_eq!(
        codes(&lost),
        [("generator-lost".to_owned(), Severity::Void)]
    );
    let said = &doubts(&lost)[0].evidence;
    assert!(
        said.contains("a: killed") && !said.contains('\u{1b}'),
        "{said}"
    );

    // 5 % of 2 s are 100 ms, which the clock difference alone may cause.
    let mut apart = step;
    apart.parts[2].clock.as_mut().unwrap().error_us = 99_000;
    assert!(codes(&apart).is_empty(), "{:?}", doubts(&apart));
    apart.parts[2].late_us = 2_000;
    assert_eq!(codes(&apart), [("not-together".to_owned(), Severity::Void)]);
}
