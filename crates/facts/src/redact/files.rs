//! Redaction rules for all files that may be read. A file without a rule is not read.

use super::{cmdline, mount};
use crate::collectors::daemons::cleaned_words;
use crate::collectors::services::{
    apache, apache_redact, authorized_keys, certificates, databases, mapped, openvpn, packages,
    postfix, postfix_redact, power, resolver, samba, setting_lines, spam, ssh, swap, timers,
    tls_lines,
};
use crate::collectors::{fstab, kernel, nginx, services, sysctl};
use crate::harmless::LEFT_OUT;
use crate::script::WHOLE;
use crate::{libvirt, proxmox, qemu};
use assay_model::secrets::{WITHHELD, is_plain};

/// Which part of a file's content is kept.
#[derive(Clone, Copy)]
pub(super) enum Rule {
    /// Keep everything, because the kernel writes the text about itself or the hardware.
    Whole,
    /// Redact each line separately, so that line numbers do not change.
    Lines(fn(&str, bool) -> String),
    /// Redact the whole content at once.
    Bytes(fn(&[u8], bool) -> Vec<u8>),
}

impl Rule {
    pub(super) fn apply(self, bytes: &[u8], identity: bool) -> Vec<u8> {
        match self {
            Self::Whole => bytes.to_vec(),
            Self::Bytes(clean) => clean(bytes, identity),
            Self::Lines(clean) => {
                let text = String::from_utf8_lossy(bytes);
                let lines: Vec<String> =
                    text.split('\n').map(|line| clean(line, identity)).collect();
                lines.join("\n").into_bytes()
            }
        }
    }
}

/// Sysfs files that identify this machine or device.
const SERIALS: [&str; 6] = [
    "/serial",
    "/wwid",
    "/product_serial",
    "/product_uuid",
    "/board_serial",
    "/chassis_serial",
];

/// Sysfs directories whose text the kernel writes about itself or the hardware. [`WHOLE`] lists single files.
const KERNEL: [&str; 10] = [
    "/sys/block/",
    "/sys/class/ata_link/",
    "/sys/class/block/",
    "/sys/class/dmi/id/",
    "/sys/class/hwmon/",
    "/sys/dev/block/",
    "/sys/devices/",
    "/sys/fs/btrfs/",
    "/sys/fs/cgroup/",
    "/sys/module/zfs/",
];

/// Directories of sysctl configuration files. The following constants have the directories of other programs.
const SYSCTL: [&str; 5] = [
    "/etc/sysctl.d/",
    "/run/sysctl.d/",
    "/usr/local/lib/sysctl.d/",
    "/usr/lib/sysctl.d/",
    "/lib/sysctl.d/",
];
const MODPROBE: [&str; 5] = [
    "/etc/modprobe.d/",
    "/run/modprobe.d/",
    "/usr/local/lib/modprobe.d/",
    "/usr/lib/modprobe.d/",
    "/lib/modprobe.d/",
];
const LIBVIRT: [&str; 2] = ["/etc/libvirt/qemu/", "/run/libvirt/qemu/"];
const PROXMOX: &str = "/etc/pve/qemu-server/";
const PROXMOX_NODES: &str = "/etc/pve/nodes/";
const SSH: &str = "/etc/ssh/";

