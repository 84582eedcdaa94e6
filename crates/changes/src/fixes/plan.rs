//! Plans the changes of a remedy on an in-memory copy of the machine.

use crate::fixes::draft_edits::Draft;
use crate::fixes::error::FixError;
use crate::fixes::line_diff::{Hunk, diff_hunks};
use crate::fixes::line_edits::ModeChange;
use crate::fixes::overlay::Overlay;
use crate::fixes::program;
use crate::fixes::properties::PropertyChange;
use assay_advice::findings;
use assay_facts::{CollectOptions, collect};
use assay_host::Host;
use assay_model::Facts;
use assay_model::advice::{Advice, RiskLevel};
use assay_model::change::{ConfigKey, ConfigLanguage, Setting};
use assay_model::finding::{Certainty, Checked, Configured, Finding, Fix};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Maximum rounds of edits. A removed line may have hidden another line, which then takes effect and needs an
/// edit of its own.
const ROUNDS: usize = 8;
/// Directory of the kernel's running values (proc(5)).
pub(crate) const RUNNING_VALUES: &str = "/proc/sys/";
/// Maximum number of comparisons of the machine with and without the change. A finding is attributed to the change only
/// if it is new in each comparison.
const LOOKS: usize = 3;

/// The planned changes of a remedy, and what they are checked against.
#[derive(Clone, Debug, PartialEq)]
pub struct FixPlan {
    /// Id of the advice page.
    pub rule: String,
    /// Title of the advice page.
    pub title: String,
    /// Description of the risk, from the page.
    pub risk: String,
    /// Whether the change may lock the user out.
    pub lockout: bool,
    /// Steps that the user sees, as text.
    pub steps: Vec<String>,
    /// Number of findings of the page's check.
    pub found: usize,
    /// Findings that need manual changes, with the reason.
    pub by_hand: Vec<ByHand>,
    /// The files whose content changes.
    pub files: Vec<FileChange>,
    /// The files whose permissions change.
    pub modes: Vec<ModeChange>,
    /// The properties of ZFS datasets that change.
    pub properties: Vec<PropertyChange>,
    /// Number of findings before the change, by rule and certainty. After the change, no rule may have more findings.
    before: Counts,
}

/// A finding that assay cannot fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByHand {
    /// Description of the finding, with file and line.
    pub what: String,
    /// Why assay cannot fix the finding.
    pub why: String,
}

/// A file and its planned contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Path of the file as in the configuration.
    pub path: String,
    /// Path with symbolic links resolved.
    pub real: PathBuf,
    /// Program that reads the file.
    pub program: Configured,
    /// Configuration language in which the file is edited.
    pub language: ConfigLanguage,
    /// The settings to change, with their new values; `None` removes a setting. Empty for a new file.
    pub keys: Vec<(ConfigKey, Option<String>)>,
    /// The directories of a new file that do not exist, the outermost first; `None` for an existing file.
    pub missing: Option<Vec<PathBuf>>,
    /// Contents that the file has now.
    pub before: Vec<u8>,
    /// Contents that the file gets.
    pub after: Vec<u8>,
    /// Command that checks the configuration before the service reads it.
    pub validate: Vec<String>,
    /// Command that makes the service read the file; empty if the service does not run.
    pub reload: Vec<String>,
}

impl FileChange {
    /// Returns the lines that change.
    #[must_use]
    pub fn hunks(&self) -> Vec<Hunk> {
        diff_hunks(&self.before, &self.after)
    }

    /// Whether the change concerns a running value of the kernel and not a file.
    #[must_use]
    pub fn is_running_value(&self) -> bool {
        self.real.starts_with(RUNNING_VALUES)
    }

