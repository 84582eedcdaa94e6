use super::*;
use crate::record::Start;
use crate::role::builtin;
use proptest::prelude::*;

fn role(name: &str) -> Role {
    builtin()
        .into_iter()
        .find(|role| role.name == name)
        .unwrap()
}

fn person(role: &str, events: Vec<RecordEvent>) -> PersonRecord {
    PersonRecord {
        person: "anna".to_owned(),
        ran_us: events.last().map_or(0, |event| event.due + 20_000),
        start: Start {
            idle_us: 500,
            ..Start::default()
        },
        roles: vec![RoleRecord {
            role: role.to_owned(),
            events,
            ..RoleRecord::default()
        }],
        ..PersonRecord::default()
    }
}

fn packets(took: impl Fn(u64) -> Option<u64>) -> PersonRecord {
    let event = |i: u64| RecordEvent {
        due: i * 20_000,
        late: 0,
        took: took(i),
    };
    person("call", (0..1500).map(event).collect())
}

fn one(record: &PersonRecord, name: &str) -> RoleVerdict {
    judge(record, &[role(name)]).roles.remove(0)
}

#[test]
fn a_call_is_fine_tolerable_or_bad_by_the_share_of_late_packets() {
    for (every, grade) in [(200, Grade::Good), (50, Grade::Tolerable), (10, Grade::Bad)] {
        let record = packets(|i| Some(if i % every == 0 { 200_000 } else { 9_000 }));
        let verdict = one(&record, "call");
        assert_eq!(verdict.grade, grade, "one in {every}");
        assert_eq!(verdict.over, 1500u64.div_ceil(every));
        // One late packet is not audible.
        assert!(verdict.breaks.is_empty());
        assert_eq!(verdict.latency.p50, Some(9_000));
    }
}

#[test]
fn breaks_have_a_time_and_a_length() {
    let record =
        packets(|i| (!(100..205).contains(&i) && !(700..710).contains(&i)).then_some(9_000));
    let verdict = one(&record, "call");
    assert_eq!(
        verdict.breaks,
        [(2_000_000, 4_100_000), (14_000_000, 14_200_000)]
    );
    assert_eq!(
        verdict.cause,
        Some(Cause::Loss {
            share: 115.0 / 1500.0
        })
    );
    assert_eq!(verdict.failed, 115);
    // A lost packet is slower than any other, so there is no maximum.
    assert_eq!(verdict.latency.max, None);
    assert_eq!(verdict.worst.map(|second| second.over), Some(50));
}

#[test]
fn a_full_queue_is_told_from_a_far_server_and_from_a_cut() {
    let queue = one(&packets(|_| Some(380_000)), "call");
    assert_eq!(
        queue.cause,
        Some(Cause::Queue {
            during_us: 380_000,
            before_us: 500
        })
    );
    let mut far = packets(|_| Some(380_000));
    far.start.idle_us = 370_000;
    assert!(matches!(one(&far, "call").cause, Some(Cause::Far { .. })));
    let cut = one(&packets(|i| (i < 1000).then_some(9_000)), "call");
    assert_eq!(
        cut.cause,
        Some(Cause::Cut {
            from_us: 20_000_000
        })
    );
}

#[test]
fn a_film_that_is_behind_at_the_end_is_not_cut_off() {
    let film = role("4kstream");
    // Half the required rate: the second half of the film never started.
    let piece = 335_544;
    let events = (0..60).map(|i| RecordEvent {
        due: i * piece,
        late: 0,
        took: (i < 30).then_some(i * piece + 600_000),
    });
    let mut record = person("4kstream", events.collect());
    let whole = |record: &PersonRecord| judge(record, std::slice::from_ref(&film)).roles.remove(0);
    record.roles[0].slots = vec![156_250; 200];
    let Some(Cause::Rate { bit_per_s, .. }) = whole(&record).cause else {
        panic!("{:?}", whole(&record).cause)
    };
    assert!((bit_per_s - 12.5e6).abs() < 1e6, "{bit_per_s}");
    record.roles[0].slots.truncate(100);
    let cut = Cause::Cut {
        from_us: 30 * piece,
    };
    assert_eq!(whole(&record).cause, Some(cut));
}

#[test]
fn what_the_client_itself_spoiled_counts_for_nobody() {
    let mut record = packets(|_| Some(9_000));
    for event in &mut record.roles[0].events[..100] {
        (event.late, event.took) = (400_000, Some(900_000));
    }
    let verdict = one(&record, "call");
    assert_eq!(
        (verdict.void, verdict.over, verdict.grade),
        (100, 0, Grade::Good)
    );
    // More than a tenth is void, so there is no result.
    for event in &mut record.roles[0].events[..200] {
        event.late = 400_000;
    }
    assert_eq!(one(&record, "call").grade, Grade::Unknown);
    // The client is away for the last third.
    let mut record = packets(|i| (i < 1000).then_some(9_000));
    record.void = vec![(20_000_000, 30_000_000)];
    let verdict = one(&record, "call");
    assert_eq!((verdict.over, verdict.grade), (0, Grade::Unknown));
    assert_eq!(
        verdict.seconds.iter().filter(|second| second.void).count(),
        10
    );
}

