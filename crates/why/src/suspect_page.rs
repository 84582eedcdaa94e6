//! A page about a suspect: kind of entity, condition, explained waiting, counter-evidence, and commands that show
//! whether the suspicion is right.

mod expression;
mod sentence;

pub(crate) use expression::{Expression, Scope};
pub(crate) use sentence::Sentence;

use crate::machine_snapshot::EntityKind;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// A page as in its file, before the expressions are parsed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenPage {
    title: String,
    layer: String,
    of: EntityKind,
    when: String,
    weight: Option<String>,
    #[serde(default)]
    explains: BTreeMap<String, String>,
    why: String,
    evidence: Vec<String>,
    #[serde(default)]
    against: Vec<WrittenDoubt>,
    next: Vec<String>,
    most: Option<usize>,
    #[serde(default)]
    machine_only: bool,
    same: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenDoubt {
    when: String,
    text: String,
}

/// Definition of a suspect, independent of a machine.
#[derive(Debug)]
pub struct SuspectPage {
    /// Name of the file without its extension.
    pub id: String,
    /// Layer to which the suspect belongs.
    pub layer: String,
    /// Kind of entity that can be the suspect.
    pub of: EntityKind,
    /// One or two sentences on why such an entity makes other tasks wait.
    pub why: String,
    pub(crate) title: Sentence,
    pub(crate) when: Expression,
    pub(crate) weight: Option<Expression>,
    /// Classes of waiting that the suspect explains, and the fraction of each.
    pub(crate) explains: Vec<(String, Expression)>,
    pub(crate) evidence: Vec<Sentence>,
    pub(crate) against: Vec<(Expression, Sentence)>,
    pub(crate) next: Vec<Sentence>,
    /// Whether the page applies only if the whole machine is watched, or a part that waits for this suspect.
    pub(crate) machine_only: bool,
    /// Name of the text that contains the cause. Entities with the same cause are shown as one suspect.
    pub(crate) same: Option<String>,
    /// Maximum number of entities that are shown.
    pub(crate) most: usize,
}

/// A page is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("suspects/{id}.toml: {message}")]
pub struct SuspectPageError {
    /// Name of the file without its extension.
    pub id: String,
    /// Description of the mistake.
    pub message: String,
}

impl SuspectPage {
    /// Parses a page.
    ///
    /// # Errors
    /// The text is not a valid page, or contains an invalid expression or placeholder.
    pub fn parse(id: &str, text: &str) -> Result<Self, SuspectPageError> {
        let fault = |message: String| SuspectPageError {
            id: id.to_owned(),
            message,
        };
        let page: WrittenPage = toml::from_str(text).map_err(|error| fault(error.to_string()))?;
        let expression = |source: &str| {
            Expression::parse(source).map_err(|message| fault(format!("{source}: {message}")))
        };
        let sentence = |source: &String| {
            Sentence::parse(source).map_err(|message| fault(format!("{source}: {message}")))
        };
        let explains = page.explains.iter();
        let against = page.against.iter();
        Ok(Self {
            id: id.to_owned(),
            title: sentence(&page.title)?,
            layer: page.layer.clone(),
            of: page.of,
            why: page.why.clone(),
            when: expression(&page.when)?,
            weight: page.weight.as_deref().map(expression).transpose()?,
            explains: explains
                .map(|(class, source)| Ok((class.clone(), expression(source)?)))
                .collect::<Result<_, _>>()?,
            evidence: page
                .evidence
                .iter()
                .map(sentence)
                .collect::<Result<_, _>>()?,
            against: against
                .map(|doubt| Ok((expression(&doubt.when)?, sentence(&doubt.text)?)))
                .collect::<Result<_, _>>()?,
            next: page.next.iter().map(sentence).collect::<Result<_, _>>()?,
            machine_only: page.machine_only,
            same: page.same,
            most: page.most.unwrap_or(2),
        })
    }
}

/// Built-in pages: id and text.
const BUILTIN: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/suspects.rs"));

/// Returns the keys of the facts that the pages use, as in `facts['KEY']`.
pub(crate) fn list_used_facts() -> BTreeSet<&'static str> {
    let texts = BUILTIN.iter();
    texts
        .flat_map(|(_, text)| text.split("facts['").skip(1))
        .filter_map(|rest| Some(rest.split_once("']")?.0))
        .collect()
}

/// Returns all built-in suspects.
///
/// # Errors
/// A page is invalid; tests parse all of them.
pub fn load_suspects() -> Result<&'static [SuspectPage], SuspectPageError> {
    static PAGES: OnceLock<Result<Vec<SuspectPage>, SuspectPageError>> = OnceLock::new();
    let parse = || {
        BUILTIN
            .iter()
            .map(|(id, text)| SuspectPage::parse(id, text))
            .collect()
    };
    match PAGES.get_or_init(parse) {
        Ok(pages) => Ok(pages),
        Err(error) => Err(error.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_can_be_read_and_says_how_to_prove_it() {
        let pages = load_suspects().unwrap();
        assert!(pages.len() >= 6);
        for page in pages {
            let is_whole =
                !page.evidence.is_empty() && !page.next.is_empty() && !page.why.is_empty();
            assert!(
                is_whole && (page.weight.is_some() || !page.explains.is_empty()),
                "{}",
                page.id
            );
        }
    }
}