    /// Whether the file does not exist before the change.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.missing.is_some()
    }

    /// Returns the change as a journal setting and the new value; `None` removes the setting.
    pub(crate) fn setting(&self) -> (Setting, Option<String>) {
        if let (true, [(ConfigKey { key, .. }, value)]) = (self.is_running_value(), &self.keys[..])
        {
            return (Setting::Sysctl { key: key.clone() }, value.clone());
        }
        let file = self.real.to_string_lossy().into_owned();
        let language = self.language;
        let (validate, reload) = (self.validate.clone(), self.reload.clone());
        if self.is_new() {
            let setting = Setting::NewFile {
                file,
                validate,
                reload,
            };
            return (
                setting,
                Some(String::from_utf8_lossy(&self.after).into_owned()),
            );
        }
        match &self.keys[..] {
            [(one, value)] => {
                let ConfigKey { section, key } = one.clone();
                let setting = Setting::Config {
                    file,
                    language,
                    section,
                    key,
                    validate,
                    reload,
                };
                (setting, value.clone())
            }
            several => {
                let (keys, values): (Vec<_>, Vec<_>) = several.iter().cloned().unzip();
                let setting = Setting::ConfigKeys {
                    file,
                    language,
                    keys,
                    validate,
                    reload,
                };
                (setting, Some(serde_json::Value::from(values).to_string()))
            }
        }
    }
}

impl FixPlan {
    /// Whether the plan changes any file.
    #[must_use]
    pub fn does_something(&self) -> bool {
        !self.files.is_empty() || !self.modes.is_empty() || !self.properties.is_empty()
    }

    /// Returns the target of the session. Only one change of a target runs at a time.
    #[must_use]
    pub fn target(&self) -> String {
        let mut names: Vec<&str> = self
            .files
            .iter()
            .map(|file| program::program_name(file.program))
            .collect();
        names.dedup();
        if names.is_empty() {
            return match self.modes.is_empty() {
                false => "the permissions of files".to_owned(),
                true => "the properties of datasets".to_owned(),
            };
        }
        format!("the configuration of {}", names.join(" and "))
    }

    /// Compares the machine `with` the change and the same machine `without` the change. Returns the findings that
    /// remain or are new. A finding that also appeared `without` the change is not attributed to the change. Only
    /// findings that appear in every comparison are returned.
    pub(crate) fn problems(
        &self,
        with: &dyn Host,
        without: &dyn Host,
        pages: &[&Advice],
    ) -> Vec<String> {
        self.problems_after(&check(with, pages), with, without, pages)
    }

    /// Like [`Self::problems`], but the first check of the machine with the change (`after`) has already been made.
    fn problems_after(
        &self,
        first: &Checked,
        with: &dyn Host,
        without: &dyn Host,
        pages: &[&Advice],
    ) -> Vec<String> {
        let mut problems = self.more(&self.before, first);
        for _ in 1..LOOKS {
            if problems.is_empty() {
                break;
            }
            let before = count_findings(&check(without, pages));
            problems = self.more(&before, &check(with, pages));
        }
        problems
    }

    /// Describes each rule that has more findings after the change than before.
    fn more(&self, before: &Counts, after: &Checked) -> Vec<String> {
        let now = count_findings(after);
        let mut problems = Vec::new();
        for ((rule, certainty), count) in &now {
            let violated = *certainty == Certainty::Violated;
            let allowed = match *rule == self.rule && violated {
                true => self.by_hand.len(),
                false => before
                    .get(&(rule.clone(), *certainty))
                    .copied()
                    .unwrap_or(0),
            };
            if *count <= allowed {
                continue;
            }
            problems.push(match (*rule == self.rule, violated) {
                (true, true) => format!("{rule} is still found"),
                (_, true) => format!("{rule} is found, which was not before"),
                (_, false) => format!("{rule} can no longer be judged"),
            });
        }
        problems
    }

    /// Returns the machine as if the change were reverted, in memory.
    pub(crate) fn without<'a>(&self, host: &'a dyn Host) -> Overlay<'a> {
        let mut without = Overlay::new(host);
        for file in &self.files {
            match &file.missing {
                Some(missing) => without.hide(file.real.clone(), missing),
                None => without.write(file.real.clone(), file.before.clone()),
            }
        }
        for mode in &self.modes {
            without.set_mode(mode.real.clone(), mode.before);
        }
        for one in &self.properties {
            let (dataset, property) = (one.dataset.clone(), one.property.clone());
            without.set_property(dataset, property, one.before.clone());
        }
        without
    }
}

type Counts = BTreeMap<(String, Certainty), usize>;

fn count_findings(checked: &Checked) -> Counts {
    let mut counts = Counts::new();
    for finding in &checked.findings {
        let key = (finding.rule.clone(), finding.certainty);
        *counts.entry(key).or_default() += 1;
    }
    counts
}

