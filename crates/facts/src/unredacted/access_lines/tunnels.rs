//! Tunnels: peers of WireGuard that share a network, and connections of IPsec with aggressive mode or weak algorithms.

use super::super::lines_of_files::{files, read};
use super::{Lines, bare, words};
use crate::gather::Gather;
use assay_model::FactPlace;
use std::collections::BTreeMap;
use std::net::IpAddr;

const WIREGUARD: &str = "/etc/wireguard";
const IPSEC: &str = "/etc/ipsec.conf";
const IPSEC_MORE: &str = "/etc/ipsec.d";
const SWANCTL: &str = "/etc/swanctl/swanctl.conf";
const SWANCTL_MORE: &str = "/etc/swanctl/conf.d";
const STRONGSWAN: [&str; 2] = ["/etc/strongswan.conf", "/etc/strongswan.d/charon.conf"];
/// Permission of strongSwan to answer aggressive mode with a shared key (strongswan.conf(5)).
const PERMITTED: &str = "i_dont_care_about_security_and_use_aggressive_mode_psk";
/// Algorithms without encryption, with short keys, or with known attacks.
const WEAK: [&str; 9] = [
    "null", "des", "3des", "md5", "md5_128", "prfmd5", "modp512", "modp768", "modp1024",
];

pub(super) fn collect(g: &mut Gather<'_>) {
    note_wireguard(g);
    let permitted = may_be_aggressive(g);
    let mut aggressive = Lines::of("ipsec_mode", "aggressive");
    let mut weak = Lines::of("ipsec_proposal", "weak");
    note_ipsec(g, permitted, &mut aggressive, &mut weak);
    note_swanctl(g, permitted, &mut aggressive, &mut weak);
}

/// Notes peers that have the same network in AllowedIPs: WireGuard sends to the last one (wg(8), allowed-ips).
fn note_wireguard(g: &mut Gather<'_>) {
    let mut found = Lines::of("wireguard_peer", "shares_network");
    for path in files(g, "wireguard_peer", WIREGUARD, ".conf") {
        let mut peer = 0;
        let mut owners: BTreeMap<(IpAddr, u8), usize> = BTreeMap::new();
        for line in read(g, "wireguard_peer", &path) {
            let Some(text) = bare(&line) else { continue };
            let text = text.split('#').next().unwrap_or_default().trim();
            if text.eq_ignore_ascii_case("[peer]") {
                peer += 1;
            }
            let Some((name, value)) = text.split_once('=') else {
                continue;
            };
            if !name.trim().eq_ignore_ascii_case("AllowedIPs") {
                continue;
            }
            let mut shares = false;
            for network in value.split(',').filter_map(parse_network) {
                let owner = *owners.entry(network).or_insert(peer);
                shares |= owner != peer;
            }
            found.add(g, shares, &line.place);
        }
    }
}

/// Parses a network, and clears the bits behind its prefix.
fn parse_network(text: &str) -> Option<(IpAddr, u8)> {
    let text = text.trim();
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length.parse::<u8>().ok()?)),
        None => (text, None),
    };
    match address.parse().ok()? {
        IpAddr::V4(address) => {
            let length = length.unwrap_or(32).min(32);
            let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
            Some((IpAddr::V4((u32::from(address) & mask).into()), length))
        }
        IpAddr::V6(address) => {
            let length = length.unwrap_or(128).min(128);
            let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
            Some((IpAddr::V6((u128::from(address) & mask).into()), length))
        }
    }
}

fn may_be_aggressive(g: &mut Gather<'_>) -> bool {
    STRONGSWAN.iter().any(|path| {
        let lines = read(g, "ipsec_mode", path);
        lines.iter().any(|line| {
            let words = words(line);
            let on = |word: &String| ["yes", "true", "1", "on"].contains(&word.as_str());
            words
                .first()
                .is_some_and(|first| first.ends_with(PERMITTED))
                && words.get(1).is_some_and(on)
        })
    })
}

