//! Finds settings of storage that let a fault go unnoticed, or undo what they should do: LVM, multipath, the event
//! daemon and the scrubs of ZFS, keys of encrypted disks, and the order of swap (lvm.conf(5), multipath.conf(5),
//! zed(8), crypttab(5), zram-generator.conf(5), swapon(2)), mdadm and smartd (mdadm.conf(5), smartd.conf(5)).

use super::super::backup_schedules::is_wanted;
use super::super::lines_of_files::{Line, exists, files, note, read};
use super::Misuses;
use crate::gather::{Gather, lossy};
use assay_model::FactPlace;

const MDADM: &str = "/etc/mdadm/mdadm.conf";
const MDADM_CHECK: &str = "/etc/default/mdadm";
const SMARTD: &str = "/etc/smartd.conf";
/// lvmlocal.conf is read after lvm.conf.
const LVM: [&str; 2] = ["/etc/lvm/lvm.conf", "/etc/lvm/lvmlocal.conf"];
const LVM_BACKUP: &str = "/etc/lvm/backup";
const MULTIPATH: &str = "/etc/multipath.conf";
const MULTIPATH_DIR: &str = "/etc/multipath/conf.d";
const ZED: &str = "/etc/zfs/zed.d/zed.rc";
/// Settings of zed that name somebody to notify.
const ZED_TARGETS: [&str; 7] = [
    "ZED_EMAIL_ADDR",
    "ZED_EMAIL",
    "ZED_PUSHBULLET_ACCESS_TOKEN",
    "ZED_SLACK_WEBHOOK_URL",
    "ZED_PUSHOVER_TOKEN",
    "ZED_NTFY_TOPIC",
    "ZED_GOTIFY_URL",
];
const ZFS_JOB: &str = "/etc/cron.d/zfsutils-linux";
const UNITS: &str = "/etc/systemd/system";
const FSTAB: &str = "/etc/fstab";
const CRYPTTAB: &str = "/etc/crypttab";
const ZRAM: [(&str, &str); 2] = [
    ("/etc/systemd/zram-generator.conf", "swap-priority"),
    ("/etc/default/zramswap", "PRIORITY"),
];

pub(super) fn collect(g: &mut Gather<'_>) {
    note_arrays(g);
    note_smartd(g);
    note_lvm(g);
    note_multipath(g);
    note_zed(g);
    note_scrub(g);
    note_keys(g);
    note_swap(g);
}

/// Notes the arrays that mdadm.conf lists, for a tree of files without a state of the kernel.
fn note_arrays(g: &mut Gather<'_>) {
    if exists(g, "/proc/mdstat") {
        return;
    }
    let lines = read(g, "mdadm", MDADM);
    let array = lines.iter().find(|line| {
        let text = text_of(line).to_ascii_lowercase();
        text.starts_with("array ") && !text.contains("<ignore>")
    });
    let Some(array) = array else { return };
    let place = array.place.clone();
    note(g, "mdadm", "settings", &place, &[("arrays", true.into())]);
    if exists(g, MDADM_CHECK) {
        note(
            g,
            "mdadm_check",
            "settings",
            &place,
            &[("arrays", true.into())],
        );
    }
}

/// Notes lines of smartd.conf after DEVICESCAN, which smartd ignores. Also corrects whether smartd warns somebody if a
/// backslash continues a line: the collector of all machines reads each line alone.
fn note_smartd(g: &mut Gather<'_>) {
    let mut lines = read(g, "smartd", SMARTD);
    lines.retain(|line| !text_of(line).is_empty());
    let first = |line: &Line| text_of(line).split_whitespace().next().map(str::to_owned);
    let Some(scan) = lines
        .iter()
        .position(|line| first(line).as_deref() == Some("DEVICESCAN"))
    else {
        return;
    };
    let ignored = lines[scan + 1..]
        .iter()
        .find(|line| text_of(line).starts_with('/'));
    let place = ignored.unwrap_or(&lines[scan]).place.clone();
    let properties = [("ignores_lines", ignored.is_some().into())];
    note(g, "smartd_lines", "settings", &place, &properties);
    let mails = |line: &Line| {
        let words: Vec<&str> = text_of(line).split_whitespace().collect();
        let to = words.windows(2).find(|pair| pair[0] == "-m");
        to.is_some_and(|pair| pair[1] != "<nomailer>" || words.contains(&"exec"))
    };
    if lines[..=scan].iter().any(mails) {
        let place = lines[scan].place.clone();
        note(g, "smartd", "settings", &place, &[("warns", true.into())]);
    }
}

