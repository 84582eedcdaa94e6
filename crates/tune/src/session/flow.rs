//! Order of the steps of the search: each candidate alone once, screens, proofs. `baseline_result.rs` handles the
//! baseline before the search, and `whole.rs` the proof of all accepted changes after the search.

use super::TuneSession;
use super::sizes::{SCREEN_ERROR, SHRINK, fit, next_level};
use crate::baseline;
use crate::budget::{Row, add, times};
use crate::candidate::Toggle;
use crate::hold::Hold;
use crate::left_out::LeftOut;
use crate::proof::{ENOUGH, Proof, ProofEnd, alternations_for, least_patience};
use crate::screen::{LEAST_CANDIDATES, MOST_CANDIDATES, Screen};
use crate::seeds;
use crate::step::Stage;
use assay_model::Nanos;
use assay_model::trial::{MAX_PAIRS, PairOutcome};
use serde::{Deserialize, Serialize};

/// Maximum number of candidates that are proved after a screen.
const CHOSEN: usize = 5;
/// Minimum number of pairs of a proof. With fewer pairs, no look can decide at the error levels of a session.
const LEAST_PROOF: u32 = 11;
/// Quantile of the normal distribution at 0.9.
const UPPER: f64 = 1.28;
/// Maximum number of alternations of a pair in the first round. Each later round permits four times as many.
const MOST_AT_FIRST: u32 = 4;
/// Divisor of the remaining time: one part in this many may be spent on the patience of proofs, that is on the pairs
/// before candidates may be given up.
const PATIENCE_SHARE: u32 = 4;
/// Maximum number of alternations before a candidate may be given up.
const MOST_PATIENCE: u32 = 24;
/// Divisor of the budget: with accepted changes, a candidate is tried again only if more than this part is left.
const RETRY_SHARE: u64 = 2;
/// Fraction of the proved gains that is expected in the final proof. The session uses it to decide whether the goal is
/// probably reached.
const COUNTED_ON: f64 = 0.8;

/// Phase of a session, with the state that only this phase needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "phase")]
pub enum SessionPhase {
    /// No step has been executed yet.
    SetUp,
    /// Visits of the baseline are measured.
    Visiting,
    /// The diagnosis is measured.
    Diagnosing,
    /// Each candidate is tried once alone, to find candidates that break the load.
    Alone {
        /// Position of the candidate in the order.
        at: usize,
    },
    /// The candidates of a screen are measured in the same pairs.
    Screening {
        /// Screen that is measured.
        screen: Screen,
    },
    /// Candidates are proved one after another.
    Proving {
        /// Proof that is measured: new pairs of one row of settings against another (see `proof.rs`).
        proof: Proof,
        /// Candidates that are proved after this proof.
        queue: Vec<usize>,
        /// Error level that is available for this proof and the proofs of the queue.
        level: f64,
    },
    /// All accepted changes are proved together.
    Whole {
        /// Current attempt to prove all changes together.
        proof: Proof,
    },
    /// The proved changes are held, to see whether their gain lasts.
    Holding {
        /// Hold that is measured.
        hold: Hold,
    },
    /// The accepted changes are being kept.
    Keeping,
    /// All changes are being reverted.
    Reverting,
    /// The session has ended.
    Done,
}

impl TuneSession {
    /// Handles the outcome of trying one candidate alone.
    pub(super) fn note_alone(&mut self, error: Option<String>) {
        let SessionPhase::Alone { at } = self.phase else {
            return;
        };
        let next = match error {
            Some(error) => {
                let candidate = self.order.remove(at);
                self.left_out
                    .insert(candidate, LeftOut::FailsLoad { error });
                at
            }
            None => at + 1,
        };
        if next < self.order.len() {
            self.phase = SessionPhase::Alone { at: next };
        } else {
            self.open_round();
        }
    }

    /// Begins a round of the search, or ends the search.
    fn open_round(&mut self) {
        if self.plan.together {
            self.accepted.clone_from(&self.order);
            return self.finish_search();
        }
        let Some(level) = self.round_level() else {
            return self.finish_search();
        };
        let mut pool: Vec<usize> = self
            .order
            .iter()
            .copied()
            .filter(|at| self.is_open(*at))
            .collect();
        if self.round > 0 {
            pool.sort_by(|a, b| self.expected_gain(*b).total_cmp(&self.expected_gain(*a)));
        }
        if pool.is_empty() {
            return self.finish_search();
        }
        let columns = self.columns(&pool);
        if self.plan.screen
            && columns.len() >= LEAST_CANDIDATES
            && let Some(planned) = self.screen_pairs(&columns.iter().copied().collect())
        {
            self.phase = SessionPhase::Screening {
                screen: Screen {
                    round: self.round,
                    candidates: columns,
                    base: self.accepted_row(),
                    seed: seeds::derive(self.plan.seed, "screen", self.round),
                    planned,
                    pairs: Vec::new(),
                },
            };
            return;
        }
        self.start_proof(pool, level);
    }

