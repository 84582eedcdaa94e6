//! Targets for configuration files: reads and edits them, and checks that an edit changes no other byte.

use crate::ParserTarget;
use assay_config::{find_includes, get, remove, set};
use assay_model::change::ConfigLanguage as Language;

macro_rules! seeds {
    ($($name:literal),+ $(,)?) => {
        vec![$(include_bytes!(concat!("../../../config/fixtures/", $name)).to_vec()),+]
    };
}

pub(super) fn targets() -> Vec<ParserTarget> {
    vec![
        ParserTarget {
            name: "conf-ssh",
            seeds: seeds!(
                "hard.sshd_config",
                "openssh-9.2p1-2+deb12u10-sshd_config",
                "openssh-9.2p1-2+deb12u10-ssh_config"
            ),
            run: |bytes| edits(Language::Ssh, bytes, &[], "UseDNS"),
        },
        ParserTarget {
            name: "conf-nginx",
            seeds: seeds!(
                "hard.nginx.conf",
                "nginx-1.22.1-9+deb12u11-nginx.conf",
                "nginx-1.22.1-9+deb12u11-default-site"
            ),
            run: |bytes| {
                edits(Language::Nginx, bytes, &[], "worker_processes");
                edits(Language::Nginx, bytes, &["http"], "sendfile");
            },
        },
        ParserTarget {
            name: "conf-apache",
            seeds: seeds!("hard.apache.conf"),
            run: |bytes| {
                edits(Language::Apache, bytes, &[], "LoadModule");
                edits(
                    Language::Apache,
                    bytes,
                    &["IfModule mpm_event_module"],
                    "StartServers",
                );
            },
        },
        ParserTarget {
            name: "conf-postfix",
            seeds: seeds!(
                "hard.main.cf",
                "postfix-3.7.11-0+deb12u1-main.cf.debian",
                "postfix-3.7.11-0+deb12u1-main.cf.tls"
            ),
            run: |bytes| edits(Language::Postfix, bytes, &[], "smtpd_banner"),
        },
        ParserTarget {
            name: "conf-dovecot",
            seeds: seeds!(
                "hard.dovecot.conf",
                "dovecot-2.3.19.1-deb12u7-10-auth.conf",
                "dovecot-2.3.19.1-deb12u7-10-master.conf",
                "dovecot-2.3.19.1-deb12u7-auth-sql.conf.ext",
            ),
            run: |bytes| {
                edits(Language::Dovecot, bytes, &[], "auth_mechanisms");
                edits(
                    Language::Dovecot,
                    bytes,
                    &[],
                    "!include auth-system.conf.ext",
                );
                edits(Language::Dovecot, bytes, &[], "passdb[driver]");
                edits(Language::Dovecot, bytes, &["passdb"], "driver");
            },
        },
        ParserTarget {
            name: "conf-nsswitch",
            seeds: seeds!("hard.nsswitch.conf", "glibc-2.36-nsswitch.conf"),
            run: |bytes| edits(Language::Nsswitch, bytes, &[], "passwd"),
        },
        ParserTarget {
            name: "conf-key-value",
            seeds: seeds!("hard.sysctl.conf", "procps-4.0.2-sysctl.conf"),
            run: |bytes| edits(Language::KeyValue, bytes, &[], "vm.dirty_ratio"),
        },
        ParserTarget {
            name: "conf-ini",
            seeds: seeds!("hard.ini", "systemd-252-system.conf"),
            run: |bytes| {
                edits(Language::Ini, bytes, &["Manager"], "LogLevel");
                edits(Language::Ini, bytes, &["a"], "b");
            },
        },
    ]
}

/// Checks edits: removing an inserted setting restores every byte, a value that was set can be read back, and setting
/// the same value again changes nothing.
fn edits(language: Language, bytes: &[u8], section: &[&str], key: &str) {
    let section: Vec<String> = section.iter().map(|part| (*part).to_owned()).collect();
    let _ = find_includes(language, bytes);
    let value = "7";
    let own = "assay_hostile_key";
    if let Ok(None) = get(language, bytes, &section, own)
        && let Ok(inserted) = set(language, bytes, &section, own, value)
    {
        let found = get(language, &inserted, &section, own);
        let found = found.expect("what was set is read").expect("it is there");
        assert_eq!(found.value, value);
        let removed = remove(language, &inserted, &section, own).expect("what was set is removed");
        assert_eq!(
            removed.escape_ascii().to_string(),
            bytes.escape_ascii().to_string(),
            "inserted and removed"
        );
    }
    if let Ok(Some(found)) = get(language, bytes, &section, key)
        && let Ok(same) = set(language, bytes, &section, key, &found.value)
    {
        let again = set(language, &same, &section, key, &found.value);
        let again = again.expect("what was set can be set again");
        assert_eq!(
            again.escape_ascii().to_string(),
            same.escape_ascii().to_string(),
            "set twice"
        );
    }
    let _ = remove(language, bytes, &section, key);
}
