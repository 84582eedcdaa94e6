//! Tests which bundles are rejected, how bundles are combined, and the combined effects.

use crate::bundle::{
    Bundle, BundleMachine, BundlePlan, BundleTrial, FORMAT, Pair, TrialEnd, Without,
};
use crate::{BundleError, Conflict, OwnerKey, Pool, pool_effects, read};
use assay_model::advice::Moderator;
use assay_model::trial::Verdict;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn key(number: u8) -> OwnerKey {
    OwnerKey::of([number; 32]).unwrap()
}

fn trial(key: &OwnerKey, name: u64, effects: &[f64]) -> BundleTrial {
    BundleTrial {
        id: key.name("trial", &name.to_string()),
        plan: BundlePlan {
            advice: "noatime".to_owned(),
            page: None,
            parameters: BTreeMap::new(),
            change: "mount-option".to_owned(),
            both_same: false,
            metric: "iops".parse().unwrap(),
            margin: 0.03,
            alpha: 0.05,
            slot_ms: 3000,
            washout_ms: 1000,
            max_pairs: 60,
            seed: name,
            coins: "AB".repeat(30),
        },
        assay: "0.2".to_owned(),
        kernel: Some("6.1".to_owned()),
        fio: Some("3.33".to_owned()),
        moderators: BTreeMap::from([(Moderator::FileSystem, "ext4".to_owned())]),
        pairs: effects.iter().map(|one| Pair::Effect(*one)).collect(),
        ended: TrialEnd::Done,
        verdict: Verdict::Undecided,
    }
}

fn bundle(key: &OwnerKey, trials: Vec<BundleTrial>) -> Bundle {
    Bundle {
        format: FORMAT.to_owned(),
        owner: key.owner(),
        simulated: false,
        assay: "0.2.0".to_owned(),
        machines: vec![BundleMachine {
            id: key.name("machine", "x"),
            trials,
        }],
    }
}

#[test]
fn what_is_written_is_read() {
    let key = key(1);
    let mut one = trial(&key, 1, &[0.01, -0.02]);
    one.pairs.push(Pair::Without(Without::FailedChanged));
    let bundle = bundle(&key, vec![one]);
    let bytes = key.write(&bundle).unwrap();
    assert_eq!(read(&bytes).unwrap(), bundle);
    assert_eq!(key.write(&bundle).unwrap(), bytes);
}

#[test]
fn attack_a_bundle_that_was_changed_is_refused() {
    let key = key(1);
    let bytes = key
        .write(&bundle(&key, vec![trial(&key, 1, &[0.01])]))
        .unwrap();
    for place in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 1;
        assert!(read(&changed).is_err(), "byte {place}");
        assert!(read(&bytes[..place]).is_err(), "cut at {place}");
    }
    assert!(matches!(
        read(&vec![b'x'; crate::LONGEST + 1]),
        Err(BundleError::Long)
    ));
    // A valid signature of another owner.
    let foreign = OwnerKey::of([2; 32]).unwrap();
    let other = bundle(&key, vec![trial(&key, 1, &[0.01])]);
    assert!(matches!(
        foreign.write(&other),
        Err(BundleError::Foreign { .. })
    ));
    let tried = 2 * bytes.len() as u64 + 2;
    assay_testing::attacked(
        "bundles of a pool that were changed, cut or signed by another",
        tried,
        tried,
    );
}

