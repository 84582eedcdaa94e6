//! Parses JSON of a UniFi controller. Accepts the answers of `rest/wlanconf`, `stat/device`, `stat/rogueap` and
//! `rest/radiusprofile`, alone or as lists in one object. The names and values of the fields come from the controller's
//! own definitions (`ace.jar`). Reads only the fields below; passwords are never stored.

use crate::address::read_or_masked;
use crate::channel::{Band, Channel};
use crate::json::{self, Object};
use crate::reading::{Bss, Format, Lines, MOST, Radio, ReadError, Reading, Wlan};
use crate::security::{Key, Pmf, Security};
use crate::ssid::Ssid;
use assay_render::text::escape_line;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// Parses the answers of a controller.
///
/// # Errors
/// The text is not JSON, or does not come from a UniFi controller.
pub(crate) fn read(bytes: &[u8]) -> Result<Reading, ReadError> {
    let text = String::from_utf8_lossy(bytes);
    let mut reading = Reading::new(Format::Unifi);
    let mut known = false;
    for object in json::objects(&text)? {
        let has = |names: &[&str]| names.iter().all(|name| object.has(name));
        if has(&["meta"]) && refused(object.text) {
            return Err(ReadError::Refused { line: object.line });
        } else if has(&["meta", "data"]) {
            // An answer with an empty list is valid.
            known = true;
        } else if has(&["essid", "bssid"]) {
            heard(&object, &mut reading);
            known = true;
        } else if has(&["security", "name"]) {
            configured(&object, &mut reading);
            known = true;
        } else if has(&["radio_table"]) {
            device(&object, &mut reading);
            known = true;
        } else if has(&["auth_servers"]) || has(&["acct_servers"]) {
            profile(&object, &mut reading);
            known = true;
        }
        if reading.heard.len() + reading.configured.len() > MOST {
            return Err(ReadError::TooMany { line: object.line });
        }
    }
    if !known {
        return Err(ReadError::OtherJson);
    }
    settle_profiles(&mut reading);
    Ok(reading)
}

fn refused(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Answer {
        meta: Meta,
    }
    #[derive(Deserialize)]
    struct Meta {
        rc: String,
    }
    serde_json::from_str::<Answer>(text).is_ok_and(|answer| answer.meta.rc == "error")
}

/// Parses an object. Reports an object that is nested too deeply as unreadable.
fn value_of(object: &Object<'_>, reading: &mut Reading) -> Option<Value> {
    let value = serde_json::from_str(object.text);
    if value.is_err() {
        let expected = "an object with at most 127 others around a value";
        reading.unread.note(object.line, expected);
    }
    value.ok()
}

/// Parses a number, which may be written as text. Returns `None` for other values, such as `"auto"`.
fn number(value: Option<&Value>) -> Option<u64> {
    match value? {
        Value::String(text) => text.parse().ok(),
        value => value.as_u64(),
    }
}

fn text(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}

fn yes(value: Option<&Value>) -> Option<bool> {
    value.and_then(Value::as_bool)
}

/// Returns the band that the controller's name for a band means.
fn band(letters: &str) -> Option<Band> {
    match letters {
        "ng" | "2g" => Some(Band::Two),
        "na" | "5g" => Some(Band::Five),
        "6e" | "6g" => Some(Band::Six),
        _ => None,
    }
}

fn placed(number: Option<u64>, band: Option<Band>) -> Option<Channel> {
    let number = u16::try_from(number?)
        .ok()
        .filter(|number| (1..=233).contains(number))?;
    match band {
        Some(band) => Some(Channel { band, number }),
        None => Channel::numbered(number.into()),
    }
}

fn width(value: Option<u64>) -> Option<u16> {
    let width = u16::try_from(value?).ok()?;
    matches!(width, 20 | 40 | 80 | 160 | 240 | 320).then_some(width)
}

