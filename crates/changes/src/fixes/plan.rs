//! Plans the changes of a remedy on an in-memory copy of the machine.

use crate::fixes::error::FixError;
use crate::fixes::line_diff::{Hunk, diff_hunks};
use crate::fixes::overlay::Overlay;
use crate::fixes::program;
use assay_advice::findings;
use assay_facts::{CollectOptions, collect};
use assay_host::Host;
use assay_model::FactPlace;
use assay_model::advice::{Advice, RiskLevel};
use assay_model::change::{ConfigKey, Setting};
use assay_model::finding::{Certainty, Checked, Configured, Edit, Finding, Fix, Seen};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Maximum rounds of edits. A removed line may have hidden another line, which then takes effect and needs an
/// edit of its own.
const ROUNDS: usize = 8;
/// Number of comparisons with and without the change before a new finding is attributed to the change.
const LOOKS: usize = 3;

/// The planned changes of a remedy.
#[derive(Clone, Debug, PartialEq)]
pub struct FixPlan {
    /// Id of the page.
    pub rule: String,
    /// Title of the page.
    pub title: String,
    /// Description of the risk, from the page.
    pub risk: String,
    /// Whether the change may lock the user out.
    pub lockout: bool,
    /// The steps as text.
    pub steps: Vec<String>,
    /// Number of findings of the rule.
    pub found: usize,
    /// Findings that need manual changes, with the reason.
    pub by_hand: Vec<ByHand>,
    /// The changed files; empty if all findings need manual changes.
    pub files: Vec<FileChange>,
    /// Number of findings before the change, by rule and certainty. After the change no number may be greater.
    before: Counts,
}

/// A finding that assay cannot fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByHand {
    /// Description of the finding with its position.
    pub what: String,
    /// Reason.
    pub why: String,
}

/// A file and its planned contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Path as named in the configuration.
    pub path: String,
    /// Path with symbolic links resolved.
    pub real: PathBuf,
    /// Program that reads the file.
    pub program: Configured,
    /// The settings and their new values; `None` removes the setting.
    pub keys: Vec<(ConfigKey, Option<String>)>,
    /// Present contents.
    pub before: Vec<u8>,
    /// Planned contents.
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

    /// Returns the change as a setting of the journal, with its value.
    pub(crate) fn setting(&self) -> (Setting, Option<String>) {
        let file = self.real.to_string_lossy().into_owned();
        let language = self.program.language();
        let (validate, reload) = (self.validate.clone(), self.reload.clone());
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
        !self.files.is_empty()
    }

    /// Returns the session's target; only one change of a target runs at a time.
    #[must_use]
    pub fn target(&self) -> String {
        let mut names: Vec<&str> = self
            .files
            .iter()
            .map(|file| program::program_name(file.program))
            .collect();
        names.dedup();
        format!("the configuration of {}", names.join(" and "))
    }

    /// Compares a machine `with` the change to the same machine `without` the change. Returns the findings
    /// that remain or are new. A finding that also appeared `without` the change is not attributed to the
    /// change. Only findings present at every comparison are returned.
    pub(crate) fn problems(
        &self,
        with: &dyn Host,
        without: &dyn Host,
        pages: &[&Advice],
    ) -> Vec<String> {
        let mut problems = self.more(&self.before, &check(with, pages));
        for _ in 1..LOOKS {
            if problems.is_empty() {
                break;
            }
            let before = count_findings(&check(without, pages));
            problems = self.more(&before, &check(with, pages));
        }
        problems
    }

    /// Returns the findings that are new after the change.
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

    /// Returns a changed machine with the change undone in memory.
    pub(crate) fn without<'a>(&self, host: &'a dyn Host) -> Overlay<'a> {
        let mut without = Overlay::new(host);
        for file in &self.files {
            without.write(file.real.clone(), file.before.clone());
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
    let options = CollectOptions {
        services: true,
        accounts: true,
        ..CollectOptions::default()
    };
    findings(pages.iter().copied(), &collect(host, &options))
}

/// Plans the remedy of `page` on a machine. `pages` are all pages; no other page may have more findings
/// afterwards. Nothing is written.
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
    let mut draft = Draft {
        host,
        work: Overlay::new(host),
        files: BTreeMap::new(),
    };
    let steps = match &first.fix {
        Fix::Steps(remedy) => remedy.steps.clone(),
        Fix::NotHere(why) => vec![why.clone()],
        Fix::AfterReading => Vec::new(),
    };
    let (mut left, mut by_hand) = (found.clone(), Vec::new());
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
        left = ours(&check(&draft.work, &[page]));
        if left.is_empty() {
            by_hand.clear();
            break;
        }
    }
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
        before: count_findings(&before),
    };
    if plan.does_something() {
        let problems = plan.problems(&draft.work, host, pages);
        if !problems.is_empty() {
            return Err(FixError::WouldNotDo {
                rule: rule(),
                problems,
            });
        }
    }
    Ok(plan)
}

/// Describes a finding.
fn describe_finding(finding: &Finding) -> String {
    let place = finding.places.first();
    let place = place.map_or_else(String::new, |place| format!(" ({place})"));
    match finding.subject.is_machine() {
        true => format!("{}{place}", finding.rule),
        false => format!("{}{place}", finding.subject.label()),
    }
}

/// A plan under construction.
struct Draft<'a> {
    host: &'a dyn Host,
    /// The machine with the edits planned so far.
    work: Overlay<'a>,
    files: BTreeMap<PathBuf, FileChange>,
}

