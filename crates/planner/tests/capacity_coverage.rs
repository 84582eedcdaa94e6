//! The interval of dates holds what it says, for histories that are no line.

#[path = "../../../bench/plan/histories.rs"]
mod histories;

use histories::{KINDS, ask};

#[test]
fn dates_hold_for_steps_growth_and_random_walks() {
    // `bench/plan/coverage` makes the table of the book with more of them. A line through all points held
    // a tenth of the dates of random walks and growth.
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
