//! Tests Debian 11, 12 and 13 with ten services in the default configuration of their packages. A default of the
//! distribution must not give a finding. The trees contain the files of the packages; `ORIGIN` lists each package with
//! its version.
#![allow(clippy::disallowed_methods, reason = "lists its own fixtures")]

use assay_advice::{Catalogue, findings};
use assay_facts::{CollectOptions, collect};
use assay_host::Root;
use assay_model::finding::{Certainty, Checked};
use std::path::Path;

fn checked(release: &str) -> Checked {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/stock")
        .join(release);
    let origin = std::fs::read_to_string(tree.join("ORIGIN")).unwrap();
    assert!(origin.starts_with("recorded: "), "{origin}");
    let root = Root::open(&tree).unwrap();
    let options = CollectOptions {
        services: true,
        accounts: true,
        ..CollectOptions::default()
    };
    let facts = collect(&root, &options);
    let catalogue = Catalogue::builtin().unwrap();
    findings(catalogue.all(), &facts)
}

#[test]
fn defaults_are_no_findings() {
    for release in ["debian-11", "debian-12", "debian-13"] {
        let checked = checked(release);
        let wrong: Vec<String> = checked
            .findings
            .iter()
            .filter(|finding| finding.certainty == Certainty::Violated)
            .map(|finding| format!("{}: {}", finding.fingerprint(), finding.title))
            .collect();
        assert!(wrong.is_empty(), "{release}: {wrong:#?}");
        // A missing finding counts only for rules that had a subject.
        let applied: Vec<&str> = checked
            .rules
            .iter()
            .filter(|rule| rule.applied > 0)
            .map(|rule| rule.rule.as_str())
            .collect();
        for rule in [
            "nginx-sslv3",
            "openssh-regresshion",
            "postfix-queue-lifetime",
            "sshd-pam-off",
        ] {
            assert!(applied.contains(&rule), "{release}: {rule}: {applied:?}");
        }
    }
}
