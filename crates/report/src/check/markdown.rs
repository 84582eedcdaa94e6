//! Renders a check as Markdown.

use super::{
    Group, NOT_ASKED, View, WITHOUT_RULES, counts_of_service, describe_scope, format_result,
    format_subject, list_unknown_sources, not_asked, without_rules,
};
use assay_model::finding::{Finding, Fix};
use assay_render::markdown::escape_markdown;
use assay_render::text::escape_line;
use std::fmt::Write as _;

/// Renders a check as a Markdown document.
#[must_use]
pub fn markdown(view: &View<'_>) -> String {
    let checked = view.checked;
    let mut out = format!(
        "# Check\n\n{}. {}.\n",
        format_result(checked),
        describe_scope(checked)
    );
    if !checked.services.is_empty() {
        out.push_str("\n| service | questions |\n|---|---|\n");
        for service in &checked.services {
            let counts = counts_of_service(service);
            let _ = writeln!(out, "| {} | {counts} |", escape_markdown(&service.service));
        }
    }
    if !checked.without_rules.is_empty() {
        let _ = writeln!(
            out,
            "\n{WITHOUT_RULES}: {}.",
            escape_markdown(&without_rules(checked))
        );
    }
    for group in Group::ALL {
        let members = group.members(checked);
        if members.is_empty() {
            continue;
        }
        let _ = writeln!(out, "\n## {}", group.heading());
        if group == Group::Unknown {
            out.push('\n');
            for (what, rules) in list_unknown_sources(checked) {
                let _ = writeln!(
                    out,
                    "- {} (asked by {})",
                    escape_markdown(what),
                    rules.join(", ")
                );
            }
            continue;
        }
        members
            .into_iter()
            .for_each(|finding| write_finding(&mut out, finding));
    }
    if !checked.not_asked.is_empty() {
        let _ = writeln!(out, "\n## {NOT_ASKED}\n");
        for (why, rules) in not_asked(checked) {
            let _ = writeln!(out, "- {}: {}", escape_markdown(why), rules.join(", "));
        }
    }
    if !checked.accepted.is_empty() {
        out.push_str("\n## Accepted\n\n");
        for accepted in &checked.accepted {
            let finding = &accepted.finding;
            let _ = writeln!(
                out,
                "- {} `{}` {}: {}",
                finding.severity.name(),
                finding.rule,
                escape_markdown(&format_subject(finding)),
                escape_markdown(&accepted.reason)
            );
        }
    }
    for remark in &checked.remarks {
        let _ = writeln!(out, "\n> {}", escape_markdown(remark));
    }
    out
}

fn write_finding(out: &mut String, finding: &Finding) {
    let about = match format_subject(finding) {
        about if about.is_empty() => String::new(),
        about => format!(", {}", escape_markdown(&about)),
    };
    let _ = write!(
        out,
        "\n### {}\n\n{}, `{}`{about}\n\n{}\n",
        escape_markdown(&finding.title),
        finding.severity.name(),
        finding.rule,
        escape_markdown(&finding.text),
    );
    let places: Vec<String> = finding
        .places
        .iter()
        .map(|place| format_code(&place.to_string()))
        .collect();
    if !places.is_empty() {
        let _ = writeln!(out, "\nRead from {}.", places.join(", "));
    }
    match &finding.fix {
        Fix::Steps(remedy) => {
            for (label, steps) in [("Do", &remedy.steps), ("Undo", &remedy.undo)] {
                let _ = writeln!(out, "\n{label}:\n");
                for step in steps {
                    let _ = writeln!(out, "- {}", escape_markdown(step));
                }
            }
        }
        Fix::NotHere(why) => {
            let _ = writeln!(out, "\n{}", escape_markdown(why));
        }
        Fix::AfterReading => {}
    }
}

/// Formats text as Markdown code. The fence has more backquotes than any run of backquotes in the text.
fn format_code(text: &str) -> String {
    format!("`{}`", escape_line(text).replace('`', "'"))
}
