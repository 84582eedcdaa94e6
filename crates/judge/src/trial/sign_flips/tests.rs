//! Compares the test with a slow direct implementation, and checks its level over all sign vectors.

use super::*;
use crate::trial::look_schedule::list_reached_looks;
use proptest::prelude::*;

/// Direct implementation of the rule, without tables: sorts all sums.
fn slowly(flips: &SignFlips, x: &[f64], looks: &[PlannedLook]) -> Option<usize> {
    let all = flips.0.len() + 1;
    let mut alive = flips.0.clone();
    let mut used = 0;
    for (index, look) in looks.iter().enumerate() {
        let x = &x[..look.pairs];
        let mut sizes: Vec<f64> = x.iter().map(|x| x.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let n = sizes.len();
        let median = f64::midpoint(sizes[(n - 1) / 2], sizes[n / 2]);
        let weights: Vec<i64> = x
            .iter()
            .map(|x| match (x.abs(), median) {
                (0.0, _) => 0,
                (_, 0.0) => 1 << 24,
                (size, median) => {
                    ((size / (2.0 * median)).tanh() * f64::from(1 << 24)).round() as i64
                }
            })
            .collect();
        let sum = |plus: &dyn Fn(usize) -> bool| -> i64 {
            let signed = weights.iter().enumerate();
            signed.map(|(j, w)| if plus(j) { *w } else { -w }).sum()
        };
        let observed = sum(&|j| x[j] >= 0.0);
        let mut sums: Vec<(i64, u64)> = alive
            .iter()
            .map(|flip| (sum(&|j| flip >> j & 1 == 1), *flip))
            .collect();
        sums.sort();
        sums.reverse();
        let q = ((look.spent * all as f64 + 1e-6) as usize - used).min(sums.len());
        if q == 0 || look.spent < 0.5f64.powi(n as i32) {
            continue;
        }
        let as_large = sums.iter().filter(|(sum, _)| *sum >= observed).count();
        if as_large < q {
            return Some(index);
        }
        alive = sums[q..].iter().map(|(_, flip)| *flip).collect();
        used += q;
    }
    None
}

/// Values with many ties and zeros, or without any.
fn values() -> impl Strategy<Value = Vec<f64>> {
    let tied = prop_oneof![Just(0.0), Just(0.1), Just(-0.1), Just(0.3), Just(0.2)];
    let free = prop_oneof![-0.5..0.5, -0.01..0.2, Just(-9.0)];
    prop_oneof![
        proptest::collection::vec(tied, 1..61),
        proptest::collection::vec(free, 1..61)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn it_is_the_rule_as_written_down(
        x in values(),
        seed in 0u64..1000,
        alpha in prop_oneof![Just(0.05), Just(0.2), Just(0.004)],
        over: bool,
    ) {
        let flips = SignFlips::with_vectors(seed, 500);
        let looks = list_reached_looks(60, alpha, x.len(), over);
        prop_assert_eq!(flips.find_rejection(&x, &looks, PairWeight::Bounded), slowly(&flips, &x, &looks));
    }

    #[test]
    fn what_is_proved_stays_proved(x in values(), seed in 0u64..1000) {
        let flips = SignFlips::with_vectors(seed, 500);
        let looks = list_reached_looks(60, 0.05, x.len(), false);
        let first = flips.find_rejection(&x, &looks, PairWeight::Bounded);
        for reached in 0..looks.len() {
            let by = flips.find_rejection(&x, &looks[..reached], PairWeight::Bounded);
            prop_assert_eq!(by, first.filter(|first| *first < reached));
        }
    }
}

/// For values of any size, the fraction of all sign vectors that is rejected at any look is at most the level. The
/// seeds are fixed, so the random flips add the same error in every run.
#[test]
fn of_all_sign_vectors_the_level_is_rejected() {
    let sizes = [
        ([0.1; 11], 0.012),
        (
            [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1],
            0.02,
        ),
        // One zero and a few very large values: hardly more than six signs count.
        (
            [5.0, 0.01, 0.02, 0.0, 0.3, 0.04, 9.0, 0.02, 0.05, 0.3, 0.1],
            0.001,
        ),
    ];
    let looks = list_reached_looks(60, 0.05, 11, false);
    assert_eq!(looks.len(), 3);
    for (sizes, least) in sizes {
        let mut rejected = 0;
        let mut all = 0;
        for seed in 0..2 {
            let flips = SignFlips::with_vectors(seed, 1000);
            for signs in 0..1u32 << 11 {
                let sign = |j: usize| if signs >> j & 1 == 1 { 1.0 } else { -1.0 };
                let x: Vec<f64> = (0..11).map(|j| sizes[j] * sign(j)).collect();
                rejected += usize::from(
                    flips
                        .find_rejection(&x, &looks, PairWeight::Bounded)
                        .is_some(),
                );
                all += 1;
            }
        }
        let share = rejected as f64 / all as f64;
        // 0.025 is the level that may be spent by the third look.
        assert!(share < 0.026, "{share} of {sizes:?}");
        assert!(
            share > least,
            "{share} of {sizes:?}: nearly nothing is ever proved"
        );
    }
}

#[test]
fn a_level_that_few_signs_cannot_reach_is_not_wasted_on_them() {
    let flips = SignFlips::new(1, 0.00125);
    let looks = list_reached_looks(60, 0.00125, 15, false);
    let first = flips
        .find_rejection(&[0.1; 15], &looks, PairWeight::Bounded)
        .map(|look| looks[look].pairs);
    assert!(matches!(first, Some(11 | 15)), "{first:?}");
}

#[test]
fn the_same_seed_gives_the_same_flips_and_another_gives_others() {
    assert_eq!(SignFlips::new(7, 0.05).0, SignFlips::new(7, 0.05).0);
    assert_ne!(SignFlips::new(7, 0.05).0, SignFlips::new(8, 0.05).0);
    assert_eq!(SignFlips::new(7, 0.05).0.len(), 9_999);
    assert_eq!(SignFlips::new(7, 0.00125).0.len(), 39_999);
}

/// The randomised order of a trial and the sign flips may use the same seed. The flips must differ from the order,
/// because otherwise the observed signs would be among the flips.
#[test]
fn flips_are_not_the_coins_of_the_same_seed() {
    let mut coins = ChaCha8Rng::seed_from_u64(7);
    let coin: u64 = coins.random();
    assert!(!SignFlips::new(7, 0.05).0.contains(&coin));
}
