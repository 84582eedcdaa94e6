//! Finds the changes that a tuning session can try on this machine. Every page of the catalogue with a trial becomes a
//! candidate of the plan. A candidate that cannot be tried contains the reason. The planner (`assay_tune::leave_out`)
//! excludes further candidates.

use super::joined_switches::group_changes;
use assay_advice::{
    Applicability as PageApplies, ResolveError, applies, is_target_of_load, parameters,
    placeholder_values_of_load, resolve,
};
use assay_changes::inspect_setting;
use assay_host::HostMut;
use assay_model::advice::{Advice, Parameter, TargetKind, TrialSpec};
use assay_model::change::{Arm, ArmDifference, Setting};
use assay_model::{Change, Facts, Nanos, TargetInfo};
use assay_tune::{
    Acts, Applicability, Candidate, CandidateChange, ComparedArms, Prior, Toggle, candidate_of_page,
};
use std::collections::BTreeMap;

/// Inputs of the search for candidates.
#[derive(Clone, Copy, Debug)]
pub struct CandidateRequest<'a> {
    /// Advice pages in the order of the catalogue. Pages without a trial are ignored.
    pub pages: &'a [&'a Advice],
    /// Values of parameters: `NAME` applies to all pages with this parameter, `ADVICE.NAME` to one
    /// page.
    pub given: &'a BTreeMap<String, String>,
    /// Target as the user named it; `None` if the user named none.
    pub target: Option<&'a str>,
    /// Storage layers below the target, if the target is storage.
    pub info: Option<&'a TargetInfo>,
    /// Facts of the machine.
    pub facts: &'a Facts,
    /// Whether pages may be tried that compare objects which assay creates. Such a session keeps nothing.
    pub objects: bool,
}

/// A candidate and the change of the machine that it stands for.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundCandidate {
    /// Candidate, as the planner receives it.
    pub candidate: Candidate,
    /// Change of a setting; `None` if the candidate cannot be tried, or compares objects.
    pub change: Option<CandidateChange>,
    /// The two objects that the page compares; `None` for a change of a setting.
    pub arms: Option<[Arm; 2]>,
}

/// Possible change of a candidate.
enum FoundChange {
    Setting(CandidateChange),
    Arms([Arm; 2]),
}

/// Creates a candidate for every page that has a trial. Changes nothing on the machine.
pub fn find_candidates(request: CandidateRequest<'_>, host: &dyn HostMut) -> Vec<FoundCandidate> {
    let pages = request.pages.iter().filter(|page| page.trial.is_some());
    let mut found: Vec<FoundCandidate> = pages
        .flat_map(|page| look_at(page, request, host))
        .collect();
    separate_conflicts(&mut found);
    leave_out_other_objects(&mut found);
    found
}

/// Returns the objects that a session compares; `None` if no candidate compares objects. The first page decides how the
/// object of the baseline is created.
#[must_use]
pub fn join_arms(found: &[FoundCandidate]) -> Option<ComparedArms> {
    let [base, _] = found.iter().find_map(|one| one.arms.clone())?;
    let pages = found.iter().map(|one| one.arms.clone()).collect();
    Some(ComparedArms { base, pages })
}

/// Leaves out candidates whose object differs from the object of the first page in properties that no page changes.
fn leave_out_other_objects(found: &mut [FoundCandidate]) {
    let first = found.iter().position(|one| one.arms.is_some());
    let Some((first, [base, _])) = first.and_then(|at| Some((at, found[at].arms.clone()?))) else {
        return;
    };
    let name = found[first].candidate.id.clone();
    let arms = found.iter().filter_map(|one| one.arms.as_ref());
    let all: Vec<ArmDifference> = arms
        .filter_map(|[now, changed]| ArmDifference::between(now, changed))
        .collect();
    for one in &mut found[first + 1..] {
        let Some([now, changed]) = &one.arms else {
            continue;
        };
        let change = ArmDifference::between(now, changed);
        let change = change.filter(|_| ArmDifference::explain(&all, &base, now));
        let applied = change.and_then(|change| change.applied_to(&base));
        one.candidate.state = match applied {
            Some(applied) if applied != base => continue,
            Some(_) => Applicability::AlreadySo {
                value: format!("the object of {name}, which is the baseline"),
            },
            None => Applicability::DoesNotApply {
                why: format!(
                    "it compares other objects than {name}, the first page: `assay trial {}`",
                    one.candidate.id
                ),
            },
        };
        one.arms = None;
    }
}

