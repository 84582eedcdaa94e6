//! Parses hostapd.conf (hostapd 2.10, its annotated example and `hostapd/config_file.c`). The file describes one radio
//! and one network. Each `bss=` line begins a further network. Reads only the keys below; passwords are never stored.

use crate::channel::{Band, Channel};
use crate::reading::{Format, LONGEST_LINE, MOST, Radio, ReadError, Reading, Wlan};
use crate::security::{Key, Pmf, Security};
use crate::ssid::Ssid;
use assay_render::text::escape_line;

/// Numbers of the operating classes in 6 GHz (IEEE 802.11-2020, table E-4).
const SIX_GHZ: std::ops::RangeInclusive<u32> = 131..=137;
/// Lowest rate of 802.11b in kbit/s. hostapd offers this rate by default.
const SLOWEST_OF_B: u64 = 1000;

/// Returns whether a file is a hostapd.conf. In such a file, the first setting is `key=value`, and there is a network
/// or an interface. The file wpa_supplicant.conf has the same keys, but inside `network={`.
pub(crate) fn recognise(bytes: &[u8]) -> bool {
    let mut named = false;
    for line in bytes.split(|byte| *byte == b'\n') {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let name = line.split(|byte| *byte == b'=').next().unwrap_or_default();
        let word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        if name.len() == line.len() || !name.iter().all(word) || line.ends_with(b"={") {
            return false;
        }
        named |= matches!(name, b"interface" | b"ssid" | b"ssid2");
        if named {
            return true;
        }
    }
    false
}

/// Parses the file.
///
/// # Errors
/// The file contains too many networks.
pub(crate) fn read(bytes: &[u8]) -> Result<Reading, ReadError> {
    let mut reading = Reading::new(Format::Hostapd);
    let mut radio = Air::default();
    let mut open = Open::default();
    for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let number = at + 1;
        if line.len() > LONGEST_LINE {
            reading.unread.note(number, "a line of at most 64 KiB");
            continue;
        }
        let text = String::from_utf8_lossy(line);
        let text = text.trim();
        // A `#` after a value is part of the value: a network name may contain `#`.
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let Some((key, value)) = text.split_once('=') else {
            reading.unread.note(number, "a line `key=value`");
            continue;
        };
        if key == "bss" {
            std::mem::take(&mut open).close(&radio, &mut reading);
            if reading.configured.len() >= MOST {
                return Err(ReadError::TooMany { line: number });
            }
            open.begin = number;
            continue;
        }
        match radio.setting(key, value, number) {
            Ok(true) => {}
            Ok(false) => {
                if let Err(expected) = open.setting(key, value, number) {
                    open.unread.get_or_insert((number, expected));
                    reading.unread.note_part(number, expected);
                }
            }
            Err(expected) => reading.unread.note(number, expected),
        }
    }
    open.close(&radio, &mut reading);
    reading.access_points = Some(1);
    reading.radios.extend(radio.told());
    Ok(reading)
}

/// Settings of the radio, which all networks of a file have in common.
#[derive(Default)]
struct Air {
    device: String,
    /// Value of `hw_mode`: `b`, `g` or `a`.
    mode: String,
    class: Option<u32>,
    channel: Option<u16>,
    channel_line: usize,
    width: Option<u16>,
    width_line: usize,
    /// Lowest basic rate in kbit/s with its line number. The next field contains the lowest supported rate.
    basic: Option<(u64, usize)>,
    supported: Option<(u64, usize)>,
}