/// Whether a list of proposals names a weak algorithm.
fn is_weak(proposals: &str) -> bool {
    let mut names = proposals.split([',', '-', '!', ' ', '+', ';', '_']);
    names.any(|name| WEAK.contains(&name.trim().to_ascii_lowercase().as_str()))
}

type Settings = BTreeMap<String, (String, FactPlace)>;

/// Reads the connections of ipsec.conf; each inherits from `%default` (ipsec.conf(5)).
fn note_ipsec(g: &mut Gather<'_>, permitted: bool, aggressive: &mut Lines, weak: &mut Lines) {
    let mut all = vec![IPSEC.to_owned()];
    let main = read(g, "ipsec_mode", IPSEC);
    let includes = |line: &super::super::lines_of_files::Line| {
        line.text.trim_start().starts_with("include") && line.text.contains(IPSEC_MORE)
    };
    if main.iter().any(includes) {
        all.extend(files(g, "ipsec_mode", IPSEC_MORE, ".conf"));
    }
    let mut connections: Vec<(String, Settings)> = Vec::new();
    for path in all {
        let mut inside = false;
        for line in read(g, "ipsec_mode", &path) {
            let Some(text) = bare(&line) else { continue };
            if !line.text.starts_with([' ', '\t']) {
                let name = text.strip_prefix("conn").map(str::trim);
                inside = name.is_some();
                connections.extend(name.map(|name| (name.to_owned(), Settings::new())));
                continue;
            }
            let text = text.split(" #").next().unwrap_or_default();
            if let (true, Some((key, value)), Some((_, settings))) =
                (inside, text.split_once('='), connections.last_mut())
            {
                let value = value.trim().trim_matches('"').to_ascii_lowercase();
                settings.insert(key.trim().to_ascii_lowercase(), (value, line.place.clone()));
            }
        }
    }
    let default: Settings = connections
        .iter()
        .filter(|(name, _)| name == "%default")
        .flat_map(|(_, settings)| settings.clone())
        .collect();
    for (name, own) in connections {
        for key in ["ike", "esp", "phase2alg", "ah"] {
            if let Some((value, place)) = own.get(key) {
                weak.add(g, is_weak(value), place);
            }
        }
        if name == "%default" {
            continue;
        }
        let get = |key: &str| own.get(key).or_else(|| default.get(key));
        let is = |key: &str, values: &[&str]| {
            get(key).is_some_and(|(value, _)| values.contains(&value.as_str()))
        };
        let switch = ["aggressive", "aggrmode"].into_iter().find_map(get);
        if let Some((value, place)) = switch {
            let first = is("keyexchange", &["ikev1"]) || is("ikev2", &["no", "never"]);
            let shared = is("authby", &["psk", "secret"]) || is("leftauth", &["psk"]);
            let starts = !is("right", &["%any"]);
            let on = value == "yes" && first && shared && (permitted || starts);
            aggressive.add(g, on, place);
        }
    }
}

/// Reads the connections of swanctl.conf, whose sections stand in braces.
fn note_swanctl(g: &mut Gather<'_>, permitted: bool, aggressive: &mut Lines, weak: &mut Lines) {
    let mut all = vec![SWANCTL.to_owned()];
    all.extend(files(g, "ipsec_mode", SWANCTL_MORE, ".conf"));
    for path in all {
        // The settings of the connection, which is the second of the nested sections.
        let mut own = Settings::new();
        let mut depth = 0_usize;
        for line in read(g, "ipsec_mode", &path) {
            let Some(text) = bare(&line) else { continue };
            let text = text.split('#').next().unwrap_or_default();
            for piece in text.split_inclusive(['{', '}']) {
                let body = piece.trim_end_matches(['{', '}']);
                if let Some((key, value)) = body.split_once('=') {
                    let (key, value) = (key.trim(), value.trim().to_ascii_lowercase());
                    if ["proposals", "esp_proposals", "ah_proposals"].contains(&key) {
                        weak.add(g, is_weak(&value), &line.place);
                    }
                    own.insert(key.to_owned(), (value, line.place.clone()));
                }
                if piece.ends_with('{') {
                    depth += 1;
                    if depth == 2 {
                        own.clear();
                    }
                } else if piece.ends_with('}') {
                    if depth == 2 {
                        note_connection(g, permitted, &own, aggressive);
                    }
                    depth = depth.saturating_sub(1);
                }
            }
        }
    }
}

