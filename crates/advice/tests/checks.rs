//! Every page with a `[check]` table has fixtures on which its rule has a finding, similar fixtures without a finding,
//! and fixtures to which the rule does not apply. A fixture is a small tree of files, as in a captured machine, which
//! the collectors read. Pages about wireless networks have files for `assay check wifi`.
#![allow(
    clippy::disallowed_methods,
    reason = "reads the catalogue's own directories"
)]

use assay_advice::{Catalogue, findings};
use assay_facts::{CollectOptions, collect};
use assay_host::Root;
use assay_model::advice::Advice;
use assay_model::finding::{Certainty, Checked, Finding, Fix};
use assay_model::{FactPlace, Facts};
use std::path::{Path, PathBuf};

fn trees(advice: &Advice, case: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../advice");
    let dir = root.join(&advice.domain).join(&advice.id).join(case);
    let mut found: Vec<PathBuf> = std::fs::read_dir(&dir)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    assert!(!found.is_empty(), "{}: no machine", dir.display());
    for tree in &found {
        let origin = std::fs::read_to_string(tree.join("ORIGIN")).unwrap_or_default();
        let told = origin.starts_with("recorded: ") || origin.starts_with("made: ");
        assert!(
            told,
            "{}/ORIGIN: recorded or made, from what?",
            tree.display()
        );
    }
    found
}

fn facts(advice: &Advice, tree: &Path) -> Facts {
    if assay_wifi::judges(advice) {
        return wireless(tree);
    }
    let root = Root::open(tree).unwrap_or_else(|error| panic!("{error}"));
    let options = CollectOptions {
        services: true,
        accounts: true,
        ..CollectOptions::default()
    };
    collect(&root, &options)
}

/// Returns the facts of the wireless networks in the files of a directory, with the names of the files.
fn wireless(dir: &Path) -> Facts {
    let mut files: Vec<(String, assay_wifi::Reading)> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| !path.ends_with("ORIGIN"))
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let reading = assay_wifi::read(&std::fs::read(&path).unwrap());
            let reading = reading.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            (name, reading)
        })
        .collect();
    files.sort_by(|a, b| a.0.cmp(&b.0));
    let named: Vec<assay_wifi::WifiFile<'_>> = files
        .iter()
        .map(|(path, reading)| assay_wifi::WifiFile { path, reading })
        .collect();
    assay_wifi::facts(&named, &[])
}

fn of<'a>(checked: &'a Checked, id: &str) -> Vec<&'a Finding> {
    let all = checked.findings.iter();
    all.filter(|finding| finding.rule == id).collect()
}

fn checks() -> Vec<Advice> {
    let catalogue = Catalogue::builtin().unwrap();
    let mut all: Vec<Advice> = catalogue.all().into_iter().cloned().collect();
    all.retain(|advice| advice.check.is_some());
    all
}

/// Returns what is wrong with a finding on a machine with a fault.
fn faults(finding: &Finding) -> Vec<String> {
    let mut faults = Vec::new();
    if finding.certainty != Certainty::Violated {
        faults.push(format!("not certain: {}", finding.text));
    }
    if finding.evidence.is_empty() {
        faults.push("no evidence".to_owned());
    }
    let steps = match &finding.fix {
        Fix::Steps(remedy) => remedy.steps.join(" ") + &remedy.undo.join(" "),
        Fix::NotHere(why) => why.clone(),
        Fix::AfterReading => "nothing to do".to_owned(),
    };
    for text in [&finding.title, &finding.text, &steps] {
        if text.contains('{') {
            faults.push(format!("not filled in: {text}"));
        }
    }
    faults
}

