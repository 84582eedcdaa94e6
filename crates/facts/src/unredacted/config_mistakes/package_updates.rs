//! Finds settings of apt and dpkg that keep security updates away: pins, updates of another release, and packages on
//! hold (apt_preferences(5), unattended-upgrades).

use super::super::lines_of_files::{Line, files, read};
use super::Misuses;
use crate::collectors::daemons::lines::at_line;
use crate::collectors::services::packages::STATUS;
use crate::gather::Gather;
use assay_model::FactPlace;

const PREFERENCES: &str = "/etc/apt/preferences";
const SETTINGS: &str = "/etc/apt/apt.conf.d";
const RELEASE: &str = "/etc/os-release";
/// Lists of unattended-upgrades, in lower case.
const ORIGINS: [&str; 2] = [
    "unattended-upgrade::origins-pattern",
    "unattended-upgrade::allowed-origins",
];
/// Packages whose faults can be used from the network or by any account.
const EXPOSED: [&str; 16] = [
    "openssl",
    "libssl3",
    "libssl3t64",
    "libc6",
    "openssh-server",
    "sudo",
    "nginx",
    "apache2",
    "postfix",
    "exim4-base",
    "dovecot-core",
    "samba",
    "bind9",
    "linux-image-amd64",
    "proxmox-default-kernel",
    "qemu-system-x86",
];

pub(super) fn collect(g: &mut Gather<'_>) {
    note_pins(g);
    note_origins(g);
    note_held(g);
    note_blacklist(g);
}

/// Notes packages that unattended-upgrades must not update, by the beginnings of their names.
fn note_blacklist(g: &mut Gather<'_>) {
    let mut all = files(g, "update_blacklist", SETTINGS, "");
    all.retain(|path| {
        let name = path.rsplit('/').next().unwrap_or_default();
        !name.contains('.') || name.ends_with(".conf")
    });
    let mut found = Misuses::default();
    for path in all {
        let mut within = false;
        let (mut first, mut exposed): (Option<FactPlace>, Option<FactPlace>) = (None, None);
        for line in read(g, "update_blacklist", &path) {
            let text = line.text.trim().to_ascii_lowercase();
            if text.starts_with('#') || text.starts_with("//") {
                continue;
            }
            within |= text.contains("unattended-upgrade::package-blacklist");
            if !within {
                continue;
            }
            for entry in text.split('"').skip(1).step_by(2) {
                let bare = entry.trim_end_matches(['$', '*', '.', '-']);
                first.get_or_insert_with(|| line.place.clone());
                if bare == "linux" || bare == "libssl" || EXPOSED.contains(&bare) {
                    exposed.get_or_insert_with(|| line.place.clone());
                }
            }
            // `::` sets one entry.
            within &= !text.contains("package-blacklist::") && !text.contains("};");
        }
        // Several entries of one file are one finding.
        if let Some(first) = first {
            let is_exposed = exposed.is_some();
            found.add("exposed", is_exposed, exposed.unwrap_or(first));
        }
    }
    found.note(g, "update_blacklist");
}

/// Notes pins of the security updates. Below 500, which is the priority of the other sources, apt keeps their older
/// version.
fn note_pins(g: &mut Gather<'_>) {
    let mut all = vec![PREFERENCES.to_owned()];
    let in_dir = files(g, "apt_pin", &format!("{PREFERENCES}.d"), "").into_iter();
    all.extend(in_dir.filter(|path| {
        let name = path.rsplit('/').next().unwrap_or_default();
        !name.contains('.') || name.ends_with(".pref")
    }));
    let own = code_names(g);
    let mut found = Misuses::default();
    for path in all {
        let lines = read(g, "apt_pin", &path);
        for stanza in lines.split(|line| line.text.trim().is_empty()) {
            note_pin(stanza, &own, &mut found);
        }
    }
    found.note(g, "apt_pin");
}

