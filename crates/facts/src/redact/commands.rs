//! Redaction rules for the output of each permitted command. A command without a rule is not run.

use super::complaint::version;
use crate::collectors::services::{certificates, mail_queue, not_asked, packages, smart};
use crate::collectors::{ext4, tools, zfs};
use crate::{libvirt, lvm};
use assay_model::secrets::{self, WITHHELD, is_path, is_plain};
use serde_json::Value;

/// Which part of a command's output is kept.
#[derive(Clone, Copy)]
pub(super) enum Rule {
    /// Keep only the version in the first line.
    Version,
    /// Redact each line separately.
    Lines(fn(&str) -> Option<String>),
    /// Keep the requested fields of an LVM report.
    Report,
    /// Redact the whole text.
    Text(fn(&str, bool) -> String),
}

/// Returns the rule of a command; `None` if the command is not permitted.
pub(super) fn rule(argv: &[&str]) -> Option<Rule> {
    if tools::is_version(argv) {
        return Some(Rule::Version);
    }
    Some(match argv {
        ["systemd-detect-virt", _] => {
            Rule::Lines(|line| is_plain(line.trim()).then(|| line.to_owned()))
        }
        _ if [lvm::LVS.as_slice(), &lvm::VGS, &lvm::PVS, &lvm::HEALTH].contains(&argv) => {
            Rule::Report
        }
        ["zfs" | "zpool", "get", .., "name,property,value,source", _] => Rule::Lines(of_named),
        ["zfs" | "zpool", "get", ..] => Rule::Lines(clean_property),
        ["zpool", "status", ..] => Rule::Lines(clean_status),
        ["zdb", "-C"] | ["zdb", "-C", _] => Rule::Text(clean_zdb),
        ["dmsetup", "table"] => Rule::Lines(clean_table),
        ["dmsetup", "table", "--", _] => Rule::Lines(single_table),
        ["zfs", "list", "-H", "-o", "name", "-t", "volume"] => {
            Rule::Lines(|line| (!line.contains('\t')).then(|| line.to_owned()))
        }
        ["stat", "--file-system", "--format=%S", "--", _] => Rule::Lines(keep_digits),
        _ if certificates::is_mode_of(argv) => Rule::Lines(keep_digits),
        _ if argv == not_asked::DEPENDENCIES => Rule::Lines(keep_two_numbers),
        _ if argv == packages::RPM => Rule::Lines(packages::redact_rpm),
        _ if argv == mail_queue::LIST => Rule::Lines(mail_queue::redact),
        [ask @ .., _] if *ask == smart::ASK || *ask == smart::ASK_LOG => Rule::Lines(smart::redact),
        [ask @ .., _] if *ask == libvirt::DUMP => Rule::Text(libvirt::redact),
        ["cryptsetup", "luksDump", _] => Rule::Lines(clean_luks),
        ["dumpe2fs", "-h", _] => Rule::Lines(|line| ext4::is_known(line).then(|| line.to_owned())),
        ["xfs_info", _] => Rule::Lines(clean_xfs),
        ["btrfs", "property", "get", "-t", "inode", _] => Rule::Lines(clean_btrfs),
        _ => return None,
    })
}

fn keep_digits(line: &str) -> Option<String> {
    let digits = line.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| line.to_owned())
}

/// Keeps a line if it consists of two numbers.
fn keep_two_numbers(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split(' ').collect();
    let small = |word: &&str| {
        (1..=9).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_digit())
    };
    (words.len() == 2 && words.iter().all(small)).then(|| line.to_owned())
}

/// Applies the rule to the output.
pub(super) fn apply(rule: Rule, output: &[u8], argv: &[&str], identity: bool) -> Vec<u8> {
    let text = String::from_utf8_lossy(output);
    match rule {
        Rule::Version => version(&text).into_bytes(),
        Rule::Report => clean_report(&text, argv).into_bytes(),
        Rule::Text(clean) => clean(&text, identity).into_bytes(),
        Rule::Lines(keep) => clean_lines(&text, keep).into_bytes(),
    }
}

