use super::*;
use crate::read;
use std::fmt::Write as _;

fn told(files: &[(&str, &str)], own: &[&str]) -> String {
    let readings: Vec<Reading> = files
        .iter()
        .map(|(_, text)| read(text.as_bytes()).unwrap())
        .collect();
    let named: Vec<Named<'_>> = files
        .iter()
        .zip(&readings)
        .map(|((path, _), reading)| Named { path, reading })
        .collect();
    let own: Vec<Ssid> = own.iter().map(|name| Ssid::new(name.as_bytes())).collect();
    let mut out = String::new();
    for (key, fact) in &facts(&named, &own).map {
        let value = match &fact.value {
            FactValue::Known(value) => value.to_string(),
            FactValue::Unknown(why) => format!("unknown: {why}"),
        };
        let _ = writeln!(out, "{key} = {value}  [{}]", fact.place);
    }
    out
}

fn scan(networks: &[(&str, &str, u32, &str)]) -> String {
    let mut out = String::new();
    for (address, name, mhz, more) in networks {
        let _ = writeln!(
            out,
            "BSS {address}(on wlan0)\n\tfreq: {mhz}\n\tcapability: ESS {more}\n\tSSID: {name}"
        );
        if more.contains("Privacy") {
            out.push_str("\tRSN:\t * Version: 1\n\t\t * Pairwise ciphers: CCMP\n\t\t * Authentication suites: PSK\n\t\t * Capabilities: (0x0000)\n");
        }
    }
    out
}

#[test]
fn the_air_and_the_export_are_brought_together() {
    let scan = scan(&[
        ("78:8a:20:01:02:03", "Office", 2437, "Privacy"),
        ("02:99:88:01:02:03", "Office", 2437, ""),
        ("00:99:77:01:02:03", "0ffice ", 2422, ""),
    ]);
    let export = r#"{"wlanconf":[{"name":"Office","security":"wpaeap","radiusprofile_id":""}]}"#;
    insta::assert_snapshot!(told(&[("scan.txt", &scan), ("site.json", export)], &[]));
}

#[test]
fn a_name_cannot_take_the_facts_of_another_network() {
    let scan = scan(&[
        ("78:8a:20:01:02:03", "Home", 2437, ""),
        ("78:8a:21:01:02:03", "Home.open_air", 2437, "Privacy"),
        ("78:8a:22:01:02:03", "", 2437, "Privacy"),
        ("78:8a:23:01:02:03", "(no name)", 2437, "Privacy"),
    ]);
    let reading = read(scan.as_bytes()).unwrap();
    let facts = facts(
        &[Named {
            path: "x",
            reading: &reading,
        }],
        &[],
    );
    let subjects = facts.subjects();
    let of = |name: &str| &subjects[&Subject::new(["wifi.network", name])]["open_air"].value;
    assert_eq!(of("Home"), &FactValue::Known(1.into()));
    assert_eq!(of("Home.open_air"), &FactValue::Known(0.into()));
    // Whose the nameless one is, nobody can tell.
    assert_eq!(subjects.len(), 3, "{:?}", subjects.keys());
}

#[test]
fn the_plan_of_four_channels_is_one_too() {
    let off = |channels: &[u32]| {
        let networks: Vec<(String, u32)> = channels
            .iter()
            .map(|channel| (format!("00:00:{channel:02x}:00:00:00"), 2407 + 5 * channel))
            .collect();
        let networks: Vec<(&str, &str, u32, &str)> = networks
            .iter()
            .map(|(address, mhz)| (address.as_str(), "Home", *mhz, "Privacy"))
            .collect();
        let reading = read(scan(&networks).as_bytes()).unwrap();
        let path = "x";
        let facts = facts(
            &[Named {
                path,
                reading: &reading,
            }],
            &[],
        );
        let home = &facts.subjects()[&Subject::new(["wifi.network", "Home"])];
        home["off_plan"].value == FactValue::Known(0.into())
    };
    assert!(off(&[1, 6, 11]) && off(&[1, 5, 9, 13]));
    assert!(!off(&[1, 5, 11]) && !off(&[3]));
}

#[test]
fn what_was_not_read_is_unknown() {
    let text = told(
        &[("scan.txt", "BSS zz\nBSS 00:00:00:00:00:00\n\tfreq: x\n")],
        &[],
    );
    insta::assert_snapshot!(text, @"wifi = unknown: scan.txt: line 1: an address behind `BSS` was expected; line 3: a frequency in MHz was expected  [scan.txt:1]");
}
