//! Computes the properties of one network from all radios that have its name, and from its configuration.

use super::air::{Air, Device, device};
use super::{WifiFile, counts, put, put_unknown};
use crate::channel::{Band, Channel};
use crate::reading::{Bss, Lines, Wlan};
use crate::security::{Pmf, Security};
use crate::ssid::Ssid;
use assay_model::{FactPlace, Facts, Subject};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A record, with its file and line.
struct At<'a, T> {
    path: &'a str,
    file: usize,
    what: &'a T,
}

impl<T> At<'_, T> {
    fn place(&self, line: usize, begin: usize) -> FactPlace {
        let line = if line > 0 { line } else { begin };
        FactPlace::File {
            path: self.path.to_owned(),
            line: (line > 0).then_some(line),
            span: None,
        }
    }
}

/// All records of one network.
#[derive(Default)]
pub(super) struct Network<'a> {
    heard: Vec<At<'a, Bss>>,
    configured: Vec<At<'a, Wlan>>,
    /// Number of access points in the export that configures the network; `None` without an export.
    listed: Option<usize>,
}

/// Groups the records of all files by the name of the network.
pub(super) fn networks<'a>(files: &'a [WifiFile<'_>]) -> BTreeMap<&'a Ssid, Network<'a>> {
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

/// Number of records, and the place of the first one.
#[derive(Default)]
struct Count {
    count: usize,
    place: Option<FactPlace>,
}

impl Count {
    fn add(&mut self, place: impl FnOnce() -> FactPlace) {
        self.count += 1;
        self.place.get_or_insert_with(place);
    }
}

/// Writes the facts of one network to the collection.
struct Telling<'f> {
    facts: &'f mut Facts,
    subject: &'f Subject,
    /// Place of the network's first record.
    place: FactPlace,
}

impl Telling<'_> {
    fn value(&mut self, property: &str, value: impl Into<Value>, place: Option<&FactPlace>) {
        let place = place.unwrap_or(&self.place).clone();
        put(self.facts, self.subject, property, value.into(), &place);
    }

    fn unknown(&mut self, property: &str, why: &str) {
        let fact = assay_model::Fact {
            value: assay_model::FactValue::Unknown(why.to_owned()),
            place: self.place.clone(),
            kind: assay_model::FactKind::Runtime,
            subject: self.subject.clone(),
        };
        self.facts
            .map
            .insert(format!("{}.{property}", self.subject), fact);
    }

    fn count(&mut self, property: &str, count: &Count) {
        self.value(property, count.count, count.place.as_ref());
    }
}

