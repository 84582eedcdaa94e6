//! Renders a check as JUnit XML for CI systems: a test case for each rule with a subject, and a failure for each
//! finding at or above the threshold.

use super::{View, format_subject};
use assay_model::finding::{Certainty, Finding};
use assay_render::html::escape_html;
use std::fmt::Write as _;

/// Renders a check as a JUnit XML document.
#[must_use]
pub fn junit(view: &View<'_>) -> String {
    let checked = view.checked;
    let mut cases = String::new();
    let (mut tests, mut failures, mut skipped) = (0_usize, 0_usize, 0_usize);
    for rule in &checked.rules {
        let own = |finding: &&Finding| finding.rule == rule.rule;
        let found: Vec<&Finding> = checked.findings.iter().filter(own).collect();
        let accepted: Vec<&Finding> = checked
            .accepted
            .iter()
            .map(|accepted| &accepted.finding)
            .filter(own)
            .collect();
        if rule.applied == 0 && found.is_empty() {
            continue;
        }
        if found.is_empty() && accepted.is_empty() {
            tests += 1;
            write_case(&mut cases, &rule.domain, &rule.rule, "");
        }
        for finding in found {
            tests += 1;
            let body = match finding.certainty {
                Certainty::Unknown => {
                    skipped += 1;
                    format!("<skipped message=\"{}\"/>", escape_html(&finding.text))
                }
                Certainty::Violated if finding.severity >= view.fail_on => {
                    failures += 1;
                    format_failure(finding)
                }
                Certainty::Violated => {
                    format!("<system-out>{}</system-out>", escape_html(&finding.title))
                }
            };
            write_case(&mut cases, &rule.domain, &name_case(finding), &body);
        }
        for finding in accepted {
            tests += 1;
            skipped += 1;
            let body = "<skipped message=\"accepted\"/>";
            write_case(&mut cases, &rule.domain, &name_case(finding), body);
        }
    }
    let counts = format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"0\"");
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"assay check\" {counts}>\n\
         <testsuite name=\"assay check\" {counts} skipped=\"{skipped}\">\n{cases}</testsuite>\n\
         </testsuites>\n"
    )
}

fn name_case(finding: &Finding) -> String {
    format!("{} {}", finding.rule, format_subject(finding))
        .trim_end()
        .to_owned()
}

fn format_failure(finding: &Finding) -> String {
    let places: Vec<String> = finding.places.iter().map(ToString::to_string).collect();
    format!(
        "<failure type=\"{}\" message=\"{}\">{}</failure>",
        finding.severity.name(),
        escape_html(&finding.title),
        escape_html(&format!("{} ({})", finding.text, places.join(", ")))
    )
}

fn write_case(out: &mut String, class: &str, name: &str, body: &str) {
    let _ = write!(
        out,
        "<testcase classname=\"{}\" name=\"{}\"",
        escape_html(class),
        escape_html(name)
    );
    let _ = match body.is_empty() {
        true => writeln!(out, "/>"),
        false => writeln!(out, ">{body}</testcase>"),
    };
}
