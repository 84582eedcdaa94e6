//! Finds privileges in container definitions: compose files below the usual directories, and Podman's quadlets.
//! `docker` checks the running containers.

use super::lines_of_files::{files, is_loopback, note, read};
use crate::collectors::daemons::lines::at_line;
use crate::collectors::daemons::nested::{YamlValue, read_yaml};
use crate::gather::{Gather, lossy};
use assay_model::FactPlace;
use std::collections::BTreeMap;

const DIRS: [&str; 4] = ["/opt", "/srv", "/root", "/etc/docker"];
const NAMES: [&str; 8] = [
    "compose.yaml",
    "compose.yml",
    "docker-compose.yaml",
    "docker-compose.yml",
    "compose.override.yaml",
    "compose.override.yml",
    "docker-compose.override.yaml",
    "docker-compose.override.yml",
];
/// Settings of images with which a database asks for no password.
const WITHOUT_PASSWORD: [&str; 5] = [
    "postgres_host_auth_method=trust",
    "mysql_allow_empty_password=",
    "mariadb_allow_empty_root_password=",
    "mariadb_allow_empty_password=",
    "allow_empty_password=yes",
];
const UNITS: &str = "/etc/systemd/system";
const QUADLETS: &str = "/etc/containers/systemd";
/// Maximum number of directories that are read.
const MOST: usize = 200;

/// Privileges of one container. Each field is the number of the line that grants the privilege.
#[derive(Default)]
struct Given {
    privileged: Option<usize>,
    socket: Option<usize>,
    whole_machine: Option<usize>,
    /// All capabilities, without `privileged`.
    capabilities: Option<usize>,
    /// A database that asks for no password.
    database: Option<usize>,
    /// Ports that are published, and those of them that only this machine reaches.
    published: usize,
    local: usize,
}

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut number = 0;
    let mut tops: Vec<String> = DIRS.map(str::to_owned).to_vec();
    let homes = g.list("container_file", "/home");
    tops.extend(
        homes
            .iter()
            .take(MOST)
            .map(|name| format!("/home/{}", lossy(name))),
    );
    let mut dirs = tops.clone();
    for dir in &tops {
        let mut names: Vec<String> = g
            .list("container_file", dir)
            .iter()
            .map(|name| lossy(name))
            .collect();
        names.sort();
        names.retain(|name| !name.contains('.'));
        dirs.extend(names.iter().take(MOST).map(|name| format!("{dir}/{name}")));
    }
    for dir in dirs {
        for name in NAMES {
            let path = format!("{dir}/{name}");
            let Ok(text) = g.host.read_text(std::path::Path::new(&path)) else {
                continue;
            };
            for given in of_compose(&read_yaml(&text)).values() {
                number += 1;
                note_given(g, number, &path, given);
            }
        }
    }
    for path in files(g, "container_file", UNITS, ".service") {
        for line in read(g, "container_file", &path) {
            if let Some(given) = of_command(&line.text, line.place.line()) {
                number += 1;
                note_given(g, number, &path, &given);
            }
        }
    }
    for path in files(g, "container_file", QUADLETS, ".container") {
        number += 1;
        let mut given = Given::default();
        for line in read(g, "container_file", &path) {
            let at = line.place.line();
            let text = line.text.trim();
            if let Some(volume) = text.strip_prefix("Volume=") {
                given.take_volume(volume, at);
            } else if text.starts_with("PodmanArgs=") && text.contains("--privileged") {
                given.privileged = at;
            } else if let Some(all) = text.strip_prefix("AddCapability=") {
                let mut all = all.split_whitespace();
                if all.any(|one| one.eq_ignore_ascii_case("all")) {
                    given.capabilities = at;
                }
            }
        }
        note_given(g, number, &path, &given);
    }
}

fn note_given(g: &mut Gather<'_>, number: usize, path: &str, given: &Given) {
    let database = given.database.filter(|_| given.published > given.local);
    let all = [
        ("capabilities", given.capabilities),
        ("database_open", database),
        ("privileged", given.privileged),
        ("socket", given.socket),
        ("whole_machine", given.whole_machine),
    ];
    for (name, line) in all {
        let place = line.map_or(FactPlace::from(path), |line| at_line(path, line));
        note(
            g,
            "container_file",
            &number.to_string(),
            &place,
            &[(name, line.is_some().into())],
        );
    }
}

/// Returns the privileges of a container that a systemd unit starts with `docker run` or `podman run`.
fn of_command(text: &str, line: Option<usize>) -> Option<Given> {
    let command = text.trim().strip_prefix("ExecStart=")?;
    let words: Vec<&str> = command.split_whitespace().collect();
    let starts = words.windows(2).any(|pair| {
        let program = pair[0].rsplit('/').next().unwrap_or_default();
        matches!(program, "docker" | "podman") && matches!(pair[1], "run" | "create")
    });
    let mut given = Given::default();
    for (at, word) in words.iter().enumerate().filter(|_| starts) {
        match *word {
            "--privileged" | "--privileged=true" => given.privileged = line,
            "--cap-add=ALL" | "--cap-add=all" => given.capabilities = line,
            "--cap-add"
                if words
                    .get(at + 1)
                    .is_some_and(|one| one.eq_ignore_ascii_case("all")) =>
            {
                given.capabilities = line;
            }
            "-v" | "--volume" => given.take_volume(words.get(at + 1).unwrap_or(&""), line),
            _ => {
                if let Some(volume) = word.strip_prefix("--volume=") {
                    given.take_volume(volume, line);
                }
            }
        }
    }
    starts.then_some(given)
}