/// Time that writing a file is assumed to take, until the session has measured this time.
const WRITTEN: Nanos = Nanos(20_000_000);
/// Maximum number of values of a choice, all of which are tried. If a choice has more values, only the default of the
/// page is tried.
const MOST_CHOICES: usize = 4;

/// Creates the candidates of one page: one for each value of a choice that the user has not set.
fn look_at(
    page: &Advice,
    request: CandidateRequest<'_>,
    host: &dyn HostMut,
) -> Vec<FoundCandidate> {
    // The load of the session replaces the page's.
    let mut given = placeholder_values_of_load(page);
    for name in page.parameters.keys() {
        let own = request.given.get(&format!("{}.{name}", page.id));
        if let Some(value) = own.or_else(|| request.given.get(name)) {
            given.insert(name.clone(), value.clone());
        }
    }
    let open = |(name, one): &(&String, &Parameter)| {
        (2..=MOST_CHOICES).contains(&one.choices.len()) && !given.contains_key(*name)
    };
    let choices: Vec<(&String, &Parameter)> = page.parameters.iter().filter(open).collect();
    let [(name, parameter)] = choices[..] else {
        return vec![look_at_value(page, page.id.clone(), &given, request, host)];
    };
    let one = |value: &String| {
        let mut given = given.clone();
        given.insert(name.clone(), value.clone());
        let id = format!("{}={value}", page.id);
        let mut found = look_at_value(page, id, &given, request, host);
        if parameter.default.as_ref() != Some(value) {
            // The page advises its default, so its expectation applies only to the default.
            found.candidate.prior.helps /= 2.0;
        }
        found
    };
    parameter.choices.iter().map(one).collect()
}

fn look_at_value(
    page: &Advice,
    id: String,
    given: &BTreeMap<String, String>,
    request: CandidateRequest<'_>,
    host: &dyn HostMut,
) -> FoundCandidate {
    let not = |why: String| Applicability::DoesNotApply { why };
    let spec = match resolve_for(page, given, request) {
        Ok(spec) => spec,
        Err(error) => {
            let candidate = unresolved(page, id, not(explain(&error, request)));
            return FoundCandidate {
                candidate,
                change: None,
                arms: None,
            };
        }
    };
    let mut candidate = candidate_of_page(&id, page, &spec, Applicability::Applies);
    if page.acts.is_none()
        && let Change::Set { setting, .. } = &spec.change
        && is_only_written(setting)
    {
        (candidate.toggle, candidate.switch) = (Toggle::Cheap, WRITTEN);
    }
    let (mut change, mut arms) = (None, None);
    match settle(page, &spec, &mut candidate, given, request, host) {
        Ok(FoundChange::Setting(found)) => change = Some(found),
        Ok(FoundChange::Arms(found)) => arms = Some(found),
        Err(state) => candidate.state = state,
    }
    FoundCandidate {
        candidate,
        change,
        arms,
    }
}

/// Returns whether a change of a configuration file needs no reload, because the program reads the file at each use.
fn is_only_written(setting: &Setting) -> bool {
    matches!(
        setting,
        Setting::Config { reload, .. } | Setting::ConfigKeys { reload, .. } if reload.is_empty()
    )
}

/// Returns why the trial of a page cannot be prepared, and what the user must pass to the tuning session instead.
fn explain(error: &ResolveError, request: CandidateRequest<'_>) -> String {
    match (error, request.info) {
        (ResolveError::Target { .. }, None) => {
            "it changes storage: name the directory that the load uses as the target".to_owned()
        }
        _ => error.to_string(),
    }
}

