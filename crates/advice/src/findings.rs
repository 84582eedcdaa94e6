//! Findings: the pages of the catalogue that have a `[check]` table, held against the facts of a
//! machine. Pure; the same facts and pages give the same findings in the same order.

use crate::condition::{Condition, Known, Ledger, SyntaxError, Truth, World};
use assay_model::advice::Advice;
use assay_model::finding::{
    Certainty, Check, Checked, Edit, Finding, Fix, Looked, NotAsked, Remedy, Seen, Severity,
};
use assay_model::{Fact, FactKind, FactValue, Facts, Place, Subject};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What is known of one subject, by what it says of it.
type Properties<'a> = BTreeMap<&'a str, &'a Fact>;

/// Holds pages against facts. Pages without a `[check]` are left out.
#[must_use]
pub fn findings<'a>(pages: impl IntoIterator<Item = &'a Advice>, facts: &Facts) -> Checked {
    let machine = Machine::new(facts);
    let mut checked = Checked::default();
    for page in pages {
        let Some(check) = &page.check else { continue };
        let mut rule = Rule::new(page, check, &machine);
        rule.hold(&mut checked.findings);
        if let Some(why) = rule.not_asked() {
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
        });
    }
    sort(&mut checked.findings);
    checked
}

/// What is so before what may be; then the worst, what can be mended, the name.
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

/// Facts as conditions see them.
struct Machine<'a> {
    facts: &'a Facts,
    subjects: BTreeMap<&'a Subject, Properties<'a>>,
    all: Ledger,
}

impl<'a> Machine<'a> {
    fn new(facts: &'a Facts) -> Self {
        let known = facts.map.iter();
        Self {
            facts,
            subjects: facts.subjects(),
            all: Ledger::new("fact", known.map(|(key, fact)| (key.clone(), value(fact)))),
        }
    }

    fn of(&self, subject: Option<&Subject>) -> Properties<'a> {
        let found = subject.and_then(|subject| self.subjects.get(subject));
        found.cloned().unwrap_or_default()
    }

    /// The first fact of these keys, or one they are below, that could not be read.
    fn unread(&self, keys: &[String]) -> Option<(&'a str, &'a Fact, &'a str)> {
        keys.iter().find_map(|key| {
            let above = std::iter::successors(Some(key.as_str()), |key| {
                key.rsplit_once('.').map(|(above, _)| above)
            });
            above.into_iter().find_map(|key| {
                let (key, fact) = self.facts.map.get_key_value(key)?;
                match &fact.value {
                    FactValue::Unknown(why) => Some((key.as_str(), fact, why.as_str())),
                    FactValue::Known(_) => None,
                }
            })
        })
    }
}

fn value(fact: &Fact) -> Known {
    match &fact.value {
        FactValue::Known(value) => Known::Value(value.clone()),
        FactValue::Unknown(why) => Known::Unreadable(why.clone()),
    }
}

fn ledger(what: &'static str, properties: &Properties<'_>) -> Ledger {
    let known = properties.iter();
    Ledger::new(
        what,
        known.map(|(name, fact)| ((*name).to_owned(), value(fact))),
    )
}

/// How each property came to be so.
fn kinds(properties: &Properties<'_>) -> Ledger {
    let kind = |fact: &Fact| match fact.kind {
        FactKind::Default => "default",
        FactKind::Configured => "configured",
        FactKind::Runtime => "runtime",
    };
    let known = properties.iter();
    Ledger::new(
        "property",
        known.map(|(name, fact)| ((*name).to_owned(), Known::Value(kind(fact).into()))),
    )
}

/// One page and what it is held against.
struct Rule<'a> {
    page: &'a Advice,
    check: &'a Check,
    machine: &'a Machine<'a>,
    /// The conditions, or what is wrong with them.
    applies: Option<Result<Condition, SyntaxError>>,
    violated: Result<Condition, SyntaxError>,
    applied: usize,
}

