//! Evaluates the rules (pages with a `[check]` table) on the facts of a machine. Pure: the same facts and pages give
//! the same findings in the same order.

mod finding_text;
mod machine;
mod steps;

use crate::condition::{Condition, Ledger, SyntaxError, Truth, World};
use crate::coverage;
use assay_model::advice::Advice;
use assay_model::coverage::Outcome;
use assay_model::finding::{
    Certainty, Check, Checked, Edit, Finding, Fix, Looked, NotAsked, Remedy, Seen, Severity, Words,
};
use assay_model::{Fact, FactPlace, FactValue, Facts, Subject};
use machine::{Machine, find_property, kinds, ledger};
use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Properties of one subject, by name.
type Properties<'a> = BTreeMap<&'a str, &'a Fact>;

/// Evaluates the rules of pages on facts. Pages without a `[check]` table are skipped.
#[must_use]
pub fn findings<'a>(pages: impl IntoIterator<Item = &'a Advice>, facts: &Facts) -> Checked {
    let machine = Machine::new(facts);
    let mut checked = Checked::default();
    for page in pages {
        let Some(check) = &page.check else { continue };
        let mut rule = Rule::new(page, check, &machine);
        let before = checked.findings.len();
        rule.hold(&mut checked.findings);
        // A machine that violates the rule already has the answer: a second source cannot change it.
        let mut new = checked.findings[before..].iter();
        let answered =
            check.about.is_empty() && new.any(|finding| finding.certainty == Certainty::Violated);
        if let Some(why) = rule.not_asked().filter(|_| !answered) {
            checked.not_asked.push(NotAsked {
                rule: page.id.clone(),
                why: why.to_owned(),
            });
        }
        checked.rules.push(Looked {
            rule: page.id.clone(),
            domain: page.domain.clone(),
            statement: page.statement.clone(),
            severity: check.severity,
            applied: rule.applied,
            service: coverage::service_of(page, check, facts),
            sources: page.literature.references.clone(),
            outcome: Outcome::NoService,
            why: coverage::condition_of(check),
        });
    }
    sort(&mut checked.findings);
    coverage::fill_in(&mut checked, facts);
    checked
}

/// Sorts findings: violations before uncertain findings, then by severity, then fixable ones first, then by name.
fn sort(findings: &mut [Finding]) {
    let mends = |finding: &Finding| matches!(finding.fix, Fix::Steps(_));
    let key = |finding: &Finding| {
        (
            finding.certainty,
            Reverse(finding.severity),
            Reverse(mends(finding)),
            finding.domain.clone(),
            finding.rule.clone(),
            finding.subject.clone(),
        )
    };
    findings.sort_by_cached_key(key);
}

/// A page with a `[check]` table, and the machine on which its conditions are evaluated.
struct Rule<'a> {
    page: &'a Advice,
    check: &'a Check,
    machine: &'a Machine<'a>,
    applies: Option<UsedCondition<'a>>,
    violated: UsedCondition<'a>,
    applied: usize,
}

/// A condition that is compiled only when it is used, because most services do not exist on a given machine.
struct UsedCondition<'a> {
    source: &'a str,
    compiled: OnceCell<Result<Condition, SyntaxError>>,
}

impl<'a> UsedCondition<'a> {
    fn new(source: &'a str) -> Self {
        Self {
            source,
            compiled: OnceCell::new(),
        }
    }

    /// Returns the compiled condition, or the error of compiling it.
    fn get(&self) -> &Result<Condition, SyntaxError> {
        self.compiled.get_or_init(|| Condition::new(self.source))
    }
}

/// Facts that a condition used, and the unreadable ones among them.
#[derive(Default)]
struct Asked<'a> {
    seen: Vec<(String, &'a Fact)>,
    unread: Vec<(String, &'a Fact)>,
    /// Whether the condition used a key that this machine lacks.
    absent: bool,
}

/// One subject with its properties, the properties of its parent, and the maps for conditions.
struct Scene<'a> {
    subject: &'a Subject,
    this: Properties<'a>,
    parent: Properties<'a>,
    world: World,
}

