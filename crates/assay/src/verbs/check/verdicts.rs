//! Adds to the findings of a check what trials of the same advice on this machine showed.

use crate::context;
use crate::global::Global;
use assay_judge::trial::judge_trial;
use assay_model::finding::{Checked, Tried};
use assay_model::trial::{Trial, TrialState};
use assay_store::Store;

/// Sets the verdict of each finding: that of the newest trial of its advice on this machine. If the store cannot be
/// read, adds a remark instead, and the check does not fail.
pub(super) fn fill_in(checked: &mut Checked, global: &Global) {
    if checked.findings.iter().all(|one| one.trial.is_none()) {
        return;
    }
    let told = match context::existing_store(global) {
        Ok(None) => return,
        Ok(Some(store)) => from(checked, &store).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    if let Err(why) = told {
        checked
            .remarks
            .push(format!("{why}; what was tried here is not known"));
    }
}

fn from(checked: &mut Checked, store: &Store) -> Result<(), assay_store::StoreError> {
    let here = assay_facts::machine(&assay_host::LiveHost);
    // The newest first.
    let trials = store.trials()?;
    for finding in &mut checked.findings {
        let Some(id) = &finding.trial else { continue };
        let of = trials.iter().filter(|trial| meant(trial, id));
        for trial in of {
            let there = store.machine_of_trial(trial.id)?;
            let same = match (&there, &here) {
                (Some(there), Some(here)) => there.id == here.id,
                _ => false,
            };
            if same {
                let (_, judged) = judge_trial(trial, &store.slots(trial.id)?);
                finding.verdict = Some(Tried {
                    verdict: judged.verdict,
                    trial: trial.id,
                    day: trial.started.strftime("%Y-%m-%d").to_string(),
                    target: trial.plan.target.clone(),
                });
                break;
            }
        }
    }
    Ok(())
}

/// Returns whether the trial gives a verdict about the advice `id`. An A/A trial does not.
fn meant(trial: &Trial, id: &str) -> bool {
    trial.plan.advice == id && !trial.plan.aa && trial.state == TrialState::Complete
}