/// Runs the checks of all pages on a machine.
pub(crate) fn check(host: &dyn Host, pages: &[&Advice]) -> Checked {
    findings(pages.iter().copied(), &collect_all(host))
}

/// Collects the facts that the checks need.
fn collect_all(host: &dyn Host) -> Facts {
    let options = CollectOptions {
        services: true,
        accounts: true,
        ..CollectOptions::default()
    };
    collect(host, &options)
}

/// Plans the remedy of `page` on a machine. `pages` contains all advice pages; no other page may have more findings
/// afterwards. Nothing is written to disk.
///
/// # Errors
/// The page has no finding here, its check cannot be decided, or the change would not remove the finding.
pub fn plan(host: &dyn Host, pages: &[&Advice], page: &Advice) -> Result<FixPlan, FixError> {
    let rule = || page.id.clone();
    if page.check.is_none() {
        return Err(FixError::NoCheck { rule: rule() });
    }
    let before = check(host, pages);
    let ours = |checked: &Checked| -> Vec<Finding> {
        let all = checked.findings.iter();
        let ours = all.filter(|one| one.rule == page.id && one.certainty == Certainty::Violated);
        ours.cloned().collect()
    };
    let found = ours(&before);
    let Some(first) = found.first() else {
        let unknown = before.findings.iter().find(|one| one.rule == page.id);
        return Err(match unknown {
            Some(finding) => FixError::Unknown {
                rule: rule(),
                why: finding.text.clone(),
            },
            None => FixError::NotFound { rule: rule() },
        });
    };
    let mut draft = Draft::new(host);
    let steps = match &first.fix {
        Fix::Steps(remedy) => remedy.steps.clone(),
        Fix::NotHere(why) => vec![why.clone()],
        Fix::AfterReading => Vec::new(),
    };
    let (mut left, mut by_hand) = (found.clone(), Vec::new());
    // Facts of the finished draft: collecting them takes longer than everything else here.
    let mut planned_facts = None;
    for _ in 0..ROUNDS {
        by_hand.clear();
        let mut done = false;
        for finding in &left {
            match draft.mend(finding) {
                Ok(changed) => done |= changed,
                Err(why) => by_hand.push(ByHand {
                    what: describe_finding(finding),
                    why,
                }),
            }
        }
        if !done {
            break;
        }
        let facts = collect_all(&draft.work);
        left = ours(&findings([page], &facts));
        if left.is_empty() {
            by_hand.clear();
            planned_facts = Some(facts);
            break;
        }
    }
    let modes = draft.modes.into_values();
    let modes = modes.filter(|mode| mode.before != mode.after).collect();
    let properties = draft.properties.into_values();
    let properties = properties.filter(|one| one.before != one.after).collect();
    let files = draft.files.into_values();
    let files: Vec<FileChange> = files.filter(|file| file.before != file.after).collect();
    let plan = FixPlan {
        rule: rule(),
        title: page.title.clone(),
        risk: page.risk.text.clone(),
        // The administrator of sshd may be logged in through it.
        lockout: page.risk.level == RiskLevel::Lockout
            || files.iter().any(|file| file.program == Configured::Sshd),
        steps,
        found: found.len(),
        by_hand,
        files,
        modes,
        properties,
        before: count_findings(&before),
    };
    if plan.does_something() {
        let facts = planned_facts.unwrap_or_else(|| collect_all(&draft.work));
        let first = findings(pages.iter().copied(), &facts);
        let problems = plan.problems_after(&first, &draft.work, host, pages);
        if !problems.is_empty() {
            return Err(FixError::WouldNotDo {
                rule: rule(),
                problems,
            });
        }
    }
    Ok(plan)
}

