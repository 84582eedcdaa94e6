//! Compares the results with the results of metafor (written by `fixtures/metafor.R`), and tests general properties.

use super::*;
use proptest::prelude::*;
use serde_json::Value;

fn numbers(value: &Value) -> Vec<f64> {
    let all = value.as_array().unwrap().iter();
    all.map(|one| one.as_f64().unwrap()).collect()
}

fn machines(case: &Value) -> Vec<MeasuredEffect> {
    let (owner, effect, variance) = (
        numbers(&case["owner"]),
        numbers(&case["effect"]),
        numbers(&case["variance"]),
    );
    let rows = owner.iter().zip(&effect).zip(&variance);
    rows.map(|((owner, effect), variance)| MeasuredEffect {
        owner: *owner as usize - 1,
        effect: *effect,
        variance: *variance,
    })
    .collect()
}

/// Compares a value with the value of metafor. The tolerance is 1 in 100,000, because metafor's optimisers stop
/// slightly before the maximum.
fn near(what: &str, ours: f64, theirs: &Value, scale: f64) {
    let theirs = theirs.as_f64().unwrap();
    let apart = (ours - theirs).abs();
    assert!(apart <= 2e-5 * scale, "{what}: {ours} and {theirs}");
}

#[test]
fn what_metafor_says() {
    let fixture: Value = serde_json::from_str(include_str!("../../fixtures/metafor.json")).unwrap();
    let cases = fixture["cases"].as_array().unwrap();
    assert!(cases.len() >= 9);
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let data = machines(case);
        let estimate = estimate(&data).unwrap();
        let fit = estimate.fit;
        assert_eq!(fit.method, Method::Reml);
        let spread = data.iter().map(|one| one.variance).sum::<f64>() / data.len() as f64;
        let variance = spread + fit.between();
        near(name, fit.mean, &case["mean"], variance.sqrt());
        if case["owners2"].is_null() {
            near(name, fit.between(), &case["tau2"], variance);
            near(name, estimate.se, &case["se"], variance.sqrt());
            near(name, estimate.mean[0], &case["low"], variance.sqrt());
            near(name, estimate.mean[1], &case["high"], variance.sqrt());
            let paule_mandel = fit::paule_mandel(&data, 1.0, fit.owners as f64 - 1.0);
            near(name, paule_mandel, &case["paule_mandel"], variance);
        } else {
            near(name, fit.between_owners, &case["owners2"], variance);
            near(name, fit.between_machines, &case["tau2"], variance);
            near(name, fit.ordinary_se, &case["se"], variance.sqrt());
        }
    }
}

fn fleet() -> impl Strategy<Value = Vec<MeasuredEffect>> {
    let machine = (-0.5..0.5_f64, 1e-6..0.05_f64);
    prop::collection::vec((prop::collection::vec(machine, 1..4)).boxed(), 5..12).prop_map(
        |owners| {
            let mut all = Vec::new();
            for (owner, machines) in owners.iter().enumerate() {
                all.extend(machines.iter().map(|(effect, variance)| MeasuredEffect {
                    owner,
                    effect: *effect,
                    variance: *variance,
                }));
            }
            all
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_holds_of_any_fleet(data in fleet(), shift in -0.3..0.3_f64) {
        let found = estimate(&data).unwrap();
        let predicted = found.prediction.interval();
        prop_assert!(found.se >= found.fit.ordinary_se);
        prop_assert!(found.mean[0] <= found.fit.mean && found.fit.mean <= found.mean[1]);
        prop_assert!(predicted[0] < predicted[1]);
        prop_assert!((found.prediction.below(predicted[0]) - 0.025).abs() < 1e-6);
        prop_assert!((0.0..=1.0).contains(&found.prediction.below(0.03)));
        // If all effects shift, the result shifts with them.
        let moved: Vec<MeasuredEffect> = data
            .iter()
            .map(|one| MeasuredEffect { effect: one.effect + shift, ..*one })
            .collect();
        let moved = estimate(&moved).unwrap();
        prop_assert!((moved.fit.mean - found.fit.mean - shift).abs() < 1e-5);
        // The order of the machines does not matter.
        let turned: Vec<MeasuredEffect> = data.iter().rev().copied().collect();
        prop_assert!((estimate(&turned).unwrap().fit.mean - found.fit.mean).abs() < 1e-6);
        let without = without_each(&data);
        prop_assert_eq!(without.len(), found.fit.owners);
        prop_assert!(without.iter().all(Option::is_some));
    }
}

#[test]
fn few_owners_say_nothing() {
    let one = |owner, effect| MeasuredEffect {
        owner,
        effect,
        variance: 1e-4,
    };
    // Twenty machines of four owners count as four.
    let many: Vec<MeasuredEffect> = (0..20).map(|number| one(number % 4, 0.1)).collect();
    assert!(estimate(&many).is_none());
    assert!(fit_model(&[]).is_none() && fit_model(&many[..1]).is_none());
    assert!(fit_model(&[one(0, 0.1), one(2, 0.1), one(2, 0.2)]).is_none());
    assert!(fit_model(&[one(0, f64::NAN), one(1, 0.1)]).is_none());
    let none = MeasuredEffect {
        variance: 0.0,
        ..one(1, 0.1)
    };
    assert!(fit_model(&[one(0, 0.1), none]).is_none());
    // An owner index that is too large.
    assert!(fit_model(&[one(0, 0.1), one(usize::MAX - 1, 0.1)]).is_none());
}

#[test]
fn equal_machines_do_not_differ() {
    let equal: Vec<MeasuredEffect> = (0..6)
        .map(|owner| MeasuredEffect {
            owner,
            effect: 0.05,
            variance: 1e-4,
        })
        .collect();
    let found = estimate(&equal).unwrap();
    assert!(found.fit.between() < 1e-9);
    assert!((found.fit.mean - 0.05).abs() < 1e-12);
}
