use super::*;
use crate::record::{RoleRecord, Start};
use crate::role::builtin;

const SECONDS: u64 = 20;

fn role(name: &str) -> Role {
    builtin()
        .into_iter()
        .find(|role| role.name == name)
        .unwrap()
}

/// A record of 20 s in which a role transfers `bytes(second)` bytes in every slot of a second.
fn moved(person: &str, role: &str, bytes: impl Fn(u64) -> u64) -> PersonRecord {
    let slots = (0..SECONDS * 1_000_000 / SLOT_US).map(|slot| bytes(slot * SLOT_US / 1_000_000));
    PersonRecord {
        person: person.to_owned(),
        ran_us: SECONDS * 1_000_000,
        start: Start {
            idle_us: 900,
            idle_median_us: 1_000,
            ..Start::default()
        },
        roles: vec![RoleRecord {
            role: role.to_owned(),
            slots: slots.collect(),
            ..RoleRecord::default()
        }],
        ..PersonRecord::default()
    }
}

/// Events of a role that sends 50 packets per second. `took` returns the duration of a packet, or `None` if it is lost.
fn packets(took: impl Fn(u64, u64) -> Option<u64>) -> Vec<RecordEvent> {
    let event = |i: u64| RecordEvent {
        due: i * 20_000,
        late: 0,
        took: took(i / 50, i % 50),
    };
    (0..SECONDS * 50).map(event).collect()
}

#[test]
fn a_download_that_fills_a_queue_is_named_with_the_delay_and_the_drops() {
    // Seconds 5 to 14: 10 Mbit/s, and a queue of 200 ms that drops one packet in 25.
    let busy = |second: u64| (5..15).contains(&second);
    let ben = moved("Ben", "download", |at| if busy(at) { 122_000 } else { 0 });
    let anna = moved("Anna", "call", |_| 800);
    let events = packets(|second, i| match (busy(second), i % 25) {
        (true, 7) => None,
        (true, _) => Some(200_000),
        (false, _) => Some(1_200),
    });
    let mut load = LinkLoad::default();
    load.add(&ben, &[role("download")]);
    load.add(&anna, &[role("call")]);
    let queue = find(&anna, &[events], &load).unwrap();
    assert_eq!(queue.slow, (5..15).collect::<Vec<u32>>());
    assert_eq!(
        (queue.idle_us, queue.loaded_us, queue.added_us()),
        (1_000, 200_000, 199_000)
    );
    assert_eq!((queue.lost, queue.lost_otherwise), (Some(0.04), Some(0.0)));
    let [filler] = &queue.filled_by[..] else {
        panic!("{queue:?}")
    };
    assert_eq!((&*filler.person, &*filler.role), ("Ben", "download"));
    assert!((filler.bit_per_s - 9.76e6).abs() < 1.0 && filler.share > 0.99);
}

#[test]
fn two_roles_that_fill_it_together_are_both_named() {
    let mut load = LinkLoad::default();
    for (person, role_name, bytes) in [
        ("Ben", "download", 60_000),
        ("Anna", "browsing", 50_000),
        ("Carl", "download", 2_000),
        ("Dora", "upload", 90_000),
    ] {
        load.add(&moved(person, role_name, |_| bytes), &[role(role_name)]);
    }
    let anna = moved("Anna", "call", |_| 0);
    let queue = find(&anna, &[packets(|_, _| Some(90_000))], &load).unwrap();
    let names: Vec<&str> = queue.filled_by.iter().map(|one| &*one.person).collect();
    assert_eq!(names, ["Ben", "Anna"]);
}

#[test]
fn losses_without_delay_are_no_queue() {
    let anna = moved("Anna", "call", |_| 800);
    let events = packets(|_, i| (i % 20 != 3).then_some(1_100));
    assert_eq!(find(&anna, &[events], &LinkLoad::default()), None);
    // Neither one slow second nor one slow request per second is a queue.
    let events = packets(|second, _| Some(if second == 3 { 400_000 } else { 1_100 }));
    assert_eq!(find(&anna, &[events], &LinkLoad::default()), None);
    let mut record = moved("Anna", "browsing", |_| 100_000);
    record.trips = (0..SECONDS * 2)
        .map(|i| (i * 500_000, if i % 2 == 0 { 220_000 } else { 1_500 }))
        .collect();
    assert_eq!(find(&record, &[], &LinkLoad::default()), None);
}

#[test]
fn without_packets_the_clients_own_requests_show_the_queue() {
    let mut record = moved("Anna", "download", |_| 120_000);
    record.trips = (0..SECONDS * 2).map(|i| (i * 500_000, 180_000)).collect();
    let mut load = LinkLoad::default();
    load.add(&record, &[role("download")]);
    let queue = find(&record, &[], &load).unwrap();
    assert_eq!(queue.measured_by, MeasuredBy::Control);
    assert_eq!((queue.lost, queue.seconds), (None, SECONDS as u32));
    // Nobody in the run transferred anything, so something else filled the queue.
    let queue = find(&record, &[], &LinkLoad::default()).unwrap();
    assert_eq!(queue.filled_by, []);
    // A far server: 20 ms more than 600 ms is not a queue.
    record.start.idle_median_us = 600_000;
    record.trips = (0..SECONDS * 2).map(|i| (i * 500_000, 640_000)).collect();
    assert_eq!(find(&record, &[], &load), None);
}
