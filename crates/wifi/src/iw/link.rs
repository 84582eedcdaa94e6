//! Parses the output of `iw dev wlan0 link`, `info` and `station dump`, which describes the current connection of a
//! client (link.c, interface.c and station.c of iw 5.19).

use super::rest;
use crate::address::Address;
use crate::channel::Channel;
use crate::ssid::Ssid;

/// Connection of a client to an access point. A field that `iw` did not print is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientLink {
    /// Address of the access point.
    pub address: Option<Address>,
    /// Name of the network.
    pub ssid: Option<Ssid>,
    /// Channel of the connection.
    pub channel: Option<Channel>,
    /// Received signal strength in dBm.
    pub signal: Option<i32>,
    /// Bit rate from the access point, in units of 100 kbit/s.
    pub receives: Option<u32>,
    /// Bit rate to the access point, in units of 100 kbit/s.
    pub sends: Option<u32>,
}

/// Error: a line of the output cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {expected} was expected")]
pub struct LinkError {
    /// Line number, from 1.
    pub line: usize,
    /// Description of the expected content.
    pub expected: &'static str,
}

/// Parses `iw dev DEVICE link`; returns `None` if the device is not connected.
///
/// # Errors
/// The text is not the output of this command.
pub fn link(text: &str) -> Result<Option<ClientLink>, LinkError> {
    let mut found: Option<ClientLink> = None;
    for (at, line) in text.lines().enumerate() {
        let line_number = at + 1;
        let fault = |expected| LinkError {
            line: line_number,
            expected,
        };
        let line = line.trim();
        if line == "Not connected." {
            return Ok(None);
        }
        let joined = ["Connected to ", "Joined IBSS "]
            .iter()
            .find_map(|words| line.strip_prefix(words));
        if let Some(address) = joined {
            let word = address.split([' ', '(']).next();
            let address = word.and_then(Address::read);
            found = Some(ClientLink {
                address: Some(address.ok_or(fault("an address behind `Connected to`"))?),
                ..ClientLink::default()
            });
            continue;
        }
        let link = match &mut found {
            Some(link) => link,
            None if line.is_empty() => continue,
            None => return Err(fault("`Connected to ADDRESS` or `Not connected.`")),
        };
        if let Some(value) = rest(line, "SSID") {
            link.ssid = Some(Ssid::from_escaped(value));
        } else if let Some(value) = rest(line, "freq") {
            let mhz = value.split('.').next().and_then(|mhz| mhz.parse().ok());
            link.channel = Some(
                mhz.and_then(Channel::at)
                    .ok_or(fault("a frequency in MHz"))?,
            );
        } else {
            figures(link, line);
        }
    }
    found.map(Some).ok_or(LinkError {
        line: 1,
        expected: "`Connected to ADDRESS` or `Not connected.`",
    })
}

/// Parses lines with the signal and the rates, which station dumps also contain.
fn figures(link: &mut ClientLink, line: &str) {
    if let Some(value) = rest(line, "signal") {
        let word = value.split_whitespace().next();
        link.signal = word
            .and_then(|word| word.parse().ok())
            .filter(|dbm| (-200..=100).contains(dbm));
    } else if let Some(value) = rest(line, "rx bitrate") {
        link.receives = rate(value);
    } else if let Some(value) = rest(line, "tx bitrate") {
        link.sends = rate(value);
    }
}

fn rate(text: &str) -> Option<u32> {
    let (number, _) = text.split_once(" MBit/s")?;
    let (whole, tenth) = number.split_once('.')?;
    let whole: u32 = whole.parse().ok()?;
    let tenth: u32 = tenth.parse().ok().filter(|tenth| *tenth < 10)?;
    whole.checked_mul(10)?.checked_add(tenth)
}

/// Parses `iw dev DEVICE station dump` to one entry per station, without network name and channel.
///
/// # Errors
/// The text is not the output of this command.
pub fn stations(text: &str) -> Result<Vec<ClientLink>, LinkError> {
    let mut found: Vec<ClientLink> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line_number = at + 1;
        let fault = |expected| LinkError {
            line: line_number,
            expected,
        };
        let line = line.trim();
        if let Some(address) = line.strip_prefix("Station ") {
            let word = address.split([' ', '(']).next();
            found.push(ClientLink {
                address: Some(
                    word.and_then(Address::read)
                        .ok_or(fault("an address behind `Station`"))?,
                ),
                ..ClientLink::default()
            });
            continue;
        }
        match found.last_mut() {
            Some(station) => figures(station, line),
            None if line.is_empty() => {}
            None => return Err(fault("`Station ADDRESS (on DEVICE)`")),
        }
    }
    Ok(found)
}

