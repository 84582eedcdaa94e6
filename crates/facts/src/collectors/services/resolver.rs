//! Collects the order in which host names are resolved (nsswitch.conf(5)), and whether the machine's DNS domain is
//! `local` (resolv.conf(5)), a name that is reserved for multicast DNS (RFC 6762).

use super::setting_lines::place;
use crate::gather::Gather;
use assay_model::{FactKind, FactPlace};

pub(crate) const ORDER: &str = "/etc/nsswitch.conf";
pub(crate) const RESOLV: &str = "/etc/resolv.conf";

/// Services and actions that are kept in the `hosts` line (nsswitch.conf(5), nss-mdns, systemd).
pub(crate) const WORDS: [&str; 20] = [
    "files",
    "dns",
    "compat",
    "db",
    "mdns",
    "mdns4",
    "mdns6",
    "mdns_minimal",
    "mdns4_minimal",
    "mdns6_minimal",
    "myhostname",
    "mymachines",
    "resolve",
    "libvirt",
    "libvirt_guest",
    "wins",
    "nis",
    "[NOTFOUND=return]",
    "[!UNAVAIL=return]",
    "[SUCCESS=return]",
];

pub(crate) fn collect(g: &mut Gather<'_>) {
    if let Some(text) = g.read("resolver", ORDER) {
        for (number, line) in text.lines().enumerate() {
            let bare = line.split('#').next().unwrap_or_default().trim();
            if let Some(words) = bare.strip_prefix("hosts:") {
                let words: Vec<&str> = words.split_whitespace().collect();
                let end = words.iter().position(|word| *word == "dns");
                let before_dns = words[..end.unwrap_or(words.len())].to_vec();
                let at = place(ORDER, number, line);
                for (key, words) in [
                    ("resolver.hosts", words),
                    ("resolver.before_dns", before_dns),
                ] {
                    g.facts.known(key, words, FactKind::Configured, &at);
                }
            }
        }
    }
    if let Some(text) = g.read("resolver", RESOLV) {
        let line = text
            .lines()
            .enumerate()
            .find(|(_, line)| is_local_line(line));
        let at = line.map_or(FactPlace::from(RESOLV), |(number, line)| {
            place(RESOLV, number, line)
        });
        g.facts.known(
            "resolver.domain_is_local",
            line.is_some(),
            FactKind::Configured,
            at,
        );
    }
}

fn is_local_line(line: &str) -> bool {
    let mut words = line.split_whitespace();
    matches!(words.next(), Some("search" | "domain")) && words.any(is_local)
}

fn is_local(name: &str) -> bool {
    // nss-mdns leaves names with more labels to DNS (README, "two-label limit heuristic").
    name.trim_end_matches('.').eq_ignore_ascii_case("local")
}

/// Redacts nsswitch.conf: keeps the line `hosts`.
pub(crate) fn redact_order(line: &str) -> String {
    let bare = line.split('#').next().unwrap_or_default().trim();
    let Some(words) = bare.strip_prefix("hosts:") else {
        return String::new();
    };
    let kept: Vec<&str> = words
        .split_whitespace()
        .filter(|word| WORDS.contains(word))
        .collect();
    format!("hosts: {}", kept.join(" ")).trim_end().to_owned()
}

/// Redacts resolv.conf: keeps only whether a search domain is `local`.
pub(crate) fn redact_domain(line: &str) -> String {
    match is_local_line(line) {
        true => "search local".to_owned(),
        false => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept() {
        for (line, kept) in [
            (
                "hosts:  files mdns4_minimal [NOTFOUND=return] dns secret # x",
                "hosts: files mdns4_minimal [NOTFOUND=return] dns",
            ),
            ("passwd: files ldap", ""),
            ("#hosts: files", ""),
        ] {
            assert_eq!(redact_order(line), kept);
            assert_eq!(redact_order(kept), kept);
        }
        for (line, kept) in [
            ("search LOCAL. example.org", "search local"),
            ("search corp.local", ""),
            ("domain local", "search local"),
            ("search corp.example.org", ""),
            ("search locale", ""),
            ("nameserver 10.0.0.1", ""),
        ] {
            assert_eq!(redact_domain(line), kept);
            assert_eq!(redact_domain(kept), kept);
        }
    }
}