    /// Returns whether a candidate may still be tried: neither accepted nor decided by a proof. A candidate that was
    /// given up may be tried again after a screen, or if its pairs were only too noisy and time is left.
    fn is_open(&self, candidate: usize) -> bool {
        let settled = |proof: &Proof| {
            let of = matches!(proof.stage, Stage::Proof { candidate: at, .. } if at == candidate);
            let open = match proof.end {
                Some(ProofEnd::GivenUp) => {
                    self.plan.screen || (self.has_time_to_retry() && proof.may_gain(self.terms()))
                }
                // It showed a relevant gain in too few pairs.
                Some(ProofEnd::Open) => proof.effect() > self.plan.goal.margin.ln_1p(),
                _ => false,
            };
            of && !open
        };
        !self.accepted.contains(&candidate) && !self.proofs.iter().any(settled)
    }

    /// Returns whether there is time to try a candidate again. With accepted changes, half of the budget must be left,
    /// because their proof comes first.
    fn has_time_to_retry(&self) -> bool {
        let half = Nanos(self.plan.budget.0 / RETRY_SHARE);
        self.accepted.is_empty() || self.clock.left(self.reserve()) > half
    }

    /// Selects the candidates of a screen from `pool`. Selects only candidates that are cheap to apply, that can be
    /// combined with each other, and that can be combined with the accepted candidates.
    fn columns(&self, pool: &[usize]) -> Vec<usize> {
        let all = &self.plan.candidates;
        let mut columns: Vec<usize> = Vec::new();
        for at in pool {
            let collides = |other: &usize| all[*other].collides(&all[*at]);
            let cheap = matches!(all[*at].toggle, Toggle::Cheap | Toggle::Reload);
            let room = columns.len() < MOST_CANDIDATES;
            if cheap && room && !columns.iter().chain(&self.accepted).any(collides) {
                columns.push(*at);
            }
        }
        columns
    }

    /// Handles the outcome of a pair, in any phase.
    pub(super) fn note_pair(
        &mut self,
        outcome: PairOutcome,
        figures: Option<[f64; 2]>,
        took: Nanos,
    ) {
        match std::mem::replace(&mut self.phase, SessionPhase::Done) {
            SessionPhase::Screening { mut screen } => {
                screen.pairs.push(outcome);
                if screen.is_over(SCREEN_ERROR) || screen.is_broken() || self.is_late() {
                    self.choose(screen);
                } else {
                    self.phase = SessionPhase::Screening { screen };
                }
            }
            SessionPhase::Proving {
                mut proof,
                queue,
                level,
            } => {
                proof.pairs.push(outcome);
                proof.figures.extend(figures);
                let late = self.is_late().then_some(ProofEnd::Open);
                proof.end = proof.examine_part(self.terms()).or(late);
                if proof.end.is_none() {
                    self.phase = SessionPhase::Proving {
                        proof,
                        queue,
                        level,
                    };
                } else {
                    self.end_proof(proof, queue, level);
                }
            }
            SessionPhase::Whole { mut proof } => {
                proof.pairs.push(outcome);
                proof.figures.extend(figures);
                if self.clock.left(self.plan.costs.set_back) == Nanos(0) {
                    // The time ended the proof, not its results. The number of pairs is therefore
                    // as valid as one that was fixed before.
                    proof.max_pairs = proof.pairs.len() as u32;
                }
                proof.end = proof.examine_whole(self.terms());
                if proof.end.is_none() {
                    self.phase = SessionPhase::Whole { proof };
                } else {
                    self.end_whole(proof);
                }
            }
            SessionPhase::Holding { hold } => self.note_held(hold, outcome, took),
            other => self.phase = other,
        }
    }

    /// Returns whether continuing the search would use the time that is reserved for the end.
    fn is_late(&self) -> bool {
        self.clock.left(self.reserve()) == Nanos(0)
    }

    /// Ends a screen, and selects its best candidates for proofs.
    fn choose(&mut self, screen: Screen) {
        let level = self.round_level().unwrap_or_default();
        let fitted = screen.fit();
        let margin = self.plan.goal.margin.ln_1p();
        let mut chosen: Vec<(usize, f64)> = Vec::new();
        for (at, effect) in screen.candidates.iter().zip(&fitted.effects) {
            let hopeful = *effect > fitted.error / 2.0 && effect + UPPER * fitted.error > margin;
            if hopeful || screen.is_broken() {
                chosen.push((*at, *effect));
            }
        }
        if !screen.is_broken() {
            chosen.sort_by(|a, b| b.1.total_cmp(&a.1));
            chosen.truncate(CHOSEN);
        }
        for (at, effect) in screen.candidates.iter().zip(&fitted.effects) {
            if !chosen.iter().any(|(chosen, _)| chosen == at) {
                let reason = LeftOut::ScreenedOut {
                    effect: *effect,
                    error: fitted.error,
                };
                self.left_out.insert(*at, reason);
            }
        }
        self.screens.push(screen);
        let queue: Vec<usize> = chosen.into_iter().map(|(at, _)| at).collect();
        self.start_proof(queue, level);
    }

