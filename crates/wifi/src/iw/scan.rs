//! Parses `iw dev wlan0 scan` (scan.c of iw 5.19; older versions print capabilities in one line).

use super::rest;
use crate::address::{Address, is_masked};
use crate::channel::Channel;
use crate::reading::{Bss, Format, LONGEST_LINE, MOST, ReadError, Reading};
use crate::security::{Key, Pmf, Security};
use crate::ssid::Ssid;

/// Parses the output of a scan.
///
/// # Errors
/// The scan contains too many networks.
pub fn read(bytes: &[u8]) -> Result<Reading, ReadError> {
    let mut reading = Reading::new(Format::Iw);
    let mut current: Option<Open> = None;
    let mut lost = false;
    for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let number = at + 1;
        if line.len() > LONGEST_LINE {
            let expected = "a line of at most 64 KiB";
            match &mut current {
                Some(open) => open.lacks(number, expected, &mut reading),
                None => reading.unread.note(number, expected),
            }
            continue;
        }
        let line = String::from_utf8_lossy(line);
        let text = line.trim();
        if let Some(header) = text.strip_prefix("BSS ") {
            // The indented line `BSS Load:` is a property of a network and not the start of one.
            if !line.starts_with("BSS ") && current.is_some() && !header.contains("(on ") {
                continue;
            }
            keep(&mut reading, current.take());
            if reading.heard.len() >= MOST {
                return Err(ReadError::TooMany { line: number });
            }
            current = Open::new(header, number);
            lost = current.is_none();
            if lost {
                reading.unread.note(number, "an address behind `BSS`");
            }
            continue;
        }
        match &mut current {
            _ if text.is_empty() => {}
            Some(open) => {
                if let Err(expected) = open.line(&line, number) {
                    open.lacks(number, expected, &mut reading);
                }
            }
            None if lost => {}
            None => reading
                .unread
                .note(number, "a line `BSS ADDRESS(on DEVICE)`"),
        }
    }
    keep(&mut reading, current);
    Ok(reading)
}

/// Adds a network after its last line was read. Networks in unsupported bands are only counted.
fn keep(reading: &mut Reading, open: Option<Open>) {
    match open {
        Some(open) if open.other_band => reading.other_bands += 1,
        open => reading.heard.extend(open.map(Open::close)),
    }
}

/// Sections in the output of a network that have lines of their own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Rsn,
    /// RSN override element, which WPA3 clients use instead of the RSN element.
    Override,
    Owe,
    Wpa,
    Ht,
    Vht,
    Measurements,
    Extended,
    Mesh,
    Other,
}

/// A network of the scan, whose lines are being read.
struct Open {
    bss: Bss,
    /// Indentation of the network's own lines.
    indent: Option<usize>,
    section: Section,
    /// Privacy bit of the network; `None` until its line is read.
    privacy: Option<bool>,
    rsn: Option<Security>,
    wpa: Option<Security>,
    overriding: Option<Security>,
    /// Whether the frequency belongs to an unsupported band: 60 GHz or 900 MHz.
    other_band: bool,
    /// Whether there is a secondary channel, so that the width is 40 MHz.
    wide: bool,
}

fn columns(line: &str) -> usize {
    let blank = line.chars().take_while(|c| c.is_whitespace());
    blank.map(|c| if c == '\t' { 8 } else { 1 }).sum()
}

impl Open {
    fn new(header: &str, number: usize) -> Option<Self> {
        let end = header.find(['(', ' ']).unwrap_or(header.len());
        let address = header.get(..end)?;
        let known = Address::read(address);
        // Users mask addresses before they share a scan, so any word in this position is an address.
        let masked = known.is_none() && (is_masked(address) || header.contains("(on "));
        if known.is_none() && !masked {
            return None;
        }
        let mut bss = Bss {
            address: known,
            masked,
            ..Bss::default()
        };
        bss.lines.begin = number;
        Some(Self {
            bss,
            indent: None,
            section: Section::Other,
            privacy: None,
            rsn: None,
            wpa: None,
            overriding: None,
            other_band: false,
            wide: false,
        })
    }

    /// Records an unreadable line of the network.
    fn lacks(&mut self, line: usize, expected: &'static str, reading: &mut Reading) {
        self.bss.unread.get_or_insert((line, expected));
        reading.unread.note_part(line, expected);
    }

