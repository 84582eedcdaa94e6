//! Lists every rule of a check with its source, by service, and whether the rule applied. The other formats list the
//! findings.

use super::{WITHOUT_RULES, counts_of_service, without_rules};
use assay_model::coverage::Outcome;
use assay_model::finding::{Checked, Looked};
use assay_render::Style;
use assay_render::text::escape_line;
use std::fmt::Write as _;

/// Renders the list by service. Services that do not exist on this machine follow at the end, with the number of their
/// rules.
#[must_use]
pub fn coverage(checked: &Checked, style: Style) -> String {
    let mut out = String::new();
    for service in &checked.services {
        let name = format!("{}: {}", service.service, counts_of_service(service));
        let _ = writeln!(out, "{}", style.bold(&escape_line(&name)));
        let of = checked
            .rules
            .iter()
            .filter(|rule| rule.service == service.service);
        for rule in of {
            let head = format!("{}: {}", rule.rule, describe_outcome(rule));
            style.write_paragraph(&mut out, "  - ", 4, &escape_line(&head));
            style.write_paragraph(&mut out, "", 4, &escape_line(&rule.statement));
            let source = rule.sources.first().map_or("", String::as_str);
            let source = style.dim(&escape_line(&format!("Source: {source}")));
            style.write_paragraph(&mut out, "", 4, &source);
        }
        out.push('\n');
    }
    let absent = list_absent_services(checked);
    if !absent.is_empty() {
        let text = format!("Not found here, so not asked: {}.", absent.join(", "));
        style.write_paragraph(&mut out, "", 0, &escape_line(&text));
    }
    if !checked.without_rules.is_empty() {
        let text = format!("{WITHOUT_RULES}: {}.", without_rules(checked));
        style.write_paragraph(&mut out, "", 0, &escape_line(&text));
    }
    out
}

/// Describes the outcome of a rule.
pub(super) fn describe_outcome(rule: &Looked) -> String {
    let why = rule.why.as_deref();
    let because = |word: &str| why.map_or(word.to_owned(), |why| format!("{word} because {why}"));
    match rule.outcome {
        Outcome::NoService => "no such service here".to_owned(),
        Outcome::Found => "asked, found".to_owned(),
        Outcome::Fine => "asked, no finding".to_owned(),
        Outcome::DoesNotApply => match why {
            Some(why) => format!("does not apply: needs {why}"),
            None => "does not apply".to_owned(),
        },
        Outcome::Unknown => because("unknown"),
        Outcome::NotAsked => because("not asked from here"),
    }
}

/// Returns the services that do not exist on this machine, each with the number of its rules.
fn list_absent_services(checked: &Checked) -> Vec<String> {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    let missing = checked
        .rules
        .iter()
        .filter(|rule| rule.outcome == Outcome::NoService);
    for rule in missing {
        match counts.iter_mut().find(|(name, _)| *name == rule.service) {
            Some((_, count)) => *count += 1,
            None => counts.push((&rule.service, 1)),
        }
    }
    let named = counts
        .into_iter()
        .map(|(name, count)| format!("{name} ({count})"));
    named.collect()
}
