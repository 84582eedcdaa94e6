//! Collects kernel settings of write caching, network tuning and hardening: the current value, and the configuration
//! line that sets it.

use crate::gather::{Gather, scalar};
use assay_config::effective::files::OfHost;
use assay_config::effective::{Program, ScopeId, Trouble, read_effective};
use assay_model::FactKind;
use std::path::Path;

pub(crate) const NAMES: [&str; 49] = [
    "vm.dirty_ratio",
    "vm.dirty_bytes",
    "vm.dirty_background_ratio",
    "vm.dirty_background_bytes",
    "vm.dirty_expire_centisecs",
    "vm.dirty_writeback_centisecs",
    "vm.swappiness",
    "vm.vfs_cache_pressure",
    "vm.min_free_kbytes",
    "vm.overcommit_memory",
    "vm.laptop_mode",
    "fs.aio-max-nr",
    "fs.aio-nr",
    "kernel.io_uring_disabled",
    "net.core.somaxconn",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_tw_recycle",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.conf.all.accept_source_route",
    "kernel.randomize_va_space",
    "kernel.unprivileged_bpf_disabled",
    "fs.suid_dumpable",
    "fs.protected_symlinks",
    "vm.mmap_min_addr",
    "fs.protected_hardlinks",
    "fs.file-max",
    "vm.zone_reclaim_mode",
    "vm.panic_on_oom",
    "vm.max_map_count",
    "net.ipv4.icmp_echo_ignore_broadcasts",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_abort_on_overflow",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.ip_no_pmtu_disc",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_autocorking",
    "net.core.busy_read",
    "kernel.numa_balancing",
    "kernel.sched_autogroup_enabled",
    "vm.watermark_scale_factor",
    "fs.protected_fifos",
    "fs.protected_regular",
    "net.ipv4.conf.all.accept_redirects",
    "net.ipv4.ip_forward",
];

/// Settings of TCP buffers. A value consists of three sizes in bytes: minimum, default and maximum.
pub(crate) const TCP_BUFFERS: [&str; 2] = ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"];

/// The file that `sysctl --system` reads after its drop-ins. On Debian, 99-sysctl.conf is a link to this file.
const LAST: &str = "/etc/sysctl.conf";

/// Files with the TCP congestion control algorithm in use, and with the available algorithms.
pub(crate) const CONGESTION: [&str; 2] = [
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_available_congestion_control",
];

pub(crate) fn collect(g: &mut Gather<'_>) {
    let [control, controls] = CONGESTION.map(|name| {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        (format!("sysctl.{name}"), path)
    });
    g.text(&control.0, &control.1);
    g.value(&controls.0, &controls.1, |text| {
        let words = text.split_whitespace().map(str::to_owned);
        Some(words.collect::<Vec<String>>())
    });
    for name in NAMES {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        g.value(&format!("sysctl.{name}"), &path, |text| Some(scalar(text)));
    }
    for name in TCP_BUFFERS {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        g.value(&format!("sysctl.{name}"), &path, |text| {
            Some(text.split_whitespace().map(scalar).collect::<Vec<_>>())
        });
    }
    let all = match read_effective(Program::Sysctl, Path::new(LAST), &OfHost(g.host)) {
        Ok(all) => all,
        Err(fault) => {
            let key = format!("sysctl.{LAST}");
            g.facts
                .unknown(key, fault.to_string(), FactKind::Configured, LAST);
            return;
        }
    };
    for problem in &all.problems {
        let (what, reason) = match &problem.trouble {
            Trouble::Unread { include, fault } => (include.clone(), fault.to_string()),
            other => (problem.place.path.display().to_string(), other.to_string()),
        };
        g.facts
            .unknown(format!("sysctl.{what}"), reason, FactKind::Configured, what);
    }
    for name in NAMES {
        let key = format!("sysctl.{name}.configured");
        match all.certain(ScopeId::ROOT, name) {
            Ok(Some(said)) => {
                let value = parse_number(&said.text());
                g.facts.known(key, value, FactKind::Configured, &said.place);
            }
            // A pattern holds for all names that no line sets exactly (sysctl.d(5)).
            Ok(None) => {
                let mut patterns = all.settings().iter().rev();
                if let Some(said) = patterns.find(|said| matches(&said.key, name)) {
                    let value = parse_number(&said.text());
                    g.facts.known(key, value, FactKind::Configured, &said.place);
                }
            }
            // A later file may set it again.
            Err(problem) if all.value(ScopeId::ROOT, name).is_some() => {
                let reason = problem.trouble.to_string();
                g.facts
                    .unknown(key, reason, FactKind::Configured, &problem.place);
            }
            Err(_) => {}
        }
    }
}

