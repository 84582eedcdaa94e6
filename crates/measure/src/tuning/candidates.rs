//! What could be changed here: every page of the catalogue that has a trial becomes a candidate of the plan,
//! with the reason where it cannot be tried. The planner decides about the others (`assay_tune::leave_out`).

use super::goal_load::load_kind;
use super::joined_switches::group_changes;
use assay_advice::{Applicability as PageApplies, ResolveError, applies, parameters, resolve};
use assay_changes::inspect_setting;
use assay_host::HostMut;
use assay_model::advice::{Advice, TargetKind, TrialSpec};
use assay_model::change::Setting;
use assay_model::{Change, Facts, Load, Nanos, TargetInfo};
use assay_tune::{Acts, Applicability, Candidate, CandidateChange, Prior, Toggle};
use std::collections::BTreeMap;

/// What candidates are looked for.
#[derive(Clone, Copy, Debug)]
pub struct CandidateRequest<'a> {
    /// Pages in their order; those without a trial are passed over.
    pub pages: &'a [&'a Advice],
    /// Values of parameters; each goes to the pages that know its name.
    pub given: &'a BTreeMap<String, String>,
    /// The target as named.
    pub target: Option<&'a str>,
    /// What lies under it, where it is storage.
    pub info: Option<&'a TargetInfo>,
    /// The machine.
    pub facts: &'a Facts,
    /// The load of the goal.
    pub load: &'a Load,
}

/// A candidate, and what switches it.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundCandidate {
    /// As the planner sees it.
    pub candidate: Candidate,
    /// What switches it; none for one that cannot be tried.
    pub change: Option<CandidateChange>,
}

/// Looks at every page that has a trial. Nothing is changed.
pub fn find_candidates(request: CandidateRequest<'_>, host: &dyn HostMut) -> Vec<FoundCandidate> {
    let pages = request.pages.iter().filter(|page| page.trial.is_some());
    let mut found: Vec<FoundCandidate> = pages.map(|page| look_at(page, request, host)).collect();
    separate_conflicts(&mut found);
    found
}

fn look_at(page: &Advice, request: CandidateRequest<'_>, host: &dyn HostMut) -> FoundCandidate {
    let mut candidate = Candidate {
        id: page.id.clone(),
        title: page.title.clone(),
        state: Applicability::Applies,
        touches: Vec::new(),
        excludes: Vec::new(),
        risk: page.risk.level,
        never_kept: None,
        literature: page.literature.standing,
        literature_text: page.literature.text.clone(),
        acts: Acts::default(),
        share: None,
        before: None,
        prior: Prior::by_literature(page.literature.standing),
        toggle: Toggle::Cheap,
        switch: Nanos(0),
    };
    let change = match settle(page, &mut candidate, request, host) {
        Ok(change) => Some(change),
        Err(state) => {
            candidate.state = state;
            None
        }
    };
    FoundCandidate { candidate, change }
}

/// Fills in what is known of a page; an error is the reason why it cannot be tried.
fn settle(
    page: &Advice,
    candidate: &mut Candidate,
    request: CandidateRequest<'_>,
    host: &dyn HostMut,
) -> Result<CandidateChange, Applicability> {
    let not = |why: String| Applicability::DoesNotApply { why };
    let mut given = request.given.clone();
    given.retain(|name, _| page.parameters.contains_key(name));
    let values = parameters(page, &given).map_err(|error| not(error.to_string()))?;
    let about = applies(page, request.facts, request.info, &values, None);
    if let PageApplies::Not { reasons, .. } = &about {
        let why: Vec<&str> = reasons.iter().map(|one| one.otherwise.as_str()).collect();
        return Err(not(why.join("; ")));
    }
    let spec = resolve_for(page, &given, request).map_err(|error| not(error.to_string()))?;
    candidate.acts = derive_acts(&spec, request.load);
    let Change::Set { setting, value } = &spec.change else {
        return Err(not(format!(
            "it is tried on two things side by side that assay creates, not on the machine itself: `assay trial {}`",
            page.id
        )));
    };
    (candidate.toggle, candidate.switch) = estimate_toggle(setting);
    if let Some(safety) = spec.safety {
        candidate.never_kept = Some(format!("it has to pass a safety test ({safety:?})"));
    }
    let now = inspect_setting(host, setting, value.as_deref())
        .map_err(|error| not(format!("cannot be changed here: {error}")))?;
    if now.is_wanted {
        return Err(Applicability::AlreadySo { value: now.shown });
    }
    if let Some(why) = now.never_kept {
        candidate.never_kept = Some(why.to_owned());
    }
    candidate.touches = name_touched(setting, &now.identity);
    Ok(CandidateChange {
        setting: setting.clone(),
        value: value.clone(),
        name: now.name,
        found: now.value,
        was: now.shown,
    })
}

