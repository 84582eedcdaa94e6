use super::*;
use crate::reading::Format;

fn bss(address: &str, name: &str, vendor: &str) -> Bss {
    Bss {
        address: Address::read(address),
        ssid: Ssid::new(name.as_bytes()),
        vendor: (!vendor.is_empty()).then(|| vendor.to_owned()),
        ..Bss::default()
    }
}

fn count(heard: Vec<Bss>) -> Census {
    let mut reading = Reading::new(Format::Unifi);
    reading.heard = heard;
    census(&[&reading], &Registry::default())
}

fn of<'a>(census: &'a Census, make: &str) -> &'a MakeCount {
    census
        .makes
        .iter()
        .find(|counted| counted.make == make)
        .unwrap()
}

#[test]
fn a_vehicle_with_several_addresses_is_one_at_least() {
    let found = count(vec![
        bss("00:1c:d7:00:00:01", "MB WLAN 12345", "Harman/B"),
        // A second radio of the same device.
        bss("00:1c:d7:00:00:02", "MB WLAN 12345", "Harman/B"),
        // The first address again.
        bss("00:1c:d7:00:00:01", "MB WLAN 12345", "Harman/B"),
        // A local address does not identify a vendor and may belong to any make.
        bss("02:11:22:33:44:55", "MB Hotspot 123456", ""),
        bss("06:99:22:33:44:66", "MB Hotspot 123456", ""),
    ]);
    let mercedes = of(&found, "Mercedes-Benz");
    assert_eq!((mercedes.both, mercedes.name_only), (2, 2));
    assert_eq!((mercedes.at_least, mercedes.at_most), (2, 4));
    assert_eq!((found.networks, found.local_addresses), (5, 2));
}

#[test]
fn a_name_that_others_use_counts_with_its_maker_only() {
    let found = count(vec![
        bss("00:00:01:00:00:01", "WiFi Hotspot 1234", "MitsumiE"),
        bss("00:00:02:00:00:01", "WiFi Hotspot 5678", ""),
        bss("00:00:03:00:00:01", "WiFi Hotspot 9999", "Espressi"),
        bss("00:00:04:00:00:01", "MyVolvo1234", "Espressi"),
        bss("00:00:05:00:00:01", "Our car", "Harman/B"),
        bss("00:00:06:00:00:01", "MyVolvo is old", "Actia"),
    ]);
    let opel = of(&found, "Opel");
    assert_eq!((opel.both, opel.name_only, opel.other_maker), (1, 1, 1));
    assert_eq!((opel.at_least, opel.at_most), (1, 3));
    let volvo = of(&found, "Volvo");
    assert_eq!((volvo.at_least, volvo.at_most), (0, 1));
    assert_eq!(found.unnamed, 2);
}

#[test]
fn nothing_of_an_address_is_in_the_census() {
    let found = count(vec![bss("00:1c:d7:0a:0b:0c", "MB WLAN 12345", "Harman/B")]);
    let text = serde_json::to_string(&found).unwrap() + &format!("{found:?}");
    assert!(!text.contains("0a:0b") && !text.contains("12345"), "{text}");
}