fn clean_lines(text: &str, keep: impl FnMut(&str) -> Option<String>) -> String {
    let lines: Vec<String> = text.split('\n').filter_map(keep).collect();
    let mut kept = lines.join("\n");
    if text.ends_with('\n') && !kept.is_empty() && !kept.ends_with('\n') {
        kept.push('\n');
    }
    kept
}

/// Keeps the requested fields of an LVM report, and drops any other field.
fn clean_report(text: &str, argv: &[&str]) -> String {
    let Ok(Value::Object(mut all)) = serde_json::from_str(text) else {
        return String::new();
    };
    all.retain(|name, _| name == "report");
    let asked: Vec<&str> = argv
        .last()
        .map_or("", |fields| *fields)
        .split(',')
        .collect();
    let reports = all.get_mut("report").and_then(Value::as_array_mut);
    for report in reports.into_iter().flatten() {
        let Some(report) = report.as_object_mut() else {
            *report = Value::Null;
            continue;
        };
        report.retain(|kind, _| ["lv", "seg", "vg", "pv"].contains(&kind.as_str()));
        for row in report
            .values_mut()
            .filter_map(Value::as_array_mut)
            .flatten()
        {
            if let Some(row) = row.as_object_mut() {
                row.retain(|field, value| asked.contains(&field.as_str()) && value.is_string());
            } else {
                *row = Value::Null;
            }
        }
    }
    Value::Object(all).to_string() + "\n"
}

/// Redacts the output of zdb: drops numbers and names of devices, except kernel names. With `identity`, all names are
/// kept, so that the ashift of each device is known.
fn clean_zdb(text: &str, identity: bool) -> String {
    clean_lines(text, |line| {
        zdb_line(line, identity).then(|| line.to_owned())
    })
}

fn zdb_line(line: &str, identity: bool) -> bool {
    const KEPT: [&str; 7] = [
        "vdev_tree",
        "type",
        "id",
        "nparity",
        "ashift",
        "asize",
        "is_log",
    ];
    let Some((key, value)) = line.trim().split_once(':') else {
        return false;
    };
    let value = value.trim().trim_matches('\'');
    let device = value.strip_prefix("/dev/");
    let of_kernel = device.is_some_and(|name| !name.contains('/'));
    // In the cache file the lines of a pool follow its name.
    let of_pool = value.is_empty() && !line.starts_with([' ', '\t']) && is_plain(key);
    of_pool
        || KEPT.contains(&key) && (value.is_empty() || is_plain(value))
        || key.starts_with("children[") && value.is_empty()
        || key == "path" && (of_kernel || identity && is_path(value))
}

/// Prefixes of the `errors:` lines of `zpool status` that are kept.
const ERRORS: [&str; 3] = [
    "errors: No known data errors",
    "errors: List of errors unavailable",
    "errors: Permanent errors have been detected",
];

/// Redacts a line of `zpool status`: keeps the table of devices, the state and the running action of a pool, but not
/// the recommended action.
fn clean_status(line: &str) -> Option<String> {
    let text = line.trim_start();
    let told = ["pool:", "state:", "scan:", "config:"];
    let table = line.starts_with('\t');
    // Keeps the number of errors, but no path of a damaged file.
    if let Some(errors) = text.strip_prefix("errors: ")
        && let Some((number, _)) = errors.split_once(" data errors")
        && !errors.starts_with("No known")
    {
        let digits = number.trim_end_matches(['K', 'M', 'G', 'T', 'P', 'E']);
        let plain = digits.len() + 1 >= number.len()
            && !digits.is_empty()
            && digits
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.');
        return plain.then(|| format!("errors: {number} data errors"));
    }
    let kept = line.is_empty()
        || table
        || told.iter().any(|start| text.starts_with(start))
        || ERRORS.iter().any(|start| text.starts_with(start));
    kept.then(|| secrets::withhold_in_text(&without_serial(line)))
}

/// Removes the serial number from the name of a missing disk. zpool prints this name as a link below /dev/disk.
fn without_serial(line: &str) -> String {
    const LINKS: &str = "/dev/disk/";
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once(LINKS) {
        let end = after.find([' ', '\t']).unwrap_or(after.len());
        out = out + before + LINKS + "left-out";
        rest = &after[end..];
    }
    out + rest
}

