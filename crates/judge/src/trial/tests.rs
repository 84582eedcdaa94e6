//! The rule on constructed pairs.

use super::*;
use assay_model::trial::Verdict;

pub(super) fn rule() -> Rule {
    Rule {
        margin: 0.03,
        guards: Vec::new(),
        max_pairs: 60,
        alpha: 0.05,
        seed: 1,
        safety_broken: None,
        unproved: None,
        design: Design::Interleaved,
        aa: false,
    }
}

pub(super) fn measured(effects: &[f64]) -> Vec<PairOutcome> {
    let pair = |effect: &f64| PairOutcome::Measured {
        effect: *effect,
        guards: Vec::new(),
    };
    effects.iter().map(pair).collect()
}

#[test]
fn six_equal_gains_are_better_and_five_are_nothing() {
    for seed in 0..20 {
        let rule = Rule { seed, ..rule() };
        let five = judge(&rule, &measured(&[0.1; 5]));
        assert_eq!((five.verdict, five.done), (Verdict::Undecided, false));
        let six = judge(&rule, &measured(&[0.1; 6]));
        assert_eq!(
            (six.verdict, six.done),
            (Verdict::Better, true),
            "{}",
            six.reason
        );
    }
}

#[test]
fn five_gains_and_one_equal_loss_are_nothing() {
    for at in 0..6 {
        let mut effects = [0.1; 6];
        effects[at] = -0.1;
        let judgement = judge(&rule(), &measured(&effects));
        assert_eq!(
            judgement.verdict,
            Verdict::Undecided,
            "{}",
            judgement.reason
        );
        assert!(!judgement.done);
    }
}
