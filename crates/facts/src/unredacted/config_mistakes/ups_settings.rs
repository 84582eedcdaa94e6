//! Finds settings of NUT that contradict each other: supplies that never count, a dead time below the polling time, and
//! a UPS that may stay off (upsmon.conf(5), usbhid-ups(8)).

use super::super::lines_of_files::{Line, read};
use super::Misuses;
use crate::gather::Gather;
use assay_model::FactPlace;

const UPSMON: &str = "/etc/nut/upsmon.conf";
const APCUPSD: &str = "/etc/apcupsd/apcupsd.conf";
const SWITCH: &str = "/etc/default/apcupsd";
const UPS: &str = "/etc/nut/ups.conf";

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut found = Misuses::default();
    note_upsmon(g, &mut found);
    note_delays(g, &mut found);
    note_apcupsd(g, &mut found);
    found.note(g, "ups_setting");
}

fn note_upsmon(g: &mut Gather<'_>, found: &mut Misuses) {
    let lines = read(g, "ups_setting", UPSMON);
    // MONITOR SYSTEM POWERVALUE USER PASSWORD TYPE
    let monitors: Vec<(u64, &Line)> = lines
        .iter()
        .filter_map(|line| {
            let words: Vec<&str> = line.text.split_whitespace().collect();
            match words[..] {
                ["MONITOR", _, value, ..] => Some((value.parse().ok()?, line)),
                _ => None,
            }
        })
        .collect();
    if let Some((_, line)) = monitors.first() {
        let none = monitors.iter().all(|(value, _)| *value == 0);
        found.add("never_counts", none, line.place.clone());
    }
    let last = |key: &str| {
        lines.iter().rev().find_map(|line| {
            let mut words = line.text.split_whitespace();
            let value = words.next().filter(|name| *name == key).and(words.next())?;
            Some((value.parse::<u64>().ok()?, line.place.clone()))
        })
    };
    // No number of supplies is below 0, so upsmon never shuts the machine down.
    if let Some((0, place)) =
        last("MINSUPPLIES").filter(|_| monitors.iter().any(|(value, _)| *value > 0))
    {
        found.add("never_counts", true, place);
    }
    if let Some((dead, place)) = last("DEADTIME") {
        let poll = |key: &str| last(key).map_or(5, |(value, _)| value);
        let longest = poll("POLLFREQ").max(poll("POLLFREQALERT"));
        found.add("dead_before_poll", dead <= longest, place);
    }
}

/// Notes the switch with which Debian keeps apcupsd from starting. The package sets it until the UPS is configured.
fn note_apcupsd(g: &mut Gather<'_>, found: &mut Misuses) {
    let configured = read(g, "ups_setting", APCUPSD).iter().any(|line| {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        words == ["UPSCABLE", "usb"] || words == ["UPSTYPE", "net"]
    });
    let last = read(g, "ups_setting", SWITCH)
        .into_iter()
        .rev()
        .find_map(|line| {
            let value = line.text.trim().strip_prefix("ISCONFIGURED=")?;
            let off = value.trim_matches('"').eq_ignore_ascii_case("no");
            Some((off, line.place))
        });
    if let (true, Some((off, place))) = (configured, last) {
        found.add("not_started", off, place);
    }
}

/// Notes sections of usbhid-ups in which the UPS would switch on before it is off. Only sections with both times count,
/// because the defaults depend on the UPS: CyberPower has others.
fn note_delays(g: &mut Gather<'_>, found: &mut Misuses) {
    let lines = read(g, "ups_setting", UPS);
    for section in lines.split(|line| line.text.trim_start().starts_with('[')) {
        let value = |key: &str| {
            section.iter().rev().find_map(|line| {
                let text = line.text.split('#').next().unwrap_or_default();
                let (name, value) = text.split_once('=')?;
                let value = value.trim().trim_matches('"').to_owned();
                (name.trim() == key).then(|| (value, line.place.clone()))
            })
        };
        let number = |key: &str| -> Option<(u64, FactPlace)> {
            let (value, place) = value(key)?;
            Some((value.parse().ok()?, place))
        };
        if value("driver").is_none_or(|(name, _)| name != "usbhid-ups") {
            continue;
        }
        if let (Some((off, _)), Some((on, place))) = (number("offdelay"), number("ondelay")) {
            found.add("stays_off", on > 0 && on <= off, place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn settings_of_upsmon() {
        for (text, expected) in [
            ("MONITOR a@h 0 u p primary\n", "never_counts=true"),
            (
                "MONITOR a@h 0 u p primary\nMONITOR b@h 1 u p primary\n",
                "never_counts=false",
            ),
            (
                "MONITOR a@h 1 u p primary\nMINSUPPLIES 0\n",
                "never_counts=false never_counts=true",
            ),
            (
                "MONITOR a@h 1 u p primary\nMINSUPPLIES 1\n",
                "never_counts=false",
            ),
            ("DEADTIME 4\n", "dead_before_poll=true"),
            ("POLLFREQ 30\nDEADTIME 15\n", "dead_before_poll=true"),
            ("DEADTIME 15\n", "dead_before_poll=false"),
            ("# DEADTIME 4\n", ""),
        ] {
            assert_eq!(
                found(&[(UPSMON, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn the_switch_of_apcupsd() {
        let usb = (APCUPSD, "UPSCABLE usb\nUPSTYPE usb\n");
        let of = |text: &str| found(&[usb, (SWITCH, text)], collect).join(" ");
        assert_eq!(of("ISCONFIGURED=no\n"), "not_started=true");
        assert_eq!(of("ISCONFIGURED=yes\n"), "not_started=false");
        assert!(found(&[(SWITCH, "ISCONFIGURED=no\n")], collect).is_empty());
    }

    #[test]
    fn delays_of_a_driver() {
        let section =
            |text: &str| format!("maxretry = 3\n[a]\n driver = usbhid-ups\n port = auto\n{text}");
        for (text, expected) in [
            (section(" offdelay = 60\n ondelay = 30\n"), "stays_off=true"),
            (section(" offdelay = 60\n"), ""),
            (section(" offdelay = 60\n ondelay = 0\n"), "stays_off=false"),
            (
                section(" offdelay = 60\n ondelay = \"90\"\n"),
                "stays_off=false",
            ),
            (section(""), ""),
            (
                "[a]\n driver = nutdrv_qx\n offdelay = 60\n ondelay = 3\n".to_owned(),
                "",
            ),
        ] {
            assert_eq!(
                found(&[(UPS, &text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
    }
}
