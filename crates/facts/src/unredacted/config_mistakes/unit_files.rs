//! Finds settings of systemd units that have no effect because of their section, passwords in units, and the debug
//! shell (systemd.unit(5), systemd.exec(5), systemd-debug-generator(8)).

use super::super::lines_of_files::{exists, files, read};
use super::Misuses;
use crate::gather::{Gather, lossy};
use assay_model::{FactKind, FactPlace};
use std::path::Path;

const UNITS: &str = "/etc/systemd/system";
const DEBUG: &str = "debug-shell.service";
/// Settings that systemd reads only in the section `[Service]`.
const OF_SERVICE: [&str; 24] = [
    "Restart",
    "RestartSec",
    "ExecStart",
    "ExecStartPre",
    "ExecStartPost",
    "ExecStop",
    "ExecStopPost",
    "ExecReload",
    "Type",
    "PIDFile",
    "RemainAfterExit",
    "TimeoutStartSec",
    "TimeoutStopSec",
    "User",
    "Group",
    "WorkingDirectory",
    "Environment",
    "EnvironmentFile",
    "LimitNOFILE",
    "MemoryMax",
    "ProtectSystem",
    "PrivateTmp",
    "NoNewPrivileges",
    "KillMode",
];
/// Settings that systemd reads only in the section `[Unit]`. `StartLimitInterval` and `StartLimitBurst` also work in
/// `[Service]`, as in old versions.
const OF_UNIT: [&str; 16] = [
    "After",
    "Before",
    "Requires",
    "Wants",
    "BindsTo",
    "PartOf",
    "Requisite",
    "Conflicts",
    "OnFailure",
    "RequiresMountsFor",
    "ConditionPathExists",
    "ConditionPathIsMountPoint",
    "AssertPathExists",
    "DefaultDependencies",
    "StartLimitIntervalSec",
    "Description",
];
const OF_INSTALL: [&str; 4] = ["WantedBy", "RequiredBy", "Alias", "Also"];
/// Ends of the names of variables that contain secrets.
const SECRETS: [&str; 7] = [
    "PASSWORD",
    "PASSPHRASE",
    "PASSWD",
    "SECRET",
    "SECRET_KEY",
    "API_KEY",
    "TOKEN",
];

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut all: Vec<String> = Vec::new();
    for end in [".service", ".timer", ".mount", ".path"] {
        all.extend(files(g, "unit.misuse", UNITS, end));
    }
    for dir in files(g, "unit.misuse", UNITS, ".service.d") {
        all.extend(files(g, "unit.misuse", &dir, ".conf"));
    }
    let mut found = Misuses::default();
    for path in all {
        // A link is another name of a unit, or masks it.
        if g.host.link(Path::new(&path)).is_ok() {
            continue;
        }
        let mut section = String::new();
        for line in read(g, "unit.misuse", &path) {
            let text = line.text.trim();
            if text.starts_with(['#', ';']) {
                continue;
            }
            if text.starts_with('[') {
                section = text.to_owned();
                continue;
            }
            let Some((key, value)) = text.split_once('=') else {
                continue;
            };
            let key = key.trim_end();
            let elsewhere = match section.as_str() {
                "[Unit]" => OF_SERVICE.contains(&key) || OF_INSTALL.contains(&key),
                "[Service]" => OF_UNIT.contains(&key) || OF_INSTALL.contains(&key),
                "[Install]" => OF_UNIT.contains(&key) || OF_SERVICE.contains(&key),
                _ => continue,
            };
            found.add("elsewhere", elsewhere, line.place.clone());
            if key == "Environment" && section == "[Service]" {
                found.add(
                    "password",
                    value.split_whitespace().any(is_secret),
                    line.place,
                );
            }
        }
    }
    found.note(g, "unit.misuse");
    note_debug_shell(g);
}

/// Returns whether an assignment of a variable contains a secret; a path or an expansion does not.
fn is_secret(word: &str) -> bool {
    let word = word.trim_matches(['"', '\'']);
    word.split_once('=').is_some_and(|(name, value)| {
        SECRETS.iter().any(|end| name.ends_with(end))
            && !value.is_empty()
            && !value.starts_with(['/', '$', '%', '<', '{'])
    })
}

/// Notes the debug shell, which gives everybody at the console a shell of root on tty9.
fn note_debug_shell(g: &mut Gather<'_>) {
    let masked = g.host.link(Path::new(&format!("{UNITS}/{DEBUG}")));
    if masked.is_ok_and(|target| target == Path::new("/dev/null")) {
        return;
    }
    let wants: Vec<String> = g
        .list("boot_line", UNITS)
        .iter()
        .map(|name| lossy(name))
        .filter(|name| name.ends_with(".wants"))
        .collect();
    for dir in wants {
        let path = format!("{UNITS}/{dir}/{DEBUG}");
        // The target of the link may lie outside of a copied tree.
        if exists(g, &path) || g.host.link(Path::new(&path)).is_ok() {
            let place = FactPlace::from(path);
            g.facts
                .known("boot_line.debug_shell", true, FactKind::Configured, place);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn settings_and_their_near_misses() {
        let path = "/etc/systemd/system/a.service";
        for (text, expected) in [
            ("[Unit]\nRestart=always\n", "elsewhere=true"),
            ("[Unit]\nAfter=x\n", "elsewhere=false"),
            ("[Service]\nStartLimitIntervalSec=0\n", "elsewhere=true"),
            ("[Service]\nStartLimitInterval=0\n", "elsewhere=false"),
            ("[Service]\nWantedBy=multi-user.target\n", "elsewhere=true"),
            ("[Install]\nWantedBy=multi-user.target\n", "elsewhere=false"),
            ("[X-Own]\nRestart=always\n", ""),
            (
                "[Service]\nEnvironment=\"A_PASSWORD=x\" B=1\n",
                "elsewhere=false password=true",
            ),
            (
                "[Service]\nEnvironment=\"A_PASSWORD_FILE=/x\" B_TOKEN=/run/t\n",
                "elsewhere=false password=false",
            ),
        ] {
            assert_eq!(
                found(&[(path, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn the_debug_shell_is_enabled_or_masked() {
        let link = "/etc/systemd/system/sysinit.target.wants/debug-shell.service";
        let enabled = found(&[(link, "")], collect);
        assert_eq!(enabled, ["debug_shell=true"]);
        let host = assay_host::Recorded::new()
            .file(link, "")
            .linked("/etc/systemd/system/debug-shell.service", "/dev/null");
        let mut g = Gather::new(&host);
        collect(&mut g);
        assert!(g.facts.get("boot_line.debug_shell").is_none());
    }
}
