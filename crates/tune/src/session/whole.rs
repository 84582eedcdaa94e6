//! The end of a session. All accepted changes are proved together, then kept or reverted.

use super::sizes::{LEVEL, WHOLE_LEVELS};
use super::{SessionPhase, TuneSession};
use crate::budget::Row;
use crate::outcome::Ending;
use crate::proof::{Proof, ProofEnd, least_patience};
use crate::seeds;
use crate::step::Stage;

impl TuneSession {
    /// Ends the search: begins the proof of all accepted changes, or reverts if there are no accepted changes.
    pub(super) fn finish_search(&mut self) {
        match self.accepted.is_empty() {
            true => self.end(Ending::NothingProved),
            false => self.start_whole(),
        }
    }

    fn start_whole(&mut self) {
        let attempt = self.wholes.len() as u32;
        let level = match self.plan.together {
            true => (attempt == 0).then_some(LEVEL),
            false => WHOLE_LEVELS.get(self.wholes.len()).copied(),
        };
        let (Some(size), Some(alpha)) = (self.size_attempt(), level) else {
            return self.end(Ending::WholeNotProved);
        };
        self.phase = SessionPhase::Whole {
            proof: Proof {
                stage: Stage::Whole { attempt },
                now: Row::new(),
                changed: self.accepted_row(),
                alpha,
                seed: seeds::derive(self.plan.seed, "whole", attempt),
                max_pairs: size.pairs,
                to_the_end: true,
                alternations: size.alternations,
                patience: least_patience(),
                pairs: Vec::new(),
                figures: Vec::new(),
                end: None,
            },
        };
    }

    pub(super) fn end_whole(&mut self, proof: Proof) {
        let better = matches!(proof.end, Some(ProofEnd::Better));
        let open =
            matches!(proof.end, Some(ProofEnd::Open)) && proof.harmed_guard(self.terms()).is_none();
        self.wholes.push(proof);
        if better {
            self.start_hold();
        } else if self.plan.together {
            self.end(Ending::WholeNotProved);
        } else if open {
            // There were too few pairs: prove the same changes again with new pairs.
            self.start_whole();
        } else if self.accepted.len() > 1 {
            self.drop_weakest();
            self.start_whole();
        } else {
            self.end(Ending::WholeNotProved);
        }
    }

    /// Keeps the proved changes, or only reports them if the plan says so.
    pub(super) fn accept_whole(&mut self) {
        let row = self.accepted_row();
        if self.plan.keep_nothing {
            return self.end(Ending::Proved { row });
        }
        self.ending = Some(Ending::Kept { row });
        self.phase = SessionPhase::Keeping;
    }

    /// Removes one accepted change after a failed proof. If a guardrail failed, removes the change that harmed this
    /// guardrail most; otherwise the change with the smallest gain.
    fn drop_weakest(&mut self) {
        let harmed = self.wholes.last().and_then(|whole| {
            let judged = whole.judgement(self.terms());
            let open = judged.guards.iter().position(|guard| !guard.held)?;
            (judged.guards[open].worsening > 1.0).then_some(open)
        });
        let rank = |proof: &&Proof| match harmed {
            Some(guard) => {
                -assay_judge::trial::compute_centre(&proof.worsening(guard)).unwrap_or_default()
            }
            None => proof.effect(),
        };
        let weakest = self
            .accepted_proofs()
            .min_by(|a, b| rank(a).total_cmp(&rank(b)));
        let stage = weakest.map(|proof| proof.stage);
        match stage {
            Some(Stage::Proof { candidate, .. }) => self.accepted.retain(|at| *at != candidate),
            _ => {
                self.accepted.pop();
            }
        }
    }

    /// Ends the session without keeping a change; the next step reverts everything.
    pub(super) fn end(&mut self, ending: Ending) {
        self.ending = Some(ending);
        self.phase = SessionPhase::Reverting;
    }
}