fn note_pin(stanza: &[Line], own: &[String], found: &mut Misuses) {
    let field = |name: &str| {
        stanza.iter().find_map(|line| {
            let (key, value) = line.text.split_once(':')?;
            let value = value.trim().to_lowercase();
            key.trim()
                .eq_ignore_ascii_case(name)
                .then_some((value, line))
        })
    };
    let (Some((packages, _)), Some((pin, _)), Some((priority, line))) =
        (field("package"), field("pin"), field("pin-priority"))
    else {
        return;
    };
    let Ok(priority) = priority.parse::<i64>() else {
        return;
    };
    let security = pin.contains("security");
    if packages == "*" && security && !is_foreign(&pin, own) {
        found.add("kept_away", priority < 500, line.place.clone());
    }
}

/// Returns the code names of the release of this machine, and of the release from which it is made (os-release(5)).
fn code_names(g: &mut Gather<'_>) -> Vec<String> {
    let lines = read(g, "apt_pin", RELEASE);
    let names = lines.iter().filter_map(|line| {
        let (key, value) = line.text.split_once('=')?;
        let value = value.trim().trim_matches(['"', '\'']).to_lowercase();
        key.ends_with("_CODENAME").then_some(value)
    });
    names.collect()
}

/// Returns whether a pin names the code name of another release, such as `release n=trixie-security`. A suite such as
/// `stable-security` is no code name.
fn is_foreign(pin: &str, own: &[String]) -> bool {
    const SUITES: [&str; 5] = ["stable", "oldstable", "oldoldstable", "testing", "unstable"];
    let parts = pin.strip_prefix("release").unwrap_or_default().split(',');
    let mut codes = parts.filter_map(|part| {
        let name = match part.trim().split_once('=') {
            Some(("n" | "a", name)) => name,
            Some(_) => return None,
            None => part.trim(),
        };
        let end = name.find(['-', '/']).unwrap_or(name.len());
        let code = &name[..end];
        let is_code = !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_lowercase());
        (is_code && !SUITES.contains(&code)).then_some(code)
    });
    codes.any(|code| own.iter().all(|own| own != code))
}

/// Notes the lists of unattended-upgrades if each of their entries names a release other than that of this machine.
fn note_origins(g: &mut Gather<'_>) {
    let release = read(g, "upgrade_origin", RELEASE);
    let value = |name: &str| {
        let mut lines = release.iter();
        let value = lines.find_map(|line| line.text.strip_prefix(name)?.strip_prefix('='));
        value.map(|value| value.trim().trim_matches('"').to_lowercase())
    };
    let (Some(own), Some("debian")) = (value("VERSION_CODENAME"), value("ID").as_deref()) else {
        return;
    };
    let mut all = files(g, "upgrade_origin", SETTINGS, "");
    all.retain(|path| {
        let name = path.rsplit('/').next().unwrap_or_default();
        !name.contains('.') || name.ends_with(".conf")
    });
    let mut entries: Vec<(String, FactPlace)> = Vec::new();
    for path in all {
        let text = g.read("upgrade_origin", &path).unwrap_or_default();
        let mut within = false;
        for (number, line) in text.lines().enumerate() {
            let text = line.trim().to_lowercase();
            let names = ORIGINS.iter().any(|name| text.contains(name));
            if text.starts_with("#clear") && names {
                entries.clear();
            }
            if text.starts_with('#') || text.starts_with("//") {
                continue;
            }
            within |= names;
            if within {
                let quoted = text.split('"').skip(1).step_by(2);
                let place = at_line(&path, number + 1);
                entries.extend(quoted.map(|entry| (entry.to_owned(), place.clone())));
            }
            within &= !(text.contains("};") || names && text.ends_with(';'));
        }
    }
    let Some((_, place)) = entries.first().cloned() else {
        return;
    };
    let other = entries.iter().all(|(entry, _)| names_other(entry, &own));
    let mut found = Misuses::default();
    found.add("other_release", other, place);
    found.note(g, "upgrade_origin");
}

/// Returns whether an entry names the code name of another release.
fn names_other(entry: &str, own: &str) -> bool {
    const RELEASES: [&str; 6] = [
        "stretch", "buster", "bullseye", "bookworm", "trixie", "forky",
    ];
    !entry.contains(own)
        && !entry.contains("${")
        && RELEASES.iter().any(|name| entry.contains(name))
}

