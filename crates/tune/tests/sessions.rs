//! Runs whole sessions on simulated machines, through the interface that a real machine would have.

#[path = "../../../bench/tune/machine.rs"]
#[allow(dead_code, reason = "a bench needs more of it")]
mod machine;
#[path = "../../../bench/trials/noise.rs"]
#[allow(dead_code, reason = "a bench needs more of it")]
mod noise;
#[path = "../../../bench/tune/stream.rs"]
#[allow(dead_code, reason = "a bench needs more of it")]
mod stream;
#[path = "../../../bench/tune/world.rs"]
#[allow(dead_code, reason = "a bench needs more of it")]
mod world;

use assay_model::Nanos;
use assay_model::result::Interval;
use assay_model::trial::PairOutcome;
use assay_tune::{
    BottomRung, Ending, HoldEnd, Incident, LeftOut, Row, Stage, Step, StepOutcome, TunePlan,
    TunePlanError, TuneSession, carry_out,
};
use machine::{Machine, plan};
use proptest::prelude::*;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use stream::{Kind, Stream};
use world::World;

const MORE: &str = "more w.iops";

fn machine(world: World, kind: Kind, seed: u64) -> Machine {
    let generator = |n| ChaCha8Rng::seed_from_u64(seed.wrapping_mul(3).wrapping_add(n));
    Machine::new(world, Stream::new(kind, generator(1)), generator(2))
}

fn with(settings: usize, gains: &[(usize, f64)]) -> World {
    let mut world = World::still(settings);
    for (at, gain) in gains {
        world.effects[*at] = gain.ln_1p();
    }
    world
}

/// Runs a session to its end.
fn run(plan: TunePlan, machine: &mut Machine) -> (TuneSession, Ending) {
    let mut session = TuneSession::begin(plan).unwrap();
    let ending = carry_out(&mut session, machine).unwrap();
    (session, ending)
}

#[test]
fn a_gain_is_kept_and_harm_is_not() {
    let world = with(8, &[(3, 0.2), (5, -0.2)]);
    let mut machine = machine(world, Kind::Even, 1);
    let (session, ending) = run(plan(&[MORE], &[0.1; 8], 60.0, 1), &mut machine);
    assert_eq!(
        ending,
        Ending::Kept {
            row: Row::from([3])
        }
    );
    assert_eq!(machine.kept, Row::from([3]));
    let gain = session.gain().unwrap();
    assert!((gain.said - 0.2).abs() < 0.03, "{gain:?}");
    // Proved twice, in pairs of different stages.
    let stages = |of: fn(&Stage) -> bool| {
        session
            .proofs()
            .iter()
            .filter(|proof| of(&proof.stage))
            .count()
    };
    assert!(stages(|stage| matches!(stage, Stage::Proof { candidate: 3, .. })) >= 1);
    assert!(machine.seconds <= 60.0 * 60.0);
}

#[test]
fn a_gain_that_wears_off_is_reverted_and_one_that_lasts_is_kept() {
    let lasting = with(8, &[(3, 0.2)]);
    let world = World {
        works: Some((3, 0.0..45.0)),
        ..lasting.clone()
    };
    let mut short_lived = machine(world, Kind::Even, 1);
    let (session, ending) = run(plan(&[MORE], &[0.1; 8], 40.0, 1), &mut short_lived);
    assert_eq!(
        ending,
        Ending::DoesNotLast {
            row: Row::from([3]),
            end: HoldEnd::WearsOff
        }
    );
    assert!(short_lived.kept.is_empty() && session.gain().is_none());
    assert!(session.wears_off(3) && !session.wears_off(2));
    let hold = session.hold().unwrap();
    assert!(hold.lasted > Nanos(45_000_000_000), "{hold:?}");
    assert!(hold.gain().unwrap().abs() < 0.05, "{hold:?}");
    let mut kept = machine(lasting, Kind::Even, 1);
    let (session, _) = run(plan(&[MORE], &[0.1; 8], 40.0, 1), &mut kept);
    assert_eq!(session.hold().unwrap().end, Some(HoldEnd::Lasts));
    assert_eq!(kept.kept, Row::from([3]));
}

#[test]
fn a_gain_that_wears_off_in_part_is_kept_and_reported() {
    let world = World {
        works: Some((3, 0.0..45.0)),
        ..with(8, &[(3, 0.3), (5, 0.2)])
    };
    let mut machine = machine(world, Kind::Even, 1);
    let (session, _) = run(plan(&[MORE], &[0.1; 8], 60.0, 1), &mut machine);
    assert_eq!(machine.kept, Row::from([3, 5]));
    let hold = session.hold().unwrap();
    assert_eq!(hold.end, Some(HoldEnd::Fades));
    assert!(
        (hold.gain().unwrap() - 1.2f64.ln()).abs() < 0.05,
        "{hold:?}"
    );
}

