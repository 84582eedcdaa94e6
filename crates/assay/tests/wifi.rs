//! Tests `assay check wifi`: files of every kind, output formats, exit statuses, and private text that is never
//! shown.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use common::{Home, Ran};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../wifi/fixtures")
        .join(name)
}

/// Runs it in the directory of the fixtures, so that they have short names.
fn wifi(home: &Home, args: &[&str]) -> Ran {
    for name in ["iw-scan.txt", "site.json", "kismet.csv", "wigle.csv"] {
        std::fs::copy(fixture(name), home.dir.path().join(name)).unwrap();
    }
    let args: Vec<&str> = ["check", "wifi"].iter().chain(args).copied().collect();
    let mut command = home.command(&args);
    command.current_dir(home.dir.path());
    common::ended(command)
}

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stdout))
}

fn rules(document: &Value) -> Vec<(&str, &str)> {
    let findings = document["findings"].as_array().unwrap();
    findings
        .iter()
        .map(|finding| {
            let rule = finding["rule"].as_str().unwrap();
            (rule, finding["subject"].as_str().unwrap())
        })
        .collect()
}

#[test]
fn what_users_see() {
    let home = Home::new();
    let scan = wifi(&home, &["iw-scan.txt", "--ssid", "Workshop"]);
    assert_eq!(scan.code, Some(1), "{}", scan.stderr);
    insta::assert_snapshot!("scan", scan.stdout);
    let site = wifi(&home, &["site.json"]);
    assert_eq!(site.code, Some(1), "{}", site.stderr);
    insta::assert_snapshot!("site", site.stdout);
    for ran in [&scan, &site] {
        for line in ran.stdout.lines() {
            assert!(
                line.chars().count() <= 80 || line.contains("--> "),
                "{line}"
            );
        }
    }
    let census = wifi(
        &home,
        &["kismet.csv", "wigle.csv", "--census", "--registry", "."],
    );
    assert_eq!(census.code, Some(3), "{}", census.stderr);
    std::fs::write(
        home.dir.path().join("oui.csv"),
        "Registry,Assignment,Organization Name,Organization Address\r\nMA-L,001CD7,Harman/Becker Automotive Systems GmbH,Karlsbad\r\n",
    )
    .unwrap();
    let census = wifi(
        &home,
        &["kismet.csv", "wigle.csv", "--census", "--registry", "."],
    );
    assert_eq!(census.code, Some(0), "{}", census.stderr);
    insta::assert_snapshot!("census", census.stdout);
}

#[test]
fn the_air_is_held_against_the_export() {
    let home = Home::new();
    let scan = std::fs::read_to_string(fixture("iw-scan.txt")).unwrap();
    let opened = scan.replace("Caf\\xc3\\xa9 Guest", "Office");
    std::fs::write(home.dir.path().join("opened.txt"), opened).unwrap();
    let ran = wifi(&home, &["site.json", "opened.txt", "--json"]);
    let document = json(&ran);
    let expected = ("wifi-open-though-configured", "wifi.network.Office");
    assert!(rules(&document).contains(&expected), "{}", ran.stdout);
    assert_eq!(document["worst"], "critical");
    let finding = &document["findings"][0];
    assert_eq!(finding["places"][0]["file"]["path"], "opened.txt");
    assert!(finding["places"][0]["file"]["line"].as_u64() > Some(90));
    // A file relative to the working directory has a relative URI.
    let sarif = json(&wifi(
        &home,
        &["site.json", "opened.txt", "--format", "sarif"],
    ));
    let location = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(location["artifactLocation"]["uri"], "opened.txt");
    // The same files give the same bytes.
    let again = wifi(&home, &["site.json", "opened.txt", "--json"]);
    assert_eq!(again.stdout, ran.stdout);
    // Networks of others in an export are not judged.
    assert!(
        !ran.stdout.contains("wifi.network.legacy"),
        "{}",
        ran.stdout
    );
    let accept = home.dir.path().join("own.toml");
    std::fs::write(
        &accept,
        "[[accept]]\nrule = \"wifi-open-though-configured\"\nreason = \"being mended\"\n",
    )
    .unwrap();
    let more = [
        "site.json",
        "opened.txt",
        "--accept",
        "own.toml",
        "--fail-on",
        "critical",
    ];
    assert_eq!(wifi(&home, &more).code, Some(0));
}

