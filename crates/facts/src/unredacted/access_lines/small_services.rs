//! Small services: the management port of OpenVPN, the administrator's file of k3s, the installer of Gitea, leases that
//! Kea does not store, jails of fail2ban that stop nobody, and TeX that runs any program.

use super::super::lines_of_files::{exists, files, is_loopback, read};
use super::data_stores::read_sections;
use super::management::without_comments;
use super::{Lines, bare, holds_world, words};
use crate::collectors::daemons::lines::at_line;
use crate::collectors::daemons::nested::read_yaml;
use crate::collectors::services::packages;
use crate::gather::Gather;
use assay_model::FactPlace;
use serde_json::Value;
use std::collections::BTreeMap;

const OPENVPN: [&str; 3] = ["/etc/openvpn", "/etc/openvpn/client", "/etc/openvpn/server"];
const K3S: [&str; 2] = ["/etc/rancher/k3s", "/etc/rancher/rke2"];
const K3S_UNIT: &str = "/etc/systemd/system/k3s.service";
const GITEA: [&str; 2] = ["/etc/gitea/app.ini", "/etc/forgejo/app.ini"];
const KEA: [(&str, &str); 2] = [
    ("/etc/kea/kea-dhcp4.conf", "/Dhcp4/lease-database"),
    ("/etc/kea/kea-dhcp6.conf", "/Dhcp6/lease-database"),
];
const FAIL2BAN: &str = "/etc/fail2ban";
const AUTH_LOG: &str = "/var/log/auth.log";
/// Packages that write /var/log/auth.log on Debian.
const WRITERS: [&str; 4] = [
    "rsyslog",
    "syslog-ng-core",
    "inetutils-syslogd",
    "busybox-syslogd",
];
const TEX: &str = "/etc/texmf/web2c/texmf.cnf";
const TEX_MORE: &str = "/etc/texmf/texmf.d";

pub(super) fn collect(g: &mut Gather<'_>) {
    note_openvpn(g);
    note_k3s(g);
    note_gitea(g);
    note_kea(g);
    note_fail2ban(g);
    note_tex(g);
}

/// Notes management ports of OpenVPN that other machines reach without a password (openvpn(8), --management).
fn note_openvpn(g: &mut Gather<'_>) {
    let mut found = Lines::of("openvpn_management", "open");
    for dir in OPENVPN {
        for path in files(g, "openvpn_management", dir, ".conf") {
            for line in read(g, "openvpn_management", &path) {
                let words = words(&line);
                if let [key, address, port, rest @ ..] = &words[..]
                    && key == "management"
                {
                    let bare = rest.first().is_none_or(|word| word.starts_with('#'));
                    let open = port != "unix" && !is_loopback(address) && bare;
                    found.add(g, open, &line.place);
                }
            }
        }
    }
}

/// Notes whether all accounts may read the file with the rights of the administrator of a cluster.
fn note_k3s(g: &mut Gather<'_>) {
    const OPTION: &str = "write-kubeconfig-mode";
    let mut found = Lines::of("k3s_kubeconfig", "by_all");
    let readable = |mode: &str| {
        let digits = mode.trim_matches(['"', '\'']).trim_start_matches("0o");
        u32::from_str_radix(digits, 8).is_ok_and(|mode| mode & 0o004 != 0)
    };
    for dir in K3S {
        let mut all = vec![format!("{dir}/config.yaml")];
        all.extend(files(
            g,
            "k3s_kubeconfig",
            &format!("{dir}/config.yaml.d"),
            ".yaml",
        ));
        let mut last = None;
        for path in all {
            let text = g.read("k3s_kubeconfig", &path).unwrap_or_default();
            for one in read_yaml(&text).iter().filter(|one| one.path == OPTION) {
                last = Some((readable(&one.value), at_line(&path, one.line)));
            }
        }
        if let Some((open, place)) = last {
            found.add(g, open, &place);
        }
    }
    for line in read(g, "k3s_kubeconfig", K3S_UNIT) {
        let text = bare(&line).unwrap_or_default().replace(['\'', '='], " ");
        let mut words = text.split_whitespace();
        if words.any(|word| word == format!("--{OPTION}")) {
            let mode = words.next().unwrap_or_default();
            found.add(g, readable(mode), &line.place);
        }
    }
}

/// Notes whether Gitea or Forgejo still runs its installer, which makes the first visitor the administrator.
fn note_gitea(g: &mut Gather<'_>) {
    let mut found = Lines::of("gitea", "installer_open");
    for path in GITEA {
        let said = read_sections(g, "gitea", path);
        let lock = said
            .iter()
            .rfind(|one| one.section == "security" && one.name == "install_lock");
        if let Some(one) = lock {
            found.add(g, one.value == "false", &one.place);
        }
    }
}

