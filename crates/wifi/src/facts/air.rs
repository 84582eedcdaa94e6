//! Analyses how the networks of all files share the spectrum.

use super::{WifiFile, counts};
use crate::address::{Address, Family};
use crate::channel::{Band, Channel};
use crate::reading::Bss;
use crate::ssid::Ssid;
use std::collections::{BTreeMap, BTreeSet};

/// Sets of 20 MHz channels in 2.4 GHz that do not overlap. The set of four channels is possible where channel 13 is
/// permitted and no device uses 802.11b.
const PLANS: [&[u16]; 2] = [&[1, 6, 11], &[1, 5, 9, 13]];

/// Networks and devices by channel.
pub(super) struct Air {
    /// For each channel, the number of devices, and how many of them are the user's own.
    channels: BTreeMap<Channel, Devices>,
    /// Set of channels that the user's own 2.4 GHz access points use.
    plan: &'static [u16],
    /// Names of protected networks, grouped by how they look. The flag of a name is whether the network is the user's
    /// own.
    protected: BTreeMap<String, BTreeMap<Ssid, bool>>,
    /// Number of the user's own devices in each band.
    own: BTreeMap<Band, usize>,
    /// Quietest channel of the set, and its number of devices (see [`Air::quietest`]).
    quietest: (u16, usize),
}

/// A device, which is identified by its address. A record without an address counts as one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Device {
    Known(Family),
    Record(usize, usize),
}

#[derive(Default)]
struct Devices {
    all: BTreeSet<Device>,
    own: BTreeSet<Device>,
}

/// Returns the device to which a record belongs.
pub(super) fn device(address: Option<Address>, file: usize, line: usize) -> Device {
    match address {
        Some(address) => Device::Known(address.family()),
        None => Device::Record(file, line),
    }
}

impl Air {
    pub(super) fn new(files: &[WifiFile<'_>], is_own: &impl Fn(&Ssid) -> bool) -> Self {
        let mut air = Self {
            channels: BTreeMap::new(),
            plan: PLANS[0],
            protected: BTreeMap::new(),
            own: BTreeMap::new(),
            quietest: (0, 0),
        };
        let mut used: BTreeSet<u16> = BTreeSet::new();
        for (number, file) in files.iter().enumerate() {
            for bss in file.reading.heard.iter().filter(|bss| counts(bss)) {
                air.hear(bss, number, is_own(&bss.ssid), &mut used);
            }
            for wlan in &file.reading.configured {
                if wlan
                    .security
                    .as_ref()
                    .is_some_and(|known| known.is_protected())
                {
                    air.know(&wlan.ssid, is_own(&wlan.ssid));
                }
            }
            for radio in &file.reading.radios {
                let two = radio.channel.filter(|channel| channel.band == Band::Two);
                used.extend(two.map(|channel| channel.number));
            }
        }
        let follows = |plan: &&&[u16]| used.iter().all(|number| plan.contains(number));
        air.plan = PLANS.iter().find(follows).copied().unwrap_or(PLANS[0]);
        // Every network needs these counts, so they are computed once.
        air.own = [Band::Two, Band::Five, Band::Six]
            .map(|band| (band, air.count_own(band)))
            .into();
        air.quietest = air.find_quietest();
        air
    }

    fn hear(&mut self, bss: &Bss, file: usize, own: bool, used: &mut BTreeSet<u16>) {
        let device = device(bss.address, file, bss.lines.begin);
        if let Some(channel) = bss.channel {
            let devices = self.channels.entry(channel).or_default();
            devices.all.insert(device);
            if own {
                devices.own.insert(device);
            }
            if own && channel.band == Band::Two {
                used.insert(channel.number);
            }
        }
        if bss.security.as_ref().is_some_and(|known| known.is_modern()) {
            self.know(&bss.ssid, own);
        }
    }

    fn know(&mut self, ssid: &Ssid, own: bool) {
        if let Some(folded) = ssid.folded() {
            let names = self.protected.entry(folded).or_default();
            names.insert(ssid.clone(), own);
        }
    }

    /// Returns whether a 2.4 GHz channel is not in the set and overlaps a channel of the set.
    pub(super) fn off_plan(&self, channel: Channel) -> bool {
        !self.overlapped(channel).is_empty()
    }

    /// Returns the channels of the set that this channel overlaps. Returns none for a channel of the set.
    pub(super) fn overlapped(&self, channel: Channel) -> Vec<u16> {
        let band = Band::Two;
        let mut plan: Vec<u16> = self.plan.to_vec();
        plan.retain(|number| {
            channel.overlaps(Channel {
                band,
                number: *number,
            })
        });
        match self.plan.contains(&channel.number) {
            true => Vec::new(),
            false => plan,
        }
    }

    /// Returns another protected network whose name looks the same, and whether that network is the user's own. Prefers
    /// the user's own networks.
    pub(super) fn alike(&self, ssid: &Ssid) -> Option<(&Ssid, bool)> {
        let names = self.protected.get(&ssid.folded()?)?;
        let others = names.iter().filter(|(name, _)| *name != ssid);
        let (name, own) = others.max_by_key(|(_, own)| **own)?;
        Some((name, *own))
    }

    /// Returns the number of devices on a channel.
    pub(super) fn devices_on(&self, channel: Channel) -> usize {
        self.channels
            .get(&channel)
            .map_or(0, |devices| devices.all.len())
    }

    /// Returns the number of the user's own devices on a channel.
    pub(super) fn own_on(&self, channel: Channel) -> usize {
        self.channels
            .get(&channel)
            .map_or(0, |devices| devices.own.len())
    }

    /// Returns the number of the user's own devices in a band.
    pub(super) fn own_in(&self, band: Band) -> usize {
        self.own.get(&band).copied().unwrap_or(0)
    }

    fn count_own(&self, band: Band) -> usize {
        let channels = self
            .channels
            .iter()
            .filter(|(channel, _)| channel.band == band);
        let own: BTreeSet<&Device> = channels.flat_map(|(_, devices)| &devices.own).collect();
        own.len()
    }

    /// Returns the channel of the set with the fewest devices, and their number. Devices on overlapping channels count
    /// too.
    pub(super) fn quietest(&self) -> (u16, usize) {
        self.quietest
    }

    fn find_quietest(&self) -> (u16, usize) {
        let near = |number: u16| {
            let two = self.channels.iter().filter(move |(channel, _)| {
                channel.band == Band::Two && channel.number.abs_diff(number) < 5
            });
            let heard: BTreeSet<&Device> = two.flat_map(|(_, devices)| &devices.all).collect();
            heard.len()
        };
        let counted = self.plan.iter().map(|number| (near(*number), *number));
        let (count, number) = counted.min().unwrap_or_default();
        (number, count)
    }

    /// Returns how many 2.4 GHz channels are in the set.
    pub(super) fn plan_size(&self) -> usize {
        self.plan.len()
    }
}
