//! Common interface of the two tests: sign flips for a trial with a planned end, the e-process for a trial without a
//! planned end. The tests themselves are in `sign_flips` and `e_process`.

use super::e_process;
use super::look_schedule::{self, PlannedLook};
use super::sign_flips::{PairWeight, SignFlips};

/// A sequential test of the hypothesis "not above 0" at the looks that were reached.
pub(super) struct SequentialTest {
    kind: TestKind,
    /// The looks that were reached.
    pub looks: Vec<PlannedLook>,
}

enum TestKind {
    Flips(SignFlips),
    Evidence(f64),
}

impl SequentialTest {
    /// Creates a sign-flip test.
    pub(super) fn sign_flips(seed: u64, alpha: f64, looks: Vec<PlannedLook>) -> Self {
        Self {
            kind: TestKind::Flips(SignFlips::new(seed, alpha)),
            looks,
        }
    }

    /// Creates a test by the e-process.
    pub(super) fn from_evidence(alpha: f64, looks: Vec<PlannedLook>) -> Self {
        Self {
            kind: TestKind::Evidence(alpha),
            looks,
        }
    }

    /// Returns the first look at which `x > 0` is proved; `None` if it is not proved.
    pub(super) fn find_rejection(&self, x: &[f64]) -> Option<usize> {
        self.find_rejection_by(x, self.looks.len())
    }

    /// Returns the first of the first `looks` looks at which `x > 0` is proved.
    pub(super) fn find_rejection_by(&self, x: &[f64], looks: usize) -> Option<usize> {
        self.find_rejection_at(x, &self.looks[..looks], PairWeight::Bounded)
    }

    /// Returns the first look at which `x > 0` is proved, at the part of the level that
    /// [`SequentialTest::find_sum_rejection`] does not use.
    pub(super) fn find_shared_rejection(&self, x: &[f64]) -> Option<usize> {
        self.find_rejection_at(
            x,
            &look_schedule::plan_looks_without_total(&self.looks),
            PairWeight::Bounded,
        )
    }

    /// Returns the first look at which the sum of `x` itself, outliers included, is proved to be above 0, at a part of
    /// the level. The e-process bets on bounded values only, so it never proves this.
    pub(super) fn find_sum_rejection(&self, x: &[f64]) -> Option<usize> {
        match self.kind {
            TestKind::Flips(_) => self.find_rejection_at(
                x,
                &look_schedule::plan_looks_for_total(&self.looks),
                PairWeight::Whole,
            ),
            TestKind::Evidence(_) => None,
        }
    }

    fn find_rejection_at(
        &self,
        x: &[f64],
        looks: &[PlannedLook],
        weigh: PairWeight,
    ) -> Option<usize> {
        let x = &x[..looks.last()?.pairs.min(x.len())];
        match &self.kind {
            TestKind::Flips(flips) => flips.find_rejection(x, looks, weigh),
            TestKind::Evidence(alpha) => e_process::find_rejection(x, looks, *alpha),
        }
    }
}
