//! Judges the algorithms that an SSH server offers. The checks contain lists of weak algorithms, so a new algorithm
//! never causes a remark. The version in the banner is not judged.

use super::Report;
use crate::remark::Severity::{Danger, Note, Weak};
use crate::remark::{Remark, Severity, ranked};

struct Rule {
    id: &'static str,
    severity: Severity,
    lists: &'static [List],
    has: fn(&str) -> bool,
    says: &'static str,
    source: &'static str,
    remedy: &'static str,
}

#[derive(Clone, Copy)]
enum List {
    Kex,
    HostKeys,
    Ciphers,
    Macs,
}

const RULES: [Rule; 9] = [
    Rule {
        id: "ssh-small-group",
        severity: Danger,
        lists: &[List::Kex],
        has: |name| {
            name.starts_with("diffie-hellman-group1-")
                || name.starts_with("gss-group1-")
                || name == "rsa1024-sha1"
        },
        says: "agrees on keys with a prime (Logjam) or a modulus of 1,024 bits",
        source: "RFC 9142 section 4; CVE-2015-4000",
        remedy: "sshd_config: KexAlgorithms -diffie-hellman-group1-sha1; rsa1024-sha1 must not be used at all",
    },
    Rule {
        id: "ssh-kex-sha1",
        severity: Weak,
        lists: &[List::Kex],
        has: |name| name.ends_with("-sha1") || name.contains("-sha1-"),
        says: "agrees on keys with SHA-1",
        source: "RFC 9142 section 4",
        remedy: "sshd_config: KexAlgorithms -*-sha1*",
    },
    Rule {
        id: "ssh-dss",
        severity: Danger,
        lists: &[List::HostKeys],
        has: |name| name.starts_with("ssh-dss"),
        says: "has a DSA host key: 1,024 bits and SHA-1",
        source: "RFC 8332 section 1; OpenSSH 7.0 and 10.0 release notes",
        remedy: "remove the HostKey line and the key; use Ed25519",
    },
    Rule {
        id: "ssh-rsa-sha1",
        severity: Weak,
        lists: &[List::HostKeys],
        has: |name| name == "ssh-rsa" || name.starts_with("ssh-rsa-cert-"),
        says: "signs with RSA and SHA-1",
        source: "RFC 8332 section 1; OpenSSH 8.8 release notes",
        remedy: "sshd_config: HostKeyAlgorithms -ssh-rsa*; the same key signs as rsa-sha2-512",
    },
    Rule {
        id: "ssh-arcfour",
        severity: Danger,
        lists: &[List::Ciphers],
        has: |name| name.starts_with("arcfour"),
        says: "encrypts with RC4",
        source: "RFC 8758 section 2",
        remedy: "sshd_config: Ciphers -arcfour*",
    },
    Rule {
        id: "ssh-no-cipher",
        severity: Danger,
        lists: &[List::Ciphers],
        has: |name| name == "none" || name.starts_with("des-"),
        says: "does not encrypt, or with DES",
        source: "RFC 4253 section 6.3; RFC 4250 section 4.11.1 (DES)",
        remedy: "sshd_config: Ciphers -none,des-*",
    },
    Rule {
        id: "ssh-old-cipher",
        severity: Weak,
        lists: &[List::Ciphers],
        has: |name| {
            let old = ["3des-", "blowfish-", "cast128-", "idea-", "rijndael-"];
            name.ends_with("-cbc")
                || name.contains("-cbc@")
                || old.iter().any(|old| name.starts_with(old))
        },
        says: "encrypts in CBC mode, of which parts of the text can be won, or in blocks of 64 bits",
        source: "CVE-2008-5161; RFC 4344 section 1; OpenSSH 6.7 and 7.4 release notes",
        remedy: "sshd_config: Ciphers -*-cbc*",
    },
    Rule {
        id: "ssh-old-mac",
        severity: Weak,
        lists: &[List::Macs],
        has: |name| {
            name.contains("md5")
                || name.contains("-96")
                || name == "none"
                || name.contains("ripemd")
        },
        says: "protects integrity with MD5, RIPEMD or a shortened hash, or not at all",
        source: "RFC 4253 section 6.4; OpenSSH 7.2 and 7.6 release notes",
        remedy: "sshd_config: MACs -*md5*,*-96*",
    },
    Rule {
        id: "ssh-mac-sha1",
        severity: Note,
        lists: &[List::Macs],
        has: |name| name.starts_with("hmac-sha1"),
        says: "still offers HMAC with SHA-1, which is not broken but not needed either",
        source: "RFC 6194",
        remedy: "sshd_config: MACs -hmac-sha1*",
    },
];

pub(super) fn judge(report: &Report) -> Vec<Remark> {
    let offered = &report.algorithms;
    let mut out = Vec::new();
    if report.banner.starts_with("SSH-1.99") {
        out.push(Remark::new(
            "ssh-1",
            Danger,
            "the server says that it speaks version 1 of SSH as well, where others can be the server",
            "RFC 4253 section 5.1; CVE-2001-1473; OpenSSH 7.4 release notes",
            "sshd_config: Protocol 2; better, update the server",
        ));
    }
    let mut told: Vec<&str> = Vec::new();
    for rule in &RULES {
        let mut hit: Vec<&str> = Vec::new();
        for list in rule.lists {
            let names: Vec<&String> = match list {
                List::Kex => offered.kex.iter().collect(),
                List::HostKeys => offered.host_keys.iter().collect(),
                List::Ciphers => offered
                    .ciphers_in
                    .iter()
                    .chain(&offered.ciphers_out)
                    .collect(),
                List::Macs => offered.macs_in.iter().chain(&offered.macs_out).collect(),
            };
            for name in names.into_iter().map(String::as_str) {
                if (rule.has)(name) && !hit.contains(&name) && !told.contains(&name) {
                    hit.push(name);
                }
            }
        }
        if !hit.is_empty() {
            out.push(Remark::new(
                rule.id,
                rule.severity,
                format!("the server {}: {}", rule.says, hit.join(", ")),
                rule.source,
                rule.remedy,
            ));
            told.extend(hit);
        }
    }
    keys(report, &mut out);
    terrapin(report, &mut out);
    ranked(out)
}

