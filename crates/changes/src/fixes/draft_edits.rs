//! Drafts a plan: finds which line of which file to change for a finding, and the new value.

use crate::fixes::line_edits::{ModeChange, edit_line, find_line_above, find_real, read_mode};
use crate::fixes::new_files::find_new_path;
use crate::fixes::overlay::Overlay;
use crate::fixes::plan::{FileChange, RUNNING_VALUES};
use crate::fixes::program;
use crate::fixes::properties::PropertyChange;
use assay_config::SettingAtLine;
use assay_host::Host;
use assay_model::FactPlace;
use assay_model::change::{ConfigKey, ConfigLanguage};
use assay_model::finding::{Configured, Edit, Finding, Fix, ModeBits, Seen};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Value of an edit's `beside` if the fact's line is the head of a block, and the setting belongs in this block.
const HEAD: &str = "{}";

/// File that every package of cron has.
const CRONTAB: &str = "/etc/crontab";

/// Directories whose files are overwritten by a package upgrade without a question to the user.
const PACKAGED: [&str; 2] = ["/usr/lib", "/lib"];

/// A plan under construction: the edits so far, and the machine to which they are applied in memory.
pub(crate) struct Draft<'a> {
    host: &'a dyn Host,
    /// The machine with the edits planned so far.
    pub(crate) work: Overlay<'a>,
    pub(crate) files: BTreeMap<PathBuf, FileChange>,
    pub(crate) modes: BTreeMap<PathBuf, ModeChange>,
    pub(crate) properties: BTreeMap<(String, String), PropertyChange>,
}

impl<'a> Draft<'a> {
    /// Creates a draft without edits.
    pub(crate) fn new(host: &'a dyn Host) -> Self {
        Self {
            host,
            work: Overlay::new(host),
            files: BTreeMap::new(),
            modes: BTreeMap::new(),
            properties: BTreeMap::new(),
        }
    }

    /// Plans the edits for a finding. Returns whether anything changes.
    ///
    /// # Errors
    /// The reason why the user must make the change by hand.
    pub(crate) fn mend(&mut self, finding: &Finding) -> Result<bool, String> {
        let edits = match &finding.fix {
            Fix::Steps(remedy) if !remedy.edits.is_empty() => &remedy.edits,
            Fix::Steps(_) => return Err("its steps are not a change of a file".to_owned()),
            Fix::NotHere(why) => return Err(why.clone()),
            Fix::AfterReading => return Err("the page says what there is to know".to_owned()),
        };
        let (mut changed, mut refused) = (None, None);
        // Settings that have or get the right value in a file. A running value alone is lost at the next boot.
        let mut in_file = BTreeSet::new();
        let (new, lines): (Vec<&Edit>, Vec<&Edit>) =
            edits.iter().partition(|edit| edit.create.is_some());
        for edit in lines.into_iter().chain(new) {
            let Some(seen) = find_edit_evidence(finding, edit) else {
                continue;
            };
            let planned = match &edit.create {
                Some(_) if in_file.contains(name_setting(&edit.fact)) => continue,
                Some(text) => self.create_file(edit, text),
                None => self.edit(edit, seen),
            };
            match planned {
                Ok(done) => {
                    *changed.get_or_insert(false) |= done;
                    if edit.create.is_some() || matches!(seen.place, FactPlace::File { .. }) {
                        in_file.insert(name_setting(&edit.fact));
                    }
                }
                Err(why) => {
                    refused.get_or_insert(why);
                }
            }
        }
        let nowhere = || "what it rests on is set in no file that assay changes".to_owned();
        changed.ok_or_else(|| refused.unwrap_or_else(nowhere))
    }

    fn edit(&mut self, edit: &Edit, seen: &Seen) -> Result<bool, String> {
        if let Some(bits) = edit.mode.as_deref().and_then(ModeBits::parse) {
            return self.edit_modes(bits, &edit.key);
        }
        if edit.program == Configured::Zfs {
            return self.edit_property(edit, seen);
        }
        match &seen.place {
            FactPlace::File {
                path,
                line: Some(line),
                ..
            } if !edit.line.is_empty() || edit.comment.is_some() => {
                self.edit_whole_line(edit, path, *line)
            }
            FactPlace::File {
                path,
                line: Some(line),
                ..
            } => self.edit_file(edit, seen, path, *line),
            FactPlace::Interface { path }
                if edit.program == Configured::Sysctl && path.starts_with(RUNNING_VALUES) =>
            {
                self.edit_running_value(edit, path)
            }
            place => Err(format!("{place} says so, and that is no line of a file")),
        }
    }