/// Every output format with every file: no full address, no password, no control character.
#[test]
fn nothing_that_must_not_be_shown_is_shown() {
    let home = Home::new();
    let hostile = "BSS 02:00:5e:aa:bb:cc(on wlan0)\n\tfreq: 2437\n\tcapability: ESS (0x0401)\n\tSSID: \\x1b[31m\\x0aRed\nBSS 02:00:5e:aa:bb:dd(on wlan0)\n\tfreq: 2437\n\tcapability: ESS Privacy (0x0401)\n\tSSID: \\x1b[31m\\x0aRed\n";
    std::fs::write(home.dir.path().join("hostile.txt"), hostile).unwrap();
    let one_line: String = std::fs::read_to_string(fixture("site.json"))
        .unwrap()
        .split_whitespace()
        .collect();
    std::fs::write(home.dir.path().join("line.json"), one_line).unwrap();
    let forms = [
        "text",
        "json",
        "sarif",
        "junit",
        "markdown",
        "html",
        "nagios",
        "prometheus",
    ];
    let files = [
        "hostile.txt",
        "iw-scan.txt",
        "line.json",
        "kismet.csv",
        "wigle.csv",
    ];
    for form in forms {
        let args: Vec<&str> = files.iter().copied().chain(["--format", form]).collect();
        check_output(&wifi(&home, &args), form);
        let one = ["hostile.txt", "--format", form];
        check_output(&wifi(&home, &one), form);
    }
    for form in ["text", "json", "markdown", "html"] {
        let more = ["--census", "--format", form];
        let args: Vec<&str> = files.iter().copied().chain(more).collect();
        let ran = wifi(&home, &args);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        check_output(&ran, form);
        // The name of a vehicle would identify it.
        assert!(!ran.stdout.contains("12345"), "{}", ran.stdout);
    }
    let refused = wifi(&home, &["wigle.csv", "--census", "--format", "sarif"]);
    assert_eq!(refused.code, Some(2));
}

fn check_output(ran: &Ran, form: &str) {
    assert!(matches!(ran.code, Some(0..=3)), "{form}: {:?}", ran.code);
    let all = format!("{}{}", ran.stdout, ran.stderr);
    for secret in [
        "not-for-reports",
        "aa:bb:cc",
        "AA:BB:CC",
        "10:20:30",
        "01:02:03",
    ] {
        assert!(!all.contains(secret), "{form}: {secret}: {all}");
    }
    let control = all
        .chars()
        .find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
    assert_eq!(control, None, "{form}");
}

