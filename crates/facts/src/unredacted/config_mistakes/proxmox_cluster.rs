//! Finds settings of a Proxmox VE node that do not protect as intended: directory storages on file systems that may be
//! missing, tokens with all rights of root, guest firewalls that are not in force, and a cluster without signatures.

use super::super::lines_of_files::{Line, exists, files, is_loopback, read};
use super::Misuses;
use crate::collectors::proxmox_guests;
use crate::gather::Gather;
use assay_model::FactPlace;

const STORES: &str = "/etc/pve/storage.cfg";
const FSTAB: &str = "/etc/fstab";
const UNITS: &str = "/etc/systemd/system";
const USERS: &str = "/etc/pve/user.cfg";
const FIREWALL: &str = "/etc/pve/firewall";
const COROSYNC: [&str; 2] = ["/etc/pve/corosync.conf", "/etc/corosync/corosync.conf"];

pub(super) fn collect(g: &mut Gather<'_>) {
    note_stores(g);
    note_tokens(g);
    note_firewalls(g);
    note_cluster(g);
}

/// Notes directory storages below a separate mount, without `is_mountpoint`: if the mount fails, Proxmox writes to the
/// root file system.
fn note_stores(g: &mut Gather<'_>) {
    if !exists(g, STORES) {
        return;
    }
    let points = mount_points(g);
    let mut found = Misuses::default();
    let mut path: Option<(String, FactPlace)> = None;
    let (mut is_directory, mut guarded) = (false, false);
    let mut finish = |path: &mut Option<(String, FactPlace)>, guarded: bool| {
        if let Some((path, place)) = path.take() {
            let mounted = points
                .iter()
                .any(|point| path == *point || path.starts_with(&format!("{point}/")));
            found.add("mount_unchecked", mounted && !guarded, place);
        }
    };
    for line in read(g, "pve_store", STORES) {
        if line.text.trim().is_empty() || line.text.starts_with('#') {
            continue;
        }
        if !line.text.starts_with(char::is_whitespace) {
            finish(&mut path, guarded);
            (is_directory, guarded) = (line.text.starts_with("dir:"), false);
            continue;
        }
        let text = line.text.trim();
        let (key, value) = text.split_once(char::is_whitespace).unwrap_or((text, "1"));
        let value = value.trim();
        match key {
            "path" if is_directory => {
                path = Some((value.trim_end_matches('/').to_owned(), line.place))
            }
            "is_mountpoint" => guarded |= !matches!(value, "0" | "no" | "off" | "false"),
            "disable" => guarded |= matches!(value, "1" | "yes" | "on" | "true"),
            _ => {}
        }
    }
    finish(&mut path, guarded);
    found.note(g, "pve_store");
}

/// Returns the mount points of fstab and of mount units, except the root directory.
fn mount_points(g: &mut Gather<'_>) -> Vec<String> {
    let mut points = Vec::new();
    for line in read(g, "pve_store", FSTAB) {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        if let [source, point, ..] = words[..]
            && !source.starts_with('#')
        {
            points.push(point.to_owned());
        }
    }
    for path in files(g, "pve_store", UNITS, ".mount") {
        let lines = read(g, "pve_store", &path);
        points.extend(
            lines
                .iter()
                .filter_map(|line| Some(line.text.trim().strip_prefix("Where=")?.to_owned())),
        );
    }
    points.retain(|point| point.len() > 1 && point.starts_with('/') && point != "/var");
    points
}

/// Notes tokens of root without separate privileges (user.cfg: `token:USER!NAME:EXPIRE:PRIVSEP:COMMENT`).
fn note_tokens(g: &mut Gather<'_>) {
    let mut found = Misuses::default();
    for line in read(g, "pve_token", USERS) {
        let fields: Vec<&str> = line.text.split(':').collect();
        if let ["token", user, _, separate, ..] = fields[..]
            && user.starts_with("root@pam!")
        {
            found.add("unlimited", separate == "0", line.place);
        }
    }
    found.note(g, "pve_token");
}

/// Returns the value of a key in the section `[OPTIONS]` of a firewall file, with its place.
fn option_of(lines: &[Line], key: &str) -> Option<(String, FactPlace)> {
    let mut within = false;
    let mut last = None;
    for line in lines {
        let text = line.text.trim();
        if text.starts_with('[') {
            within = text.eq_ignore_ascii_case("[options]");
        } else if let Some((name, value)) = text.split_once(':')
            && within
            && name.trim() == key
        {
            last = Some((value.trim().to_lowercase(), line.place.clone()));
        }
    }
    last
}

/// Notes firewalls of guests that are on, although the firewall of the cluster is off or a network card of the guest
/// bypasses it.
fn note_firewalls(g: &mut Gather<'_>) {
    let cluster = read(g, "pve_firewall", &format!("{FIREWALL}/cluster.fw"));
    let is_on = |value: &str| value.parse::<u32>().is_ok_and(|value| value > 0);
    let cluster_on = option_of(&cluster, "enable").is_some_and(|(value, _)| is_on(&value));
    let mut found = Misuses::default();
    for path in files(g, "pve_firewall", FIREWALL, ".fw") {
        let name = path.rsplit('/').next().unwrap_or_default();
        let name = name.trim_end_matches(".fw").to_owned();
        if name.parse::<u32>().is_err() {
            continue;
        }
        let lines = read(g, "pve_firewall", &path);
        let Some((_, place)) = option_of(&lines, "enable").filter(|(value, _)| is_on(value)) else {
            continue;
        };
        let bypassed = bypasses(g, &name);
        found.add("not_in_force", !cluster_on || bypassed, place);
    }
    found.note(g, "pve_firewall");
}