#[test]
fn a_load_that_fails_while_the_changes_stay_in_effect_reverts_them() {
    let mut machine = machine(with(8, &[(3, 0.2)]), Kind::Even, 1);
    let plan = plan(&[MORE], &[0.1; 8], 40.0, 1);
    carry_out(&mut TuneSession::begin(plan.clone()).unwrap(), &mut machine).unwrap();
    let mut session = TuneSession::begin(plan).unwrap();
    for seen in machine.seen {
        let is_hold = matches!(session.next(), Step::Pair(order) if order.stage == Stage::Hold);
        session
            .observe(match seen {
                StepOutcome::Pair { took, .. } if is_hold => StepOutcome::Pair {
                    outcome: PairOutcome::FailedChanged {
                        error: "out of memory".to_owned(),
                    },
                    figures: None,
                    took,
                },
                seen => seen,
            })
            .unwrap();
        if session.ending().is_some() {
            break;
        }
    }
    assert_eq!(session.next(), Step::Revert);
    assert!(matches!(
        session.ending(),
        Some(Ending::DoesNotLast {
            end: HoldEnd::Fails { .. },
            ..
        })
    ));
}

#[test]
fn sessions_without_time_for_a_hold_and_those_of_earlier_versions_hold_nothing() {
    let world = with(2, &[(0, 0.5)]);
    let mut short = machine(world.clone(), Kind::Even, 1);
    let (session, _) = run(plan(&[MORE], &[0.4; 2], 10.0, 1), &mut short);
    assert!(session.hold().is_none());
    assert_eq!(short.kept, Row::from([0]));
    // A stored plan without the field.
    let mut stored = serde_json::to_value(plan(&[MORE], &[0.4; 2], 60.0, 1)).unwrap();
    stored.as_object_mut().unwrap().remove("hold").unwrap();
    let earlier: TunePlan = serde_json::from_value(stored).unwrap();
    let mut machine = machine(world, Kind::Even, 1);
    let (session, _) = run(earlier, &mut machine);
    assert!(session.hold().is_none());
    assert_eq!(machine.kept, Row::from([0]));
}

#[test]
fn a_goal_that_is_met_or_out_of_reach_touches_nothing() {
    let mut met = machine(World::still(4), Kind::Even, 1);
    let (_, ending) = run(plan(&["w.iops >= 7k"], &[0.1; 4], 60.0, 1), &mut met);
    assert!(matches!(ending, Ending::Met { .. }), "{ending:?}");
    let mut beyond = machine(World::still(4), Kind::Even, 1);
    let mut unreachable = plan(&["w.iops >= 20k"], &[0.1; 4], 60.0, 1);
    unreachable.bottom = Some(BottomRung {
        what: "vda alone".to_owned(),
        figure: Interval {
            low: 14e3,
            high: 15e3,
            confidence: 0.95,
        },
        is_tunable: false,
    });
    let (_, ending) = run(unreachable.clone(), &mut beyond);
    assert!(matches!(ending, Ending::Beyond { .. }), "{ending:?}");
    assert_eq!((met.touched, beyond.touched), (0, 0));
    unreachable.anyway = true;
    let mut tried = machine(World::still(4), Kind::Even, 1);
    let (_, ending) = run(unreachable, &mut tried);
    assert_eq!(ending, Ending::NothingProved);
    assert!(tried.touched > 0);
}

#[test]
fn a_goal_in_reach_ends_the_search() {
    let world = with(5, &[(0, 0.3), (4, 0.3)]);
    let mut first = machine(world, Kind::Even, 1);
    let mut priors = [0.1; 5];
    priors[0] = 0.4;
    let (session, ending) = run(plan(&["w.iops >= 11500"], &priors, 60.0, 1), &mut first);
    assert_eq!(
        ending,
        Ending::Kept {
            row: Row::from([0])
        }
    );
    assert_eq!(session.proofs().len(), 1);
}

#[test]
fn a_candidate_that_breaks_the_load_is_left_out() {
    let world = World {
        breaks: vec![(2, None), (4, Some(5))],
        ..with(8, &[(3, 0.2)])
    };
    let mut machine = machine(world, Kind::Even, 1);
    let (session, ending) = run(plan(&[MORE], &[0.1; 8], 60.0, 1), &mut machine);
    assert!(matches!(
        session.left_out().get(&2),
        Some(LeftOut::FailsLoad { .. })
    ));
    assert_eq!(
        ending,
        Ending::Kept {
            row: Row::from([3])
        }
    );
}

