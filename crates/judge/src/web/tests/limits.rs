//! Tests what limited a step: the server, its backend, the network, the generator or a quota.

use super::*;

/// The reason why the server waits is found from its sockets and control groups.
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
    // Eight connections at rest, on which the acknowledgement of the last answer is still to come.
    let at_rest = with(&|step, sockets| {
        sockets.sending = 8.0;
        step.measured.under_way = 2.0;
        step.pace = Pace::Constant { per_s: 10_000.0 };
        fail(step, FailureKind::WrongStatus, 600);
    });
    assert_ne!(at_rest.who, Limited::Network);
    // Ten requests share each connection, and the link takes no more of their answers.
    let shared = with(&|step, sockets| {
        (step.streams, step.connections, step.measured.under_way) = (10, 10, 100.0);
        step.measured.latency = [(10_000_000, 20_000)].into_iter().collect();
        sockets.sending = 8.0;
    });
    assert_eq!(shared.who, Limited::Network);
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
    // A generator that waits for a CPU does not weaken what the kernel counted.
    let beside = with(&|step, _| {
        step.measured.cpu_waited = Some(Nanos(S * 3 / 2));
        step.server.as_mut().unwrap().quota = Some(QuotaUse {
            periods: 20,
            throttled: 12,
            ..QuotaUse::default()
        });
    });
    assert_eq!(beside.who, Limited::Quota);
    insta::assert_snapshot!(quota.evidence, @"nginx: 0.05 CPUs; its quota of 0.05 CPUs (/sys/fs/cgroup/web) was used up in 19 of 20 periods");
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

/// If the server runs on another machine, that machine's CPUs and accept queue count, not the local ones.
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
