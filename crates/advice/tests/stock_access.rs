//! Tests Debian 12 with fifteen services in the default configuration of their packages. Rules about access, file
//! servers, databases and the state of the system must give no findings. `stock` tests other releases.
#![allow(clippy::disallowed_methods, reason = "lists its own fixtures")]

use assay_advice::{Catalogue, findings};
use assay_facts::{CollectOptions, collect};
use assay_host::Root;
use assay_model::finding::Certainty;
use std::path::Path;

/// Services in the tree that the check must find.
const SERVICES: [&str; 15] = [
    "sshd",
    "ssh client",
    "nginx",
    "Apache",
    "packages",
    "HAProxy",
    "Postfix",
    "Dovecot",
    "Samba",
    "NFS server",
    "PostgreSQL",
    "MariaDB",
    "UPS",
    "accounts and sudo",
    "kernel",
];

#[test]
fn defaults_of_fifteen_services_are_no_findings() {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/stock-access/debian-12");
    let origin = std::fs::read_to_string(tree.join("ORIGIN")).unwrap();
    assert!(origin.starts_with("recorded: "), "{origin}");
    let root = Root::open(&tree).unwrap();
    let options = CollectOptions {
        services: true,
        accounts: true,
        ..CollectOptions::default()
    };
    let catalogue = Catalogue::builtin().unwrap();
    let checked = findings(catalogue.all(), &collect(&root, &options));
    let wrong: Vec<String> = checked
        .findings
        .iter()
        .filter(|finding| finding.certainty == Certainty::Violated)
        .map(|finding| format!("{}: {}", finding.fingerprint(), finding.title))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let found: Vec<&str> = checked
        .services
        .iter()
        .map(|one| one.service.as_str())
        .collect();
    let missing: Vec<&str> = SERVICES
        .into_iter()
        .filter(|name| !found.contains(name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}: {found:?}");
    let applied = |id: &str| {
        checked
            .rules
            .iter()
            .any(|rule| rule.rule == id && rule.applied > 0)
    };
    for rule in [
        "account-without-password",
        "apache-status-open",
        "clock-alone",
        "haproxy-socket-open",
        "mariadb-remote-without-tls",
        "nginx-root-system",
        "postgresql-trust-remote",
        "sudo-without-password",
    ] {
        assert!(applied(rule), "{rule}");
    }
}
