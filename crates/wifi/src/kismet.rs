//! Parses the CSV list of Kismet before 2010 (dump_netdump.cc). airodump-ng writes such a list as `-01.kismet.csv`
//! (dump_kismet_csv.c). Each field is followed by a semicolon; fields are not escaped.

use crate::address::read_or_masked;
use crate::channel::Channel;
use crate::reading::{Bss, Format, MOST, ReadError, Reading};
use crate::security::Security;
use crate::ssid::Ssid;
use crate::table::{Heading, Records};

/// Parses a list.
///
/// # Errors
/// A column is missing, or the list contains too many networks.
pub(crate) fn read(bytes: &[u8]) -> Result<Reading, ReadError> {
    let mut reading = Reading::new(Format::Kismet);
    let mut records = Records::new(bytes, b';', false).filter(|(_, fields)| {
        fields.as_ref().is_none_or(|fields| {
            fields
                .concat()
                .iter()
                .any(|byte| !byte.is_ascii_whitespace())
        })
    });
    let (first, fields) = records.next().ok_or(ReadError::Empty)?;
    let heading = Heading::new(&fields.unwrap_or_default());
    let column = |names: &[&'static str]| {
        let found = names.iter().find_map(|name| heading.find(name));
        found.ok_or(ReadError::Column {
            line: first,
            column: names[0],
            format: Format::Kismet,
        })
    };
    let kind = column(&["NetType"])?;
    let name = column(&["ESSID"])?;
    let address = column(&["BSSID"])?;
    let channel = column(&["Channel"])?;
    let cloaked = heading.find("Cloaked");
    // The oldest versions call the column WEP.
    let security = column(&["Encryption", "WEP"])?;
    let signal = heading.find("BestSignal");
    for (line, fields) in records {
        let Some(fields) = fields else {
            reading.unread.note(line, "a record of at most 64 KiB");
            continue;
        };
        let text = |at: usize| {
            let field = fields.get(at).map(Vec::as_slice).unwrap_or_default();
            String::from_utf8_lossy(field).trim().to_owned()
        };
        // A semicolon in a name shifts the fields after it. Then the address is in the wrong field.
        let Some(read) = read_or_masked(&text(address)) else {
            reading.unread.note(line, "an address in the column BSSID");
            continue;
        };
        // The list also contains clients that only search for networks.
        if !text(kind).eq_ignore_ascii_case("infrastructure")
            && !text(kind).eq_ignore_ascii_case("ad-hoc")
        {
            continue;
        }
        if reading.heard.len() >= MOST {
            return Err(ReadError::TooMany { line });
        }
        let bytes = fields.get(name).map(Vec::as_slice).unwrap_or_default();
        let ssid = match bytes {
            b"<no ssid>" | b"<hidden ssid>" => Ssid::default(),
            bytes => Ssid::new(bytes),
        };
        let cloaked = cloaked.is_some_and(|at| text(at).eq_ignore_ascii_case("yes"));
        let words = text(security);
        let security = match words.to_ascii_lowercase().as_str() {
            // The oldest versions only report whether the network is encrypted.
            "no" => Some(Security::default()),
            _ => Security::from_words(&words),
        };
        let mut bss = Bss {
            address: read,
            masked: read.is_none(),
            hidden: cloaked || ssid.is_hidden(),
            ssid,
            channel: text(channel).parse().ok().and_then(Channel::numbered),
            signal: signal
                .and_then(|at| text(at).parse().ok())
                .filter(|dbm| (-200..0).contains(dbm)),
            security,
            direct: text(kind).eq_ignore_ascii_case("ad-hoc"),
            ..Bss::default()
        };
        bss.lines.begin = line;
        reading.heard.push(bss);
    }
    Ok(reading)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "Network;NetType;ESSID;BSSID;Info;Channel;Cloaked;Encryption;Decrypted;MaxRate;MaxSeenRate;Beacon;LLC;Data;Crypt;Weak;Total;Carrier;Encoding;FirstTime;LastTime;BestQuality;BestSignal;BestNoise;\n";

    #[test]
    fn a_list_is_read_and_what_is_shifted_is_told() {
        let rows = "1;infrastructure;Home;02:00:00:00:00:01;;6;No;WPA2,AES-CCM,PSK;No;54.0;0;1;0;0;0;0;1;;;a;b;0;-56;0;\r\n2;infrastructure;a;b;02:00:00:00:00:02;;6;No;None;\n3;probe;x;02:00:00:00:00:03;;0;No;None;\n\n4;infrastructure;;02:00:00:00:00:04;;36;Yes;WEP;No;";
        let found = read(format!("{HEAD}{rows}").as_bytes()).unwrap();
        assert_eq!(found.heard.len(), 2);
        assert_eq!(found.heard[0].signal, Some(-56));
        assert_eq!(found.heard[0].security.as_ref().unwrap().name(), "WPA2 PSK");
        assert!(found.heard[1].hidden);
        assert_eq!((found.unread.count, found.unread.first[0].0), (1, 3));
        let none = read(b"Network;NetType;Name\n").unwrap_err();
        assert!(
            matches!(
                none,
                ReadError::Column {
                    line: 1,
                    column: "ESSID",
                    ..
                }
            ),
            "{none}"
        );
    }
}
