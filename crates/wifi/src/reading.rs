//! Parsed content of a file: received networks, configured networks, radios and unreadable lines.

use crate::address::Address;
use crate::channel::Channel;
use crate::security::Security;
use crate::ssid::Ssid;
use std::collections::BTreeSet;
use std::fmt;

/// Maximum number of networks per file.
pub const MOST: usize = 200_000;
/// Maximum length of a line in bytes. Longer lines are unreadable.
pub const LONGEST_LINE: usize = 64 * 1024;
/// Number of unreadable lines that are reported individually.
const TOLD: usize = 3;

/// Supported file formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Output of `iw dev wlan0 scan`.
    Iw,
    /// Answers of a UniFi controller, or its database collections as JSON.
    Unifi,
    /// List of Kismet before 2010, separated by semicolons; airodump-ng still writes it.
    Kismet,
    /// List of WiGLE. Kismet's `kismetdb_to_wiglecsv` writes this format, too.
    Wigle,
    /// hostapd.conf.
    Hostapd,
    /// server.log of a UniFi controller.
    UnifiLog,
}

impl Format {
    /// Returns whether lines of the file may be shown. JSON lines may contain passwords. Findings never refer
    /// to password lines of hostapd.conf.
    #[must_use]
    pub fn shows_lines(self) -> bool {
        matches!(self, Self::Iw | Self::Hostapd)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Iw => "iw scan",
            Self::Unifi => "UniFi JSON",
            Self::Kismet => "Kismet list",
            Self::Wigle => "WiGLE list",
            Self::Hostapd => "hostapd.conf",
            Self::UnifiLog => "server.log of a UniFi controller",
        })
    }
}

/// A received network of one radio.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bss {
    /// Address; `None` if the file contains none.
    pub address: Option<Address>,
    /// Name of the network.
    pub ssid: Ssid,
    /// The network hides its name.
    pub hidden: bool,
    /// Channel.
    pub channel: Option<Channel>,
    /// Channel width in MHz.
    pub width: Option<u16>,
    /// Received signal strength in dBm.
    pub signal: Option<i32>,
    /// Security settings.
    pub security: Option<Security>,
    /// Basic rates, which every client must support, in units of 100 kbit/s.
    pub basic_rates: Vec<u32>,
    /// Support for neighbour reports (802.11k).
    pub neighbours: Option<bool>,
    /// Support for BSS transition (802.11v).
    pub transition: Option<bool>,
    /// The sender is not an access point but a direct connection or a mesh.
    pub direct: bool,
    /// Vendor of the address, if the file contains it.
    pub vendor: Option<String>,
    /// The network belongs to an Enhanced Open pair, which is an open network and a hidden encrypted one.
    pub owe_transition: bool,
    /// The address was masked, so networks of one device cannot be recognised.
    pub masked: bool,
    /// First unreadable line of the record, and the expected content.
    pub unread: Option<(usize, &'static str)>,
    /// Line numbers of the properties, from 1.
    pub lines: Lines,
}

/// Line numbers of properties, from 1. A 0 stands for the first line of the record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// First line of the record.
    pub begin: usize,
    /// Line of the security.
    pub security: usize,
    /// Line of the original WPA element.
    pub first_wpa: usize,
    /// Line of the ciphers, if the ciphers include TKIP.
    pub tkip: usize,
    /// Line of the management frame protection.
    pub pmf: usize,
    /// Line of the channel.
    pub channel: usize,
    /// Line of the width.
    pub width: usize,
    /// Line of the basic rates.
    pub rates: usize,
    /// Line that shows that the name is hidden.
    pub hidden: usize,
    /// Line of the roaming protocols.
    pub roaming: usize,
}

/// A configured network.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wlan {
    /// Name of the network.
    pub ssid: Ssid,
    /// Configured security.
    pub security: Option<Security>,
    /// The RADIUS profile of the network exists. `None` if the network needs none or the file does not contain
    /// it.
    pub radius: Option<bool>,
    /// The network hides its name.
    pub hidden: Option<bool>,
    /// 802.11k is enabled.
    pub neighbours: Option<bool>,
    /// 802.11v is enabled.
    pub transition: Option<bool>,
    /// Lowest rate in 2.4 GHz, in kbit/s; `None` if not configured.
    pub slowest: Option<u64>,
    /// The network belongs to an Enhanced Open pair, which is an open network and a hidden encrypted one.
    pub owe_transition: bool,
    /// Guest network with a login page.
    pub guest: bool,
    /// First unreadable line of the record, and the expected content.
    pub unread: Option<(usize, &'static str)>,
    /// Line numbers of the properties.
    pub lines: Lines,
}

