//! Tests that the interval of dates has its stated coverage, even for histories that are not linear.

#[path = "../../../bench/plan/histories.rs"]
mod histories;

use histories::{KINDS, ask};

#[test]
fn dates_hold_for_steps_growth_and_random_walks() {
    // `bench/plan/coverage` computes the table of the book with more histories. An interval from a line
    // through all points contained a tenth of the dates of random walks and growth.
    for (name, kind) in KINDS {
        let found = ask(kind, 30, 15, 3);
        assert!(found.said >= 35, "{name}: {found:?}");
        assert!(found.percent() >= 80.0, "{name}: {found:?}");
    }
}

#[test]
fn a_steady_line_is_not_left_open() {
    let found = ask(KINDS[0].1, 30, 10, 4);
    assert!(found.open * 4 < found.said, "{found:?}");
}