fn note_connection(g: &mut Gather<'_>, permitted: bool, own: &Settings, aggressive: &mut Lines) {
    let is = |key: &str, wanted: &str| own.get(key).is_some_and(|(value, _)| value == wanted);
    let Some((value, place)) = own.get("aggressive") else {
        return;
    };
    let starts = own
        .get("remote_addrs")
        .is_some_and(|(value, _)| value != "%any");
    let on = value == "yes" && is("version", "1") && is("auth", "psk") && (permitted || starts);
    aggressive.add(g, on, place);
}

#[cfg(test)]
mod tests {
    use super::super::holds;
    use super::*;

    #[test]
    fn peers_and_connections() {
        let wireguard = "/etc/wireguard/wg0.conf";
        let swanctl = "/etc/swanctl/conf.d/a.conf";
        let shared = "wireguard_peer.2.shares_network 4";
        for (path, text, expected) in [
            (
                wireguard,
                "[Peer]\nAllowedIPs=10.7.0.2/24\n[peer]\nallowedips = 10.7.0.3/24 # b\n",
                shared,
            ),
            (
                wireguard,
                "[Peer]\nAllowedIPs=10.7.0.2\n[Peer]\nAllowedIPs=10.7.0.3/32\n",
                "",
            ),
            (
                wireguard,
                "[Peer]\nAllowedIPs=10.7.0.2/32, fd00::2/128\nAllowedIPs=10.7.0.2/32\n",
                "",
            ),
            (
                wireguard,
                "[Peer]\nAllowedIPs=::/0\n[Peer]\nAllowedIPs=fd00::1/0\n",
                shared,
            ),
            (
                IPSEC,
                "conn %default\n keyexchange=ikev1\nconn a\n right=vpn.example\n authby=psk\n aggressive=yes\n",
                "ipsec_mode.1.aggressive 6",
            ),
            (
                IPSEC,
                "conn a\n keyexchange=ikev2\n right=vpn.example\n authby=psk\n aggressive=yes\n",
                "",
            ),
            (
                IPSEC,
                "conn a\n keyexchange=ikev1\n right=%any\n authby=psk\n aggressive=yes\n",
                "",
            ),
            (
                IPSEC,
                "conn a\n ike=aes256-sha256-modp1024!\n",
                "ipsec_proposal.1.weak 2",
            ),
            (IPSEC, "conn a\n esp=aes128gcm16-modp3072\n", ""),
            (
                swanctl,
                "connections {\n a {\n children { n { esp_proposals = null-sha256\n } } } }\n",
                "ipsec_proposal.1.weak 3",
            ),
            (
                swanctl,
                "connections {\n a {\n proposals = aes256-sha256-modp2048, default\n }\n}\n",
                "",
            ),
            (
                swanctl,
                "connections {\n a {\n version = 1\n aggressive = yes\n remote_addrs = h\n \
                 local { auth = psk\n }\n }\n}\n",
                "ipsec_mode.1.aggressive 4",
            ),
        ] {
            assert_eq!(holds(&[(path, text)]).join(" "), expected, "{text}");
        }
        let connection = "conn a\n keyexchange=ikev1\n right=%any\n authby=psk\n aggressive=yes\n";
        let permission = format!("charon {{\n {PERMITTED} = yes\n}}\n");
        let files = [(IPSEC, connection), (STRONGSWAN[1], permission.as_str())];
        assert_eq!(holds(&files).join(" "), "ipsec_mode.1.aggressive 5");
    }
}
