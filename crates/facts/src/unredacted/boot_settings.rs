//! Collects settings that take effect at boot: the kernel command line in the boot loader, swap on zvols in fstab,
//! limits of the ARC, and encrypted disks on a processor without AES.

use super::lines_of_files::{files, note, read};
use crate::gather::Gather;
use assay_config::effective::files::OfHost;
use assay_config::effective::{Program, ScopeId, read_effective};
use assay_model::{FactKind, FactPlace};
use std::collections::BTreeMap;
use std::path::Path;

const SYSCTL: &str = "/etc/sysctl.conf";
const GRUB: &str = "/etc/default/grub";
/// Variables of GRUB whose values form the kernel command line, in the order in which they are joined.
const GRUB_LINES: [&str; 2] = ["GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"];
const GRUB_DIR: &str = "/etc/default/grub.d";
const CMDLINE: &str = "/etc/kernel/cmdline";
/// Command line of the boot loader of a Raspberry Pi.
const FIRMWARE: [&str; 2] = ["/boot/firmware/cmdline.txt", "/boot/cmdline.txt"];
/// Entries of systemd-boot and of distributions with the Boot Loader Specification.
const ENTRIES: &str = "/boot/loader/entries";
/// Words that switch one mitigation off (admin-guide/kernel-parameters.txt).
const SINGLE: [&str; 17] = [
    "nopti",
    "pti=off",
    "nospectre_v1",
    "nospectre_v2",
    "nospectre_bhb",
    "spectre_v2=off",
    "spectre_v2_user=off",
    "nospec_store_bypass_disable",
    "spec_store_bypass_disable=off",
    "l1tf=off",
    "mds=off",
    "mmio_stale_data=off",
    "retbleed=off",
    "spec_rstack_overflow=off",
    "gather_data_sampling=off",
    "srbds=off",
    "kpti=0",
];
const FSTAB: &str = "/etc/fstab";
const CRYPTTAB: &str = "/etc/crypttab";
const MODPROBE: &str = "/etc/modprobe.d";

pub(super) fn collect(g: &mut Gather<'_>) {
    boot_line(g);
    swap_on_zvol(g);
    arc_limits(g);
    encrypted_disks(g);
}

/// Notes whether the machine will boot without the processor's vulnerability mitigations, or without AppArmor.
fn boot_line(g: &mut Gather<'_>) {
    let mut all = vec![GRUB.to_owned()];
    all.extend(files(g, "boot_line", GRUB_DIR, ".cfg"));
    // Parts of each variable with their places, in the order in which the boot loader joins them.
    let mut parts: BTreeMap<&str, Vec<(String, FactPlace)>> = BTreeMap::new();
    for path in all {
        for line in read(g, "boot_line", &path) {
            let Some((name, value)) = line.text.trim().split_once('=') else {
                continue;
            };
            // The file is a shell script: `+=` appends.
            let (name, appends) = match name.strip_suffix('+') {
                Some(name) => (name, true),
                None => (name, false),
            };
            let Some(name) = GRUB_LINES.into_iter().find(|known| *known == name) else {
                continue;
            };
            let of_name = parts.entry(name).or_default();
            let keeps = [format!("${name}"), format!("${{{name}}}")];
            if !appends && !keeps.iter().any(|one| value.contains(one.as_str())) {
                of_name.clear();
            }
            of_name.push((value.to_owned(), line.place));
        }
    }
    let mut lines: Vec<(String, FactPlace)> = parts.into_values().flatten().collect();
    for path in [CMDLINE].into_iter().chain(FIRMWARE) {
        if let Some(line) = read(g, "boot_line", path).into_iter().next() {
            lines.push((line.text, line.place));
        }
    }
    for path in files(g, "boot_line", ENTRIES, ".conf") {
        let options = read(g, "boot_line", &path).into_iter();
        let mut options = options.filter(|line| line.text.starts_with("options"));
        lines.extend(options.next().map(|line| (line.text, line.place)));
    }
    // The kernel uses the last word.
    let last = lines
        .iter()
        .rev()
        .find_map(|(text, place)| Some((last_value(text, "mitigations=")?, place)));
    let all = last
        .filter(|(value, _)| *value == "off")
        .map(|(_, place)| place);
    let single = lines
        .iter()
        .find(|(text, _)| words_of(text).any(|word| SINGLE.contains(&word)));
    let apparmor = lines
        .iter()
        .rev()
        .find_map(|(text, place)| Some((last_value(text, "apparmor=")?, place)));
    if let Some(("0", place)) = apparmor {
        let off = "boot_line.apparmor_off";
        g.facts
            .known(off, true, FactKind::Configured, place.clone());
    }
    note_sysctl(g, &lines);
    let debug = lines
        .iter()
        .find(|(text, _)| words_of(text).any(opens_shell));
    if let Some((_, place)) = debug {
        let shell = "boot_line.debug_shell";
        g.facts
            .known(shell, true, FactKind::Configured, place.clone());
    }
    if let Some(place) = all.or(single.map(|(_, place)| place)) {
        g.facts.known(
            "boot_line.mitigations_off",
            true,
            FactKind::Configured,
            place.clone(),
        );
    }
}