/// What a condition asked for, and what of it could not be read.
#[derive(Default)]
struct Asked<'a> {
    seen: Vec<(String, &'a Fact)>,
    unread: Vec<(String, &'a Fact)>,
    /// Something that was asked for does not exist here.
    absent: bool,
}

/// What is known of one subject.
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
            applies: check.applies.as_deref().map(Condition::new),
            violated: Condition::new(&check.violated),
            applied: 0,
        }
    }

    /// Why nothing of what the rule is about was asked: the facts say so of its kinds, or of a fact that its
    /// conditions name.
    fn not_asked(&self) -> Option<&'a str> {
        let facts = &self.machine.facts.map;
        let mut all = facts.range("not_asked.".to_owned()..);
        let all = std::iter::from_fn(|| {
            let (key, fact) = all.next()?;
            Some((key.strip_prefix("not_asked.")?, fact))
        });
        let conditions = [Some(&self.check.violated), self.check.applies.as_ref()];
        let is_meant = |kind: &str| {
            let quoted = format!("\"{kind}\"");
            self.check.about.iter().any(|about| about.kind() == kind)
                || conditions
                    .into_iter()
                    .flatten()
                    .any(|cel| cel.contains(&quoted))
        };
        let (_, fact) = all.into_iter().find(|(kind, _)| is_meant(kind))?;
        match &fact.value {
            FactValue::Known(why) => why.as_str(),
            FactValue::Unknown(_) => None,
        }
    }

    fn hold(&mut self, found: &mut Vec<Finding>) {
        let machine_itself = Subject::default();
        // Where the kind cannot be listed, there may be subjects that nobody sees.
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
            false => self.machine.of(Some(subject)),
        };
        let parent = self.machine.of(subject.parent().as_ref());
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
        // The subject is there, and nothing more is known of it.
        if let Some(fact) = scene.this.get("")
            && let FactValue::Unknown(why) = &fact.value
        {
            let key = scene.subject.to_string();
            return Some(self.unknown(scene.subject, &[(key, *fact)], why));
        }
        let mut asked = Asked::default();
        if let Some(applies) = &self.applies {
            match self.ask(applies, scene, &mut asked) {
                Truth::True => {}
                Truth::False => return None,
                Truth::Unknown(why) => return self.undecided(scene, &asked, &why),
            }
        }
        self.applied += 1;
        // What decides stands first.
        let mut decided = Asked::default();
        let truth = self.ask(&self.violated, scene, &mut decided);
        decided.add(asked);
        match truth {
            Truth::False => None,
            Truth::Unknown(why) => self.undecided(scene, &decided, &why),
            Truth::True => Some(self.violated(scene, &decided)),
        }
    }

    fn ask<'s>(
        &self,
        condition: &Result<Condition, SyntaxError>,
        scene: &Scene<'s>,
        asked: &mut Asked<'s>,
    ) -> Truth
    where
        'a: 's,
    {
        let truth = match condition {
            Ok(condition) => condition.evaluate(&scene.world),
            Err(error) => Truth::Unknown(error.to_string()),
        };
        let of = |properties: &Properties<'s>, subject: &Subject, name: &str| {
            let fact = *properties.get(name)?;
            Some((format!("{subject}.{name}"), fact))
        };
        let mut this = scene.world.this.take_asked();
        this.extend(scene.world.kinds.take_asked());
        let this = this.iter().map(|name| of(&scene.this, scene.subject, name));
        let above = scene.subject.parent().unwrap_or_default();
        let parent = scene.world.parent.take_asked();
        let parent = parent.iter().map(|name| of(&scene.parent, &above, name));
        let facts = scene.world.facts.take_asked();
        let facts = facts.into_iter().map(|key| {
            let fact = self.machine.facts.map.get(&key)?;
            Some((key, fact))
        });
        for found in this.chain(parent).chain(facts) {
            match found {
                Some((key, fact)) => asked.note(key, fact),
                None => asked.absent = true,
            }
        }
        truth
    }

    /// What could not be read leaves it open; what does not exist is not asked about.
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

    fn violated(&self, scene: &Scene<'_>, asked: &Asked<'_>) -> Finding {
        let fill = |text: &str| fill(text, scene, self.machine.facts);
        let all = |steps: &[String]| steps.iter().map(|step| fill(step)).collect();
        let evidence: Vec<Seen> = asked.seen.iter().filter_map(seen).collect();
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
                        ..edit.clone()
                    })
                    .collect(),
            }),
            (None, None) => Fix::NotHere("the page says what there is to know".to_owned()),
        };
        Finding {
            title: fill(&self.check.say.title),
            text: fill(&self.check.say.text),
            places: places(&evidence),
            evidence,
            fix,
            certainty: Certainty::Violated,
            ..self.finding(scene.subject)
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
            // Whether data is safe is not decided by a measurement.
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

/// Lines of files before anything else, each once: they are what somebody changes.
fn places(evidence: &[Seen]) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for seen in evidence {
        if !places.contains(&seen.place) {
            places.push(seen.place.clone());
        }
    }
    places.sort_by_key(|place| match place {
        Place::File { line: Some(_), .. } => 0,
        Place::Command { .. } | Place::Interface { .. } => 1,
        Place::File { .. } => 2,
        Place::Words(_) => 3,
    });
    places
}

/// Text with its placeholders filled in; what is not known stays as it is written.
fn fill(text: &str, scene: &Scene<'_>, facts: &Facts) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let value = after.split_once('}').and_then(|(name, behind)| {
            let found = match name {
                "name" if !scene.this.contains_key("name") => Some(scene.subject.label()),
                _ => value_of(name, scene, facts).map(|fact| shown(&fact.value)),
            };
            Some((found?, behind))
        });
        match value {
            Some((value, behind)) => {
                out.push_str(&value);
                rest = behind;
            }
            None => {
                out.push('{');
                rest = after;
            }
        }
    }
    out + rest
}

fn value_of<'a>(name: &str, scene: &Scene<'a>, facts: &'a Facts) -> Option<&'a Fact> {
    match name.split_once('.') {
        Some(("parent", name)) => scene.parent.get(name).copied(),
        Some(("facts", key)) => facts.map.get(key),
        _ => scene.this.get(name).copied(),
    }
}

fn shown(value: &FactValue) -> String {
    let one = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match value {
        FactValue::Known(Value::Array(items)) => {
            items.iter().map(one).collect::<Vec<_>>().join(", ")
        }
        FactValue::Known(value) => one(value),
        FactValue::Unknown(_) => "unknown".to_owned(),
    }
}

/// Pages whose domain or id is among those named; all when none is.
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

/// Whether a check at this threshold failed, or could not be made: what scripts ask.
#[must_use]
pub fn fails(checked: &Checked, at: Severity) -> bool {
    checked.worst().is_some_and(|worst| worst >= at)
}

#[cfg(test)]
mod tests;
