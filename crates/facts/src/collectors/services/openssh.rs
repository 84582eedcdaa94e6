//! Collects the version of OpenSSH, and whether its server supports PAM, for advice about keywords of old versions. The
//! module `ssh` reads sshd's configuration.

use super::packages::{RELEASE, STATUS};
use super::setting_lines::PAM_SSHD;
use super::ssh::SERVER;
use crate::gather::Gather;
use assay_model::{FactKind, FactPlace};
use std::path::Path;

/// Command that prints the version of the ssh client, which is built from the same source as sshd.
const VERSION: [&str; 2] = ["ssh", "-V"];

/// Distributions that build sshd with PAM (os-release(5), `ID`).
const WITH_PAM: [&str; 16] = [
    "debian",
    "ubuntu",
    "raspbian",
    "linuxmint",
    "fedora",
    "rhel",
    "centos",
    "rocky",
    "almalinux",
    "ol",
    "amzn",
    "sles",
    "opensuse-leap",
    "opensuse-tumbleweed",
    "arch",
    "gentoo",
];

/// Distributions that build sshd without PAM. Their package `openssh-server-pam` contains a second sshd that is built
/// with PAM, and the PAM configuration file.
const WITHOUT_PAM: [&str; 4] = ["alpine", "postmarketos", "openwrt", "immortalwrt"];

pub(crate) fn collect(g: &mut Gather<'_>) {
    if g.host.exists(Path::new(SERVER)).unwrap_or(true) {
        note_version(g);
        note_pam(g);
    }
}

/// Notes `sshd.version` from dpkg, else from the output of `ssh -V`.
fn note_version(g: &mut Gather<'_>) {
    let text = g.host.read_text(Path::new(STATUS)).unwrap_or_default();
    let (found, place) = match super::packages::version_of(&text, "openssh-server") {
        Some((version, line)) => (
            parse_release(version),
            FactPlace::from(format!("{STATUS}:{line}")),
        ),
        None => {
            let output = g.try_ask(&VERSION).ok();
            let says =
                output.map(|output| output.text() + &String::from_utf8_lossy(&output.stderr));
            (
                says.as_deref().and_then(parse_release),
                FactPlace::command(VERSION),
            )
        }
    };
    match found {
        Some(release) => g
            .facts
            .known("sshd.version", release, FactKind::Runtime, place),
        None => g.facts.unknown(
            "sshd.version",
            "neither dpkg nor `ssh -V` tells here which OpenSSH it is",
            FactKind::Runtime,
            FactPlace::from(SERVER),
        ),
    }
}

/// Returns the release without the package revision: `9.2p1` for `1:9.2p1-2+deb12u3` and for `OpenSSH_9.2p1 Debian-2`.
fn parse_release(text: &str) -> Option<String> {
    let text = text.split_once("OpenSSH_").map_or(text, |(_, rest)| rest);
    let text = text.split_once(':').map_or(text, |(_, rest)| rest);
    let known = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'p');
    let end = text.find(|c| !known(c)).unwrap_or(text.len());
    let text = text[..end].trim_end_matches(['.', 'p']);
    let starts = text.starts_with(|c: char| c.is_ascii_digit());
    (starts && text.contains('.')).then(|| text.to_owned())
}

/// Notes `sshd.pam`: whether sshd is built with PAM.
fn note_pam(g: &mut Gather<'_>) {
    let id = g.host.read_text(Path::new(RELEASE)).unwrap_or_default();
    let id = id.lines().find_map(|line| line.strip_prefix("ID="));
    let id = id
        .map(|id| id.trim_matches(['"', '\'']).to_owned())
        .unwrap_or_default();
    let place = FactPlace::from(RELEASE);
    match g.host.exists(Path::new(PAM_SSHD)) {
        Ok(true) => g.facts.known("sshd.pam", true, FactKind::Runtime, FactPlace::from(PAM_SSHD)),
        _ if WITH_PAM.contains(&id.as_str()) => {
            g.facts.known("sshd.pam", true, FactKind::Runtime, place);
        }
        Ok(false) if WITHOUT_PAM.contains(&id.as_str()) => {
            g.facts.known("sshd.pam", false, FactKind::Runtime, place);
        }
        _ => g.facts.unknown(
            "sshd.pam",
            format!("whether this sshd is built with PAM: there is no {PAM_SSHD}, and the distribution is not known here"),
            FactKind::Runtime,
            place,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn releases_of_openssh() {
        for (text, expected) in [
            ("1:9.2p1-2+deb12u10", Some("9.2p1")),
            ("1:6.7p1-5+deb8u8", Some("6.7p1")),
            (
                "OpenSSH_9.2p1 Debian-2+deb12u3, OpenSSL 3.0.15",
                Some("9.2p1"),
            ),
            ("OpenSSH_10.0", Some("10.0")),
            ("Dropbear v2022.83", None),
            ("", None),
        ] {
            assert_eq!(parse_release(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_known_is_unknown() {
        let facts = |host: &Recorded| {
            let mut g = Gather::new(host);
            collect(&mut g);
            g.facts
        };
        let host = || Recorded::new().file(SERVER, "");
        let found = facts(&host());
        for key in ["sshd.version", "sshd.pam"] {
            assert!(
                found.map.contains_key(key) && found.get(key).is_none(),
                "{key}"
            );
        }
        let pam = |host: Recorded| facts(&host).get("sshd.pam").cloned();
        let yes = Some(serde_json::json!(true));
        let no = Some(serde_json::json!(false));
        assert_eq!(pam(host().file(RELEASE, "ID=alpine\n")), no);
        assert_eq!(pam(host().file(RELEASE, "ID=\"openwrt\"\n")), no);
        let other_package = host().file(RELEASE, "ID=alpine\n").file(PAM_SSHD, "");
        assert_eq!(pam(other_package), yes);
        assert_eq!(pam(host().file(RELEASE, "ID=debian\n")), yes);
        assert_eq!(pam(host().file(RELEASE, "ID=buildroot\n")), None);
        assert!(facts(&Recorded::new()).map.is_empty());
    }
}
