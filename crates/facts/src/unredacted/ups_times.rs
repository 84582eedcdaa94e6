//! Checks whether a UPS warns early enough for the machine to shut down. Compares NUT's `battery.runtime.low` and
//! `battery.charge.low` with FINALDELAY, and checks the limits of apcupsd. `collectors::services::power` checks whether
//! a low battery shuts the machine down at all.

use super::lines_of_files::{Line, note, read};
use crate::gather::Gather;

const UPS: &str = "/etc/nut/ups.conf";
const UPSMON: &str = "/etc/nut/upsmon.conf";
const APCUPSD: &str = "/etc/apcupsd/apcupsd.conf";
/// Seconds that a machine may need to shut down: systemd kills a unit after 90 seconds (DefaultTimeoutStopSec).
const STOP: u64 = 90;
/// Seconds of battery time that a UPS has left when it reports a low battery, unless another value is set. Two minutes
/// are common.
const LEFT: u64 = 120;

pub(super) fn collect(g: &mut Gather<'_>) {
    nut(g);
    apcupsd(g);
}

fn nut(g: &mut Gather<'_>) {
    let upsmon = read(g, "ups_time", UPSMON);
    let delay = upsmon.iter().rev().find_map(|line| {
        let seconds = line
            .text
            .trim()
            .strip_prefix("FINALDELAY")?
            .trim()
            .parse::<u64>()
            .ok()?;
        Some((seconds, line.place.clone()))
    });
    let wait = delay.as_ref().map_or(5, |(seconds, _)| *seconds);
    let mut number = 0;
    for (line, ignores) in of_sections(read(g, "ups_time", UPS)) {
        let Some((name, value)) = line.text.split_once('=') else {
            continue;
        };
        let value = value.trim().trim_matches('"').parse::<u64>();
        let (name, Ok(value)) = (name.trim(), value) else {
            continue;
        };
        let late = match name
            .trim_start_matches("override.")
            .trim_start_matches("default.")
        {
            "battery.runtime.low" => value < wait.saturating_add(STOP),
            "battery.charge.low" => value < 5,
            _ => continue,
        };
        // Without ignorelb the driver obeys the signal of the UPS, and these lines change only what it shows.
        if !ignores {
            continue;
        }
        number += 1;
        let properties = [
            ("late", late.into()),
            ("setting", name.into()),
            ("program", "NUT".into()),
        ];
        note(
            g,
            "ups_time",
            &format!("nut-{number}"),
            &line.place,
            &properties,
        );
    }
    if let Some((seconds, place)) = delay.filter(|_| number == 0) {
        let late = seconds.saturating_add(15) > LEFT;
        let properties = [
            ("late", late.into()),
            ("setting", "FINALDELAY".into()),
            ("program", "NUT".into()),
        ];
        note(g, "ups_time", "nut-delay", &place, &properties);
    }
}

/// Returns the lines of ups.conf, each with whether its section contains `ignorelb`.
fn of_sections(lines: Vec<Line>) -> Vec<(Line, bool)> {
    let mut section = 0;
    let mut all: Vec<(usize, Line)> = Vec::new();
    for line in lines {
        section += usize::from(line.text.trim_start().starts_with('['));
        all.push((section, line));
    }
    let ignoring: Vec<usize> = all
        .iter()
        .filter(|(_, line)| line.text.split('#').next().unwrap_or_default().trim() == "ignorelb")
        .map(|(section, _)| *section)
        .collect();
    let with = |(section, line)| (line, ignoring.contains(&section));
    all.into_iter().map(with).collect()
}

/// Notes whether apcupsd shuts the machine down too late. The first limit that is reached starts the shutdown. The
/// shutdown is therefore too late only if all limits are.
fn apcupsd(g: &mut Gather<'_>) {
    let lines = read(g, "ups_time", APCUPSD);
    let last = |key: &str| {
        lines.iter().rev().find_map(|line| {
            let mut words = line.text.split_whitespace();
            let of_key = words
                .next()
                .is_some_and(|name| name.eq_ignore_ascii_case(key));
            let value = words.next().filter(|_| of_key)?.parse::<i64>().ok()?;
            Some((value, line.place.clone()))
        })
    };
    let (Some((charge, _)), Some((minutes, place))) = (last("BATTERYLEVEL"), last("MINUTES"))
    else {
        return;
    };
    let timeout = last("TIMEOUT").map_or(0, |(seconds, _)| seconds);
    // Both below 1 are another fault: it never stops.
    let never = charge < 1 && minutes < 1;
    let late = minutes < 2 && charge < 5 && timeout <= 0 && !never;
    let properties = [
        ("late", late.into()),
        ("setting", "MINUTES".into()),
        ("program", "apcupsd".into()),
    ];
    note(g, "ups_time", "apcupsd", &place, &properties);
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn limits_and_their_near_misses() {
        for (path, text, late) in [
            (
                UPS,
                "[a]\n ignorelb\n override.battery.runtime.low = 20\n",
                true,
            ),
            (
                UPS,
                "[a]\n override.battery.runtime.low = 600\n ignorelb\n",
                false,
            ),
            (
                UPS,
                "[a]\n ignorelb\n default.battery.charge.low = 2\n",
                true,
            ),
            (
                UPS,
                "[a]\n ignorelb\n default.battery.charge.low = 20\n",
                false,
            ),
            (UPSMON, "FINALDELAY 600\n", true),
            (UPSMON, "FINALDELAY 5\n", false),
            (UPSMON, "FINALDELAY 18446744073709551615\n", true),
            (APCUPSD, "BATTERYLEVEL 1\nMINUTES 0\nTIMEOUT 0\n", true),
            (APCUPSD, "BATTERYLEVEL 1\nMINUTES 0\nTIMEOUT 120\n", false),
            (APCUPSD, "BATTERYLEVEL 5\nMINUTES 3\nTIMEOUT 0\n", false),
            (APCUPSD, "BATTERYLEVEL -1\nMINUTES -1\nTIMEOUT 0\n", false),
        ] {
            let host = Recorded::new().file(path, text);
            let mut g = Gather::new(&host);
            collect(&mut g);
            let all = g.facts.map.keys().filter(|key| key.ends_with(".late"));
            let found: Vec<_> = all.map(|key| g.facts.get(key).cloned()).collect();
            assert_eq!(found, [Some(late.into())], "{text}");
        }
    }

    #[test]
    fn an_override_without_ignorelb_decides_nothing() {
        let text = "[a]\n override.battery.runtime.low = 20\n[b]\n ignorelb\n";
        let host = Recorded::new().file(UPS, text);
        let mut g = Gather::new(&host);
        collect(&mut g);
        assert!(g.facts.map.is_empty());
    }
}