#[test]
fn every_check_fires_and_is_silent_where_it_should() {
    let all = checks();
    let mut faulty: Vec<String> = Vec::new();
    for advice in &all {
        for tree in trees(advice, "fires") {
            let checked = findings([advice], &facts(advice, &tree));
            let found = of(&checked, &advice.id);
            if found.is_empty() {
                faulty.push(format!("{}: nothing found", tree.display()));
            }
            let wrong = found.into_iter().flat_map(faults);
            faulty.extend(wrong.map(|fault| format!("{}: {fault}", tree.display())));
        }
        for case in ["quiet", "not-applicable"] {
            for tree in trees(advice, case) {
                let checked = findings([advice], &facts(advice, &tree));
                for finding in of(&checked, &advice.id) {
                    faulty.push(format!("{}: {}", tree.display(), finding.title));
                }
                let applied = checked.rules[0].applied;
                if applied > 0 && case == "not-applicable" {
                    faulty.push(format!("{}: applied {applied}", tree.display()));
                }
            }
        }
    }
    assert!(faulty.is_empty(), "{faulty:#?}");
    assert!(all.len() >= 30, "{}", all.len());
}

/// If a configuration line causes the finding, the finding contains the place of this line.
#[test]
fn lines_are_named() {
    let mut lines = 0;
    for advice in &checks() {
        for tree in trees(advice, "fires") {
            for finding in findings([advice], &facts(advice, &tree)).findings {
                for place in &finding.places {
                    let FactPlace::File {
                        path,
                        line: Some(line),
                        ..
                    } = place
                    else {
                        continue;
                    };
                    let file = tree.join(path.trim_start_matches('/'));
                    let text = std::fs::read_to_string(&file).unwrap();
                    let said = text.lines().nth(line - 1).unwrap_or_default();
                    assert!(!said.trim().is_empty(), "{place} in {}", tree.display());
                    lines += 1;
                }
            }
        }
    }
    assert!(lines >= 15, "{lines}");
}

/// Every rule that needs an unreadable source reports this. None passes.
#[test]
fn what_cannot_be_read_is_unknown() {
    let dir = tempfile::tempdir().unwrap();
    let index = serde_json::json!({
        "schema": 1,
        "errors": { "/etc/ssh/sshd_config": { "errno": 13, "reason": "Permission denied" } },
    });
    std::fs::write(dir.path().join("assay-capture.json"), index.to_string()).unwrap();
    let all = checks();
    let checked = findings(&all, &facts(&all[0], dir.path()));
    let asks = |advice: &&Advice| {
        let check = advice.check.as_ref().unwrap();
        let mut conditions = check.applies.iter().chain([&check.violated]);
        // The version and PAM are properties of the program, not of its configuration.
        let of_configuration = |condition: &String| {
            let of_program = ["sshd.version", "sshd.pam"];
            let names = condition.split("facts[\"").skip(1);
            names
                .filter_map(|rest| rest.split('"').next())
                .any(|name| name.starts_with("sshd.") && !of_program.contains(&name))
        };
        let of_machine = conditions.any(of_configuration);
        let mut about = check.about.iter();
        of_machine || about.any(|about| about.kind().starts_with("sshd."))
    };
    let expected = all.iter().filter(asks).count();
    assert!(expected >= 5, "{expected}");
    let unknown: Vec<&Finding> = checked
        .findings
        .iter()
        .filter(|finding| finding.certainty == Certainty::Unknown)
        .collect();
    assert_eq!(unknown.len(), expected, "{unknown:#?}");
    assert!(
        unknown
            .iter()
            .all(|finding| finding.text.contains("Permission denied"))
    );
    assert_eq!(checked.worst(), None);
}

/// Creates a tree of files.
fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    dir
}

/// Returns the rules of which it is unknown whether a tree violates them. Checks that no rule is certainly violated.
fn left_open(files: &[(&str, &str)]) -> Vec<String> {
    let all = checks();
    let dir = tree(files);
    let checked = findings(&all, &facts(&all[0], dir.path()));
    let violated: Vec<&Finding> = checked
        .findings
        .iter()
        .filter(|finding| finding.certainty == Certainty::Violated)
        .collect();
    assert!(violated.is_empty(), "{files:?}: {violated:#?}");
    let mut open: Vec<String> = checked.findings.into_iter().map(|one| one.rule).collect();
    open.sort();
    open.dedup();
    open
}

