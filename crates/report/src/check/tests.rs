use super::*;
use assay_model::coverage::{Outcome, Service, WithoutRules};
use assay_model::finding::{Accepted, Looked, Remedy};
use assay_model::{FactKind, Span, Subject};
use assay_render::Style;

const EVIL: &str = "<b>\u{1b}[31m|`\"&\u{202e}\n";

fn finding(rule: &str, severity: Severity, certainty: Certainty) -> Finding {
    Finding {
        rule: rule.to_owned(),
        domain: "ssh".to_owned(),
        subject: Subject::new(["sshd.scope", EVIL]),
        severity,
        certainty,
        title: format!("title of {rule} {EVIL}"),
        text: format!("text {EVIL}"),
        places: vec![FactPlace::File {
            path: "/etc/a b".to_owned(),
            line: Some(2),
            span: Some(Span {
                column: 3,
                length: 4,
            }),
        }],
        evidence: vec![assay_model::finding::Seen {
            key: "k".to_owned(),
            value: EVIL.into(),
            kind: FactKind::Configured,
            place: FactPlace::from("/sys/x"),
        }],
        fix: Fix::Steps(Remedy {
            steps: vec![EVIL.to_owned()],
            undo: vec![EVIL.to_owned()],
            edits: Vec::new(),
        }),
        trial: None,
        verdict: None,
    }
}

fn checked() -> Checked {
    let rule = |rule: &str| Looked {
        rule: rule.to_owned(),
        domain: "ssh".to_owned(),
        statement: "s".to_owned(),
        severity: Severity::High,
        applied: 1,
        service: "sshd".to_owned(),
        sources: vec![EVIL.to_owned()],
        outcome: Outcome::Fine,
        why: None,
    };
    Checked {
        findings: vec![
            finding("a", Severity::High, Certainty::Violated),
            finding("b", Severity::Low, Certainty::Violated),
            finding("a", Severity::High, Certainty::Unknown),
        ],
        accepted: vec![Accepted {
            finding: finding("c", Severity::Medium, Certainty::Violated),
            reason: EVIL.to_owned(),
            owner: None,
            expires: Some("2027-01-01".to_owned()),
        }],
        remarks: vec![EVIL.to_owned()],
        rules: vec![rule("a"), rule("b"), rule("c"), rule("d")],
        services: vec![Service {
            service: "sshd".to_owned(),
            asked: 4,
            found: 2,
            ..Service::default()
        }],
        ..Checked::default()
    }
}

fn with<T>(checked: &Checked, show: impl FnOnce(&View<'_>) -> T) -> T {
    show(&View {
        checked,
        fail_on: Severity::Medium,
        line: &|_, _| Some("a\u{fc}bcdef\u{202e}".to_owned()),
    })
}

#[test]
fn text_from_outside_changes_no_form() {
    let checked = checked();
    let style = Style {
        color: false,
        width: 80,
    };
    let forms = [
        with(&checked, |view| terminal(view, style)),
        with(&checked, markdown),
        with(&checked, html),
        with(&checked, junit),
        with(&checked, |view| nagios(view).0),
        with(&checked, prometheus),
    ];
    for form in &forms {
        let bad = ['\u{1b}', '\u{202e}'];
        assert!(!form.contains(bad), "{form}");
    }
    let [_, markdown, html, junit, nagios, _] = &forms;
    assert!(!html.contains("<b>") && !junit.contains("<b>") && !markdown.contains("<b>"));
    assert_eq!(
        (nagios.lines().count(), nagios.matches('|').count()),
        (1, 1)
    );
}

#[test]
fn numbers_and_statuses() {
    let mut checked = checked();
    let (line, status) = with(&checked, nagios);
    assert!(
        status == 2 && line.contains("high=1;;;0") && line.contains("unknown=1"),
        "{line}"
    );
    let text = with(&checked, junit);
    assert!(text.contains("tests=\"5\" failures=\"1\""), "{text}");
    checked.findings.remove(0);
    assert_eq!(with(&checked, nagios).1, 3);
    checked.findings.pop();
    assert_eq!(with(&checked, nagios).1, 0);
}

#[test]
fn results_point_to_rules_lines_and_columns() {
    let checked = checked();
    let document = with(&checked, |view| sarif(view, "1"));
    let run = &document["runs"][0];
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), 4);
    let physical = &results[0]["locations"][0]["physicalLocation"];
    assert_eq!(physical["artifactLocation"]["uri"], "file:///etc/a%20b");
    // Bytes 2 to 6 of a line whose second character has two bytes.
    let region = &physical["region"];
    assert_eq!(
        (&region["startLine"], &region["startColumn"]),
        (&2.into(), &Value::Null)
    );
    assert_eq!(results[2]["level"], "none");
    assert_eq!(results[3]["suppressions"][0]["status"], "accepted");
    let fingerprints = |at: usize| results[at]["partialFingerprints"]["assay/v1"].clone();
    assert_ne!(fingerprints(0), fingerprints(1));
    let line = |_: &str, _: usize| Some("UsePAM no".to_owned());
    let view = View {
        checked: &checked,
        fail_on: Severity::Low,
        line: &line,
    };
    let document = sarif(&view, "1");
    let region = &document["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"];
    assert_eq!(
        (&region["startColumn"], &region["endColumn"]),
        (&3.into(), &7.into())
    );
}

