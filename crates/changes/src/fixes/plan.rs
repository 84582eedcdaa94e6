//! What would be changed: settled against a machine in memory.

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

/// One line that was taken away may have hidden another, which counts then.
const ROUNDS: usize = 8;
/// How often a machine is looked at with the change and without it, before what seems to come with it is believed.
const LOOKS: usize = 3;

/// What would be changed.
#[derive(Clone, Debug, PartialEq)]
pub struct FixPlan {
    /// Id of the page.
    pub rule: String,
    /// Its title.
    pub title: String,
    /// What the page says of the risk.
    pub risk: String,
    /// Whether it may lock somebody out.
    pub lockout: bool,
    /// The steps in words.
    pub steps: Vec<String>,
    /// How many findings of the rule there are.
    pub found: usize,
    /// Those that are to be mended by hand, and why.
    pub by_hand: Vec<ByHand>,
    /// What is changed; nothing when all is to be done by hand.
    pub files: Vec<FileChange>,
    /// What was found before, by rule and certainty: with the change, nothing may be more.
    before: Counts,
}

/// A finding that assay cannot mend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByHand {
    /// What it is about, with its place.
    pub what: String,
    /// Why.
    pub why: String,
}

/// A file and what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Its name in the configuration.
    pub path: String,
    /// Where it is, links resolved.
    pub real: PathBuf,
    /// Whose configuration it is.
    pub program: Configured,
    /// The settings, and what each becomes; nothing takes it away.
    pub keys: Vec<(ConfigKey, Option<String>)>,
    /// The file as it is.
    pub before: Vec<u8>,
    /// The file as it will be.
    pub after: Vec<u8>,
    /// What is asked before the service reads it.
    pub validate: Vec<String>,
    /// What makes the service read it; nothing when it does not run.
    pub reload: Vec<String>,
}

impl FileChange {
    /// The lines that change.
    #[must_use]
    pub fn hunks(&self) -> Vec<Hunk> {
        diff_hunks(&self.before, &self.after)
    }

    /// The same as a setting of the journal, and its value.
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
    /// Whether assay can do something.
    #[must_use]
    pub fn does_something(&self) -> bool {
        !self.files.is_empty()
    }

    /// What the change is made to: there is one change of it at a time.
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

    /// What is wrong with a machine `with` the change: findings that are still there, or that have come. Machines do not stand
    /// still meanwhile: what has come on one `without` it as well is not of the change. Only what is seen at every look is told.
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

    /// What is found after the change, and was not before.
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

    /// A machine that was changed, as it is without the change.
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

/// Holds pages against a machine.
pub(crate) fn check(host: &dyn Host, pages: &[&Advice]) -> Checked {
    let options = CollectOptions {
        services: true,
        accounts: true,
        ..CollectOptions::default()
    };
    findings(pages.iter().copied(), &collect(host, &options))
}

/// Settles what the remedy of `page` comes to on a machine. `pages` are all pages: none of the others may
/// find more than before. Nothing is written.
///
/// # Errors
/// There is nothing to mend, it cannot be known, or the change would not do.
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
        // Whoever configures sshd may be logged in through it.
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

/// A finding in words.
fn describe_finding(finding: &Finding) -> String {
    let place = finding.places.first();
    let place = place.map_or_else(String::new, |place| format!(" ({place})"));
    match finding.subject.is_machine() {
        true => format!("{}{place}", finding.rule),
        false => format!("{}{place}", finding.subject.label()),
    }
}

/// A plan in the making.
struct Draft<'a> {
    host: &'a dyn Host,
    /// The machine with what is planned so far.
    work: Overlay<'a>,
    files: BTreeMap<PathBuf, FileChange>,
}

impl Draft<'_> {
    /// Makes the edits that a finding asks for; whether anything changed, or why it is to be done by hand.
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

/// The fact that an edit goes by, when the finding rests on it.
fn find_edit_evidence<'a>(finding: &'a Finding, edit: &Edit) -> Option<&'a Seen> {
    let key = match finding.subject.is_machine() {
        true => edit.fact.clone(),
        false => format!("{}.{}", finding.subject, edit.fact),
    };
    let seen = finding.evidence.iter().find(|seen| seen.key == key)?;
    let meant = edit.only.as_ref().is_none_or(|only| *only == seen.value);
    meant.then_some(seen)
}

/// What a setting becomes.
fn wanted_value(edit: &Edit, now: Option<&str>) -> Option<String> {
    if edit.to.is_some() {
        return edit.to.clone();
    }
    let (words, now) = (edit.drop.as_ref()?, now?);
    let bare = now.trim_matches(['"', '\'']);
    // A sign before a list of OpenSSH says what the whole list does.
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
