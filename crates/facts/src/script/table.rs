//! Lists the sources that the shell collector reads, and generates the word lists of its redaction, from the tables of
//! the collectors and of the redaction rules.

use crate::collectors::daemons::cleaned_words as words;
use crate::collectors::services::{
    apache, certificates, databases, dnsbl, mail_queue, openvpn, packages, postfix, power,
    resolver, samba, setting_lines, smart, spam, ssh, ssh_access, swap, timers, tls_lines,
};
use crate::collectors::{disk, ext4, kernel, sysctl, tools, zfs};
use crate::qemu::lists as qemu;
use crate::redact::lists;
use std::fmt::Write as _;

/// Name of the rule in `clean.awk` that redacts a file.
pub(super) type Class = &'static str;

/// Sources with a fixed path, by the way in which the script reads them.
pub(super) enum Want {
    /// Single files with their rule.
    File(Class, &'static [&'static str]),
    /// Files of a directory that match name patterns. The names of the directory may be listed.
    Files(Class, &'static str, &'static [&'static str]),
    /// All files below a directory, with their rule.
    Tree(Class, &'static str),
    /// Directories whose names are listed.
    Dir(&'static [&'static str]),
    /// Paths whose existence is recorded.
    Present(&'static [&'static str]),
}

const CONF: &[&str] = &["*.conf"];
const ALL: &[&str] = &["*"];
const VPN: &[&str] = &["*.conf", "*.ovpn"];
const RULES: &[&str] = &["*.cf"];

/// Files that the kernel writes about itself. They are read one by one and kept completely.
pub(crate) const WHOLE: &[&str] = &[
    "/proc/mdstat",
    "/proc/meminfo",
    "/proc/self/cgroup",
    "/proc/sys/net/ipv4/tcp_available_congestion_control",
    "/proc/sys/net/ipv4/tcp_congestion_control",
    "/proc/sys/net/ipv4/tcp_rmem",
    "/proc/sys/net/ipv4/tcp_wmem",
    "/proc/spl/kstat/zfs/arcstats",
    "/proc/device-tree/hypervisor/compatible",
    "/run/systemd/container",
    "/sys/hypervisor/type",
    "/sys/kernel/mm/transparent_hugepage/defrag",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/module/zfs/version",
    "/sys/module/zswap/parameters/enabled",
];

