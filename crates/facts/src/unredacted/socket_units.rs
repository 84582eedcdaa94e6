//! Socket units of systemd that open a service to the network: libvirt's TCP sockets, Docker's API, and other services
//! of root that a package offers only on a local socket; sockets of telnet and the r-commands; and sockets that start a
//! shell (systemd.socket(5)). Facts contain no address.

use super::lines_of_files::{Line, exists, files, is_loopback, note, read};
use crate::gather::{Gather, lossy};
use assay_model::{FactKind, FactPlace};
use serde_json::Value;
use std::path::Path;

const ETC: &str = "/etc/systemd/system";
/// Directories of the units of packages, and of those that an administrator wrote.
const DIRS: [&str; 4] = [
    ETC,
    "/run/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];
const WANTS: &str = "sockets.target.wants";
const DOCKER: &str = "docker.socket";
const DOCKER_SETTINGS: &str = "/etc/docker/daemon.json";
/// libvirt's sockets for TCP without TLS, each with the configuration of its daemon.
const LIBVIRT: [(&str, &str); 2] = [
    ("libvirtd-tcp.socket", "/etc/libvirt/libvirtd.conf"),
    ("virtproxyd-tcp.socket", "/etc/libvirt/virtproxyd.conf"),
];
/// Sockets whose clients become root, and which packages offer only locally.
const OF_ROOT: [&str; 13] = [
    "podman.socket",
    "containerd.socket",
    "buildkit.socket",
    "buildkitd.socket",
    "crio.socket",
    "dbus.socket",
    "snapd.socket",
    "incus.socket",
    "lxd.socket",
    "libvirtd.socket",
    "virtqemud.socket",
    "virtproxyd.socket",
    "systemd-initctl.socket",
];
/// Sockets of services that read passwords in clear text, or none.
const CLEARTEXT: [&str; 4] = [
    "telnet.socket",
    "rsh.socket",
    "rlogin.socket",
    "rexec.socket",
];
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "ash", "zsh", "ksh"];
/// Maximum number of units that are read.
const MOST: usize = 1000;

pub(super) fn collect(g: &mut Gather<'_>) {
    note_libvirt(g);
    note_docker(g);
    note_cleartext(g);
    note_of_root(g);
}

/// A unit with its drop-ins.
struct Unit {
    /// Lines that are no comments, in the order in which they apply.
    lines: Vec<Line>,
    /// Whether a package offers the unit, and only on local sockets.
    local_in_package: bool,
}

impl Unit {
    /// Reads a unit: its first file in the order of the directories, and its drop-ins.
    fn read(g: &mut Gather<'_>, name: &str) -> Self {
        let own = DIRS.iter().map(|dir| format!("{dir}/{name}"));
        let own: Vec<String> = own.filter(|path| exists(g, path)).collect();
        let mut lines = Vec::new();
        if let Some(path) = own.first() {
            lines.extend(read(g, "socket_unit", path));
        }
        for dir in DIRS.iter().rev() {
            for path in files(g, "socket_unit", &format!("{dir}/{name}.d"), ".conf") {
                lines.extend(read(g, "socket_unit", &path));
            }
        }
        let of_package = own.iter().find(|path| !path.starts_with("/etc/"));
        let packaged = of_package.map(|path| read(g, "socket_unit", path));
        let local_in_package = packaged.is_some_and(|lines| {
            let streams = lines
                .iter()
                .filter_map(|line| value_of(line, "ListenStream"));
            let streams: Vec<&str> = streams.collect();
            !streams.is_empty()
                && streams
                    .iter()
                    .all(|stream| stream.starts_with(['/', '@', '%']))
        });
        Self {
            lines,
            local_in_package,
        }
    }

    fn last(&self, key: &str) -> Option<&str> {
        self.lines.iter().rev().find_map(|line| value_of(line, key))
    }

