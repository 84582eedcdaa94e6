//! What a file tells: networks on the air, networks that are configured, radios, and what of it could not
//! be read.

use crate::address::Address;
use crate::channel::Channel;
use crate::security::Security;
use crate::ssid::Ssid;
use std::collections::BTreeSet;
use std::fmt;

/// More networks than this are not taken from one file.
pub const MOST: usize = 200_000;
/// A line that is longer is not read.
pub const LONGEST_LINE: usize = 64 * 1024;
/// How many lines that could not be read are told one by one.
const TOLD: usize = 3;

/// The formats that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// What `iw dev wlan0 scan` prints.
    Iw,
    /// What a UniFi controller answers, or its collections as JSON.
    Unifi,
    /// The list of Kismet before 2010, which airodump-ng still writes: fields with semicolons between.
    Kismet,
    /// The list of WiGLE, which Kismet's `kismetdb_to_wiglecsv` writes too.
    Wigle,
    /// hostapd.conf.
    Hostapd,
}

impl Format {
    /// Whether a line of it may be shown: one of JSON holds passwords. Lines of hostapd.conf that do are never
    /// pointed at.
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
        })
    }
}

/// One network of one radio, as it was heard.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bss {
    /// Its address; none where the file has none.
    pub address: Option<Address>,
    /// Its name.
    pub ssid: Ssid,
    /// Whether it keeps its name to itself.
    pub hidden: bool,
    /// Where it sends.
    pub channel: Option<Channel>,
    /// How much of the band it takes, in MHz.
    pub width: Option<u16>,
    /// How strong it was heard, in dBm.
    pub signal: Option<i32>,
    /// How it is secured.
    pub security: Option<Security>,
    /// Rates that every client has to know, in units of 100 kbit/s.
    pub basic_rates: Vec<u32>,
    /// Whether it answers with its neighbours (802.11k).
    pub neighbours: Option<bool>,
    /// Whether it suggests where to go (802.11v, BSS transition).
    pub transition: Option<bool>,
    /// No access point: a direct connection of devices, or a mesh.
    pub direct: bool,
    /// The maker of the address, where the file names it.
    pub vendor: Option<String>,
    /// It is one half of a pair of an open network and one with Enhanced Open, whose name is hidden.
    pub owe_transition: bool,
    /// Its address was masked, so that nobody can tell which networks are of one device.
    pub masked: bool,
    /// The first line of it that could not be read, and what was expected.
    pub unread: Option<(usize, &'static str)>,
    /// Lines that say so, from 1.
    pub lines: Lines,
}

/// Lines of a file, from 1; those that are 0 are that of the thing itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// Where it begins.
    pub begin: usize,
    /// Its security.
    pub security: usize,
    /// The element of the first WPA.
    pub first_wpa: usize,
    /// The ciphers, where TKIP is one of them.
    pub tkip: usize,
    /// Whether management frames are protected.
    pub pmf: usize,
    /// Its channel.
    pub channel: usize,
    /// Its width.
    pub width: usize,
    /// Its basic rates.
    pub rates: usize,
    /// Whether it is hidden.
    pub hidden: usize,
    /// Whether it helps clients to move.
    pub roaming: usize,
}

/// A network as it is configured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wlan {
    /// Its name.
    pub ssid: Ssid,
    /// How it should be secured.
    pub security: Option<Security>,
    /// Whether it names a RADIUS profile that is there; none where it needs none, or that is not told.
    pub radius: Option<bool>,
    /// Whether its name is kept back.
    pub hidden: Option<bool>,
    /// Whether 802.11k is on.
    pub neighbours: Option<bool>,
    /// Whether 802.11v is on.
    pub transition: Option<bool>,
    /// The slowest rate in 2.4 GHz, in kbit/s; none where nothing is said.
    pub slowest: Option<u64>,
    /// It is one half of a pair of an open network and one with Enhanced Open, whose name is hidden.
    pub owe_transition: bool,
    /// It is meant for guests, who are let in by a page of their own.
    pub guest: bool,
    /// The first line of it that could not be read, and what was expected.
    pub unread: Option<(usize, &'static str)>,
    /// Lines that say so.
    pub lines: Lines,
}

