//! Monitoring that admits strangers or warns nobody: arguments of NRPE, accounts of Icinga, anonymous editors of
//! Grafana, values that collectd takes from everybody, outputs of Telegraf, and alerts of Prometheus that reach nobody.

use super::super::lines_of_files::{Line, files, is_loopback, read};
use super::data_stores::read_sections;
use super::{Lines, bare, words};
use crate::collectors::daemons::lines::at_line;
use crate::collectors::daemons::nested::read_yaml;
use crate::gather::Gather;
use assay_model::FactPlace;

const NRPE: [&str; 2] = ["/etc/nagios/nrpe.cfg", "/etc/nrpe.cfg"];
const ICINGA: &str = "/etc/icinga2/conf.d";
/// Passwords of examples for the API of Icinga.
const PUBLISHED: [&str; 6] = [
    "icinga", "icinga2", "password", "secret", "changeme", "admin",
];
const GRAFANA: &str = "/etc/grafana/grafana.ini";
/// Main files of collectd, each with the directory that its package includes.
const COLLECTD: [(&str, &str); 2] = [
    (
        "/etc/collectd/collectd.conf",
        "/etc/collectd/collectd.conf.d",
    ),
    ("/etc/collectd.conf", "/etc/collectd.d"),
];
const TELEGRAF: &str = "/etc/telegraf/telegraf.conf";
const TELEGRAF_MORE: &str = "/etc/telegraf/telegraf.d";
const PROMETHEUS: &str = "/etc/prometheus/prometheus.yml";
const ALERTMANAGER: [&str; 2] = [
    "/etc/prometheus/alertmanager.yml",
    "/etc/alertmanager/alertmanager.yml",
];

pub(super) fn collect(g: &mut Gather<'_>) {
    note_nrpe(g);
    note_icinga(g);
    note_grafana(g);
    note_collectd(g);
    note_telegraf(g);
    note_alerts(g);
    note_alertmanager(g);
}

/// Notes whether NRPE puts arguments of its clients into commands.
fn note_nrpe(g: &mut Gather<'_>) {
    let mut found = Lines::of("nrpe", "takes_arguments");
    for main in NRPE {
        let mut lines: Vec<Line> = Vec::new();
        for line in read(g, "nrpe", main) {
            let said = bare(&line).and_then(|text| text.split_once('='));
            let said = said.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
            lines.push(line);
            match said {
                Some((name, path)) if ["include", "include_file"].contains(&name.as_str()) => {
                    lines.extend(read(g, "nrpe", &path));
                }
                Some((name, dir)) if name == "include_dir" => {
                    for path in files(g, "nrpe", dir.trim_end_matches('/'), ".cfg") {
                        lines.extend(read(g, "nrpe", &path));
                    }
                }
                _ => {}
            }
        }
        let used = lines.iter().any(|line| {
            let text = bare(line).unwrap_or_default();
            text.starts_with("command[") && text.contains("$ARG")
        });
        let switch = lines.iter().rfind(|line| {
            words(line)
                .first()
                .is_some_and(|first| first == "dont_blame_nrpe")
        });
        if let Some(line) = switch {
            let on = words(line).get(1).is_some_and(|value| value == "1");
            found.add(g, on && used, &line.place);
        }
    }
}

/// Notes accounts for the API of Icinga 2 whose password is their name or an example.
fn note_icinga(g: &mut Gather<'_>) {
    let mut found = Lines::of("icinga_user", "published_password");
    for path in files(g, "icinga_user", ICINGA, ".conf") {
        let mut name: Option<String> = None;
        for line in read(g, "icinga_user", &path) {
            let text = bare(&line).unwrap_or_default();
            if text.starts_with("//") {
                continue;
            }
            let words = words(&line);
            match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
                ["object", "apiuser", user, ..] => name = Some(user.to_owned()),
                ["object" | "template", ..] => name = None,
                ["password", password, ..] => {
                    if let Some(name) = &name {
                        let known = password == name || PUBLISHED.contains(&password);
                        found.add(g, known, &line.place);
                    }
                }
                _ => {}
            }
        }
    }
}

/// Notes whether Grafana lets everybody in as an editor or an administrator (Grafana, auth.anonymous).
fn note_grafana(g: &mut Gather<'_>) {
    let said = read_sections(g, "grafana", GRAFANA);
    let last = |name: &str| {
        said.iter()
            .rfind(|one| one.section == "auth.anonymous" && one.name == name)
    };
    if let Some(role) = last("org_role") {
        let on = last("enabled").is_some_and(|one| one.value == "true");
        let changes = ["admin", "editor"].contains(&role.value.as_str());
        Lines::of("grafana", "anonymous_edits").add(g, on && changes, &role.place);
    }
}

