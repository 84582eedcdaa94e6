use super::*;
use crate::noise;
use proptest::prelude::*;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

fn points(logs: impl IntoIterator<Item = f64>) -> Vec<RunFigure> {
    let point = |(at, log)| RunFigure {
        log,
        // The tie-breaker must not depend on the order of the figures.
        tie: (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
    };
    logs.into_iter().enumerate().map(point).collect()
}

/// Without a change every order of a few runs is equally likely. The mean evidence over all orders must then
/// be exactly 1; the bound on false reports depends only on this.
#[test]
fn the_evidence_is_worth_one_on_average() {
    fn orders(rest: &mut Vec<f64>, done: &mut Vec<f64>, sum: &mut f64, count: &mut f64) {
        if rest.is_empty() {
            *sum += weigh_change_points(&points(done.iter().copied())).0;
            *count += 1.0;
            return;
        }
        for at in 0..rest.len() {
            done.push(rest.remove(at));
            orders(rest, done, sum, count);
            let last = done.pop().unwrap();
            rest.insert(at, last);
        }
    }
    let (mut sum, mut count) = (0.0, 0.0);
    let mut rest: Vec<f64> = (0..8).map(f64::from).collect();
    orders(&mut rest, &mut Vec::new(), &mut sum, &mut count);
    assert!((sum / count - 1.0).abs() < 1e-9, "{}", sum / count);
}

#[test]
fn a_stake_is_spread_and_not_made_larger() {
    let total: f64 = (BEFORE..100_000).map(compute_prior).sum();
    assert!(total < 1.0 && total > 0.99, "{total}");
}

#[test]
fn a_change_is_found_where_it_is() {
    let mut random = ChaCha8Rng::seed_from_u64(19);
    let logs = (0..40).map(|run| {
        let level = if run < 20 { 0.0 } else { -0.3 };
        level + 0.05 * noise::normal(&mut random)
    });
    let found = find_shifts(&points(logs), LEVEL);
    assert_eq!(found.len(), 1, "{found:#?}");
    let shift = found[0];
    assert_eq!(shift.at, 20);
    assert!(shift.between[0] <= 20 && shift.between[1] >= 20);
    assert!(shift.noticed < 30, "{shift:?}");
    let interval = shift.interval.unwrap();
    let truth = (-0.3f64).exp();
    assert!(interval.low < truth && truth < interval.high, "{shift:?}");
    assert!(interval.high < 0.8, "{shift:?}");
}

/// A change and its reversal are two shifts, each found at its run.
#[test]
fn a_change_and_its_end_are_two() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let logs = (0..60).map(|run| {
        let level = if (20..40).contains(&run) { 0.5 } else { 0.0 };
        level + 0.03 * noise::normal(&mut random)
    });
    let found = find_shifts(&points(logs), LEVEL);
    let at: Vec<usize> = found.iter().map(|shift| shift.at).collect();
    assert_eq!(at, [20, 40], "{found:#?}");
    assert!((found[0].ratio * found[1].ratio - 1.0).abs() < 0.05);
}

/// One slow run in twenty is noise, however slow it is, and so is a slow last run.
#[test]
fn a_run_that_was_slow_is_no_change() {
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let logs = (0..60).map(|run| {
        let slow = if run % 20 == 19 { -3.0 } else { 0.0 };
        slow + 0.05 * noise::normal(&mut random)
    });
    assert_eq!(find_shifts(&points(logs), LEVEL), []);
}

/// Recorded noise of a shared machine: runs of five slots each, drawn in random order.
#[test]
fn on_recorded_noise_the_promise_is_kept() {
    for record in [noise::direct(), noise::fsync()] {
        let noise::Noise::Recorded(slots) = record else {
            unreachable!("they are recorded")
        };
        let mut random = ChaCha8Rng::seed_from_u64(11);
        let series = 400;
        let mut reported = 0;
        for _ in 0..series {
            let logs = (0..40).map(|_| {
                let from = random.random_range(0..slots.len());
                let five = (from..from + 5).map(|at| slots[at % slots.len()].exp());
                (five.sum::<f64>() / 5.0).ln()
            });
            reported +=
                usize::from(!find_shifts(&points(logs.collect::<Vec<_>>()), LEVEL).is_empty());
        }
        // At a true rate of 1 %, 12 of 400 would occur once in 3,000 tests.
        assert!(reported < 12, "{reported} of {series}");
    }
}

#[test]
fn equal_figures_are_no_change() {
    assert_eq!(find_shifts(&points(vec![1.0; 100]), LEVEL), []);
    assert_eq!(find_shifts(&[], LEVEL), []);
}

proptest! {
    /// Any series can be processed, and each shift refers to runs in ascending order.
    #[test]
    fn any_series_is_read(logs in proptest::collection::vec(-50.0f64..50.0, 0..60), level in 0.001f64..0.9) {
        let found = find_shifts(&points(logs.clone()), level);
        let mut last = 0;
        for shift in found {
            prop_assert!(shift.at > last && shift.at < logs.len());
            prop_assert!(shift.noticed >= shift.at && shift.noticed < logs.len());
            prop_assert!(shift.evidence >= 1.0 / level);
            prop_assert!(shift.ratio.is_finite());
            last = shift.at;
        }
    }

    /// The negated series has the same shifts, in the opposite direction.
    #[test]
    fn up_and_down_are_alike(logs in proptest::collection::vec(-5.0f64..5.0, 0..30)) {
        let points = points(logs);
        let turned = |point: &RunFigure| RunFigure { log: -point.log, tie: !point.tie };
        let up = find_shifts(&points, 0.5);
        let down = find_shifts(&points.iter().map(turned).collect::<Vec<_>>(), 0.5);
        let places = |all: &[FigureShift]| all.iter().map(|shift| shift.at).collect::<Vec<_>>();
        prop_assert_eq!(places(&up), places(&down));
    }
}