pub(super) const WANTS: &[Want] = &[
    Want::File("release", &[packages::RELEASE]),
    Want::File(
        "short",
        &[
            "/proc/sys/kernel/osrelease",
            "/proc/sys/kernel/arch",
            certificates::UPTIME,
        ],
    ),
    Want::File("cmdline", &[kernel::CMDLINE]),
    Want::File("cpuinfo", &["/proc/cpuinfo"]),
    Want::File("started", &[certificates::STAT]),
    Want::File("mounts", &[crate::mountinfo::MOUNTINFO]),
    Want::File("fstab", &[crate::collectors::fstab::FSTAB]),
    Want::File("swaps", &[swap::SWAPS]),
    Want::File("whole", WHOLE),
    Want::Files(
        "whole",
        "/sys/class/dmi/id",
        &[
            "sys_vendor",
            "product_name",
            "board_name",
            "bios_version",
            "bios_date",
        ],
    ),
    Want::Files(
        "whole",
        "/sys/devices/system/cpu",
        &[
            "isolated",
            "smt/active",
            "cpuidle/current_driver",
            "cpufreq/boost",
            "intel_pstate/no_turbo",
            "intel_pstate/status",
            "amd_pstate/status",
        ],
    ),
    Want::Files("whole", "/sys/devices/system/cpu/vulnerabilities", ALL),
    Want::Files(
        "whole",
        "/sys/devices/system/cpu/cpufreq",
        &[
            "policy*/scaling_governor",
            "policy*/scaling_driver",
            "policy*/energy_performance_preference",
            "policy*/scaling_min_freq",
            "policy*/scaling_max_freq",
        ],
    ),
    Want::Files("whole", "/sys/devices/system/node", &["node*/cpulist"]),
    Want::Files(
        "whole",
        "/sys/devices/system/clocksource/clocksource0",
        &["current_clocksource"],
    ),
    Want::Files(
        "whole",
        "/sys/devices/system/edac/mc",
        &["mc*/ce_count", "mc*/ue_count"],
    ),
    Want::Files("whole", "/sys/module/zfs/parameters", ALL),
    Want::Dir(&["/sys/fs/btrfs", "/sys/class/hwmon"]),
    Want::Present(&["/.dockerenv", "/run/.containerenv", "/dev/null"]),
    Want::Files("sysctl", "/etc/sysctl.d", CONF),
    Want::Files("sysctl", "/run/sysctl.d", CONF),
    Want::Files("sysctl", "/usr/local/lib/sysctl.d", CONF),
    Want::Files("sysctl", "/usr/lib/sysctl.d", CONF),
    Want::Files("sysctl", "/lib/sysctl.d", CONF),
    Want::File("sysctl", &["/etc/sysctl.conf"]),
    Want::Files("modprobe", "/etc/modprobe.d", CONF),
    Want::Files("modprobe", "/run/modprobe.d", CONF),
    Want::Files("modprobe", "/usr/local/lib/modprobe.d", CONF),
    Want::Files("modprobe", "/usr/lib/modprobe.d", CONF),
    Want::Files("modprobe", "/lib/modprobe.d", CONF),
    Want::Tree("ssh", "/etc/ssh"),
    Want::Tree("nginx", "/etc/nginx"),
    Want::File("postfix", &[postfix::MAIN]),
    Want::File("master", &[postfix::MASTER]),
    Want::Files("apache", "/etc/apache2/sites-enabled", CONF),
    Want::Files("apache", "/etc/apache2/conf-enabled", CONF),
    Want::Files("apache", apache::ENABLED, &["*.conf", "*.load"]),
    Want::File("apache", &apache::MAINS),
    Want::File("apache", &apache::OTHERS),
    Want::Files("apache", "/etc/httpd/conf.modules.d", CONF),
    Want::Files("apache", "/etc/httpd/conf", CONF),
    Want::Files("apache", "/etc/httpd/conf.d", CONF),
    Want::File("lighttpd", &[tls_lines::LIGHTTPD]),
    Want::Files("lighttpd", tls_lines::LIGHTTPD_DIR, CONF),
    Want::Files("dovecot", "/etc/dovecot", CONF),
    Want::Files("dovecot", "/etc/dovecot/conf.d", CONF),
    Want::File("session", &[setting_lines::SESSION]),
    Want::File("nut", &[power::NUT]),
    Want::File("upsmon", &[power::UPSMON]),
    Want::File("pam-sshd", &[setting_lines::PAM_SSHD]),
    Want::File("hosts-order", &[resolver::ORDER]),
    Want::File("domain", &[resolver::RESOLV]),
    Want::Files("samba", "/etc/samba", samba::FILES),
    Want::Files("spam", "/etc/spamassassin", RULES),
    Want::Files("spam", "/usr/share/spamassassin", RULES),
    Want::Files("vpn", "/etc/openvpn", VPN),
    Want::Files("vpn", "/etc/openvpn/server", VPN),
    Want::Files("vpn", "/etc/openvpn/client", VPN),
    Want::File("packages", &[packages::STATUS]),
    Want::File("apk", &[packages::APK]),
    Want::Files("guest", "/etc/pve/qemu-server", CONF),
    Want::File("storage", &["/etc/pve/storage.cfg"]),
    Want::Dir(&["/etc/libvirt/qemu"]),
    Want::Files(
        "database",
        databases::POSTGRESQL,
        &["*/*/postgresql.conf", "*/*/conf.d/*.conf"],
    ),
    Want::Files("database", databases::DATA, &["*/*/postgresql.auto.conf"]),
    Want::File("database", &databases::OPTIONS),
    Want::Files("database", "/etc/mysql", &["*.cnf", "*.d/*.cnf"]),
    Want::Files("database", "/etc/my.cnf.d", &["*.cnf"]),
    Want::Files("cron", "/etc/cron.d", ALL),
    Want::Files("cron", "/etc/cron.daily", ALL),
    Want::Files("cron", "/etc/cron.weekly", ALL),
    Want::Files("cron", "/etc/cron.monthly", ALL),
    Want::Files("cron", "/var/spool/cron/crontabs", ALL),
    Want::File("cron", &[timers::CRONTAB]),
    Want::File("words", words::FILES),
    Want::Files("words", words::BIND, words::BIND_FILES),
    Want::Files("words", words::UNBOUND, CONF),
    Want::Files("words", words::MOSQUITTO, CONF),
    Want::Files("words", words::PROFTPD, CONF),
    Want::Files("words", words::SQUID, CONF),
    Want::Files("words", words::HOSTAPD, CONF),
    Want::Files("words", words::JOURNALD, CONF),
    Want::Files("words", words::MDADM, CONF),
    Want::Files("words", words::JOURNALD_VENDOR, CONF),
    Want::Files("words", words::JOURNALD_RUN, CONF),
    Want::Files("words", words::XINETD, ALL),
    Want::Files("words", words::APT, ALL),
    Want::Files("words", words::SOURCES, words::SOURCES_FILES),
    Want::Files("words", words::PHP, words::PHP_FILES),
    // Names of the timers that start at boot.
    Want::Files("comm", timers::WANTED, &["*.timer"]),
];