/// A radio of an access point of one's own, as it is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Radio {
    /// Name of its access point.
    pub access_point: String,
    /// Which of its radios: `2.4 GHz`.
    pub band: crate::channel::Band,
    /// Its channel; none where it chooses by itself.
    pub channel: Option<Channel>,
    /// Its width in MHz.
    pub width: Option<u16>,
    /// Line of the channel.
    pub channel_line: usize,
    /// Line of the width.
    pub width_line: usize,
}

/// Lines that could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    /// How many.
    pub count: usize,
    /// The first of them: line from 1, and what was expected.
    pub first: Vec<(usize, &'static str)>,
    /// How many belong to no network that is known all the same.
    pub lost: usize,
    /// The first of these.
    pub first_lost: Vec<(usize, &'static str)>,
}

impl Unread {
    /// Notes one that may have been a network.
    pub fn note(&mut self, line: usize, expected: &'static str) {
        self.note_part(line, expected);
        self.lost += 1;
        if self.first_lost.len() < TOLD {
            self.first_lost.push((line, expected));
        }
    }

    /// Notes one of a network that is known, and notes it there, too.
    pub fn note_part(&mut self, line: usize, expected: &'static str) {
        self.count += 1;
        if self.first.len() < TOLD {
            self.first.push((line, expected));
        }
    }
}

/// All that a file tells.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Its format.
    pub format: Format,
    /// What was heard.
    pub heard: Vec<Bss>,
    /// What is configured; only that is switched on.
    pub configured: Vec<Wlan>,
    /// Radios of one's own.
    pub radios: Vec<Radio>,
    /// Access points of one's own; none where the file does not tell.
    pub access_points: Option<usize>,
    /// Ids of RADIUS profiles; none where the file does not tell.
    pub profiles: Option<BTreeSet<String>>,
    /// Ids of the profiles that networks ask for, by their place in `configured`.
    pub asks: Vec<(usize, Option<String>)>,
    /// Networks outside of 2.4, 5 and 6 GHz, which no rule is about.
    pub other_bands: usize,
    /// What could not be read.
    pub unread: Unread,
}

impl Reading {
    /// An empty one.
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
            unread: Unread::default(),
        }
    }
}

/// Why nothing of a file can be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It holds nothing.
    #[error("it is empty; expected {EXPECTED}")]
    Empty,
    /// Its content is none of what is read.
    #[error("line {line}: this is none of the formats that are read; expected {EXPECTED}")]
    Unknown {
        /// The first line that says something.
        line: usize,
    },
    /// It is no JSON.
    #[error("line {line}, column {column}: not JSON: {what}")]
    Json {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// What the reader says.
        what: String,
    },
    /// JSON of something else.
    #[error(
        "this JSON holds no networks, devices or neighbours of a UniFi controller; expected the answer of rest/wlanconf, stat/device or stat/rogueap, or these collections in one object"
    )]
    OtherJson,
    /// The controller answered with an error.
    #[error("line {line}: the controller refused to answer: log in again and export once more")]
    Refused {
        /// From 1.
        line: usize,
    },
    /// A controller's backup.
    #[error(
        "this is an encrypted backup of a controller (.unf), which is not read; save the answers of rest/wlanconf, stat/device and stat/rogueap instead"
    )]
    Backup,
    /// A column that is needed is missing.
    #[error("line {line}: no column {column}; expected the heading of a {format}")]
    Column {
        /// From 1.
        line: usize,
        /// Its name.
        column: &'static str,
        /// What the file claims to be.
        format: Format,
    },
    /// It has too many networks.
    #[error("line {line}: more than {MOST} networks; split the file")]
    TooMany {
        /// From 1.
        line: usize,
    },
}

/// What is read, for messages.
const EXPECTED: &str = "what `iw dev wlan0 scan` prints, JSON of a UniFi controller, hostapd.conf, a Kismet list (Network;NetType;ESSID;…) or a WiGLE list (WigleWifi-1.…)";