/// Reads a network that an access point of the controller received.
fn heard(object: &Object<'_>, reading: &mut Reading) {
    let Some(value) = value_of(object, reading) else {
        return;
    };
    let Some(address) = value["bssid"].as_str().and_then(read_or_masked) else {
        let line = object.line_of("bssid");
        reading.unread.note(line, "an address in the field bssid");
        return;
    };
    let ssid = Ssid::new(text(value.get("essid")).as_bytes());
    let radio = band(text(value.get("radio"))).or(band(text(value.get("band"))));
    let at_mhz = number(value.get("freq"))
        .and_then(|mhz| u32::try_from(mhz).ok())
        .and_then(Channel::at);
    let vendor = text(value.get("oui"));
    reading.heard.push(Bss {
        address,
        masked: address.is_none(),
        hidden: ssid.is_hidden(),
        ssid,
        channel: at_mhz.or(placed(number(value.get("channel")), radio)),
        width: width(number(value.get("bw"))),
        signal: value["signal"]
            .as_i64()
            .and_then(|dbm| i32::try_from(dbm).ok())
            .filter(|dbm| (-200..0).contains(dbm)),
        security: Security::from_words(text(value.get("security"))),
        direct: yes(value.get("is_adhoc")).unwrap_or(false),
        vendor: (!vendor.is_empty()).then(|| vendor.to_owned()),
        lines: Lines {
            begin: object.line,
            security: object.line_of("security"),
            channel: object.line_of("channel"),
            width: object.line_of("bw"),
            ..Lines::default()
        },
        ..Bss::default()
    });
}

/// Reads a configured network.
fn configured(object: &Object<'_>, reading: &mut Reading) {
    let Some(value) = value_of(object, reading) else {
        return;
    };
    if yes(value.get("enabled")) == Some(false) {
        return;
    }
    let security = security(&value);
    let mut unread = None;
    if security.is_none() {
        let line = object.line_of("security");
        let expected = "open, wep, wpapsk, wpaeap or osen in the field security";
        reading.unread.note_part(line, expected);
        unread = Some((line, expected));
    }
    if text(value.get("security")) == "wpaeap" {
        let profile = text(value.get("radiusprofile_id"));
        // Before version 5.4 a network contained its RADIUS server directly.
        let named = !text(value.get("radius_ip_1")).is_empty();
        let asked = (!profile.is_empty()).then(|| profile.to_owned());
        if !named {
            reading.asks.push((reading.configured.len(), asked));
        }
    }
    let slowest = match yes(value.get("minrate_ng_enabled")) {
        Some(true) => number(value.get("minrate_ng_data_rate_kbps")),
        // Without a limit, the lowest rate is that of 802.11b.
        Some(false) => Some(1000),
        None => None,
    };
    let bands: Option<Vec<&str>> = value["wlan_bands"]
        .as_array()
        .map(|bands| bands.iter().filter_map(Value::as_str).collect());
    let without_two =
        bands.is_some_and(|bands| !bands.contains(&"2g")) || text(value.get("wlan_band")) == "5g";
    reading.configured.push(Wlan {
        ssid: Ssid::new(text(value.get("name")).as_bytes()),
        security,
        radius: None,
        hidden: yes(value.get("hide_ssid")),
        neighbours: yes(value.get("rrm_enabled")),
        transition: yes(value.get("bss_transition")),
        slowest: slowest.filter(|_| !without_two),
        owe_transition: false,
        guest: yes(value.get("is_guest")) == Some(true),
        unread,
        lines: Lines {
            begin: object.line,
            security: object.line_of("security"),
            rates: object.line_of(match yes(value.get("minrate_ng_enabled")) {
                Some(true) => "minrate_ng_data_rate_kbps",
                _ => "minrate_ng_enabled",
            }),
            hidden: object.line_of("hide_ssid"),
            roaming: object.line_of("bss_transition"),
            ..Lines::default()
        },
    });
}

