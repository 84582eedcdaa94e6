//! Collects whether NUT is configured to shut the machine down before a UPS is empty. Uses MODE of nut.conf(5), and
//! from upsmon.conf(5) the number of monitored supplies and the shutdown command. Names of supplies and users, and
//! passwords, are dropped.

use crate::gather::Gather;
use assay_model::{FactKind, FactPlace};

/// File with MODE of NUT. A shell reads this file, so the last line applies.
pub(crate) const NUT: &str = "/etc/nut/nut.conf";
pub(crate) const UPSMON: &str = "/etc/nut/upsmon.conf";

/// Values of MODE (nut.conf(5), NUT 2.8.0; `controlled` and `manual` mean that other programs start
/// the parts).
const MODES: [&str; 6] = [
    "none",
    "standalone",
    "netserver",
    "netclient",
    "controlled",
    "manual",
];

/// Keywords of upsmon.conf that are kept without their arguments.
const WORDS: [&str; 2] = ["MONITOR", "SHUTDOWNCMD"];

pub(crate) fn collect(g: &mut Gather<'_>) {
    if let Some(text) = g.read("ups.nut.mode", NUT) {
        let said = text.lines().enumerate();
        let said = said.filter_map(|(number, line)| Some((number, line, parse_mode(line)?)));
        if let Some((number, line, mode)) = said.last() {
            let at = super::setting_lines::place(NUT, number, line);
            g.facts
                .known("ups.nut.mode", mode, FactKind::Configured, at);
        }
    }
    let Some(text) = g.read("ups.nut.monitors", UPSMON) else {
        return;
    };
    let count = |word: &str| text.lines().filter(|line| first_word(line) == word).count();
    let (monitors, commands) = (count("MONITOR"), count("SHUTDOWNCMD"));
    let mut note = |key: &str, value: serde_json::Value| {
        g.facts
            .known(key, value, FactKind::Configured, FactPlace::from(UPSMON));
    };
    note("ups.nut.monitors", monitors.into());
    note("ups.nut.shutdown_command", (commands > 0).into());
}

/// Returns the mode in a line of nut.conf. Blanks around `=` are not permitted.
fn parse_mode(line: &str) -> Option<&'static str> {
    let line = line.trim();
    let value = line.strip_prefix("export ").unwrap_or(line);
    let value = value.trim_start().strip_prefix("MODE=")?;
    let value = value.split([' ', '\t', '#', ';']).next()?;
    let value = value.trim_matches(['"', '\'']);
    MODES.into_iter().find(|known| *known == value)
}

fn first_word(line: &str) -> &str {
    line.split_whitespace().next().unwrap_or_default()
}

/// Redacts nut.conf: keeps the mode.
pub(crate) fn redact_nut(line: &str) -> String {
    parse_mode(line).map_or_else(String::new, |mode| format!("MODE={mode}"))
}

/// Redacts upsmon.conf: keeps whether a supply is monitored and whether there is a shutdown command.
pub(crate) fn redact_upsmon(line: &str) -> String {
    let word = first_word(line);
    if WORDS.contains(&word) { word } else { "" }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    const WATCHED: &str = "# MONITOR x\nMONITOR apc@localhost 1 alice hunter2 primary\nSHUTDOWNCMD \"/sbin/shutdown -h +0\"\n";

    fn facts(nut: &str, upsmon: &str) -> assay_model::Facts {
        let host = Recorded::new().file(NUT, nut).file(UPSMON, upsmon);
        let mut g = Gather::new(&host);
        collect(&mut g);
        g.facts
    }

    #[test]
    fn what_is_watched() {
        let nut =
            "# MODE=standalone\nMODE=none\nMODE=\"netserver\" # later\nALLOW_NO_DEVICE=true\n";
        let found = facts(nut, WATCHED);
        assert_eq!(found.str("ups.nut.mode"), Some("netserver"));
        assert_eq!(found.map.len(), 3);
        let clean = |text: &str, by: fn(&str) -> String| {
            text.split('\n').map(by).collect::<Vec<_>>().join("\n")
        };
        let (kept, watched) = (clean(nut, redact_nut), clean(WATCHED, redact_upsmon));
        assert!(!watched.contains("alice") && !watched.contains("hunter2"));
        assert_eq!(
            (clean(&kept, redact_nut), clean(&watched, redact_upsmon)),
            (kept.clone(), watched.clone())
        );
        for (key, fact) in &facts(&kept, &watched).map {
            assert_eq!(fact.value, found.map[key].value, "{key}");
        }
    }

    #[test]
    fn what_is_no_mode_says_nothing() {
        for text in ["", "MODE = none", "MODE=$OTHER", "NOMODE=none", "MODE"] {
            assert_eq!(facts(text, "").str("ups.nut.mode"), None, "{text}");
        }
    }
}
