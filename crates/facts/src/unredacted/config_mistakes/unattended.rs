//! Finds settings that stop a machine at which nobody sits: a sleep when nobody is logged in, a boot menu that waits
//! for a key, and a boot without a check of the file systems (logind.conf(5), systemd-fsck@.service(8), the manual of
//! GRUB).

use super::super::lines_of_files::{exists, files, read};
use super::Misuses;
use crate::gather::Gather;
use assay_model::FactPlace;
use std::collections::BTreeMap;

const LOGIND: &str = "/etc/systemd/logind.conf";
/// Files of a machine with a screen for people.
const DESKTOP: [&str; 2] = [
    "/etc/X11/default-display-manager",
    "/etc/systemd/system/display-manager.service",
];
/// Values of IdleAction that end the work of a server.
const STOPS: [&str; 8] = [
    "suspend",
    "hibernate",
    "hybrid-sleep",
    "suspend-then-hibernate",
    "sleep",
    "poweroff",
    "halt",
    "reboot",
];
const GRUB: &str = "/etc/default/grub";
const GRUB_DIR: &str = "/etc/default/grub.d";
/// Variables with a time in seconds; -1 waits for a key.
const WAITS: [&str; 2] = ["GRUB_TIMEOUT", "GRUB_RECORDFAIL_TIMEOUT"];
const LINES: [&str; 2] = ["GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"];
const CMDLINE: &str = "/etc/kernel/cmdline";

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut found = Misuses::default();
    note_idle(g, &mut found);
    note_boot(g, &mut found);
    found.note(g, "unattended");
}

fn note_idle(g: &mut Gather<'_>, found: &mut Misuses) {
    if DESKTOP.iter().any(|path| exists(g, path)) {
        return;
    }
    let mut all = vec![LOGIND.to_owned()];
    all.extend(files(g, "unattended", &format!("{LOGIND}.d"), ".conf"));
    let mut action = None;
    for path in all {
        for line in read(g, "unattended", &path) {
            if let Some(("IdleAction", value)) = line.text.trim().split_once('=') {
                action = Some((value.trim().to_owned(), line.place));
            }
        }
    }
    if let Some((action, place)) = action {
        found.add("sleeps", STOPS.contains(&action.as_str()), place);
    }
}

fn note_boot(g: &mut Gather<'_>, found: &mut Misuses) {
    let mut all = vec![GRUB.to_owned()];
    all.extend(files(g, "unattended", GRUB_DIR, ".cfg"));
    let mut waits: BTreeMap<&str, (String, FactPlace)> = BTreeMap::new();
    let mut words: Vec<(String, FactPlace)> = Vec::new();
    for path in all {
        for line in read(g, "unattended", &path) {
            let Some((name, value)) = line.text.trim().split_once('=') else {
                continue;
            };
            let name = name.trim_end_matches('+');
            if let Some(name) = WAITS.into_iter().find(|known| *known == name) {
                let value = value.trim_matches(['"', '\'']).to_owned();
                waits.insert(name, (value, line.place));
            } else if LINES.contains(&name) {
                words.push((value.to_owned(), line.place));
            }
        }
    }
    for (value, place) in waits.into_values() {
        found.add("waits_for_key", value == "-1", place);
    }
    let line = read(g, "unattended", CMDLINE).into_iter().next();
    words.extend(line.map(|line| (line.text, line.place)));
    // The kernel uses the last word.
    let mode = words.iter().rev().find_map(|(text, place)| {
        let words = text.split(|letter: char| letter.is_whitespace() || "\"'".contains(letter));
        let mut mode = words.filter_map(|word| word.strip_prefix("fsck.mode="));
        Some((mode.next_back()?, place))
    });
    if let Some((mode, place)) = mode {
        found.add("never_checks", mode == "skip", place.clone());
    }
    let first = words.iter().rev().find_map(|(text, place)| {
        let words = text.split(|letter: char| letter.is_whitespace() || "\"'".contains(letter));
        let mut first = words.filter_map(|word| word.strip_prefix("init="));
        Some((first.next_back()?, place))
    });
    if let Some((program, place)) = first {
        let name = program.rsplit('/').next().unwrap_or_default();
        let shell = matches!(name, "sh" | "bash" | "dash" | "zsh" | "busybox");
        found.add("starts_shell", shell, place.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn settings_and_their_near_misses() {
        for (path, text, expected) in [
            (LOGIND, "[Login]\nIdleAction=suspend\n", "sleeps=true"),
            (LOGIND, "[Login]\nIdleAction=ignore\n", "sleeps=false"),
            (LOGIND, "[Login]\n#IdleAction=suspend\n", ""),
            (GRUB, "GRUB_RECORDFAIL_TIMEOUT=-1\n", "waits_for_key=true"),
            (GRUB, "GRUB_TIMEOUT=5\n", "waits_for_key=false"),
            (
                GRUB,
                "GRUB_CMDLINE_LINUX=\"quiet fsck.mode=skip\"\n",
                "never_checks=true",
            ),
            (
                GRUB,
                "GRUB_CMDLINE_LINUX=\"fsck.mode=auto\"\n",
                "never_checks=false",
            ),
            (
                GRUB,
                "GRUB_CMDLINE_LINUX=\"rw init=/bin/bash\"\n",
                "starts_shell=true",
            ),
            (
                GRUB,
                "GRUB_CMDLINE_LINUX=\"init=/lib/systemd/systemd\"\n",
                "starts_shell=false",
            ),
            (
                CMDLINE,
                "root=/dev/sda1 fsck.mode=skip\n",
                "never_checks=true",
            ),
        ] {
            assert_eq!(
                found(&[(path, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
        let desktop = (DESKTOP[1], "");
        assert!(found(&[desktop, (LOGIND, "IdleAction=suspend\n")], collect).is_empty());
    }
}
