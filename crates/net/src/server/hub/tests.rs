use super::*;
use crate::plan::NetPlan;

const HOME: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

fn join(hub: &mut Hub, name: &str, now: i64) -> Joined {
    let join = Join {
        version: VERSION,
        name: name.to_owned(),
        agent: "test".to_owned(),
    };
    let key = [hub.next as u8 + 1; KEY];
    hub.join(&join, HOME, key, now).unwrap()
}

fn plan(people: usize) -> NetPlan {
    let mut text = "name = 'x'\nseconds = 10\n".to_owned();
    for i in 0..people {
        text += &format!("[[person]]\nname = 'p{i}'\nroles = ['voip', 'upload']\n");
    }
    NetPlan::read(&text).unwrap()
}

fn poll(hub: &mut Hub, joined: &Joined, now: i64) -> Polled {
    let poll = Poll {
        client: joined.client,
        key: joined.key.clone(),
        live: None,
        verdict_of: None,
    };
    hub.poll(poll, now).unwrap()
}

fn done(joined: &Joined, run: u64) -> Done {
    Done {
        client: joined.client,
        key: joined.key.clone(),
        run,
        record: PersonRecord {
            person: "somebody else".to_owned(),
            ran_us: 10_000_000,
            ..PersonRecord::default()
        },
    }
}

#[test]
fn a_run_from_the_order_to_the_last_record() {
    let mut hub = Hub::default();
    let (a, b) = (join(&mut hub, "a", 0), join(&mut hub, "a", 0));
    assert_eq!((&*a.name, &*b.name), ("a", "a-2"));
    assert!(matches!(hub.begin(&plan(3), 0), Err(Refused::Busy(_))));
    let run = hub.begin(&plan(2), 0).unwrap().run;
    // A second controller has to wait.
    assert!(matches!(hub.begin(&plan(1), 0), Err(Refused::Busy(_))));
    let order = poll(&mut hub, &a, 1_000_000).order.unwrap();
    assert_eq!((order.start_us, &*order.person), (LEAD, "p0"));
    assert!(poll(&mut hub, &b, 1_000_000).order.is_some());
    hub.uploaded(a.client, "upload", 500, LEAD + 50_000);
    hub.uploaded(a.client, "upload", 700, LEAD + 250_000);
    hub.uploaded(a.client, "no such role", 700, LEAD + 250_000);
    hub.uploaded(a.client, "upload", 9, LEAD - 1);
    let end = LEAD + 10_000_000;
    hub.done(done(&a, run), end).unwrap();
    assert!(matches!(
        hub.done(done(&a, run), end),
        Err(Refused::Busy(_))
    ));
    let record = hub.record(run, 0).unwrap();
    assert_eq!((&*record.person, &*record.client), ("p0", "a"));
    assert_eq!(record.roles[0].slots, [500, 0, 700]);
    assert!(!hub.status(run, end).unwrap().over);
    hub.done(done(&b, run), end).unwrap();
    assert!(hub.status(run, end).unwrap().over);
    assert!(hub.begin(&plan(2), end).is_ok());
    assert!(matches!(hub.status(run, end), Err(Refused::Unknown(_))));
}

#[test]
fn a_client_that_vanishes_does_not_hold_the_others() {
    let mut hub = Hub::default();
    let (a, b) = (join(&mut hub, "a", 0), join(&mut hub, "b", 0));
    let run = hub.begin(&plan(2), 0).unwrap().run;
    poll(&mut hub, &a, 100);
    poll(&mut hub, &b, 100);
    hub.done(done(&a, run), LEAD + 10_000_000).unwrap();
    assert!(!hub.status(run, LEAD + 10_000_000).unwrap().over);
    let later = GONE + 1_000_000;
    let status = hub.status(run, later).unwrap();
    assert!(status.over && status.people[1].vanished && !status.people[0].vanished);
}

#[test]
fn an_abort_reaches_who_polls_and_keeps_what_was_measured() {
    let mut hub = Hub::default();
    let a = join(&mut hub, "a", 0);
    let run = hub.begin(&plan(1), 0).unwrap().run;
    poll(&mut hub, &a, 100);
    hub.abort(run, LEAD + 3_000_000).unwrap();
    assert!(poll(&mut hub, &a, LEAD + 3_100_000).abort);
    assert!(!hub.status(run, LEAD + 3_100_000).unwrap().over);
    hub.done(done(&a, run), LEAD + 3_200_000).unwrap();
    assert!(hub.status(run, LEAD + 3_200_000).unwrap().over);
    assert!(hub.record(run, 0).is_ok());
}