/// Returns the privileges of each service in a compose file, by service name.
fn of_compose(values: &[YamlValue]) -> BTreeMap<&str, Given> {
    let mut all: BTreeMap<&str, Given> = BTreeMap::new();
    for one in values {
        // A block that is marked with an anchor holds for services that merge it.
        if let Some(service) = one
            .path
            .strip_prefix("services.")
            .and_then(|path| path.strip_suffix(".<<"))
        {
            let marked = format!("&{}", one.value.trim_start_matches('*'));
            let block = values.iter().find(|other| other.value == marked);
            let prefix = block.map(|block| format!("{}.privileged", block.path));
            let said = values
                .iter()
                .find(|other| Some(&other.path) == prefix.as_ref() && other.value == "true");
            let own = format!("services.{service}.privileged");
            let replaced = values.iter().any(|other| other.path == own);
            if let Some(said) = said.filter(|_| !replaced) {
                all.entry(service).or_default().privileged = Some(said.line);
            }
            continue;
        }
        let mut parts = one.path.splitn(3, '.');
        let (Some("services"), Some(service), Some(setting)) =
            (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let given = all.entry(service).or_default();
        match setting {
            "privileged" if one.value == "true" => given.privileged = Some(one.line),
            "cap_add" if one.value == "all" => given.capabilities = Some(one.line),
            "ports" => {
                given.published += 1;
                given.local += usize::from(is_loopback(&one.value));
            }
            "ports.published" => given.published += 1,
            "ports.host_ip" => given.local += usize::from(is_loopback(&one.value)),
            "volumes" => given.take_volume(&one.value, Some(one.line)),
            "volumes.source" => given.take_volume(&format!("{0}:{0}", one.value), Some(one.line)),
            _ => {}
        }
        let assignment = match setting.strip_prefix("environment") {
            Some("") => one.value.clone(),
            Some(name) => format!("{}={}", name.trim_start_matches('.'), one.value),
            None => continue,
        };
        let open = WITHOUT_PASSWORD
            .iter()
            .any(|start| assignment.starts_with(start));
        let off = ["=no", "=0", "=false", "="]
            .iter()
            .any(|end| assignment.ends_with(end));
        if open && !off {
            given.database = Some(one.line);
        }
    }
    all
}

impl Given {
    fn take_volume(&mut self, volume: &str, line: Option<usize>) {
        let mut parts = volume.trim_matches(['"', '\'']).split(':');
        let (source, _, options) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
        let of_machine = source.starts_with(['/', '$', '%']);
        let directory = ["/run", "/var/run"].contains(&source.trim_end_matches('/'));
        let socket = source.ends_with("/docker.sock") || source.ends_with("/podman.sock");
        if of_machine && (socket || directory) {
            self.socket = line;
        }
        let read_only = options.is_some_and(|options| options.split(',').any(|one| one == "ro"));
        if source == "/" && !read_only {
            self.whole_machine = line;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn commands_of_units() {
        let of = |text: &str| {
            of_command(text, Some(1))
                .map(|given| (given.privileged.is_some(), given.socket.is_some()))
        };
        assert_eq!(
            of("ExecStart=/usr/bin/docker run --privileged x"),
            Some((true, false))
        );
        assert_eq!(
            of("ExecStart=/usr/bin/podman run -v /run/docker.sock:/s x"),
            Some((false, true))
        );
        assert_eq!(
            of("ExecStart=/usr/bin/docker run --cap-drop ALL x"),
            Some((false, false))
        );
        assert_eq!(of("ExecStart=/usr/bin/app run --privileged"), None);
    }

    #[test]
    fn merged_blocks_and_files_beside_the_definition() {
        let of = |text: &str| {
            let values = read_yaml(text);
            let all = of_compose(&values);
            let given = &all["a"];
            (given.privileged, given.socket)
        };
        let base = "x-base: &base\n  privileged: true\nservices:\n  a:\n    <<: *base\n";
        assert_eq!(of(base), (Some(2), None));
        let own = format!("{base}    privileged: false\n");
        assert_eq!(of(&own), (None, None));
        let beside = "services:\n  a:\n    volumes:\n      - ./docker.sock:/x\n";
        assert_eq!(of(beside), (None, None));
    }

    #[test]
    fn what_containers_are_given() {
        let compose = "services:\n  a:\n    image: x\n    privileged: true\n  b:\n    privileged: false\n    volumes:\n\
                       \x20     - /var/run/docker.sock:/var/run/docker.sock:ro\n\
                       \x20     - /:/host:ro\n  c:\n    volumes:\n      - data:/data\n";
        let host = Recorded::new().file("/opt/app/compose.yml", compose).file(
            "/etc/containers/systemd/x.container",
            "[Container]\nImage=x\nVolume=/:/host\n",
        );
        let mut g = Gather::new(&host);
        collect(&mut g);
        let holds: Vec<&str> = g
            .facts
            .map
            .keys()
            .map(String::as_str)
            .filter(|key| g.facts.get(key) == Some(&true.into()))
            .collect();
        assert_eq!(
            holds,
            [
                "container_file.1.privileged",
                "container_file.2.socket",
                "container_file.4.whole_machine"
            ]
        );
        assert_eq!(
            g.facts.map["container_file.1.privileged"].place.line(),
            Some(4)
        );
    }
}
