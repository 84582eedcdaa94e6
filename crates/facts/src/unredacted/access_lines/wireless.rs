//! Wi-Fi and routers: sign-ins that do not verify the RADIUS server, and the networks and zones of OpenWrt.

use super::super::lines_of_files::{files, read};
use super::{Lines, bare, words};
use crate::gather::Gather;
use assay_model::FactPlace;
use std::collections::BTreeMap;

const SUPPLICANT: &str = "/etc/wpa_supplicant";
const PROFILES: &str = "/etc/NetworkManager/system-connections";
const WIRELESS: &str = "/etc/config/wireless";
const FIREWALL: &str = "/etc/config/firewall";
/// Methods that send a password or its hash to a server with a certificate. EAP-TLS sends none.
const METHODS: [&str; 3] = ["peap", "ttls", "fast"];

const HOSTAPD: &str = "/etc/hostapd";
const PUBLISHED: [&str; 10] = [
    "12345678",
    "123456789",
    "1234567890",
    "87654321",
    "password",
    "password1",
    "qwertyuiop",
    "passphrase",
    "changeme",
    "11111111",
];

type Settings = BTreeMap<String, (String, FactPlace)>;

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut found = Lines::of("wifi_sign_in", "unverified");
    note_supplicant(g, &mut found);
    note_profiles(g, &mut found);
    note_wireless(g);
    note_firewall(g);
    note_passphrases(g);
}

/// Notes access points whose passphrase is one of those that every list of passwords begins with.
fn note_passphrases(g: &mut Gather<'_>) {
    let mut found = Lines::of("hostapd_passphrase", "published");
    for path in files(g, "hostapd_passphrase", HOSTAPD, ".conf") {
        for line in read(g, "hostapd_passphrase", &path) {
            let Some((key, value)) = bare(&line).and_then(|text| text.split_once('=')) else {
                continue;
            };
            if ["wpa_passphrase", "sae_password"].contains(&key.trim()) {
                let value = value.split('|').next().unwrap_or_default().to_lowercase();
                found.add(g, PUBLISHED.contains(&value.trim()), &line.place);
            }
        }
    }
}

/// Notes networks of wpa_supplicant that sign in at any server (wpa_supplicant.conf, ca_cert).
fn note_supplicant(g: &mut Gather<'_>, found: &mut Lines) {
    for path in files(g, "wifi_sign_in", SUPPLICANT, ".conf") {
        let mut network: Option<Settings> = None;
        for line in read(g, "wifi_sign_in", &path) {
            let Some(text) = bare(&line) else { continue };
            if text.replace(' ', "").starts_with("network={") {
                network = Some(Settings::new());
            } else if text.starts_with('}') {
                // Cables have the key management IEEE8021X.
                let wireless = |own: &Settings| {
                    let keys = own.get("key_mgmt");
                    keys.is_none_or(|(value, _)| value.contains("eap"))
                };
                if let Some(own) = network.take().filter(wireless) {
                    note_sign_in(g, &own, "eap", &["ca_cert", "ca_path"], found);
                }
            } else if let (Some(own), Some((key, value))) = (&mut network, text.split_once('=')) {
                let value = value.trim().to_ascii_lowercase();
                own.insert(key.trim().to_owned(), (value, line.place.clone()));
            }
        }
    }
}

fn note_profiles(g: &mut Gather<'_>, found: &mut Lines) {
    for path in files(g, "wifi_sign_in", PROFILES, ".nmconnection") {
        let (mut inside, mut wireless, mut own) = (false, false, Settings::new());
        for line in read(g, "wifi_sign_in", &path) {
            let Some(text) = bare(&line) else { continue };
            if text.starts_with('[') {
                inside = text == "[802-1x]";
                wireless |= ["[wifi]", "[802-11-wireless]"].contains(&text);
            } else if let (true, Some((key, value))) = (inside, text.split_once('=')) {
                let value = value.trim().to_ascii_lowercase();
                own.insert(key.trim().to_owned(), (value, line.place.clone()));
            }
        }
        own.retain(|key, (value, _)| key != "system-ca-certs" || value == "true" || value == "1");
        let checks = ["ca-cert", "ca-path", "system-ca-certs"];
        if wireless {
            note_sign_in(g, &own, "eap", &checks, found);
        }
    }
}

fn note_sign_in(
    g: &mut Gather<'_>,
    own: &Settings,
    method: &str,
    checks: &[&str],
    found: &mut Lines,
) {
    let Some((methods, place)) = own.get(method) else {
        return;
    };
    let mut methods = methods.split([' ', ';', '"']);
    if !methods.any(|one| METHODS.contains(&one)) {
        return;
    }
    let checked = checks.iter().any(|key| {
        own.get(*key)
            .is_some_and(|(value, _)| !value.trim_matches('"').is_empty())
    });
    found.add(g, !checked, place);
}

/// A section of a file of UCI, such as `config wifi-iface 'guest'`, with its last options.
struct Section {
    kind: String,
    name: String,
    options: Settings,
    place: FactPlace,
}

/// Reads a file of OpenWrt's UCI. Of an option that stands twice, the last one applies.
fn read_uci(g: &mut Gather<'_>, key: &str, path: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for line in read(g, key, path) {
        let words = words(&line);
        let (first, second) = (words.first(), words.get(1));
        match (first.map(String::as_str), second, sections.last_mut()) {
            (Some("config"), Some(kind), _) => sections.push(Section {
                kind: kind.clone(),
                name: words.get(2).cloned().unwrap_or_default(),
                options: Settings::new(),
                place: line.place,
            }),
            (Some("option" | "list"), Some(name), Some(section)) => {
                let value = words.get(2..).unwrap_or_default().join(" ");
                section.options.insert(name.clone(), (value, line.place));
            }
            _ => {}
        }
    }
    sections
}

