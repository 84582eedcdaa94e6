//! Looks up verdicts of earlier sessions on this machine with the same changes, load and kernel.

use crate::context;
use crate::global::Global;
use assay_measure::tuning::FoundCandidate;
use assay_model::trial::Verdict;
use assay_model::{Facts, Load};
use assay_tune::{Before, ProofEnd, Stage, TuneRecord, TuneSession};

/// Fact with the version of the kernel.
const KERNEL: &str = "kernel.release";

/// Properties that an earlier session must have in common with this one.
pub(super) struct Earlier<'a> {
    pub(super) load: &'a Load,
    pub(super) target: &'a str,
    pub(super) facts: &'a Facts,
}

impl Earlier<'_> {
    /// Adds the newest verdict from an earlier session to each candidate.
    pub(super) fn enter_verdicts(
        &self,
        found: &mut [FoundCandidate],
        global: &Global,
    ) -> anyhow::Result<()> {
        let Some(store) = context::existing_store(global)? else {
            return Ok(());
        };
        for (id, record) in store.tunes()? {
            if !self.is_alike(&record) {
                continue;
            }
            let session = record.replay()?;
            for proof in session.proofs() {
                let Stage::Proof { candidate, .. } = proof.stage else {
                    continue;
                };
                let (verdict, remark) = match &proof.end {
                    Some(ProofEnd::Verdict { verdict }) => (*verdict, ""),
                    Some(ProofEnd::Better) if is_alone_worn_off(&session, candidate) => {
                        (Verdict::NoPracticalDifference, ": its gain wears off")
                    }
                    _ => continue,
                };
                let change = record.changes[candidate].as_ref();
                let same = |one: &&mut FoundCandidate| {
                    let now = one.change.as_ref();
                    now.zip(change).is_some_and(|(now, then)| {
                        (&now.setting, &now.value) == (&then.setting, &then.value)
                    })
                };
                if let Some(one) = found.iter_mut().find(same)
                    && one.candidate.before.is_none()
                {
                    one.candidate.before = Some(Before {
                        verdict,
                        when: format!(
                            "session {id}, {}{remark}",
                            record.started.strftime("%-d %B %Y")
                        ),
                    });
                }
            }
        }
        Ok(())
    }

    fn is_alike(&self, record: &TuneRecord) -> bool {
        let kernel = |facts: &Facts| facts.map.get(KERNEL).map(|fact| fact.value.clone());
        record.load == *self.load
            && record.target == self.target
            && kernel(&record.facts) == kernel(self.facts)
    }
}

/// Returns whether this candidate alone was held, and its gain wore off. Of several candidates, only one may be the
/// cause.
fn is_alone_worn_off(session: &TuneSession, candidate: usize) -> bool {
    session.wears_off(candidate) && session.accepted().len() == 1
}
