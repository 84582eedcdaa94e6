//! Prepares the trial of one piece of advice on one target. Changes nothing.

use crate::runner::OpenTarget;
use crate::trials::plan::{TrialOptions, settle};
use crate::trials::{Environment, TrialError, new_trial};
use assay_advice::Applicability;
use assay_host::Host;
use assay_model::advice::TargetKind;
use assay_model::trial::{Trial, TrialPlan};
use assay_model::{Advice, Facts, TargetInfo};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A piece of advice and its target, ready for a trial.
pub struct Candidate {
    /// Plan of the trial, without open choices.
    pub plan: TrialPlan,
    /// Open target, so that the trial measures the object that the user saw; `None` if the target is not storage.
    pub ground: Option<OpenTarget>,
    /// Facts of the machine and the target.
    pub facts: Facts,
    /// Whether the advice applies to this machine.
    pub applies: Applicability,
}

impl Candidate {
    /// Creates a candidate from the user's parameters. If `target` is `None`, uses the default target of the advice.
    /// Opens storage targets and changes nothing.
    ///
    /// # Errors
    /// A parameter or target does not suit the advice, or the target cannot be opened.
    pub fn new(
        advice: &Advice,
        given: &BTreeMap<String, String>,
        target: Option<&str>,
        options: &TrialOptions,
        env: &Environment<'_>,
    ) -> Result<Self, TrialError> {
        let host: &dyn Host = env.host;
        let aim = assay_advice::aim(advice, given, target)?;
        let storage = matches!(
            aim.kind,
            TargetKind::Directory | TargetKind::Mount | TargetKind::Device
        );
        let (target, ground) = match storage {
            true => {
                let name = absolute_target(&aim.target)?;
                let ground = OpenTarget::open(host, &name)?;
                (name, Some(ground))
            }
            false => (aim.target, None),
        };
        let info = ground.as_ref().map(OpenTarget::info);
        let spec = assay_advice::resolve(advice, given, Some(&target), info)?;
        let parameters = assay_advice::parameters(advice, given)?;
        let paths: Vec<PathBuf> = info.iter().map(|info| PathBuf::from(&info.name)).collect();
        let infos: Vec<TargetInfo> = info.into_iter().cloned().collect();
        let survey = assay_facts::survey(host, &paths);
        let facts = &survey.facts;
        let applies = assay_advice::applies(advice, facts, info, &parameters, options.size);
        Ok(Self {
            plan: settle(advice, &spec, parameters, &target, options),
            facts: survey.about(&infos),
            ground,
            applies,
        })
    }

    /// Creates a trial from the candidate, and returns the trial with its open target.
    #[must_use]
    pub fn begin(self, uid: String, env: &Environment<'_>) -> (Trial, Option<OpenTarget>) {
        let target = self.ground.as_ref().map(|ground| ground.info().clone());
        let mut facts = self.facts;
        env.enter_open_changes(&mut facts);
        let mut trial = new_trial(self.plan, uid, target, facts, env);
        if let Applicability::Unknown { missing, .. } = &self.applies {
            let keys: Vec<&str> = missing.iter().map(|one| one.key.as_str()).collect();
            trial.remarks.push(format!(
                "whether it applies here is not known: {}",
                keys.join(", ")
            ));
        }
        (trial, self.ground)
    }
}

/// Returns the absolute path of a target, because a relative path such as `.` has no meaning in a stored trial.
fn absolute_target(target: &str) -> Result<String, TrialError> {
    let refuse = |why: &str| TrialError::Name(format!("{}: {why}", target.escape_debug()));
    let path = std::path::absolute(target).map_err(|_| refuse("not a path"))?;
    let name = path.into_os_string().into_string();
    name.map_err(|_| refuse("the whole name is not UTF-8: give a link to it whose name is"))
}