#[test]
fn alternatives_are_never_on_together() {
    let world = with(8, &[(1, 0.2), (2, 0.15)]);
    let mut machine = machine(world, Kind::Even, 1);
    let mut plan = plan(&[MORE], &[0.1; 8], 90.0, 1);
    plan.candidates[2].touches = plan.candidates[1].touches.clone();
    let mut session = TuneSession::begin(plan).unwrap();
    carry_out(&mut session, &mut machine).unwrap();
    let mut again = TuneSession::begin(session.plan().clone()).unwrap();
    for seen in &machine.seen {
        if let Step::Pair(order) = again.next() {
            for row in [&order.now, &order.changed] {
                assert!(!(row.contains(&1) && row.contains(&2)), "{order:?}");
            }
        }
        again.observe(seen.clone()).unwrap();
    }
    assert_eq!(machine.kept.len(), 1);
}

#[test]
fn incidents_end_a_session_without_keeping_anything() {
    for incident in [
        Incident::Stop,
        Incident::GuardCommand {
            error: "503".into(),
        },
        Incident::TargetGone {
            error: "unmounted".into(),
        },
        Incident::Meddled {
            setting: "vm.swappiness".into(),
            found: "1".into(),
        },
    ] {
        let mut session = TuneSession::begin(plan(&[MORE], &[0.1; 4], 60.0, 1)).unwrap();
        session.interrupt(incident.clone());
        assert_eq!(session.next(), Step::Revert);
        assert_eq!(session.ending(), Some(&Ending::Stopped { incident }));
        session.interrupt(Incident::Finish);
        session
            .observe(StepOutcome::Reverted { took: Nanos(1) })
            .unwrap();
        assert_eq!(session.next(), Step::Done);
    }
}

#[test]
fn finishing_early_still_proves_the_whole() {
    let world = with(5, &[(0, 0.3), (1, 0.2)]);
    let mut machine = machine(world, Kind::Even, 1);
    let mut session = TuneSession::begin(plan(&[MORE], &[0.1; 5], 90.0, 1)).unwrap();
    while session.accepted().is_empty() {
        machine.dies_after = Some(machine.seen.len() + 1);
        carry_out(&mut session, &mut machine).unwrap_err();
        session
            .observe(machine.seen.last().unwrap().clone())
            .unwrap();
    }
    machine.dies_after = None;
    session.interrupt(Incident::Finish);
    assert!(
        matches!(session.next(), Step::Pair(order) if matches!(order.stage, Stage::Whole { .. }))
    );
    let ending = carry_out(&mut session, &mut machine).unwrap();
    assert!(matches!(ending, Ending::Kept { row } if row.len() == 1));
}

#[test]
fn what_belongs_to_another_step_changes_nothing() {
    let mut session = TuneSession::begin(plan(&[MORE], &[0.1; 4], 60.0, 1)).unwrap();
    let before = session.clone();
    session
        .observe(StepOutcome::Kept { took: Nanos(1) })
        .unwrap_err();
    assert_eq!(session, before);
}

#[test]
fn a_budget_in_which_nothing_can_be_proved_is_refused_with_one_that_would_do() {
    let error = TuneSession::begin(plan(&[MORE], &[0.1; 4], 3.0, 1)).unwrap_err();
    let TunePlanError::TooShort { needs, .. } = error else {
        panic!("{error:?}")
    };
    let mut enough = plan(&[MORE], &[0.1; 4], 3.0, 1);
    enough.budget = needs;
    TuneSession::begin(enough).unwrap();
}

#[test]
fn no_candidate_at_all_ends_after_the_baseline() {
    let mut none = plan(&[MORE], &[0.1; 3], 30.0, 1);
    for candidate in &mut none.candidates {
        candidate.never_kept = Some("loses acknowledged writes".to_owned());
    }
    let mut machine = machine(World::still(3), Kind::Even, 1);
    let (session, ending) = run(none, &mut machine);
    assert_eq!(ending, Ending::NoCandidate);
    assert_eq!((session.left_out().len(), machine.touched), (3, 0));
}

/// Returns the steps of a session; `seen` contains their outcomes.
fn steps(plan: &TunePlan, seen: &[StepOutcome]) -> Vec<Step> {
    let mut session = TuneSession::begin(plan.clone()).unwrap();
    let mut steps = Vec::new();
    for seen in seen {
        steps.push(session.next());
        session.observe(seen.clone()).unwrap();
    }
    steps.push(session.next());
    steps
}