/// The trial of a page, filled in for the target of the session where it is of that kind, else for its own.
fn resolve_for(
    page: &Advice,
    given: &BTreeMap<String, String>,
    request: CandidateRequest<'_>,
) -> Result<TrialSpec, ResolveError> {
    let kind = page.trial.as_ref().and_then(|trial| trial.get("target"));
    let kind: Option<TargetKind> = kind.and_then(|kind| kind.clone().try_into().ok());
    let is_storage = matches!(
        kind,
        Some(TargetKind::Directory | TargetKind::Mount | TargetKind::Device)
    );
    let is_url = request.target.is_some_and(assay_model::target::is_url);
    match (is_storage, request.info) {
        (true, Some(info)) => resolve(page, given, request.target, Some(info)),
        // A setting of the whole machine needs no place; one of a disk names what is missing.
        (true, None) => resolve(page, given, Some("/"), None),
        (false, _) if is_url && kind == Some(TargetKind::Address) => {
            resolve(page, given, request.target, None)
        }
        (false, _) => resolve(page, given, None, None),
    }
}

/// What a change acts on, from the load that its own trial has.
fn derive_acts(spec: &TrialSpec, load: &Load) -> Acts {
    let mut acts = Acts::default();
    // What a command does is unknown, so everything may act on it.
    if load_kind(load) == "command" || load_kind(&spec.load) == "command" {
        return acts;
    }
    acts.loads.push(load_kind(&spec.load).to_owned());
    if let Some(workload) = spec.load.fio() {
        acts.cache_only = !workload.direct;
        if !workload.pattern.writes() {
            acts.figures.push("read.*".to_owned());
        }
        if !workload.pattern.reads() {
            acts.figures.push("write.*".to_owned());
        }
    }
    acts
}

/// How a setting is switched, and how long that takes.
fn estimate_toggle(setting: &Setting) -> (Toggle, Nanos) {
    const MS: u64 = 1_000_000;
    match setting {
        Setting::Config { reload, .. } | Setting::ConfigKeys { reload, .. } => {
            match reload.iter().any(|word| word.contains("restart")) {
                true => (Toggle::Restart, Nanos(3000 * MS)),
                false if reload.is_empty() => (Toggle::Cheap, Nanos(20 * MS)),
                false => (Toggle::Reload, Nanos(500 * MS)),
            }
        }
        Setting::Command { .. } | Setting::ZfsProperty { .. } => (Toggle::Cheap, Nanos(200 * MS)),
        Setting::MountOption { .. } => (Toggle::Cheap, Nanos(100 * MS)),
        _ => (Toggle::Cheap, Nanos(20 * MS)),
    }
}

/// Names that are equal where two changes exclude each other.
fn name_touched(setting: &Setting, identity: &str) -> Vec<String> {
    let name = |section: &[String], key: &str| {
        let mut path = section.to_vec();
        path.push(key.to_owned());
        format!("{identity}:{}", path.join("/"))
    };
    match setting {
        Setting::Config { section, key, .. } => vec![name(section, key)],
        Setting::ConfigKeys { keys, .. } => {
            let each = keys.iter().map(|one| name(&one.section, &one.key));
            each.collect()
        }
        _ => vec![identity.to_owned()],
    }
}

/// Makes alternatives of changes to one file that cannot be written together, because their services read it
/// in different ways.
pub fn separate_conflicts(found: &mut [FoundCandidate]) {
    let changes: Vec<Option<CandidateChange>> =
        found.iter().map(|one| one.change.clone()).collect();
    let groups = group_changes(&changes);
    let file = |candidate: usize| -> Option<String> {
        let touched = found[candidate].candidate.touches.first()?;
        let is_config = matches!(
            found[candidate].change.as_ref()?.setting,
            Setting::Config { .. } | Setting::ConfigKeys { .. }
        );
        let (file, _) = touched.rsplit_once(':').filter(|_| is_config)?;
        Some(file.to_owned())
    };
    let mut of_file: BTreeMap<String, Vec<Vec<usize>>> = BTreeMap::new();
    for group in &groups {
        let members: Vec<usize> = group.members.iter().map(|one| one.candidate).collect();
        if let Some(file) = members.first().and_then(|first| file(*first)) {
            of_file.entry(file).or_default().push(members);
        }
    }
    for (file, groups) in of_file {
        if groups.len() > 1 {
            for candidate in groups.into_iter().flatten() {
                found[candidate].candidate.touches.push(file.clone());
            }
        }
    }
}
