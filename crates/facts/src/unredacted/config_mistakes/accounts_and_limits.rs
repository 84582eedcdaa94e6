//! Finds members of groups that reach all disks or hashes of passwords, limits above those of the kernel, a rotation of
//! logs that never runs, and programs of ordinary users that handle core dumps as root.

use super::super::lines_of_files::{files, read};
use super::Misuses;
use crate::gather::Gather;
use assay_config::effective::files::OfHost;
use assay_config::effective::{Program, ScopeId, read_effective};
use assay_model::FactPlace;
use std::collections::BTreeMap;
use std::path::Path;

const GROUP: &str = "/etc/group";
const PASSWD: &str = "/etc/passwd";
/// Groups that may read the raw disks, the memory, or the hashes of passwords.
const STRONG: [&str; 3] = ["disk", "kmem", "shadow"];
/// Groups whose members control a program that runs as root, and so become root.
const ROOTS: [&str; 5] = ["docker", "lxd", "incus-admin", "sudo", "wheel"];
/// Accounts of servers that answer the network.
const EXPOSED: [&str; 14] = [
    "www-data", "apache", "nginx", "http", "caddy", "mysql", "postgres", "tomcat", "jenkins",
    "postfix", "exim", "ftp", "redis", "nobody",
];
const LIMITS: &str = "/etc/security/limits.conf";
const LIMITS_DIR: &str = "/etc/security/limits.d";
const MOST_FILES: &str = "/proc/sys/fs/nr_open";
const ROTATION: &str = "/etc/logrotate.conf";
const ROTATIONS: &str = "/etc/logrotate.d";
const TIMER: &str = "/etc/systemd/system/logrotate.timer";
const SYSCTL: &str = "/etc/sysctl.conf";
/// Directories in which ordinary users create programs.
const SHARED: [&str; 4] = ["/tmp/", "/var/tmp/", "/dev/shm/", "/home/"];

pub(super) fn collect(g: &mut Gather<'_>) {
    note_members(g);
    note_limits(g);
    note_rotation(g);
    note_core_dumps(g);
}

/// Notes people in strong groups. Accounts of services, such as that of a backup, are left out.
fn note_members(g: &mut Gather<'_>) {
    let people: BTreeMap<String, String> = read(g, "group_member", PASSWD)
        .iter()
        .filter_map(|line| {
            let fields: Vec<&str> = line.text.split(':').collect();
            let [name, _, user, group, _, _, shell] = fields[..] else {
                return None;
            };
            let person = user
                .parse::<u32>()
                .is_ok_and(|user| (1000..65534).contains(&user));
            let logs_in = !shell.ends_with("/nologin") && !shell.ends_with("/false");
            (person && logs_in).then(|| (name.to_owned(), group.to_owned()))
        })
        .collect();
    let services: Vec<String> = read(g, "group_member", PASSWD)
        .iter()
        .filter_map(|line| {
            let fields: Vec<&str> = line.text.split(':').collect();
            let [name, _, user, ..] = fields[..] else {
                return None;
            };
            let service = user
                .parse::<u32>()
                .is_ok_and(|user| (1..1000).contains(&user));
            service.then(|| name.to_owned())
        })
        .collect();
    let mut found = Misuses::default();
    for line in read(g, "group_member", GROUP) {
        let fields: Vec<&str> = line.text.split(':').collect();
        let [name, _, number, members] = fields[..] else {
            continue;
        };
        if STRONG.contains(&name) {
            let named = members.split(',').any(|member| people.contains_key(member));
            let first = people.values().any(|group| group == number);
            found.add("strong", named || first, line.place);
        } else if ROOTS.contains(&name) {
            let named = |member: &str| {
                EXPOSED.contains(&member) && services.iter().any(|service| service == member)
            };
            found.add("service_is_root", members.split(',').any(named), line.place);
        }
    }
    found.note(g, "group_member");
}

/// Notes limits of open files above that of the kernel: pam_limits then refuses the login.
fn note_limits(g: &mut Gather<'_>) {
    let kernel = g.read("limit", MOST_FILES);
    let Some(kernel) = kernel.and_then(|text| text.trim().parse::<u64>().ok()) else {
        return;
    };
    let mut all = vec![LIMITS.to_owned()];
    all.extend(files(g, "limit", LIMITS_DIR, ".conf"));
    let mut found = Misuses::default();
    for path in all {
        for line in read(g, "limit", &path) {
            let words: Vec<&str> = line.text.split_whitespace().collect();
            if let [who, _, "nofile", value, ..] = words[..]
                && !who.starts_with('#')
                && let Ok(value) = value.parse::<u64>()
            {
                found.add("above_kernel", value > kernel, line.place);
            }
        }
    }
    found.note(g, "limit");
}