/// Notes addresses on which collectd takes unsigned values of other machines (collectd.conf(5), Plugin network).
fn note_collectd(g: &mut Gather<'_>) {
    let mut found = Lines::of("collectd", "unsigned");
    for (main, more) in COLLECTD {
        let mut all = vec![main.to_owned()];
        all.extend(files(g, "collectd", more, ".conf"));
        let mut lines = Vec::new();
        for path in all {
            lines.extend(read(g, "collectd", &path));
        }
        let loads = lines.iter().any(|line| {
            let words = words(line);
            let load = ["loadplugin", "<loadplugin"];
            words.len() > 1
                && load.contains(&words[0].as_str())
                && words[1].trim_matches(['"', '>']) == "network"
        });
        let (mut inside, mut section) = (false, None);
        for line in lines.iter().filter(|_| loads) {
            let words = words(line);
            let word = |at: usize| {
                words
                    .get(at)
                    .map_or("", |word| word.trim_matches(['"', '>']))
            };
            match word(0) {
                "<plugin" => inside = word(1) == "network",
                "</plugin" => inside = false,
                "listen" if inside => found.add(g, !is_loopback(word(1)), &line.place),
                "<listen" if inside => section = Some((is_loopback(word(1)), line.place.clone())),
                "securitylevel" => {
                    if let Some((guarded, _)) = &mut section {
                        *guarded |= ["sign", "encrypt"].contains(&word(1));
                    }
                }
                "</listen" => {
                    if let Some((guarded, place)) = section.take() {
                        found.add(g, !guarded, &place);
                    }
                }
                _ => {}
            }
        }
    }
}

/// Notes outputs of Telegraf that do not verify the server.
fn note_telegraf(g: &mut Gather<'_>) {
    let mut all = vec![TELEGRAF.to_owned()];
    all.extend(files(g, "telegraf", TELEGRAF_MORE, ".conf"));
    let mut found = Lines::of("telegraf", "unverified");
    for path in all {
        // The line that switches the check off, and whether an address of the section lies beyond this machine.
        let mut said: Option<(bool, FactPlace)> = None;
        let (mut output, mut beyond) = (false, false);
        let mut lines = read(g, "telegraf", &path);
        let end = Line {
            text: "[end]".to_owned(),
            place: at_line(&path, 0),
        };
        lines.push(end);
        for line in &lines {
            let Some(text) = bare(line) else { continue };
            if let Some(head) = text.strip_prefix('[') {
                if let Some((off, place)) = said.take() {
                    found.add(g, off && beyond, &place);
                }
                output = head.trim_start_matches('[').starts_with("outputs.");
                beyond = false;
            } else if output && let Some((name, value)) = text.split_once('=') {
                let value = value.split('#').next().unwrap_or_default().trim();
                if name.trim() == "insecure_skip_verify" {
                    said = Some((value == "true", line.place.clone()));
                }
                let mut addresses = value.split('"').filter_map(|part| part.split_once("://"));
                beyond |= addresses.any(|(_, address)| !is_loopback(address));
            }
        }
    }
}

/// Notes rules with alerts of a Prometheus that has no Alertmanager to send them to.
fn note_alerts(g: &mut Gather<'_>) {
    let text = g.read("prometheus_alert", PROMETHEUS).unwrap_or_default();
    let all = read_yaml(&text);
    let patterns: Vec<&str> = all
        .iter()
        .filter(|one| one.path == "rule_files")
        .map(|one| one.value.as_str())
        .collect();
    let Some(first) = all.iter().find(|one| one.path == "rule_files") else {
        return;
    };
    let mut rules = Vec::new();
    for pattern in patterns {
        let path = match pattern.starts_with('/') {
            true => pattern.to_owned(),
            false => format!("/etc/prometheus/{pattern}"),
        };
        let (dir, name) = path.rsplit_once('/').unwrap_or_default();
        match name.split_once('*') {
            Some((start, end)) => {
                let mut names = files(g, "prometheus_alert", dir, end);
                names.retain(|one| one.starts_with(&format!("{dir}/{start}")));
                rules.extend(names);
            }
            None => rules.push(path),
        }
    }
    let mut alerts = false;
    for path in rules {
        let lines = read(g, "prometheus_alert", &path);
        alerts |= lines.iter().filter_map(bare).any(|text| {
            let text = text.trim_start_matches(['-', ' ']);
            text.starts_with("alert:")
        });
    }
    let reaches = all.iter().any(|one| {
        let of_manager = one.path.starts_with("alerting.alertmanagers.");
        let address = one.path.ends_with("_configs.targets") && !one.value.starts_with(['[', '#']);
        of_manager && (address || one.path.contains("_sd_configs"))
    });
    if alerts {
        let place = at_line(PROMETHEUS, first.line);
        Lines::of("prometheus_alert", "reaches_nobody").add(g, !reaches, &place);
    }
}