/// If a program does not start because of a missing file, there is no certain finding. doveconf 2.3.19 and httpd 2.4
/// reject each of these files, and accept the files that follow.
#[test]
fn what_a_missing_include_hides_is_unknown() {
    const DOVECOT: &str = "etc/dovecot/dovecot.conf";
    const APACHE: &str = "etc/apache2/apache2.conf";
    let dovecot: [&[(&str, &str)]; 6] = [
        &[(
            DOVECOT,
            "protocols = imap\n!include conf.d/gone.conf\nssl = yes\n",
        )],
        &[(DOVECOT, "disable_plaintext_auth = no\n!include gone.conf\n")],
        &[(DOVECOT, "!include conf.d/*.conf\n")],
        &[(DOVECOT, "!include /etc/dovecot/conf.d/gone.conf\n")],
        &[
            (DOVECOT, "!include conf.d/a.conf\n"),
            ("etc/dovecot/conf.d/a.conf", "!include gone.conf\n"),
        ],
        &[(DOVECOT, "service auth {\n!include gone.conf\n}\n")],
    ];
    for files in dovecot {
        let open = left_open(files);
        for rule in ["dovecot-cleartext", "mail-ssl3", "certificate-ended"] {
            assert!(open.iter().any(|one| one == rule), "{files:?}: {open:?}");
        }
    }
    let apache: [&[(&str, &str)]; 6] = [
        &[(APACHE, "Include sites/gone.conf\nSSLProtocol all -SSLv3\n")],
        &[(APACHE, "include /etc/apache2/gone.conf\n")],
        &[(APACHE, "Include \\\n gone.conf\n")],
        &[(APACHE, "Include gone/*.conf\n")],
        &[(
            APACHE,
            "<VirtualHost *:443>\nInclude gone.conf\n</VirtualHost>\n",
        )],
        &[
            (APACHE, "Include conf-enabled/a.conf\n"),
            (
                "etc/apache2/conf-enabled/a.conf",
                "Include ${OWN}/tls.conf\n",
            ),
        ],
    ];
    for files in apache {
        let open = left_open(files);
        for rule in ["web-server-sslv3", "web-server-rc4", "certificate-ended"] {
            assert!(open.iter().any(|one| one == rule), "{files:?}: {open:?}");
        }
    }
    let whole: [&[(&str, &str)]; 4] = [
        &[(
            DOVECOT,
            "protocols = imap\n!include_try gone.conf\n!include_try conf.d/*.conf\n",
        )],
        &[(
            APACHE,
            "IncludeOptional gone.conf\nIncludeOptional gone/*.conf\n",
        )],
        &[(APACHE, "<IfDefine NEVER>\nInclude gone.conf\n</IfDefine>\n")],
        &[(
            APACHE,
            "LoadModule ssl_module x\n<IfModule !mod_ssl.c>\nInclude gone.conf\n</IfModule>\n",
        )],
    ];
    for files in whole {
        assert_eq!(left_open(files), Vec::<String>::new(), "{files:?}");
    }
}

/// If advice depends on an unknown version, its finding is uncertain. The finding is neither certain nor missing.
#[test]
fn advice_for_a_version_that_is_not_known_is_unknown() {
    const SSHD: &str = "etc/ssh/sshd_config";
    let cases: [(&[(&str, &str)], &str); 6] = [
        (&[(SSHD, "Protocol 2\n")], "sshd-dead-keywords"),
        (
            &[(SSHD, "UsePrivilegeSeparation sandbox\n")],
            "sshd-dead-keywords",
        ),
        (
            &[
                (SSHD, "RSAAuthentication yes\n"),
                (
                    "var/lib/dpkg/status",
                    "Package: openssh-server\nStatus: deinstall ok config-files\nVersion: 1:9.2p1-2\n",
                ),
            ],
            "sshd-dead-keywords",
        ),
        (&[(SSHD, "UsePAM no\n")], "sshd-pam-off"),
        (
            &[(SSHD, "UsePAM no\n"), ("etc/os-release", "ID=buildroot\n")],
            "sshd-pam-off",
        ),
        (
            &[
                (SSHD, "UsePAM no\nServerKeyBits 768\n"),
                ("etc/os-release", "ID=\"void\"\n"),
            ],
            "sshd-dead-keywords",
        ),
    ];
    for (files, rule) in cases {
        let open = left_open(files);
        assert!(open.iter().any(|one| one == rule), "{files:?}: {open:?}");
    }
}