    /// Plans an edit of a value in /proc/sys.
    fn edit_running_value(&mut self, edit: &Edit, path: &str) -> Result<bool, String> {
        let real = PathBuf::from(path);
        let text = self.work.read(&real).map_err(|error| error.to_string())?;
        let now = String::from_utf8_lossy(&text).trim().to_owned();
        let Some(to) = wanted_value(edit, Some(&now)).filter(|to| *to != now) else {
            return Ok(false);
        };
        let key = ConfigKey {
            section: Vec::new(),
            key: edit.key.clone(),
        };
        self.note(
            (edit.program, edit.program.language()),
            path,
            real,
            (key, Some(to.clone())),
            text,
            format!("{to}\n").into(),
        );
        Ok(true)
    }

    /// Plans an edit of a property of a ZFS dataset, which the key names.
    fn edit_property(&mut self, edit: &Edit, seen: &Seen) -> Result<bool, String> {
        let (dataset, property) = (edit.key.clone(), edit.fact.clone());
        let unfit = || format!("the value of {property} of {dataset} is unknown");
        let before = seen.value.as_str().ok_or_else(unfit)?;
        let after = edit.to.clone().ok_or_else(unfit)?;
        let key = (dataset.clone(), property.clone());
        let planned = self.properties.entry(key).or_insert(PropertyChange {
            dataset: dataset.clone(),
            property: property.clone(),
            before: before.to_owned(),
            after: before.to_owned(),
        });
        if planned.after == after {
            return Ok(false);
        }
        planned.after.clone_from(&after);
        self.work.set_property(dataset, property, after);
        Ok(true)
    }

    /// Plans an edit of the permissions of files.
    fn edit_modes(&mut self, bits: ModeBits, paths: &str) -> Result<bool, String> {
        let mut changed = false;
        for path in paths.split(' ').filter(|path| !path.is_empty()) {
            let real = find_real(&self.work, path)?;
            refuse_packaged(path, &real)?;
            let Some(before) = read_mode(&self.work, &real) else {
                return Err(format!("the permissions of {path} are unknown"));
            };
            let after = bits.applied_to(before);
            if after == before {
                continue;
            }
            let mode = self.modes.entry(real.clone()).or_insert(ModeChange {
                path: path.to_owned(),
                real: real.clone(),
                before,
                after,
            });
            mode.after = after;
            self.work.set_mode(real, after);
            changed = true;
        }
        match changed {
            true => Ok(true),
            false => Err(format!(
                "{paths} has no such right: look at the directories above it"
            )),
        }
    }

    /// Plans an edit that replaces a whole line.
    fn edit_whole_line(&mut self, edit: &Edit, path: &str, line: usize) -> Result<bool, String> {
        let (real, text) = self.read_file(path)?;
        let unfit = || format!("{path}:{line} is not written in a way that assay can change");
        let line = match &edit.beside {
            Some(word) => find_line_above(&text, line, word).ok_or_else(unfit)?,
            None => line,
        };
        let bytes = text
            .split(|&byte| byte == b'\n')
            .nth(line - 1)
            .ok_or_else(unfit)?;
        let old = std::str::from_utf8(bytes).map_err(|_| unfit())?;
        let old = old.strip_suffix('\r').unwrap_or(old);
        let new = edit_line(edit, old).ok_or_else(unfit)?;
        let section = assay_config::line_section(&text, line, &new).ok_or_else(unfit)?;
        let key = ConfigKey { section, key: new };
        // Two exchanges that share a form could not be distinguished when they are undone.
        let forms = |key: &ConfigKey| [key.section[0].clone(), key.key.clone()];
        let meets = |known: &ConfigKey| {
            let (known, own) = (forms(known), forms(&key));
            known != own && known.iter().any(|form| own.contains(form))
        };
        if let Some(file) = self.files.get(&real)
            && (file.language != ConfigLanguage::Lines
                || file.is_new()
                || file.keys.iter().any(|(known, _)| meets(known)))
        {
            return Err(unfit());
        }
        let (language, on) = (ConfigLanguage::Lines, "on");
        let changed = assay_config::set(language, &text, &key.section, &key.key, on);
        let changed = changed.map_err(|error| format!("{path}: {error}"))?;
        self.note(
            (edit.program, language),
            path,
            real,
            (key, Some(on.to_owned())),
            text,
            changed,
        );
        Ok(true)
    }