impl Draft<'_> {
    /// Makes the edits for a finding. Returns whether anything changed, or as error the reason why the finding
    /// needs manual changes.
    fn mend(&mut self, finding: &Finding) -> Result<bool, String> {
        let edits = match &finding.fix {
            Fix::Steps(remedy) if !remedy.edits.is_empty() => &remedy.edits,
            Fix::Steps(_) => return Err("its steps are not a change of a file".to_owned()),
            Fix::NotHere(why) => return Err(why.clone()),
            Fix::AfterReading => return Err("the page says what there is to know".to_owned()),
        };
        let mut changed = None;
        for edit in edits {
            let Some(seen) = find_edit_evidence(finding, edit) else {
                continue;
            };
            *changed.get_or_insert(false) |= self.edit(edit, seen)?;
        }
        changed.ok_or_else(|| "what it rests on is set in no file".to_owned())
    }

    fn edit(&mut self, edit: &Edit, seen: &Seen) -> Result<bool, String> {
        let FactPlace::File {
            path,
            line: Some(line),
            ..
        } = &seen.place
        else {
            return Err(format!(
                "{} says so, and that is no line of a file",
                seen.place
            ));
        };
        let language = edit.program.language();
        let named = Path::new(path);
        let real = self
            .work
            .realpath(named)
            .map_err(|error| error.to_string())?;
        let text = self.work.read(&real).map_err(|error| error.to_string())?;
        let said = |error: assay_config::ConfError| format!("{path}: {error}");
        let own = edit.fact.rsplit('.').next().unwrap_or_default();
        let found =
            |key: &str| assay_config::setting_at_line(language, &text, *line, key).map_err(said);
        let key = match (found(&edit.key)?, found(own)?) {
            (Some(key), _) => key,
            // Another setting of the same block.
            (None, Some(beside)) => assay_config::SettingAtLine {
                key: edit.key.clone(),
                ..beside
            },
            (None, None) => {
                return Err(format!(
                    "{path}:{line} is not written in a way that assay can change"
                ));
            }
        };
        let key = ConfigKey {
            section: key.section,
            key: key.key,
        };
        let now = assay_config::get(language, &text, &key.section, &key.key).map_err(said)?;
        let to = wanted_value(edit, now.as_ref().map(|found| found.value.as_str()));
        let new = match &to {
            Some(value) => assay_config::set(language, &text, &key.section, &key.key, value),
            None => assay_config::remove(language, &text, &key.section, &key.key),
        };
        let new = new.map_err(said)?;
        if new == text {
            return Ok(false);
        }
        let file = self
            .files
            .entry(real.clone())
            .or_insert_with(|| FileChange {
                path: path.clone(),
                real: real.clone(),
                program: edit.program,
                keys: Vec::new(),
                before: text,
                after: Vec::new(),
                validate: program::validate(edit.program, &real),
                reload: program::reload(self.host, edit.program),
            });
        file.after.clone_from(&new);
        file.keys.retain(|(known, _)| *known != key);
        file.keys.push((key, to));
        self.work.write(real, new);
        Ok(true)
    }
}

/// Returns the fact that an edit refers to, if the finding is based on that fact.
fn find_edit_evidence<'a>(finding: &'a Finding, edit: &Edit) -> Option<&'a Seen> {
    let key = match finding.subject.is_machine() {
        true => edit.fact.clone(),
        false => format!("{}.{}", finding.subject, edit.fact),
    };
    let seen = finding.evidence.iter().find(|seen| seen.key == key)?;
    let meant = edit.only.as_ref().is_none_or(|only| *only == seen.value);
    meant.then_some(seen)
}

/// Returns the new value of a setting; `None` removes it.
fn wanted_value(edit: &Edit, now: Option<&str>) -> Option<String> {
    if edit.to.is_some() {
        return edit.to.clone();
    }
    let (words, now) = (edit.drop.as_ref()?, now?);
    let bare = now.trim_matches(['"', '\'']);
    // A sign before a list of OpenSSH applies to the whole list.
    let (sign, list) = match bare.strip_prefix(['+', '-', '^']) {
        Some(rest) if words.between == ',' => bare.split_at(bare.len() - rest.len()),
        _ => ("", bare),
    };
    let excludes = |word: &str| word.starts_with(['!', '-']);
    let goes = |word: &&str| !excludes(word) && words.with.iter().any(|with| word.contains(with));
    let kept: Vec<&str> = list
        .split(words.between)
        .filter(|word| !word.trim().is_empty() && !goes(word))
        .collect();
    let any = kept.iter().any(|word| !excludes(word));
    any.then(|| format!("{sign}{}", kept.join(&words.between.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_model::finding::Words;

    fn dropped(between: char, with: &str, now: &str) -> Option<String> {
        let edit = Edit {
            fact: String::new(),
            program: Configured::Nginx,
            key: String::new(),
            only: None,
            to: None,
            drop: Some(Words {
                between,
                with: vec![with.to_owned()],
            }),
        };
        wanted_value(&edit, Some(now))
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

    #[test]
    fn words_of_a_list_are_dropped() {
        let cipher = |now| dropped(':', "RC4", now);
        assert_eq!(
            cipher("HIGH:RC4-SHA:!aNULL").as_deref(),
            Some("HIGH:!aNULL")
        );
        assert_eq!(cipher("\"HIGH:!RC4\"").as_deref(), Some("HIGH:!RC4"));
        assert_eq!(cipher("RC4:!MD5"), None);
        let signed = |now| dropped(',', "ssh-rsa", now);
        assert_eq!(signed("+ssh-rsa"), None);
        assert_eq!(signed("+ssh-rsa,x").as_deref(), Some("+x"));
        assert_eq!(
            signed("ssh-ed25519,ssh-rsa").as_deref(),
            Some("ssh-ed25519")
        );
    }
}