fn text_of(line: &Line) -> &str {
    line.text.split('#').next().unwrap_or_default().trim()
}

/// Notes thin pools that nothing extends or watches, and copies of the metadata that are switched off.
fn note_lvm(g: &mut Gather<'_>) {
    let mut lines = Vec::new();
    for path in LVM {
        lines.extend(read(g, "lvm_setting", path));
    }
    let last = |name: &str| {
        lines.iter().rev().find_map(|line| {
            let (key, value) = text_of(line).split_once('=')?;
            // A setting may be written with its section, as in `activation/monitoring`.
            let key = key.trim().rsplit('/').next().unwrap_or_default();
            (key == name).then(|| (value.trim().parse::<u64>().ok(), line.place.clone()))
        })
    };
    let mut found = Misuses::default();
    let mut thin = false;
    for path in files(g, "lvm_setting", LVM_BACKUP, "") {
        let lines = read(g, "lvm_setting", &path);
        thin |= lines
            .iter()
            .any(|line| text_of(line).replace(' ', "") == "type=\"thin-pool\"");
    }
    if let (true, Some((Some(on), place))) = (thin, last("monitoring")) {
        found.add("thin_unwatched", on == 0, place);
    }
    if let (true, Some((Some(percent), place))) = (thin, last("thin_pool_autoextend_threshold")) {
        found.add("thin_unwatched", percent >= 100, place);
    }
    if let Some((Some(on), place)) = last("backup") {
        found.add("unsaved", on == 0, place);
    }
    found.note(g, "lvm_setting");
}

/// Notes a blacklist of all disks without exceptions.
fn note_multipath(g: &mut Gather<'_>) {
    let mut all = vec![MULTIPATH.to_owned()];
    all.extend(files(g, "multipath", MULTIPATH_DIR, ".conf"));
    let mut found = Misuses::default();
    let (mut every, mut exceptions) = (None, false);
    for path in all {
        let (mut section, mut depth) = (String::new(), 0_u32);
        for line in read(g, "multipath", &path) {
            let text = text_of(&line);
            if text.starts_with('!') {
                continue;
            }
            if text.contains('{') {
                if depth == 0 {
                    let name = text.split(['{', ' ']).next();
                    section = name.unwrap_or_default().to_owned();
                }
                depth += 1;
            } else if !text.starts_with('}') {
                let (key, value) = text.split_once(char::is_whitespace).unwrap_or_default();
                let value = value.trim().trim_matches('"');
                let is_all = matches!(value, "*" | ".*" | "^.*" | ".*$" | "^.*$");
                match (section.as_str(), key) {
                    ("blacklist", "wwid" | "devnode") if is_all => every = Some(line.place.clone()),
                    ("blacklist_exceptions", _) if !key.is_empty() => exceptions = true,
                    _ => {}
                }
            }
            if text.contains('}') {
                depth = depth.saturating_sub(1);
            }
        }
    }
    if let Some(place) = every {
        found.add("excludes_all", !exceptions, place);
    }
    found.note(g, "multipath");
}

/// Notes whether zed notifies somebody of a failed disk.
fn note_zed(g: &mut Gather<'_>) {
    let lines = read(g, "zfs_zed", ZED);
    if lines.is_empty() {
        return;
    }
    let set = lines.iter().any(|line| {
        let (key, value) = text_of(line).split_once('=').unwrap_or_default();
        let key = key.trim().strip_prefix("export ").unwrap_or(key.trim());
        ZED_TARGETS.contains(&key) && !value.trim().trim_matches(['"', '\'']).is_empty()
    });
    let mut found = Misuses::default();
    found.add("notifies_nobody", !set, FactPlace::from(ZED));
    found.note(g, "zfs_zed");
}