/// Files of a control group that contain limits.
pub(super) const CGROUP: [&str; 10] = [
    "cpu.max",
    "memory.max",
    "io.max",
    "memory.limit_in_bytes",
    "cpu.cfs_quota_us",
    "cpu.cfs_period_us",
    "blkio.throttle.read_bps_device",
    "blkio.throttle.write_bps_device",
    "blkio.throttle.read_iops_device",
    "blkio.throttle.write_iops_device",
];

/// Returns the sysfs files of a block device, relative to its directory. The UUID of a device-mapper device is read
/// separately, because most of it is dropped.
pub(super) fn disk() -> impl Iterator<Item = &'static str> {
    disk::files().filter(|name| *name != "dm/uuid")
}

/// Path patterns of the files that shell functions such as `disks` and `mounts` read. `**` stands for any number of
/// directories.
const ELSEWHERE: [&str; 30] = [
    "/etc/php/*/fpm/pool.d",
    "/sys/block/**",
    "/sys/class/block/**",
    "/sys/dev/block/*",
    "/sys/devices/**/partition",
    "/sys/devices/**/start",
    "/sys/devices/**/alignment_offset",
    "/sys/devices/**/dm/uuid",
    "/sys/devices/**/slaves",
    "/sys/devices/**/holders",
    "/sys/devices/**/md",
    "/sys/devices/**/current_link_speed",
    "/sys/devices/**/current_link_width",
    "/sys/devices/**/max_link_speed",
    "/sys/devices/**/max_link_width",
    "/sys/class/ata_link/**",
    "/sys/fs/btrfs/**",
    "/sys/fs/cgroup/**",
    "/sys/class/hwmon/**",
    "/sys/devices/system/node/*",
    "/proc/[0-9]*/**",
    "/proc",
    "/etc/libvirt/qemu/*.xml",
    "/etc/mysql/*.d",
    "/etc/postgresql/*",
    "/etc/postgresql/*/*",
    "/etc/postgresql/*/*/conf.d",
    "/var/lib/postgresql/*/*",
    "/etc/letsencrypt/live/**",
    "/var/lib/spamassassin/**",
];

