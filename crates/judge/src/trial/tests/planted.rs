//! Tests known effects that are added to recorded and to simulated noise. All seeds are fixed, so results are
//! reproducible; `bench/trials/run` computes the full tables.

use crate::noise;

use super::{measured, rule};
use crate::trial::{TrialRule, decide_verdict, e_process, forecast, judge_trial_pairs};
use assay_model::trial::Verdict;
use noise::{Noise, normal};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

const TRIALS: u64 = 40;

/// Returns the verdicts of simulated trials with this gain, and their mean number of pairs.
fn ends(noise: &Noise, gain: f64) -> (Vec<Verdict>, f64) {
    let ends: Vec<(Verdict, usize)> = (0..TRIALS)
        .map(|seed| {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let effects = noise.pairs(&mut random, 60, f64::ln_1p(gain));
            decide_verdict(&TrialRule { seed, ..rule() }, &measured(&effects))
        })
        .collect();
    let pairs: usize = ends.iter().map(|end| end.1).sum();
    let verdicts = ends.into_iter().map(|end| end.0).collect();
    (verdicts, pairs as f64 / TRIALS as f64)
}

fn share(ends: &[Verdict], verdict: Verdict) -> f64 {
    ends.iter().filter(|end| **end == verdict).count() as f64 / ends.len() as f64
}

#[test]
fn nothing_is_rarely_kept_whatever_the_noise() {
    for noise in [
        noise::direct(),
        noise::fsync(),
        Noise::DriftAndOutliers,
        Noise::Even(0.03),
    ] {
        let (ends, _) = ends(&noise, 0.0);
        // 5 % plus two standard errors of 40 trials.
        let kept = share(&ends, Verdict::Better);
        assert!(kept <= 0.12, "{kept} of {noise:?}");
        let worse = share(&ends, Verdict::Worse);
        assert!(worse <= 0.12, "{worse} of {noise:?}");
    }
}

#[test]
fn gains_in_recorded_noise_are_found() {
    let (ten, pairs) = ends(&noise::direct(), 0.1);
    assert!(share(&ten, Verdict::Better) >= 0.95, "{ten:?}");
    assert!(pairs <= 28.0, "{pairs}");
    let (thirty, pairs) = ends(&noise::direct(), 0.3);
    assert!(share(&thirty, Verdict::Better) == 1.0, "{thirty:?}");
    assert!(pairs <= 10.0, "{pairs}");
}

#[test]
fn losses_are_found_as_gains_are() {
    let (ends, _) = ends(&noise::direct(), -0.1);
    // Lower than for gains, because "worse in total" takes a share of the level.
    assert!(share(&ends, Verdict::Worse) >= 0.9, "{ends:?}");
}

#[test]
fn a_quiet_machine_shows_that_there_is_no_difference() {
    let (ends, pairs) = ends(&Noise::Even(0.01), 0.0);
    assert!(
        share(&ends, Verdict::NoPracticalDifference) >= 0.9,
        "{ends:?}"
    );
    assert!(pairs < 9.0, "{pairs}");
}

#[test]
fn intervals_hold_the_truth() {
    let truth = 1.1;
    let mut held = 0;
    const TRIALS: u64 = 20;
    for seed in 0..TRIALS {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let effects = noise::direct().pairs(&mut random, 30, f64::ln(truth));
        let judgement = judge_trial_pairs(&TrialRule { seed, ..rule() }, &measured(&effects));
        let interval = judgement.interval.unwrap();
        assert!((interval.confidence - 0.9).abs() < 1e-9);
        held += u64::from(interval.low <= truth && truth <= interval.high);
    }
    // 90 % minus two standard errors of 20 trials.
    assert!(held >= 15, "{held} of {TRIALS}");
}

#[test]
fn evidence_rarely_grows_from_nothing() {
    let mut false_alarms = 0;
    for seed in 0..200 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let x = noise::fsync().pairs(&mut random, 400, 0.0);
        false_alarms += u32::from(e_process::compute_wealth(&x).iter().any(|e| *e >= 20.0));
    }
    // 5 % plus two standard errors of 200 trials, each with 400 looks.
    assert!(false_alarms <= 16, "{false_alarms}");
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let x: Vec<f64> = (0..20).map(|_| 0.3 + 0.1 * normal(&mut random)).collect();
    assert!(*e_process::compute_wealth(&x).last().unwrap() > 1000.0);
}

#[test]
fn the_forecast_is_right_within_a_factor_of_two() {
    for (variation, gain) in [(0.03f64, 0.05f64), (0.03, 0.1), (0.1, 0.1)] {
        let (_, pairs) = ends(&Noise::Even(variation), gain);
        let noise = variation * 2f64.sqrt();
        let expected = f64::from(forecast::forecast_pairs_for_difference(
            noise,
            gain.ln_1p(),
            0.03f64.ln_1p(),
        ));
        assert!(
            expected < 2.0 * pairs && pairs < 2.0 * expected,
            "{expected} for {pairs}"
        );
    }
    let (_, pairs) = ends(&Noise::Even(0.03), 0.0);
    let expected = f64::from(forecast::forecast_pairs_for_equality(
        0.03 * 2f64.sqrt(),
        0.0,
        0.03f64.ln_1p(),
    ));
    assert!(
        expected < 2.0 * pairs && pairs < 2.0 * expected,
        "{expected} for {pairs}"
    );
}