    /// Begins the proof of the first candidate in the queue that can still be tried. Ends the round if there is no such
    /// candidate.
    fn start_proof(&mut self, mut queue: Vec<usize>, level: f64) {
        let screened = self
            .screens
            .last()
            .is_some_and(|screen| screen.round == self.round);
        while !queue.is_empty() {
            let candidate = queue.remove(0);
            let all = &self.plan.candidates;
            let collides = |at: &&usize| all[**at].collides(&all[candidate]);
            if let Some(by) = self.accepted.iter().find(collides) {
                let by = all[*by].id.clone();
                self.left_out.insert(candidate, LeftOut::Excluded { by });
                continue;
            }
            let now = self.accepted_row();
            let mut changed = now.clone();
            changed.insert(candidate);
            let left = self.clock.left(self.reserve());
            let differ = Row::from([candidate]);
            // A few long pairs prove less than many short ones.
            let many = fit(left, self.plan.costs.pair(all, &differ, 1)) / ENOUGH;
            let alternations = alternations_for(self.noise(), self.expected_gain(candidate))
                .min(MOST_AT_FIRST << (2 * self.round))
                .min(many.max(1));
            let pair = self.plan.costs.pair(all, &differ, alternations);
            let created = self.plan.costs.creation(all, &differ);
            let fits = fit(Nanos(left.0.saturating_sub(created.0)), pair);
            if fits < LEAST_PROOF {
                let needs = add(created, times(pair, LEAST_PROOF));
                self.left_out
                    .insert(candidate, LeftOut::NoTime { needs, left });
                continue;
            }
            self.left_out.remove(&candidate);
            let number = self.proofs.len() as u32;
            let alpha = next_level(level, queue.len() + 1, screened);
            self.phase = SessionPhase::Proving {
                proof: Proof {
                    stage: Stage::Proof {
                        round: self.round,
                        candidate,
                    },
                    now,
                    changed,
                    alpha,
                    seed: seeds::derive(self.plan.seed, "proof", number),
                    max_pairs: fits.min(MAX_PAIRS),
                    to_the_end: false,
                    alternations,
                    patience: self.choose_patience(left, candidate, queue.len() + 1),
                    pairs: Vec::new(),
                    figures: Vec::new(),
                    end: None,
                },
                queue,
                level,
            };
            return;
        }
        self.round += 1;
        self.open_round();
    }

    /// Returns the number of alternations before a candidate may be given up. This number is as large as the time
    /// permits, because a few pairs are misleading on a noisy machine. All `waiting` candidates together may use a
    /// quarter of the remaining time.
    fn choose_patience(&self, left: Nanos, candidate: usize, waiting: usize) -> u32 {
        let one = (self.plan.costs).pair(&self.plan.candidates, &Row::from([candidate]), 1);
        let each = fit(left, one) / (PATIENCE_SHARE * waiting as u32);
        each.clamp(least_patience(), MOST_PATIENCE)
    }

    /// Returns the gain that the proof of a candidate must be able to detect, as a natural logarithm: the gain measured
    /// until now, or 0.1.
    fn expected_gain(&self, candidate: usize) -> f64 {
        let screened = self.screens.iter().rev().find_map(|screen| {
            let column = screen.candidates.iter().position(|at| *at == candidate)?;
            Some(SHRINK * screen.fit().effects.get(column)?)
        });
        let proved = self
            .proofs
            .iter()
            .rev()
            .find_map(|proof| match proof.stage {
                Stage::Proof { candidate: at, .. } if at == candidate => Some(proof.effect()),
                _ => None,
            });
        let seen = proved.or(screened).unwrap_or(0.1);
        seen.max(self.plan.goal.margin.ln_1p())
    }

    fn end_proof(&mut self, proof: Proof, queue: Vec<usize>, level: f64) {
        let better = matches!(proof.end, Some(ProofEnd::Better));
        let spent = if better { 0.0 } else { proof.alpha };
        self.level_left -= spent;
        if let (true, Stage::Proof { candidate, .. }) = (better, proof.stage) {
            self.accepted.push(candidate);
        }
        self.proofs.push(proof);
        if better && self.is_goal_in_reach() {
            return self.finish_search();
        }
        self.start_proof(queue, level - spent);
    }

    /// Returns whether the accepted changes probably meet the objective, by a cautious estimate.
    fn is_goal_in_reach(&self) -> bool {
        let want = &self.plan.goal.wants[self.objective];
        let Some(criterion) = want.criterion() else {
            return false;
        };
        let values: Vec<f64> = (self.visits.iter())
            .filter_map(|visit| baseline::mean(visit.figures.get(self.objective)?))
            .collect();
        let Some(now) = baseline::mean(&values) else {
            return false;
        };
        let gain = COUNTED_ON * self.proved_one_by_one();
        let sign = if want.wants_less() { -1.0 } else { 1.0 };
        criterion
            .comparison
            .holds(now * (sign * gain).exp(), criterion.threshold)
    }
}