impl<'a> Rule<'a> {
    fn new(page: &'a Advice, check: &'a Check, machine: &'a Machine<'a>) -> Self {
        Self {
            page,
            check,
            machine,
            applies: check.applies.as_deref().map(UsedCondition::new),
            violated: UsedCondition::new(&check.violated),
            applied: 0,
        }
    }

    /// Returns the reason why the rule was not evaluated. There is a reason if a fact `not_asked.KIND` exists for a
    /// kind that the rule checks, or for a fact in its conditions.
    fn not_asked(&self) -> Option<&'a str> {
        let facts = &self.machine.facts.map;
        let conditions = [Some(&self.check.violated), self.check.applies.as_ref()];
        let quoted = conditions
            .into_iter()
            .flatten()
            .flat_map(|cel| cel.split('"'));
        let of_subjects = self.check.about.iter().map(|about| about.kind());
        let kinds: BTreeSet<&str> = quoted.chain(of_subjects).collect();
        let fact = kinds
            .into_iter()
            .find_map(|kind| facts.get(&format!("not_asked.{kind}")))?;
        match &fact.value {
            FactValue::Known(why) => why.as_str(),
            FactValue::Unknown(_) => None,
        }
    }

    fn hold(&mut self, found: &mut Vec<Finding>) {
        let machine_itself = Subject::default();
        // If the kind cannot be listed, there may be further subjects.
        let mut whole = self.check.needs_whole.clone();
        whole.extend(self.check.about.iter().map(|about| about.kind().to_owned()));
        let unread = self.machine.unread(&whole);
        if let Some((key, fact, why)) = unread {
            found.push(self.unknown(&machine_itself, &[(key.to_owned(), fact)], why));
        }
        if unread.is_some() && !self.check.needs_whole.is_empty() {
            return;
        }
        let about = &self.check.about;
        let meant = |subject: &&Subject| about.iter().any(|about| about.means(subject));
        let subjects: Vec<&Subject> = match about.is_empty() {
            true => vec![&machine_itself],
            false => self
                .machine
                .subjects
                .keys()
                .copied()
                .filter(meant)
                .collect(),
        };
        for subject in subjects {
            let scene = self.scene(subject);
            found.extend(self.subject(&scene));
        }
    }

    fn scene<'s>(&self, subject: &'s Subject) -> Scene<'s>
    where
        'a: 's,
    {
        let this = match subject.is_machine() {
            true => Properties::new(),
            false => self.machine.properties_of(Some(subject)),
        };
        let parent = self.machine.properties_of(subject.parent().as_ref());
        let none = |what| Ledger::new(what, []);
        let world = World {
            facts: self.machine.all.clone(),
            parameters: none("parameter"),
            target: none("target"),
            trial: none("trial"),
            this: ledger("property", &this),
            kinds: kinds(&this),
            parent: ledger("property of what it is a part of", &parent),
        };
        Scene {
            subject,
            this,
            parent,
            world,
        }
    }

    fn subject(&mut self, scene: &Scene<'_>) -> Option<Finding> {
        let mut asked = Asked::default();
        if let Some(applies) = &self.applies {
            match self.ask(applies, scene, &mut asked) {
                Truth::True => {}
                Truth::False => return None,
                Truth::Unknown(why) => return self.undecided(scene, &asked, &why),
            }
        }
        self.applied += 1;
        // The deciding condition comes first.
        let mut decided = Asked::default();
        let truth = self.ask(&self.violated, scene, &mut decided);
        decided.add(asked);
        match truth {
            Truth::False => None,
            Truth::Unknown(why) => self.undecided(scene, &decided, &why),
            Truth::True => {
                let deciding = self.find_deciding(scene);
                Some(self.violated(scene, &decided, &deciding))
            }
        }
    }

    fn ask<'s>(
        &self,
        condition: &UsedCondition<'_>,
        scene: &Scene<'s>,
        asked: &mut Asked<'s>,
    ) -> Truth
    where
        'a: 's,
    {
        let truth = match condition.get() {
            Ok(condition) => condition.evaluate(&scene.world),
            Err(error) => Truth::Unknown(error.to_string()),
        };
        self.note_asked(scene, asked);
        truth
    }

    /// Adds the facts that the conditions used since the previous call to `asked`.
    fn note_asked<'s>(&self, scene: &Scene<'s>, asked: &mut Asked<'s>)
    where
        'a: 's,
    {
        let mut this = scene.world.this.take_asked();
        this.extend(scene.world.kinds.take_asked());
        let this = this
            .iter()
            .map(|name| find_property(&scene.this, scene.subject, name));
        let above = scene.subject.parent().unwrap_or_default();
        let parent = scene.world.parent.take_asked();
        let parent = parent
            .iter()
            .map(|name| find_property(&scene.parent, &above, name));
        let facts = scene.world.facts.take_asked();
        let facts = facts.into_iter().map(|key| {
            let (key, fact) = self.machine.find(&key)?;
            Some((key.to_owned(), fact))
        });
        for found in this.chain(parent).chain(facts) {
            match found {
                Some((key, fact)) => asked.note(key, fact),
                None => asked.absent = true,
            }
        }
    }

    /// Returns the facts that make the condition true, beginning with the most decisive fact.
    fn find_deciding<'s>(&self, scene: &Scene<'s>) -> Asked<'s>
    where
        'a: 's,
    {
        let mut deciding = Asked::default();
        if let Ok(condition) = self.violated.get() {
            let mut note = || self.note_asked(scene, &mut deciding);
            condition.visit_deciding(&scene.world, &mut note);
        }
        deciding
    }

    /// Creates a finding with an uncertain violation if a source is unreadable. Returns `None` if a value is only
    /// absent.
    fn undecided(&self, scene: &Scene<'_>, asked: &Asked<'_>, why: &str) -> Option<Finding> {
        match asked.unread.is_empty() {
            true if asked.absent => None,
            _ => Some(self.unknown(scene.subject, &asked.unread, why)),
        }
    }

    fn unknown(&self, subject: &Subject, unread: &[(String, &Fact)], why: &str) -> Finding {
        let reasons: Vec<String> = unread
            .iter()
            .map(|(key, fact)| match &fact.value {
                FactValue::Unknown(why) => format!("{key}: {why} ({})", fact.place),
                FactValue::Known(_) => key.clone(),
            })
            .collect();
        let text = match reasons.is_empty() {
            true => why.to_owned(),
            false => reasons.join("; "),
        };
        Finding {
            title: self.page.title.clone(),
            text,
            places: unread.iter().map(|(_, fact)| fact.place.clone()).collect(),
            evidence: Vec::new(),
            fix: Fix::AfterReading,
            certainty: Certainty::Unknown,
            ..self.finding(subject)
        }
    }

    fn violated(&self, scene: &Scene<'_>, asked: &Asked<'_>, deciding: &Asked<'_>) -> Finding {
        let evidence: Vec<Seen> = asked.seen.iter().filter_map(seen).collect();
        let places = self.places(scene, &evidence, deciding);
        let words = |name: &str| finding_text::words(name, scene, self.machine.facts, &places);
        let or_unknown = |name: &str| {
            let known = finding_text::value_of(name, scene, self.machine.facts).is_some();
            words(name).or_else(|| known.then(|| vec!["unknown".to_owned()]))
        };
        let fill = |text: &str| finding_text::fill(text, &or_unknown);
        // A value that would add a line or a placeholder is left out; a file with a placeholder is never created.
        let plain = |name: &str| {
            let harmless =
                |word: &String| !word.contains(|one: char| one.is_control() || one == '{');
            words(name).filter(|words| words.iter().all(harmless))
        };
        let fill_file = |text: &str| finding_text::fill(text, &plain);
        let all = |steps: &[String]| steps::fill_steps(steps, &words);
        let fix = match (&self.check.not_actionable, &self.check.remedy) {
            (Some(why), _) => Fix::NotHere(fill(why)),
            (None, Some(remedy)) => Fix::Steps(Remedy {
                steps: all(&remedy.steps),
                undo: all(&remedy.undo),
                edits: remedy
                    .edits
                    .iter()
                    .map(|edit| Edit {
                        key: fill(&edit.key),
                        create: edit.create.as_deref().map(fill_file),
                        line: edit
                            .line
                            .iter()
                            .map(|[from, to]| [fill(from), fill(to)])
                            .collect(),
                        drop: edit.drop.as_ref().map(|words| Words {
                            with: words.with.iter().map(|word| fill(word)).collect(),
                            ..words.clone()
                        }),
                        ..edit.clone()
                    })
                    .collect(),
            }),
            (None, None) => Fix::NotHere("the page says what there is to know".to_owned()),
        };
        Finding {
            title: fill(&self.check.say.title),
            text: fill(&self.check.say.text),
            places,
            evidence,
            fix,
            certainty: Certainty::Violated,
            ..self.finding(scene.subject)
        }
    }

    /// Returns the places of a finding: the place of the fact that the page selects, and the places of the deciding
    /// facts. If only a missing value decided, returns the places of all facts that the condition used.
    fn places(&self, scene: &Scene<'_>, evidence: &[Seen], deciding: &Asked<'_>) -> Vec<FactPlace> {
        let at = self.check.say.at.as_deref();
        let first = at.and_then(|at| finding_text::value_of(at, scene, self.machine.facts));
        let of_key = |(key, _): &(String, &Fact)| evidence.iter().find(|seen| seen.key == *key);
        let decided: Vec<&Seen> = deciding.seen.iter().filter_map(of_key).collect();
        match decided.is_empty() {
            true => finding_text::places(first, &evidence.iter().collect::<Vec<_>>()),
            false => finding_text::places(first, &decided),
        }
    }

    fn finding(&self, subject: &Subject) -> Finding {
        Finding {
            rule: self.page.id.clone(),
            domain: self.page.domain.clone(),
            subject: subject.clone(),
            severity: self.check.severity,
            certainty: Certainty::Unknown,
            title: String::new(),
            text: String::new(),
            places: Vec::new(),
            evidence: Vec::new(),
            fix: Fix::AfterReading,
            // A measurement cannot decide whether data are safe.
            trial: (self.page.trial.is_some() && self.check.severity <= Severity::Medium)
                .then(|| self.page.id.clone()),
            verdict: None,
        }
    }
}

