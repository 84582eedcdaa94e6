//! Finds mistakes in small servers: directory listings of lighttpd, remote commands of chronyd, and unconfined
//! containers of Proxmox VE.

use super::super::lines_of_files::{exists, files, is_loopback, read};
use super::Misuses;
use crate::collectors::proxmox_guests;
use crate::gather::{Gather, lossy};
use assay_model::FactPlace;

const LIGHTTPD: &str = "/etc/lighttpd/lighttpd.conf";
/// Files with the options of Dropbear.
const DROPBEAR: [&str; 3] = [
    "/etc/default/dropbear",
    "/etc/sysconfig/dropbear",
    "/etc/dropbear/initramfs/dropbear.conf",
];
const CHRONY: &str = "/etc/chrony/chrony.conf";

/// Directory of LXC without a manager; each container has a file `config`.
const LXC: &str = "/var/lib/lxc";

pub(super) fn collect(g: &mut Gather<'_>) {
    note_lighttpd(g);
    note_chrony(g);
    note_containers(g);
    note_dropbear(g);
}

/// Notes options with which Dropbear admits accounts without a password (dropbear(8), -B).
fn note_dropbear(g: &mut Gather<'_>) {
    let mut found = Misuses::default();
    for path in DROPBEAR {
        for line in read(g, "dropbear", path) {
            let text = line.text.trim();
            let Some((name, value)) = text.split_once('=').filter(|_| !text.starts_with('#'))
            else {
                continue;
            };
            if !["DROPBEAR_EXTRA_ARGS", "DROPBEAR_OPTIONS", "OPTIONS"].contains(&name.trim()) {
                continue;
            }
            let mut words =
                value.split(|letter: char| letter.is_whitespace() || "\"'".contains(letter));
            let blank = words.any(|word| {
                let letters = word.strip_prefix('-').unwrap_or_default();
                let flags = letters.bytes().all(|byte| b"BFEmwsgjkaRi".contains(&byte));
                flags && letters.contains('B')
            });
            found.add("blank_passwords", blank, line.place);
        }
    }
    found.note(g, "dropbear");
}

fn note_lighttpd(g: &mut Gather<'_>) {
    let mut all = vec![LIGHTTPD.to_owned()];
    all.extend(files(
        g,
        "lighttpd.misuse",
        "/etc/lighttpd/conf-enabled",
        ".conf",
    ));
    let mut found = Misuses::default();
    note_webdav(g, &all, &mut found);
    note_user(g, &all, &mut found);
    for path in all {
        for line in read(g, "lighttpd.misuse", &path) {
            let text = line.text.trim();
            let Some((name, value)) = text.split_once('=') else {
                continue;
            };
            if ["dir-listing.activate", "server.dir-listing"].contains(&name.trim()) {
                found.add(
                    "listing",
                    value.trim().starts_with("\"enable\""),
                    line.place,
                );
            }
        }
    }
    found.note(g, "lighttpd.misuse");
}

/// Notes a commented account of lighttpd, without which it runs as root.
fn note_user(g: &mut Gather<'_>, all: &[String], found: &mut Misuses) {
    let (mut set, mut comment) = (None, None);
    for path in all {
        for line in read(g, "lighttpd.misuse", path) {
            let text = line.text.trim_start_matches(['#', ' ', '\t']);
            if let Some((name, value)) = text.split_once('=')
                && name.trim() == "server.username"
            {
                match line.text.trim_start().starts_with('#') {
                    true => comment = Some(line.place),
                    false => set = Some((value.trim().trim_matches('"') == "root", line.place)),
                }
            }
        }
    }
    match (set, comment) {
        (Some((root, place)), _) => found.add("runs_as_root", root, place),
        (None, Some(place)) => found.add("runs_as_root", true, place),
        _ => {}
    }
}

/// Notes files that everybody may write by WebDAV: no line asks for a password or limits the addresses.
fn note_webdav(g: &mut Gather<'_>, all: &[String], found: &mut Misuses) {
    let (mut active, mut limited) = (None, false);
    for path in all {
        for line in read(g, "lighttpd.misuse", path) {
            let text = line.text.trim();
            if text.starts_with('#') {
                continue;
            }
            let dense: String = text
                .chars()
                .filter(|letter| !letter.is_whitespace())
                .collect();
            if dense.starts_with("webdav.activate=\"enable\"") {
                active = Some(line.place);
            }
            limited |= dense.starts_with("auth.require")
                || dense.starts_with("webdav.is-readonly=\"enable\"")
                || dense.contains("$HTTP[\"remoteip\"]")
                || dense.starts_with("ssl.verifyclient.enforce=\"enable\"");
        }
    }
    if let Some(place) = active {
        found.add("webdav_open", !limited, place);
    }
}

