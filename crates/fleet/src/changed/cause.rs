//! Determines the causes of changes from two bundles.

use super::{ComparableFact, Then, file_of};
use assay_model::finding::Finding;
use assay_model::{Fact, FactKind, FactPlace, FactValue};
use std::collections::{BTreeMap, BTreeSet};

/// Facts that contain the version of a program, each as (prefix of the key, short name, package of the program).
const PACKAGES: [(&str, &str); 3] = [
    ("tool.nginx", "nginx"),
    ("tool.ssh", "openssh-server"),
    ("tool.dovecot", "dovecot-core"),
];

/// Maximum difference in seconds between two readings of the same boot time. The readings differ if the clock was set
/// in between.
const SAME_START: u64 = 120;

pub(super) struct Causes<'a> {
    before: &'a ComparableFact<'a>,
    after: &'a ComparableFact<'a>,
    differ: &'a BTreeSet<String>,
    restarted: bool,
    kernel: Option<String>,
    versions: (String, String),
    /// Key of the first changed fact of each subject. The next field has the same for each file.
    of_subject: BTreeMap<String, &'a str>,
    of_file: BTreeMap<&'a str, &'a str>,
}

impl<'a> Causes<'a> {
    pub(super) fn new(
        old: &Then<'_>,
        new: &Then<'_>,
        before: &'a ComparableFact<'a>,
        after: &'a ComparableFact<'a>,
        differ: &'a BTreeSet<String>,
    ) -> Self {
        let restarted = match (old.booted, new.booted) {
            (Some(old), Some(new)) => new.abs_diff(old) > SAME_START,
            _ => false,
        };
        let release = |side: &ComparableFact<'_>| text(side.get("kernel.release").copied());
        let kernel = differ
            .contains("kernel.release")
            .then(|| format!("the kernel is {} now", release(after).unwrap_or_default()));
        let (mut of_subject, mut of_file) = (BTreeMap::new(), BTreeMap::new());
        for key in differ {
            let (then, now) = (before.get(key).copied(), after.get(key).copied());
            if let Some(fact) = now.or(then).filter(|fact| !fact.subject.is_machine()) {
                let subject = fact.subject.to_string();
                of_subject.entry(subject).or_insert(key.as_str());
            }
            for fact in [then, now].into_iter().flatten() {
                if let Some((file, _)) = file_of(&fact.place) {
                    of_file.entry(file).or_insert(key.as_str());
                }
            }
        }
        Self {
            of_subject,
            of_file,
            before,
            after,
            differ,
            restarted,
            kernel,
            versions: (old.entry.assay.clone(), new.entry.assay.clone()),
        }
    }

    /// Returns the cause of a changed fact; `None` if the bundles do not show it.
    pub(super) fn of(&self, key: &str) -> Option<String> {
        let (old, new) = (self.before.get(key).copied(), self.after.get(key).copied());
        let fact = new.or(old)?;
        if let (Some(why), _) | (_, Some(why)) = (unread(old), unread(new)) {
            return Some(match unread(new).is_some() {
                true => format!("it cannot be read any more: {why}"),
                false => format!("it could not be read before: {why}"),
            });
        }
        if let Some(name) = key.strip_prefix("package.") {
            let name = name.rsplit_once('.').map_or(name, |(name, _)| name);
            return Some(match (old, new) {
                (None, _) => format!("the package {name} was installed"),
                (_, None) => format!("the package {name} was removed"),
                _ => format!("the package {name} has another version"),
            });
        }
        if key == "kernel.release" {
            return Some(match self.restarted {
                true => "the machine was started anew with it".to_owned(),
                false => "another kernel runs".to_owned(),
            });
        }
        if let Some(cause) = self.of_program(key) {
            return Some(cause);
        }
        if let Some(cause) = self.of_file(key, old, new) {
            return Some(cause);
        }
        if key.starts_with("cpu.")
            && (self.kernel.is_some() || self.differ.contains("cpu.microcode"))
        {
            let microcode = || "the microcode is another one".to_owned();
            return Some(self.kernel.clone().unwrap_or_else(microcode));
        }
        if key.starts_with("mount.") {
            return Some(match (old, new) {
                (None, _) => "it was mounted".to_owned(),
                (_, None) => "it was unmounted".to_owned(),
                _ => "it was mounted anew".to_owned(),
            });
        }
        if let (FactPlace::Command { how: Some(how), .. }, FactKind::Configured) =
            (&fact.place, fact.kind)
        {
            return Some(format!("it was set ({how})"));
        }
        match (fact.kind, self.restarted) {
            (FactKind::Runtime, true) => Some(match &self.kernel {
                Some(kernel) => format!("the machine was started anew; {kernel}"),
                None => "the machine was started anew".to_owned(),
            }),
            // Only a setting can have been set by a user.
            (FactKind::Runtime, false)
                if key.starts_with("sysctl.")
                    || key.contains(".scheduler")
                    || key.starts_with("zfs.param.")
                    || key.starts_with("memory.transparent") =>
            {
                Some("it was set while the machine ran".to_owned())
            }
            _ => None,
        }
    }