/// Returns whether a word starts the debug shell (systemd-debug-generator(8)).
fn opens_shell(word: &str) -> bool {
    let (name, value) = word.split_once('=').unwrap_or((word, "1"));
    let on = !matches!(value, "0" | "no" | "false" | "off" | "n" | "f");
    on && matches!(name, "systemd.debug-shell" | "systemd.debug_shell")
}

/// Notes kernel settings on the command line (`sysctl.NAME=VALUE`) that no file of sysctl sets. sysctl runs later.
fn note_sysctl(g: &mut Gather<'_>, lines: &[(String, FactPlace)]) {
    let mut all: Vec<(String, FactPlace)> = lines.to_vec();
    let now = read(g, "boot_line", crate::collectors::kernel::CMDLINE);
    all.extend(now.into_iter().map(|line| (line.text, line.place)));
    let files = read_effective(Program::Sysctl, Path::new(SYSCTL), &OfHost(g.host));
    let by_file = |name: &str| {
        let said = files
            .as_ref()
            .ok()
            .map(|all| all.certain(ScopeId::ROOT, name));
        !matches!(said, Some(Ok(None)))
    };
    // The kernel uses the last word.
    for (text, place) in all.iter().rev() {
        for word in words_of(text).rev() {
            let Some((name, value)) = word
                .strip_prefix("sysctl.")
                .and_then(|rest| rest.split_once('='))
            else {
                continue;
            };
            let name = name.replace('/', ".");
            let key = format!("sysctl.{name}.configured");
            if crate::collectors::sysctl::NAMES.contains(&name.as_str())
                && g.facts.get(&key).is_none()
                && !by_file(&name)
            {
                let value = crate::collectors::sysctl::parse_number(value);
                g.facts
                    .known(key, value, FactKind::Configured, place.clone());
            }
        }
    }
}

fn words_of(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    text.split(|letter: char| letter.is_whitespace() || matches!(letter, '"' | '\''))
}

/// Returns the value of the last word with this beginning.
fn last_value<'a>(text: &'a str, beginning: &str) -> Option<&'a str> {
    words_of(text)
        .filter_map(|word| word.strip_prefix(beginning))
        .next_back()
}

/// Notes swap areas in fstab that are zvols. `collectors::services::swap` collects the active swap areas.
fn swap_on_zvol(g: &mut Gather<'_>) {
    for line in read(g, "swap", FSTAB) {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        if let [device, _, "swap", ..] = words[..]
            && device.starts_with("/dev/zvol/")
            && g.facts.get(&format!("swap.{device}.on")).is_none()
        {
            note(
                g,
                "fstab_swap",
                device,
                &line.place,
                &[("on", "zvol".into())],
            );
        }
    }
}

/// Notes whether the configured maximum of the ARC is below its minimum. In this case, ZFS ignores one of the two
/// (arc_init in arc.c).
fn arc_limits(g: &mut Gather<'_>) {
    let (mut least, mut most): (Option<u64>, Option<(u64, FactPlace)>) = (None, None);
    for path in files(g, "zfs_boot", MODPROBE, ".conf") {
        for line in read(g, "zfs_boot", &path) {
            let mut words = line.text.split_whitespace();
            if (words.next(), words.next()) != (Some("options"), Some("zfs")) {
                continue;
            }
            for (name, value) in words.filter_map(|word| word.split_once('=')) {
                match (name, number(value)) {
                    ("zfs_arc_min", Some(value)) => least = Some(value),
                    ("zfs_arc_max", Some(value)) => most = Some((value, line.place.clone())),
                    _ => {}
                }
            }
        }
    }
    if let (Some(least), Some((most, place))) = (least, most) {
        let below = most > 0 && most < least;
        g.facts.known(
            "zfs_boot.arc_max_below_min",
            below,
            FactKind::Configured,
            place,
        );
    }
}

/// Parses a number as the kernel does: hexadecimal after `0x`, octal after `0`, else decimal.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None if text.len() > 1 && text.starts_with('0') => u64::from_str_radix(text, 8).ok(),
        None => text.parse().ok(),
    }
}