#[test]
fn attack_what_cannot_be_true_is_refused() {
    let key = key(1);
    let good = bundle(&key, vec![trial(&key, 1, &[0.01])]);
    let attempts: Vec<fn(&mut Bundle)> = vec![
        |b| b.format.push('0'),
        |b| b.assay = "\u{1b}[31m".to_owned(),
        |b| b.machines[0].id = "host.example.org".to_owned(),
        |b| b.machines[0].trials[0].id.make_ascii_uppercase(),
        |b| b.machines[0].trials[0].pairs = vec![Pair::Effect(8.0)],
        |b| b.machines[0].trials[0].pairs = vec![Pair::Effect(0.0); 61],
        |b| b.machines[0].trials[0].plan.advice = "../../etc".to_owned(),
        |b| b.machines[0].trials[0].plan.margin = 2.0,
        |b| b.machines[0].trials[0].plan.max_pairs = u32::MAX,
        |b| b.machines[0].trials[0].plan.coins.replace_range(..1, "C"),
        |b| b.machines[0].trials[0].plan.coins.truncate(3),
        |b| b.machines[0].trials[0].plan.slot_ms = u64::MAX,
        |b| b.machines[0].trials[0].kernel = Some("x".repeat(65)),
        |b| {
            let plan = &mut b.machines[0].trials[0].plan;
            plan.parameters
                .insert("a".to_owned(), "<script>".to_owned());
        },
        |b| {
            let again = b.machines[0].clone();
            b.machines.push(again);
        },
        |b| {
            let again = b.machines[0].trials[0].clone();
            b.machines[0].trials.push(again);
        },
    ];
    for (number, attempt) in attempts.iter().enumerate() {
        let mut bad = good.clone();
        attempt(&mut bad);
        assert!(key.write(&bad).is_err(), "attempt {number}");
    }
    // Values that the type cannot represent are rejected by the format check.
    let text = serde_json::to_string(&good).unwrap();
    for (from, to) in [
        ("0.01", "1e999"),
        ("0.01", "null"),
        ("\"simulated\"", "\"host\":\"box\",\"simulated\""),
        ("file-system", "serial-number"),
    ] {
        assert!(text.contains(from), "{from}");
        assert!(
            crate::parse_body(text.replacen(from, to, 1).as_bytes()).is_err(),
            "{to}"
        );
    }
    let tried = attempts.len() as u64 + 4;
    assay_testing::attacked(
        "bundles of a pool with figures and names that cannot be true",
        tried,
        tried,
    );
}

#[test]
fn a_trial_counts_once_and_is_not_changed() {
    let key = key(1);
    let mut pool = Pool::default();
    let first = trial(&key, 1, &[0.01, 0.02]);
    let mut cut = first.clone();
    cut.ended = TrialEnd::CutOff;
    cut.pairs = vec![Pair::Effect(0.01), Pair::Without(Without::Void)];
    assert_eq!(pool.add(&bundle(&key, vec![cut.clone()])).unwrap().new, 1);
    // The trial was resumed: the void pair was measured again.
    assert_eq!(
        pool.add(&bundle(&key, vec![first.clone()])).unwrap().longer,
        1
    );
    assert_eq!(
        pool.add(&bundle(&key, vec![first.clone()])).unwrap().known,
        1
    );
    // An older bundle arrives late.
    assert_eq!(pool.add(&bundle(&key, vec![cut])).unwrap().known, 1);
    let mut better = first.clone();
    better.pairs = vec![Pair::Effect(0.5), Pair::Effect(0.02)];
    let refused = pool.add(&bundle(&key, vec![trial(&key, 2, &[0.1]), better]));
    assert!(matches!(refused, Err(Conflict::Changed { .. })));
    assert_eq!(pool.trials().count(), 1, "whole or not at all");
    // Another owner submits the trial.
    let thief = OwnerKey::of([2; 32]).unwrap();
    let mut stolen = first;
    stolen.id = thief.name("trial", "1");
    let refused = pool.add(&bundle(&thief, vec![stolen.clone()]));
    assert!(matches!(refused, Err(Conflict::Copied { .. })));
    // The same trial under two names in one bundle.
    let mut again = trial(&key, 7, &[0.1]);
    let once = again.clone();
    again.id = key.name("trial", "another");
    assert!(pool.add(&bundle(&key, vec![once, again])).is_err());
    assert_eq!(pool.trials().count(), 1, "whole or not at all");
}