fn security(value: &Value) -> Option<Security> {
    let mut found = Security {
        // A missing field is unknown, because older controllers have fewer fields.
        ft: yes(value.get("fast_roaming_enabled")),
        pmf: match text(value.get("pmf_mode")) {
            "disabled" => Some(Pmf::Off),
            "optional" => Some(Pmf::Capable),
            "required" => Some(Pmf::Required),
            _ => None,
        },
        ..Security::default()
    };
    let mode = text(value.get("wpa_mode"));
    match text(value.get("security")) {
        "open" => {
            return Some(Security {
                ft: None,
                pmf: None,
                ..found
            });
        }
        "wep" => found.wep = true,
        "wpapsk" => {
            found.keys.insert(Key::Psk);
        }
        "wpaeap" | "osen" => {
            found.keys.insert(Key::Eap);
        }
        _ => return None,
    }
    if !found.wep {
        found.rsn = mode != "wpa1";
        found.wpa1 = matches!(mode, "wpa1" | "auto");
        found.tkip = found.wpa1 && matches!(text(value.get("wpa_enc")), "auto" | "tkip");
    }
    if yes(value.get("wpa3_support")) == Some(true) && found.keys.contains(&Key::Psk) {
        if yes(value.get("wpa3_transition")) == Some(false) {
            found.keys.clear();
        }
        found.keys.insert(Key::Sae);
    }
    Some(found)
}

/// Reads a device of the controller, with its radios and their networks.
fn device(object: &Object<'_>, reading: &mut Reading) {
    let Some(value) = value_of(object, reading) else {
        return;
    };
    let radios = value["radio_table"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    if radios.is_empty() || yes(value.get("adopted")) == Some(false) {
        return;
    }
    *reading.access_points.get_or_insert(0) += 1;
    let name = match text(value.get("name")) {
        "" => text(value.get("model")),
        name => name,
    };
    let line = object.line_of("radio_table");
    let mut widths: Vec<(Band, Option<u16>)> = Vec::new();
    for radio in radios {
        let Some(band) = band(text(radio.get("radio"))) else {
            continue;
        };
        let width = width(number(radio.get("ht")));
        widths.push((band, width));
        reading.radios.push(Radio {
            access_point: crate::address::mask(&escape_line(name)),
            band,
            channel: placed(number(radio.get("channel")), Some(band)),
            width,
            channel_line: line,
            width_line: line,
        });
    }
    let sent = value["vap_table"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    for vap in sent {
        let radio = band(text(vap.get("radio")));
        let address = text(vap.get("bssid"));
        let Some(address) = read_or_masked(address) else {
            continue;
        };
        let begin = object.line_of("vap_table");
        reading.heard.push(Bss {
            address,
            masked: address.is_none(),
            ssid: Ssid::new(text(vap.get("essid")).as_bytes()),
            channel: placed(number(vap.get("channel")), radio),
            width: widths
                .iter()
                .find(|(band, _)| Some(*band) == radio)
                .and_then(|(_, width)| *width),
            lines: Lines {
                begin,
                ..Lines::default()
            },
            ..Bss::default()
        });
    }
}

fn profile(object: &Object<'_>, reading: &mut Reading) {
    #[derive(Deserialize)]
    struct Profile {
        #[serde(rename = "_id")]
        id: String,
    }
    if let Ok(profile) = serde_json::from_str::<Profile>(object.text) {
        let known = reading.profiles.get_or_insert_with(BTreeSet::new);
        known.insert(profile.id);
    }
}

/// Checks whether the RADIUS profiles of the networks exist.
fn settle_profiles(reading: &mut Reading) {
    for (at, asked) in &reading.asks {
        let there = match (asked, &reading.profiles) {
            (None, _) => Some(false),
            (Some(id), Some(known)) => Some(known.contains(id)),
            (Some(_), None) => None,
        };
        if let Some(wlan) = reading.configured.get_mut(*at) {
            wlan.radius = there;
        }
    }
}

#[cfg(test)]
mod tests;
