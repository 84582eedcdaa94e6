//! Finds broken algorithms that sshd is configured to offer. Evaluates the sign of each list (sshd_config(5)): `+` and
//! `^` add to the defaults, `-` removes from the defaults, and patterns match names.

use crate::gather::Gather;
use assay_config::effective::ssh_match::pattern_matches;
use assay_config::effective::{Effective, ScopeId, Setting};
use assay_model::{FactKind, FactPlace};

/// Keywords with their weak algorithms. None of these is a default of OpenSSH 8.8 or later.
pub(crate) const WEAK: [(&str, &[&str]); 5] = [
    (
        "kexalgorithms",
        &[
            "diffie-hellman-group1-sha1",
            "diffie-hellman-group14-sha1",
            "diffie-hellman-group-exchange-sha1",
        ],
    ),
    (
        "ciphers",
        &[
            "3des-cbc",
            "blowfish-cbc",
            "cast128-cbc",
            "arcfour",
            "arcfour128",
            "arcfour256",
            "aes128-cbc",
            "aes192-cbc",
            "aes256-cbc",
            "rijndael-cbc@lysator.liu.se",
            "none",
        ],
    ),
    (
        "macs",
        &[
            "hmac-md5",
            "hmac-md5-96",
            "hmac-sha1-96",
            "hmac-md5-etm@openssh.com",
            "hmac-md5-96-etm@openssh.com",
            "hmac-sha1-96-etm@openssh.com",
        ],
    ),
    ("hostkeyalgorithms", OF_KEYS),
    ("pubkeyacceptedalgorithms", OF_KEYS),
];

/// Weak algorithms of host and user keys: DSA, and RSA with SHA-1.
const OF_KEYS: &[&str] = &[
    "ssh-rsa",
    "ssh-dss",
    "ssh-rsa-cert-v01@openssh.com",
    "ssh-dss-cert-v01@openssh.com",
];

/// Notes the effective lines of a scope that offer weak algorithms, each with the algorithms.
pub(super) fn collect(g: &mut Gather<'_>, all: &Effective, id: ScopeId, scope: &str) {
    for (keyword, weak) in WEAK {
        let counts = all.get(id, keyword);
        let Some(said) = counts.into_iter().find(|said| said.scope == id) else {
            continue;
        };
        let which = format!("{scope}-{keyword}");
        let place = FactPlace::from(&said.place);
        let offered: Vec<&str> = list_offered(said, weak);
        let mut note = |what: &str, value: serde_json::Value| {
            let fact = format!("sshd.algorithms.{which}.{what}");
            g.facts
                .known(fact, value, FactKind::Configured, place.clone());
        };
        note("weak", offered.into());
        note("keyword", keyword.into());
        note("list", said.text().into());
        g.about(["sshd.algorithms", &which]);
    }
}

/// Returns the algorithms of `weak` that a line adds to the defaults or keeps in the list.
pub(crate) fn list_offered(said: &Setting, weak: &[&'static str]) -> Vec<&'static str> {
    let text = said.text();
    let list = text.trim().trim_matches('"');
    if list.starts_with('-') {
        return Vec::new();
    }
    let patterns: Vec<&str> = list.trim_start_matches(['+', '^']).split(',').collect();
    let named = |name: &&&str| {
        patterns
            .iter()
            .any(|pattern| pattern_matches(name, pattern.trim()))
    };
    weak.iter().filter(named).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn signs_and_patterns() {
        for (line, expected) in [
            ("Ciphers 3des-cbc,aes256-ctr", vec!["3des-cbc"]),
            ("Ciphers +aes128-cbc", vec!["aes128-cbc"]),
            (
                "Ciphers ^3des-cbc,aes128-cbc",
                vec!["3des-cbc", "aes128-cbc"],
            ),
            ("Ciphers -3des-cbc,aes128-cbc", vec![]),
            ("Ciphers aes*-ctr,aes*-gcm@openssh.com", vec![]),
            (
                "Ciphers +aes*",
                vec!["aes128-cbc", "aes192-cbc", "aes256-cbc"],
            ),
            ("Ciphers \"arcfour\"", vec!["arcfour"]),
            ("Ciphers aes128-ctr", vec![]),
        ] {
            let host = Recorded::new().file(super::super::ssh::SERVER, format!("{line}\n"));
            let mut g = Gather::new(&host);
            super::super::ssh::server(&mut g);
            let weak = g.facts.get("sshd.algorithms.everywhere-ciphers.weak");
            assert_eq!(weak, Some(&serde_json::json!(expected)), "{line}");
        }
    }
}
