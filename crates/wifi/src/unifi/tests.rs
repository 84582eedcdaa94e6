use super::*;

#[test]
fn networks_of_the_controller_are_read_without_their_passwords() {
    let text = r#"{"meta":{"rc":"ok"},"data":[
{"_id":"1","name":"SSID 1","enabled":true,"security":"wpapsk","wpa_mode":"wpa2","wpa_enc":"ccmp",
 "x_passphrase":"hunter22","x_iapp_key":"0123","minrate_ng_enabled":false,
 "hide_ssid":true,"fast_roaming_enabled":true,"bss_transition":false,"pmf_mode":"optional",
 "wpa3_support":true,"wpa3_transition":true},
{"name":"off","enabled":false,"security":"open"},
{"name":"eap","security":"wpaeap","wpa_mode":"auto","wpa_enc":"auto","radiusprofile_id":null},
{"name":"odd","security":"new"}
]}"#;
    let found = read(text.as_bytes()).unwrap();
    assert!(!format!("{found:?}").contains("hunter22"));
    let [first, eap, odd] = &found.configured[..] else {
        panic!("{found:?}")
    };
    let security = first.security.as_ref().unwrap();
    assert_eq!(security.name(), "WPA2/WPA3 PSK SAE");
    assert_eq!(
        (security.ft, security.pmf),
        (Some(true), Some(Pmf::Capable))
    );
    assert_eq!(
        (first.hidden, first.slowest, first.radius),
        (Some(true), Some(1000), None)
    );
    assert_eq!((first.lines.begin, first.lines.hidden), (2, 4));
    assert_eq!(eap.radius, Some(false));
    assert!(eap.security.as_ref().unwrap().tkip);
    assert_eq!((odd.security.as_ref(), found.unread.first[0].0), (None, 8));
}

#[test]
fn devices_neighbours_and_profiles_are_read_together() {
    let text = r#"{"device":[{"mac":"78:8a:20:01:02:03","name":"78:8a:20:01:02:03","type":"uap","adopted":true,
  "radio_table":[{"radio":"ng","channel":"auto","ht":"40"},{"radio":"na","channel":"52","ht":80}],
  "vap_table":[{"bssid":"7a:8a:20:01:02:04","essid":"eap","channel":3,"radio":"ng"}]},
  {"type":"usw","radio_table":[]}],
 "wlanconf":[{"name":"eap","security":"wpaeap","radiusprofile_id":"9"}],
 "radiusprofile":[{"_id":"8","auth_servers":[{"ip":"192.0.2.1","x_secret":"s3cret"}]}],
 "rogueap":[{"bssid":"00:1c:d7:01:02:03","essid":"MB WLAN 12345","channel":6,"security":"wpa2 (aes)","oui":"Harman/B","signal":-80},
  {"bssid":"?","essid":"x"}]}"#;
    let found = read(text.as_bytes()).unwrap();
    assert!(!format!("{found:?}").contains("s3cret"));
    assert_eq!(found.access_points, Some(1));
    let radios: Vec<_> = found
        .radios
        .iter()
        .map(|r| {
            (
                r.access_point.as_str(),
                r.channel.map(|c| c.number),
                r.width,
            )
        })
        .collect();
    let name = "78:8a:20:xx:xx:xx";
    assert_eq!(radios, [(name, None, Some(40)), (name, Some(52), Some(80))]);
    assert_eq!(found.configured[0].radius, Some(false));
    assert_eq!(found.heard[0].width, Some(40));
    assert_eq!(found.heard[1].vendor.as_deref(), Some("Harman/B"));
    assert_eq!(found.unread.first[0].0, 8);
}

#[test]
fn what_is_nested_too_deeply_is_told() {
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let text = format!("[\n{{\"essid\":\"a\",\"bssid\":\"00:11:22:33:44:55\",\"x\":{deep}}}]");
    let found = read(text.as_bytes()).unwrap();
    assert_eq!((found.heard.len(), found.unread.first[0].0), (0, 2));
}

#[test]
fn other_json_and_refusals_are_told() {
    let refused = read(br#"{"meta":{"rc":"error","msg":"api.err.LoginRequired"},"data":[]}"#);
    assert_eq!(refused.unwrap_err(), ReadError::Refused { line: 1 });
    assert_eq!(read(b"{\"a\":[{}]}").unwrap_err(), ReadError::OtherJson);
    assert!(matches!(
        read(b"{\n\"a\":").unwrap_err(),
        ReadError::Json { line: 2, .. }
    ));
    let empty = read(br#"{"meta":{"rc":"ok"},"data":[]}"#).unwrap();
    assert!(empty.configured.is_empty());
}
