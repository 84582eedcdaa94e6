//! Collects whether the Docker daemon accepts commands from the network, and which running containers have root rights
//! on the host. Facts contain the short id of a container, but no names of containers and images.

use super::lines_of_files::{is_loopback, note, read};
use crate::collectors::daemons::lines::at_line;
use crate::gather::{Gather, lossy};
use assay_model::{FactKind, FactPlace};
use serde_json::Value;
use std::path::Path;

const DAEMON: &str = "/etc/docker/daemon.json";
const CONTAINERS: &str = "/var/lib/docker/containers";
const DROP_INS: &str = "/etc/systemd/system/docker.service.d";
const UNIT: &str = "/etc/systemd/system/docker.service";
/// File with DOCKER_OPTS, which the units of Debian and Ubuntu pass to the daemon.
const DEFAULTS: &str = "/etc/default/docker";
/// Maximum number of containers that are examined.
const MOST: usize = 500;

pub(super) fn collect(g: &mut Gather<'_>) {
    note_daemon(g);
    note_containers(g);
}

/// Notes whether any client on the network can get root rights: the daemon listens on a TCP address and does not
/// require client certificates.
fn note_daemon(g: &mut Gather<'_>) {
    if let Some(text) = g.read("docker.daemon", DAEMON) {
        let Ok(said) = serde_json::from_str::<Value>(&text) else {
            g.facts
                .unknown("docker.daemon", "not JSON", FactKind::Configured, DAEMON);
            return;
        };
        let hosts = said["hosts"].as_array().cloned().unwrap_or_default();
        let open = hosts.iter().filter_map(Value::as_str).any(is_open) && said["tlsverify"] != true;
        let at = text.lines().position(|line| line.contains("\"hosts\""));
        let place = at.map_or(FactPlace::from(DAEMON), |at| at_line(DAEMON, at + 1));
        note(g, "docker.daemon", "file", &place, &[("open", open.into())]);
        note_settings(g, &text, &said);
        note_mirrors(g, &text, &said);
    }
    let mut files = vec![UNIT.to_owned(), DEFAULTS.to_owned()];
    files.extend(super::lines_of_files::files(
        g,
        "docker.daemon",
        DROP_INS,
        ".conf",
    ));
    for (number, path) in files.into_iter().enumerate() {
        let lines = read(g, "docker.daemon", &path);
        let Some(line) = lines.iter().rfind(|line| {
            let text = line.text.trim();
            (text.starts_with("ExecStart=") && text.contains("dockerd"))
                || text.starts_with("DOCKER_OPTS=")
        }) else {
            continue;
        };
        let separates = |letter: char| letter.is_whitespace() || "\"'".contains(letter);
        let words: Vec<&str> = line.text.split(separates).collect();
        let open = words
            .iter()
            .any(|word| is_open(word.trim_start_matches("--host=").trim_start_matches("-H")))
            && !words.iter().any(|word| word.starts_with("--tlsverify"));
        let properties = [("open", open.into())];
        note(
            g,
            "docker.daemon",
            &format!("drop-in-{}", number + 1),
            &line.place,
            &properties,
        );
    }
}

/// Notes settings of daemon.json that disable a protection of all containers or images.
fn note_settings(g: &mut Gather<'_>, text: &str, said: &Value) {
    let registries = said["insecure-registries"].as_array();
    let insecure = registries
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .any(|registry| !is_loopback(registry));
    let unlimited = said["log-driver"] == "json-file" && said["log-opts"]["max-size"].is_null();
    for (key, name, holds) in [
        ("log-driver", "logs_unlimited", unlimited),
        ("insecure-registries", "insecure_registry", insecure),
        ("iptables", "iptables_off", said["iptables"] == false),
        (
            "storage-driver",
            "copies_layers",
            said["storage-driver"] == "vfs",
        ),
        (
            "seccomp-profile",
            "seccomp_off",
            said["seccomp-profile"] == "unconfined",
        ),
    ] {
        if said[key].is_null() {
            continue;
        }
        let line = text
            .lines()
            .position(|line| line.contains(&format!("\"{key}\"")));
        let place = at_line(DAEMON, line.unwrap_or(0) + 1);
        note(g, "docker.daemon", "file", &place, &[(name, holds.into())]);
    }
}

