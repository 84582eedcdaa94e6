//! Remedies that the test executes on the machines on which their rules have findings. Each case contains the text of
//! the page and the commands that execute it. The module `machine` creates the machines.

mod database;
mod filesystems;
mod images;
mod kernel;
mod mail;
mod network;
mod power;
mod smb;
mod ssh;
mod system;
mod tls;
mod web;

use super::machine::{Machine, count, marked};
use assay_model::advice::Advice;
use assay_model::finding::{Finding, Fix};
use std::path::{Path, PathBuf};

/// How the test executes the remedy of a page.
pub struct Case {
    pub page: &'static str,
    /// Names of the fixtures under `fires`. If empty, all fixtures are used.
    pub trees: &'static [&'static str],
    /// Program that must be installed for the case.
    pub needs: &'static str,
    /// Script that runs before the check, and creates what the program needs and the fixture lacks.
    pub furnish: &'static str,
    pub acts: &'static [Act],
    /// Script with which the program validates the result.
    pub accepted: &'static str,
}

/// A part of a remedy that is executed.
pub enum Act {
    /// Executes the printed command that has this prefix. Words in upper case are replaced.
    Paste(&'static str, &'static [(&'static str, &'static str)]),
    /// Like `Paste`, but the command is `$COMMAND` in a script. For commands that need a running server.
    PasteIn(
        &'static str,
        &'static [(&'static str, &'static str)],
        &'static str,
    ),
    /// Text of the steps, and a script that does what the text describes. `$FILE` and `$LINE` are the place of the
    /// finding.
    Do(&'static str, &'static str),
}

/// Command that deletes the marked line.
pub const REMOVE: &str = r#"sed -i "${LINE}d" "$FILE""#;

/// Returns the cases of all pages.
pub fn all() -> impl Iterator<Item = &'static Case> {
    [
        database::CASES,
        filesystems::CASES,
        images::CASES,
        kernel::CASES,
        mail::CASES,
        network::CASES,
        power::CASES,
        smb::CASES,
        ssh::CASES,
        system::CASES,
        tls::CASES,
        web::CASES,
    ]
    .into_iter()
    .flatten()
    .copied()
    .flatten()
}

pub use tls::{CHAIN, ISSUING};

/// Returns the fixtures on which the rule of a page has findings.
pub fn trees(page: &Advice) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../advice");
    let dir = root.join(&page.domain).join(&page.id).join("fires");
    let entries = std::fs::read_dir(dir).unwrap();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    found
}

impl Case {
    /// Returns whether the case is for this fixture.
    pub fn is_about(&self, tree: &Path) -> bool {
        let name = tree.file_name().unwrap().to_str().unwrap();
        self.trees.is_empty() || self.trees.contains(&name)
    }

    /// Executes the remedy on a fixture, once for each finding.
    ///
    /// # Errors
    /// A finding remains, the remedy causes another finding, or the program rejects the result.
    pub fn execute(&self, page: &Advice, tree: &Path) -> Result<(), String> {
        let machine = Machine::of(page, tree)?;
        machine.run(self.furnish, &[])?;
        let before = count(&machine.findings());
        let mut left = machine.found(page);
        if left.is_empty() {
            return Err("nothing is found".to_owned());
        }
        while let Some(finding) = left.first() {
            self.carry_out(&machine, finding)?;
            let now = machine.found(page);
            if now.len() >= left.len() {
                return Err(format!("the remedy does not clear {}", now[0].title));
            }
            left = now;
        }
        // A finding may move with its line to another block, so only the number counts.
        for ((rule, certainty), now) in count(&machine.findings()) {
            if before.get(&(rule.clone(), certainty)).copied() < Some(now) {
                return Err(format!("the remedy opens {rule} ({certainty:?})"));
            }
        }
        machine.run(self.accepted, &[]).map(drop)
    }

    fn carry_out(&self, machine: &Machine, finding: &Finding) -> Result<(), String> {
        let Fix::Steps(remedy) = &finding.fix else {
            return Err(format!("no remedy: {:?}", finding.fix));
        };
        let steps = remedy.steps.join(" ");
        let (file, line) = marked(finding);
        let mut variables = vec![
            ("FILE", file),
            ("LINE", line),
            ("SUBJECT", finding.subject.to_string()),
        ];
        for act in self.acts {
            let script = match act {
                Act::Paste(beginning, replaced) => paste(&steps, beginning, replaced)?,
                Act::PasteIn(beginning, replaced, script) => {
                    variables.retain(|(name, _)| *name != "COMMAND");
                    variables.push(("COMMAND", paste(&steps, beginning, replaced)?));
                    (*script).to_owned()
                }
                Act::Do(said, script) if steps.contains(said) => (*script).to_owned(),
                Act::Do(said, _) => return Err(format!("the page does not say {said:?}: {steps}")),
            };
            machine.run(&script, &variables)?;
        }
        Ok(())
    }
}

/// Returns the command that has this prefix. The words that a reader must replace are replaced.
fn paste(steps: &str, beginning: &str, replaced: &[(&str, &str)]) -> Result<String, String> {
    let mut commands = steps.split('`').skip(1).step_by(2);
    let command = commands
        .find(|command| command.starts_with(beginning))
        .ok_or_else(|| format!("no command begins with {beginning:?}: {steps}"))?;
    let fill = |command: String, (word, value): &(&str, &str)| command.replace(word, value);
    Ok(replaced.iter().fold(command.to_owned(), fill))
}