    /// Plans a new file.
    fn create_file(&mut self, edit: &Edit, text: &str) -> Result<bool, String> {
        let path = &edit.key;
        // A placeholder without a value stays as it is.
        if path.contains('{') || text.contains('{') {
            return Err("what the file must contain is not known here".to_owned());
        }
        if self
            .files
            .values()
            .any(|file| file.path == *path && file.is_new())
        {
            return Ok(false);
        }
        if edit.program == Configured::Cron
            && !self.work.exists(Path::new(CRONTAB)).unwrap_or(false)
        {
            return Err(format!("{CRONTAB} is missing, so cron is not installed"));
        }
        let (real, missing) = find_new_path(&self.work, path)?;
        self.work.create(real.clone(), text.into(), &missing);
        let program = edit.program;
        let file = FileChange {
            path: path.clone(),
            real: real.clone(),
            program,
            language: ConfigLanguage::Lines,
            keys: Vec::new(),
            missing: Some(missing),
            before: Vec::new(),
            after: text.into(),
            validate: program::validate(program, &real),
            reload: program::reload(self.host, program, &real),
        };
        self.files.insert(real, file);
        Ok(true)
    }

    /// Returns the resolved path and the text of a file. Fails for a file that assay must not change.
    fn read_file(&self, path: &str) -> Result<(PathBuf, Vec<u8>), String> {
        let real = self
            .work
            .realpath(Path::new(path))
            .map_err(|error| error.to_string())?;
        refuse_packaged(path, &real)?;
        let text = self.work.read(&real).map_err(|error| error.to_string())?;
        Ok((real, text))
    }

    fn edit_file(
        &mut self,
        edit: &Edit,
        seen: &Seen,
        path: &str,
        line: usize,
    ) -> Result<bool, String> {
        let language = edit.program.language();
        let (real, text) = self.read_file(path)?;
        if self
            .files
            .get(&real)
            .is_some_and(|file| file.language != language || file.is_new())
        {
            return Err(format!("{path} is changed in another way already"));
        }
        let said = |error: assay_config::ConfError| format!("{path}: {error}");
        let own = seen.key.rsplit('.').next().unwrap_or_default();
        let key = find_key(edit, own, language, &text, line)
            .map_err(said)?
            .ok_or_else(|| {
                format!("{path}:{line} is not written in a way that assay can change")
            })?;
        if edit.to.is_some() && edit.beside.is_none() && is_longer(&key.key, &edit.key) {
            return Err(format!("{path}: {} stands there several times", edit.key));
        }
        let key = ConfigKey {
            section: key.section,
            key: key.key,
        };
        let now = assay_config::get(language, &text, &key.section, &key.key).map_err(said)?;
        let now = now.as_ref().map(|found| found.value.as_str());
        let to = wanted_value(edit, now).map(|value| in_old_quotes(language, value, now));
        let mut to = to;
        if to.is_none() && language == ConfigLanguage::Fstab {
            to = Some("defaults".to_owned());
        }
        let new = match &to {
            Some(value) => assay_config::set(language, &text, &key.section, &key.key, value),
            None => assay_config::remove(language, &text, &key.section, &key.key),
        };
        let new = new.map_err(said)?;
        if new == text {
            return Ok(false);
        }
        self.note((edit.program, language), path, real, (key, to), text, new);
        Ok(true)
    }