/// Notes each encrypted disk that is unlocked at boot, if the processor has no AES instructions.
fn encrypted_disks(g: &mut Gather<'_>) {
    let lines = read(g, "encrypted_disk", CRYPTTAB);
    let disk = lines.iter().find(|line| {
        let text = line.text.trim();
        // Swap and /tmp with a key of their own are plain, and another cipher may be chosen for them.
        let other = [
            "plain",
            "cipher=xchacha",
            "cipher=serpent",
            "cipher=twofish",
        ];
        !text.is_empty() && !text.starts_with('#') && !other.iter().any(|word| text.contains(word))
    });
    let (Some(line), Some(text)) = (disk, g.read("encrypted_disk", "/proc/cpuinfo")) else {
        return;
    };
    let flags = text
        .lines()
        .find(|line| line.starts_with("flags") || line.starts_with("Features"));
    let Some(flags) = flags.and_then(|line| line.split_once(':')) else {
        return;
    };
    let aes = flags.1.split_whitespace().any(|flag| flag == "aes");
    note(
        g,
        "encrypted_disk",
        "all",
        &line.place,
        &[("without_aes", (!aes).into())],
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    fn is(files: &[(&str, &str)], fact: &str) -> Option<bool> {
        let host = files
            .iter()
            .fold(Recorded::new(), |host, (path, text)| host.file(path, *text));
        let mut g = Gather::new(&host);
        collect(&mut g);
        g.facts.get(fact).and_then(serde_json::Value::as_bool)
    }

    #[test]
    fn lines_of_the_boot_loader() {
        let of = |text: &str| is(&[(GRUB, text)], "boot_line.mitigations_off");
        assert_eq!(
            of("GRUB_CMDLINE_LINUX=\"quiet mitigations=off\"\n"),
            Some(true)
        );
        assert_eq!(of("GRUB_CMDLINE_LINUX=\"mitigations=auto\"\n"), None);
        assert_eq!(
            of("GRUB_CMDLINE_LINUX=\"mitigations=off mitigations=auto\"\n"),
            None
        );
        let twice = "GRUB_CMDLINE_LINUX=\"mitigations=off\"\nGRUB_CMDLINE_LINUX=\"quiet\"\n";
        assert_eq!(of(twice), None);
        let joined = "GRUB_CMDLINE_LINUX=\"mitigations=off\"\nGRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX quiet\"\n";
        assert_eq!(of(joined), Some(true));
        assert_eq!(of("# GRUB_CMDLINE_LINUX=\"mitigations=off\"\n"), None);
        assert_eq!(
            of("GRUB_CMDLINE_LINUX+=\" nopti nospectre_v2\"\n"),
            Some(true)
        );
        assert_eq!(of("GRUB_CMDLINE_LINUX=\"spectre_v2=on\"\n"), None);
        let apparmor = |text: &str| is(&[(GRUB, text)], "boot_line.apparmor_off");
        assert_eq!(apparmor("GRUB_CMDLINE_LINUX=\"apparmor=0\"\n"), Some(true));
        assert_eq!(
            apparmor("GRUB_CMDLINE_LINUX=\"apparmor=0 apparmor=1\"\n"),
            None
        );
        let entry = (
            "/boot/loader/entries/a.conf",
            "title a\noptions root=/dev/sda1 mitigations=off\n",
        );
        assert_eq!(is(&[entry], "boot_line.mitigations_off"), Some(true));
    }

    #[test]
    fn limits_of_the_arc() {
        let of = |text: &str| {
            is(
                &[("/etc/modprobe.d/zfs.conf", text)],
                "zfs_boot.arc_max_below_min",
            )
        };
        assert_eq!(
            of("options zfs zfs_arc_min=0x200000000 zfs_arc_max=4294967296\n"),
            Some(true)
        );
        assert_eq!(
            of("options zfs zfs_arc_min=1\noptions zfs zfs_arc_max=4294967296\n"),
            Some(false)
        );
        assert_eq!(
            of("options zfs zfs_arc_min=4294967296 zfs_arc_max=4294967296\n"),
            Some(false)
        );
        assert_eq!(of("options zfs zfs_arc_max=4294967296\n"), None);
    }

    #[test]
    fn disks_and_processors() {
        let of = |table: &str, flags: &str| {
            let cpu = format!("flags\t\t: {flags}\n");
            is(
                &[(CRYPTTAB, table), ("/proc/cpuinfo", &cpu)],
                "encrypted_disk.all.without_aes",
            )
        };
        assert_eq!(of("data UUID=1 none luks\n", "fpu sse2"), Some(true));
        assert_eq!(of("data UUID=1 none luks\n", "fpu aes"), Some(false));
        assert_eq!(of("swap /dev/sda2 /dev/urandom plain,swap\n", "fpu"), None);
    }
}
