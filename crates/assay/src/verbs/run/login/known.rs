//! What is read of this machine to tell why a login waits. Of another machine nothing is known.

use assay_host::{Host, Limits, Live};
use assay_login::cause::{Kind, Known};
use std::ffi::OsStr;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};

/// Deepest `@include` of PAM that is followed.
const DEEPEST: usize = 8;

/// Everything that may explain a wait.
pub fn of(kind: Kind, server: &(String, u16), user: Option<&str>) -> Known {
    let mut known = Known {
        hosts: services("hosts:"),
        name_servers: text("/etc/resolv.conf").map(|text| {
            let lines = text.lines().map(str::trim);
            let servers = lines.filter_map(|line| line.strip_prefix("nameserver"));
            servers.map(|server| server.trim().to_owned()).collect()
        }),
        ..Known::default()
    };
    let addresses: Vec<SocketAddr> = match (server.0.as_str(), server.1).to_socket_addrs() {
        Ok(all) => all.collect(),
        Err(_) => return known,
    };
    let Some(address) = addresses.first() else {
        return known;
    };
    if !addresses.iter().all(assay_web::is_here) {
        return known;
    }
    known.passwd = services("passwd:");
    known.pam = match kind {
        Kind::Ssh => pam("sshd"),
        Kind::Imap => pam("dovecot"),
        Kind::Smtp => pam("smtp"),
        Kind::Http => None,
    };
    match kind {
        Kind::Ssh => {
            let config = config_of(address);
            let mut argv = vec!["sshd", "-T"];
            argv.extend(config.iter().flat_map(|file| ["-f", file]));
            known.sshd = said(&argv).map(|text| {
                let lines = text.lines().filter_map(|line| line.split_once(' '));
                lines
                    .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
                    .collect()
            });
            known.home = home(user).and_then(|home| {
                let target = assay_facts::target(&Live, &home).ok()?;
                target.fs_type
            });
        }
        Kind::Imap => known.passdbs = said(&["doveconf", "-n"]).map(|text| passdbs(&text)),
        Kind::Smtp | Kind::Http => {}
    }
    known
}

fn text(path: &str) -> Option<String> {
    Live.read_text(Path::new(path)).ok()
}

/// The services of a line of nsswitch.conf, with its place.
fn services(key: &str) -> Option<(String, String)> {
    const FILE: &str = "/etc/nsswitch.conf";
    let text = text(FILE)?;
    let mut lines = (1..).zip(text.lines());
    lines.find_map(|(number, line)| {
        let services = line.trim().strip_prefix(key)?;
        Some((services.trim().to_owned(), format!("{FILE}:{number}")))
    })
}

fn said(argv: &[&str]) -> Option<String> {
    let argv: Vec<&OsStr> = argv.iter().map(OsStr::new).collect();
    let output = Live.run(&argv, Limits::default()).ok()?;
    output.success().then(|| output.text())
}

/// The configuration file of the sshd that listens there, where its command line names one. sshd writes
/// its arguments into its title.
fn config_of(address: &SocketAddr) -> Option<String> {
    let assay_web::Server::Processes(all) = assay_web::Server::listening(address) else {
        return None;
    };
    let title = text(&format!("/proc/{}/cmdline", all.first()?))?;
    let mut words = title.split(['\0', ' ']);
    words.find(|word| *word == "-f")?;
    words.next().map(str::to_owned)
}

/// The modules of a service's stack, in order.
fn pam(service: &str) -> Option<Vec<(String, String)>> {
    let mut found = Vec::new();
    let read = follow(service, 0, &mut found);
    read.then_some(found)
}

fn follow(service: &str, depth: usize, found: &mut Vec<(String, String)>) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if depth > DEEPEST || !service.chars().all(plain) {
        return false;
    }
    let path = format!("/etc/pam.d/{service}");
    let Some(text) = text(&path) else {
        return false;
    };
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(other) = line.strip_prefix("@include") {
            follow(other.trim(), depth + 1, found);
        }
        let modules = line.split_whitespace();
        if let Some(module) = modules.into_iter().find(|word| word.ends_with(".so")) {
            let name = module.rsplit('/').next().unwrap_or(module);
            let name = name.trim_end_matches(".so").to_owned();
            found.push((name, format!("{path}:{number}")));
        }
    }
    true
}

/// Drivers of the passdbs that `doveconf -n` prints.
fn passdbs(text: &str) -> Vec<(String, String)> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        match line {
            _ if line.starts_with("passdb") && line.ends_with('{') => inside = true,
            "}" => inside = false,
            _ => {
                if let (true, Some(driver)) = (inside, line.strip_prefix("driver = ")) {
                    found.push((driver.to_owned(), "doveconf -n".to_owned()));
                }
            }
        }
    }
    found
}

/// Home of the user who logs in; without a name, of who runs this.
fn home(user: Option<&str>) -> Option<PathBuf> {
    let Some(user) = user else {
        return std::env::var_os("HOME").map(PathBuf::from);
    };
    let text = text("/etc/passwd")?;
    let line = text.lines().find_map(|line| {
        let (name, rest) = line.split_once(':')?;
        (name == user).then_some(rest)
    })?;
    line.split(':').nth(4).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passdbs_in_their_order() {
        // doveconf 2.3.19.
        let text = "passdb {\n  driver = pam\n}\npassdb {\n  args = /x\n  driver = sql\n}\nuserdb {\n  driver = passwd\n}\n";
        let drivers: Vec<String> = passdbs(text)
            .into_iter()
            .map(|(driver, _)| driver)
            .collect();
        assert_eq!(drivers, ["pam", "sql"]);
    }

    #[test]
    fn names_that_lead_out_of_the_directory_are_not_followed() {
        assert!(!follow("../passwd", 0, &mut Vec::new()));
    }
}