    /// Returns the addresses of the network on which the unit listens, each with its line.
    fn streams(&self) -> Vec<(&str, &FactPlace)> {
        let mut found: Vec<(&str, &FactPlace)> = Vec::new();
        for line in &self.lines {
            match value_of(line, "ListenStream") {
                Some("") => found.clear(),
                Some(stream) if is_of_network(stream) => found.push((stream, &line.place)),
                _ => {}
            }
        }
        found
    }

    /// Returns the lines of the addresses that other machines reach.
    fn open(&self) -> Vec<FactPlace> {
        let denies = self
            .lines
            .iter()
            .any(|line| value_of(line, "IPAddressDeny").is_some_and(|who| who.contains("any")));
        if denies || self.last("BindToDevice") == Some("lo") {
            return Vec::new();
        }
        let streams = self.streams().into_iter();
        let open = streams.filter(|(stream, _)| !is_loopback(stream));
        open.map(|(_, place)| place.clone()).collect()
    }
}

/// Returns the value of a line with this key.
fn value_of<'a>(line: &'a Line, key: &str) -> Option<&'a str> {
    let (name, value) = line.text.split_once('=')?;
    (name.trim() == key).then(|| value.trim())
}

/// Whether a `ListenStream` is a port, or an address with a port.
fn is_of_network(stream: &str) -> bool {
    let port = stream.rsplit(':').next().unwrap_or_default();
    let number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    number && !stream.starts_with(['/', '@', '%']) && !stream.starts_with("vsock:")
}

/// Whether a unit starts with the machine; a masked unit never starts.
fn is_enabled(g: &mut Gather<'_>, name: &str) -> bool {
    !is_masked(g, name)
        && DIRS.iter().any(|dir| {
            let names = g.host.list(Path::new(&format!("{dir}/{WANTS}")));
            names.is_ok_and(|names| names.iter().any(|one| lossy(one) == name))
        })
}

fn is_masked(g: &Gather<'_>, name: &str) -> bool {
    let target = g.host.link(Path::new(&format!("{ETC}/{name}")));
    target.is_ok_and(|target| target == Path::new("/dev/null"))
}

/// Notes libvirt's TCP sockets beside the authentication that the daemon asks for. systemd listens in place of libvirt,
/// which then ignores `listen_tcp` and `listen_addr`.
fn note_libvirt(g: &mut Gather<'_>) {
    for (socket, path) in LIBVIRT {
        if !is_enabled(g, socket) {
            continue;
        }
        let lines = read(g, "libvirt_socket", path);
        let last = |key: &str| {
            lines.iter().rev().find_map(|line| {
                let value = value_of(line, key)?.split('#').next()?.trim();
                Some((value.trim_matches(['"', '\'']).to_owned(), &line.place))
            })
        };
        let Some((auth, place)) = last("auth_tcp") else {
            continue;
        };
        // Without socket units, the setting gives the same finding.
        if last("listen_tcp").is_some_and(|(value, _)| value == "1")
            && last("listen_addr").is_none()
        {
            continue;
        }
        let unit = Unit::read(g, socket);
        let name = socket.trim_end_matches("-tcp.socket");
        let mut properties: Vec<(&str, Value)> =
            vec![("auth_tcp", auth.into()), ("listen_tcp", "1".into())];
        // The unit of the package listens on all addresses.
        if !unit.streams().is_empty() && unit.open().is_empty() {
            properties.push(("listen_addr", "127.0.0.1".into()));
        }
        note(g, "libvirt_socket", name, place, &properties);
    }
}

/// Notes addresses of the socket that systemd hands to Docker, unless Docker requires certificates of clients.
fn note_docker(g: &mut Gather<'_>) {
    let unit = Unit::read(g, DOCKER);
    let said = g.host.read_text(Path::new(DOCKER_SETTINGS)).ok();
    let said = said.and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let verifies = said.is_some_and(|said| said["tlsverify"] == true);
    if is_masked(g, DOCKER) {
        return;
    }
    for (number, place) in unit.open().into_iter().enumerate() {
        let which = format!("socket-{}", number + 1);
        let open = [("open", (!verifies).into())];
        note(g, "docker.daemon", &which, &place, &open);
    }
}