/// Properties whose value is a path or the name of a dataset.
const PLACES: [&str; 7] = [
    "mountpoint",
    "origin",
    "altroot",
    "bootfs",
    "cachefile",
    "clones",
    "encryptionroot",
];

/// Properties whose value is a word (zfsprops(7), zpoolprops(7)). Numbers, sizes, times and the words of [`is_common`]
/// are kept for every property.
pub(crate) const WORDS: &str = "
type name compression checksum dedup sync logbias primarycache secondarycache redundant_metadata acltype aclinherit
aclmode xattr snapdir snapdev volmode casesensitivity normalization utf8only canmount dnodesize encryption keyformat
keystatus exec setuid devices readonly atime relatime jailed zoned vscan nbmand overlay prefetch direct defer_destroy
mounted special_small_blocks longname version recordsize volblocksize volsize copies quota reservation refquota
refreservation filesystem_limit snapshot_limit compressratio refcompressratio used available referenced written
logicalused logicalreferenced usedbysnapshots usedbydataset usedbychildren usedbyrefreservation snapshots_changed
filesystem_count snapshot_count userrefs mlslabel receive_resume_token
health size capacity fragmentation autotrim autoexpand autoreplace delegation failmode listsnapshots multihost
compatibility dedupditto dedupratio expandsize free freeing leaked allocated ashift checkpoint bcloneused bclonesaved
bcloneratio maxblocksize maxdnodesize dedup_table_size dedup_table_quota last_scrubbed_txg";

/// Redacts a property. User properties may contain any text, and some properties of ZFS contain the name of the pool, a
/// server or a key.
fn clean_property(line: &str) -> Option<String> {
    let mut fields = line.split('\t');
    let name = fields.next().unwrap_or_default();
    let (Some(value), source) = (fields.next(), fields.next()) else {
        return line.is_empty().then(String::new);
    };
    if matches!(value, "path" | "ashift") && source.is_some() {
        return clean_vdev_property(name, line);
    }
    // Features of a pool are properties too: `feature@lz4_compress`.
    let small = !name.bytes().any(|byte| byte.is_ascii_uppercase());
    let named = small && is_plain(&name.replacen('@', "_", 1));
    if name.contains(':') || !named || zfs::IDENTITY.contains(&name) {
        return None;
    }
    let word = || WORDS.split_ascii_whitespace().any(|known| known == name);
    let place =
        || PLACES.contains(&name) && (is_path(value) || !value.contains([':', '@', '?', '=']));
    let secret = secrets::names_a_secret(name) && !matches!(name, "keyformat" | "keystatus");
    let harmless = !secret && (is_common(value) || (word() && is_plain(value)) || place());
    let value = if harmless || is_nothing(value) {
        value
    } else {
        WITHHELD
    };
    // The dataset from which a value is inherited is one of the kept names.
    let source = source.map_or_else(String::new, |source| format!("\t{source}"));
    Some(format!("{name}\t{value}{source}"))
}

/// Redacts a property that follows the name of a pool or dataset. Snapshots are not listed.
fn of_named(line: &str) -> Option<String> {
    let Some((name, rest)) = line.split_once('\t') else {
        return line.is_empty().then(String::new);
    };
    Some(format!("{name}\t{}", clean_property(rest)?))
}

fn is_nothing(value: &str) -> bool {
    matches!(
        value,
        "" | "-" | "none" | "off" | "on" | "prompt" | WITHHELD
    )
}

