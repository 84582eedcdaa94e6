//! The two tests as one: sign flips for a trial with a planned end, the e-process for one without.

use super::evidence;
use super::flips::{Flips, Weigh};
use super::looks::{self, At};

/// A test of "above 0" at any look, with the looks that were reached.
pub(super) struct Test {
    kind: Kind,
    /// The looks.
    pub looks: Vec<At>,
}

enum Kind {
    Flips(Flips),
    Evidence(f64),
}

impl Test {
    /// Sign flips.
    pub(super) fn flips(seed: u64, alpha: f64, looks: Vec<At>) -> Self {
        Self {
            kind: Kind::Flips(Flips::new(seed, alpha)),
            looks,
        }
    }

    /// The e-process.
    pub(super) fn evidence(alpha: f64, looks: Vec<At>) -> Self {
        Self {
            kind: Kind::Evidence(alpha),
            looks,
        }
    }

    /// The first look at which `x > 0` is proved.
    pub(super) fn rejects(&self, x: &[f64]) -> Option<usize> {
        self.rejects_by(x, self.looks.len())
    }

    /// The same among the first `looks` looks.
    pub(super) fn rejects_by(&self, x: &[f64], looks: usize) -> Option<usize> {
        self.at(x, &self.looks[..looks], Weigh::Bounded)
    }

    /// The same with what is left of the level when [`Test::whole_rejects`] is asked as well.
    pub(super) fn shared_rejects(&self, x: &[f64]) -> Option<usize> {
        self.at(x, &looks::without_total(&self.looks), Weigh::Bounded)
    }

    /// The first look at which the sum of `x` itself, wild values and all, is proved to be above 0,
    /// with a share of the level. The e-process bets on bounded values only and proves no such thing.
    pub(super) fn whole_rejects(&self, x: &[f64]) -> Option<usize> {
        match self.kind {
            Kind::Flips(_) => self.at(x, &looks::for_total(&self.looks), Weigh::Whole),
            Kind::Evidence(_) => None,
        }
    }

    fn at(&self, x: &[f64], looks: &[At], weigh: Weigh) -> Option<usize> {
        let x = &x[..looks.last()?.pairs.min(x.len())];
        match &self.kind {
            Kind::Flips(flips) => flips.rejects(x, looks, weigh),
            Kind::Evidence(alpha) => evidence::rejects(x, looks, *alpha),
        }
    }
}