#[test]
fn strangers_and_old_clients_get_nothing() {
    let mut hub = Hub::default();
    let old = Join {
        version: VERSION + 1,
        name: "a".to_owned(),
        agent: "x".to_owned(),
    };
    assert!(matches!(
        hub.join(&old, HOME, [0; KEY], 0),
        Err(Refused::Bad(_))
    ));
    let a = join(&mut hub, "a", 0);
    let wrong = Poll {
        client: a.client,
        key: "00".repeat(KEY),
        live: None,
        verdict_of: None,
    };
    assert!(matches!(hub.poll(wrong, 0), Err(Refused::Unknown(_))));
    assert_eq!(hub.by_key(&[9; KEY]), None);
    // A client that returns after a while is the same client.
    assert_eq!(join(&mut hub, "a", 6_000_000).name, "a");
    assert_eq!(hub.clients(6_000_000).clients.len(), 1);
    for i in 0..MOST_CLIENTS + 5 {
        let join = Join {
            version: VERSION,
            name: format!("n{i}"),
            agent: "x".to_owned(),
        };
        let _ = hub.join(&join, HOME, [0; KEY], 6_000_000);
    }
    assert_eq!(hub.clients.len(), MOST_CLIENTS);
}

fn people(names: &[&str]) -> NetPlan {
    let mut text = "name = 'x'\nseconds = 10\n".to_owned();
    for name in names {
        text += &format!("[[person]]\nname = '{name}'\nroles = ['voip']\n");
    }
    NetPlan::read(&text).unwrap()
}

fn clients(hub: &Hub, run: u64, now: i64) -> Vec<(String, String)> {
    let seen = hub.status(run, now).unwrap().people;
    let pair = |one: PersonSeen| (one.person, one.client);
    seen.into_iter().map(pair).collect()
}

#[test]
fn a_person_gets_the_device_of_the_same_name_and_keeps_it() {
    let mut hub = Hub::default();
    let names = ["tablet", "ben", "Anna", "tv"];
    let joined = names.map(|name| join(&mut hub, name, 0));
    let plan = people(&["anna", "Ben", "Carl", "Dora"]);
    let pairs = |carl: &str, dora: &str| {
        let pairs = [
            ("anna", "Anna"),
            ("Ben", "ben"),
            ("Carl", carl),
            ("Dora", dora),
        ];
        pairs.map(|(person, client)| (person.to_owned(), client.to_owned()))
    };
    let first = hub.begin(&plan, 0).unwrap().run;
    assert_eq!(clients(&hub, first, 0), pairs("tablet", "tv"));
    // The tablet joins again after all others and keeps its person.
    let after = LEAD + 80_000_000;
    let later = after + SILENT + 1;
    let _tablet = join(&mut hub, "tablet", later);
    for joined in &joined[1..] {
        poll(&mut hub, joined, later);
    }
    let second = hub.begin(&plan, later).unwrap().run;
    assert_eq!(clients(&hub, second, later), pairs("tablet", "tv"));
}

