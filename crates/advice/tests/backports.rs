//! Debian backports fixes to old versions. The test checks twenty versions of openssh-server around the fix of
//! CVE-2024-6387 in each release, according to the version of the package.

use assay_advice::{Catalogue, findings};
use assay_facts::{CollectOptions, collect};
use assay_host::Recorded;

/// Versions, as (release, version of the package, whether it is vulnerable).
const VERSIONS: [(&str, &str, bool); 20] = [
    ("12", "1:9.2p1-2", true),
    ("12", "1:9.2p1-2+b1", true),
    ("12", "1:9.2p1-2+deb12u1", true),
    ("12", "1:9.2p1-2+deb12u2", true),
    ("12", "1:9.2p1-2+deb12u3~bpo1", true),
    ("12", "1:9.2p1-2+deb12u3", false),
    ("12", "1:9.2p1-2+deb12u3+local1", false),
    ("12", "1:9.2p1-2+deb12u4", false),
    ("12", "1:9.2p1-2+deb12u9", false),
    ("12", "1:9.2p1-2+deb12u10", false),
    ("12", "1:9.2p1-3", false),
    ("12", "1:9.8p1-1~bpo12+1", false),
    ("11", "1:8.4p1-5", false),
    ("11", "1:8.4p1-5+deb11u3", false),
    ("11", "1:8.4p1-5+deb11u5", false),
    ("13", "1:9.6p1-4", true),
    ("13", "1:9.7p1-6", true),
    ("13", "1:9.7p1-7", false),
    ("13", "1:9.9p1-3", false),
    ("13", "1:10.0p1-7+deb13u4", false),
];

#[test]
fn twenty_versions_around_a_fix() {
    let catalogue = Catalogue::builtin().unwrap();
    let page = catalogue.get("openssh-regresshion").unwrap();
    let options = CollectOptions {
        services: true,
        ..CollectOptions::default()
    };
    let wrong: Vec<String> = VERSIONS
        .iter()
        .filter(|(release, version, hole)| {
            let status = format!(
                "Package: openssh-server\nStatus: install ok installed\nVersion: {version}\n"
            );
            let host = Recorded::new()
                .file(
                    "/etc/os-release",
                    format!("ID=debian\nVERSION_ID=\"{release}\"\n"),
                )
                .file("/var/lib/dpkg/status", status);
            let found = findings([page], &collect(&host, &options)).findings;
            found.is_empty() == *hole
        })
        .map(|(release, version, _)| format!("{release}: {version}"))
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}
