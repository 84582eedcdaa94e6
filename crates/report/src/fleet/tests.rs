use super::*;
use assay_model::Subject;
use assay_model::finding::{Finding, Fix};

const PLAIN: Style = Style {
    color: false,
    width: 80,
};

fn finding(rule: &str, severity: Severity, certainty: Certainty) -> Finding {
    Finding {
        rule: rule.to_owned(),
        domain: "ssh".to_owned(),
        subject: Subject::default(),
        severity,
        certainty,
        title: format!("What {rule} says"),
        text: "/etc/x: Permission denied".to_owned(),
        places: Vec::new(),
        evidence: Vec::new(),
        fix: Fix::AfterReading,
        trial: None,
        verdict: None,
    }
}

fn found(findings: Vec<Finding>) -> Checked {
    Checked {
        findings,
        ..Checked::default()
    }
}

#[test]
fn findings_come_first_and_machines_second() {
    let (violated, unknown) = (Certainty::Violated, Certainty::Unknown);
    let one = found(vec![
        finding("late", Severity::Low, violated),
        finding("open", Severity::Critical, violated),
    ]);
    let two = found(vec![
        finding("open", Severity::Critical, violated),
        finding("hidden", Severity::High, unknown),
    ]);
    let evil = "<script>alert(1)</script>\u{1b}[31m\u{202e}";
    let all = [
        AskedMachine {
            name: "web1",
            answer: MachineAnswer::Checked(&one),
        },
        AskedMachine {
            name: evil,
            answer: MachineAnswer::Checked(&two),
        },
        AskedMachine {
            name: "web3",
            answer: MachineAnswer::Failed("deadline", "web3: no bundle after 60 s"),
        },
        AskedMachine {
            name: "alias",
            answer: MachineAnswer::Same("web1"),
        },
    ];
    let text = terminal(&all, PLAIN);
    insta::assert_snapshot!(text.lines().next().unwrap(), @"4 machines: 2 checked, 1 could not be asked. 2 rules are not followed.");
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    assert!(at("What open says") < at("What late says"));
    assert!(at("2 machines: web1, ") > at("What open says"));
    assert!(at("alias is web1") > at("web3: no bundle"));
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
    let document = json(&all).to_string();
    assert!(!document.contains('\u{1b}'), "{document}");
    assert_eq!(
        json(&all)["machines"][1]["findings"][1]["certainty"],
        "unknown"
    );
}

#[test]
fn a_machine_without_changes_is_not_named() {
    let time: Timestamp = "2026-11-23T01:00:00Z".parse().unwrap();
    let changed = |changes| Changed {
        name: "web1\u{1b}[2J",
        from: time,
        to: time,
        changes,
        when: BTreeMap::new(),
    };
    assert_eq!(changes(&[changed(Vec::new())], PLAIN), "");
    let change = Change {
        kind: Kind::Fact,
        what: "sysctl.vm.swappiness".to_owned(),
        severity: None,
        title: None,
        before: Some("60".to_owned()),
        after: Some("10\u{9b}31m".to_owned()),
        cause: Some("it was set while the machine ran".to_owned()),
    };
    let text = changes(&[changed(vec![change])], PLAIN);
    assert!(!text.contains(['\u{1b}', '\u{9b}']), "{text}");
    insta::assert_snapshot!(text, @r"
    web1\u{1b}[2J  2026-11-23 01:00 to 2026-11-23 01:00 UTC
      ~ sysctl.vm.swappiness: 60 → 10\u{9b}31m
          it was set while the machine ran
    ");
}

/// Puts hostile markup into every text of the page that another machine, or the user who named a target, can choose.
/// The page must escape all of it.
#[test]
fn attack_names_on_the_page() {
    let evil = "</title><script>alert(1)</script>\"'{{ 7*7 }}{% raw %}\u{1b}[31m\u{202e}\n";
    let time: Timestamp = "2026-11-23T01:00:00Z".parse().unwrap();
    let change = Change {
        kind: Kind::FindingCame,
        what: evil.to_owned(),
        severity: Some(Severity::High),
        title: Some(evil.to_owned()),
        before: Some(evil.to_owned()),
        after: Some(evil.to_owned()),
        cause: Some(evil.to_owned()),
    };
    let fact = Change {
        kind: Kind::Fact,
        ..change.clone()
    };
    let changed = Changed {
        name: evil,
        from: time,
        to: time,
        changes: vec![change.clone(), fact],
        when: BTreeMap::new(),
    };
    let figure = FigureChange {
        machine: Some(assay_model::Machine {
            id: "x".to_owned(),
            name: Some(evil.to_owned()),
        }),
        plan: evil.to_owned(),
        workload: evil.to_owned(),
        target: evil.to_owned(),
        metric: "p99".parse().unwrap(),
        run: i64::MIN,
        since: time,
        between: [time; 2],
        noticed: time,
        // A count that exceeds the number of runs.
        runs: [9, usize::MAX],
        ratio: f64::NAN,
        interval: None,
        verdict: assay_model::result::Change::Worse,
        evidence: f64::INFINITY,
        level: 0.0,
        causes: vec![change],
        curve: vec![(time, f64::NAN), (time, f64::INFINITY)],
    };
    let page = html(&[changed], &[figure]);
    assert_eq!(
        page.matches("alert(1)").count(),
        page.matches("&lt;script&gt;alert(1)").count()
    );
    assert!(page.matches("alert(1)").count() > 8, "it is all there");
    assert!(!page.contains(['\u{1b}', '\u{202e}']), "{page}");
    assert!(!page.contains("49"), "nothing is carried out: {page}");
}