    fn of_program(&self, key: &str) -> Option<String> {
        let (_, package) = PACKAGES.iter().find(|(tool, _)| *tool == key)?;
        let version = format!("package.{package}.version");
        self.differ
            .contains(&version)
            .then(|| format!("the package {package} has another version"))
    }

    /// Returns the changed configuration line that explains this fact, or that explains the fact on which this fact
    /// depends.
    fn of_file(&self, key: &str, old: Option<&Fact>, new: Option<&Fact>) -> Option<String> {
        let configured = format!("{key}.configured");
        if self.differ.contains(&configured) {
            return self.of(&configured);
        }
        let place =
            |fact: Option<&Fact>| fact.and_then(|fact| file_of(&fact.place)).map(|(_, at)| at);
        match (place(old), place(new)) {
            (_, Some(at)) => Some(format!("{at} was edited")),
            // The old line is missing; a default applies, or nothing.
            (Some(at), None) => Some(format!("what stood in {at} is gone")),
            (None, None) => None,
        }
    }

    /// Returns the cause of a new or ended finding, which is the change of a fact in its evidence.
    pub(super) fn of_finding(&self, finding: &Finding) -> Option<String> {
        let evidence = finding.evidence.iter().map(|seen| seen.key.as_str());
        if let Some(key) = evidence.clone().find(|key| self.differ.contains(*key)) {
            return self.of(key);
        }
        if evidence.clone().any(|key| key.ends_with(".ends_in_days")) {
            return Some("time has passed".to_owned());
        }
        // The evidence may exist on one side only.
        if let Some(key) = self.of_subject.get(&finding.subject.to_string()) {
            return self.of(key);
        }
        let files = finding.places.iter().filter_map(|place| {
            let (file, _) = file_of(place)?;
            self.of_file.get(file)
        });
        self.of(files.min()?)
    }

    /// Returns the cause of a difference that does not come from the machine, but from another version of the
    /// catalogue.
    pub(super) fn of_catalogue(&self) -> String {
        match &self.versions {
            (old, new) if old == new => {
                "the catalogue of advice changed, not the machine".to_owned()
            }
            (old, new) => {
                format!(
                    "the catalogue of advice changed from assay {old} to {new}, not the machine"
                )
            }
        }
    }
}

fn unread(fact: Option<&Fact>) -> Option<String> {
    match fact.map(|fact| &fact.value) {
        Some(FactValue::Unknown(why)) => Some(why.clone()),
        _ => None,
    }
}

fn text(fact: Option<&Fact>) -> Option<String> {
    match &fact?.value {
        FactValue::Known(serde_json::Value::String(text)) => Some(text.clone()),
        _ => None,
    }
}
