//! Tests failures that occur by chance, and failures that the change causes.

use super::{measured, rule};
use crate::trial::judge_trial_pairs;
use crate::trial::one_sided_failures::{CONVICT, EACH_OTHER};
use assay_model::trial::{PairOutcome, Verdict};
use rand::{RngExt as _, SeedableRng as _};

fn changed() -> PairOutcome {
    PairOutcome::FailedChanged {
        error: "connection refused".to_owned(),
    }
}

fn other() -> PairOutcome {
    PairOutcome::Failed {
        error: "no space left".to_owned(),
    }
}

#[test]
fn five_failures_with_the_change_alone_convict_it() {
    let four = judge_trial_pairs(&rule(), &vec![changed(); 4]);
    assert_eq!((four.verdict, four.done), (Verdict::Undecided, false));
    let five = judge_trial_pairs(&rule(), &vec![changed(); 5]);
    assert_eq!((five.verdict, five.done), (Verdict::Unsafe, true));
    insta::assert_snapshot!(five.reason, @"the load failed 5 times only with the change and 0 times otherwise, which is no chance; last: connection refused");
}

#[test]
fn good_pairs_in_between_acquit_nobody() {
    let mut pairs = Vec::new();
    for pair in measured(&[0.2; 5]) {
        pairs.extend([changed(), pair]);
    }
    assert_eq!(judge_trial_pairs(&rule(), &pairs).verdict, Verdict::Unsafe);
}

#[test]
fn a_failure_without_the_change_asks_for_three_more() {
    let mut pairs = vec![other()];
    pairs.extend(vec![changed(); 7]);
    assert_eq!(
        judge_trial_pairs(&rule(), &pairs).verdict,
        Verdict::Undecided
    );
    pairs.push(changed());
    assert_eq!(judge_trial_pairs(&rule(), &pairs).verdict, Verdict::Unsafe);
}

#[test]
fn one_failure_with_the_change_is_no_proof_but_nothing_is_kept_with_it() {
    let mut pairs = measured(&[0.2; 8]);
    pairs.insert(3, changed());
    let judgement = judge_trial_pairs(&rule(), &pairs);
    assert_eq!(
        (judgement.verdict, judgement.done),
        (Verdict::Undecided, false)
    );
    assert_eq!((judgement.pairs, judgement.left_out), (8, 1));
    insta::assert_snapshot!(judgement.reason, @"22.1 % better (90 % interval +22.1 % to +22.1 %) after 8 pairs; better, but the load failed 1 time only with the change: too few to blame it, too many to keep it; last: connection refused");
    // Failures without the change as well are not caused by the change.
    pairs.insert(1, other());
    assert_eq!(judge_trial_pairs(&rule(), &pairs).verdict, Verdict::Better);
}

#[test]
fn a_failed_pair_speaks_for_no_verdict_about_figures() {
    let mut pairs = measured(&[-0.2; 6]);
    pairs.push(changed());
    assert_eq!(judge_trial_pairs(&rule(), &pairs).verdict, Verdict::Worse);
    let mut pairs = measured(&[0.2; 5]);
    pairs.extend(vec![other(); 5]);
    assert_eq!(
        judge_trial_pairs(&rule(), &pairs).verdict,
        Verdict::Undecided
    );
}

#[test]
fn a_load_that_never_works_ends_the_trial() {
    let nine = judge_trial_pairs(&rule(), &vec![other(); 9]);
    assert!(!nine.done);
    let ten = judge_trial_pairs(&rule(), &vec![other(); 10]);
    assert_eq!((ten.verdict, ten.done), (Verdict::Undecided, true));
    insta::assert_snapshot!(ten.reason, @"no pair could be measured, 10 left out; last: no space left");
}

/// The walk of one-sided failures, simulated with random signs, reaches its end in 4.75 % of all cases.
#[test]
fn chance_convicts_in_less_than_one_of_twenty() {
    let mut root = 0.5f64;
    for _ in 0..100 {
        root = f64::midpoint(1.0, root.powi(EACH_OTHER as i32 + 1));
    }
    let convicted = root.powi(CONVICT as i32);
    assert!((0.0470..0.0480).contains(&convicted), "{convicted}");
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(1);
    const WALKS: u32 = 20_000;
    let walks = (0..WALKS).filter(|_| {
        let mut at = 0i32;
        (0..300).any(|_| {
            at += if random.random() {
                1
            } else {
                -(EACH_OTHER as i32)
            };
            at >= CONVICT as i32
        })
    });
    let seen = walks.count() as f64 / f64::from(WALKS);
    assert!((seen - convicted).abs() < 0.005, "{seen} and {convicted}");
}
