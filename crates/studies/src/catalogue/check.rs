//! Checks that every name that a study uses is defined in the study.

use assay_model::study::{Claim, Derived, Form, Study};
use std::collections::BTreeSet;

/// A mistake in a study, with the table that contains the mistake.
#[derive(Debug)]
pub(super) struct Wrong {
    /// Name of the table: `configuration`, `figure`, `published`, `conclusion`, or `forms.quick`; empty for the top
    /// level.
    table: &'static str,
    /// Index among the tables of that name, from 0.
    number: usize,
    pub message: String,
}

impl Wrong {
    /// Returns the line number of the table's header, from 1. Returns 1 for the top level.
    pub fn line(&self, text: &str) -> usize {
        let headers = [format!("[[{}]]", self.table), format!("[{}]", self.table)];
        let lines = (1..).zip(text.lines());
        let mut found = lines.filter(|(_, line)| {
            let line = line.split('#').next().unwrap_or_default().trim();
            headers.iter().any(|header| line == header)
        });
        found.nth(self.number).map_or(1, |(line, _)| line)
    }
}

fn wrong(table: &'static str, number: usize, message: impl Into<String>) -> Result<(), Wrong> {
    Err(Wrong {
        table,
        number,
        message: message.into(),
    })
}

pub(super) fn check(study: &Study) -> Result<(), Wrong> {
    if !is_plain_name(&study.name) {
        return wrong("", 0, format!("name = {:?}: {PLAIN}", study.name));
    }
    if let Err(error) = crate::find_bench(&study.bench) {
        return wrong("", 0, error.to_string());
    }
    names(study)?;
    form(study, "forms.quick", &study.forms.quick)?;
    form(study, "forms.full", &study.forms.full)?;
    for (number, one) in study.published.iter().enumerate() {
        let at = |message| wrong("published", number, message);
        if study.configuration(&one.configuration).is_none() {
            return at(unknown_name("configuration", &one.configuration));
        }
        match study.figure(&one.figure) {
            None => return at(unknown_name("figure", &one.figure)),
            Some(figure) if figure.derived.is_some() => {
                return at(format!("{} is derived: it is computed", one.figure));
            }
            Some(_) if !one.value.is_finite() => {
                return at(format!("value = {}: give a number", one.value));
            }
            Some(_) => {}
        }
    }
    for (number, conclusion) in study.conclusions.iter().enumerate() {
        if conclusion.claims.is_empty() {
            return wrong("conclusion", number, "it has no claim");
        }
        for one in &conclusion.claims {
            if let Some(message) = claim(study, one) {
                return wrong("conclusion", number, message);
            }
        }
    }
    Ok(())
}

const PLAIN: &str = "use 1 to 40 letters, digits, `-`, `_` and `.`";

fn is_plain_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=40).contains(&name.len()) && name.chars().all(plain)
}

fn unknown_name(what: &str, name: &str) -> String {
    format!("there is no {what} `{}`", name.escape_debug())
}

fn names(study: &Study) -> Result<(), Wrong> {
    let mut known = BTreeSet::new();
    for (number, one) in study.configurations.iter().enumerate() {
        if !is_plain_name(&one.name) {
            return wrong(
                "configuration",
                number,
                format!("name = {:?}: {PLAIN}", one.name),
            );
        }
        if !known.insert(&one.name) {
            return wrong("configuration", number, format!("a second `{}`", one.name));
        }
    }
    for (number, one) in study.configurations.iter().enumerate() {
        for name in one.figures.iter().flatten() {
            match study.figure(name) {
                None => return wrong("configuration", number, unknown_name("figure", name)),
                Some(figure) if figure.derived.is_some() => {
                    let message = format!("`{name}` is derived: it is computed");
                    return wrong("configuration", number, message);
                }
                Some(_) => {}
            }
        }
    }
    let mut known = BTreeSet::new();
    for (number, one) in study.figures.iter().enumerate() {
        let at = |message| wrong("figure", number, message);
        if !is_plain_name(&one.name) {
            return at(format!("name = {:?}: {PLAIN}", one.name));
        }
        if let Some(derived) = &one.derived {
            // A derived figure may use only earlier ones, which defines an order of computation.
            for of in derived.of() {
                if !known.contains(of) {
                    return at(format!(
                        "{} before `{}`",
                        unknown_name("figure", of),
                        one.name
                    ));
                }
            }
            if let Derived::Weighted { baseline, .. } = derived
                && study.configuration(baseline).is_none()
            {
                return at(unknown_name("configuration", baseline));
            }
            if derived.of().is_empty() {
                return at("it is derived from nothing".to_owned());
            }
        }
        if !known.insert(one.name.as_str()) {
            return at(format!("a second `{}`", one.name));
        }
    }
    if study.measured().is_empty() {
        return wrong("figure", 0, "there is no figure to measure");
    }
    Ok(())
}

fn form(study: &Study, table: &'static str, form: &Form) -> Result<(), Wrong> {
    if !(1..=1000).contains(&form.rounds) {
        return wrong(table, 0, format!("rounds = {}: use 1 to 1000", form.rounds));
    }
    for name in form.configurations.iter().flatten() {
        match study.configuration(name) {
            None => return wrong(table, 0, unknown_name("configuration", name)),
            Some(one) if one.published_only => {
                return wrong(table, 0, format!("`{name}` is published only"));
            }
            Some(_) => {}
        }
    }
    let mut names = form.figures.iter().flatten();
    if let Some(name) = names.find(|name| study.figure(name).is_none()) {
        return wrong(table, 0, unknown_name("figure", name));
    }
    match study.tried(form).is_empty() {
        true => wrong(table, 0, "there is no configuration to try"),
        false => Ok(()),
    }
}

fn claim(study: &Study, claim: &Claim) -> Option<String> {
    let (figure, configurations, bounds) = match claim {
        Claim::Ratio {
            figure,
            of,
            to,
            at_least,
            at_most,
        } => (figure, vec![of, to], Some((at_least, at_most))),
        Claim::Value {
            figure,
            of,
            at_least,
            at_most,
        } => (figure, vec![of], Some((at_least, at_most))),
        Claim::Order { figure, best_first } => (figure, best_first.iter().collect(), None),
    };
    if study.figure(figure).is_none() {
        return Some(unknown_name("figure", figure));
    }
    let missing = configurations
        .iter()
        .find(|name| study.configuration(name).is_none());
    if let Some(name) = missing {
        return Some(unknown_name("configuration", name));
    }
    if configurations.iter().collect::<BTreeSet<_>>().len() < configurations.len() {
        return Some("it holds a configuration against itself".to_owned());
    }
    match (bounds, claim) {
        (Some((None, None)), _) => Some("give at_least, at_most, or both".to_owned()),
        (Some((Some(low), Some(high))), _) if low > high => {
            Some(format!("at_least = {low} is more than at_most = {high}"))
        }
        (Some((low, high)), _) => [low, high]
            .into_iter()
            .flatten()
            .find(|bound| !bound.is_finite())
            .map(|bound| format!("{bound} is no bound")),
        (None, Claim::Order { best_first, .. }) if best_first.len() < 2 => {
            Some("an order takes two or more".to_owned())
        }
        (None, Claim::Order { figure, .. }) => {
            let neither = study.figure(figure)?.better == assay_model::study::Better::Neither;
            neither.then(|| format!("{figure} has no better side to rank by"))
        }
        (None, _) => None,
    }
}
