use super::*;
use crate::read;
use std::fmt::Write as _;

fn told(files: &[(&str, &str)], own: &[&str]) -> String {
    let readings: Vec<Reading> = files
        .iter()
        .map(|(_, text)| read(text.as_bytes()).unwrap())
        .collect();
    let named: Vec<WifiFile<'_>> = files
        .iter()
        .zip(&readings)
        .map(|((path, _), reading)| WifiFile { path, reading })
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
        &[WifiFile {
            path: "x",
            reading: &reading,
        }],
        &[],
    );
    let subjects = facts.subjects();
    let of = |name: &str| &subjects[&Subject::new(["wifi.network", name])]["open_air"].value;
    assert_eq!(of("Home"), &FactValue::Known(1.into()));
    assert_eq!(of("Home.open_air"), &FactValue::Known(0.into()));
    // The network without a name has no known owner.
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
            &[WifiFile {
                path,
                reading: &reading,
            }],
            &[],
        );
        let home = &facts.subjects()[&Subject::new(["wifi.network", "Home"])];
        home["off_plan"].value == FactValue::Known(0.into())
    };
    assert!(off(&[1, 6, 11]) && off(&[1, 5, 9, 13]));
    assert!(!off(&[1, 5, 11]) && !off(&[3]) && !off(&[6, 13]));
}

#[test]
fn what_was_not_read_is_unknown() {
    let text = told(
        &[("scan.txt", "BSS zz\nBSS 00:00:00:00:00:00\n\tfreq: x\n")],
        &[],
    );
    // The second network has no name, so its owner is unknown.
    insta::assert_snapshot!(text, @"wifi.network.lines of scan.txt = unknown: line 1: an address behind `BSS` was expected  [scan.txt:1]");
}

#[test]
fn only_the_network_of_an_unread_line_is_unknown() {
    let good = scan(&[("78:8a:20:01:02:03", "Office", 2437, "Privacy")]);
    let others = [
        // A network in another band is omitted and is not an error.
        (
            "BSS 02:00:00:00:00:02(on wlan0)\n\tfreq: 60480\n\tSSID: ad\n",
            None,
        ),
        (
            "BSS 02:00:00:00:00:02(on wlan0)\n\tfreq: 902.5\n\tSSID: ah\n",
            None,
        ),
        (
            "BSS 02:00:00:00:00:02(on wlan0)\n\tfreq: 69120.0\n\tSSID: ad\n",
            None,
        ),
        (
            "BSS 02:00:00:00:00:02(on wlan0)\n\tfreq: 5002\n\tSSID: j\n",
            None,
        ),
        (
            "BSS 02:00:00:00:00:02(on wlan0)\n\tfreq: 4940\n\tSSID: j\n",
            None,
        ),
        (
            "BSS 02:00:00:00:00:02(on wlan0)\n\tfreq: x\n\tSSID: bad\n",
            Some("wifi.network.bad"),
        ),
        (
            "BSS 02:00:00:00:00:02(on wlan0)\n\tSSID: bad\n\tSupported rates: y*\n",
            Some("wifi.network.bad"),
        ),
        ("BSS zz\n\tSSID: bad\n", Some("wifi.network.lines of x")),
    ];
    for (other, unknown) in others {
        let text = format!("{other}{good}");
        let reading = read(text.as_bytes()).unwrap();
        let path = "x";
        let found = facts(
            &[WifiFile {
                path,
                reading: &reading,
            }],
            &[],
        );
        let unread = found
            .map
            .iter()
            .filter(|(_, fact)| matches!(fact.value, FactValue::Unknown(_)));
        let unread: Vec<&str> = unread.map(|(key, _)| key.as_str()).collect();
        assert_eq!(unread, Vec::from_iter(unknown), "{other}");
        assert_eq!(
            found.get("wifi.network.Office.off_plan"),
            Some(&0.into()),
            "{other}"
        );
        assert_eq!(
            reading.other_bands,
            usize::from(unknown.is_none()),
            "{other}"
        );
    }
}

#[test]
fn masked_addresses_in_lists_of_other_programs_are_networks_as_well() {
    let wigle = "WigleWifi-1.4,appRelease=2.53,model=x\n\
                 MAC,SSID,AuthMode,FirstSeen,Channel,RSSI,CurrentLatitude,CurrentLongitude,AltitudeMeters,AccuracyMeters,Type\n\
                 78:8a:20:xx:xx:xx,Office,[WEP][ESS],2026-01-01 00:00:00,6,-60,0,0,0,0,WIFI\n\
                 78:8a:20:xx:xx:xx,Office,[WEP][ESS],2026-01-01 00:00:00,11,-61,0,0,0,0,WIFI\n";
    let kismet = "Network;NetType;ESSID;BSSID;Info;Channel;Cloaked;Encryption;\n\
                  1;infrastructure;Office;78:8A:20:**:**:**;;6;No;WEP;\n\
                  2;infrastructure;Office;78:8A:20:**:**:**;;11;No;WEP;\n";
    let unifi = r#"{"data":[{"bssid":"78:8a:20:xx:xx:xx","essid":"Office","channel":6,"radio":"ng","security":"wep"},
                   {"bssid":"78:8a:20:xx:xx:xx","essid":"Office","channel":11,"radio":"ng","security":"wep"}]}"#;
    for text in [wigle, kismet, unifi] {
        let reading = crate::read(text.as_bytes()).unwrap();
        assert_eq!(reading.heard.len(), 2, "{text}");
        let text = told(&[("x", text)], &[]);
        assert!(text.contains("Office.devices = unknown"), "{text}");
    }
}

#[test]
fn masked_addresses_are_read_and_tell_no_devices_apart() {
    for address in [
        "78:8a:20:xx:xx:xx",
        "XX:XX:XX:XX:XX:XX",
        "78:8a:20:**:**:**",
        "aa-bb-cc-??-??-??",
        "__:__:__:__:__:__",
        "<redacted>",
    ] {
        let one = scan(&[(address, "Office", 2437, "Privacy")]);
        let text = told(&[("x", &one)], &[]);
        assert!(
            text.contains("wifi.network.Office.devices = 1"),
            "{address}: {text}"
        );
        let two = scan(&[
            (address, "Office", 2437, "Privacy"),
            (address, "Office", 2462, "Privacy"),
        ]);
        let text = told(&[("x", &two)], &[]);
        assert!(
            text.contains("Office.devices = unknown"),
            "{address}: {text}"
        );
        assert!(
            !text.contains("Office.sharing") && text.contains("Office.wep = 0"),
            "{address}: {text}"
        );
    }
}
