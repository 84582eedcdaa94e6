//! The answer: ranked suspects, the observed waiting, and how much of it the suspects explain. All texts are escaped.

use crate::WatchSubject;
use crate::machine_snapshot::EntityKind;
use crate::suspect_page::{Scope, SuspectPage, SuspectPageError, load_suspects};
use crate::window::{Curve, WatchWindow, WatchedEntity};
use assay_render::text::escape_line;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Number of tasks that wait for one resource, and how much of this waiting the suspects explain.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ClassOfWaiting {
    /// Resource that tasks wait for: `disk`, `flush`, `cpu-queue` …
    pub class: String,
    /// Average number of waiting tasks: seconds of waiting per second.
    pub tasks: f64,
    /// Fraction of this waiting that the suspects explain, 0 to 1.
    pub explained: f64,
}

/// A suspect: a possible cause of the waiting, with the evidence for and against it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RankedSuspect {
    /// Id of the suspect's page.
    pub id: String,
    /// The fault and the affected entity, as a sentence.
    pub title: String,
    /// Layer to which the suspect belongs.
    pub layer: String,
    /// Kind of the entity that is the suspect.
    pub kind: EntityKind,
    /// Name of the entity.
    pub name: String,
    /// Fraction of all waiting that the suspect explains, 0 to 1; `None` if the suspect's cost does not appear as
    /// waiting tasks.
    pub share: Option<f64>,
    /// Observations that support the suspicion.
    pub evidence: Vec<String>,
    /// Observations against the suspicion.
    pub against: Vec<String>,
    /// Why such an entity makes other tasks wait.
    pub why: String,
    /// Commands that show whether the suspicion is right.
    pub next: Vec<String>,
    /// Rank: number of waiting tasks that the suspect explains, or the weight of its page if that is larger.
    #[serde(skip)]
    rank: f64,
}

/// What makes a machine, or a part of it, slow.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SlownessAnswer {
    /// What the user asked about.
    pub subject: WatchSubject,
    /// Name of the machine.
    pub machine: String,
    /// Time of the first snapshot in milliseconds since 1970.
    pub started_ms: u64,
    /// Duration of the watch in seconds.
    pub seconds: f64,
    /// Number of snapshots.
    pub looks: usize,
    /// Average number of waiting tasks.
    pub waiting: f64,
    /// Fraction of the waiting that no suspect explains, 0 to 1.
    pub unexplained: f64,
    /// Waiting by class, largest first.
    pub classes: Vec<ClassOfWaiting>,
    /// Suspects, strongest first.
    pub suspects: Vec<RankedSuspect>,
    /// Figures of the machine: utilisation, pressure, and the largest users.
    pub figures: Vec<(String, String)>,
    /// Sources that could not be read.
    pub missing: Vec<String>,
    /// Curves over time by name: pairs of seconds and value.
    pub curves: BTreeMap<String, Curve>,
    /// CPU time of assay itself, as a fraction of one CPU.
    pub own_cpu: Option<f64>,
}

/// Average number of waiting tasks below which the machine is not considered slow.
pub const HARDLY_WAITING: f64 = 0.05;

/// Judges the observed window.
///
/// # Errors
/// A built-in page is invalid.
pub fn judge_window(
    window: &WatchWindow,
    thing: &WatchSubject,
) -> Result<SlownessAnswer, SuspectPageError> {
    let pages = load_suspects()?;
    let mut candidates: Vec<Candidate<'_>> = Vec::new();
    let things: Vec<(&WatchedEntity, Rc<Scope>)> = std::iter::once(&window.machine)
        .chain(
            window
                .entities
                .iter()
                .filter(|entity| thing.concerns(entity, &window.groups)),
        )
        .map(|entity| (entity, Rc::new(Scope::new(window, entity))))
        .collect();
    for page in pages {
        let mut found = find_candidates(page, window, thing, &things);
        found.sort_by(|a, b| b.rank().total_cmp(&a.rank()));
        join_same(&mut found, page.same.as_deref());
        found.truncate(page.most);
        candidates.extend(found);
    }
    share_out(&mut candidates, &window.waiting);
    candidates.sort_by(|a, b| b.rank().total_cmp(&a.rank()));
    // The sum of nothing is -0.0.
    let total = window.waiting.values().sum::<f64>() + 0.0;
    let mut explained: BTreeMap<&str, f64> = BTreeMap::new();
    for candidate in &candidates {
        for (class, amount) in &candidate.claims {
            *explained.entry(class).or_default() += amount;
        }
    }
    let all_explained: f64 = explained.values().sum();
    let mut classes: Vec<ClassOfWaiting> = window
        .waiting
        .iter()
        .map(|(class, tasks)| ClassOfWaiting {
            class: class.clone(),
            tasks: *tasks,
            explained: explained
                .get(class.as_str())
                .map_or(0.0, |part| (part / tasks).min(1.0)),
        })
        .collect();
    classes.sort_by(|a, b| b.tasks.total_cmp(&a.tasks));
    let suspects = candidates
        .iter()
        .map(|candidate| candidate.describe(window, total))
        .collect();
    Ok(SlownessAnswer {
        subject: thing.clone(),
        machine: String::new(),
        started_ms: 0,
        seconds: window.seconds,
        looks: window.looks,
        waiting: total,
        unexplained: if total > 0.0 {
            (1.0 - all_explained / total).max(0.0)
        } else {
            0.0
        },
        classes,
        suspects,
        figures: crate::figures::list_figures(window, thing),
        missing: window
            .missing
            .iter()
            .map(|text| escape_line(text))
            .collect(),
        curves: window.curves.clone(),
        own_cpu: window.machine.numbers.get("self.cpu").copied(),
    })
}

