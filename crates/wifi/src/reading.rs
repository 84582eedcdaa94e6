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
/// Number of unreadable lines that are reported one by one; further ones are only counted.
const TOLD: usize = 3;

/// File formats that can be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Output of `iw dev wlan0 scan`.
    Iw,
    /// Answers of a UniFi controller, or its database collections as JSON.
    Unifi,
    /// List of Kismet before 2010, separated by semicolons. airodump-ng still writes this format.
    Kismet,
    /// List of WiGLE. Kismet's `kismetdb_to_wiglecsv` also writes this format.
    Wigle,
    /// Configuration file hostapd.conf.
    Hostapd,
    /// Log server.log of a UniFi controller.
    UnifiLog,
}

impl Format {
    /// Returns whether findings may show lines of the file. JSON lines are not shown, because they may contain
    /// passwords. Findings never refer to the password lines of hostapd.conf.
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

/// A network as received from one radio (a basic service set).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bss {
    /// Address of the radio; `None` if the file does not contain it.
    pub address: Option<Address>,
    /// Name of the network (SSID); empty if the file does not contain the name.
    pub ssid: Ssid,
    /// Whether the network does not broadcast its name (hidden SSID).
    pub hidden: bool,
    /// Channel of the radio; `None` if unknown.
    pub channel: Option<Channel>,
    /// Channel width in MHz; `None` if unknown.
    pub width: Option<u16>,
    /// Received signal strength in dBm; `None` if unknown.
    pub signal: Option<i32>,
    /// Security settings of the network; `None` if unknown.
    pub security: Option<Security>,
    /// Basic rates in units of 100 kbit/s. Every client must support these rates.
    pub basic_rates: Vec<u32>,
    /// Whether neighbour reports (802.11k) are supported; `None` if unknown.
    pub neighbours: Option<bool>,
    /// Whether BSS transition (802.11v) is supported; `None` if unknown.
    pub transition: Option<bool>,
    /// Whether the sender is a direct connection or a mesh instead of an access point.
    pub direct: bool,
    /// Vendor of the address; `None` if the file does not contain it.
    pub vendor: Option<String>,
    /// Whether the network belongs to an Enhanced Open pair, which consists of an open network and a hidden encrypted
    /// network.
    pub owe_transition: bool,
    /// Whether the address was masked, so that networks of the same device cannot be recognised.
    pub masked: bool,
    /// First unreadable line of the record with a description of the expected content; `None` if all lines are
    /// readable.
    pub unread: Option<(usize, &'static str)>,
    /// Line numbers of the properties, from 1.
    pub lines: Lines,
}

/// Line numbers of properties, from 1. A 0 stands for the first line of the record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// Number of the record's first line.
    pub begin: usize,
    /// Line with the security settings.
    pub security: usize,
    /// Line with the element of the original WPA.
    pub first_wpa: usize,
    /// Line with the ciphers, if they include TKIP.
    pub tkip: usize,
    /// Line with the protection of management frames.
    pub pmf: usize,
    /// Line with the channel.
    pub channel: usize,
    /// Line with the channel width.
    pub width: usize,
    /// Line with the basic rates.
    pub rates: usize,
    /// Line which shows that the network is hidden.
    pub hidden: usize,
    /// Line with the roaming protocols.
    pub roaming: usize,
}

/// A network in the configuration of an access point or controller.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wlan {
    /// Name of the network.
    pub ssid: Ssid,
    /// Security settings; `None` if unknown.
    pub security: Option<Security>,
    /// Whether the RADIUS profile of the network exists; `None` if the network needs no profile, or if the file does
    /// not contain this.
    pub radius: Option<bool>,
    /// Whether the network does not broadcast its name (hidden SSID); `None` if unknown.
    pub hidden: Option<bool>,
    /// Whether 802.11k is enabled; `None` if unknown.
    pub neighbours: Option<bool>,
    /// Whether 802.11v is enabled; `None` if unknown.
    pub transition: Option<bool>,
    /// Lowest rate in 2.4 GHz, in kbit/s; `None` if not configured.
    pub slowest: Option<u64>,
    /// Whether the network belongs to an Enhanced Open pair, which consists of an open network and a hidden encrypted
    /// network.
    pub owe_transition: bool,
    /// Whether this is a guest network with a sign-in page.
    pub guest: bool,
    /// First unreadable line of the record with a description of the expected content; `None` if all lines are
    /// readable.
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
    /// Channel of the radio; `None` for automatic selection.
    pub channel: Option<Channel>,
    /// Channel width in MHz.
    pub width: Option<u16>,
    /// Number of the line with the channel, from 1.
    pub channel_line: usize,
    /// Number of the line with the channel width, from 1.
    pub width_line: usize,
}