impl Air {
    /// Parses a setting of the radio. Returns whether `key` belongs to the radio.
    fn setting(&mut self, key: &str, value: &str, line: usize) -> Result<bool, &'static str> {
        match key {
            "interface" => self.device = value.to_owned(),
            "hw_mode" => self.mode = value.to_owned(),
            "op_class" => self.class = Some(number(value)?),
            "channel" => {
                self.channel_line = line;
                // 0 and acs_survey mean automatic channel selection.
                self.channel = match value {
                    "acs_survey" => None,
                    value => Some(number::<u16>(value)?).filter(|channel| *channel > 0),
                };
            }
            "ht_capab" if value.contains("[HT40") => self.widen(40, line),
            "vht_oper_chwidth" | "he_oper_chwidth" | "eht_oper_chwidth" => {
                match number::<u32>(value)? {
                    1 => self.widen(80, line),
                    2 | 3 => self.widen(160, line),
                    9 => self.widen(320, line),
                    _ => {}
                }
            }
            "basic_rates" => self.basic = slowest(value, line)?,
            "supported_rates" => self.supported = slowest(value, line)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn widen(&mut self, width: u16, line: usize) {
        if self.width.is_none_or(|now| now < width) {
            (self.width, self.width_line) = (Some(width), line);
        }
    }

    /// Returns the band. The default mode is b (hostapd.conf).
    fn band(&self) -> Option<Band> {
        match self.mode.as_str() {
            _ if self.class.is_some_and(|class| SIX_GHZ.contains(&class)) => Some(Band::Six),
            "" | "b" | "g" => Some(Band::Two),
            "a" => Some(Band::Five),
            // `any` means automatic selection, `ad` means 60 GHz.
            _ => None,
        }
    }

    fn told(&self) -> Option<Radio> {
        let band = self.band()?;
        Some(Radio {
            access_point: crate::address::mask(&escape_line(&self.device)),
            band,
            channel: self.channel.map(|number| Channel { band, number }),
            width: self.width.or(Some(20)),
            channel_line: self.channel_line,
            width_line: self.width_line,
        })
    }
}

/// A network of the file, whose lines are being read.
#[derive(Default)]
struct Open {
    begin: usize,
    ssid: Option<Ssid>,
    hidden: Option<(bool, usize)>,
    /// Value of `wpa` with its line number. Bit 0 is the original WPA, bit 1 is WPA2 and WPA3.
    wpa: (u32, usize),
    management: Vec<String>,
    /// Ciphers of the original WPA. The default is TKIP.
    first: Vec<String>,
    /// Ciphers of WPA2. The default is the list of the original WPA.
    second: Vec<String>,
    /// Line numbers of the two cipher settings.
    cipher_lines: (usize, usize),
    wep: bool,
    pmf: Option<(Pmf, usize)>,
    /// Key management and frame protection in the RSN override element, which WPA3 clients use instead of the RSN
    /// element.
    overriding: Vec<String>,
    overriding_pmf: Option<Pmf>,
    owe_transition: bool,
    unread: Option<(usize, &'static str)>,
    neighbours: bool,
    transition: (bool, usize),
    /// Whether a RADIUS server or the built-in EAP server is configured.
    accounts: bool,
}

impl Open {
    fn setting(&mut self, key: &str, value: &str, line: usize) -> Result<(), &'static str> {
        let words = || value.split_whitespace().map(str::to_owned).collect();
        match key {
            "ssid" | "ssid2" => {
                self.ssid = Some(match key {
                    "ssid" => Ssid::new(value.as_bytes()),
                    _ => quoted(value)?,
                });
                self.begin = line;
            }
            "ignore_broadcast_ssid" => self.hidden = Some((number::<u32>(value)? > 0, line)),
            "wpa" => self.wpa = (number(value)?, line),
            "wpa_key_mgmt" => self.management = words(),
            "wpa_pairwise" => (self.first, self.cipher_lines.0) = (words(), line),
            "rsn_pairwise" => (self.second, self.cipher_lines.1) = (words(), line),
            "ieee80211w" => self.pmf = Some((protection(value)?, line)),
            "rsn_override_key_mgmt" | "rsn_override_key_mgmt_2" => self.overriding.extend(words()),
            "rsn_override_mfp" | "rsn_override_mfp_2" => {
                self.overriding_pmf = self.overriding_pmf.max(Some(protection(value)?));
            }
            "owe_transition_ssid" | "owe_transition_bssid" | "owe_transition_ifname" => {
                self.owe_transition = true;
            }
            "rrm_neighbor_report" => self.neighbours = number::<u32>(value)? > 0,
            "bss_transition" => self.transition = (number::<u32>(value)? > 0, line),
            "auth_server_addr" => self.accounts = true,
            "eap_server" => self.accounts |= number::<u32>(value)? > 0,
            // Records only that a WEP key exists.
            "wep_key0" | "wep_key1" | "wep_key2" | "wep_key3" => self.wep = true,
            _ => {}
        }
        Ok(())
    }

    fn security(&self) -> Security {
        let (wpa1, rsn) = (self.wpa.0 & 1 != 0, self.wpa.0 & 2 != 0);
        if !wpa1 && !rsn {
            let wep = self.wep;
            return Security {
                wep,
                ..Security::default()
            };
        }
        let has = |names: &[&str]| {
            let mut ways = self.management.iter().chain(&self.overriding);
            ways.any(|way| names.contains(&way.as_str()))
        };
        let mut found = Security {
            wpa1,
            rsn,
            ft: Some(self.management.iter().any(|way| way.starts_with("FT-"))),
            ..Security::default()
        };
        for (key, names) in [
            (Key::Psk, &["WPA-PSK", "WPA-PSK-SHA256", "FT-PSK"][..]),
            (
                Key::Sae,
                &["SAE", "FT-SAE", "SAE-EXT-KEY", "FT-SAE-EXT-KEY"],
            ),
            (
                Key::Eap,
                &[
                    "WPA-EAP",
                    "WPA-EAP-SHA256",
                    "FT-EAP",
                    "WPA-EAP-SUITE-B",
                    "WPA-EAP-SUITE-B-192",
                    "FT-EAP-SHA384",
                ],
            ),
            (Key::Owe, &["OWE"]),
        ] {
            if has(names) {
                found.keys.insert(key);
            }
        }
        if found.keys.is_empty() {
            // Default key management.
            let key = match self.management.is_empty() {
                true => Key::Psk,
                false => Key::Other,
            };
            found.keys.insert(key);
        }
        let tkip = |ciphers: &[String]| ciphers.is_empty() || ciphers.iter().any(|c| c == "TKIP");
        let second = match self.second.is_empty() {
            true => &self.first,
            false => &self.second,
        };
        found.tkip = wpa1 && tkip(&self.first) || rsn && tkip(second);
        // Default: management frames are not protected (ieee80211w=0 in hostapd.conf).
        let pmf = self.pmf.map_or(Pmf::Off, |(pmf, _)| pmf);
        found.pmf = self.overriding_pmf.max(Some(pmf));
        found
    }