    /// Records a change in the draft, and applies it to the in-memory copy.
    fn note(
        &mut self,
        (program, language): (Configured, ConfigLanguage),
        path: &str,
        real: PathBuf,
        (key, to): (ConfigKey, Option<String>),
        text: Vec<u8>,
        new: Vec<u8>,
    ) {
        let running = real.starts_with(RUNNING_VALUES);
        let file = self
            .files
            .entry(real.clone())
            .or_insert_with(|| FileChange {
                path: path.to_owned(),
                real: real.clone(),
                program,
                language,
                keys: Vec::new(),
                missing: None,
                before: text,
                after: Vec::new(),
                validate: match running {
                    true => Vec::new(),
                    false => program::validate(program, &real),
                },
                reload: match running {
                    true => Vec::new(),
                    false => program::reload(self.host, program, &real),
                },
            });
        file.after.clone_from(&new);
        file.keys.retain(|(known, _)| *known != key);
        file.keys.push((key, to));
        self.work.write(real, new);
    }
}

/// Returns the name of the setting that a fact is about. A running value and its line in a file are one setting.
fn name_setting(fact: &str) -> &str {
    fact.strip_suffix(".configured").unwrap_or(fact)
}

/// Fails for a file that a package upgrade would overwrite.
fn refuse_packaged(path: &str, real: &Path) -> Result<(), String> {
    match PACKAGED.iter().any(|dir| real.starts_with(dir)) {
        true => Err(format!(
            "{path} belongs to a package, whose next version writes it again"
        )),
        false => Ok(()),
    }
}

/// Returns the fact that an edit refers to; `None` if the finding is not based on this fact.
fn find_edit_evidence<'a>(finding: &'a Finding, edit: &Edit) -> Option<&'a Seen> {
    let key = match finding.subject.is_machine() {
        true => edit.fact.clone(),
        false => format!("{}.{}", finding.subject, edit.fact),
    };
    let with_key = |key: &str| finding.evidence.iter().find(|seen| seen.key == key);
    let seen = with_key(&key).or_else(|| with_key(&edit.fact))?;
    let meant = edit.only.as_ref().is_none_or(|only| *only == seen.value);
    let there = edit.file.as_ref().is_none_or(|start| match &seen.place {
        FactPlace::File { path, .. } => path.starts_with(start),
        _ => false,
    });
    (meant && there).then_some(seen)
}

/// Returns the setting that an edit changes: in the line of the fact, or in the same block of the file.
fn find_key(
    edit: &Edit,
    own: &str,
    language: ConfigLanguage,
    text: &[u8],
    line: usize,
) -> Result<Option<SettingAtLine>, assay_config::ConfError> {
    let beside = |section: Vec<String>| SettingAtLine {
        section,
        key: edit.key.clone(),
    };
    if edit.beside.as_deref() == Some(HEAD) {
        return Ok(assay_config::section_at_line(language, text, line)?.map(beside));
    }
    if let Some(key) = assay_config::setting_at_line(language, text, line, &edit.key)? {
        return Ok(Some(key));
    }
    // Another setting of the same block.
    let other = edit.beside.as_deref().unwrap_or(own);
    let found = assay_config::setting_at_line(language, text, line, other)?;
    Ok(found.map(|found| beside(found.section)))
}

/// Returns whether a key has more words than the wanted key; the additional words distinguish it from similar keys.
fn is_longer(key: &str, wanted: &str) -> bool {
    wanted != "*" && key.split_whitespace().count() > wanted.split_whitespace().count()
}