/// Returns the rule of a file; `None` if the file must not be read.
pub(super) fn rule(path: &str, identity: bool) -> Option<Rule> {
    if path.split('/').any(|part| part == "..") {
        return None;
    }
    let starts = |dirs: &[&str]| dirs.iter().any(|dir| path.starts_with(dir));
    Some(match path {
        kernel::CMDLINE => Rule::Bytes(|bytes, identity| {
            let text = String::from_utf8_lossy(bytes);
            let end = if text.ends_with('\n') { "\n" } else { "" };
            (cmdline::cmdline(&text, identity) + end).into_bytes()
        }),
        crate::mountinfo::MOUNTINFO => Rule::Bytes(clean_mountinfo),
        "/proc/self/auxv" => Rule::Bytes(|bytes, _| kernel::redact_auxv(bytes)),
        "/proc/cpuinfo" => Rule::Lines(clean_cpuinfo),
        "/proc/sys/kernel/hostname" => return identity.then_some(Rule::Whole),
        "/proc/sys/kernel/osrelease" | "/proc/sys/kernel/arch" => {
            Rule::Lines(|line, _| keep_short_line(line))
        }
        authorized_keys::PASSWD => Rule::Lines(|line, _| authorized_keys::redact_account(line)),
        _ if authorized_keys::may_be(path) => Rule::Lines(|line, _| authorized_keys::redact(line)),
        packages::RELEASE => Rule::Lines(|line, _| packages::redact_release(line)),
        packages::STATUS => Rule::Bytes(|bytes, _| packages::redact(bytes)),
        packages::APK => Rule::Bytes(|bytes, _| packages::redact_apk(bytes)),
        certificates::STAT => Rule::Lines(|line, _| certificates::redact_stat(line)),
        certificates::UPTIME => Rule::Lines(|line, _| keep_short_line(line)),
        _ if services::dovecot::is_file(path) => {
            Rule::Lines(|line, _| services::dovecot::redact(line))
        }
        _ if certificates::is_of_apache(path) => {
            Rule::Bytes(|bytes, _| apache_redact::redact(bytes))
        }
        _ if tls_lines::is_of_lighttpd(path) => {
            Rule::Lines(|line, _| tls_lines::redact_lighttpd(line))
        }
        _ if cleaned_words::is_file(path) => Rule::Lines(|line, _| cleaned_words::redact(line)),
        _ if certificates::may_be(path) => Rule::Bytes(|bytes, _| certificates::redact(bytes)),
        timers::CRONTAB => Rule::Lines(|line, _| timers::redact(line)),
        _ if timers::CRON.iter().any(|dir| is_below(path, dir)) => {
            Rule::Lines(|line, _| timers::redact(line))
        }
        _ if of_process(path, "maps") => Rule::Lines(|line, _| mapped::redact(line)),
        _ if of_process(path, "cgroup") => Rule::Lines(|line, _| mapped::redact_group(line)),
        "/etc/sysctl.conf" => Rule::Lines(|line, _| sysctl::redact(line)),
        postfix::MAIN => Rule::Bytes(|bytes, _| postfix_redact::redact_main(bytes)),
        postfix::MASTER => Rule::Lines(|line, _| postfix_redact::redact_master(line)),
        fstab::FSTAB => Rule::Lines(|line, _| fstab::redact(line)),
        swap::SWAPS => Rule::Lines(|line, _| swap::redact(line)),
        setting_lines::SESSION => Rule::Lines(|line, _| setting_lines::redact_session(line)),
        power::NUT => Rule::Lines(|line, _| power::redact_nut(line)),
        power::UPSMON => Rule::Lines(|line, _| power::redact_upsmon(line)),
        setting_lines::PAM_SSHD => Rule::Lines(|line, _| setting_lines::redact_pam_sshd(line)),
        resolver::ORDER => Rule::Lines(|line, _| resolver::redact_order(line)),
        resolver::RESOLV => Rule::Lines(|line, _| resolver::redact_domain(line)),
        _ if samba::may_be(path) => Rule::Bytes(|bytes, _| samba::redact(bytes)),
        _ if databases::may_be(path) => Rule::Lines(|line, _| databases::redact(line)),
        _ if spam::may_be(path) => Rule::Lines(|line, _| spam::redact(line)),
        _ if path.starts_with(openvpn::DIR) => Rule::Lines(|line, _| openvpn::redact(line)),
        "/etc/pve/storage.cfg" => Rule::Lines(|line, _| proxmox::redact_store(line)),
        _ if starts(&SYSCTL) => Rule::Lines(|line, _| sysctl::redact(line)),
        _ if starts(&MODPROBE) => Rule::Bytes(clean_modprobe),
        _ if starts(&LIBVIRT) && path.ends_with(".xml") => Rule::Bytes(|bytes, identity| {
            libvirt::redact(&String::from_utf8_lossy(bytes), identity).into_bytes()
        }),
        _ if path.starts_with(PROXMOX) || of_proxmox_node(path) => Rule::Lines(proxmox::redact),
        _ if path.starts_with(nginx::DIR) => Rule::Bytes(|bytes, _| nginx::redact(bytes)),
        _ if path.starts_with(SSH) => Rule::Bytes(|bytes, _| ssh::redact(bytes)),
        _ if of_process(path, "comm") => Rule::Lines(clean_process_name),
        _ if of_process(path, "cmdline") => Rule::Bytes(qemu::redact),
        _ if of_open_file(path) => {
            Rule::Lines(|line, _| keep_if(line, line.starts_with("flags:") && is_open_flags(line)))
        }
        _ if sysctl::is_setting(path) => Rule::Lines(|line, _| keep_numbers(line)),
        _ if WHOLE.contains(&path) => Rule::Whole,
        _ if starts(&KERNEL) => {
            let serial = SERIALS.iter().any(|end| path.ends_with(end));
            if serial && !identity {
                return None;
            }
            match path.ends_with("/dm/uuid") {
                true => Rule::Lines(clean_mapper_uuid),
                false => Rule::Whole,
            }
        }
        _ => return None,
    })
}

