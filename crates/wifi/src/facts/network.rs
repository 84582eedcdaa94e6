//! The properties of one network: all radios that send its name, and what is configured under it.

use super::air::{Air, Device, device};
use super::{Named, counts, put};
use crate::channel::{Band, Channel};
use crate::reading::{Bss, Wlan};
use crate::security::{Pmf, Security};
use crate::ssid::Ssid;
use assay_model::{Facts, Place, Subject};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A record and its place.
struct At<'a, T> {
    path: &'a str,
    file: usize,
    what: &'a T,
}

impl<T> At<'_, T> {
    fn place(&self, line: usize, begin: usize) -> Place {
        let line = if line > 0 { line } else { begin };
        Place::File {
            path: self.path.to_owned(),
            line: (line > 0).then_some(line),
            span: None,
        }
    }
}

/// A network.
#[derive(Default)]
pub(super) struct Network<'a> {
    heard: Vec<At<'a, Bss>>,
    configured: Vec<At<'a, Wlan>>,
    /// Access points that the export with its configuration lists.
    listed: Option<usize>,
}

/// The networks of some files, by name.
pub(super) fn networks<'a>(files: &'a [Named<'_>]) -> BTreeMap<&'a Ssid, Network<'a>> {
    let mut found: BTreeMap<&Ssid, Network<'_>> = BTreeMap::new();
    for (number, file) in files.iter().enumerate() {
        for bss in file.reading.heard.iter().filter(|bss| counts(bss)) {
            found.entry(&bss.ssid).or_default().heard.push(At {
                path: file.path,
                file: number,
                what: bss,
            });
        }
        for wlan in &file.reading.configured {
            let network = found.entry(&wlan.ssid).or_default();
            network.listed = network.listed.max(file.reading.access_points);
            network.configured.push(At {
                path: file.path,
                file: number,
                what: wlan,
            });
        }
    }
    found
}

/// A count and the first place that makes it more than nothing.
#[derive(Default)]
struct Count {
    count: usize,
    place: Option<Place>,
}

impl Count {
    fn add(&mut self, place: impl FnOnce() -> Place) {
        self.count += 1;
        self.place.get_or_insert_with(place);
    }
}

/// Facts of one network while they are written.
struct Telling<'f> {
    facts: &'f mut Facts,
    subject: &'f Subject,
    /// Where the network is told first.
    place: Place,
}

impl Telling<'_> {
    fn value(&mut self, property: &str, value: impl Into<Value>, place: Option<&Place>) {
        let place = place.unwrap_or(&self.place).clone();
        put(self.facts, self.subject, property, value.into(), &place);
    }

    fn count(&mut self, property: &str, count: &Count) {
        self.value(property, count.count, count.place.as_ref());
    }
}

