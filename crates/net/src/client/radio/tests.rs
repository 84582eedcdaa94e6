//! Uses recorded output of `iw` from a machine with Wi-Fi. The end-to-end test in
//! `crates/assay/tests/net_wifi.rs` runs programs instead.

use super::*;
use assay_host::Recorded;

const SERVER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 168, 1, 5));
const DEVICES: &str = "phy#0\n\tInterface wlan0\n\t\tifindex 3\n\t\taddr 02:00:00:00:00:00\n\t\ttype managed\n\t\tchannel 36 (5180 MHz), width: 80 MHz, center1: 5210 MHz\n";
const ROUTE: &str = "192.168.1.5 dev wlan0 src 192.168.1.7 uid 0 \\    cache \n";

fn link(address: &str, mhz: u32, signal: i32) -> String {
    format!(
        "Connected to {address} (on wlan0)\n\tSSID: Workshop\n\tfreq: {mhz}\n\tsignal: {signal} dBm\n\trx bitrate: 866.7 MBit/s VHT-MCS 9\n\ttx bitrate: 6.0 MBit/s\n"
    )
}

fn machine(link: &str) -> Recorded {
    Recorded::new()
        .command(&["iw", "dev"], DEVICES)
        .command(&["ip", "-o", "route", "get", "192.168.1.5"], ROUTE)
        .command(&["iw", "dev", "wlan0", "link"], link)
        .command(
            &["iw", "dev", "wlan0", "scan", "dump"],
            include_str!("../../../../wifi/fixtures/iw-scan.txt"),
        )
}

#[test]
fn one_access_point_and_then_another() {
    let first = machine(&link("00:1a:2b:10:20:40", 5180, -61));
    let second = machine(&link("00:1a:2b:10:20:30", 2412, -84));
    let gone = machine("Not connected.\n");
    let mut radio = Radio::find(&first, SERVER).unwrap();
    let mut samples = vec![radio.look(0).unwrap()];
    radio.host = &gone;
    samples.push(radio.look(1_000_000).unwrap());
    radio.host = &second;
    samples.push(radio.look(2_000_000).unwrap());
    let seen: Vec<_> = samples
        .iter()
        .map(|sample| {
            let channel = sample.channel.map(|channel| channel.number);
            (sample.point, channel, sample.signal, sample.down_bit_per_s)
        })
        .collect();
    let rate = Some(866_700_000);
    assert_eq!(
        seen,
        [
            (Some(0), Some(36), Some(-61), rate),
            (None, None, None, None),
            (Some(1), Some(1), Some(-84), rate)
        ]
    );
    // Stops after one sample, then lists the other access points of the network.
    let air = radio.watch(Instant::now(), &|| true);
    assert!(air.samples.is_empty());
    assert!(
        !air.heard.is_empty(),
        "the fixture has Workshop on other channels"
    );
    let text = serde_json::to_string(&air).unwrap();
    assert!(
        text.contains("00:1a:2b:xx:xx:xx") && !text.contains("10:20"),
        "{text}"
    );
    assert!(
        !text.contains("Workshop"),
        "names of networks stay on the device: {text}"
    );
}

#[test]
fn a_cable_has_no_radio() {
    let cable = |route: &str| {
        Recorded::new()
            .command(&["iw", "dev"], DEVICES)
            .command(&["ip", "-o", "route", "get", "192.168.1.5"], route)
    };
    let none = |host: &Recorded| Radio::find(host, SERVER).is_none();
    assert!(none(&Recorded::new()), "there is no iw");
    assert!(none(&Recorded::new().command(&["iw", "dev"], "phy#0\n")));
    assert!(none(&cable("192.168.1.5 dev eth0 src 192.168.1.7\n")));
    assert!(none(&cable("unreachable\n")) && none(&cable("dev")));
    // Without `ip`, the only interface is used.
    assert!(!none(&Recorded::new().command(&["iw", "dev"], DEVICES)));
    // An interface in access point mode is not a client.
    let point = DEVICES.replace("managed", "AP");
    assert!(none(&Recorded::new().command(&["iw", "dev"], &point)));
    // When `iw` fails, sampling ends.
    let mute = cable(ROUTE);
    let radio = Radio::find(&mute, SERVER).unwrap();
    assert_eq!(radio.watch(Instant::now(), &|| false), Air::default());
}