#[test]
fn a_session_cut_at_any_step_goes_on_as_if_it_had_not_been() {
    for (seed, kind) in [(1, Kind::Quiet), (2, Kind::Direct), (3, Kind::Drift)] {
        let world = with(8, &[(3, 0.2), (5, 0.1), (6, -0.2)]);
        let plan = plan(&[MORE], &[0.1; 8], 40.0, seed);
        let mut machine = machine(world, kind, seed);
        let (whole, _) = run(plan.clone(), &mut machine);
        let all = steps(&plan, &machine.seen);
        let mut session = TuneSession::begin(plan.clone()).unwrap();
        for (at, seen) in machine.seen.iter().enumerate() {
            // By the stored state, bit for bit.
            let stored = serde_json::to_string(&session).unwrap();
            let read: TuneSession = serde_json::from_str(&stored).unwrap();
            assert_eq!(read, session);
            assert_eq!(read.next(), all[at]);
            session = read;
            session.observe(seen.clone()).unwrap();
        }
        assert_eq!(session, whole);
        assert_eq!(session.next(), Step::Done);
        // By the record alone.
        for cut in (0..machine.seen.len()).step_by(17) {
            let mut resumed = TuneSession::replay(plan.clone(), &machine.seen[..cut]).unwrap();
            assert_eq!(resumed.next(), all[cut]);
            for seen in &machine.seen[cut..] {
                resumed.observe(seen.clone()).unwrap();
            }
            assert_eq!(resumed, whole);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Every session keeps three promises, whatever the machine does. It ends within its budget and one step. Every
    /// pair of a stage is new. It keeps only changes that were proved both alone and all together.
    #[test]
    fn sessions_keep_their_promises(
        seed in any::<u64>(),
        kind in prop::sample::select(Kind::ALL.to_vec()),
        minutes in 12.0..70.0f64,
        gains in prop::collection::vec(-0.3..0.4f64, 3..10),
        breaks in prop::option::of(0usize..3),
        screen in any::<bool>(),
    ) {
        let settings = gains.len();
        let mut world = with(settings, &gains.iter().copied().enumerate().collect::<Vec<_>>());
        world.breaks.extend(breaks.map(|at| (at, None)));
        let mut machine = machine(world, kind, seed);
        let mut plan = plan(&[MORE], &vec![0.1; settings], minutes, seed);
        plan.screen = screen;
        let (session, ending) = run(plan.clone(), &mut machine);
        let longest = machine.seen.iter().map(took).max().unwrap();
        prop_assert!(machine.seconds <= minutes * 60.0 + longest.as_secs_f64());
        let mut orders = Vec::new();
        for step in steps(&plan, &machine.seen) {
            if let Step::Pair(order) = step {
                orders.push(format!("{:?} {}", order.stage, order.number));
            }
        }
        let all = orders.len();
        orders.sort();
        orders.dedup();
        prop_assert_eq!(orders.len(), all);
        let proved: Row = session.accepted().iter().copied().collect();
        match ending {
            Ending::Kept { row } => {
                prop_assert_eq!(&row, &proved);
                prop_assert_eq!(&machine.kept, &row);
                prop_assert!(session.gain().unwrap().said > 0.0);
                prop_assert!(breaks.is_none_or(|at| !row.contains(&at)));
            }
            _ => prop_assert!(machine.kept.is_empty()),
        }
        let spent: f64 = session.proofs().iter().map(|proof| match proof.end {
            Some(assay_tune::ProofEnd::Better) => 0.0,
            _ => proof.alpha,
        }).sum();
        prop_assert!(spent <= 0.05 + 1e-9, "level {spent}");
    }
}

fn took(seen: &StepOutcome) -> Nanos {
    match seen {
        StepOutcome::SetUp { took }
        | StepOutcome::Visit { took, .. }
        | StepOutcome::Diagnosed { took, .. }
        | StepOutcome::Alone { took, .. }
        | StepOutcome::Pair { took, .. }
        | StepOutcome::Kept { took }
        | StepOutcome::Reverted { took } => *took,
    }
}

#[test]
fn a_whole_that_the_clock_ends_is_judged_by_the_pairs_that_there_are() {
    let world = with(2, &[(0, 0.5)]);
    let mut machine = machine(world, Kind::Even, 1);
    let mut session = TuneSession::begin(plan(&[MORE], &[0.4; 2], 60.0, 1)).unwrap();
    let mut measured = 0;
    // The machine becomes so slow in the whole that the time ends with its fourteenth pair.
    carry_out(&mut session, &mut machine).unwrap();
    let mut again = TuneSession::begin(session.plan().clone()).unwrap();
    for seen in machine.seen.clone() {
        let is_whole =
            matches!(again.next(), Step::Pair(order) if matches!(order.stage, Stage::Whole { .. }));
        let seen = match seen {
            StepOutcome::Pair {
                outcome, figures, ..
            } if is_whole => {
                measured += 1;
                let seconds = if measured == 14 { 3600 } else { 0 };
                StepOutcome::Pair {
                    outcome,
                    figures,
                    took: Nanos(seconds * 1_000_000_000),
                }
            }
            seen => seen,
        };
        if again.ending().is_some() {
            break;
        }
        again.observe(seen).unwrap();
    }
    assert_eq!(measured, 14);
    assert_eq!(
        again.ending(),
        Some(&Ending::Kept {
            row: Row::from([0])
        })
    );
    assert_eq!(again.wholes()[0].pairs.len(), 14);
}