fn keys(report: &Report, out: &mut Vec<Remark>) {
    for key in &report.host_keys {
        let small = key.kind == "ssh-rsa" && key.bits.is_some_and(|bits| bits < 2048);
        if small {
            out.push(Remark::new(
                "ssh-small-key",
                Danger,
                format!("the RSA host key has {} bits", key.bits.unwrap_or(0)),
                "RFC 8332 section 5.1; OpenSSH 9.1 release notes (RequiredRSASize)",
                "make a new one: ssh-keygen -t ed25519 or -t rsa -b 3072, and tell its fingerprint",
            ));
        }
    }
}

/// Checks for Terrapin: whether the server offers the affected ciphers without the extension that fixes the
/// vulnerability. So the result does not depend on the version of the server.
fn terrapin(report: &Report, out: &mut Vec<Remark>) {
    let offered = &report.algorithms;
    let strict = "kex-strict-s-v00@openssh.com";
    if offered.extensions.iter().any(|name| name == strict) {
        return;
    }
    let ciphers = || offered.ciphers_in.iter().chain(&offered.ciphers_out);
    let mut macs = offered.macs_in.iter().chain(&offered.macs_out);
    let chacha = ciphers().any(|name| name.starts_with("chacha20-poly1305"));
    let cbc = ciphers().any(|name| name.ends_with("-cbc"));
    if chacha || (cbc && macs.any(|name| name.contains("-etm@"))) {
        out.push(Remark::new(
            "ssh-terrapin",
            Weak,
            "the beginning of a session can be cut (Terrapin): the server does not offer strict \
             exchange of keys, and has ciphers that need it",
            "CVE-2023-48795; OpenSSH 9.6 release notes",
            "update the server (Debian: openssh-server of a security update), or \
             Ciphers -chacha20-poly1305@openssh.com,*-cbc",
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::super::Algorithms;
    use super::*;
    use crate::address::Target;
    use crate::visit::Where;

    fn report(kex: &[&str], host_keys: &[&str], ciphers: &[&str], macs: &[&str]) -> Report {
        let names = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        let strict = |name: &String| name.starts_with("kex-strict");
        let (extensions, kex) = names(kex).into_iter().partition(strict);
        Report {
            place: Where {
                target: Target::parse("localhost", 22).unwrap(),
                address: ([127, 0, 0, 1], 22).into(),
                others: Vec::new(),
            },
            banner: "SSH-2.0-x".to_owned(),
            algorithms: Algorithms {
                kex,
                extensions,
                host_keys: names(host_keys),
                ciphers_in: names(ciphers),
                ciphers_out: names(ciphers),
                macs_in: names(macs),
                macs_out: names(macs),
                ..Algorithms::default()
            },
            host_keys: Vec::new(),
            remarks: Vec::new(),
            unknown: Vec::new(),
            connections: 1,
        }
    }

    fn ids(report: &Report) -> Vec<&'static str> {
        judge(report).iter().map(|remark| remark.id).collect()
    }

    #[test]
    fn new_algorithms_of_which_nobody_has_heard_are_no_fault() {
        let strict = "kex-strict-s-v00@openssh.com";
        let new = report(
            &["mlkem9-sha512@new", strict],
            &["ssh-mldsa"],
            &["aegis"],
            &["blake4"],
        );
        assert_eq!(judge(&new), []);
        let usual = ["chacha20-poly1305@openssh.com", "aes256-gcm@openssh.com"];
        let good = report(
            &["curve25519-sha256", strict],
            &["ssh-ed25519"],
            &usual,
            &["hmac-sha2-256"],
        );
        assert_eq!(judge(&good), []);
    }

    #[test]
    fn each_family_is_told_once() {
        let bad = report(
            &[
                "rsa1024-sha1",
                "gss-group1-sha1-toWM5Slw5Ew8Mqkay+al2g==",
                "diffie-hellman-group14-sha1",
            ],
            &["ssh-dss", "ssh-rsa"],
            &["arcfour", "3des-cbc", "aes128-cbc"],
            &["hmac-md5", "hmac-sha1-96", "hmac-sha1"],
        );
        let mut found = ids(&bad);
        found.sort_unstable();
        let mut all = [
            "ssh-small-group",
            "ssh-kex-sha1",
            "ssh-dss",
            "ssh-rsa-sha1",
            "ssh-arcfour",
            "ssh-old-cipher",
            "ssh-old-mac",
            "ssh-mac-sha1",
        ];
        all.sort_unstable();
        assert_eq!(found, all);
    }

    #[test]
    fn terrapin_by_what_is_offered() {
        let chacha = ["chacha20-poly1305@openssh.com"];
        let open = report(&["curve25519-sha256"], &[], &chacha, &[]);
        assert_eq!(ids(&open), ["ssh-terrapin"]);
        let closed = report(
            &["curve25519-sha256"],
            &[],
            &["aes128-gcm@openssh.com"],
            &["x-etm@y"],
        );
        assert_eq!(judge(&closed), []);
    }
}
