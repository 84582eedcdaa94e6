//! Converts readings to facts for advice pages. There is one subject per network (`wifi.network.NAME`), and one per
//! radio of a UniFi export (`wifi.radio.NAME`). A property that the source does not contain is absent. An unreadable
//! line makes all checks of networks unknown, because the line may describe a network.

mod air;
mod network;

use crate::reading::{Bss, Radio, Reading};
use crate::ssid::Ssid;
use air::Air;
use assay_model::advice::Advice;
use assay_model::{Fact, FactKind, FactPlace, FactValue, Facts, Subject};
use serde_json::Value;
use std::collections::BTreeSet;

/// Prefix of all subjects about Wi-Fi.
const KIND: &str = "wifi";

/// A file and its parsed content.
pub struct WifiFile<'a> {
    /// Name of the file, as findings show it.
    pub path: &'a str,
    /// Content of the file after parsing.
    pub reading: &'a Reading,
}

/// Returns whether a page checks Wi-Fi files instead of the machine.
#[must_use]
pub fn judges(page: &Advice) -> bool {
    let about = page.check.iter().flat_map(|check| &check.about);
    about
        .into_iter()
        .any(|about| about.kind().split('.').next() == Some(KIND))
}

/// Returns the facts of several files. `own` contains the user's network names. If `own` is empty, the networks in an
/// export are the user's; without an export, all networks are.
#[must_use]
pub fn facts(files: &[WifiFile<'_>], own: &[Ssid]) -> Facts {
    let mut facts = Facts::default();
    let configured = files.iter().flat_map(|file| &file.reading.configured);
    let configured: BTreeSet<&Ssid> = configured.map(|wlan| &wlan.ssid).collect();
    // A network without a name cannot be assigned to an owner.
    let is_own = |ssid: &Ssid| match (own.is_empty(), configured.is_empty()) {
        (false, _) => own.contains(ssid),
        (true, false) => configured.contains(ssid),
        (true, true) => !ssid.is_hidden(),
    };
    let whose = match (own.is_empty(), configured.is_empty()) {
        (false, _) => "the names that were given as one's own",
        (true, false) => "the networks that an export configures",
        (true, true) => "all networks are taken for one's own",
    };
    let claimed = !own.is_empty() || !configured.is_empty();
    let air = Air::new(files, &is_own);
    for (ssid, network) in network::networks(files) {
        let own = is_own(ssid);
        // A foreign network is included only if it may be confused with the user's own.
        if own || network.imitates(&air) {
            let subject = Subject::new(["wifi.network", &ssid.shown()]);
            network.tell(&mut facts, &subject, (own, whose), &air);
            if own && !claimed {
                // The owner did not name this network, so the property about the owner's intention is omitted.
                facts.map.remove(&format!("{subject}.open_own"));
            }
        }
    }
    for file in files {
        for radio in &file.reading.radios {
            tell_radio(&mut facts, file.path, radio, &air);
        }
    }
    for file in files {
        put_lost_profile(&mut facts, file);
    }
    unread(&mut facts, files);
    facts
}

/// Adds a network without a name, because the log reports a lost RADIUS profile without the name of its network.
fn put_lost_profile(facts: &mut Facts, file: &WifiFile<'_>) {
    let Some(lost) = &file.reading.lost_profile else {
        return;
    };
    let name = format!("A network that the log of {} does not name", lost.date);
    let subject = Subject::new(["wifi.network", name.as_str()]);
    let place = FactPlace::File {
        path: file.path.to_owned(),
        line: Some(lost.line),
        span: None,
    };
    put(facts, &subject, "own", true.into(), &place);
    put(facts, &subject, "name", name.as_str().into(), &place);
    put(facts, &subject, "radius", false.into(), &place);
}

/// Adds a fact. Two different facts never have the same key, whatever the network's name is, because a property
/// contains no dot.
fn put(facts: &mut Facts, subject: &Subject, property: &str, value: Value, place: &FactPlace) {
    let fact = Fact {
        value: FactValue::Known(value),
        place: place.clone(),
        kind: FactKind::Runtime,
        subject: subject.clone(),
    };
    facts.map.insert(format!("{subject}.{property}"), fact);
}

fn tell_radio(facts: &mut Facts, path: &str, radio: &Radio, air: &Air) {
    let name = format!("{} {}", radio.access_point, radio.band);
    let subject = Subject::new(["wifi.radio", name.as_str()]);
    let at = |line| FactPlace::File {
        path: path.to_owned(),
        line: Some(line),
        span: None,
    };
    let own = FactPlace::Words("the devices that an export lists".to_owned());
    put(facts, &subject, "own", true.into(), &own);
    let mut tell = |property: &str, value: Value, line: usize| {
        put(facts, &subject, property, value, &at(line));
    };
    tell("name", name.clone().into(), radio.channel_line);
    let off = radio.channel.is_some_and(|channel| air.off_plan(channel));
    if let Some(channel) = radio.channel {
        tell("channels", channel.to_string().into(), radio.channel_line);
        tell("off_plan", u32::from(off).into(), radio.channel_line);
        if off {
            let overlapped: Vec<Value> = air
                .overlapped(channel)
                .into_iter()
                .map(Value::from)
                .collect();
            tell("between", channel.to_string().into(), radio.channel_line);
            tell("overlapped", overlapped.into(), radio.channel_line);
        }
        let yields = u32::from(channel.yields_to_radar());
        tell("radar", yields.into(), radio.channel_line);
    }
    if let Some(width) = radio.width {
        let wide = radio.band == crate::channel::Band::Two && width > 20;
        tell("width", width.into(), radio.width_line);
        tell("wide_two", u32::from(wide).into(), radio.width_line);
    }
}

/// Adds an unknown network for each file that has unreadable lines.
fn unread(facts: &mut Facts, files: &[WifiFile<'_>]) {
    for file in files.iter().filter(|file| file.reading.unread.lost > 0) {
        let unread = &file.reading.unread;
        let told: Vec<String> = unread
            .first_lost
            .iter()
            .map(|(line, expected)| format!("line {line}: {expected} was expected"))
            .collect();
        let more = match unread.lost.saturating_sub(told.len()) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let line = unread.first_lost.first().map(|(line, _)| *line);
        let subject = Subject::new(["wifi.network".to_owned(), format!("lines of {}", file.path)]);
        let why = format!("{}{more}", told.join("; "));
        put_unknown(facts, &subject, &why, file.path, line);
    }
}

/// Marks the properties of a subject as unknown, with the reason.
fn put_unknown(facts: &mut Facts, subject: &Subject, why: &str, path: &str, line: Option<usize>) {
    let place = FactPlace::File {
        path: path.to_owned(),
        line,
        span: None,
    };
    let fact = Fact {
        value: FactValue::Unknown(why.to_owned()),
        place,
        kind: FactKind::Runtime,
        subject: subject.clone(),
    };
    facts.map.insert(subject.to_string(), fact);
}

/// Returns whether a BSS counts, that is whether it belongs to an access point instead of a direct connection or a
/// mesh.
fn counts(bss: &Bss) -> bool {
    !bss.direct
}

#[cfg(test)]
mod tests;