#[test]
fn what_is_no_list_of_networks_is_told_with_its_line() {
    let home = Home::new();
    let write =
        |name: &str, bytes: &[u8]| std::fs::write(home.dir.path().join(name), bytes).unwrap();
    write("empty", b"\n\n");
    write("text", b"\n\nhello\n");
    write("cut.json", b"{\"data\": [\n{");
    write("other.json", b"{\"a\": 1}");
    write("backup.unf", &[0x9f, 0x00].repeat(512));
    write(
        "cut.txt",
        b"BSS 02:00:00:00:00:01(on wlan0)\n\tfreq: x\n\tSSID: Home\n",
    );
    for (file, told) in [
        ("empty", "empty"),
        ("text", "line 3"),
        ("cut.json", "line 2"),
        ("other.json", "stat/rogueap"),
        ("backup.unf", ".unf"),
        ("nowhere", "nowhere"),
    ] {
        let ran = wifi(&home, &[file]);
        assert_eq!(ran.code, Some(3), "{file}: {}", ran.stderr);
        assert!(ran.stderr.contains(told), "{file}: {}", ran.stderr);
    }
    // An unreadable line makes its network unknown for all rules.
    let ran = wifi(&home, &["cut.txt", "--json"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stdout);
    let document = json(&ran);
    assert_eq!(document["findings"][0]["certainty"], "unknown");
    insta::assert_snapshot!(document["findings"][0]["text"].as_str().unwrap(), @"wifi.network.Home: line 2: a frequency in MHz was expected (cut.txt:2)");
    assert_eq!(wifi(&home, &[]).code, Some(2));
    assert_eq!(wifi(&home, &["site.json", "--only", "zfs"]).code, Some(2));
    let only = wifi(&home, &["site.json", "--only", "wifi-hidden", "--json"]);
    assert_eq!(
        rules(&json(&only)),
        [("wifi-hidden", "wifi.network.Things")]
    );
    // These rules do not apply to a machine.
    let machine = home.assay(&["check", "--only", "wifi-hidden"]);
    assert_eq!(machine.code, Some(2));
    insta::assert_snapshot!(home.refusal(&machine), @"assay: --only wifi-hidden: this rule judges files about wireless networks. Use `assay check wifi FILE --only wifi-hidden`.");
    assert_eq!(
        home.assay(&["check", "--explain", "wifi-hidden"]).code,
        Some(0)
    );
}

#[test]
fn standard_input_is_a_file_too() {
    let home = Home::new();
    let mut command = home.command(&["check", "wifi", "-", "--json"]);
    command.stdin(std::fs::File::open(fixture("iw-scan.txt")).unwrap());
    let ran = common::ended(command);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stdout.contains("standard input"), "{}", ran.stdout);
}

/// Uses the registry of the package, if installed.
#[test]
fn makers_come_from_the_registry_of_the_package() {
    if !Path::new("/usr/share/ieee-data/oui.csv").exists() {
        return assay_testing::skipped("ieee-data", "no /usr/share/ieee-data/oui.csv");
    }
    let home = Home::new();
    let ran = wifi(&home, &["kismet.csv", "wigle.csv", "--census", "--json"]);
    let census = json(&ran);
    common::schemas::holds("check-wifi-census", &ran.stdout, &["/makes/0"]);
    assert_eq!(census["registry"], true, "{}", ran.stdout);
    let mercedes = &census["makes"][0];
    // Both lists contain the same vehicle.
    assert_eq!(
        (&mercedes["both"], &mercedes["at_most"]),
        (&1.into(), &1.into())
    );
}

/// More networks than anyone owns: refused, or judged by name, within bounded time.
#[test]
fn a_huge_list_ends() {
    let home = Home::new();
    let mut text = String::from(
        "WigleWifi-1.4,appRelease=2.53\nMAC,SSID,AuthMode,FirstSeen,Channel,RSSI,CurrentLatitude,CurrentLongitude,AltitudeMeters,AccuracyMeters,Type\n",
    );
    for number in 0..210_000u32 {
        let [_, a, b, c] = number.to_be_bytes();
        text.push_str(&format!(
            "00:11:22:{a:02x}:{b:02x}:{c:02x},n{number},[WPA2-PSK-CCMP][ESS],2026-01-01 10:00:00,6,-70,0,0,0,0,WIFI\n"
        ));
    }
    let less: Vec<&str> = text.lines().take(50_000).collect();
    std::fs::write(home.dir.path().join("town.csv"), less.join("\n")).unwrap();
    assert_eq!(wifi(&home, &["town.csv"]).code, Some(2));
    let named = wifi(&home, &["town.csv", "--ssid", "n7"]);
    assert_eq!(named.code, Some(0), "{}{}", named.stdout, named.stderr);
    assert_eq!(wifi(&home, &["town.csv", "--census"]).code, Some(0));
    std::fs::write(home.dir.path().join("huge.csv"), &text).unwrap();
    let ran = wifi(&home, &["huge.csv"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("200000"), "{}", ran.stderr);
}