/// Notes an Alertmanager none of whose receivers sends anything.
fn note_alertmanager(g: &mut Gather<'_>) {
    let mut found = Lines::of("alertmanager", "reaches_nobody");
    for path in ALERTMANAGER {
        let text = g.read("alertmanager", path).unwrap_or_default();
        let all = read_yaml(&text);
        let sends = all.iter().any(|one| {
            let mut names = one.path.split('.');
            names.next() == Some("receivers")
                && names.next().is_some_and(|name| name.ends_with("_configs"))
        });
        if let Some(route) = all.iter().find(|one| one.path == "route.receiver") {
            found.add(g, !sends, &at_line(path, route.line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::holds;
    use super::*;

    #[test]
    fn monitors_and_their_near_misses() {
        let icinga = "/etc/icinga2/conf.d/api-users.conf";
        let collectd = COLLECTD[0].0;
        let command = "command[a]=/usr/lib/nagios/plugins/check_disk $ARG1$\n";
        let (nrpe, nrpe_off) = (
            format!("dont_blame_nrpe=1\n{command}"),
            format!("dont_blame_nrpe=1\n{command}dont_blame_nrpe=0\n"),
        );
        let telegraf = |address: &str| {
            format!(
                "[[outputs.influxdb_v2]]\n  urls = [\"https://{address}:8086\"]\n  \
                 insecure_skip_verify = true\n"
            )
        };
        let (far, near) = (telegraf("influx.example"), telegraf("127.0.0.1"));
        for (path, text, expected) in [
            (NRPE[0], nrpe.as_str(), "nrpe.1.takes_arguments 1"),
            (NRPE[0], nrpe_off.as_str(), ""),
            (
                NRPE[0],
                "dont_blame_nrpe=1\ncommand[a]=/bin/check -p /\n",
                "",
            ),
            (
                icinga,
                "object ApiUser \"root\" {\n  password = \"icinga\"\n}\n",
                "icinga_user.1.published_password 2",
            ),
            (
                icinga,
                "object ApiUser \"root\" {\n  // password = \"icinga\"\n  password = \"8b1f0a2c\"\n}\n",
                "",
            ),
            (
                GRAFANA,
                "[auth.anonymous]\nenabled = true\norg_role = Admin\n",
                "grafana.1.anonymous_edits 3",
            ),
            (
                GRAFANA,
                "[auth.anonymous]\nenabled = true\norg_role = Viewer\n",
                "",
            ),
            (
                collectd,
                "LoadPlugin network\n<Plugin \"network\">\n Listen \"0.0.0.0\"\n</Plugin>\n",
                "collectd.1.unsigned 3",
            ),
            (
                collectd,
                "LoadPlugin network\n<Plugin network>\n <Listen \"::\" \"25826\">\n  SecurityLevel Sign\n \
                 </Listen>\n</Plugin>\n",
                "",
            ),
            (
                collectd,
                "<Plugin network>\n Listen \"0.0.0.0\"\n</Plugin>\n",
                "",
            ),
            (TELEGRAF, far.as_str(), "telegraf.1.unverified 3"),
            (TELEGRAF, near.as_str(), ""),
            (
                ALERTMANAGER[0],
                "route:\n  receiver: a\nreceivers:\n- name: a\n",
                "alertmanager.1.reaches_nobody 2",
            ),
            (
                ALERTMANAGER[0],
                "route:\n  receiver: a\nreceivers:\n- name: a\n  email_configs:\n  - to: b@example.org\n",
                "",
            ),
        ] {
            assert_eq!(holds(&[(path, text)]).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn alerts_need_a_receiver() {
        let rules = (
            "/etc/prometheus/rules/a.yml",
            "groups:\n- name: a\n  rules:\n  - alert: Down\n    expr: up == 0\n",
        );
        let main = |targets: &str| {
            format!(
                "alerting:\n  alertmanagers:\n  - static_configs:\n    - targets: {targets}\nrule_files:\n  - \
                 rules/*.yml\n"
            )
        };
        for (targets, expected) in [
            ("[]", "prometheus_alert.1.reaches_nobody 6"),
            ("['localhost:9093']", ""),
        ] {
            let text = main(targets);
            assert_eq!(holds(&[rules, (PROMETHEUS, &text)]).join(" "), expected);
            assert!(holds(&[(PROMETHEUS, &text)]).is_empty());
        }
    }
}