/// Notes whether Kea keeps its leases only in memory (Kea, Lease Storage: persist).
fn note_kea(g: &mut Gather<'_>) {
    let mut found = Lines::of("kea_leases", "not_stored");
    for (path, pointer) in KEA {
        let Some(text) = g.read("kea_leases", path) else {
            continue;
        };
        let Ok(all) = serde_json::from_str::<Value>(&without_comments(&text)) else {
            continue;
        };
        let database = all.pointer(pointer);
        if let Some(persist) = database.and_then(|one| one.get("persist")) {
            let row = text.lines().position(|line| line.contains("\"persist\""));
            let place = at_line(path, row.map_or(1, |at| at + 1));
            found.add(g, persist == &Value::Bool(false), &place);
        }
    }
}

/// The settings of fail2ban by section and name.
type Jails = BTreeMap<String, BTreeMap<String, (String, FactPlace)>>;

/// Reads settings of fail2ban. A line that begins with a blank continues the value before it.
fn read_jails(g: &mut Gather<'_>, path: &str, jails: &mut Jails) {
    let (mut section, mut name) = (String::new(), String::new());
    for line in read(g, "fail2ban", path) {
        let Some(text) = bare(&line) else { continue };
        if line.text.starts_with([' ', '\t']) {
            let own = jails.get_mut(&section).and_then(|own| own.get_mut(&name));
            if let Some((value, _)) = own {
                value.push(' ');
                value.push_str(text);
            }
        } else if let Some(head) = text.strip_prefix('[') {
            head.split(']')
                .next()
                .unwrap_or_default()
                .clone_into(&mut section);
            name.clear();
        } else if let Some((key, value)) = text.split_once(['=', ':']) {
            key.trim().to_lowercase().clone_into(&mut name);
            let said = (value.trim().to_owned(), line.place.clone());
            jails
                .entry(section.clone())
                .or_default()
                .insert(name.clone(), said);
        }
    }
}

/// Notes jails that ignore everybody, and a jail of sshd that waits for a log file which nothing writes.
fn note_fail2ban(g: &mut Gather<'_>) {
    let mut all: Vec<String> = [
        "paths-common.conf",
        "paths-debian.conf",
        "paths-overrides.local",
        "jail.conf",
    ]
    .map(|name| format!("{FAIL2BAN}/{name}"))
    .to_vec();
    let more = format!("{FAIL2BAN}/jail.d");
    all.extend(files(g, "fail2ban", &more, ".conf"));
    all.push(format!("{FAIL2BAN}/jail.local"));
    all.extend(files(g, "fail2ban", &more, ".local"));
    let mut jails = Jails::new();
    for path in all {
        read_jails(g, &path, &mut jails);
    }
    let mut ignores = Lines::of("fail2ban", "ignores_all");
    for (list, place) in jails.values().filter_map(|own| own.get("ignoreip")) {
        let world = list.split([' ', ',']).any(holds_world);
        ignores.add(g, world, place);
    }
    let mut log = Lines::of("fail2ban_jail", "without_log");
    let on = get(&jails, "sshd", "enabled").filter(|(value, _)| value == "true");
    if let Some((_, place)) = on {
        let packaged = exists(g, &format!("{FAIL2BAN}/jail.conf"));
        let debian = packages::find_any_version(g, "fail2ban").is_some();
        let writer = WRITERS
            .iter()
            .any(|name| packages::find_any_version(g, name).is_some());
        let resolved = |key: &str| {
            let value = get(&jails, "sshd", key).map(|(value, _)| value.clone());
            resolve(&jails, value.unwrap_or_default())
        };
        let waits = !resolved("backend").contains("systemd") && resolved("logpath") == AUTH_LOG;
        if packaged && debian {
            let missing = waits && !writer && !exists(g, AUTH_LOG);
            log.add(g, missing, &place.clone());
        }
    }
}

/// Returns a setting of a jail, or that of all jails.
fn get<'a>(jails: &'a Jails, jail: &str, key: &str) -> Option<&'a (String, FactPlace)> {
    let of = |section: &str| jails.get(section).and_then(|own| own.get(key));
    of(jail).or_else(|| of("DEFAULT"))
}

/// Replaces a value that is one reference, such as `%(sshd_log)s`, by what it refers to.
fn resolve(jails: &Jails, mut value: String) -> String {
    for _ in 0..8 {
        let reference = value
            .strip_prefix("%(")
            .and_then(|rest| rest.strip_suffix(")s"));
        let Some(name) = reference else { break };
        let name = name
            .trim_start_matches("default/")
            .trim_start_matches("known/");
        let found = jails.get("DEFAULT").and_then(|own| own.get(name));
        value = found.map_or(String::new(), |(value, _)| value.clone());
    }
    value
}

