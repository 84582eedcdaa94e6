//! Runs a server, clients and a controller over the loopback interface.

use assay_net::client::{self, ServerLink};
use assay_net::controller::{self, Begin};
use assay_net::plan::NetPlan;
use assay_net::result::Run;
use assay_net::server::NetServer;
use assay_net::verdict::Grade;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Starts a server and `clients` clients, and runs the plan. Calls `beside` during the run.
fn run(plan: &NetPlan, clients: usize, beside: impl FnOnce(&NetServer) + Send) -> Run {
    let server = NetServer::bind((HERE, 0).into(), &[]).unwrap();
    let stop = AtomicBool::new(false);
    let stopped = || stop.load(Ordering::SeqCst);
    let (server, stopped) = (&server, &stopped);
    thread::scope(|scope| {
        scope.spawn(move || server.serve(stopped).unwrap());
        for i in 0..clients {
            scope.spawn(move || {
                let link = ServerLink::new(&server.for_clients(HERE).unwrap()).unwrap();
                client::run(
                    &link,
                    &format!("c{i}"),
                    "test",
                    Some(1),
                    stopped,
                    &mut |_| {},
                )
                .unwrap();
            });
        }
        scope.spawn(move || beside(server));
        let link = ServerLink::new(&server.for_controllers(HERE).unwrap()).unwrap();
        let begin = Begin {
            plan,
            wait: Duration::from_secs(20),
            now: &|| jiff::Timestamp::UNIX_EPOCH,
            stop: &|| false,
        };
        let run = controller::carry_out(&link, &begin, &mut |_| {});
        stop.store(true, Ordering::SeqCst);
        run.unwrap().unwrap()
    })
}

#[test]
fn all_roles_at_once_are_measured() {
    let mut plan = NetPlan::builtin("four").unwrap();
    plan.seconds = 3;
    plan.people[0].roles = vec![
        "browsing".into(),
        "4kstream".into(),
        "voip".into(),
        "call".into(),
    ];
    plan.people[1].roles = vec!["gaming".into(), "upload".into()];
    plan.people[2].roles = vec!["responsiveness".into()];
    let run = run(&plan, 4, |_| {});
    let judged = run.judged();
    for (person, taken) in judged.iter().zip(&run.people) {
        let record = taken
            .record
            .as_ref()
            .unwrap_or_else(|| panic!("{:?}", taken.missing));
        assert!(
            record.start.exchanges >= 24 && record.start.error_us < 1_000_000,
            "{record:?}"
        );
        for role in &person.roles {
            assert!(
                role.counted + role.void > 0 || role.bit_per_s.is_some(),
                "{role:?}"
            );
        }
    }
    let packets = judged[0]
        .roles
        .iter()
        .find(|role| role.role == "call")
        .unwrap();
    assert_eq!(packets.counted + packets.void, 150);
    assert_eq!(packets.failed, 0);
    // The server counted the upload, and the clients counted the rest.
    for (person, role) in [(1, 1), (2, 0), (3, 0)] {
        let verdict = &judged[person].roles[role];
        assert!(verdict.bit_per_s.unwrap() > 1e6, "{verdict:?}");
    }
    assert!(judged[2].roles[0].rpm.unwrap() > 0.0);
    assert!(run.spread().is_some());
    assert_ne!(judged[3].grade, Grade::Unknown);
}
