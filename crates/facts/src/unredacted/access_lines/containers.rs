//! Finds containers of LXC and Proxmox VE that get the root directory of the host, registries from which Podman and
//! containerd pull images without verified TLS, and settings of Podman that protect no container.

use super::super::lines_of_files::{exists, files, is_loopback, read};
use super::{Lines, bare, each_in, words};
use crate::collectors::proxmox_guests;
use crate::gather::Gather;
use assay_model::FactPlace;
use std::collections::BTreeMap;

const LXC: &str = "/var/lib/lxc";
const REGISTRIES: &str = "/etc/containers/registries.conf";
/// Directories of containerd, one for each registry, and its main file.
const CERTIFICATES: &str = "/etc/containerd/certs.d";
const CONTAINERD: &str = "/etc/containerd/config.toml";
/// Settings of Podman for all containers; the directories follow in the order in which they are read.
const DEFAULTS: [&str; 2] = [
    "/etc/containers/containers.conf",
    "/etc/containers/containers.conf.d",
];

pub(super) fn collect(g: &mut Gather<'_>) {
    note_registries(g);
    note_defaults(g);
    let guests = proxmox_guests::directory(g, "lxc");
    let mut all = files(g, "container_mount", &guests, ".conf");
    all.extend(each_in(g, LXC, "config"));
    let mut found = Lines::of("container_mount", "whole_machine");
    for path in all {
        for line in read(g, "container_mount", &path) {
            let Some(text) = bare(&line) else { continue };
            // A snapshot of the definition follows in its own section.
            if text.starts_with('[') {
                break;
            }
            let Some((name, value)) = text.split_once([':', '=']) else {
                continue;
            };
            let (name, value) = (name.trim(), value.trim());
            let number = name
                .strip_prefix("mp")
                .is_some_and(|rest| rest.parse::<u16>().is_ok());
            if !number && name != "lxc.mount.entry" {
                continue;
            }
            let source = value.split([',', ' ', '\t']).next().unwrap_or_default();
            let read_only = value
                .split([',', ' ', '\t'])
                .any(|word| word == "ro" || word == "ro=1");
            found.add(g, source == "/" && !read_only, &line.place);
        }
    }
}

/// Notes settings of containers.conf(5) that take a protection from all containers.
fn note_defaults(g: &mut Gather<'_>) {
    let [main, dir] = DEFAULTS;
    let mut all = vec![main.to_owned()];
    all.extend(files(g, "podman_default", dir, ".conf"));
    let mut last: BTreeMap<String, (bool, FactPlace)> = BTreeMap::new();
    for path in all {
        for line in read(g, "podman_default", &path) {
            let words = words(&line);
            if let [name, value, ..] = &words[..]
                && ["seccomp_profile", "apparmor_profile", "privileged"].contains(&name.as_str())
            {
                let off = value == "unconfined" || (name == "privileged" && value == "true");
                last.insert(name.clone(), (off, line.place));
            }
        }
    }
    let mut found = Lines::of("podman_default", "unconfined");
    for (off, place) in last.into_values() {
        found.add(g, off, &place);
    }
}

/// Notes registries whose certificate Podman does not verify (containers-registries.conf(5)).
fn note_registries(g: &mut Gather<'_>) {
    let mut all = vec![REGISTRIES.to_owned()];
    all.extend(files(g, "registry", &format!("{REGISTRIES}.d"), ".conf"));
    all.extend(each_in(g, CERTIFICATES, "hosts.toml"));
    all.extend(exists(g, CONTAINERD).then(|| CONTAINERD.to_owned()));
    let mut found = Lines::of("registry", "insecure_registry");
    for path in all {
        let mut own = false;
        for line in read(g, "registry", &path) {
            let words = words(&line);
            match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
                [table, ..] if table.starts_with('[') => {
                    let address = table.split('"').nth(1).unwrap_or_default();
                    let address = address.rsplit("://").next().unwrap_or_default();
                    own = is_loopback(address);
                }
                ["location" | "prefix", address, ..] => own |= is_loopback(address),
                [
                    "insecure" | "skip_verify" | "insecure_skip_verify",
                    value,
                    ..,
                ] => found.add(g, value == "true" && !own, &line.place),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::holds;

    #[test]
    fn mounts_of_containers() {
        for (path, text, expected) in [
            (
                "/etc/pve/lxc/102.conf",
                "mp0: /,mp=/host\n",
                "container_mount.1.whole_machine 1",
            ),
            (
                "/etc/pve/lxc/102.conf",
                "mp0: /,mp=/host,ro=1\nmp1: /srv,mp=/srv\n",
                "",
            ),
            (
                "/etc/pve/lxc/102.conf",
                "arch: amd64\n[old]\nmp0: /,mp=/host\n",
                "",
            ),
            (
                "/etc/containers/registries.conf",
                "[[registry]]\nlocation = \"r.example.org\"\ninsecure = true\n",
                "registry.1.insecure_registry 3",
            ),
            (
                "/etc/containers/registries.conf",
                "[[registry]]\nlocation = \"localhost:5000\"\ninsecure = true\n",
                "",
            ),
            (
                "/var/lib/lxc/a/config",
                "lxc.mount.entry = / mnt none bind 0 0\n",
                "container_mount.1.whole_machine 1",
            ),
        ] {
            assert_eq!(holds(&[(path, text)]).join(" "), expected, "{text}");
        }
    }
}