/// A Wi-Fi device from `iw dev` or `iw dev DEVICE info`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// Name of the device, such as `wlan0`.
    pub name: String,
    /// Type of the interface, such as `managed` or `AP`.
    pub kind: Option<String>,
    /// Channel on which the device works; `None` if it has none.
    pub channel: Option<Channel>,
    /// Channel width in MHz.
    pub width: Option<u16>,
}

/// Parses the devices that `iw dev` lists.
#[must_use]
pub fn devices(text: &str) -> Vec<Device> {
    let mut found: Vec<Device> = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("Interface ") {
            found.push(Device {
                name: name.to_owned(),
                ..Device::default()
            });
            continue;
        }
        let Some(device) = found.last_mut() else {
            continue;
        };
        if let Some(kind) = line.strip_prefix("type ") {
            device.kind = Some(kind.to_owned());
        } else if let Some(behind) = line.strip_prefix("channel ") {
            let mhz = behind
                .split_once('(')
                .and_then(|(_, rest)| rest.split_once(" MHz"));
            device.channel = mhz
                .and_then(|(mhz, _)| mhz.parse().ok())
                .and_then(Channel::at);
            let width = behind.split_once("width: ").map(|(_, rest)| rest);
            device.width = width
                .and_then(|rest| rest.split(' ').next())
                .and_then(|width| width.parse().ok());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: &str = "Connected to 02:00:00:00:01:00 (on wlan0)\n\tSSID: caf\\xc3\\xa9\n\tfreq: 5180\n\tRX: 5370 bytes (37 packets)\n\tTX: 3604 bytes (15 packets)\n\tsignal: -59 dBm\n\trx bitrate: 866.7 MBit/s VHT-MCS 9 80MHz short GI VHT-NSS 2\n\ttx bitrate: 6.0 MBit/s\n\n\tbss flags:\tshort-slot-time\n\tdtim period:\t2\n\tbeacon int:\t100\n";

    #[test]
    fn a_link_is_read() {
        let found = link(LINK).unwrap().unwrap();
        assert_eq!(found.ssid.unwrap().shown(), "café");
        assert_eq!(found.channel.unwrap().to_string(), "5 GHz channel 36");
        assert_eq!(
            (found.signal, found.receives, found.sends),
            (Some(-59), Some(8667), Some(60))
        );
        assert_eq!(link("Not connected.\n"), Ok(None));
        assert_eq!(link("").unwrap_err().line, 1);
        assert_eq!(link("\nUsage: iw").unwrap_err().line, 2);
        let cut = LINK.replace("02:00:00:00:01:00", "02:00");
        assert_eq!(link(&cut).unwrap_err().line, 1);
    }

    #[test]
    fn stations_and_devices_are_read() {
        let dump = "Station 02:00:00:00:01:00 (on wlan0)\n\tinactive time:\t40 ms\n\tsignal:  \t-50 [-52, -55] dBm\n\ttx bitrate:\t72.2 MBit/s MCS 7 short GI\n\tMFP:\t\tno\nStation 02:00:00:00:02:00 (on wlan0)\n\trx bitrate:\t(unknown)\n";
        let found = stations(dump).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].signal, found[0].sends), (Some(-50), Some(722)));
        assert_eq!(found[1].receives, None);
        assert!(stations("x").is_err());
        let text = "phy#0\n\tInterface wlan0\n\t\tifindex 3\n\t\taddr 02:00:00:00:00:00\n\t\tssid x\n\t\ttype managed\n\t\tchannel 36 (5180 MHz), width: 80 MHz, center1: 5210 MHz\n";
        let found = devices(text);
        assert_eq!(found[0].kind.as_deref(), Some("managed"));
        assert_eq!(
            (found[0].width, found[0].channel.unwrap().number),
            (Some(80), 36)
        );
    }
}