fn of_owners(owners: u8, machines: u64) -> Pool {
    let mut pool = Pool::default();
    for number in 1..=owners {
        let key = key(number);
        for machine in 0..machines {
            let name = u64::from(number) * 1000 + machine;
            let centre = 0.05 + 0.002 * f64::from(number) + 0.001 * machine as f64;
            let mut told = bundle(
                &key,
                vec![trial(
                    &key,
                    name,
                    &[centre - 0.01, centre, centre + 0.01, centre],
                )],
            );
            told.machines[0].id = key.name("machine", &machine.to_string());
            pool.add(&told).unwrap();
        }
    }
    pool
}

#[test]
fn below_five_owners_nothing_but_their_number_is_told() {
    let four = pool_effects(&of_owners(4, 9), "noatime", 0.03, &[Moderator::FileSystem]);
    assert_eq!((four[0].owners, four[0].machines), (4, 36));
    assert!(four[0].effect.is_none() && four[0].groups.is_empty());
    let five = pool_effects(&of_owners(5, 2), "noatime", 0.03, &[Moderator::FileSystem]);
    let effect = five[0].effect.as_ref().unwrap();
    assert!(effect.prediction.low < effect.mean && effect.mean < effect.prediction.high);
    assert!(effect.gain_more > 0.9 && effect.lose_more < 0.05);
    assert_eq!(five[0].groups.len(), 1);
    assert!(
        pool_effects(&of_owners(5, 1), "noatime", 0.03, &[])[0]
            .groups
            .is_empty()
    );
    assert!(pool_effects(&of_owners(5, 1), "another", 0.03, &[]).is_empty());
}

#[test]
fn what_was_never_finished_is_counted_and_its_pairs_are_in_it() {
    let mut pool = of_owners(6, 1);
    let key = key(9);
    let mut stopped = trial(&key, 1, &[0.2, 0.21, 0.19]);
    stopped.ended = TrialEnd::Stopped;
    let mut cut = trial(&key, 2, &[]);
    cut.ended = TrialEnd::CutOff;
    let mut noise = trial(&key, 3, &[0.0, 0.01, 0.02]);
    noise.plan.both_same = true;
    let mut told = bundle(&key, vec![stopped, noise]);
    told.machines.push(BundleMachine {
        id: key.name("machine", "y"),
        trials: vec![cut],
    });
    pool.add(&told).unwrap();
    let all = pool_effects(&pool, "noatime", 0.03, &[]);
    let funnel = all[0].funnel;
    assert_eq!((funnel.started, funnel.done), (8, 6));
    assert_eq!((funnel.stopped, funnel.cut_off), (1, 1));
    assert_eq!(funnel.without_figure, 1);
    assert_eq!((all[0].owners, all[0].machines), (7, 7));
    let without = all[0]
        .effect
        .as_ref()
        .unwrap()
        .without_one
        .as_ref()
        .unwrap();
    assert_eq!(without.owner, key.owner());
}

#[test]
fn simulated_trials_stay_apart() {
    let mut pool = of_owners(5, 1);
    let key = key(8);
    let mut told = bundle(&key, vec![trial(&key, 1, &[0.9, 0.8, 0.85])]);
    told.simulated = true;
    pool.add(&told).unwrap();
    let all = pool_effects(&pool, "noatime", 0.03, &[]);
    assert_eq!(all.len(), 2);
    assert!(!all[0].simulated && all[1].simulated);
    assert_eq!((all[0].owners, all[1].owners), (5, 1));
}

proptest! {
    #[test]
    fn the_order_of_bundles_does_not_matter(order in Just((0..12_usize).collect::<Vec<_>>()).prop_shuffle()) {
        let keys = [key(1), key(2)];
        let told = |number: usize| {
            let key = &keys[number % 2];
            let effects = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6];
            let mut one = trial(key, (number % 2) as u64, &effects[..=number / 2]);
            one.ended = TrialEnd::CutOff;
            bundle(key, vec![one])
        };
        let mut pool = Pool::default();
        for number in order {
            pool.add(&told(number)).unwrap();
        }
        let lengths: Vec<usize> = pool.trials().map(|held| held.trial.pairs.len()).collect();
        prop_assert_eq!(lengths, vec![6, 6]);
    }
}