/// Returns all paths that the script may read. Any other path is unknown, not missing.
pub(super) fn asked() -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for want in WANTS {
        match want {
            Want::File(_, paths) | Want::Dir(paths) | Want::Present(paths) => {
                all.extend(paths.iter().map(|&path| path.to_owned()));
            }
            Want::Files(_, dir, patterns) => {
                all.push((*dir).to_owned());
                all.extend(patterns.iter().map(|pattern| format!("{dir}/{pattern}")));
            }
            Want::Tree(_, dir) => all.extend([(*dir).to_owned(), format!("{dir}/**")]),
        }
    }
    all.extend(sysctl::NAMES.map(|name| format!("/proc/sys/{}", name.replace('.', "/"))));
    all.extend(disk().map(|name| format!("/sys/devices/**/{name}")));
    all.extend(ELSEWHERE.map(str::to_owned));
    all
}

/// Returns the commands for which the script checks whether they are installed.
pub(super) fn tools() -> Vec<&'static str> {
    let mut all: Vec<&str> = tools::commands()
        .filter_map(|argv| argv.first().copied())
        .collect();
    all.extend([
        "systemd-detect-virt",
        "zpool",
        "zdb",
        "dmsetup",
        "cryptsetup",
        "lvs",
        "vgs",
        "pvs",
        "postqueue",
        "smartctl",
    ]);
    all.sort_unstable();
    all.dedup();
    all
}

/// Returns the command that prints the permissions of a file, without its last argument, the file.
pub(super) fn mode_of() -> Vec<&'static str> {
    let argv = certificates::mode_of("");
    argv[..argv.len() - 1].to_vec()
}