    /// Returns the line that enables TKIP. This is the line with the ciphers, or the line of `wpa` if no ciphers are
    /// set.
    fn tkip_line(&self) -> usize {
        let names = |ciphers: &[String]| ciphers.iter().any(|cipher| cipher == "TKIP");
        match (names(&self.second), names(&self.first)) {
            (true, _) => self.cipher_lines.1,
            (false, true) => self.cipher_lines.0,
            (false, false) => self.wpa.1,
        }
    }

    fn close(self, radio: &Air, reading: &mut Reading) {
        let Some(ssid) = &self.ssid else {
            // Only radio settings so far, or a network without a name, which hostapd calls "test".
            if self.begin > 0 {
                let expected = "a line `ssid=` of the network that begins here";
                reading.unread.note(self.begin, expected);
            }
            return;
        };
        let security = self.security();
        let (tkip, pmf) = (self.tkip_line(), self.pmf.map_or(0, |(_, line)| line));
        let asks = security.keys.contains(&Key::Eap);
        let fallback = match radio.band() {
            Some(Band::Two) => Some(SLOWEST_OF_B),
            // Known key that does not matter for 2.4 GHz.
            _ => None,
        };
        let named = radio
            .basic
            .or(radio.supported)
            .filter(|_| radio.band() == Some(Band::Two));
        let (slowest, rates) = match named {
            Some((slowest, line)) => (Some(slowest), line),
            None => (fallback, self.begin),
        };
        let mut lines = crate::reading::Lines {
            begin: self.begin,
            security: self.wpa.1,
            tkip,
            pmf,
            rates,
            roaming: self.transition.1,
            ..crate::reading::Lines::default()
        };
        lines.hidden = self.hidden.map_or(0, |(_, line)| line);
        reading.configured.push(Wlan {
            ssid: ssid.clone(),
            security: Some(security),
            radius: asks.then_some(self.accounts),
            hidden: Some(self.hidden.is_some_and(|(hidden, _)| hidden)),
            neighbours: Some(self.neighbours),
            transition: Some(self.transition.0),
            slowest,
            owe_transition: self.owe_transition,
            guest: false,
            unread: self.unread,
            lines,
        });
    }
}

/// Parses the value of `ieee80211w`.
fn protection(value: &str) -> Result<Pmf, &'static str> {
    Ok(match number::<u32>(value)? {
        0 => Pmf::Off,
        1 => Pmf::Capable,
        _ => Pmf::Required,
    })
}

/// Parses a network name in quotes, in quotes with escapes (`P"…"`), or in hexadecimal digits
/// (`wpa_config_parse_string`).
fn quoted(value: &str) -> Result<Ssid, &'static str> {
    let inner = |text: &str| {
        let text = text.strip_prefix('"')?;
        text.rfind('"').map(|end| text[..end].to_owned())
    };
    if let Some(plain) = inner(value) {
        return Ok(Ssid::new(plain.as_bytes()));
    }
    if let Some(escaped) = value.strip_prefix('P').and_then(inner) {
        return Ok(Ssid::from_escaped(&escaped));
    }
    let digits = value.as_bytes().chunks(2);
    let bytes: Option<Vec<u8>> = digits
        .map(|pair| {
            let pair = std::str::from_utf8(pair)
                .ok()
                .filter(|pair| pair.len() == 2)?;
            u8::from_str_radix(pair, 16).ok()
        })
        .collect();
    bytes
        .map(|bytes| Ssid::new(&bytes))
        .ok_or("a name in quotes, or hexadecimal digits")
}

/// Returns the lowest rate of a list whose rates are in units of 100 kbit/s.
fn slowest(value: &str, line: usize) -> Result<Option<(u64, usize)>, &'static str> {
    let rates = value.split_whitespace().map(number::<u64>);
    let rates: Vec<u64> = rates.collect::<Result<_, _>>()?;
    let slowest = rates.into_iter().filter(|rate| *rate > 0).min();
    Ok(slowest.map(|rate| (rate.saturating_mul(100), line)))
}

fn number<T: std::str::FromStr>(value: &str) -> Result<T, &'static str> {
    value.trim().parse().map_err(|_| "a number")
}

#[cfg(test)]
mod tests;