/// Notes enabled sockets of telnet and the r-commands.
fn note_cleartext(g: &mut Gather<'_>) {
    for name in CLEARTEXT {
        if !is_enabled(g, name) {
            continue;
        }
        let place = FactPlace::from(format!("{ETC}/{WANTS}/{name}"));
        let open = !Unit::read(g, name).open().is_empty()
            || !DIRS.iter().any(|dir| exists(g, &format!("{dir}/{name}")));
        note(
            g,
            "socket_login",
            name.trim_end_matches(".socket"),
            &place,
            &[("cleartext", open.into())],
        );
    }
}

/// Notes sockets of root that an administrator opened to the network, and sockets that start a shell.
fn note_of_root(g: &mut Gather<'_>) {
    let mut names: Vec<String> = Vec::new();
    for entry in g.list("socket_root", ETC).iter().take(MOST) {
        let entry = lossy(entry);
        let name = entry.trim_end_matches(".d");
        if name.ends_with(".socket") && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names.sort();
    let mut number = 0;
    for name in names {
        let own = name == DOCKER || LIBVIRT.iter().any(|(socket, _)| *socket == name);
        if own || is_masked(g, &name) {
            continue;
        }
        let unit = Unit::read(g, &name);
        let of_root = OF_ROOT.contains(&name.as_str()) || unit.local_in_package;
        if !of_root && !starts_shell(g, &unit, &name) {
            continue;
        }
        for place in unit.open() {
            number += 1;
            note(
                g,
                "socket_root",
                &number.to_string(),
                &place,
                &[("open", true.into())],
            );
        }
        let (Some((_, place)), true) = (unit.streams().into_iter().next(), unit.open().is_empty())
        else {
            continue;
        };
        number += 1;
        let fact = format!("socket_root.{number}.open");
        g.facts
            .known(fact, false, FactKind::Configured, place.clone());
        g.about(["socket_root", &number.to_string()]);
    }
}

/// Whether each connection of a socket gets a shell of root.
fn starts_shell(g: &mut Gather<'_>, unit: &Unit, name: &str) -> bool {
    let accepts = unit.last("Accept").is_some_and(|value| {
        ["yes", "true", "on", "1"].contains(&value.to_ascii_lowercase().as_str())
    });
    if !accepts {
        return false;
    }
    let service = format!("{}@.service", name.trim_end_matches(".socket"));
    let service = Unit::read(g, &service);
    let program = service.last("ExecStart").unwrap_or_default();
    let program = program.trim_start_matches(['-', '@', ':', '+', '!']);
    let program = program.split_whitespace().next().unwrap_or_default();
    let shell = program.rsplit('/').next().unwrap_or_default();
    let root = service.last("User").is_none_or(|user| user == "root");
    SHELLS.contains(&shell) && root && service.last("StandardInput") == Some("socket")
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    /// Returns the properties that hold, with their places.
    fn holds(host: &Recorded) -> Vec<String> {
        let mut g = Gather::new(host);
        collect(&mut g);
        let all = g.facts.map.iter();
        all.filter(|(key, _)| g.facts.get(key) == Some(&true.into()))
            .map(|(key, fact)| format!("{key} {}", fact.place))
            .collect()
    }

    #[test]
    fn addresses_of_sockets() {
        let drop_in = "/etc/systemd/system/docker.socket.d/tcp.conf";
        for (text, expected) in [
            (
                "[Socket]\nListenStream=0.0.0.0:2375\n",
                "docker.daemon.socket-1.open",
            ),
            (
                "[Socket]\nListenStream=2375\n",
                "docker.daemon.socket-1.open",
            ),
            (
                "[Socket]\nListenStream=[::]:2375\n",
                "docker.daemon.socket-1.open",
            ),
            ("[Socket]\nListenStream=127.0.0.1:2375\n", ""),
            ("[Socket]\nListenStream=[::1]:2375\n", ""),
            ("[Socket]\nListenStream=/run/docker.sock\n", ""),
            ("[Socket]\nListenStream=2375\nListenStream=\n", ""),
            ("[Socket]\nListenStream=2375\nBindToDevice=lo\n", ""),
            ("[Socket]\nListenStream=2375\nIPAddressDeny=any\n", ""),
            ("[Socket]\n#ListenStream=2375\n", ""),
        ] {
            let found = holds(&Recorded::new().file(drop_in, text));
            let keys: Vec<&str> = found
                .iter()
                .filter_map(|one| one.split(' ').next())
                .collect();
            assert_eq!(keys.join(" "), expected, "{text}");
        }
        let guarded = Recorded::new()
            .file(drop_in, "ListenStream=2375\n")
            .file(DOCKER_SETTINGS, r#"{"tlsverify": true}"#);
        assert_eq!(holds(&guarded), Vec::<String>::new());
    }

    #[test]
    fn sockets_of_root() {
        let text = "[Socket]\nListenStream=8080\n";
        let at = "/etc/systemd/system/podman.socket.d/tcp.conf";
        let open = ["socket_root.1.open /etc/systemd/system/podman.socket.d/tcp.conf:2"];
        assert_eq!(holds(&Recorded::new().file(at, text)), open);
        // A unit that the package opens itself.
        let at = "/etc/systemd/system/cockpit.socket.d/listen.conf";
        let host = Recorded::new()
            .file(at, "[Socket]\nListenStream=9091\n")
            .file(
                "/usr/lib/systemd/system/cockpit.socket",
                "[Socket]\nListenStream=9090\n",
            );
        assert_eq!(holds(&host), Vec::<String>::new());
        let shell = "[Service]\nExecStart=-/bin/bash -i\nStandardInput=socket\n";
        let host = Recorded::new()
            .file(
                "/etc/systemd/system/x.socket",
                "[Socket]\nListenStream=4444\nAccept=yes\n",
            )
            .file("/etc/systemd/system/x@.service", shell);
        assert_eq!(
            holds(&host),
            ["socket_root.1.open /etc/systemd/system/x.socket:2"]
        );
        let host = host.file(
            "/etc/systemd/system/x@.service",
            "[Service]\nExecStart=/usr/bin/git\n",
        );
        assert_eq!(holds(&host), Vec::<String>::new());
    }

    #[test]
    fn libvirt_behind_a_socket() {
        let wants = "/etc/systemd/system/sockets.target.wants/libvirtd-tcp.socket";
        let unit = "/lib/systemd/system/libvirtd-tcp.socket";
        let host = Recorded::new()
            .file(
                "/etc/libvirt/libvirtd.conf",
                "#listen_tcp = 1\nauth_tcp = \"none\"\n",
            )
            .file(unit, "[Socket]\nListenStream=16509\n");
        let facts = |host: &Recorded| {
            let mut g = Gather::new(host);
            collect(&mut g);
            g.facts
        };
        assert!(facts(&host).map.is_empty());
        let host = host.linked(wants, unit);
        let found = facts(&host);
        assert_eq!(found.str("libvirt_socket.libvirtd.auth_tcp"), Some("none"));
        assert_eq!(
            found.map["libvirt_socket.libvirtd.auth_tcp"].place.line(),
            Some(2)
        );
        assert_eq!(found.str("libvirt_socket.libvirtd.listen_addr"), None);
        let at = "/etc/systemd/system/libvirtd-tcp.socket.d/a.conf";
        let host = host.file(
            at,
            "[Socket]\nListenStream=\nListenStream=127.0.0.1:16509\n",
        );
        assert_eq!(
            facts(&host).str("libvirt_socket.libvirtd.listen_addr"),
            Some("127.0.0.1")
        );
    }
}