    fn line(&mut self, line: &str, number: usize) -> Result<(), &'static str> {
        let depth = columns(line);
        let indent = *self.indent.get_or_insert(depth);
        match depth <= indent {
            true => self.own(line.trim(), number),
            false => {
                self.part(line.trim(), number);
                Ok(())
            }
        }
    }

    /// Parses a line that belongs to the network itself, not to an information element.
    fn own(&mut self, text: &str, number: usize) -> Result<(), &'static str> {
        self.section = Section::Other;
        let bss = &mut self.bss;
        if let Some(value) = rest(text, "freq") {
            // Newer versions print a frequency offset after a decimal point.
            let whole = value.split('.').next().and_then(|mhz| mhz.parse().ok());
            let mhz: u32 = whole.ok_or("a frequency in MHz")?;
            bss.channel = Channel::at(mhz);
            self.other_band = bss.channel.is_none();
            bss.lines.channel = number;
        } else if let Some(value) = rest(text, "signal") {
            let number = value.split_whitespace().next();
            let number = number.and_then(|number| number.parse::<f64>().ok());
            let known = number.filter(|number| (-200.0..=100.0).contains(number));
            // Some drivers report a relative signal: `signal: 62/100`.
            bss.signal = known.map(|number| number.round() as i32);
        } else if let Some(value) = rest(text, "capability") {
            let mut words = value.split_whitespace();
            self.privacy = Some(words.clone().any(|word| word == "Privacy"));
            bss.direct |= words.any(|word| word == "IBSS");
            if bss.lines.security == 0 {
                bss.lines.security = number;
            }
        } else if let Some(value) = rest(text, "SSID") {
            let ssid = Ssid::from_escaped(value);
            if ssid.is_hidden() && bss.ssid.is_hidden() {
                bss.hidden = true;
                bss.lines.hidden = number;
            } else if !ssid.is_hidden() {
                bss.ssid = ssid;
                bss.hidden = false;
            }
        } else if let Some(value) =
            rest(text, "Supported rates").or(rest(text, "Extended supported rates"))
        {
            self.rates(value, number)?;
        } else if let Some((name, value)) = text.split_once(':') {
            self.begin(name, value.trim(), number);
        }
        Ok(())
    }

    fn rates(&mut self, value: &str, number: usize) -> Result<(), &'static str> {
        for word in value.split_whitespace() {
            let Some(rate) = word.strip_suffix('*') else {
                continue;
            };
            if matches!(rate, "VHT" | "HT" | "HE" | "SAE") {
                continue;
            }
            let tenths = rate.replacen('.', "", 1).parse::<u32>();
            let tenths = tenths.map_err(|_| "rates such as `1.0* 2.0 5.5`")?;
            if self.bss.basic_rates.is_empty() {
                self.bss.lines.rates = number;
            }
            self.bss.basic_rates.push(tenths);
        }
        Ok(())
    }

    /// Parses the first line of a section, which starts this section.
    fn begin(&mut self, name: &str, value: &str, number: usize) {
        let lines = &mut self.bss.lines;
        self.section = match name {
            "RSN" => Section::Rsn,
            "RSN Element Override" | "RSN Element Override 2" => Section::Override,
            "OWE Transition Mode" => Section::Owe,
            "WPA" => Section::Wpa,
            "HT operation" => Section::Ht,
            "VHT operation" => Section::Vht,
            "RM enabled capabilities" => Section::Measurements,
            "Extended capabilities" => Section::Extended,
            "MESH ID" | "MESH Configuration" => Section::Mesh,
            _ => Section::Other,
        };
        match self.section {
            Section::Rsn => {
                lines.security = number;
                self.rsn.get_or_insert_default().rsn = true;
            }
            Section::Override => {
                self.overriding.get_or_insert_default().rsn = true;
            }
            Section::Owe => self.bss.owe_transition = true,
            Section::Wpa => {
                lines.first_wpa = number;
                if self.rsn.is_none() {
                    lines.security = number;
                }
                self.wpa.get_or_insert_default().wpa1 = true;
            }
            Section::Extended | Section::Measurements => {
                if lines.roaming == 0 {
                    lines.roaming = number;
                }
                // Format of iw before 4.0.
                for word in value.split(", ") {
                    self.part(word, number);
                }
                return;
            }
            Section::Mesh => self.bss.direct = true,
            Section::Ht | Section::Vht | Section::Other => {}
        }
        if !value.is_empty() {
            self.part(value, number);
        }
    }

    /// Parses a further line of the current section.
    fn part(&mut self, text: &str, number: usize) {
        let item = text.strip_prefix("* ").unwrap_or(text);
        match self.section {
            Section::Rsn | Section::Wpa | Section::Override => {
                let lines = &mut self.bss.lines;
                let security = match self.section {
                    Section::Rsn => &mut self.rsn,
                    Section::Wpa => &mut self.wpa,
                    _ => &mut self.overriding,
                };
                let security = security.get_or_insert_default();
                let before = (security.tkip, security.pmf);
                suites(security, item);
                let pairwise =
                    rest(item, "Pairwise ciphers").is_some_and(|all| all.contains("TKIP"));
                if pairwise || (security.tkip && !before.0 && lines.tkip == 0) {
                    lines.tkip = number;
                }
                if self.section == Section::Rsn && security.pmf != before.1 {
                    lines.pmf = number;
                }
            }
            Section::Ht => {
                if let Some(value) = rest(item, "secondary channel offset") {
                    self.wide = matches!(value, "above" | "below");
                    self.bss.width = Some(if self.wide { 40 } else { 20 });
                    self.bss.lines.width = number;
                }
            }
            Section::Vht => {
                let word =
                    rest(item, "channel width").and_then(|value| value.split_whitespace().next());
                let width = match word {
                    Some("1") => Some(80),
                    Some("2" | "3") => Some(160),
                    _ => None,
                };
                if width.is_some() {
                    self.bss.width = width;
                    self.bss.lines.width = number;
                }
            }
            Section::Measurements => {
                if item == "Neighbor Report" {
                    self.bss.neighbours = Some(true);
                }
            }
            Section::Extended => {
                if item == "BSS Transition" {
                    self.bss.transition = Some(true);
                }
            }
            Section::Mesh | Section::Owe | Section::Other => {}
        }
    }

    fn close(mut self) -> Bss {
        let complete = self.privacy.is_some();
        let rsn = match (self.rsn, self.overriding) {
            (Some(rsn), Some(other)) => Some(overridden(rsn, other)),
            (rsn, other) => rsn.or(other),
        };
        self.bss.security = match (rsn, self.wpa, self.privacy) {
            (None, None, None) => None,
            (None, None, Some(privacy)) => Some(Security {
                wep: privacy,
                ft: Some(false),
                ..Security::default()
            }),
            (Some(rsn), wpa, _) => Some(merged(rsn, wpa)),
            (None, Some(wpa), _) => Some(merged(wpa, None)),
        };
        if complete {
            // In a complete record a missing line means that the feature is absent.
            self.bss.neighbours.get_or_insert(false);
            self.bss.transition.get_or_insert(false);
        }
        self.bss
    }
}

