//! Renders a check as SARIF 2.1.0 (OASIS) for code scanning services. The document declares all rules, also rules
//! without findings. A service closes an earlier finding if its rule is declared and the new run no longer contains the
//! finding.

use super::View;
use assay_model::finding::{Accepted, Certainty, Finding, Severity};
use assay_model::{FactPlace, Span};
use serde_json::{Value, json};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json";

/// Renders a check as a SARIF document. `version` is the version of assay.
#[must_use]
pub fn sarif(view: &View<'_>, version: &str) -> Value {
    let checked = view.checked;
    let rules: Vec<Value> = checked
        .rules
        .iter()
        .map(|rule| {
            json!({
                "id": rule.rule,
                "shortDescription": { "text": rule.statement },
                "defaultConfiguration": { "level": name_level(rule.severity) },
                "properties": { "tags": [rule.domain] },
            })
        })
        .collect();
    let found = checked
        .findings
        .iter()
        .map(|finding| build_result(view, finding));
    let accepted = checked.accepted.iter().map(|one| {
        let mut result = build_result(view, &one.finding);
        result["suppressions"] = json!([build_suppression(one)]);
        result
    });
    let results: Vec<Value> = found.chain(accepted).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "assay", "version": version, "rules": rules } },
            "columnKind": "utf16CodeUnits",
            "results": results,
        }],
    })
}

/// Builds the suppression of an accepted finding. The owner and the last day are custom properties, because SARIF has
/// no fields for them.
fn build_suppression(accepted: &Accepted) -> Value {
    json!({
        "kind": "external",
        "status": "accepted",
        "justification": accepted.reason,
        "properties": { "owner": accepted.owner, "expires": accepted.expires },
    })
}

fn build_result(view: &View<'_>, finding: &Finding) -> Value {
    let rules = &view.checked.rules;
    let index = rules.iter().position(|rule| rule.rule == finding.rule);
    let (kind, level) = match finding.certainty {
        Certainty::Violated => ("fail", name_level(finding.severity)),
        // A result that is not a failure has no level (section 3.27.10).
        Certainty::Unknown => ("open", "none"),
    };
    let locations: Vec<Value> = finding
        .places
        .iter()
        .filter_map(|place| build_location(view, place))
        .collect();
    json!({
        "ruleId": finding.rule,
        "ruleIndex": index,
        "kind": kind,
        "level": level,
        "message": { "text": format!("{}. {}", finding.title.trim_end_matches('.'), finding.text) },
        "locations": locations,
        "partialFingerprints": { "assay/v1": finding.fingerprint() },
        "properties": { "severity": finding.severity, "subject": finding.subject.to_string() },
    })
}

fn name_level(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical | Severity::High => "error",
        Severity::Medium => "warning",
        Severity::Low | Severity::Info => "note",
    }
}

/// Builds the location of a fact. Returns `None` if the source is not a file; commands and interfaces are described as
/// text instead.
fn build_location(view: &View<'_>, place: &FactPlace) -> Option<Value> {
    match place {
        FactPlace::File { path, line, span } => {
            let mut physical = json!({ "artifactLocation": { "uri": encode_uri(path) } });
            if let Some(line) = line {
                let text = (view.line)(path, *line);
                physical["region"] = build_region(*line, *span, text.as_deref());
            }
            Some(json!({ "physicalLocation": physical }))
        }
        FactPlace::Command { .. } | FactPlace::Interface { .. } => {
            Some(json!({ "logicalLocations": [{ "fullyQualifiedName": place.to_string() }] }))
        }
        FactPlace::Words(_) => None,
    }
}

/// Builds the region within a line. SARIF counts columns in UTF-16 code units, but assay's spans count bytes.
fn build_region(line: usize, span: Option<Span>, text: Option<&str>) -> Value {
    let mut region = json!({ "startLine": line });
    if let Some((span, text)) = span.zip(text) {
        let begin = span.column.saturating_sub(1);
        let units = |end: usize| Some(text.get(..end.min(text.len()))?.encode_utf16().count() + 1);
        if let (Some(from), Some(to)) = (units(begin), units(begin + span.length)) {
            region["startColumn"] = from.into();
            region["endColumn"] = to.into();
        }
        region["snippet"] = json!({ "text": text });
    }
    region
}

/// Converts a path to a URI with percent encoding (RFC 3986). A path relative to the working directory becomes a
/// relative URI.
fn encode_uri(path: &str) -> String {
    let mut out = match path.starts_with('/') {
        true => String::from("file://"),
        false => String::new(),
    };
    for byte in path.bytes() {
        match byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