impl<'a> Asked<'a> {
    fn note(&mut self, key: String, fact: &'a Fact) {
        let to = match fact.value {
            FactValue::Known(_) => &mut self.seen,
            FactValue::Unknown(_) => &mut self.unread,
        };
        if !to.iter().any(|(known, _)| *known == key) {
            to.push((key, fact));
        }
    }

    fn add(&mut self, other: Self) {
        for (key, fact) in other.seen.into_iter().chain(other.unread) {
            self.note(key, fact);
        }
    }
}

fn seen((key, fact): &(String, &Fact)) -> Option<Seen> {
    match &fact.value {
        FactValue::Unknown(_) => None,
        FactValue::Known(value) => Some(Seen {
            key: key.clone(),
            value: value.clone(),
            kind: fact.kind,
            place: fact.place.clone(),
        }),
    }
}

/// Returns the pages whose domain or id is in the list. Returns all pages for an empty list.
#[must_use]
pub fn chosen<'a>(pages: Vec<&'a Advice>, only: &[String]) -> Vec<&'a Advice> {
    let wanted = |page: &&Advice| {
        only.is_empty()
            || only
                .iter()
                .any(|name| *name == page.domain || *name == page.id)
    };
    pages.into_iter().filter(wanted).collect()
}

/// Returns whether at least one finding has the severity `at` or a higher one. This determines the exit status.
#[must_use]
pub fn fails(checked: &Checked, at: Severity) -> bool {
    checked.worst().is_some_and(|worst| worst >= at)
}

#[cfg(test)]
mod tests;