#[test]
fn a_film_that_stood_is_bad_and_one_that_was_slow_once_is_not() {
    let film = role("4kstream");
    let events = |slow: u64| {
        let piece = 335_544;
        (0..60)
            .map(|i| RecordEvent {
                due: i * piece,
                late: 0,
                took: Some(if i == 20 { slow } else { 100_000 }),
            })
            .collect()
    };
    let verdict = judge(
        &person("4kstream", events(600_000)),
        std::slice::from_ref(&film),
    );
    assert_eq!(verdict.grade, Grade::Tolerable);
    let verdict = judge(&person("4kstream", events(4_000_000)), &[film]);
    assert_eq!(verdict.grade, Grade::Bad);
    assert_eq!(verdict.roles[0].breaks.len(), 1);
}

#[test]
fn nothing_measured_is_not_fine() {
    for role in builtin() {
        let verdict = judge(&PersonRecord::default(), &[role]);
        assert_eq!(verdict.grade, Grade::Unknown);
    }
}

#[test]
fn round_trips_per_minute_are_those_of_the_draft() {
    let probe = |ms: u64| Probe {
        tcp: ms * 1000,
        tls: 2 * ms * 1000,
        http: 3 * ms * 1000,
    };
    let mut probes = vec![probe(10); 95];
    probes.extend(vec![probe(10_000); 5]);
    // The slowest 5 % are omitted: (10 + 20 + 30) / 3 = 20 ms.
    assert_eq!(rpm(&probes), Some(3000.0));
    assert_eq!(rpm(&probes[..4]), None);
}

proptest! {
    #[test]
    fn no_record_makes_it_panic(
        role in 0usize..8,
        events in prop::collection::vec((any::<u64>(), any::<u64>(), any::<Option<u64>>()), 0..50),
        slots in prop::collection::vec(0u64..1 << 40, 0..50),
        ran in any::<u64>(),
        void in prop::collection::vec((any::<u64>(), any::<u64>()), 0..4),
    ) {
        let role = builtin().remove(role);
        let record = PersonRecord {
            ran_us: ran,
            void,
            roles: vec![RoleRecord {
                role: role.name.clone(),
                events: events.into_iter().map(RecordEvent::from).collect(),
                slots,
                ..RoleRecord::default()
            }],
            ..PersonRecord::default()
        };
        let verdict = judge(&record, &[role]);
        prop_assert!(verdict.roles[0].over <= verdict.roles[0].counted);
    }
}

#[test]
fn what_a_page_could_not_take_in_is_not_the_network() {
    let mut record = packets(|i| Some(if i % 2 == 0 { 200_000 } else { 9_000 }));
    // 30 s at 100 Mbit/s.
    record.roles[0].slots = vec![1_250_000; 300];
    record.ceiling_bit_per_s = Some(1e9);
    assert_eq!(one(&record, "call").grade, Grade::Bad);
    record.ceiling_bit_per_s = Some(1.5e8);
    let verdict = one(&record, "call");
    assert_eq!((verdict.grade, verdict.at_ceiling), (Grade::Unknown, true));
    assert_eq!(verdict.cause, None);
    record.ceiling_bit_per_s = Some(0.0);
    assert_eq!(one(&record, "call").grade, Grade::Bad);
}

/// On a slow link there are few pages, because each page waits until the previous one is complete.
#[test]
fn few_events_are_enough_to_be_bad_but_not_to_be_good() {
    let pages = |took: &[u64]| {
        let event = |(i, took): (usize, &u64)| RecordEvent {
            due: i as u64 * 6_000_000,
            late: 0,
            took: Some(*took),
        };
        person("browsing", took.iter().enumerate().map(event).collect())
    };
    for (took, grade) in [
        (&[5_000_000; 3][..], Grade::Bad),
        (&[5_000_000; 2], Grade::Bad),
        (&[5_000_000; 1], Grade::Unknown),
        (&[5_000_000, 5_000_000, 90_000], Grade::Unknown),
        (&[90_000; 4], Grade::Unknown),
        (&[90_000; 5], Grade::Good),
    ] {
        assert_eq!(one(&pages(took), "browsing").grade, grade, "{took:?}");
    }
}

/// A download without a goal is good at any speed.
#[test]
fn a_download_does_not_stand_for_roles_with_a_goal() {
    let mut record = person("browsing", Vec::new());
    record.ran_us = 8_000_000;
    record.roles.push(RoleRecord {
        role: "download".to_owned(),
        slots: vec![100_000; 80],
        ..RoleRecord::default()
    });
    let both = judge(&record, &[role("browsing"), role("download")]);
    assert_eq!(both.roles[1].grade, Grade::Good);
    assert_eq!(both.grade, Grade::Unknown);
    assert_eq!(judge(&record, &[role("download")]).grade, Grade::Good);
}