fn value<'a>(section: &'a Section, name: &str) -> Option<&'a str> {
    section.options.get(name).map(|(value, _)| value.as_str())
}

/// Notes the protection of OpenWrt's own networks (OpenWrt, Wi-Fi configuration: WPA modes).
fn note_wireless(g: &mut Gather<'_>) {
    let all = read_uci(g, "uci_wifi", WIRELESS);
    let is_off = |section: &Section| value(section, "disabled") == Some("1");
    let dead: Vec<&str> = all
        .iter()
        .filter(|section| section.kind == "wifi-device" && is_off(section))
        .map(|section| section.name.as_str())
        .collect();
    let mut weak = Lines::of("uci_wifi", "weak");
    let mut open = Lines::of("uci_wifi_open", "open");
    for section in all.iter().filter(|section| section.kind == "wifi-iface") {
        let radio_off = value(section, "device").is_some_and(|device| dead.contains(&device));
        if value(section, "mode") != Some("ap") || is_off(section) || radio_off {
            continue;
        }
        let encryption = section.options.get("encryption");
        let (mode, place) = match encryption {
            Some((mode, place)) => (mode.as_str(), place),
            None => ("none", &section.place),
        };
        let mut parts = mode.split('+');
        let kind = parts.next().unwrap_or_default();
        let first_wpa = ["psk", "wpa", "psk-mixed", "wpa-mixed", "wpa1"].contains(&kind);
        let broken = kind.starts_with("wep") || parts.any(|cipher| cipher == "tkip");
        weak.add(g, first_wpa || broken, place);
        open.add(g, kind == "none" || kind.is_empty(), place);
    }
}

/// Notes whether the router takes connections of its wide-area network.
fn note_firewall(g: &mut Gather<'_>) {
    let all = read_uci(g, "uci_zone", FIREWALL);
    let default = all
        .iter()
        .find(|section| section.kind == "defaults")
        .and_then(|section| value(section, "input"))
        .unwrap_or("reject");
    let mut found = Lines::of("uci_zone", "open");
    for zone in all.iter().filter(|section| section.kind == "zone") {
        if value(zone, "name") != Some("wan") {
            continue;
        }
        let (input, place) = match zone.options.get("input") {
            Some((input, place)) => (input.as_str(), place),
            None => (default, &zone.place),
        };
        found.add(g, input == "accept", place);
    }
}

#[cfg(test)]
mod tests {
    use super::super::holds;
    use super::*;

    #[test]
    fn networks_and_zones() {
        let supplicant = "/etc/wpa_supplicant/wpa_supplicant.conf";
        let profile = "/etc/NetworkManager/system-connections/a.nmconnection";
        let network = "config wifi-iface 'a'\n option device 'radio0'\n option mode 'ap'\n";
        let uci = |more: &str| format!("{network}{more}");
        let (mixed, twice) = (
            uci(" option encryption \"psk-mixed+tkip\"\n"),
            uci(" option encryption 'psk'\n option encryption 'psk2+ccmp'\n"),
        );
        let dead = format!(
            "config wifi-device 'radio0'\n option disabled '1'\n{network} option encryption 'wep'\n"
        );
        let zone = "config defaults\n option input 'ACCEPT'\nconfig zone\n option name 'wan'\n";
        let closed = format!("{zone} option input reject\n");
        for (path, text, expected) in [
            (
                supplicant,
                "network={\n key_mgmt=WPA-EAP\n eap=PEAP\n #ca_cert=\"/a\"\n}\n",
                "wifi_sign_in.1.unverified 3",
            ),
            (
                supplicant,
                "network={\n eap=TTLS\n ca_cert=\"hash://server/sha256/ab\"\n}\n",
                "",
            ),
            (
                supplicant,
                "network={\n eap=TTLS PEAP\n ca_cert=\"\"\n}\n",
                "wifi_sign_in.1.unverified 2",
            ),
            (supplicant, "network={\n eap=PWD\n}\n", ""),
            (
                supplicant,
                "network={\n key_mgmt=WPA-PSK\n psk=\"x\"\n}\n",
                "",
            ),
            (
                supplicant,
                "network={\n key_mgmt=IEEE8021X\n eap=PEAP\n}\n",
                "",
            ),
            (supplicant, "network={\n eap=TLS\n}\n", ""),
            (
                profile,
                "[802-1x]\neap=peap;\nsystem-ca-certs=false\n[wifi]\nssid=a\n",
                "wifi_sign_in.1.unverified 2",
            ),
            (
                profile,
                "[802-1x]\neap=peap;\nsystem-ca-certs=true\n[wifi]\nssid=a\n",
                "",
            ),
            (profile, "[802-1x]\neap=peap;\n[ethernet]\n", ""),
            (profile, "[wifi]\nssid=a\n[802-1x]\neap=tls;\n", ""),
            (WIRELESS, &mixed, "uci_wifi.1.weak 4"),
            (WIRELESS, &twice, ""),
            (WIRELESS, network, "uci_wifi_open.1.open 1"),
            (WIRELESS, &dead, ""),
            (FIREWALL, zone, "uci_zone.1.open 3"),
            (FIREWALL, &closed, ""),
        ] {
            assert_eq!(holds(&[(path, text)]).join(" "), expected, "{text}");
        }
    }
}