fn note_chrony(g: &mut Gather<'_>) {
    let mut all = vec![CHRONY.to_owned(), "/etc/chrony.conf".to_owned()];
    all.extend(files(g, "chrony.misuse", "/etc/chrony/conf.d", ".conf"));
    let mut allowed: Option<(bool, FactPlace)> = None;
    let mut bound = false;
    for path in all {
        for line in read(g, "chrony.misuse", &path) {
            let text = line.text.to_ascii_lowercase();
            let words: Vec<&str> = text.split_whitespace().collect();
            match words[..] {
                ["cmdallow", ref who @ ..] => {
                    let who = who
                        .iter()
                        .find(|word| **word != "all")
                        .copied()
                        .unwrap_or("0/0");
                    let world = who == "0/0" || who.ends_with("/0");
                    allowed = Some((world, line.place));
                }
                // Socket files and the loopback interface are on this machine.
                ["bindcmdaddress", address, ..] => bound |= !is_loopback(address),
                _ => {}
            }
        }
    }
    let mut found = Misuses::default();
    if let Some((world, place)) = allowed {
        found.add("commands_open", world && bound, place);
    }
    found.note(g, "chrony.misuse");
}

fn note_containers(g: &mut Gather<'_>) {
    let containers = proxmox_guests::directory(g, "lxc");
    let mut found = Misuses::default();
    let mut all = files(g, "container.misuse", &containers, ".conf");
    for name in g.list("container.misuse", LXC) {
        let path = format!("{LXC}/{}/config", lossy(&name));
        all.extend(exists(g, &path).then_some(path));
    }
    // New containers start with a copy of this file.
    all.push("/etc/lxc/default.conf".to_owned());
    for path in all {
        let lines = read(g, "container.misuse", &path);
        // A snapshot of the definition follows in its own section.
        let own = lines.iter().take_while(|line| !line.text.starts_with('['));
        let (mut unprivileged, mut unconfined, mut nests) = (false, None, None);
        for line in own {
            let Some((name, value)) = line.text.split_once([':', '=']) else {
                continue;
            };
            match (name.trim(), value.trim()) {
                ("unprivileged", value) => unprivileged = value == "1",
                ("features", value) => {
                    let nesting = value.split(',').any(|one| one.trim() == "nesting=1");
                    nests = Some((nesting, line.place.clone()));
                }
                // An account of the host other than root is root in the container.
                ("lxc.idmap" | "lxc.id_map", _) => unprivileged = true,
                ("lxc.apparmor.profile" | "lxc.aa_profile", value) => {
                    unconfined = Some((value == "unconfined", line.place.clone()));
                }
                _ => {}
            }
        }
        if let Some((nesting, place)) = nests {
            found.add("nests", nesting && !unprivileged, place);
        }
        if let Some((unconfined, place)) = unconfined {
            found.add("unconfined", unconfined && !unprivileged, place);
        }
    }
    found.note(g, "container.misuse");
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn settings_and_their_near_misses() {
        let container = "/etc/pve/lxc/102.conf";
        for (path, text, expected) in [
            (
                LIGHTTPD,
                "dir-listing.activate = \"enable\"\n",
                "listing=true",
            ),
            (
                LIGHTTPD,
                "dir-listing.activate = \"disable\"\n",
                "listing=false",
            ),
            (LIGHTTPD, "#dir-listing.activate = \"enable\"\n", ""),
            (
                CHRONY,
                "cmdallow all\nbindcmdaddress 0.0.0.0\n",
                "commands_open=true",
            ),
            (
                CHRONY,
                "cmdallow 10.0.0.0/8\nbindcmdaddress 0.0.0.0\n",
                "commands_open=false",
            ),
            (CHRONY, "cmdallow all\n", "commands_open=false"),
            (CHRONY, "allow all\n", ""),
            (
                container,
                "lxc.apparmor.profile: unconfined\n",
                "unconfined=true",
            ),
            (
                container,
                "lxc.apparmor.profile: unconfined\nunprivileged: 1\n",
                "unconfined=false",
            ),
            (container, "features: nesting=1,keyctl=1\n", "nests=true"),
            (
                container,
                "features: nesting=1\nunprivileged: 1\n",
                "nests=false",
            ),
            (
                container,
                "arch: amd64\n[old]\nlxc.apparmor.profile: unconfined\n",
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
}