#[test]
fn the_same_machine_gives_the_same_findings() {
    let all = checks();
    let tree = trees(&all[0], "fires").remove(0);
    let once = findings(&all, &facts(&all[0], &tree));
    assert_eq!(once, findings(&all, &facts(&all[0], &tree)));
    let backwards = findings(all.iter().rev(), &facts(&all[0], &tree));
    assert_eq!(once.findings, backwards.findings);
}

/// A broken include hides settings. Every rule that needs such a setting reports this once, with the line of the
/// include.
#[test]
fn includes_that_lead_nowhere_are_unknown() {
    let postgresql = "/etc/postgresql/15/main/postgresql.conf";
    let (samba, mariadb, tunnel) = (
        "/etc/samba/smb.conf",
        "/etc/mysql/my.cnf",
        "/etc/openvpn/server/a.conf",
    );
    let all = checks();
    for (path, text, line, rule) in [
        (
            postgresql,
            "include 'missing.conf'\ninclude_if_exists 'nope.conf'\nfsync=on\nfull_page_writes=on\n",
            1,
            "postgresql-fsync-off",
        ),
        (
            postgresql,
            "fsync=on\ninclude_dir = 'nowhere'\n",
            2,
            "postgresql-fsync-off",
        ),
        (
            postgresql,
            "include 'a b.conf'\n",
            1,
            "postgresql-fsync-off",
        ),
        (
            samba,
            "[global]\ninclude = /etc/samba/extra.conf\n",
            2,
            "smb-signing-off",
        ),
        (
            samba,
            "[global]\ninclude = registry\n",
            2,
            "smb-null-passwords",
        ),
        (
            samba,
            "[global]\nconfig file = /etc/samba/b.conf\n",
            2,
            "smb-guest-is-root",
        ),
        (
            samba,
            "[a]\ninclude = /home/x/y.conf\n",
            2,
            "smb-guests-in-system",
        ),
        (
            mariadb,
            "[mysqld]\n!includedir /etc/nowhere\n",
            2,
            "mariadb-flush-log-at-trx-commit",
        ),
        (
            mariadb,
            "[mysqld]\n!include /etc/none.cnf\n",
            2,
            "mariadb-doublewrite-off",
        ),
        (tunnel, "config more.conf\n", 1, "openvpn-unencrypted"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(path.trim_start_matches('/'));
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, text).unwrap();
        let checked = findings(&all, &facts(&all[0], dir.path()));
        assert_eq!(checked.worst(), None, "{text}");
        let found = of(&checked, rule);
        let [one] = found.as_slice() else {
            panic!("{text}: {found:#?}")
        };
        assert_eq!(one.certainty, Certainty::Unknown, "{text}");
        let place = &one.places[0];
        assert_eq!(
            (place.to_string(), place.line()),
            (format!("{path}:{line}"), Some(line)),
            "{text}"
        );
        // All have one reason, which is one line of the report.
        let unknown = checked
            .findings
            .iter()
            .filter(|finding| finding.certainty == Certainty::Unknown);
        let reasons: std::collections::BTreeSet<&str> =
            unknown.map(|finding| finding.text.as_str()).collect();
        assert_eq!(reasons.len(), 1, "{text}: {reasons:#?}");
    }
}
