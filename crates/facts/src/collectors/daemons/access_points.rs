//! Collects the Wi-Fi networks of hostapd and their protection. One file may define several networks; each further
//! network begins with `bss=`.

use super::cleaned_words::HOSTAPD;
use super::lines::{Line, files, note, read};
use crate::gather::Gather;
use std::collections::BTreeMap;

const KEYS: [&str; 10] = [
    "wpa",
    "wpa_pairwise",
    "rsn_pairwise",
    "wpa_key_mgmt",
    "ieee80211w",
    "ieee8021x",
    "wps_state",
    "ap_pin",
    "config_methods",
    "wep_key0",
];

pub(super) fn collect(g: &mut Gather<'_>) {
    let all = files(g, "hostapd", HOSTAPD, &[".conf"]);
    note_files(g, "hostapd", all);
}

/// Notes the networks in configuration files of hostapd. The keys of the facts begin with `kind`.
pub(crate) fn note_files(g: &mut Gather<'_>, kind: &str, all: impl IntoIterator<Item = String>) {
    let mut number = 0;
    for path in all {
        let lines = read(g, kind, &path, &['#']);
        // Without a radio it is no configuration of an access point.
        if !lines.iter().any(|line| line.first() == "ssid") {
            continue;
        }
        let mut networks: Vec<Vec<Line>> = vec![Vec::new()];
        for line in lines {
            if line.first() == "bss" {
                networks.push(Vec::new());
            }
            if let Some(network) = networks.last_mut() {
                network.push(line);
            }
        }
        for network in networks {
            number += 1;
            note_network(g, (kind, &number.to_string()), &network);
        }
    }
}

fn note_network(g: &mut Gather<'_>, subject: (&str, &str), lines: &[Line]) {
    let said: BTreeMap<&str, &Line> = lines.iter().map(|line| (line.first(), line)).collect();
    let Some(network) = said.get("ssid").or(said.get("bss")) else {
        return;
    };
    let value = |key: &str| {
        said.get(key)
            .map(|line| line.rest().collect::<Vec<_>>().join(" "))
    };
    for key in KEYS {
        if let (Some(line), Some(value)) = (said.get(key), value(key)) {
            note(g, subject, key, value, &line.place);
        }
    }
    // Without `wpa` hostapd ignores wpa_key_mgmt, also for OWE.
    let encrypted = value("wpa").is_some_and(|wpa| wpa != "0") || said.contains_key("wep_key0");
    note(g, subject, "encrypted", encrypted, &network.place);
}