/// Returns a candidate that cannot be tried, because the trial of the advice page does not fit this machine. For
/// example, the user named no target directory. `state` contains the reason.
fn unresolved(page: &Advice, id: String, state: Applicability) -> Candidate {
    Candidate {
        id,
        title: page.title.clone(),
        state,
        touches: Vec::new(),
        excludes: Vec::new(),
        risk: page.risk.level,
        never_kept: None,
        literature: page.literature.standing,
        literature_text: page.literature.text.clone(),
        acts: page.acts.as_ref().map_or_else(Acts::default, Acts::of_page),
        share: None,
        before: None,
        prior: Prior::by_literature(page.literature.standing),
        toggle: Toggle::Cheap,
        switch: Nanos(0),
    }
}

/// Reads the current value of the setting that a page changes, or returns the objects that a page compares. The error
/// is the reason why the page cannot be tried.
fn settle(
    page: &Advice,
    spec: &TrialSpec,
    candidate: &mut Candidate,
    given: &BTreeMap<String, String>,
    request: CandidateRequest<'_>,
    host: &dyn HostMut,
) -> Result<FoundChange, Applicability> {
    let not = |why: String| Applicability::DoesNotApply { why };
    let values = parameters(page, given).map_err(|error| not(error.to_string()))?;
    let about = applies(page, request.facts, request.info, &values, None);
    if let PageApplies::Not { reasons, .. } = &about {
        let why: Vec<&str> = reasons.iter().map(|one| one.otherwise.as_str()).collect();
        return Err(not(why.join("; ")));
    }
    let because = "acknowledged writes may be lost: it needs the flush test of a trial";
    let unsafe_writes = spec.safety.map(|_| because.to_owned());
    let (setting, value) = match &spec.change {
        Change::Set { setting, value } => (setting, value),
        Change::SideBySide { now, changed } if request.objects => {
            // Nothing is kept, so that the page need not say how.
            let never = page.acts.as_ref().and_then(|acts| acts.never.clone());
            candidate.never_kept = unsafe_writes.or(never);
            return Ok(FoundChange::Arms([now.clone(), changed.clone()]));
        }
        Change::SideBySide { .. } => {
            return Err(not(format!(
                "it is tried on two things side by side that assay creates, not on the machine itself: \
                 name the pages with --only, or `assay trial {}`",
                page.id
            )));
        }
    };
    if unsafe_writes.is_some() {
        candidate.never_kept = unsafe_writes;
    }
    let now = inspect_setting(host, setting, value.as_deref())
        .map_err(|error| not(format!("cannot be changed here: {error}")))?;
    if now.is_wanted {
        return Err(Applicability::AlreadySo { value: now.shown });
    }
    if let Some(why) = now.never_kept {
        candidate.never_kept = Some(why.to_owned());
    }
    // Settings that influence each other are alternatives, whatever their names.
    if !matches!(setting, Setting::Config { .. } | Setting::ConfigKeys { .. }) {
        candidate.touches.push(now.identity);
    }
    Ok(FoundChange::Setting(CandidateChange {
        setting: setting.clone(),
        value: value.clone(),
        name: now.name,
        found: now.value,
        was: now.shown,
    }))
}

/// Prepares the trial of a page for the target of the session. If the page does not accept this kind of target, uses
/// the default target of the page.
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
        // A setting of the whole machine needs no target; for a setting of a disk, the error names
        // what is missing.
        (true, None) => resolve(page, given, Some("/"), None),
        (false, _) if is_url && kind == Some(TargetKind::Address) => {
            resolve(page, given, request.target, None)
        }
        (false, _) => {
            let has_default = page
                .trial
                .as_ref()
                .is_some_and(|trial| trial.contains_key("default_target"));
            // The load of the session replaces the one that would need an address.
            let address = (!has_default && is_target_of_load(page)).then_some("localhost");
            resolve(page, given, address, None)
        }
    }
}

/// Excludes combinations of changes that cannot be written to one file together, because the services read the file in
/// different ways.
fn separate_conflicts(found: &mut [FoundCandidate]) {
    let changes: Vec<Option<CandidateChange>> =
        found.iter().map(|one| one.change.clone()).collect();
    let groups = group_changes(&changes);
    let file = |candidate: usize| match &found[candidate].change.as_ref()?.setting {
        Setting::Config { file, .. } | Setting::ConfigKeys { file, .. } => Some(file.clone()),
        _ => None,
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