/// Notes the job of Debian that scrubs pools, if it was switched off and no timer replaces it.
fn note_scrub(g: &mut Gather<'_>) {
    let lines = read(g, "zfs_scrub", ZFS_JOB);
    let is_scrub = |line: &&Line| line.text.contains("/zfs-linux/scrub");
    let on = lines
        .iter()
        .filter(is_scrub)
        .any(|line| !line.text.trim_start().starts_with('#'));
    let Some(line) = lines.iter().find(is_scrub) else {
        return;
    };
    let place = line.place.clone();
    let elsewhere = on || scrubs_elsewhere(g);
    let mut found = Misuses::default();
    found.add("off", !elsewhere, place);
    found.note(g, "zfs_scrub");
}

fn scrubs_elsewhere(g: &mut Gather<'_>) -> bool {
    let wants = g.list("zfs_scrub", &format!("{UNITS}/timers.target.wants"));
    let by_timer = wants.iter().any(|name| lossy(name).contains("scrub"));
    let mut all = vec![
        "/etc/crontab".to_owned(),
        "/var/spool/cron/crontabs/root".to_owned(),
    ];
    for dir in ["/etc/cron.d", "/etc/cron.weekly", "/etc/cron.monthly"] {
        all.extend(files(g, "zfs_scrub", dir, ""));
    }
    all.extend(files(g, "zfs_scrub", UNITS, ".service"));
    let is_scrub = |line: &Line| {
        let text = line.text.trim_start();
        !text.starts_with('#') && text.contains("zpool scrub")
    };
    by_timer
        || is_wanted(g, "zfs-scrub.timer")
        || all
            .iter()
            .any(|path| read(g, "zfs_scrub", path).iter().any(is_scrub))
}

/// Notes keys of encrypted disks in /boot, which is not encrypted itself.
fn note_keys(g: &mut Gather<'_>) {
    let boot = read(g, "disk_key", FSTAB).into_iter().find_map(|line| {
        let words: Vec<&str> = text_of(&line).split_whitespace().collect();
        match words[..] {
            [source, "/boot", ..] => Some(source.to_owned()),
            _ => None,
        }
    });
    // Without a file system of its own, /boot lies in that of the root, which may be encrypted.
    let Some(source) = boot else { return };
    let encrypted = source.starts_with("/dev/mapper/");
    let mut found = Misuses::default();
    for line in read(g, "disk_key", CRYPTTAB) {
        let words: Vec<&str> = text_of(&line).split_whitespace().collect();
        if let [_, _, key, ..] = words[..]
            && key.starts_with('/')
            && !key.starts_with("/dev/")
        {
            let open = key.starts_with("/boot/") && !encrypted;
            found.add("on_boot", open, line.place);
        }
    }
    found.note(g, "disk_key");
}