/// Lines in a controller's log about a network with 802.1X whose RADIUS profile was lost. These lines do not contain
/// the name of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostProfile {
    /// Number of the newest of these lines, from 1.
    pub line: usize,
    /// Date of the newest line, such as `2017-01-18`.
    pub date: String,
    /// Number of log lines about a lost RADIUS profile.
    pub count: usize,
}

/// Lines of a file that cannot be read, as far as they are reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    /// Number of all unreadable lines.
    pub count: usize,
    /// First unreadable lines, each with its number from 1 and a description of the expected content.
    pub first: Vec<(usize, &'static str)>,
    /// Number of unreadable lines that belong to no known network.
    pub lost: usize,
    /// First of the lines that belong to no known network, in the same form as `first`.
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

/// Content of a file after parsing.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Detected format of the file.
    pub format: Format,
    /// Networks that were received by radio.
    pub heard: Vec<Bss>,
    /// Networks that are configured and enabled.
    pub configured: Vec<Wlan>,
    /// Radios of the user's own access points, from the configuration.
    pub radios: Vec<Radio>,
    /// Number of the user's own access points; `None` if unknown.
    pub access_points: Option<usize>,
    /// Ids of the RADIUS profiles that exist; `None` if unknown.
    pub profiles: Option<BTreeSet<String>>,
    /// References from networks to RADIUS profiles: each is an index in `configured`, and the id of the profile.
    pub asks: Vec<(usize, Option<String>)>,
    /// Number of networks outside of 2.4, 5 and 6 GHz, for which there are no checks.
    pub other_bands: usize,
    /// Lines of a controller's log about a lost RADIUS profile; `None` without such lines.
    pub lost_profile: Option<LostProfile>,
    /// Lines that cannot be read.
    pub unread: Unread,
}

impl Reading {
    /// Creates a reading without records.
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

/// Reason why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The file is empty.
    #[error("it is empty; expected {EXPECTED}")]
    Empty,
    /// The format is unknown.
    #[error("line {line}: this is none of the formats that are read; expected {EXPECTED}")]
    Unknown {
        /// First line that is not empty.
        line: usize,
    },
    /// The file starts like JSON, but is not valid JSON.
    #[error("line {line}, column {column}: not JSON: {what}")]
    Json {
        /// Line number, from 1.
        line: usize,
        /// Number of the column, from 1.
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
    /// The file is an encrypted backup of a controller, which assay cannot read.
    #[error(
        "this is an encrypted backup of a controller (.unf), which is not read; save the answers of rest/wlanconf, stat/device and stat/rogueap instead"
    )]
    Backup,
    /// A list lacks a required column.
    #[error("line {line}: no column {column}; expected the heading of a {format}")]
    Column {
        /// Line number, from 1.
        line: usize,
        /// Name of the missing column.
        column: &'static str,
        /// Format of the list.
        format: Format,
    },
    /// The file contains too many networks.
    #[error("line {line}: more than {MOST} networks; split the file")]
    TooMany {
        /// Number of the line from which there are too many networks.
        line: usize,
    },
}

/// List of supported formats, for messages.
const EXPECTED: &str = "what `iw dev wlan0 scan` prints, JSON or server.log of a UniFi controller, hostapd.conf, \
     a Kismet list (Network;NetType;ESSID;…) or a WiGLE list (WigleWifi-1.…)";
