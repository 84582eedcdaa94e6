use super::*;
use crate::security::Pmf;

/// Output written according to the source of iw 5.19 (see fixtures/README.md).
const MADE: &str = include_str!("../../../fixtures/iw-scan.txt");

fn networks(text: &str) -> Vec<Bss> {
    read(text.as_bytes()).unwrap().heard
}

#[test]
fn a_whole_scan_is_read() {
    let found = read(MADE.as_bytes()).unwrap();
    assert_eq!(found.unread, Default::default());
    let told: Vec<String> = found
        .heard
        .iter()
        .map(|bss| {
            format!(
                "{} | {} | {} {:?} | {:?} dBm | {} ft {:?} pmf {:?} | k {:?} v {:?} | basic {:?} | lines {} {}",
                bss.address.unwrap(),
                bss.ssid.shown(),
                bss.channel.map_or_else(String::new, |channel| channel.to_string()),
                bss.width,
                bss.signal,
                bss.security.as_ref().map_or("?".to_owned(), Security::name),
                bss.security.as_ref().and_then(|known| known.ft),
                bss.security.as_ref().and_then(|known| known.pmf),
                bss.neighbours,
                bss.transition,
                bss.basic_rates,
                bss.lines.begin,
                bss.lines.security,
            )
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn suites_are_taken_apart() {
    let text = "BSS 02:00:00:00:00:01(on wlan1) -- associated\n\tfreq: 5745.0\n\tcapability: ESS Privacy (0x0431)\n\tsignal: -65.00 dBm\n\tSSID: a: b\n\tRSN:\t * Version: 1\n\t\t * Pairwise ciphers: CCMP TKIP\n\t\t * Authentication suites: PSK FT/PSK PSK/SHA-256 SAE FT/SAE IEEE 802.1X/SHA-256\n\t\t * Capabilities: 16-PTKSA-RC MFP-capable (0x008c)\n\tVHT operation:\n\t\t * channel width: 1 (80 MHz)\n";
    let bss = &networks(text)[0];
    let security = bss.security.as_ref().unwrap();
    assert_eq!(security.name(), "WPA2/WPA3 PSK SAE 802.1X");
    assert_eq!(
        (security.ft, security.pmf, security.tkip),
        (Some(true), Some(Pmf::Capable), true)
    );
    assert_eq!((bss.width, bss.ssid.shown().as_str()), (Some(80), "a: b"));
    assert_eq!((bss.lines.security, bss.lines.width), (6, 11));
}

#[test]
fn old_and_pasted_output_is_read() {
    let text = "wlan0: scan started\nBSS 02:00:00:00:00:01 (on wlan0)\n    freq: 2437\n    capability: ESS (0x0421)\n    SSID: \n    Supported rates: 1.0* 2.0* 5.5 11.0\n    Extended capabilities: Extended Channel Switching, BSS Transition, 6\n    HT operation:\n         * secondary channel offset: above\nBSS 02:00:00:00:00:02(on wlan0)\n    capability: ESS Privacy\n    SSID: \\x00\\x00\n    BSS Load:\n         * station count: 7\n";
    let found = read(text.as_bytes()).unwrap();
    assert_eq!((found.heard.len(), found.unread.count), (2, 1));
    let [open, wep] = &found.heard[..] else {
        panic!()
    };
    assert!(open.security.as_ref().unwrap().is_open() && open.hidden);
    assert_eq!(
        (open.transition, open.neighbours, open.width),
        (Some(true), Some(false), Some(40))
    );
    assert_eq!(open.basic_rates, [10, 20]);
    assert!(wep.security.as_ref().unwrap().wep && wep.hidden);
}

#[test]
fn what_cannot_be_read_is_counted_by_line() {
    let text = "BSS 02:00:00:00:00:01(on wlan0)\n\tfreq: x\n\tSupported rates: y*\nBSS zz\n\tSSID: lost\nBSS 02:00:00:00:00:03(on wlan0)\n\tSSID: \\xff\n";
    let found = read(text.as_bytes()).unwrap();
    let lines: Vec<usize> = found.unread.first.iter().map(|(line, _)| *line).collect();
    assert_eq!((found.heard.len(), lines), (2, vec![2, 3, 4]));
    assert_eq!(found.heard[1].security, None);
    assert_eq!(found.heard[1].neighbours, None);
    assert_eq!(found.heard[1].ssid.shown(), "\\xff");
}