/// Combines the security settings for old clients with the settings in the override element, which newer clients use.
fn overridden(mut one: Security, other: Security) -> Security {
    one.pmf = one.pmf.max(other.pmf);
    one.ft = one.ft.max(other.ft);
    one.tkip |= other.tkip;
    one.keys.extend(other.keys);
    one
}

fn suites(security: &mut Security, item: &str) {
    // Group traffic reaches all clients, so the group cipher counts as well.
    if let Some(ciphers) = rest(item, "Pairwise ciphers").or(rest(item, "Group cipher")) {
        security.tkip |= ciphers.split_whitespace().any(|word| word == "TKIP");
    } else if let Some(suites) = rest(item, "Authentication suites") {
        // The name of a suite may contain a space.
        let suites = suites.replace("IEEE 802.1X", "802.1X");
        security.ft = Some(false);
        for suite in suites.split_whitespace() {
            let fast = suite.strip_prefix("FT/");
            security.ft = Some(security.ft == Some(true) || fast.is_some());
            let key = match fast.unwrap_or(suite).split('/').next() {
                Some("PSK") => Key::Psk,
                Some("SAE") => Key::Sae,
                Some("802.1X" | "FILS") => Key::Eap,
                Some("OWE") => Key::Owe,
                _ => Key::Other,
            };
            security.keys.insert(key);
        }
    } else if let Some(words) = rest(item, "Capabilities") {
        let has = |name: &str| words.split_whitespace().any(|word| word == name);
        security.pmf = Some(match (has("MFP-required"), has("MFP-capable")) {
            (true, _) => Pmf::Required,
            (false, true) => Pmf::Capable,
            (false, false) => Pmf::Off,
        });
    }
}

fn merged(mut one: Security, other: Option<Security>) -> Security {
    if let Some(other) = other {
        one.wpa1 |= other.wpa1;
        one.tkip |= other.tkip;
        one.keys.extend(other.keys);
    }
    if one.keys.is_empty() {
        one.keys.insert(Key::Other);
    }
    one
}

#[cfg(test)]
mod tests;