/// Returns whether a guest has network cards, and none of them passes the firewall.
fn bypasses(g: &mut Gather<'_>, guest: &str) -> bool {
    for kind in ["qemu-server", "lxc"] {
        let path = format!("{}/{guest}.conf", proxmox_guests::directory(g, kind));
        let lines = read(g, "pve_firewall", &path);
        let own = lines.iter().take_while(|line| !line.text.starts_with('['));
        let mut cards = own
            .filter_map(|line| line.text.split_once(':'))
            .filter(|(key, _)| {
                key.strip_prefix("net")
                    .is_some_and(|number| number.parse::<u8>().is_ok())
            })
            .peekable();
        if cards.peek().is_some() {
            return !cards
                .any(|(_, value)| value.split(',').any(|part| part.trim() == "firewall=1"));
        }
    }
    false
}

/// Notes whether the messages of a cluster of several machines are signed (corosync.conf(5)).
fn note_cluster(g: &mut Gather<'_>) {
    let Some(path) = COROSYNC.into_iter().find(|path| exists(g, path)) else {
        return;
    };
    let lines = read(g, "corosync", path);
    let mut nodes = 0;
    let (mut totem, mut signed) = (None, false);
    for line in &lines {
        let text = line.text.trim();
        if text.starts_with("totem") {
            totem.get_or_insert_with(|| line.place.clone());
        }
        let Some((key, value)) = text.split_once(':').filter(|_| !text.starts_with('#')) else {
            continue;
        };
        let value = value.trim();
        match key.trim() {
            "ring0_addr" => nodes += usize::from(!is_loopback(value)),
            "secauth" if totem.is_some() => {
                signed |= value == "on";
                if value == "off" {
                    totem = Some(line.place.clone());
                }
            }
            "crypto_hash" | "crypto_cipher" => signed |= value != "none",
            _ => {}
        }
    }
    let mut found = Misuses::default();
    if let Some(place) = totem.filter(|_| nodes > 1) {
        found.add("unsigned", !signed, place);
    }
    found.note(g, "corosync");
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn stores_and_tokens() {
        let fstab = (FSTAB, "UUID=1 /mnt/usb ext4 nofail 0 2\n");
        for (text, expected) in [
            (
                "dir: usb\n\tpath /mnt/usb\n\tcontent backup\n",
                "mount_unchecked=true",
            ),
            (
                "dir: usb\n\tpath /mnt/usb/dump\n\tis_mountpoint /mnt/usb\n",
                "mount_unchecked=false",
            ),
            (
                "dir: usb\n\tis_mountpoint yes\n\tpath /mnt/usb\n",
                "mount_unchecked=false",
            ),
            ("dir: local\n\tpath /var/lib/vz\n", "mount_unchecked=false"),
            ("nfs: nas\n\tpath /mnt/usb\n\tserver a\n", ""),
            (
                "dir: usb\n\tpath /mnt/usb\n\tdisable\n",
                "mount_unchecked=false",
            ),
        ] {
            assert_eq!(
                found(&[fstab, (STORES, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
        for (text, expected) in [
            ("token:root@pam!mon:0:0:x:\n", "unlimited=true"),
            ("token:root@pam!mon:0:1:x:\n", "unlimited=false"),
            ("token:bob@pve!mon:0:0:x:\n", ""),
        ] {
            assert_eq!(
                found(&[(USERS, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn firewalls_of_guests() {
        let guest = ("/etc/pve/firewall/101.fw", "[OPTIONS]\n\nenable: 1\n");
        let on = ("/etc/pve/firewall/cluster.fw", "[OPTIONS]\nenable: 1\n");
        let off = (
            "/etc/pve/firewall/cluster.fw",
            "[OPTIONS]\nenable: 0\n[RULES]\nenable: 1\n",
        );
        let card = (
            "/etc/pve/qemu-server/101.conf",
            "net0: virtio=A,bridge=vmbr0,firewall=1\n",
        );
        let bare = (
            "/etc/pve/qemu-server/101.conf",
            "net0: virtio=A,bridge=vmbr0\n",
        );
        for (files, expected) in [
            (vec![guest, on, card], "not_in_force=false"),
            (vec![guest, off, card], "not_in_force=true"),
            (vec![guest, card], "not_in_force=true"),
            (vec![guest, on, bare], "not_in_force=true"),
            (vec![on, card], ""),
        ] {
            assert_eq!(found(&files, collect).join(" "), expected, "{files:?}");
        }
    }

    #[test]
    fn clusters() {
        let nodes = "nodelist {\n node {\n ring0_addr: 10.0.0.1\n }\n node {\n ring0_addr: 10.0.0.2\n }\n}\n";
        for (text, expected) in [
            (
                format!("totem {{\n secauth: off\n}}\n{nodes}"),
                "unsigned=true",
            ),
            (
                format!("totem {{\n version: 2\n}}\n{nodes}"),
                "unsigned=true",
            ),
            (
                format!("totem {{\n secauth: on\n}}\n{nodes}"),
                "unsigned=false",
            ),
            (
                format!("totem {{\n crypto_hash: sha256\n}}\n{nodes}"),
                "unsigned=false",
            ),
            ("totem {\n crypto_hash: none\n}\n".to_owned(), ""),
        ] {
            assert_eq!(
                found(&[(COROSYNC[1], &text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
    }
}