impl Network<'_> {
    /// Returns whether the network is open and has a name that looks like the name of a protected network of the user.
    pub(super) fn imitates(&self, air: &Air) -> bool {
        let securities = self.securities();
        let open = securities.iter().any(|(known, ..)| known.is_open());
        let name = self.heard.first().map(|at| &at.what.ssid);
        let alike = name.and_then(|ssid| air.alike(ssid));
        open && alike.is_some_and(|(_, own)| own)
    }

    /// Writes all facts of the network. `own` is whether the network belongs to the user, and from which source this is
    /// known.
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
        if let Some((path, (line, expected))) = self.unread() {
            let why = format!("line {line}: {expected} was expected");
            return put_unknown(facts, subject, &why, path, Some(line));
        }
        let mut tell = Telling {
            facts,
            subject,
            place,
        };
        tell.value("name", subject.name(), None);
        tell.value("own", own, Some(&FactPlace::Words(whose.to_owned())));
        tell.value("radios", self.heard.len(), None);
        let devices: BTreeSet<Device> = self
            .heard
            .iter()
            .map(|at| device(at.what.address, at.file, at.what.lines.begin))
            .collect();
        let devices = devices.len().max(self.listed.unwrap_or(0));
        // Without addresses, two radios may belong to one device.
        let masked = self.heard.iter().filter(|at| at.what.masked).count();
        let told_apart = masked == 0 || self.heard.len() == 1;
        if told_apart {
            tell.value("devices", devices, None);
        } else {
            let why = "which radios are of one device is not known: addresses are masked";
            tell.unknown("devices", why);
        }
        self.tell_security(&mut tell);
        self.tell_moving(&mut tell);
        self.tell_hidden(&mut tell);
        self.tell_rates(&mut tell);
        self.tell_channels(&mut tell, air);
        self.tell_likeness(&mut tell, air);
    }

    /// Returns the first unreadable line of the network, and the file of this line.
    fn unread(&self) -> Option<(&str, (usize, &'static str))> {
        let heard = self.heard.iter().map(|at| (at.path, at.what.unread));
        let configured = self.configured.iter().map(|at| (at.path, at.what.unread));
        let mut all = heard.chain(configured);
        all.find_map(|(path, unread)| Some((path, unread?)))
    }

    /// Counts received and configured networks that are probably open by mistake. Excludes guest networks and the open
    /// half of Enhanced Open pairs.
    fn count_open(&self) -> Count {
        let open = |security: &Option<Security>| security.as_ref().is_some_and(Security::is_open);
        let guest = self.configured.iter().any(|at| at.what.guest);
        let mut count = Count::default();
        for at in &self.configured {
            let lines = at.what.lines;
            if open(&at.what.security) && !at.what.owe_transition && !guest {
                count.add(|| at.place(lines.security, lines.begin));
            }
        }
        for at in &self.heard {
            let lines = at.what.lines;
            if open(&at.what.security) && !at.what.owe_transition && !guest {
                count.add(|| at.place(lines.security, lines.begin));
            }
        }
        count
    }

    /// Returns all received and configured security settings with their places.
    fn securities(&self) -> Vec<(&Security, FactPlace, bool)> {
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
        tell.count("open_own", &self.count_open());
        let first = self.old(|known| known.wpa1, |lines| lines.first_wpa);
        let tkip = self.old(|known| known.tkip, |lines| lines.tkip);
        let old = [("WPA1", &first), ("TKIP", &tkip)];
        let old: Vec<&str> = old
            .iter()
            .filter(|(_, count)| count.count > 0)
            .map(|(name, _)| *name)
            .collect();
        let place = tkip.place.as_ref().or(first.place.as_ref());
        tell.value("old", old, place);
        tell.count("wpa1", &first);
        tell.count("tkip", &tkip);
        // 6 GHz permits only WPA3, so a different security there is no fault.
        let kinds: Vec<(String, FactPlace)> = self
            .heard
            .iter()
            .filter(|at| {
                at.what
                    .channel
                    .is_none_or(|channel| channel.band != Band::Six)
            })
            .filter_map(|at| {
                let security = at
                    .what
                    .security
                    .as_ref()
                    .filter(|known| known.is_protected())?;
                let lines = at.what.lines;
                Some((security.name(), at.place(lines.security, lines.begin)))
            })
            .collect();
        let first = kinds.first().map(|(name, _)| name);
        let unlike = kinds
            .iter()
            .find(|(name, _)| first.is_some_and(|first| first != name));
        let place = unlike.map(|(_, place)| place.clone());
        let different: BTreeSet<&String> = kinds.iter().map(|(name, _)| name).collect();
        tell.value("kinds", different.len(), place.as_ref());
        let names: BTreeSet<String> = all.iter().map(|(known, ..)| known.name()).collect();
        let names: Vec<String> = names.into_iter().collect();
        tell.value("security", names, place.as_ref());
        self.tell_frames(tell);
        let radius = self.configured.iter().find_map(|at| {
            let lines = at.what.lines;
            Some((at.what.radius?, at.place(lines.security, lines.begin)))
        });
        if let Some((there, place)) = radius {
            tell.value("radius", there, Some(&place));
        }
    }

    /// Writes whether management frames are protected. WPA3 and Enhanced Open require this protection, so they are
    /// counted separately.
    fn tell_frames(&self, tell: &mut Telling<'_>) {
        let (mut off, mut needed, mut known) = (Count::default(), Count::default(), (false, false));
        let heard = self.heard.iter().map(|at| {
            let lines = at.what.lines;
            (
                &at.what.security,
                lines,
                at.place(
                    if lines.pmf > 0 {
                        lines.pmf
                    } else {
                        lines.security
                    },
                    lines.begin,
                ),
            )
        });
        let configured = self.configured.iter().map(|at| {
            let lines = at.what.lines;
            (
                &at.what.security,
                lines,
                at.place(
                    if lines.pmf > 0 {
                        lines.pmf
                    } else {
                        lines.security
                    },
                    lines.begin,
                ),
            )
        });
        for (security, _, place) in heard.chain(configured) {
            let Some((security, pmf)) = security.as_ref().and_then(|one| Some((one, one.pmf?)))
            else {
                continue;
            };
            let is_off = pmf == Pmf::Off;
            match security.needs_protected_frames() {
                true => {
                    known.1 = true;
                    if is_off {
                        needed.add(|| place);
                    }
                }
                false if security.is_modern() => {
                    known.0 = true;
                    if is_off {
                        off.add(|| place);
                    }
                }
                false => {}
            }
        }
        if known.0 {
            tell.count("unprotected_frames", &off);
        }
        if known.1 {
            tell.count("needed_frames", &needed);
        }
    }

    /// Counts the records with an outdated setting of WPA. Also returns the line of the first one.
    fn old(&self, is: fn(&Security) -> bool, line: fn(&Lines) -> usize) -> Count {
        let mut count = Count::default();
        let has = |security: &Option<Security>| security.as_ref().is_some_and(is);
        let best = |lines: &Lines| match line(lines) {
            0 => lines.security,
            line => line,
        };
        for at in self.heard.iter().filter(|at| has(&at.what.security)) {
            let lines = at.what.lines;
            count.add(|| at.place(best(&lines), lines.begin));
        }
        for at in self.configured.iter().filter(|at| has(&at.what.security)) {
            let lines = at.what.lines;
            count.add(|| at.place(best(&lines), lines.begin));
        }
        count
    }

    /// Writes which roaming protocols (802.11k, v, r) the network supports.
    fn tell_moving(&self, tell: &mut Telling<'_>) {
        let mut on_off = |property: &str, known: Vec<(bool, FactPlace)>| {
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
        // The hidden half of an Enhanced Open pair must hide its name.
        let heard = self.heard.iter().filter(|at| at.what.hidden);
        for at in heard.filter(|at| !at.what.owe_transition) {
            hidden.add(|| at.place(at.what.lines.hidden, at.what.lines.begin));
        }
        for at in self
            .configured
            .iter()
            .filter(|at| at.what.hidden == Some(true) && !at.what.owe_transition)
        {
            hidden.add(|| at.place(at.what.lines.hidden, at.what.lines.begin));
        }
        tell.count("hidden", &hidden);
    }

    /// Writes the mandatory 802.11b rates: 1, 2, 5.5 and 11 Mbit/s.
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
        let (mut between, mut overlapped) = (BTreeSet::new(), BTreeSet::new());
        let masked = self.heard.iter().any(|at| at.what.masked);
        let mut crowded: Option<(usize, Channel, FactPlace)> = None;
        let mut shared: Option<(usize, Channel, FactPlace)> = None;
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
                between.insert(channel);
                overlapped.extend(air.overlapped(channel));
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
            let most = |found: &mut Option<(usize, Channel, FactPlace)>, count: usize| {
                if found.as_ref().is_none_or(|(before, ..)| count > *before) {
                    *found = Some((count, channel, place()));
                }
            };
            if channel.band == Band::Two {
                most(&mut crowded, air.devices_on(channel));
            }
            // With more access points than channels, some must share a channel.
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
        if off.count > 0 {
            let names: Vec<String> = between.iter().map(Channel::to_string).collect();
            tell.value("between", names, off.place.as_ref());
            let numbers: Vec<Value> = overlapped.into_iter().map(Value::from).collect();
            tell.value("overlapped", numbers, off.place.as_ref());
        }
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
        if let Some((count, channel, place)) = shared.filter(|_| !masked) {
            tell.value("sharing", count, Some(&place));
            tell.value("shared", channel.to_string(), Some(&place));
        }
    }

    /// Writes whether the name of an open network looks like the name of a protected network.
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
