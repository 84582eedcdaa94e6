//! Parses files about Wi-Fi networks: output of `iw`, exports and server.log of a UniFi controller, hostapd.conf, and
//! lists of Kismet and WiGLE. Converts them to facts for advice pages, and counts vehicles by make. This crate performs
//! no I/O, and the size of every input is limited.

pub mod address;
pub mod census;
pub mod channel;
pub mod facts;
mod hostapd;
pub mod iw;
mod json;
mod kismet;
pub mod reading;
pub mod registry;
pub mod security;
pub mod ssid;
mod table;
mod unifi;
mod unifi_log;
mod wigle;

pub use facts::{WifiFile, facts, judges};
pub use reading::{Bss, Format, ReadError, Reading};

/// Byte order mark that some programs write at the start of a file (U+FEFF).
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Detects the format of a file by its content and parses the file.
///
/// # Errors
/// The format is unknown, or nothing in the file can be parsed. Single unreadable lines are not errors; they are
/// counted in the reading.
pub fn read(bytes: &[u8]) -> Result<Reading, ReadError> {
    let bytes = bytes.strip_prefix(MARK).unwrap_or(bytes);
    match recognise(bytes)? {
        Format::Iw => iw::scan::read(bytes),
        Format::Unifi => unifi::read(bytes),
        Format::Kismet => kismet::read(bytes),
        Format::Wigle => wigle::read(bytes),
        Format::Hostapd => hostapd::read(bytes),
        Format::UnifiLog => Ok(unifi_log::read(bytes)),
    }
}

/// Detects the format of a file by its content.
fn recognise(bytes: &[u8]) -> Result<Format, ReadError> {
    let blank = |line: &&[u8]| line.iter().all(u8::is_ascii_whitespace);
    let mut lines = bytes.split(|byte| *byte == b'\n').enumerate();
    let (at, first) = lines
        .find(|(_, line)| !blank(line))
        .ok_or(ReadError::Empty)?;
    let first = first.trim_ascii();
    // `iw` may print a warning of the kernel before the scan.
    let iw = |line: &[u8]| line.trim_ascii().starts_with(b"BSS ");
    match first {
        _ if unifi_log::recognise(first) => Ok(Format::UnifiLog),
        _ if first.starts_with(b"{") || first.starts_with(b"[") => Ok(Format::Unifi),
        _ if first.starts_with(b"WigleWifi") || first.starts_with(b"\"WigleWifi") => {
            Ok(Format::Wigle)
        }
        _ if first.starts_with(b"Network;NetType;") => Ok(Format::Kismet),
        _ if hostapd::recognise(bytes) => Ok(Format::Hostapd),
        _ if iw(first) || lines.take(8).any(|(_, line)| iw(line)) => Ok(Format::Iw),
        // A UniFi backup is encrypted: arbitrary bytes in blocks of 16.
        _ if bytes.len().is_multiple_of(16)
            && first.iter().any(|byte| !byte.is_ascii())
            && bytes.contains(&0) =>
        {
            Err(ReadError::Backup)
        }
        _ => Err(ReadError::Unknown { line: at + 1 }),
    }
}