/// Notes whether the logs of packages are rotated: the main file includes their files, and the timer is not masked.
fn note_rotation(g: &mut Gather<'_>) {
    let lines = read(g, "rotation", ROTATION);
    let Some(first) = lines.first().map(|line| line.place.clone()) else {
        return;
    };
    if files(g, "rotation", ROTATIONS, "").is_empty() {
        return;
    }
    let mut found = Misuses::default();
    let included = lines
        .iter()
        .any(|line| line.text.trim_start().starts_with("include") && line.text.contains(ROTATIONS));
    found.add("without_packages", !included, first);
    let masked = g.host.link(Path::new(TIMER));
    if masked.is_ok_and(|target| target == Path::new("/dev/null")) {
        let elsewhere = runs_elsewhere(g);
        found.add("never", !elsewhere, FactPlace::from(TIMER));
    }
    found.note(g, "rotation");
}

/// Returns whether a job of cron or another timer starts logrotate. The job of Debian does nothing under systemd.
fn runs_elsewhere(g: &mut Gather<'_>) -> bool {
    let mut all = vec![
        "/etc/crontab".to_owned(),
        "/var/spool/cron/crontabs/root".to_owned(),
        "/etc/cron.hourly/logrotate".to_owned(),
    ];
    all.extend(files(g, "rotation", "/etc/cron.d", ""));
    all.extend(files(g, "rotation", "/etc/systemd/system", ".service"));
    all.iter().any(|path| {
        let lines = read(g, "rotation", path);
        lines
            .iter()
            .any(|line| !line.text.trim_start().starts_with('#') && line.text.contains("logrotate"))
    })
}

/// Notes a program for core dumps in a directory in which ordinary users create files. The kernel starts it as root.
fn note_core_dumps(g: &mut Gather<'_>) {
    let Ok(all) = read_effective(Program::Sysctl, Path::new(SYSCTL), &OfHost(g.host)) else {
        return;
    };
    let Ok(Some(said)) = all.certain(ScopeId::ROOT, "kernel.core_pattern") else {
        return;
    };
    let value = said.text();
    let program = value.trim().strip_prefix('|');
    let foreign =
        program.is_some_and(|program| SHARED.iter().any(|dir| program.trim().starts_with(dir)));
    let place = FactPlace::from(&said.place);
    let mut found = Misuses::default();
    found.add("foreign", foreign, place);
    found.note(g, "core_handler");
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    const PEOPLE: (&str, &str) = (
        PASSWD,
        "backup:x:34:34::/:/bin/sh\nbob:x:1000:1000::/home/bob:/bin/bash\n",
    );

    #[test]
    fn members_of_strong_groups() {
        let web = (PASSWD, "www-data:x:33:33::/var/www:/usr/sbin/nologin\n");
        for (text, expected) in [
            ("docker:x:998:www-data\n", "service_is_root=true"),
            ("docker:x:998:bob\n", "service_is_root=false"),
        ] {
            assert_eq!(
                found(&[web, (GROUP, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
        for (text, expected) in [
            ("disk:x:6:bob\n", "strong=true"),
            ("disk:x:6:backup\n", "strong=false"),
            ("disk:x:6:\ncdrom:x:24:bob\n", "strong=false"),
            ("shadow:x:1000:\n", "strong=true"),
        ] {
            assert_eq!(
                found(&[PEOPLE, (GROUP, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn limits_and_those_of_the_kernel() {
        let kernel = (MOST_FILES, "1048576\n");
        for (text, expected) in [
            ("* - nofile 2097152\n", "above_kernel=true"),
            ("* - nofile 1048576\n", "above_kernel=false"),
            ("* - nofile unlimited\n", ""),
            ("#* - nofile 2097152\n", ""),
        ] {
            assert_eq!(
                found(&[kernel, (LIMITS, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn rotation_of_logs() {
        let own = ("/etc/logrotate.d/nginx", "/var/log/nginx/*.log {\n}\n");
        let main = (ROTATION, "weekly\ninclude /etc/logrotate.d\n");
        let bare = (ROTATION, "weekly\n#include /etc/logrotate.d\n");
        assert_eq!(found(&[own, main], collect), ["without_packages=false"]);
        assert_eq!(found(&[own, bare], collect), ["without_packages=true"]);
        assert!(found(&[bare], collect).is_empty());
    }

    #[test]
    fn handlers_of_core_dumps() {
        let path = "/etc/sysctl.d/50-own.conf";
        for (text, expected) in [
            ("kernel.core_pattern = |/tmp/collect %p\n", "foreign=true"),
            (
                "kernel.core_pattern = |/usr/lib/systemd/systemd-coredump %P\n",
                "foreign=false",
            ),
            (
                "kernel.core_pattern = /var/crash/core.%p\n",
                "foreign=false",
            ),
        ] {
            assert_eq!(
                found(&[(path, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
    }
}
