use super::*;

/// A file that hostapd 2.10 accepts without warnings.
const FILE: &[u8] = include_bytes!("../../fixtures/hostapd.conf");

#[test]
fn networks_of_a_radio_are_read_without_their_passwords() {
    let found = crate::read(FILE).unwrap();
    assert_eq!((found.format, found.unread.count), (Format::Hostapd, 0));
    for secret in ["hunter22", "correct horse"] {
        assert!(!format!("{found:?}").contains(secret));
    }
    let [home, office, cafe] = &found.configured[..] else {
        panic!("{found:?}")
    };
    // Text after a value belongs to the value.
    assert_eq!(home.ssid, Ssid::new(b"Home # 1"));
    let security = home.security.as_ref().unwrap();
    assert_eq!(security.name(), "WPA1/WPA2 PSK");
    assert_eq!(
        (security.tkip, security.ft, security.pmf),
        (true, Some(true), Some(Pmf::Off))
    );
    assert_eq!((home.hidden, home.slowest), (Some(true), Some(1000)));
    assert_eq!((home.neighbours, home.transition), (Some(true), Some(true)));
    assert_eq!((home.lines.begin, home.lines.security), (10, 11));
    let security = office.security.as_ref().unwrap();
    assert_eq!(
        (security.name().as_str(), security.tkip),
        ("WPA2 802.1X", false)
    );
    assert_eq!(
        (security.pmf, office.radius),
        (Some(Pmf::Required), Some(true))
    );
    assert_eq!((home.radius, office.neighbours), (None, Some(false)));
    assert!(cafe.security.as_ref().unwrap().is_open());
    assert_eq!(cafe.ssid, Ssid::new("café".as_bytes()));
    let [radio] = &found.radios[..] else {
        panic!("{found:?}")
    };
    assert_eq!(radio.access_point, "wlan0");
    assert_eq!((radio.band, radio.width), (Band::Two, Some(40)));
    assert_eq!(radio.channel, Channel::numbered(3));
}

#[test]
fn defaults_are_those_of_the_program() {
    let with = |more: &str| {
        let found = read(format!("ssid=a\n{more}").as_bytes()).unwrap();
        let (radio, wlan) = (found.radios, found.configured[0].clone());
        (wlan.security.unwrap(), wlan.radius, wlan.slowest, radio)
    };
    // Defaults: TKIP without a cipher, PSK without key management.
    let (security, ..) = with("wpa=2\n");
    assert!(security.tkip && security.keys.contains(&Key::Psk));
    let (security, ..) = with("wpa=2\nwpa_key_mgmt=SAE\nrsn_pairwise=CCMP\n");
    assert_eq!(
        (security.name().as_str(), security.pmf),
        ("WPA3 SAE", Some(Pmf::Off))
    );
    let (_, radius, ..) = with("wpa=2\nwpa_key_mgmt=WPA-EAP\n");
    assert_eq!(radius, Some(false));
    let (security, ..) = with("wep_key0=0123456789\n");
    assert!(security.wep && !security.is_open());
    let (_, _, slowest, radio) = with("hw_mode=a\nchannel=36\nvht_oper_chwidth=1\n");
    assert_eq!(
        (slowest, radio[0].band, radio[0].width),
        (None, Band::Five, Some(80))
    );
    let (_, _, slowest, radio) =
        with("hw_mode=g\nchannel=acs_survey\nsupported_rates=60 120 240\n");
    assert_eq!((slowest, radio[0].channel), (Some(6000), None));
    let (_, _, slowest, _) = with("hw_mode=g\nbasic_rates=60 120\nsupported_rates=10 60 120\n");
    assert_eq!(slowest, Some(6000));
    let (_, _, _, radio) = with("hw_mode=a\nop_class=134\nchannel=37\nhe_oper_chwidth=2\n");
    assert_eq!((radio[0].band, radio[0].width), (Band::Six, Some(160)));
}

#[test]
fn what_cannot_be_read_has_its_line() {
    let found = read(b"ssid=a\nchannel=six\nrubbish\nbss=wlan0_0\nwpa=2\nbss=wlan0_1\nssid2=caf\n")
        .unwrap();
    let lines: Vec<usize> = found.unread.first.iter().map(|(line, _)| *line).collect();
    assert_eq!((lines, found.unread.count), (vec![2, 3, 4], 5));
    assert_eq!(found.configured.len(), 1);
}

#[test]
fn other_programs_are_not_taken_for_it() {
    for other in [
        "network={\n\tssid=\"x\"\n}\n",
        "ctrl_interface=DIR=/run/wpa\nnetwork={\n\tssid=\"x\"\n}\n",
        "[Settings]\ninterface=wlan0\n",
        "# nothing\n",
        "a=b\nc=d\n",
    ] {
        assert!(!recognise(other.as_bytes()), "{other}");
    }
    assert!(recognise(b"# of ours\n\ndriver=nl80211\ninterface=wlan0\n"));
}