/// If a device joins again at once, its person is assigned to the new connection, not to the old one.
#[test]
fn a_device_that_joined_again_replaces_its_old_connection() {
    let mut hub = Hub::default();
    let (laptop, phone) = (join(&mut hub, "laptop", 0), join(&mut hub, "phone", 0));
    let plan = people(&["anna", "ben"]);
    let pairs = |names: [&str; 2]| {
        let people = ["anna", "ben"].into_iter().zip(names);
        let pairs = people.map(|(person, name)| (person.to_owned(), name.to_owned()));
        pairs.collect::<Vec<_>>()
    };
    let first = hub.begin(&plan, 0).unwrap().run;
    assert_eq!(clients(&hub, first, 0), pairs(["laptop", "phone"]));
    let after = LEAD + 80_000_000;
    poll(&mut hub, &laptop, after);
    poll(&mut hub, &phone, after);
    // Not yet silent: it may be another device of that name.
    let back = join(&mut hub, "laptop", after + 1_000_000);
    assert_eq!(back.name, "laptop-2");
    let later = after + 3_500_000;
    poll(&mut hub, &back, later);
    poll(&mut hub, &phone, later);
    let second = hub.begin(&plan, later).unwrap().run;
    assert_eq!(clients(&hub, second, later), pairs(["laptop", "phone"]));
    assert!(poll(&mut hub, &back, later + 1).order.is_some());
    // Two devices of one name that both poll keep their names.
    let after = later + LEAD + 80_000_000;
    poll(&mut hub, &back, after);
    let other = join(&mut hub, "laptop", after);
    for joined in [&back, &phone, &other] {
        poll(&mut hub, joined, after + 3_000_000);
    }
    let third = hub.begin(&plan, after + 3_000_000).unwrap().run;
    assert_eq!(clients(&hub, third, after), pairs(["laptop", "phone"]));
    assert_eq!(hub.clients(after + 3_000_000).clients.len(), 3);
}

#[test]
fn a_device_is_told_its_verdict_when_the_run_is_over() {
    let mut hub = Hub::default();
    hub.write_with(VerdictWriter::new(|verdict, roles, since| {
        format!("{} {} {since}", verdict.person, roles.len())
    }));
    let (a, b) = (join(&mut hub, "a", 0), join(&mut hub, "b", 0));
    let run = hub.begin(&people(&["a", "b"]), 0).unwrap().run;
    let ask = |hub: &mut Hub, joined: &Joined, now| {
        let poll = Poll {
            client: joined.client,
            key: joined.key.clone(),
            live: None,
            verdict_of: Some(run),
        };
        hub.poll(poll, now).unwrap().verdict
    };
    poll(&mut hub, &a, 1_000_000);
    poll(&mut hub, &b, 1_000_000);
    let end = LEAD + 10_000_000;
    hub.done(done(&a, run), end).unwrap();
    // The other record is missing. It may show who filled the queue.
    assert_eq!(ask(&mut hub, &a, end), None);
    hub.done(done(&b, run), end).unwrap();
    let verdict = ask(&mut hub, &a, end).unwrap();
    assert_eq!(
        (verdict.run, &*verdict.text),
        (run, &*format!("a 1 {}", end - LEAD))
    );
    assert_eq!(ask(&mut hub, &b, end + 5).unwrap().text, "b 1 10000000");
}

#[test]
fn segments_count_for_the_role_of_a_run_and_the_algorithm_for_the_device() {
    let mut hub = Hub::default();
    let a = join(&mut hub, "a", 0);
    let mut plan = people(&["a"]);
    plan.congestion = vec!["bbr".to_owned(), "cubic".to_owned()];
    assert!(matches!(hub.begin(&plan, 0), Err(Refused::Bad(_))));
    plan.congestion.pop();
    let run = hub.begin(&plan, 0).unwrap().run;
    let order = poll(&mut hub, &a, 1_000_000).order.unwrap();
    assert_eq!(order.congestion.as_deref(), Some("bbr"));
    assert_eq!(
        hub.wanted_congestion(a.client, LEAD).as_deref(),
        Some("bbr")
    );
    assert_eq!(hub.wanted_congestion(a.client + 1, LEAD), None);
    let some = Segments { sent: 90, again: 3 };
    hub.sent(a.client, "voip", some, LEAD - 1);
    hub.sent(a.client, "voip", some, LEAD + 1);
    hub.sent(a.client, "other", some, LEAD + 1);
    hub.sends_with(a.client, Some("cubic".to_owned()));
    hub.sends_with(a.client, None);
    let mut done = done(&a, run);
    done.record.roles = vec![RoleRecord {
        role: "voip".to_owned(),
        segments: Some(Segments { sent: 1, again: 1 }),
        ..RoleRecord::default()
    }];
    // The server's count replaces the client's value.
    done.record.congestion.server = Some("reno".to_owned());
    hub.done(done, LEAD + 10_000_000).unwrap();
    let record = hub.record(run, 0).unwrap();
    assert_eq!(record.roles[0].segments, Some(some));
    assert_eq!(record.congestion.server.as_deref(), Some("cubic"));
}