#[test]
fn a_line_is_marked_where_the_statement_stands() {
    let checked = checked();
    let style = Style {
        color: false,
        width: 80,
    };
    let line = |_: &str, _: usize| Some("  UsePAM no".to_owned());
    let view = View {
        checked: &checked,
        fail_on: Severity::Low,
        line: &line,
    };
    let text = terminal(&view, style);
    let lines: Vec<&str> = text.lines().collect();
    let source = lines
        .iter()
        .position(|line| line.contains("UsePAM no"))
        .unwrap();
    let at = lines[source].find("UseP").unwrap();
    assert_eq!(lines[source + 1].find('^'), Some(at));
    assert!(lines[source + 1].trim_end().ends_with("^^^^"));
    assert!(lines[source - 2].contains("/etc/a b:2:3"), "{text}");
}

/// Every format reports the rules that were not evaluated beside the result.
#[test]
fn rules_that_were_not_asked_are_named_in_every_form() {
    let mut checked = checked();
    checked.findings.clear();
    for rule in ["d", "e"] {
        checked.not_asked.push(assay_model::finding::NotAsked {
            rule: rule.to_owned(),
            why: EVIL.to_owned(),
        });
    }
    let json = with(&checked, json);
    assert_eq!(json["not_asked"][1]["rule"], "e");
    let style = Style {
        color: false,
        width: 200,
    };
    for text in [
        with(&checked, |view| terminal(view, style)),
        with(&checked, markdown),
        with(&checked, html),
    ] {
        assert!(
            text.contains("2 rules were not asked") && text.contains("d, e"),
            "{text}"
        );
        assert!(!text.contains('\u{1b}'), "{text}");
    }
    assert!(with(&checked, nagios).0.contains("2 rules not asked"));
    assert!(with(&checked, prometheus).contains("assay_check_not_asked 2"));
}

/// Every format for people lists the checked services, and running programs without rules.
#[test]
fn every_form_names_what_was_asked() {
    let mut checked = checked();
    checked.findings.clear();
    checked.without_rules.push(WithoutRules {
        program: "named".to_owned(),
        what: EVIL.to_owned(),
    });
    let style = Style {
        color: false,
        width: 200,
    };
    for text in [
        with(&checked, |view| terminal(view, style)),
        with(&checked, markdown),
        with(&checked, html),
    ] {
        let shown = ["sshd", "4 asked, 2 found", "named"];
        assert!(shown.iter().all(|part| text.contains(part)), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }
    let json = with(&checked, json);
    assert_eq!(json["services"][0]["asked"], 4);
    assert_eq!(json["without_rules"][0]["program"], "named");
    let listed = coverage(&checked, style);
    assert!(
        listed.contains("sshd") && !listed.contains('\u{1b}'),
        "{listed}"
    );
    assert_eq!(
        listed
            .lines()
            .filter(|line| line.contains("asked, no finding"))
            .count(),
        4
    );
    // If nothing was read, no format reports that nothing is wrong.
    checked.nothing_read = true;
    for text in [
        with(&checked, |view| terminal(view, style)),
        with(&checked, markdown),
        with(&checked, html),
    ] {
        assert!(!text.contains("Found: nothing"), "{text}");
    }
    assert_eq!(with(&checked, nagios).1, 3);
}
