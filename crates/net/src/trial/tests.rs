use super::*;
use crate::record::{PersonRecord, RecordEvent, RoleRecord};
use crate::result::Taken;

fn plan() -> NetPlan {
    NetPlan::read(
        "name = 'x'\nseconds = 10\n[[person]]\nname = 'a'\nroles = ['gaming']\n\
         [[person]]\nname = 'b'\nroles = ['gaming', 'download']\n[[person]]\nname = 'c'\nroles = ['download']\n",
    )
    .unwrap()
}

/// A run of two players, each of whom sends 100 packets. `late` is the number of late packets of each player; `None`
/// means that the client is gone.
fn run(late: [Option<u64>; 2]) -> Run {
    let plan = plan();
    let record = |person: &str, late: u64| PersonRecord {
        person: person.to_owned(),
        ran_us: 10_000_000,
        roles: vec![
            RoleRecord {
                role: "gaming".to_owned(),
                events: (0..600)
                    .map(|i| RecordEvent {
                        due: i * 16_667,
                        late: 0,
                        took: Some(if i % 100 < late { 300_000 } else { 9_000 }),
                    })
                    .collect(),
                ..RoleRecord::default()
            },
            RoleRecord {
                role: "download".to_owned(),
                slots: vec![1_000_000; 100],
                ..RoleRecord::default()
            },
        ],
        ..PersonRecord::default()
    };
    let late = [late[0], late[1], Some(0)];
    let people = plan.people.iter().zip(late).map(|(person, late)| Taken {
        person: person.name.clone(),
        client: person.name.clone(),
        record: late.map(|late| record(&person.name, late)),
        missing: late.is_none().then(|| "its client is gone".to_owned()),
    });
    Run {
        people: people.collect(),
        plan,
        began: jiff::Timestamp::UNIX_EPOCH,
        aborted: false,
        congestion: Vec::new(),
    }
}

fn trial() -> Trial {
    Trial {
        plan: plan(),
        sides: ["now", "changed"].map(str::to_owned),
        margin: MARGIN,
        guard: GUARD,
        alpha: 0.05,
        seed: 1,
        first: (0..12)
            .map(|i| if i % 3 == 0 { Side::Changed } else { Side::Now })
            .collect(),
        slots: Vec::new(),
    }
}

/// Executes a trial in which `of` returns the run for each side and pair.
fn carried(of: impl Fn(Side, u32) -> Run) -> (Trial, Judgement) {
    let mut trial = trial();
    let mut looks = 0;
    let ended = trial.carry_out::<()>(
        &mut |side, slot| Ok(Some((format!("{side:?}"), of(side, slot)))),
        &mut |_, _| looks += 1,
    );
    assert_eq!(ended, Ok(Ended::Judged));
    assert_eq!(looks, trial.slots.len() / 2);
    let judgement = trial.judgement();
    (trial, judgement)
}

#[test]
fn what_is_better_for_people_is_better() {
    let wobble = |slot: u32| u64::from(slot % 3);
    let (trial, judgement) = carried(|side, slot| match side {
        Side::Now => run([Some(60 + wobble(slot)), Some(70)]),
        Side::Changed => run([Some(wobble(slot)), Some(0)]),
    });
    assert_eq!(judgement.verdict, Verdict::Better, "{}", judgement.reason);
    assert_eq!(trial.slots.len(), 12, "six pairs are enough for so much");
    let people = trial.people();
    assert_eq!((people[0].bad, people[2].guard), ([6, 0], None));
    assert!(people[0].in_time[1].unwrap() > 0.97 && people[1].in_time[0].unwrap() < 0.31);
    assert_eq!(
        people[2].in_time,
        [None, None],
        "a download without a goal has no say"
    );
}

#[test]
fn nothing_is_better_when_one_person_pays_for_it() {
    let (_, judgement) = carried(|side, _| match side {
        Side::Now => run([Some(80), Some(2)]),
        Side::Changed => run([Some(0), Some(30)]),
    });
    assert_eq!(judgement.verdict, Verdict::Worse, "{}", judgement.reason);
    assert!(judgement.guards[1].broken && !judgement.guards[0].broken);
    assert!(
        judgement.reason.starts_with("b lost"),
        "{}",
        judgement.reason
    );
}

#[test]
fn the_same_is_the_same_and_a_network_that_drops_people_is_not() {
    let (trial, judgement) = carried(|_, _| run([Some(3), Some(0)]));
    assert_eq!(
        judgement.verdict,
        Verdict::NoPracticalDifference,
        "{}",
        judgement.reason
    );
    assert!(trial.check().is_ok());
    let (_, judgement) = carried(|side, _| match side {
        Side::Now => run([Some(0), Some(0)]),
        Side::Changed => run([None, Some(0)]),
    });
    assert_eq!(judgement.verdict, Verdict::Unsafe, "{}", judgement.reason);
    assert!(judgement.reason.contains("gone"), "{}", judgement.reason);
}

#[test]
fn an_end_in_the_middle_of_a_pair_leaves_whole_pairs() {
    let mut trial = trial();
    let ended = trial.carry_out::<()>(
        &mut |_, slot| Ok((slot < 5).then(|| (String::new(), run([Some(0), Some(0)])))),
        &mut |_, _| {},
    );
    assert_eq!((ended, trial.slots.len()), (Ok(Ended::Stopped), 4));
    let mut blind = self::trial();
    let ended = blind.carry_out::<()>(
        &mut |_, _| Ok(Some((String::new(), run([None, Some(0)])))),
        &mut |_, _| {},
    );
    let Ok(Ended::Fruitless(why)) = ended else {
        panic!("{ended:?}")
    };
    assert!(why.contains("gone") && blind.slots.len() == 6, "{why}");
    let failed = trial.carry_out(&mut |_, _| Err("no"), &mut |_, _| {});
    assert_eq!(failed, Err("no"));
    // The raw runs are stored and judged again when read.
    let text = serde_json::to_string(&trial).unwrap();
    assert_eq!(serde_json::from_str::<Trial>(&text).unwrap(), trial);
    trial.plan.people[0].roles = vec!["browsing".to_owned()];
    assert!(
        trial.check().is_ok(),
        "a page every two seconds, five of them"
    );
    trial.plan.seconds = 9;
    assert!(trial.check().unwrap_err().contains("10 s"));
    trial.plan.people.drain(..2);
    assert!(trial.check().is_err(), "nobody with a goal is left");
}
