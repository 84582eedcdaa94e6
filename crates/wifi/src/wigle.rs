//! Parses the list of WiGLE (api.wigle.net/csvFormat.html, versions 1.0 to 1.6). The list contains a line about the
//! device, a heading, and a record for each sighting.

use crate::address::{Address, read_or_masked};
use crate::channel::Channel;
use crate::reading::{Bss, Format, MOST, ReadError, Reading};
use crate::security::Security;
use crate::ssid::Ssid;
use crate::table::{Heading, Records};
use std::collections::HashMap;

/// Parses a list. Several sightings of one network become one network.
///
/// # Errors
/// A column is missing, or the list contains too many networks.
pub(crate) fn read(bytes: &[u8]) -> Result<Reading, ReadError> {
    let mut reading = Reading::new(Format::Wigle);
    let mut records = Records::new(bytes, b',', true).filter(|(_, fields)| {
        fields
            .as_ref()
            .is_none_or(|fields| fields.iter().any(|field| !field.trim_ascii().is_empty()))
    });
    records.next().ok_or(ReadError::Empty)?;
    let (first, fields) = records.next().unwrap_or((2, None));
    let heading = Heading::new(&fields.unwrap_or_default());
    let column = |name: &'static str| {
        heading.find(name).ok_or(ReadError::Column {
            line: first,
            column: name,
            format: Format::Wigle,
        })
    };
    let (address, name) = (column("MAC")?, column("SSID")?);
    let (words, channel) = (column("AuthMode")?, column("Channel")?);
    let frequency = heading.find("Frequency");
    let signal = heading.find("RSSI");
    let kind = heading.find("Type");
    let mut known: HashMap<(Address, Ssid), usize> = HashMap::new();
    for (line, fields) in records {
        let Some(fields) = fields else {
            reading
                .unread
                .note(line, "a record that ends, of at most 64 KiB");
            continue;
        };
        let text = |at: usize| {
            let field = fields.get(at).map(Vec::as_slice).unwrap_or_default();
            String::from_utf8_lossy(field).trim().to_owned()
        };
        if fields.len() != heading.len() {
            reading
                .unread
                .note(line, "as many fields as the heading has");
            continue;
        }
        // The list also contains mobile phone cells and Bluetooth devices.
        if kind.is_some_and(|at| !text(at).eq_ignore_ascii_case("WIFI")) {
            continue;
        }
        let Some(read) = read_or_masked(&text(address)) else {
            reading.unread.note(line, "an address in the column MAC");
            continue;
        };
        let ssid = Ssid::new(fields.get(name).map(Vec::as_slice).unwrap_or_default());
        let security = Security::from_words(&text(words));
        let signal = signal
            .and_then(|at| text(at).parse::<i32>().ok())
            .filter(|dbm| (-200..0).contains(dbm));
        // A masked address does not identify the rows of one network.
        if let Some(at) = read.and_then(|read| known.get(&(read, ssid.clone()))) {
            let before = &mut reading.heard[*at];
            if before.security == security {
                before.signal = before.signal.max(signal);
                continue;
            }
        }
        if reading.heard.len() >= MOST {
            return Err(ReadError::TooMany { line });
        }
        let at_mhz = frequency
            .and_then(|at| text(at).parse().ok())
            .and_then(Channel::at);
        let numbered = || text(channel).parse().ok().and_then(Channel::numbered);
        let mut bss = Bss {
            address: read,
            masked: read.is_none(),
            hidden: ssid.is_hidden(),
            direct: text(words).contains("[IBSS]"),
            channel: at_mhz.or_else(numbered),
            signal,
            security,
            ssid: ssid.clone(),
            ..Bss::default()
        };
        bss.lines.begin = line;
        if let Some(read) = read {
            known.insert((read, ssid), reading.heard.len());
        }
        reading.heard.push(bss);
    }
    Ok(reading)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_repeats_are_read() {
        let text = "WigleWifi-1.6,appRelease=2.78,model=X\nMAC,SSID,AuthMode,FirstSeen,Channel,Frequency,RSSI,CurrentLatitude,CurrentLongitude,AltitudeMeters,AccuracyMeters,RCOIs,MfgrId,Type\n\
02:00:00:00:00:01,\"Cafe, North\",[WPA2-PSK-CCMP][ESS],2026-01-01 10:00:00,36,5180,-70,1,1,1,1,,,WIFI\n\
02:00:00:00:00:01,\"Cafe, North\",[WPA2-PSK-CCMP][ESS],2026-01-01 10:01:00,36,5180,-60,1,1,1,1,,,WIFI\n\
02:00:00:00:00:02,x,,2026-01-01 10:01:00,,,-60,1,1,1,1,,,BLE\n\
zz,x,[ESS],,6,2437,-60,1,1,1,1,,,WIFI\n\
02:00:00:00:00:03,a,b,[ESS],,6,2437,-60,1,1,1,1,,,WIFI\n";
        let found = read(text.as_bytes()).unwrap();
        assert_eq!(found.heard.len(), 1);
        assert_eq!(found.heard[0].ssid.shown(), "Cafe, North");
        assert_eq!(found.heard[0].signal, Some(-60));
        let lines: Vec<usize> = found.unread.first.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [6, 7]);
        let old = "WigleWifi-1.0\nMAC,SSID,AuthMode,FirstSeen,Channel,RSSI,CurrentLatitude,CurrentLongitude,AltitudeMeters,AccuracyMeters\n02:00:00:00:00:01,viavoice,[WPA2-PSK-CCMP],2010-04-28 10:55:01,6,-85,40.7,-73.9,0,875\n";
        assert_eq!(read(old.as_bytes()).unwrap().heard.len(), 1);
        assert!(matches!(
            read(b"WigleWifi-1.4\n").unwrap_err(),
            ReadError::Column {
                line: 2,
                column: "MAC",
                ..
            }
        ));
    }
}
