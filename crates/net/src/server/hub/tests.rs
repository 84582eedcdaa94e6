use super::*;
use crate::plan::Plan;

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

fn plan(people: usize) -> Plan {
    let mut text = "name = 'x'\nseconds = 10\n".to_owned();
    for i in 0..people {
        text += &format!("[[person]]\nname = 'p{i}'\nroles = ['voip', 'upload']\n");
    }
    Plan::read(&text).unwrap()
}

fn poll(hub: &mut Hub, joined: &Joined, now: i64) -> Polled {
    let poll = Poll {
        client: joined.client,
        key: joined.key.clone(),
        live: None,
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
    // A second controller waits.
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
    };
    assert!(matches!(hub.poll(wrong, 0), Err(Refused::Unknown(_))));
    assert_eq!(hub.by_key(&[9; KEY]), None);
    // One that comes back after a while is the same, not a second one.
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