/// Returns whether the names in a directory may be listed.
pub(super) fn may_be_listed(dir: &str) -> bool {
    let dir = format!("{}/", dir.trim_end_matches('/'));
    let known = KERNEL
        .iter()
        .chain(&SYSCTL)
        .chain(&MODPROBE)
        .chain(&LIBVIRT);
    dir == "/proc/"
        || dir == PROXMOX
        || dir == PROXMOX_NODES
        || of_proxmox_node(&dir)
        || is_below(&dir, certificates::CERTBOT)
        || apache::APACHE.contains(&dir.trim_end_matches('/'))
        || dir.trim_end_matches('/') == timers::WANTED
        || dir.trim_end_matches('/') == tls_lines::LIGHTTPD_DIR
        || timers::CRON.contains(&dir.trim_end_matches('/'))
        || dir.starts_with(SSH)
        || dir.starts_with(openvpn::DIR)
        || cleaned_words::may_be_listed(&dir)
        || dir == samba::DIR
        || databases::may_be_listed(&dir)
        || spam::may_be_listed(&dir)
        || dir.starts_with(nginx::DIR)
        || services::dovecot::DIRS.contains(&dir.trim_end_matches('/'))
        || of_process(dir.trim_end_matches('/'), "fd")
        || known.into_iter().any(|known| dir.starts_with(known))
}

/// Returns whether a path is a directory or lies below it.
fn is_below(path: &str, dir: &str) -> bool {
    let rest = path.strip_prefix(dir);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn keep_if(line: &str, keep: bool) -> String {
    if keep { line } else { "" }.to_owned()
}

/// Keeps a line if it consists of numbers, as most kernel settings do.
fn keep_numbers(line: &str) -> String {
    let number = |word: &str| word.parse::<i64>().is_ok();
    let all = line.split_ascii_whitespace().all(number);
    if all { line } else { WITHHELD }.to_owned()
}

/// Keeps a line if it is a number or a word, such as a kernel setting or version.
fn keep_short_line(line: &str) -> String {
    let numbers = line.split_ascii_whitespace().all(is_plain);
    let word = !line.trim().contains(char::is_whitespace) && line.len() <= 64;
    if numbers || word { line } else { WITHHELD }.to_owned()
}

/// Keeps the model and features of processors. An ARM board also prints its serial number, which is dropped.
fn clean_cpuinfo(line: &str, _identity: bool) -> String {
    const KEPT: [&str; 7] = [
        "processor",
        "model name",
        "microcode",
        "flags",
        "Features",
        "physical id",
        "core id",
    ];
    let name = line.split(':').next().unwrap_or_default().trim();
    keep_if(line, KEPT.contains(&name))
}

/// Keeps the name of a process if a collector searches for it.
fn clean_process_name(line: &str, _identity: bool) -> String {
    match line.is_empty() || qemu::is_qemu(line.trim()) {
        true => line.to_owned(),
        false => LEFT_OUT.to_owned(),
    }
}

/// Keeps the creating program and the format of a device-mapper device. Drops its UUID and name.
fn clean_mapper_uuid(line: &str, _identity: bool) -> String {
    let parts: Vec<&str> = line.split('-').collect();
    match parts.as_slice() {
        _ if line.is_empty() => String::new(),
        [
            "CRYPT",
            format @ ("LUKS1" | "LUKS2" | "PLAIN" | "BITLK" | "TCRYPT"),
            _,
            ..,
        ] => {
            format!("CRYPT-{format}-")
        }
        [owner, _, ..] if is_plain(owner) && owner.len() <= 8 => format!("{owner}-"),
        _ => LEFT_OUT.to_owned(),
    }
}

/// Redacts module options: keeps values of parameters that never contain secrets. A backslash at the end of a line
/// continues the line.
fn clean_modprobe(bytes: &[u8], _identity: bool) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    // The module of a continued line.
    let mut carried: Option<String> = None;
    let lines: Vec<String> = text
        .split('\n')
        .map(|line| {
            let (kept, module) = modprobe_line(line, carried.take());
            carried = module;
            kept
        })
        .collect();
    lines.join("\n").into_bytes()
}

