//! Containers of LXC and Proxmox VE that get the root directory of the host.

use super::super::lines_of_files::{files, read};
use super::{Lines, bare, each_in};
use crate::collectors::proxmox_guests;
use crate::gather::Gather;

const LXC: &str = "/var/lib/lxc";

pub(super) fn collect(g: &mut Gather<'_>) {
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
                "/var/lib/lxc/a/config",
                "lxc.mount.entry = / mnt none bind 0 0\n",
                "container_mount.1.whole_machine 1",
            ),
        ] {
            assert_eq!(holds(&[(path, text)]).join(" "), expected, "{text}");
        }
    }
}