impl Network<'_> {
    /// Whether it is open and has a name that looks like that of a protected network of one's own.
    pub(super) fn imitates(&self, air: &Air) -> bool {
        let securities = self.securities();
        let open = securities.iter().any(|(known, ..)| known.is_open());
        let name = self.heard.first().map(|at| &at.what.ssid);
        let alike = name.and_then(|ssid| air.alike(ssid));
        open && alike.is_some_and(|(_, own)| own)
    }

    /// Writes all that is known of it. `own` says whether it is the user's, and who says so.
    pub(super) fn tell(
        &self,
        facts: &mut Facts,
        subject: &Subject,
        (own, whose): (bool, &str),
        air: &Air,
    ) {
        let first = self
            .configured
            .first()
            .map(|at| at.place(0, at.what.lines.begin));
        let heard = self
            .heard
            .first()
            .map(|at| at.place(0, at.what.lines.begin));
        let Some(place) = first.or(heard) else { return };
        let mut tell = Telling {
            facts,
            subject,
            place,
        };
        tell.value("name", subject.name(), None);
        tell.value("own", own, Some(&Place::Words(whose.to_owned())));
        tell.value("radios", self.heard.len(), None);
        let devices: BTreeSet<Device> = self
            .heard
            .iter()
            .map(|at| device(at.what.address, at.file, at.what.lines.begin))
            .collect();
        let devices = devices.len().max(self.listed.unwrap_or(0));
        tell.value("devices", devices, None);
        self.tell_security(&mut tell);
        self.tell_moving(&mut tell);
        self.tell_hidden(&mut tell);
        self.tell_rates(&mut tell);
        self.tell_channels(&mut tell, air);
        self.tell_likeness(&mut tell, air);
    }

    /// The securities on the air and in the configuration, each with its place.
    fn securities(&self) -> Vec<(&Security, Place, bool)> {
        let heard = self.heard.iter().filter_map(|at| {
            let lines = at.what.lines;
            let security = at.what.security.as_ref()?;
            Some((security, at.place(lines.security, lines.begin), true))
        });
        let configured = self.configured.iter().filter_map(|at| {
            let lines = at.what.lines;
            let security = at.what.security.as_ref()?;
            Some((security, at.place(lines.security, lines.begin), false))
        });
        heard.chain(configured).collect()
    }

    fn tell_security(&self, tell: &mut Telling<'_>) {
        let all = self.securities();
        if all.is_empty() {
            return;
        }
        let count = |is: &dyn Fn(&Security) -> bool, on_air: bool| {
            let mut count = Count::default();
            for (_, place, _) in all
                .iter()
                .filter(|(known, _, heard)| *heard == on_air && is(known))
            {
                count.add(|| place.clone());
            }
            count
        };
        let either = |is: &dyn Fn(&Security) -> bool| {
            let (mut air, configured) = (count(is, true), count(is, false));
            air.count += configured.count;
            air.place = air.place.or(configured.place);
            air
        };
        let secured_at_all = |known: &Security| !known.is_open();
        tell.count("open_air", &count(&Security::is_open, true));
        tell.count("protected_air", &count(&Security::is_protected, true));
        tell.count(
            "protected_configured",
            &count(&Security::is_protected, false),
        );
        tell.count("encrypted", &either(&secured_at_all));
        tell.count("wep", &either(&|known| known.wep));
        tell.count("wpa1", &self.old(|known| known.wpa1));
        tell.count("tkip", &self.old(|known| known.tkip));
        let kinds: BTreeSet<String> = all
            .iter()
            .filter(|(known, _, heard)| *heard && known.is_protected())
            .map(|(known, ..)| known.name())
            .collect();
        let unlike = all
            .iter()
            .filter(|(known, _, heard)| *heard && known.is_protected())
            .find(|(known, ..)| kinds.first().is_some_and(|first| *first != known.name()));
        let place = unlike.map(|(_, place, _)| place.clone());
        tell.value("kinds", kinds.len(), place.as_ref());
        let names: BTreeSet<String> = all.iter().map(|(known, ..)| known.name()).collect();
        let names: Vec<String> = names.into_iter().collect();
        tell.value("security", names, place.as_ref());
        let pmf: Vec<_> = all
            .iter()
            .filter(|(known, ..)| known.is_modern())
            .filter_map(|(known, place, _)| Some((known.pmf?, place)))
            .collect();
        if !pmf.is_empty() {
            let mut off = Count::default();
            for (_, place) in pmf.iter().filter(|(pmf, _)| *pmf == Pmf::Off) {
                off.add(|| (*place).clone());
            }
            tell.count("unprotected_frames", &off);
        }
        let radius = self.configured.iter().find_map(|at| {
            let lines = at.what.lines;
            Some((at.what.radius?, at.place(lines.security, lines.begin)))
        });
        if let Some((there, place)) = radius {
            tell.value("radius", there, Some(&place));
        }
    }

    /// What the first WPA brought. It has a line of its own in a scan.
    fn old(&self, is: fn(&Security) -> bool) -> Count {
        let mut count = Count::default();
        let has = |security: &Option<Security>| security.as_ref().is_some_and(is);
        for at in self.heard.iter().filter(|at| has(&at.what.security)) {
            let lines = at.what.lines;
            let line = match lines.first_wpa {
                0 => lines.security,
                line => line,
            };
            count.add(|| at.place(line, lines.begin));
        }
        for at in self.configured.iter().filter(|at| has(&at.what.security)) {
            count.add(|| at.place(at.what.lines.security, at.what.lines.begin));
        }
        count
    }

    /// What helps a client to move from one access point to the next.
    fn tell_moving(&self, tell: &mut Telling<'_>) {
        let mut on_off = |property: &str, known: Vec<(bool, Place)>| {
            if known.is_empty() {
                return;
            }
            let (mut on, mut off) = (Count::default(), Count::default());
            for (is_on, place) in known {
                match is_on {
                    true => on.add(|| place),
                    false => off.add(|| place),
                }
            }
            tell.count(&format!("{property}_on"), &on);
            tell.count(&format!("{property}_off"), &off);
        };
        let securities = self.securities();
        let fast = securities
            .iter()
            .filter(|(known, ..)| known.is_modern())
            .filter_map(|(known, place, _)| Some((known.ft?, place.clone())));
        on_off("fast", fast.collect());
        let of = |get: fn(&Bss) -> Option<bool>, configured: fn(&Wlan) -> Option<bool>| {
            let heard = self.heard.iter().filter_map(move |at| {
                let lines = at.what.lines;
                Some((get(at.what)?, at.place(lines.roaming, lines.begin)))
            });
            let wlans = self.configured.iter().filter_map(move |at| {
                let lines = at.what.lines;
                Some((configured(at.what)?, at.place(lines.roaming, lines.begin)))
            });
            heard.chain(wlans).collect::<Vec<_>>()
        };
        on_off(
            "neighbours",
            of(|bss| bss.neighbours, |wlan| wlan.neighbours),
        );
        on_off(
            "transition",
            of(|bss| bss.transition, |wlan| wlan.transition),
        );
    }

    fn tell_hidden(&self, tell: &mut Telling<'_>) {
        let mut hidden = Count::default();
        for at in self.heard.iter().filter(|at| at.what.hidden) {
            hidden.add(|| at.place(at.what.lines.hidden, at.what.lines.begin));
        }
        for at in self
            .configured
            .iter()
            .filter(|at| at.what.hidden == Some(true))
        {
            hidden.add(|| at.place(at.what.lines.hidden, at.what.lines.begin));
        }
        tell.count("hidden", &hidden);
    }

    /// Rates of 802.11b that every client has to know: 1, 2, 5.5 and 11 Mbit/s.
    fn tell_rates(&self, tell: &mut Telling<'_>) {
        let mut slow = Count::default();
        let mut lowest: Option<f64> = None;
        let mut known = false;
        for at in &self.heard {
            let rates = &at.what.basic_rates;
            let two = at
                .what
                .channel
                .is_some_and(|channel| channel.band == Band::Two);
            if !two || rates.is_empty() {
                continue;
            }
            known = true;
            if let Some(rate) = rates
                .iter()
                .filter(|rate| [10, 20, 55, 110].contains(*rate))
                .min()
            {
                slow.add(|| at.place(at.what.lines.rates, at.what.lines.begin));
                let rate = f64::from(*rate) / 10.0;
                lowest = Some(lowest.map_or(rate, |before| before.min(rate)));
            }
        }
        for at in &self.configured {
            let Some(slowest) = at.what.slowest else {
                continue;
            };
            known = true;
            if [1000, 2000, 5500, 11000].contains(&slowest) {
                slow.add(|| at.place(at.what.lines.rates, at.what.lines.begin));
                let rate = slowest as f64 / 1000.0;
                lowest = Some(lowest.map_or(rate, |before| before.min(rate)));
            }
        }
        if known {
            tell.count("slow_rates", &slow);
        }
        if let Some(lowest) = lowest {
            tell.value("lowest_rate", lowest, slow.place.as_ref());
        }
    }

    fn tell_channels(&self, tell: &mut Telling<'_>, air: &Air) {
        let mut channels: BTreeSet<Channel> = BTreeSet::new();
        let (mut off, mut radar, mut wide) = (Count::default(), Count::default(), Count::default());
        let mut crowded: Option<(usize, Channel, Place)> = None;
        let mut shared: Option<(usize, Channel, Place)> = None;
        let mut widths = false;
        for at in &self.heard {
            let Some(channel) = at.what.channel else {
                continue;
            };
            let lines = at.what.lines;
            let place = || at.place(lines.channel, lines.begin);
            channels.insert(channel);
            if air.off_plan(channel) {
                off.add(place);
            }
            if channel.yields_to_radar() {
                radar.add(place);
            }
            if let Some(width) = at.what.width.filter(|_| channel.band == Band::Two) {
                widths = true;
                if width > 20 {
                    wide.add(|| at.place(lines.width, lines.begin));
                }
            }
            let most = |found: &mut Option<(usize, Channel, Place)>, count: usize| {
                if found.as_ref().is_none_or(|(before, ..)| count > *before) {
                    *found = Some((count, channel, place()));
                }
            };
            if channel.band == Band::Two {
                most(&mut crowded, air.devices_on(channel));
            }
            // More access points than channels have to share some.
            let room = match channel.band {
                Band::Two => air.plan_size(),
                Band::Five | Band::Six => usize::MAX,
            };
            if air.own_in(channel.band) <= room {
                most(&mut shared, air.own_on(channel));
            }
        }
        if channels.is_empty() {
            return;
        }
        let names: Vec<String> = channels.iter().map(Channel::to_string).collect();
        tell.value("channels", names, off.place.as_ref());
        tell.count("off_plan", &off);
        tell.count("radar", &radar);
        if widths {
            tell.count("wide_two", &wide);
        }
        if let Some((count, channel, place)) = crowded {
            let (quiet, devices) = air.quietest();
            tell.value("crowd", count, Some(&place));
            tell.value("crowded", channel.to_string(), Some(&place));
            tell.value("quiet", quiet, Some(&place));
            tell.value("quiet_crowd", devices, Some(&place));
        }
        if let Some((count, channel, place)) = shared {
            tell.value("sharing", count, Some(&place));
            tell.value("shared", channel.to_string(), Some(&place));
        }
    }

    /// A network without a secret whose name looks like that of one with a secret.
    fn tell_likeness(&self, tell: &mut Telling<'_>, air: &Air) {
        let securities = self.securities();
        let open = securities.iter().find(|(known, ..)| known.is_open());
        let protected = securities.iter().any(|(known, ..)| known.is_protected());
        if let (Some((_, place, _)), false) = (open, protected) {
            let alike = self
                .heard
                .first()
                .map(|at| &at.what.ssid)
                .and_then(|ssid| air.alike(ssid));
            if let Some((name, own)) = alike {
                tell.value("alike", name.shown(), Some(place));
                tell.value("alike_own", own, Some(place));
            }
        }
    }
}
