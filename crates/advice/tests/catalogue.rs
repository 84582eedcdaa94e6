//! Checks every page of the catalogue: its fixtures exist and give the expected result, it lists its sources, and its
//! trial can be created.
#![allow(
    clippy::disallowed_methods,
    reason = "reads the catalogue's own directories"
)]

use assay_advice::{Applicability, Catalogue, ResolveError, aim, applies, resolve};
use assay_model::advice::{Advice, Guard, RiskLevel, Standing, TrialSpec};
use assay_model::change::{CacheMode, Change, Setting};
use assay_model::{Facts, TargetInfo};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Facts of a machine, and the expected result of evaluating a page.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Fixture {
    /// Origin of the facts: `recorded: …` or `made: …`, with the machine or the source.
    origin: String,
    /// Text that the reason must contain if the advice does not apply.
    because: Option<String>,
    target: Option<TargetInfo>,
    #[serde(default)]
    parameters: BTreeMap<String, String>,
    facts: Facts,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../advice")
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .unwrap_or_else(|error| panic!("{}: {error}", dir.display()))
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn fixtures(dir: &Path) -> Vec<(PathBuf, Fixture)> {
    let read = |name: String| {
        let path = dir.join(name);
        let text = std::fs::read_to_string(&path).unwrap();
        let fixture = serde_json::from_str(&text);
        let fixture = fixture.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (path, fixture)
    };
    // Directories are machines for checks.
    let mut files = names(dir);
    files.retain(|name| name.ends_with(".json"));
    files.into_iter().map(read).collect()
}

fn catalogue() -> Catalogue {
    Catalogue::builtin().unwrap_or_else(|error| panic!("{error}"))
}

/// Returns values for the parameters that the user must set.
fn given(advice: &Advice) -> BTreeMap<String, String> {
    let missing = advice
        .parameters
        .iter()
        .filter(|(_, p)| p.default.is_none());
    missing
        .map(|(name, _)| (name.clone(), "1000".to_owned()))
        .collect()
}

fn spec(advice: &Advice) -> Result<TrialSpec, ResolveError> {
    let info = TargetInfo {
        name: "/srv".into(),
        kind: assay_model::target::TargetKind::Directory,
        fs_type: Some("ext4".into()),
        mount_point: Some("/srv".into()),
        mount_options: Some("rw,relatime".into()),
        mount_source: Some("/dev/vda2".into()),
        devices: vec!["vda2".into()],
        disks: vec!["vda".into()],
        size: assay_model::Bytes(0),
        free: None,
    };
    resolve(advice, &given(advice), Some("/srv"), Some(&info))
}

#[test]
fn what_is_on_disk_is_what_is_embedded() {
    let catalogue = catalogue();
    let mut pages = BTreeSet::new();
    for domain in names(&root()) {
        for name in names(&root().join(&domain)) {
            match name.strip_suffix(".md") {
                Some(id) => drop(pages.insert(format!("{domain}/{id}"))),
                // A directory of fixtures belongs to a page.
                None => assert!(catalogue.get(&name).is_ok(), "{domain}/{name} has no page"),
            }
        }
    }
    let all = catalogue.all();
    let embedded: BTreeSet<String> = all
        .iter()
        .map(|a| format!("{}/{}", a.domain, a.id))
        .collect();
    assert_eq!(pages, embedded);
    assert!(all.len() >= 36, "{}", all.len());
}

#[test]
fn fixtures_agree() {
    for advice in catalogue().all() {
        let own = root().join(&advice.domain).join(&advice.id);
        // A page without trial and check needs no machine.
        if advice.trial.is_none() && advice.check.is_none() {
            assert!(!own.exists() && advice.when.is_empty(), "{}", advice.id);
            continue;
        }
        assert_eq!(
            names(&own),
            ["fires", "not-applicable", "quiet"],
            "{}",
            advice.id
        );
        for case in names(&own) {
            let found = fixtures(&own.join(&case));
            let trial = advice.trial.is_some();
            assert!(
                !trial || !found.is_empty(),
                "{}/{case} is empty",
                own.display()
            );
            for (path, fixture) in found {
                let path = path.display();
                let origin = &fixture.origin;
                assert!(
                    origin.starts_with("recorded: ") || origin.starts_with("made: "),
                    "{path}: {origin}"
                );
                let target = fixture.target.as_ref();
                let said = applies(advice, &fixture.facts, target, &fixture.parameters, None);
                match (&said, &fixture.because) {
                    (Applicability::Applies { .. }, None) if case == "fires" => {}
                    (Applicability::Not { reasons, .. }, Some(because)) if case != "fires" => {
                        let given = reasons.iter().any(|r| r.otherwise.contains(because));
                        assert!(given, "{path}: {because:?} is not among {reasons:#?}");
                    }
                    _ => panic!("{path}: {said:#?}"),
                }
            }
        }
    }
}

#[test]
fn nothing_applies_to_a_machine_of_which_nothing_is_known() {
    // A page without a trial has no conditions for one.
    let catalogue = catalogue();
    let tried = catalogue.all().into_iter();
    for advice in tried.filter(|advice| advice.trial.is_some()) {
        let said = applies(advice, &Facts::default(), None, &BTreeMap::new(), None);
        assert!(
            !matches!(said, Applicability::Applies { .. }),
            "{}",
            advice.id
        );
    }
}

#[test]
fn every_trial_can_be_made_and_takes_minutes() {
    for advice in catalogue().all() {
        let id = &advice.id;
        if advice.trial.is_none() {
            assert!(matches!(spec(advice), Err(ResolveError::NoTrial { .. })));
            continue;
        }
        let spec = spec(advice).unwrap_or_else(|error| panic!("{id}: {error}"));
        assert_eq!(
            aim(advice, &given(advice), Some("x")).unwrap().kind,
            spec.target
        );
        let pair = 2.0 * (spec.slot_seconds + spec.washout_seconds);
        assert!(30.0 * pair <= 20.0 * 60.0, "{id}: {pair} s for a pair");
        assert!(spec.slot_seconds >= 2.0, "{id}");
        if let assay_model::load::Load::Fio { workload, .. } = &spec.load {
            assert_eq!(workload.name, workload.default_name(), "{id}");
        }
        // A change that loses acknowledged writes has this risk level, and vice versa.
        let loses = matches!(&spec.change, Change::SideBySide { changed, .. } if {
            let text = format!("{changed:?}");
            let unsafe_cache = format!("{:?}", CacheMode::Unsafe);
            ["nobarrier", &unsafe_cache, "\"sync\": \"disabled\""]
                .iter()
                .any(|mark| text.contains(mark))
        }) || matches!(&spec.change, Change::Set { setting: Setting::ZfsProperty { property, .. }, value }
            if property == "sync" && value.as_deref() == Some("disabled"));
        assert_eq!(spec.safety.is_some(), loses, "{id}");
        // A page with the risk of data loss must not have a default target outside of assay's own
        // objects.
        if advice.risk.level == RiskLevel::DataLoss && matches!(spec.change, Change::Set { .. }) {
            assert!(aim(advice, &given(advice), None).is_err(), "{id}");
        }
        if loses {
            assert_eq!(advice.literature.standing, Standing::Dangerous, "{id}");
            assert_eq!(advice.risk.level, RiskLevel::DataLoss, "{id}");
        }
    }
}

/// If a user's page sets no guardrail, it gets a default guardrail. Built-in pages must set one, or give a reason.
#[test]
fn every_trial_guards_the_slowest_operations_or_says_why_not() {
    for advice in catalogue().all() {
        let Some(spec) = &advice.trial.as_ref().and_then(|_| spec(advice).ok()) else {
            continue;
        };
        let named = Guard::default_tail(spec.metric, &spec.guards).is_none();
        assert!(
            named || spec.no_tail_guard.is_some(),
            "{}: `guards` names no tail such as p99, and `no_tail_guard` does not say why",
            advice.id
        );
    }
}

/// `assay tune` selects and orders candidates by the `[acts]` table. A page that can never be a candidate has a reason
/// in `never`.
#[test]
fn every_trial_says_what_it_acts_on() {
    let catalogue = catalogue();
    for advice in catalogue.all() {
        let id = &advice.id;
        let Some(acts) = &advice.acts else {
            assert!(advice.trial.is_none(), "{id} has [trial] and no [acts]");
            continue;
        };
        for other in &acts.excludes {
            let other = catalogue
                .get(other)
                .unwrap_or_else(|error| panic!("{id}: {error}"));
            assert!(
                other.acts.is_some(),
                "{id} excludes {}, which changes nothing",
                other.id
            );
        }
        // The change affects the load of the page's own trial.
        let spec = spec(advice).unwrap_or_else(|error| panic!("{id}: {error}"));
        let kind = match &spec.load {
            assay_model::load::Load::Fio { .. } => "fio",
            load => load.name(),
        };
        let moved = acts.loads.is_empty() || acts.loads.iter().any(|load| load.name() == kind);
        assert!(moved, "{id}: {kind}");
        if let (Some(workload), Some(order)) = (spec.load.fio(), acts.moves.access) {
            let random = order == assay_model::advice::AccessOrder::Random;
            assert_eq!(random, workload.pattern.random(), "{id}");
        }
    }
}

#[test]
fn sources_stand_in_the_page_and_nothing_is_left_to_look_up() {
    for advice in catalogue().all() {
        let id = &advice.id;
        let joined = advice.page.split_whitespace().collect::<Vec<_>>().join(" ");
        for reference in &advice.literature.references {
            let reference = reference.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(joined.contains(&reference), "{id}: {reference}");
        }
        for mark in ["(known)", "TODO", "FIXME", "†"] {
            assert!(!format!("{advice:?}").contains(mark), "{id}: {mark}");
        }
        assert!(advice.title.chars().count() <= 60, "{id}: {}", advice.title);
    }
}

/// A statement is shown without other text. It must be a complete sentence, and must not contain placeholders.
#[test]
fn statements_are_whole_sentences() {
    for advice in catalogue().all() {
        let (id, text) = (&advice.id, &advice.statement);
        assert!(text.split_whitespace().count() >= 2, "{id}: {text}");
        let cut = [
            ":.", " by.", " with.", " then.", " and.", " or.", ";.", ",.",
        ];
        let is_cut = cut.iter().any(|end| text.ends_with(end));
        assert!(!is_cut && !text.contains('{'), "{id}: {text}");
    }
}