/// A configured radio of one of the user's access points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Radio {
    /// Name of the access point.
    pub access_point: String,
    /// Band of the radio.
    pub band: crate::channel::Band,
    /// Channel; `None` for automatic selection.
    pub channel: Option<Channel>,
    /// Channel width in MHz.
    pub width: Option<u16>,
    /// Line of the channel.
    pub channel_line: usize,
    /// Line of the width.
    pub width_line: usize,
}

/// Lines in a controller's log about networks with 802.1X whose RADIUS profile was lost. The lines do not name the
/// network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostProfile {
    /// Newest line, from 1.
    pub line: usize,
    /// Date of that line, `2017-01-18`.
    pub date: String,
    /// Number of such lines.
    pub count: usize,
}

/// Unreadable lines of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    /// Number of unreadable lines.
    pub count: usize,
    /// The first ones: line number from 1, and the expected content.
    pub first: Vec<(usize, &'static str)>,
    /// Number of unreadable lines that belong to no known network.
    pub lost: usize,
    /// The first lines that belong to no known network.
    pub first_lost: Vec<(usize, &'static str)>,
}

impl Unread {
    /// Records an unreadable line that may describe a network.
    pub fn note(&mut self, line: usize, expected: &'static str) {
        self.note_part(line, expected);
        self.lost += 1;
        if self.first_lost.len() < TOLD {
            self.first_lost.push((line, expected));
        }
    }

    /// Records an unreadable line of a known network.
    pub fn note_part(&mut self, line: usize, expected: &'static str) {
        self.count += 1;
        if self.first.len() < TOLD {
            self.first.push((line, expected));
        }
    }
}

/// Parsed content of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Format of the file.
    pub format: Format,
    /// Received networks.
    pub heard: Vec<Bss>,
    /// Configured and enabled networks.
    pub configured: Vec<Wlan>,
    /// The user's own radios.
    pub radios: Vec<Radio>,
    /// Number of the user's own access points; `None` if unknown.
    pub access_points: Option<usize>,
    /// Ids of the RADIUS profiles; `None` if unknown.
    pub profiles: Option<BTreeSet<String>>,
    /// RADIUS profiles that networks refer to: index in `configured`, and id.
    pub asks: Vec<(usize, Option<String>)>,
    /// Number of networks outside of 2.4, 5 and 6 GHz, for which there are no rules.
    pub other_bands: usize,
    /// Lines of a log about a lost RADIUS profile.
    pub lost_profile: Option<LostProfile>,
    /// Unreadable lines.
    pub unread: Unread,
}

impl Reading {
    /// Creates an empty reading.
    #[must_use]
    pub fn new(format: Format) -> Self {
        Self {
            format,
            heard: Vec::new(),
            configured: Vec::new(),
            radios: Vec::new(),
            access_points: None,
            profiles: None,
            asks: Vec::new(),
            other_bands: 0,
            lost_profile: None,
            unread: Unread::default(),
        }
    }
}

/// Reasons why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The file is empty.
    #[error("it is empty; expected {EXPECTED}")]
    Empty,
    /// The format is unknown.
    #[error("line {line}: this is none of the formats that are read; expected {EXPECTED}")]
    Unknown {
        /// The first line with content.
        line: usize,
    },
    /// The text is not valid JSON.
    #[error("line {line}, column {column}: not JSON: {what}")]
    Json {
        /// Line number, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// Message of the JSON parser.
        what: String,
    },
    /// The JSON does not come from a UniFi controller.
    #[error(
        "this JSON holds no networks, devices or neighbours of a UniFi controller; expected the answer of rest/wlanconf, stat/device or stat/rogueap, or these collections in one object"
    )]
    OtherJson,
    /// The controller answered with an error.
    #[error("line {line}: the controller refused to answer: log in again and export once more")]
    Refused {
        /// Line number, from 1.
        line: usize,
    },
    /// The file is an encrypted backup of a controller.
    #[error(
        "this is an encrypted backup of a controller (.unf), which is not read; save the answers of rest/wlanconf, stat/device and stat/rogueap instead"
    )]
    Backup,
    /// A required column is missing.
    #[error("line {line}: no column {column}; expected the heading of a {format}")]
    Column {
        /// Line number, from 1.
        line: usize,
        /// Name of the column.
        column: &'static str,
        /// Detected format.
        format: Format,
    },
    /// The file contains too many networks.
    #[error("line {line}: more than {MOST} networks; split the file")]
    TooMany {
        /// Line number, from 1.
        line: usize,
    },
}

/// List of supported formats, for messages.
const EXPECTED: &str = "what `iw dev wlan0 scan` prints, JSON or server.log of a UniFi controller, hostapd.conf, \
     a Kismet list (Network;NetType;ESSID;…) or a WiGLE list (WigleWifi-1.…)";