/// Notes packages on hold, by the state that dpkg keeps.
fn note_held(g: &mut Gather<'_>) {
    let Some(text) = g.read("held_package", STATUS) else {
        return;
    };
    let mut found = Misuses::default();
    let mut package = "";
    for (number, line) in text.lines().enumerate() {
        if let Some(name) = line.strip_prefix("Package: ") {
            package = name.trim();
        } else if let Some(status) = line.strip_prefix("Status: ")
            && EXPOSED.contains(&package)
        {
            let held = status.starts_with("hold ") && status.ends_with(" installed");
            found.add("held", held, at_line(STATUS, number + 1));
        }
    }
    found.note(g, "held_package");
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn pins_of_security_updates() {
        let path = "/etc/apt/preferences.d/own";
        for (text, expected) in [
            (
                "Package: *\nPin: release l=Debian-Security\nPin-Priority: -1\n",
                "kept_away=true",
            ),
            (
                "Package: *\nPin: release a=stable-security\nPin-Priority: 100\n",
                "kept_away=true",
            ),
            (
                "Package: *\nPin: release l=Debian-Security\nPin-Priority: 990\n",
                "kept_away=false",
            ),
            ("Package: *\nPin: release a=testing\nPin-Priority: -1\n", ""),
            (
                "Package: foo\nPin: release l=Debian-Security\nPin-Priority: -1\n",
                "",
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
    fn pins_of_other_releases() {
        let release = (RELEASE, "ID=debian\nVERSION_CODENAME=bookworm\n");
        for (pin, expected) in [
            ("n=bookworm-security", "kept_away=true"),
            ("n=bookworm,l=Debian-Security", "kept_away=true"),
            ("a=oldstable-security,n=bookworm-security", "kept_away=true"),
            ("n=trixie-security", ""),
            ("o=Debian,n=buster,l=Debian-Security", ""),
        ] {
            let text = format!("Package: *\nPin: release {pin}\nPin-Priority: 100\n");
            let path = "/etc/apt/preferences.d/own";
            let facts = found(&[release, (path, &text)], collect);
            assert_eq!(facts.join(" "), expected, "{pin}");
        }
    }

    #[test]
    fn origins_of_unattended_upgrades() {
        let path = "/etc/apt/apt.conf.d/50unattended-upgrades";
        let release = (RELEASE, "ID=debian\nVERSION_CODENAME=bookworm\n");
        let list =
            |entry: &str| format!("Unattended-Upgrade::Origins-Pattern {{\n  \"{entry}\";\n}};\n");
        for (text, expected) in [
            (
                list("origin=Debian,codename=bullseye,label=Debian-Security"),
                "other_release=true",
            ),
            (
                list("origin=Debian,codename=${distro_codename}"),
                "other_release=false",
            ),
            (list("o=Debian,n=bookworm-security"), "other_release=false"),
            (list("o=Debian,a=stable"), "other_release=false"),
            (
                "Unattended-Upgrade::Origins-Pattern:: \"n=buster\";\n".to_owned(),
                "other_release=true",
            ),
            ("// \"n=buster\";\n".to_owned(), ""),
        ] {
            assert_eq!(
                found(&[release, (path, &text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
        let cleared = format!(
            "{}#clear Unattended-Upgrade::Origins-Pattern;\n",
            list("n=buster")
        );
        assert!(found(&[release, (path, &cleared)], collect).is_empty());
    }

    #[test]
    fn packages_that_are_not_updated() {
        let path = "/etc/apt/apt.conf.d/50unattended-upgrades";
        let list = "Unattended-Upgrade::Package-Blacklist";
        for (text, expected) in [
            (
                format!("{list} {{\n \"linux-\";\n \"docker\";\n}};\nX \"openssl\";\n"),
                "exposed=true",
            ),
            (
                format!("{list}:: \"openssl\";\nX \"sudo\";\n"),
                "exposed=true",
            ),
            (format!("{list} {{\n// \"linux-\";\n}};\n"), ""),
        ] {
            assert_eq!(
                found(&[(path, &text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn packages_on_hold() {
        for (text, expected) in [
            ("Package: openssl\nStatus: hold ok installed\n", "held=true"),
            (
                "Package: openssl\nStatus: install ok installed\n",
                "held=false",
            ),
            ("Package: kubelet\nStatus: hold ok installed\n", ""),
        ] {
            assert_eq!(
                found(&[(STATUS, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
    }
}