/// Returns the new value of a setting; `None` if the edit removes the setting.
fn wanted_value(edit: &Edit, now: Option<&str>) -> Option<String> {
    if edit.to.is_some() {
        return edit.to.clone();
    }
    let now = now?;
    if !edit.replace.is_empty() {
        // Blanks around the value let a pattern with blanks match whole words at both ends.
        let replaced = edit.replace.iter();
        let text = replaced.fold(format!(" {now} "), |text, [from, to]| {
            text.replace(from, to)
        });
        return Some(text.trim().to_owned());
    }
    if let Some(words) = &edit.add {
        let has = |word: &&String| !now.split(words.between).any(|known| known.trim() == **word);
        let missing: Vec<&str> = words.with.iter().filter(has).map(String::as_str).collect();
        let known = Some(now).filter(|now| !now.is_empty());
        let all: Vec<&str> = known.into_iter().chain(missing).collect();
        return Some(all.join(&words.between.to_string()));
    }
    let words = edit.drop.as_ref()?;
    let bare = now.trim_matches(['"', '\'']);
    // A sign before a list of OpenSSH applies to the whole list.
    let (sign, list) = match bare.strip_prefix(['+', '-', '^']) {
        Some(rest) if words.between == ',' => bare.split_at(bare.len() - rest.len()),
        _ => ("", bare),
    };
    // A list with blanks between its words is not split: the whole list would go.
    let is_list = |word: &str| word.split_whitespace().count() > 2;
    if words.between == ',' && list.split(',').any(is_list) {
        return Some(now.to_owned());
    }
    let excludes = |word: &str| word.starts_with(['!', '-']);
    let goes = |word: &&str| !excludes(word) && words.with.iter().any(|with| word.contains(with));
    let kept: Vec<&str> = list
        .split(words.between)
        .filter(|word| !word.trim().is_empty() && !goes(word))
        .collect();
    let any = kept.iter().any(|word| !excludes(word));
    any.then(|| format!("{sign}{}", kept.join(&words.between.to_string())))
}

/// Returns the value in quotes if the old value had quotes and quotes are part of the value in this language.
fn in_old_quotes(language: ConfigLanguage, value: String, now: Option<&str>) -> String {
    let quoted = now.is_some_and(|now| now.starts_with('"')) && !value.starts_with('"');
    match language == ConfigLanguage::KeyValue && quoted {
        true => format!("\"{value}\""),
        false => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_model::finding::Words;

    fn edit() -> Edit {
        Edit {
            fact: String::new(),
            program: Configured::Nginx,
            key: String::new(),
            file: None,
            beside: None,
            only: None,
            to: None,
            drop: None,
            replace: Vec::new(),
            add: None,
            line: Vec::new(),
            comment: None,
            mode: None,
            create: None,
        }
    }

    fn words(between: char, with: &str) -> Option<Words> {
        Some(Words {
            between,
            with: vec![with.to_owned()],
        })
    }

    fn dropped(between: char, with: &str, now: &str) -> Option<String> {
        let edit = Edit {
            drop: words(between, with),
            ..edit()
        };
        wanted_value(&edit, Some(now))
    }

    #[test]
    fn parts_are_replaced_and_words_added() {
        let pair = |from: &str, to: &str| [from.to_owned(), to.to_owned()];
        let replaced = Edit {
            replace: vec![pair("$uri", "$request_uri"), pair("a", "b")],
            ..edit()
        };
        assert_eq!(
            wanted_value(&replaced, Some("301 $uri a")).as_deref(),
            Some("301 $request_uri b")
        );
        let added = Edit {
            add: words(',', "nofail"),
            ..edit()
        };
        for (now, wanted) in [
            ("defaults", "defaults,nofail"),
            ("ro,nofail", "ro,nofail"),
            ("", "nofail"),
        ] {
            assert_eq!(wanted_value(&added, Some(now)).as_deref(), Some(wanted));
        }
        assert_eq!(wanted_value(&added, None), None);
        let whole = Edit {
            replace: vec![pair(" -c ", " ")],
            ..edit()
        };
        for (now, wanted) in [("-l -c", "-l"), ("-c", ""), ("-cd -l", "-cd -l")] {
            assert_eq!(wanted_value(&whole, Some(now)).as_deref(), Some(wanted));
        }
        let quoted =
            |value: &str| in_old_quotes(ConfigLanguage::KeyValue, value.to_owned(), Some("\"a\""));
        assert_eq!(
            (quoted("b"), quoted("\"c\"")),
            ("\"b\"".to_owned(), "\"c\"".to_owned())
        );
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
        let sites = |now| dropped(',', "b.example", now);
        assert_eq!(sites("x, check b.example, y").as_deref(), Some("x, y"));
        let blanks = "x check b.example y";
        assert_eq!(
            sites(blanks).as_deref(),
            Some(blanks),
            "it cannot be told apart"
        );
        assert_eq!(signed("+ssh-rsa"), None);
        assert_eq!(signed("+ssh-rsa,x").as_deref(), Some("+x"));
        assert_eq!(
            signed("ssh-ed25519,ssh-rsa").as_deref(),
            Some("ssh-ed25519")
        );
    }
}
