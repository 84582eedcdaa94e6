//! Remedies that a user applies by hand: each is executed as its page describes it, with the real programs, and
//! clears its finding.

use super::bed::Bed;
use super::cases::Planted;
use serde_json::Value;

/// A rule, the files in which it is planted, the remedy, and the program that must accept the
/// result.
struct ByHand {
    rule: &'static str,
    planted: &'static [Planted],
    commands: &'static [&'static [&'static str]],
    edited: &'static [Planted],
    accepted: &'static [&'static str],
}

const POSTFIX: &[&str] = &["postfix", "check"];
const DOVECOT: &[&str] = &["doveconf", "-n"];
const SSHD: &[&str] = &["/usr/sbin/sshd", "-T"];

const REMEDIES: [ByHand; 13] = [
    ByHand {
        rule: "postfix-open-relay",
        planted: &[
            ("postfix/main.cf", |text| {
                format!(
                    "{text}inet_interfaces = all\nmynetworks = 0.0.0.0/0\nsmtpd_relay_restrictions = permit_mynetworks, permit\n"
                )
            }),
            ("postfix/master.cf", |text| {
                format!("smtp inet n - y - - smtpd\n{text}")
            }),
        ],
        commands: &[
            &["postconf", "-X", "smtpd_relay_restrictions"],
            &["postconf", "-e", "mynetworks = 127.0.0.0/8 [::1]/128"],
        ],
        edited: &[],
        accepted: POSTFIX,
    },
    ByHand {
        rule: "mail-ssl3",
        planted: &[("postfix/main.cf", |text| {
            format!(
                "{text}smtpd_tls_security_level = may\nsmtpd_tls_mandatory_protocols = SSLv3, TLSv1.2\n"
            )
        })],
        commands: &[&["postconf", "-X", "smtpd_tls_mandatory_protocols"]],
        edited: &[],
        accepted: POSTFIX,
    },
    ByHand {
        rule: "mail-ssl3",
        planted: &[("dovecot/conf.d/99-own.conf", |_| {
            "ssl_min_protocol = SSLv3\n".to_owned()
        })],
        commands: &[],
        edited: &[("dovecot/conf.d/99-own.conf", |_| {
            "ssl_min_protocol = TLSv1.2\n".to_owned()
        })],
        accepted: DOVECOT,
    },
    ByHand {
        rule: "mail-tls-1-0",
        planted: &[("postfix/main.cf", |text| {
            format!(
                "{text}smtpd_tls_security_level = may\nsmtpd_tls_mandatory_protocols = TLSv1, TLSv1.2\n"
            )
        })],
        commands: &[&[
            "postconf",
            "-e",
            "smtpd_tls_mandatory_protocols = >=TLSv1.2",
        ]],
        edited: &[],
        accepted: POSTFIX,
    },
    ByHand {
        rule: "mail-weak-ciphers",
        planted: &[("postfix/main.cf", |text| {
            format!("{text}smtpd_tls_security_level = may\nsmtpd_tls_ciphers = export\n")
        })],
        commands: &[&["postconf", "-X", "smtpd_tls_ciphers"]],
        edited: &[],
        accepted: POSTFIX,
    },
    ByHand {
        rule: "mail-weak-ciphers",
        planted: &[("dovecot/conf.d/99-own.conf", |_| {
            "ssl_cipher_list = HIGH:eNULL\n".to_owned()
        })],
        commands: &[],
        edited: &[("dovecot/conf.d/99-own.conf", |_| String::new())],
        accepted: DOVECOT,
    },
    ByHand {
        rule: "dnsbl-closed",
        planted: &[("postfix/main.cf", |text| {
            format!(
                "{text}own = reject_rbl_client dnsbl.inps.de\nsmtpd_client_restrictions = permit_mynetworks,\n  $own\n"
            )
        })],
        commands: &[],
        edited: &[("postfix/main.cf", |text| {
            text.replace("own = reject_rbl_client dnsbl.inps.de", "own =")
        })],
        accepted: POSTFIX,
    },
    ByHand {
        rule: "dovecot-cleartext",
        planted: &[("dovecot/conf.d/99-own.conf", |_| {
            "disable_plaintext_auth = no\n".to_owned()
        })],
        commands: &[],
        edited: &[("dovecot/conf.d/99-own.conf", |text| {
            format!("{text}ssl = required\n")
        })],
        accepted: DOVECOT,
    },
    ByHand {
        rule: "dovecot-cleartext",
        planted: &[("dovecot/conf.d/99-own.conf", |_| {
            "disable_plaintext_auth = no\n".to_owned()
        })],
        commands: &[],
        edited: &[("dovecot/conf.d/99-own.conf", |_| String::new())],
        accepted: DOVECOT,
    },
    ByHand {
        rule: "nginx-hpkp",
        planted: &[("nginx/conf.d/pins.conf", |_| {
            "add_header Public-Key-Pins 'pin-sha256=\"AAAA\"; max-age=5184000' always;\n".to_owned()
        })],
        commands: &[],
        edited: &[("nginx/conf.d/pins.conf", |_| {
            "add_header Public-Key-Pins max-age=0 always;\n".to_owned()
        })],
        accepted: &["nginx", "-t"],
    },
    ByHand {
        rule: "sshd-line-void",
        planted: &[
            ("ssh/sshd_config.d/50-cloud-init.conf", |_| {
                "PasswordAuthentication yes\n".to_owned()
            }),
            ("ssh/sshd_config", |text| {
                format!("{text}PasswordAuthentication no\n")
            }),
        ],
        commands: &[],
        edited: &[("ssh/sshd_config.d/50-cloud-init.conf", |_| {
            "PasswordAuthentication no\n".to_owned()
        })],
        accepted: SSHD,
    },
    ByHand {
        rule: "sshd-ca-for-all",
        planted: &[("ssh/sshd_config", |text| {
            format!("TrustedUserCAKeys /etc/ssh/ca.pub\nRevokedKeys /dev/null\n{text}")
        })],
        commands: &[],
        edited: &[("ssh/sshd_config", |text| {
            format!("AuthorizedPrincipalsFile /etc/ssh/principals/%u\n{text}")
        })],
        accepted: SSHD,
    },
    ByHand {
        rule: "sshd-refuses-configuration",
        planted: &[("ssh/sshd_config", |text| {
            format!("{text}Match User deploy\n  AllowTcpForwarding no\n  UseDNS no\n")
        })],
        commands: &[],
        edited: &[("ssh/sshd_config", |text| {
            text.replace("  UseDNS no\n", "Match all\n  UseDNS no\n")
        })],
        accepted: SSHD,
    },
];

#[test]
fn remedies_by_hand_clear_their_findings() {
    // Each has a separate machine.
    for remedy in &REMEDIES {
        let Some(bed) = Bed::new() else { return };
        let rule = remedy.rule;
        assert!(!is_found(&bed, rule), "{rule}: before anything is planted");
        for (file, plant) in remedy.planted {
            bed.edit(file, plant);
        }
        assert!(is_found(&bed, rule), "{rule}");
        for argv in remedy.commands {
            let ran = bed.run(argv);
            assert_eq!(ran.code, Some(0), "{argv:?}: {}", ran.stderr);
        }
        for (file, edit) in remedy.edited {
            bed.edit(file, edit);
        }
        let ran = bed.run(remedy.accepted);
        assert_eq!(ran.code, Some(0), "{rule}: {}", ran.stderr);
        assert!(
            !is_found(&bed, rule),
            "{rule}: the remedy does not clear it"
        );
    }
}

fn is_found(bed: &Bed, rule: &str) -> bool {
    let ran = bed.assay(&["check", "--only", rule, "--json"]);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    let findings = document["findings"].as_array().unwrap();
    let violated = |one: &&Value| one["certainty"] == "violated";
    findings.iter().any(|one| violated(&one))
}