/// Returns the awk function calls that fill the word lists of `clean.awk`.
pub(super) fn tables() -> String {
    let join = |words: Vec<&str>| words.join(" ");
    let tables = [
        ("SYSCTL", join(sysctl::NAMES.to_vec())),
        ("MODULE", lists::MODULES.to_owned()),
        ("CMD_PLAIN", lists::PLAIN.to_owned()),
        ("MOUNT_FLAG", lists::FLAGS.to_owned()),
        ("MOUNT_VALUE", lists::VALUES.to_owned()),
        ("MOUNT_NAME", lists::NAMES.to_owned()),
        ("PACKAGE", join(packages::PACKAGES.to_vec())),
        ("SMB", join(samba::NAMES.to_vec())),
        ("SMB_VALUE", join(samba::VALUES.to_vec())),
        ("SMB_ACCOUNT", join(samba::ACCOUNTS.to_vec())),
        ("SMB_SYSTEM", join(samba::SYSTEM.to_vec())),
        ("SMB_SECTION", join(samba::SECTIONS.to_vec())),
        ("DATABASE", join(databases::names())),
        ("DB_GROUP", join(databases::GROUPS.to_vec())),
        ("PLUGIN", join(spam::PLUGINS.to_vec())),
        ("RULE_KIND", join(spam::KINDS.to_vec())),
        ("CLOSED", join(dnsbl::CLOSED.map(|(zone, _)| zone).to_vec())),
        ("SECOND", join(setting_lines::SECOND.to_vec())),
        ("RESOLVER", join(resolver::WORDS.to_vec())),
        ("VPN", join(openvpn::KEYS.to_vec())),
        ("VPN_FLAG", join(openvpn::FLAGS.to_vec())),
        ("VPN_CIPHER", join(openvpn::CIPHERS.to_vec())),
        ("VPN_FAMILY", join(openvpn::FAMILIES.to_vec())),
        ("SSH_LIST", join(ssh::keywords(true))),
        ("SSH_WORD", join(ssh::keywords(false))),
        (
            "SSH_GLOBAL",
            join(assay_config::effective::SSHD_GLOBAL.to_vec()),
        ),
        ("SSH_METHOD", join(ssh_access::METHODS.to_vec())),
        ("POSTFIX", join(postfix::names())),
        (
            "CIPHER",
            join(crate::collectors::services::nginx::ALIASES.to_vec()),
        ),
        ("ZFS_IDENTITY", join(zfs::IDENTITY.to_vec())),
        ("ZFS_WORD", lists::WORDS.to_owned()),
        ("DM_TARGET", lists::TARGETS.to_owned()),
        ("LVM", join(lvm_fields())),
        ("VERSION_WORD", lists::VERSION_WORDS.to_owned()),
        ("WORD", words::WORDS.to_owned()),
        ("WORD_BEGIN", join(words::BEGINNINGS.to_vec())),
        ("QEMU_KEY", join(qemu::KEYS.to_vec())),
        ("QEMU_ALONE", join(qemu::WITHOUT_ARGUMENT.to_vec())),
    ];
    let mut out = format!("    TASKS = \"{}\"\n", timers::words().join("|"));
    let groups = ssh_access::SYSTEM_GROUPS.join(" ");
    let _ = writeln!(out, "    SYSTEM_GROUPS = \"{groups}\"");
    for (name, words) in tables {
        let words: Vec<&str> = words.split_ascii_whitespace().collect();
        let mut line = "    list(\"".to_owned();
        for word in words {
            if line.len() + word.len() > 110 {
                let _ = writeln!(out, "{line}\", {name})");
                line = "    list(\"".to_owned();
            }
            if !line.ends_with('"') {
                line.push(' ');
            }
            line.push_str(word);
        }
        let _ = writeln!(out, "{line}\", {name})");
    }
    let _ = writeln!(out, "    MOST_PACKAGES = {}", packages::MOST);
    // Meaning of the first word of an argument.
    for (option, implied) in qemu::OPTIONS {
        let _ = writeln!(out, "    QEMU_OPTION[\"{option}\"] = \"{implied}\"");
    }
    // Attributes of disks by number and name.
    for (id, names, counter) in smart::ATTRIBUTES {
        for name in names.split_ascii_whitespace() {
            let _ = writeln!(out, "    SMART_COUNTER[\"{id} {name}\"] = \"{counter}\"");
        }
    }
    for (id, names) in smart::WEAR {
        for name in names.split_ascii_whitespace() {
            let _ = writeln!(out, "    SMART_WEAR[\"{id} {name}\"] = 1");
        }
    }
    // Texts with blanks, in order.
    for (at, (reason, needle)) in mail_queue::REASONS.iter().enumerate() {
        let _ = writeln!(
            out,
            "    REASON[{0}] = \"{reason}\"; NEEDLE[{0}] = \"{needle}\"",
            at + 1
        );
    }
    let words = lists::KINDS
        .iter()
        .flat_map(|(kind, words)| words.iter().map(move |word| (kind, word)));
    for (at, (kind, word)) in words.enumerate() {
        let (at, word) = (at + 1, word.replace('\'', "\\047"));
        let _ = writeln!(
            out,
            "    KIND[{at}] = \"{kind}\"; KIND_WORD[{at}] = \"{word}\""
        );
    }
    let _ = writeln!(out, "    OTHER_KIND = \"{}\"", lists::OTHER);
    for (at, file) in lists::FILES.iter().enumerate() {
        let _ = writeln!(out, "    KNOWN_FILE[{}] = \"{file}\"", at + 1);
    }
    // Names with blanks.
    for name in ext4::names() {
        let _ = writeln!(out, "    EXT4[\"{name}\"] = 1");
    }
    out
}

fn lvm_fields() -> Vec<&'static str> {
    let asks = [
        crate::lvm::LVS.last(),
        crate::lvm::VGS.last(),
        crate::lvm::PVS.last(),
        crate::lvm::HEALTH.last(),
    ];
    let fields = asks
        .into_iter()
        .flatten()
        .flat_map(|fields| fields.split(','));
    let mut all: Vec<&str> = fields.collect();
    all.extend(["report", "lv", "seg", "vg", "pv", "log"]);
    all
}