/// Returns whether a value is a number with a unit, or a word that many properties use.
fn is_common(value: &str) -> bool {
    let number = value.trim_end_matches(|c: char| "KMGTPExB%".contains(c));
    matches!(
        value,
        "yes"
            | "no"
            | "enabled"
            | "disabled"
            | "active"
            | "default"
            | "local"
            | "standard"
            | "all"
            | "latency"
    ) || (number.len() <= 20
        && number.starts_with(|c: char| c.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

/// Redacts vdev properties (`zpool get … all-vdevs`): keeps those of groups, and of leaves with kernel names. Other
/// names contain serial numbers.
fn clean_vdev_property(name: &str, line: &str) -> Option<String> {
    let group = ["mirror-", "raidz", "draid"];
    let group = group.iter().any(|kind| name.starts_with(kind)) && is_plain(name);
    let plain = |value: &str| is_plain(value) && !value.contains(['-', '/']);
    let value = line.rsplit('\t').next().unwrap_or_default().trim_end();
    let value = value.strip_prefix("/dev/").unwrap_or(value);
    (group && (is_plain(value)) || plain(name) && plain(value)).then(|| line.to_owned())
}

/// Device-mapper targets that are kept (Documentation/admin-guide/device-mapper, and VDO).
pub(crate) const TARGETS: &str = "
bow cache clone crypt delay dust ebs era error flakey integrity linear log-writes mirror multipath raid snapshot
snapshot-merge snapshot-origin striped switch thin thin-pool unstriped vdo verity writecache zero zoned";

/// Redacts a line of `dmsetup table`: keeps targets and the settings of dm-crypt. Of the key, only the length is kept.
/// The name of a key in the kernel's keyring is dropped, because it contains the name of the volume.
fn clean_table(line: &str) -> Option<String> {
    let Some((name, rest)) = line.split_once(": ") else {
        return line.is_empty().then(String::new);
    };
    let words: Vec<&str> = rest.split_whitespace().collect();
    let [start, length, target, parameters @ ..] = words.as_slice() else {
        return None;
    };
    let known = TARGETS
        .split_ascii_whitespace()
        .any(|known| known == *target);
    if !known || ![start, length].iter().all(|word| is_plain(word)) {
        return None;
    }
    let mut kept = format!("{name}: {start} {length} {target}");
    if let (&"crypt", [cipher, key, iv, device, offset, options @ ..]) = (target, parameters) {
        let hidden = match key.strip_prefix(':') {
            Some(rest) => {
                let bytes = rest.split(':').next().unwrap_or_default();
                let bytes: String = bytes.chars().filter(char::is_ascii_digit).collect();
                format!(":{bytes}:(left-out)")
            }
            None if *key == "-" => "-".to_owned(),
            None => "0".repeat(key.len().min(1024)),
        };
        let plain: Vec<&str> = [cipher, iv, device, offset]
            .into_iter()
            .map(|word| if is_plain(word) { *word } else { "-" })
            .collect();
        let [cipher, iv, device, offset] = plain.as_slice() else {
            return None;
        };
        kept += &format!(" {cipher} {hidden} {iv} {device} {offset}");
        for option in options.iter().filter(|option| is_plain(option)) {
            kept += &format!(" {option}");
        }
    }
    Some(kept)
}

/// Redacts the table of one device, without the device's name.
fn single_table(line: &str) -> Option<String> {
    let kept = clean_table(&format!("x: {line}"))?;
    kept.strip_prefix("x: ").map(str::to_owned)
}

/// Redacts a LUKS header: keeps only what becomes facts, and drops salt, digest and UUID.
fn clean_luks(line: &str) -> Option<String> {
    let text = line.trim_start();
    let value = text.split_once(':').map(|(_, value)| value.trim());
    let kept = ["Version:", "PBKDF:"];
    let told = kept.iter().any(|start| text.starts_with(start)) && value.is_some_and(is_plain);
    // LUKS1 prints only whether a slot is in use.
    let slot = text.starts_with("Key Slot")
        && value.is_some_and(|value| matches!(value, "ENABLED" | "DISABLED" | ""));
    (told || slot).then(|| line.to_owned())
}

/// Redacts a line of xfs_info: keeps the geometry, which consists of sections with `name=value`.
fn clean_xfs(line: &str) -> Option<String> {
    let known = ["meta-data=", "data", "naming", "log", "realtime", " ", "="];
    let kept = line.contains('=') && known.iter().any(|start| line.starts_with(start));
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.,+/%- =".contains(c);
    (kept && line.len() <= 300 && line.chars().all(plain)).then(|| line.to_owned())
}

fn clean_btrfs(line: &str) -> Option<String> {
    let (name, value) = line.split_once('=')?;
    let known = matches!(name, "compression" | "ro") && (value.is_empty() || is_plain(value));
    known.then(|| line.to_owned())
}