/// Notes mirrors from which images come without TLS.
fn note_mirrors(g: &mut Gather<'_>, text: &str, said: &Value) {
    let Some(mirrors) = said["registry-mirrors"].as_array() else {
        return;
    };
    let mut plain = mirrors
        .iter()
        .filter_map(Value::as_str)
        .filter_map(|mirror| {
            let mirror = mirror.trim();
            mirror.strip_prefix("http://")
        });
    let insecure = plain.any(|address| !is_loopback(address));
    let line = text
        .lines()
        .position(|line| line.contains("\"registry-mirrors\""));
    let place = at_line(DAEMON, line.unwrap_or(0) + 1);
    let properties = [("insecure_registry", insecure.into())];
    note(g, "docker.daemon", "mirrors", &place, &properties);
}

fn is_open(host: &str) -> bool {
    let address = host.trim_start_matches('=').strip_prefix("tcp://");
    address.is_some_and(|address| !is_loopback(address))
}

fn note_containers(g: &mut Gather<'_>) {
    let names = g.list("docker.container", CONTAINERS);
    for name in names.iter().take(MOST).map(|name| lossy(name)) {
        let read = |file: &str| -> Option<Value> {
            let path = format!("{CONTAINERS}/{name}/{file}");
            serde_json::from_str(&g.host.read_text(Path::new(&path)).ok()?).ok()
        };
        let (Some(host), Some(state)) = (read("hostconfig.json"), read("config.v2.json")) else {
            continue;
        };
        if state["State"]["Running"] != true {
            continue;
        }
        let sources = state["MountPoints"]
            .as_object()
            .into_iter()
            .flat_map(|all| all.values());
        let socket = sources.clone().any(|mount| {
            mount["Source"]
                .as_str()
                .is_some_and(|path| path.ends_with("/docker.sock"))
        });
        let root = sources
            .into_iter()
            .any(|mount| mount["Source"] == "/" && mount["RW"] == true);
        let properties = [
            ("privileged", (host["Privileged"] == true).into()),
            ("socket", socket.into()),
            ("whole_machine", root.into()),
        ];
        let short: String = name.chars().take(12).collect();
        let place = FactPlace::from(format!("{CONTAINERS}/{name}/hostconfig.json"));
        note(g, "docker.container", &short, &place, &properties);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn settings_of_images_and_logs() {
        for (text, fact, expected) in [
            (
                r#"{"registry-mirrors": ["http://mirror.example:5000"]}"#,
                "mirrors.insecure_registry",
                Some(true),
            ),
            (
                r#"{"registry-mirrors": ["https://mirror.example", "http://127.0.0.1"]}"#,
                "mirrors.insecure_registry",
                Some(false),
            ),
            (
                r#"{"log-driver": "json-file"}"#,
                "file.logs_unlimited",
                Some(true),
            ),
            (
                r#"{"log-driver": "json-file", "log-opts": {"max-size": "10m"}}"#,
                "file.logs_unlimited",
                Some(false),
            ),
            (
                r#"{"log-driver": "local"}"#,
                "file.logs_unlimited",
                Some(false),
            ),
            (r#"{"debug": false}"#, "file.logs_unlimited", None),
        ] {
            let host = Recorded::new().file(DAEMON, text);
            let mut g = Gather::new(&host);
            collect(&mut g);
            let found = g.facts.get(&format!("docker.daemon.{fact}"));
            assert_eq!(found, expected.map(Value::Bool).as_ref(), "{text}");
        }
    }

    #[test]
    fn addresses_of_the_daemon() {
        for (text, open) in [
            (
                r#"{"hosts": ["unix:///run/docker.sock", "tcp://0.0.0.0:2375"]}"#,
                true,
            ),
            (r#"{"hosts": ["tcp://127.0.0.1:2375"]}"#, false),
            (
                r#"{"hosts": ["tcp://0.0.0.0:2376"], "tlsverify": true}"#,
                false,
            ),
            (r#"{"log-driver": "journald"}"#, false),
        ] {
            let host = Recorded::new().file(DAEMON, text);
            let mut g = Gather::new(&host);
            collect(&mut g);
            assert_eq!(
                g.facts.get("docker.daemon.file.open"),
                Some(&open.into()),
                "{text}"
            );
        }
    }
}