/// Notes swap on a disk that is used before compressed swap in memory.
fn note_swap(g: &mut Gather<'_>) {
    let mut zram = None;
    for (path, key) in ZRAM {
        if !exists(g, path) {
            continue;
        }
        let mut priority = 100;
        for line in read(g, "swap_order", path) {
            let (name, value) = text_of(&line).split_once('=').unwrap_or_default();
            if name.trim() == key {
                priority = value.trim().trim_matches('"').parse::<i64>().unwrap_or(100);
            }
        }
        zram = Some(priority);
    }
    let Some(zram) = zram else { return };
    let mut found = Misuses::default();
    for line in read(g, "swap_order", FSTAB) {
        let words: Vec<&str> = text_of(&line).split_whitespace().collect();
        if let [_, _, "swap", options, ..] = words[..] {
            let own = options.split(',').find_map(|one| one.strip_prefix("pri="));
            let own = own.and_then(|one| one.parse::<i64>().ok());
            // Without a priority, the kernel gives a negative one.
            let first = own.is_some_and(|own| own > zram);
            found.add("disk_first", first, line.place);
        }
    }
    found.note(g, "swap_order");
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn settings_of_lvm() {
        let pool = ("/etc/lvm/backup/vg0", "vg0 {\n\ttype = \"thin-pool\"\n}\n");
        for (text, expected) in [
            ("activation {\n monitoring = 0\n}\n", "thin_unwatched=true"),
            ("activation {\n monitoring = 1\n}\n", "thin_unwatched=false"),
            (
                "activation/thin_pool_autoextend_threshold = 100\n",
                "thin_unwatched=true",
            ),
            (
                "\tthin_pool_autoextend_threshold = 80 # percent\n",
                "thin_unwatched=false",
            ),
            ("# monitoring = 0\n", ""),
            ("backup {\n backup = 0\n}\n", "unsaved=true"),
            (
                "backup {\n backup = 1\n backup_dir = \"/x\"\n}\n",
                "unsaved=false",
            ),
        ] {
            assert_eq!(
                found(&[pool, (LVM[1], text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
        assert!(found(&[(LVM[0], "monitoring = 0\n")], collect).is_empty());
    }

    #[test]
    fn settings_and_their_near_misses() {
        for (path, text, expected) in [
            (
                MULTIPATH,
                "blacklist {\n wwid \".*\"\n}\n",
                "excludes_all=true",
            ),
            (
                MULTIPATH,
                "blacklist {\n wwid \".*\"\n}\nblacklist_exceptions {\n wwid \"36\"\n}\n",
                "excludes_all=false",
            ),
            (MULTIPATH, "blacklist {\n devnode \"^sd[a-c]\"\n}\n", ""),
            (ZED, "#ZED_EMAIL_ADDR=\"root\"\n", "notifies_nobody=true"),
            (ZED, "ZED_EMAIL_ADDR=\"root\"\n", "notifies_nobody=false"),
            (ZED, "ZED_NTFY_TOPIC=\"\"\n", "notifies_nobody=true"),
            (
                ZFS_JOB,
                "#24 0 8-14 * * root /usr/lib/zfs-linux/scrub\n",
                "off=true",
            ),
            (
                ZFS_JOB,
                "24 0 8-14 * * root /usr/lib/zfs-linux/scrub\n",
                "off=false",
            ),
        ] {
            assert_eq!(
                found(&[(path, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
        let off = (ZFS_JOB, "#24 0 8-14 * * root /usr/lib/zfs-linux/scrub\n");
        let timer = (
            "/etc/systemd/system/timers.target.wants/zfs-scrub-monthly@tank.timer",
            "",
        );
        assert_eq!(found(&[off, timer], collect), ["off=false"]);
    }

    #[test]
    fn lines_of_smartd_and_arrays() {
        for (text, expected) in [
            (
                "DEVICESCAN -a -S on \\\n  -m root\n",
                "warns=true ignores_lines=false",
            ),
            ("DEVICESCAN -a\n/dev/sda -a -m root\n", "ignores_lines=true"),
            (
                "/dev/sda -a -m root\nDEVICESCAN -a\n",
                "warns=true ignores_lines=false",
            ),
            ("#DEVICESCAN\n/dev/sda -a -m root\n", ""),
        ] {
            assert_eq!(
                found(&[(SMARTD, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
        let array = (MDADM, "ARRAY /dev/md/0 UUID=1:2:3:4\n");
        assert_eq!(found(&[array], collect), ["arrays=true"]);
        assert!(found(&[array, ("/proc/mdstat", "")], collect).is_empty());
        assert!(found(&[(MDADM, "ARRAY <ignore> UUID=1:2:3:4\n")], collect).is_empty());
    }

    #[test]
    fn keys_and_swap() {
        let boot = (FSTAB, "UUID=1 /boot ext4 defaults 0 2\n");
        for (text, expected) in [
            ("a UUID=2 /boot/luks.key luks\n", "on_boot=true"),
            ("a UUID=2 /etc/keys/a luks\n", "on_boot=false"),
            ("a UUID=2 none luks\n", ""),
        ] {
            assert_eq!(
                found(&[boot, (CRYPTTAB, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
        let zram = (ZRAM[0].0, "[zram0]\nzram-size = ram / 2\n");
        for (text, expected) in [
            ("UUID=3 none swap sw,pri=200 0 0\n", "disk_first=true"),
            ("UUID=3 none swap sw,pri=10 0 0\n", "disk_first=false"),
            ("UUID=3 none swap sw 0 0\n", "disk_first=false"),
        ] {
            assert_eq!(
                found(&[zram, (FSTAB, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
    }
}