/// A page and an entity to which its condition applies.
struct Candidate<'a> {
    page: &'a SuspectPage,
    entity: &'a WatchedEntity,
    scope: Rc<Scope>,
    /// Number of waiting tasks, by class, that the suspect would explain if it were the only one.
    claims: Vec<(&'a str, f64)>,
    weight: f64,
}

impl Candidate<'_> {
    fn rank(&self) -> f64 {
        let claimed: f64 = self.claims.iter().map(|(_, amount)| *amount).sum();
        claimed.max(self.weight)
    }

    fn describe(&self, window: &WatchWindow, total: f64) -> RankedSuspect {
        let claimed: f64 = self.claims.iter().map(|(_, amount)| *amount).sum();
        let page = self.page;
        let fill = |sentence: &crate::suspect_page::Sentence| sentence.fill(window, self.entity);
        let against = page.against.iter();
        RankedSuspect {
            id: page.id.clone(),
            title: fill(&page.title).unwrap_or_else(|| page.id.clone()),
            layer: page.layer.clone(),
            kind: self.entity.kind,
            name: escape_line(&self.entity.name),
            share: (claimed > 0.0 && total > 0.0).then(|| claimed / total),
            evidence: page.evidence.iter().filter_map(fill).collect(),
            against: against
                .filter(|(when, _)| when.is_true(&self.scope))
                .filter_map(|(_, sentence)| fill(sentence))
                .collect(),
            why: page.why.clone(),
            next: page
                .next
                .iter()
                .filter_map(|command| command.fill_command(window, self.entity))
                .collect(),
            rank: self.rank(),
        }
    }
}

fn find_candidates<'a>(
    page: &'a SuspectPage,
    window: &'a WatchWindow,
    thing: &WatchSubject,
    things: &[(&'a WatchedEntity, Rc<Scope>)],
) -> Vec<Candidate<'a>> {
    let mut found = Vec::new();
    for (entity, scope) in things.iter().filter(|(entity, _)| entity.kind == page.of) {
        if !page.when.is_true(scope) {
            continue;
        }
        let mut claims = Vec::new();
        for (class, share) in &page.explains {
            let waited = window.waiting.get(class).copied().unwrap_or(0.0);
            let share = share.number(scope).unwrap_or(0.0).clamp(0.0, 1.0);
            if share * waited > 0.0 {
                claims.push((class.as_str(), share * waited));
            }
        }
        // What another part does is a suspect only if the part in question waits for it.
        let is_foreign = match page.of {
            EntityKind::Process => entity.number("asked") == 0.0,
            EntityKind::Group
            | EntityKind::GuestDisk
            | EntityKind::Listener
            | EntityKind::Connection => !entity.is_asked,
            EntityKind::Disk | EntityKind::FileSystem => true,
            _ => page.machine_only,
        };
        if *thing != WatchSubject::Machine && is_foreign && claims.is_empty() {
            continue;
        }
        let weight = page.weight.as_ref().and_then(|weight| weight.number(scope));
        let candidate = Candidate {
            page,
            entity,
            scope: Rc::clone(scope),
            claims,
            weight: weight.unwrap_or(0.0).max(0.0),
        };
        // Only those wait for it that asked to be served last.
        if candidate.rank() > 0.0 {
            found.push(candidate);
        }
    }
    found
}

/// Merges the suspects of a page that have the same cause. The first one then explains the waiting of all of them.
fn join_same(found: &mut Vec<Candidate<'_>>, key: Option<&str>) {
    let Some(key) = key else { return };
    let mut kept: Vec<Candidate<'_>> = Vec::new();
    for candidate in found.drain(..) {
        let cause = candidate.entity.texts.get(key);
        let is_same =
            |other: &&mut Candidate<'_>| cause.is_some() && other.entity.texts.get(key) == cause;
        match kept.iter_mut().find(is_same) {
            Some(first) => first.claims.extend(candidate.claims),
            None => kept.push(candidate),
        }
    }
    kept.sort_by(|a, b| b.rank().total_cmp(&a.rank()));
    *found = kept;
}

/// Limits the explanations, so that all suspects together explain at most the observed waiting.
fn share_out(candidates: &mut [Candidate<'_>], waiting: &BTreeMap<String, f64>) {
    for (class, waited) in waiting {
        let claims = || candidates.iter().flat_map(|candidate| &candidate.claims);
        let claimed: f64 = claims()
            .filter(|(of, _)| of == class)
            .map(|(_, amount)| *amount)
            .sum();
        if claimed <= *waited {
            continue;
        }
        for candidate in candidates.iter_mut() {
            for (of, amount) in &mut candidate.claims {
                if of == class {
                    *amount *= waited / claimed;
                }
            }
        }
    }
}

impl RankedSuspect {
    /// Returns the rank: number of waiting tasks that the suspect explains, or the weight of its page.
    #[must_use]
    pub fn rank(&self) -> f64 {
        self.rank
    }
}
