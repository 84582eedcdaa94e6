//! Findings of a machine that the user accepted in `accept.toml`.

use super::short_name;
use crate::machine_check::MachineCheck;
use assay_render::text::escape_line;
use serde::Serialize;

/// A finding that the user accepted, as the page shows it.
#[derive(Serialize)]
pub(super) struct AcceptedView {
    severity: &'static str,
    title: String,
    rule: String,
    rule_href: String,
    about: String,
    reason: String,
    owner: Option<String>,
    expires: Option<String>,
}

/// Lists the accepted findings of a machine.
pub(super) fn list_accepted(machine: &str, check: &MachineCheck) -> Vec<AcceptedView> {
    let view = |one: &assay_model::finding::Accepted| AcceptedView {
        severity: one.finding.severity.name(),
        title: short_name(&one.finding.title),
        rule_href: super::catalogue::advice_href(&one.finding.rule, Some(machine)),
        rule: short_name(&one.finding.rule),
        about: match one.finding.subject.is_machine() {
            true => String::new(),
            false => short_name(&one.finding.subject.to_string()),
        },
        reason: escape_line(&one.reason),
        owner: one.owner.as_deref().map(short_name),
        expires: one.expires.as_deref().map(short_name),
    };
    check.checked.accepted.iter().map(view).collect()
}