/// Parses a number as the kernel does: decimal, hexadecimal after `0x`, or octal after `0`.
pub(crate) fn parse_number(text: &str) -> serde_json::Value {
    let text = text.trim();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let lower = digits.to_ascii_lowercase();
    let number = match (lower.strip_prefix("0x"), lower.strip_prefix('0')) {
        (Some(digits), _) => i64::from_str_radix(digits, 16).ok(),
        (None, Some(digits)) if !digits.is_empty() => i64::from_str_radix(digits, 8).ok(),
        _ => None,
    };
    number.map_or_else(|| scalar(text), |number| (sign * number).into())
}

/// Returns whether a name with `*` matches a setting. `*` matches one part between dots.
fn matches(pattern: &str, name: &str) -> bool {
    pattern.contains('*')
        && pattern.split('.').count() == name.split('.').count()
        && pattern
            .split('.')
            .zip(name.split('.'))
            .all(|(part, own)| match part.split_once('*') {
                Some((begin, end)) => {
                    own.len() >= begin.len() + end.len()
                        && own.starts_with(begin)
                        && own.ends_with(end)
                }
                None => part == own,
            })
}

/// Redacts a line: keeps a line that sets one of the noted settings to a number. Names may contain slashes instead of
/// dots. A hyphen before a name means that failure is ignored (sysctl.d(5)).
pub(crate) fn redact(line: &str) -> String {
    let known = line.split_once('=').is_some_and(|(name, value)| {
        let name = name.trim().trim_start_matches('-').replace('/', ".");
        let asked = NAMES.contains(&name.as_str()) || NAMES.iter().any(|one| matches(&name, one));
        asked && parse_number(value).is_i64()
    });
    if known { line } else { "" }.to_owned()
}

/// Returns whether a path is the file of one of the settings.
pub(crate) fn is_setting(path: &str) -> bool {
    let inner = path.strip_prefix("/proc/sys/");
    inner.is_some_and(|inner| NAMES.contains(&inner.replace('/', ".").as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn numbers_and_patterns_of_the_kernel() {
        let of = |text: &str, name: &str| {
            let host = Recorded::new().file("/etc/sysctl.d/a.conf", text);
            let mut g = Gather::new(&host);
            collect(&mut g);
            let fact = g.facts.get(&format!("sysctl.{name}.configured")).cloned();
            assert_eq!(
                text.lines()
                    .map(redact)
                    .filter(|line| line.is_empty())
                    .count(),
                0
            );
            fact.and_then(|value| value.as_i64())
        };
        assert_eq!(of("fs.suid_dumpable = 0x1\n", "fs.suid_dumpable"), Some(1));
        assert_eq!(of("vm.max_map_count = 010\n", "vm.max_map_count"), Some(8));
        let name = "net.ipv4.conf.all.accept_source_route";
        let pattern = "net.ipv4.conf.*.accept_source_route = 1\n";
        assert_eq!(of(pattern, name), Some(1));
        let exact = format!("{name} = 0\n{pattern}");
        assert_eq!(of(&exact, name), Some(0));
    }

    #[test]
    fn the_last_file_wins_and_is_named_with_its_line() {
        let host = Recorded::new()
            .file("/proc/sys/vm/dirty_ratio", "20\n")
            .file("/usr/lib/sysctl.d/10-a.conf", "vm.dirty_ratio=5\n")
            .file(
                "/etc/sysctl.d/20-b.conf",
                "# comment\n-vm/dirty_ratio = 7\n;vm.dirty_ratio=9\n",
            )
            .file("/usr/lib/sysctl.d/20-b.conf", "vm.dirty_ratio=8\n");
        let mut g = Gather::new(&host);
        collect(&mut g);
        assert_eq!(g.facts.u64("sysctl.vm.dirty_ratio"), Some(20));
        let fact = &g.facts.map["sysctl.vm.dirty_ratio.configured"];
        assert_eq!(fact.place.to_string(), "/etc/sysctl.d/20-b.conf:2");
        assert_eq!(fact.kind, FactKind::Configured);
        assert_eq!(g.facts.u64("sysctl.vm.dirty_ratio.configured"), Some(7));
        // A later unreadable file may set another value, so the fact is unknown and not missing.
        let host = host.file("/etc/sysctl.d/90-secret.conf", "");
        let host = host.denied("/etc/sysctl.d/90-secret.conf");
        let mut g = Gather::new(&host);
        collect(&mut g);
        assert_eq!(g.facts.u64("sysctl.vm.dirty_ratio.configured"), None);
        let hidden = &g.facts.map["sysctl./etc/sysctl.d/90-secret.conf"];
        assert_eq!(
            hidden.value,
            assay_model::FactValue::Unknown("Permission denied".into())
        );
    }
}