/// Describes a finding by its rule or subject, with the place of its first fact.
fn describe_finding(finding: &Finding) -> String {
    let place = finding.places.first();
    let place = place.map_or_else(String::new, |place| format!(" ({place})"));
    match finding.subject.is_machine() {
        true => format!("{}{place}", finding.rule),
        false => format!("{}{place}", finding.subject.label()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const ASLR: &str = "/etc/sysctl.d/99-assay-kernel.randomize_va_space.conf";

    /// Plans the fix of `sysctl-aslr-off`.
    fn plan_aslr(machine: &assay_host::Recorded) -> FixPlan {
        let catalogue = assay_advice::Catalogue::builtin().unwrap();
        let page = catalogue.get("sysctl-aslr-off").unwrap();
        plan(machine, &catalogue.all(), page).unwrap()
    }

    /// A file is created only for a value that no line of a file determines which assay may change.
    #[test]
    fn a_new_file_overrides_a_package_and_keeps_a_running_value() {
        let (line, running) = (
            "kernel.randomize_va_space=0\n",
            "/proc/sys/kernel/randomize_va_space",
        );
        let machine = assay_host::Recorded::new;
        let own = "/etc/sysctl.d/own.conf";
        for (machine, wanted) in [
            (
                machine().file("/usr/lib/sysctl.d/50-vendor.conf", line),
                vec![ASLR],
            ),
            (machine().file(running, "0\n"), vec![ASLR, running]),
            (machine().file(own, line), vec![own]),
            (
                machine().file(own, line).file(running, "0\n"),
                vec![own, running],
            ),
        ] {
            let plan = plan_aslr(&machine);
            let files: Vec<&str> = plan.files.iter().map(|file| file.path.as_str()).collect();
            assert_eq!(files, wanted);
            assert_eq!(plan.by_hand, []);
            for file in &plan.files {
                assert_eq!(file.is_new(), file.path == ASLR);
                let (setting, value) = file.setting();
                assert_eq!(matches!(setting, Setting::NewFile { .. }), file.is_new());
                assert!(value.is_some());
            }
        }
    }

    /// The options of all files are joined, and the last one counts.
    #[test]
    fn a_new_file_overrides_module_options_of_a_package() {
        let catalogue = assay_advice::Catalogue::builtin().unwrap();
        let (pages, page) = (catalogue.all(), catalogue.get("zfs-nocacheflush").unwrap());
        let machine = assay_host::Recorded::new().file(
            "/usr/lib/modprobe.d/zfs.conf",
            "options zfs zfs_nocacheflush=1\n",
        );
        let plan = plan(&machine, &pages, page).unwrap();
        let files: Vec<&str> = plan.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(files, ["/etc/modprobe.d/zz-assay-zfs_nocacheflush.conf"]);
    }

    #[test]
    fn a_file_of_that_name_is_left_to_the_user() {
        let machine = assay_host::Recorded::new()
            .file(
                "/usr/lib/sysctl.d/50-vendor.conf",
                "kernel.randomize_va_space=0\n",
            )
            .file(ASLR, "# theirs\n");
        let plan = plan_aslr(&machine);
        assert!(!plan.does_something());
        assert_eq!(plan.by_hand.len(), 1);
    }

    #[test]
    fn a_machine_with_a_new_file_is_seen_without_it() {
        let catalogue = assay_advice::Catalogue::builtin().unwrap();
        let pages = catalogue.all();
        let machine = assay_host::Recorded::new().file(
            "/usr/lib/sysctl.d/50-vendor.conf",
            "kernel.randomize_va_space=0\n",
        );
        let plan = plan_aslr(&machine);
        let after = String::from_utf8(plan.files[0].after.clone()).unwrap();
        let machine = machine.file(ASLR, after);
        assert!(
            plan.problems(&machine, &plan.without(&machine), &pages)
                .is_empty()
        );
        let seen = count_findings(&check(&plan.without(&machine), &pages));
        assert_eq!(seen, plan.before);
    }

    #[test]
    fn a_machine_that_was_changed_is_seen_without_the_change() {
        let catalogue = assay_advice::Catalogue::builtin().unwrap();
        let (pages, page) = (catalogue.all(), catalogue.get("ssh-usedns").unwrap());
        let file = "/etc/ssh/sshd_config";
        let machine = assay_host::Recorded::new().file(file, "Port 22\nUseDNS yes\n");
        let plan = plan(&machine, &pages, page).unwrap();
        let as_found = plan.problems(&machine, &plan.without(&machine), &pages);
        assert_eq!(as_found.len(), 1, "it is still found: {as_found:?}");
        let after = &plan.files[0].after;
        assay_host::HostMut::write_in_place(&machine, Path::new(file), after).unwrap();
        let without = plan.without(&machine);
        assert!(plan.problems(&machine, &without, &pages).is_empty());
        assert_eq!(count_findings(&check(&without, &pages)), plan.before);
    }
}
