use super::*;

fn screen(candidates: usize, planned: u32) -> Screen {
    Screen {
        round: 0,
        candidates: (0..candidates).collect(),
        base: Row::from([99]),
        seed: 7,
        planned,
        pairs: Vec::new(),
    }
}

/// Measures all pairs on a simulated machine: one effect for each candidate, and an interaction `together` of the first
/// two.
fn measure(screen: &mut Screen, effects: &[f64], together: f64, noise: f64) {
    while !screen.is_over(0.0) {
        let order = screen.order();
        let value = |row: &Row| {
            let sum: f64 = row.iter().filter_map(|at| effects.get(*at)).sum();
            let both = row.contains(&0) && row.contains(&1);
            sum + if both { together } else { 0.0 }
        };
        let wobble = noise * (f64::from(order.number) * 2.4).sin();
        let effect = value(&order.changed) - value(&order.now) + wobble;
        screen.pairs.push(PairOutcome::Measured {
            effect,
            guards: Vec::new(),
            work: [1.0, effect.exp()],
        });
    }
}

#[test]
fn effects_come_out_and_an_interaction_of_two_goes_where_it_belongs() {
    let mut screen = screen(10, 32);
    let truth = [0.18, -0.15, 0.0, 0.05, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    measure(&mut screen, &truth, 0.1, 0.01);
    let shown = screen.fit();
    // An effect is that of switching a candidate on while the other is on half of the time.
    let expected = [0.23, -0.10, 0.0, 0.05];
    for (found, true_effect) in shown.effects.iter().zip(expected) {
        assert!((found - true_effect).abs() < 0.02, "{shown:?}");
    }
    assert!(shown.largest_blank.unwrap() < 0.02, "{shown:?}");
}

#[test]
fn a_pair_is_a_row_and_its_complement_around_the_base() {
    let screen = screen(10, 16);
    let order = screen.order();
    assert!(order.now.contains(&99) && order.changed.contains(&99));
    let both: Vec<usize> = order.now.intersection(&order.changed).copied().collect();
    assert_eq!(both, [99]);
    assert_eq!(order.now.len() + order.changed.len(), 12);
}

#[test]
fn columns_are_balanced_and_orthogonal_over_a_block() {
    let screen = screen(13, 16);
    let design = screen.design();
    for one in 0..15 {
        for other in 0..one {
            let agree = design.iter().filter(|row| row[one] == row[other]).count();
            assert_eq!(agree, 8);
        }
        assert_eq!(design.iter().filter(|row| row[one]).count(), 8);
    }
}

#[test]
fn the_matrix_has_room_for_a_blank() {
    let orders = [6, 7, 14, 15, MOST_CANDIDATES, 31].map(matrix_order);
    assert_eq!(
        orders,
        [Some(8), Some(16), Some(16), Some(32), Some(32), None]
    );
}