/// Returns the redacted line. If options of a module continue on the next line, also returns the module.
fn modprobe_line(line: &str, carried: Option<String>) -> (String, Option<String>) {
    let (body, end) = match line.strip_suffix('\\') {
        Some(body) => (body, "\\"),
        None => (line, ""),
    };
    let blank = |c: Option<char>| c.is_some_and(|c| c == ' ' || c == '\t');
    let mut words = body.split_ascii_whitespace();
    let (start, module) = match carried {
        Some(module) => {
            let start = if blank(body.chars().next()) { " " } else { "" };
            (start.to_owned(), module)
        }
        None => match (words.next(), words.next()) {
            (Some("options"), Some(module)) if is_plain(module) => {
                (format!("options {module} "), module.to_owned())
            }
            _ => return (end.to_owned(), None),
        },
    };
    let clean = |word: &str| {
        let (name, value) = word.split_once('=').unwrap_or((word, "1"));
        // Quotation marks are not part of the value.
        let bare = value.trim_matches(['"', '\'']);
        match (is_plain(name), super::module_value(&module, name, bare)) {
            (_, true) => word.to_owned(),
            // A blank would begin another parameter.
            (true, false) if word.contains('=') => format!("{name}=(withheld)"),
            _ => "(withheld)=(withheld)".to_owned(),
        }
    };
    let words: Vec<String> = words.map(clean).collect();
    let gap = blank(body.chars().next_back()) && !words.is_empty();
    let kept = format!(
        "{start}{}{}{end}",
        words.join(" "),
        if gap && !end.is_empty() { " " } else { "" }
    );
    (kept, (!end.is_empty()).then_some(module))
}

/// Redacts mountinfo. Names may contain any bytes, so each byte is decoded as one character and encoded again
/// afterwards.
fn clean_mountinfo(bytes: &[u8], _identity: bool) -> Vec<u8> {
    let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
    let lines: Vec<String> = text.split('\n').map(mount::line).collect();
    let clean = lines.join("\n");
    let byte = |c: char| u8::try_from(u32::from(c)).unwrap_or(b'?');
    clean.chars().map(byte).collect()
}

/// Whether the path is the directory with the guests of a Proxmox node, or in this directory.
fn of_proxmox_node(path: &str) -> bool {
    let rest = path.strip_prefix(PROXMOX_NODES);
    let inner = rest.and_then(|rest| rest.split_once('/'));
    inner.is_some_and(|(_, inner)| inner.starts_with("qemu-server/"))
}

/// Returns whether the path is `/proc/PID/NAME`.
fn of_process(path: &str, name: &str) -> bool {
    let inner = path
        .strip_prefix("/proc/")
        .and_then(|rest| rest.split_once('/'));
    inner.is_some_and(|(pid, file)| {
        file == name && !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Returns whether the path is `/proc/PID/fdinfo/NUMBER`.
fn of_open_file(path: &str) -> bool {
    let parts = path.rsplit_once('/');
    parts.is_some_and(|(dir, number)| {
        of_process(dir, "fdinfo")
            && !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Returns whether a line contains the open flags, which are an octal number.
fn is_open_flags(line: &str) -> bool {
    line.split_once(':')
        .is_some_and(|(_, number)| is_plain(number.trim()))
}
