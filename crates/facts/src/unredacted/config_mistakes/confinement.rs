//! Finds protection that was switched off: profiles of AppArmor, SELinux, and the records of auditd (aa-disable(8),
//! selinux_config(5), auditd.conf(5), audit.rules(7)).

use super::super::lines_of_files::{files, read};
use super::Misuses;
use crate::gather::{Gather, lossy};
use assay_model::FactPlace;

const DISABLED: &str = "/etc/apparmor.d/disable";
/// Programs that answer the network or read foreign files.
const EXPOSED: [&str; 26] = [
    "mysqld",
    "mariadbd",
    "named",
    "unbound",
    "ntpd",
    "chronyd",
    "cupsd",
    "cups-browsed",
    "libvirtd",
    "virt-aa-helper",
    "dovecot",
    "nginx",
    "apache2",
    "php-fpm",
    "dnsmasq",
    "dhcpd",
    "slapd",
    "smbd",
    "nmbd",
    "squid",
    "clamd",
    "freshclam",
    "sssd",
    "redis-server",
    "postgres",
    "tor",
];
const SELINUX: &str = "/etc/selinux/config";
const RELEASE: &str = "/etc/os-release";
const AUDITD: &str = "/etc/audit/auditd.conf";
const AUDIT_RULES: &str = "/etc/audit/rules.d";
/// Settings that say what auditd does when it cannot write, or soon cannot.
const ACTIONS: [&str; 4] = [
    "space_left_action",
    "admin_space_left_action",
    "disk_full_action",
    "disk_error_action",
];

pub(super) fn collect(g: &mut Gather<'_>) {
    note_profiles(g);
    note_selinux(g);
    note_audit(g);
}

fn note_profiles(g: &mut Gather<'_>) {
    let mut names: Vec<String> = g
        .list("apparmor", DISABLED)
        .iter()
        .map(|name| lossy(name))
        .collect();
    names.sort();
    let mut found = Misuses::default();
    for name in names {
        // The name is the path of the program with dots, such as usr.sbin.mysqld.
        let program = name.rsplit('.').next().unwrap_or_default();
        let off = EXPOSED.contains(&program);
        found.add(
            "profile_off",
            off,
            FactPlace::from(format!("{DISABLED}/{name}")),
        );
    }
    found.note(g, "apparmor");
}

/// Notes the mode of SELinux on systems that enforce it as installed.
fn note_selinux(g: &mut Gather<'_>) {
    let names: Vec<String> = read(g, "selinux", RELEASE)
        .iter()
        .filter_map(|line| {
            let (name, value) = line.text.split_once('=')?;
            let is_name = matches!(name, "ID" | "ID_LIKE");
            is_name.then(|| value.trim_matches(['"', '\'']).to_owned())
        })
        .collect();
    let is = |one: &str| {
        names
            .iter()
            .any(|names| names.split(' ').any(|name| name == one))
    };
    // Amazon Linux 2023 is permissive as installed.
    let red_hat = (is("fedora") || is("rhel")) && !is("amzn");
    let mode = read(g, "selinux", SELINUX)
        .into_iter()
        .rev()
        .find_map(|line| {
            let value = line.text.trim().strip_prefix("SELINUX=")?;
            Some((value.trim().to_ascii_lowercase(), line.place))
        });
    if let (true, Some((mode, place))) = (red_hat, mode) {
        let mut found = Misuses::default();
        found.add("not_enforced", mode != "enforcing", place);
        found.note(g, "selinux");
    }
}

fn note_audit(g: &mut Gather<'_>) {
    let mut found = Misuses::default();
    let settings = read(g, "audit", AUDITD);
    for action in ACTIONS {
        let last = settings.iter().rev().find_map(|line| {
            let (name, value) = line.text.split_once('=')?;
            let is_action = name.trim().eq_ignore_ascii_case(action);
            is_action.then(|| (value.trim().to_ascii_lowercase(), line.place.clone()))
        });
        if let Some((value, place)) = last {
            found.add("full_disk_ignored", value == "ignore", place);
        }
    }
    let (mut never, mut calls) = (None, false);
    for path in files(g, "audit", AUDIT_RULES, ".rules") {
        for line in read(g, "audit", &path) {
            let words: Vec<&str> = line.text.split_whitespace().collect();
            if words.first().is_none_or(|word| word.starts_with('#')) {
                continue;
            }
            calls |= words.contains(&"-S") || words.first() == Some(&"-w");
            if let ["-a" | "-A", "task,never" | "never,task", ..] = words[..] {
                never = Some(line.place);
            }
        }
    }
    if let Some(place) = never {
        found.add("calls_unrecorded", calls, place);
    }
    found.note(g, "audit");
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn settings_and_their_near_misses() {
        let red_hat = (RELEASE, "ID=\"rhel\"\nID_LIKE=\"fedora\"\n");
        let rules = "/etc/audit/rules.d/10-a.rules";
        for (path, text, expected) in [
            (
                "/etc/apparmor.d/disable/usr.sbin.mysqld",
                "",
                "profile_off=true",
            ),
            (
                "/etc/apparmor.d/disable/usr.bin.firefox",
                "",
                "profile_off=false",
            ),
            (SELINUX, "SELINUX=Permissive  \n", "not_enforced=true"),
            (
                SELINUX,
                "#SELINUX=disabled\nSELINUX=enforcing\n",
                "not_enforced=false",
            ),
            (
                AUDITD,
                "space_left_action = ignore\n",
                "full_disk_ignored=true",
            ),
            (
                AUDITD,
                "space_left_action = SYSLOG\n",
                "full_disk_ignored=false",
            ),
            (
                rules,
                "-a task,never\n-a always,exit -S execve\n",
                "calls_unrecorded=true",
            ),
            (rules, "-a task,never\n", "calls_unrecorded=false"),
            (rules, "#-a task,never\n-a always,exit -S execve\n", ""),
        ] {
            assert_eq!(
                found(&[red_hat, (path, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
        let off = (SELINUX, "SELINUX=disabled\n");
        assert!(found(&[off], collect).is_empty());
        let amazon = (RELEASE, "ID=\"amzn\"\nID_LIKE=\"fedora\"\n");
        assert!(found(&[amazon, off], collect).is_empty());
    }
}