/// Notes whether documents of TeX may run any program and write any file (web2c, shell_escape and openout_any). The
/// first line of a setting counts.
fn note_tex(g: &mut Gather<'_>) {
    let all = match exists(g, TEX) {
        true => vec![TEX.to_owned()],
        false => files(g, "tex", TEX_MORE, ".cnf"),
    };
    let mut first: BTreeMap<String, (String, FactPlace)> = BTreeMap::new();
    for path in all {
        for line in read(g, "tex", &path) {
            let text = line.text.split('%').next().unwrap_or_default();
            if let Some((name, value)) = text.split_once('=') {
                let said = (value.trim().to_owned(), line.place.clone());
                first.entry(name.trim().to_owned()).or_insert(said);
            }
        }
    }
    let mut runs = Lines::of("tex", "runs_any_program");
    let mut writes = Lines::of("tex_files", "writes_any_file");
    for (name, (value, place)) in &first {
        match name.split('.').next().unwrap_or_default() {
            "shell_escape" => runs.add(g, ["t", "y", "1"].contains(&value.as_str()), place),
            "openout_any" => writes.add(g, value.starts_with('a'), place),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::holds;
    use super::*;

    #[test]
    fn services_and_their_near_misses() {
        let openvpn = "/etc/openvpn/server/office.conf";
        let k3s = "/etc/rancher/k3s/config.yaml";
        let kea = KEA[0].0;
        for (path, text, expected) in [
            (
                openvpn,
                "management 0.0.0.0 7505\n",
                "openvpn_management.1.open 1",
            ),
            (openvpn, "management 0.0.0.0 7505 /etc/openvpn/pw\n", ""),
            (openvpn, "management /run/a.sock unix\n", ""),
            (openvpn, "management localhost 7505\n", ""),
            (
                k3s,
                "write-kubeconfig-mode: \"0644\"\n",
                "k3s_kubeconfig.1.by_all 1",
            ),
            (k3s, "write-kubeconfig-mode: \"0640\"\n", ""),
            (
                K3S_UNIT,
                "[Service]\nExecStart=/usr/local/bin/k3s server \\\n '--write-kubeconfig-mode' \\\n '644'\n",
                "k3s_kubeconfig.1.by_all 2",
            ),
            (
                GITEA[0],
                "[security]\nINSTALL_LOCK = false\n",
                "gitea.1.installer_open 2",
            ),
            (GITEA[0], "[security]\nINSTALL_LOCK = true\n", ""),
            (
                kea,
                "{ \"Dhcp4\": { // a\n\"lease-database\": { \"type\": \"memfile\", \"persist\": false } } }\n",
                "kea_leases.1.not_stored 2",
            ),
            (
                kea,
                "{ \"Dhcp4\": { \"lease-database\": { \"type\": \"memfile\", \"persist\": true } } }\n",
                "",
            ),
            (
                "/etc/fail2ban/jail.local",
                "[DEFAULT]\nignoreip = 127.0.0.1/8\n\t0.0.0.0/0\n",
                "fail2ban.1.ignores_all 2",
            ),
            (
                "/etc/fail2ban/jail.local",
                "[DEFAULT]\nignoreip = 127.0.0.1/8\n#\t0.0.0.0/0\n",
                "",
            ),
            (TEX, "% a\nshell_escape = t\n", "tex.1.runs_any_program 2"),
            (TEX, "shell_escape = p\nshell_escape = t\n", ""),
            (TEX, "openout_any = a\n", "tex_files.1.writes_any_file 1"),
        ] {
            assert_eq!(holds(&[(path, text)]).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn a_jail_needs_its_log() {
        let package = |name: &str| {
            format!("Package: {name}\nStatus: install ok installed\nVersion: 1.0.2-2\n\n")
        };
        let main = (
            "/etc/fail2ban/jail.conf",
            "[DEFAULT]\nbackend = auto\n[sshd]\nlogpath = %(sshd_log)s\nbackend = %(sshd_backend)s\n",
        );
        let paths = (
            "/etc/fail2ban/paths-common.conf",
            "[DEFAULT]\ndefault_backend = %(default/backend)s\nsshd_log = %(syslog_authpriv)s\n\
             sshd_backend = %(default_backend)s\nsyslog_authpriv = /var/log/auth.log\n",
        );
        let (alone, beside) = (
            package("fail2ban"),
            package("fail2ban") + &package("rsyslog"),
        );
        for (status, jail, expected) in [
            (
                &alone,
                "[sshd]\nenabled = true\n",
                "fail2ban_jail.1.without_log 2",
            ),
            (&beside, "[sshd]\nenabled = true\n", ""),
            (&alone, "[sshd]\nenabled = true\nbackend = systemd\n", ""),
            (&alone, "[sshd]\nenabled = false\n", ""),
        ] {
            let files = [
                main,
                paths,
                ("/etc/fail2ban/jail.d/defaults-debian.conf", jail),
                ("/var/lib/dpkg/status", status.as_str()),
            ];
            assert_eq!(holds(&files).join(" "), expected, "{jail}");
        }
    }
}
