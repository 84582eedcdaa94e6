//! Collects package versions and the release of the operating system. Versions of packages that a check uses become
//! facts. The complete list (dpkg, rpm and apk) is for comparisons of machines.

use crate::gather::{Gather, LIMITS};
use assay_host::Host;
use assay_model::{FactKind, FactPlace};
use std::collections::BTreeMap;
use std::ffi::OsStr;

pub(crate) const STATUS: &str = "/var/lib/dpkg/status";
pub(crate) const RELEASE: &str = "/etc/os-release";

/// Package database of apk (Alpine). Each installed package has lines `P:NAME` and `V:VERSION`, among others.
pub(crate) const APK: &str = "/lib/apk/db/installed";

/// Lists all packages of rpm, one `NAME VERSION` per line.
pub(crate) const RPM: [&str; 4] = ["rpm", "-qa", "--qf", "%{NAME} %{VERSION}-%{RELEASE}\\n"];
/// Maximum number of packages that a capture keeps.
pub(crate) const MOST: usize = 5000;

/// Packages whose version is a fact, because a check uses it.
pub(crate) const PACKAGES: [&str; 30] = [
    "apcupsd",
    "apache2",
    "bind9",
    "dovecot-core",
    "elasticsearch",
    "libgnutls30",
    "libgnutls30t64",
    "libssl1.1",
    "libssl3",
    "libssl3t64",
    "mariadb-server",
    "mariadb-server-10.0",
    "mariadb-server-10.1",
    "mariadb-server-10.2",
    "mariadb-server-10.3",
    "mariadb-server-10.5",
    "mariadb-server-10.6",
    "mysql-community-server",
    "mysql-server",
    "mysql-server-5.5",
    "mysql-server-5.6",
    "mysql-server-5.7",
    "mysql-server-8.0",
    "mysql-server-8.4",
    "nginx",
    "nut-client",
    "openssh-server",
    "openvpn",
    "postfix",
    "samba",
];

pub(crate) fn collect(g: &mut Gather<'_>) {
    note_release(g);
    let Some(text) = g.read("package", STATUS) else {
        return;
    };
    for installed in list_installed(&text) {
        let key = format!("package.{}.version", installed.name);
        let place = FactPlace::from(format!("{STATUS}:{}", installed.line));
        g.facts
            .known(key, installed.version, FactKind::Runtime, place);
        g.about(["package", installed.name]);
    }
}

/// Notes `os.id` and `os.version_id` from os-release(5): `debian` and `12`.
fn note_release(g: &mut Gather<'_>) {
    let Some(text) = g.read("os", RELEASE) else {
        return;
    };
    for (at, line) in text.lines().enumerate() {
        let Some((name, value)) = line.split_once('=') else {
            continue;
        };
        let key = match name {
            "ID" => "os.id",
            "VERSION_ID" => "os.version_id",
            _ => continue,
        };
        let place = FactPlace::from(format!("{RELEASE}:{}", at + 1));
        let value = value.trim_matches(['"', '\'']);
        g.facts.known(key, value, FactKind::Configured, place);
    }
}

/// Returns the version of an installed package, and the number of its line.
pub(crate) fn version_of<'a>(text: &'a str, name: &str) -> Option<(&'a str, usize)> {
    let all = list_installed(text).into_iter();
    let mut ours = all.filter(|installed| installed.name == name);
    ours.next()
        .map(|installed| (installed.version, installed.line))
}

/// Returns the version of an installed package and its place in dpkg's list; `None` if dpkg does
/// not list it.
pub(crate) fn find_version(g: &Gather<'_>, package: &str) -> Option<(String, FactPlace)> {
    read_version(g, package).ok().flatten()
}

/// Returns the version like `find_version`, or the reason why dpkg's list cannot be read. A missing list is treated as
/// empty.
pub(crate) fn read_version(
    g: &Gather<'_>,
    package: &str,
) -> Result<Option<(String, FactPlace)>, String> {
    let text = match g.host.read_text(std::path::Path::new(STATUS)) {
        Ok(text) => text,
        Err(error) if error.is_absent() => return Ok(None),
        Err(error) => return Err(error.reason()),
    };
    let installed = list_installed(&text);
    let found = installed.iter().find(|one| one.name == package);
    Ok(found.map(|found| {
        let place = FactPlace::from(format!("{STATUS}:{}", found.line));
        (found.version.to_owned(), place)
    }))
}

/// Returns the version of an installed package in dpkg's list, also of a package whose version is no fact.
pub(crate) fn find_any_version(g: &Gather<'_>, package: &str) -> Option<String> {
    let text = g.host.read_text(std::path::Path::new(STATUS)).ok()?;
    let installed = all_installed(&text);
    let found = installed.iter().find(|one| one.name == package)?;
    Some(found.version.to_owned())
}

/// Returns the first three numbers of the upstream version of a Debian package.
pub(crate) fn numbers(version: &str) -> (u32, u32, u32) {
    let upstream = version.split_once(':').map_or(version, |(_, rest)| rest);
    let mut parts = upstream.split('.').map(|part| {
        let end = part.find(|c: char| !c.is_ascii_digit());
        part[..end.unwrap_or(part.len())].parse().unwrap_or(0)
    });
    let mut next = || parts.next().unwrap_or(0);
    (next(), next(), next())
}

struct Installed<'a> {
    name: &'a str,
    version: &'a str,
    /// Line number of the version, counted from 1.
    line: usize,
}

/// Returns the installed and configured packages whose version a check uses, each once.
fn list_installed(text: &str) -> Vec<Installed<'_>> {
    let mut found: Vec<Installed<'_>> = Vec::new();
    for one in all_installed(text) {
        // A package for several architectures has one version for all.
        let known = found.iter().any(|other| other.name == one.name);
        if !known && PACKAGES.contains(&one.name) {
            found.push(one);
        }
    }
    found
}

/// Returns all packages of dpkg's status that are installed and configured.
fn all_installed(text: &str) -> Vec<Installed<'_>> {
    let mut found: Vec<Installed<'_>> = Vec::new();
    let (mut name, mut here) = ("", false);
    for (at, line) in text.lines().enumerate() {
        match line.split_once(": ") {
            Some(("Package", value)) => (name, here) = (value, false),
            Some(("Status", value)) => here = value.ends_with(" ok installed"),
            Some(("Version", version)) if here => {
                found.push(Installed {
                    name,
                    version,
                    line: at + 1,
                });
            }
            _ => {}
        }
    }
    found
}

/// Returns the versions of each installed package from dpkg, rpm and apk; `None` if no package list can be read.
///
/// A package has several versions if it is installed for several architectures, or several times by rpm.
#[must_use]
pub fn installed_packages(host: &dyn Host) -> Option<BTreeMap<String, String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let status = host.read_text(std::path::Path::new(STATUS)).ok();
    for one in status.iter().flat_map(|text| all_installed(text)) {
        let versions = found.entry(one.name.to_owned()).or_default();
        versions.push(one.version.to_owned());
    }
    let apk = host.read_text(std::path::Path::new(APK)).ok();
    let mut name = "";
    for line in apk.iter().flat_map(|text| text.lines()) {
        match line.split_once(':') {
            Some(("P", value)) => name = value,
            Some(("V", version)) if !name.is_empty() => {
                let versions = found.entry(name.to_owned()).or_default();
                versions.push(version.to_owned());
                name = "";
            }
            _ => {}
        }
    }
    let listed = host
        .run(&RPM.map(OsStr::new), LIMITS)
        .ok()
        .filter(|output| output.success());
    let listed = listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    for line in listed.iter().flat_map(|text| text.lines()) {
        if let Some((name, version)) = redact_rpm(line)
            .as_deref()
            .and_then(|line| line.split_once(' '))
        {
            let versions = found.entry(name.to_owned()).or_default();
            versions.push(version.to_owned());
        }
    }
    let joined = |(name, mut versions): (String, Vec<String>)| {
        versions.sort();
        versions.dedup();
        (name, versions.join(", "))
    };
    (!found.is_empty()).then(|| found.into_iter().map(joined).collect())
}

/// Returns whether a list contains packages that no check uses. Captures of earlier versions of assay lack such
/// packages, so their lists cannot be compared.
#[must_use]
pub fn has_all_packages(packages: &BTreeMap<String, String>) -> bool {
    packages
        .keys()
        .any(|name| !PACKAGES.contains(&name.as_str()))
}

fn is_name(name: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b".+_-".contains(&byte);
    !name.is_empty() && name.len() <= 80 && name.bytes().all(known)
}

fn is_version(version: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b".+~^:_-".contains(&byte);
    !version.is_empty() && version.len() <= 80 && version.bytes().all(known)
}

/// Redacts rpm's list: keeps lines with a name and a version.
pub(crate) fn redact_rpm(line: &str) -> Option<String> {
    let (name, version) = line.split_once(' ')?;
    (is_name(name) && is_version(version)).then(|| line.to_owned())
}

/// Redacts dpkg's status file: keeps name, state and version of the first `MOST` packages. Line numbers do not change.
pub(crate) fn redact(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let state = |value: &str| {
        let known = |byte: u8| byte.is_ascii_lowercase() || b" -".contains(&byte);
        value.len() <= 60 && value.bytes().all(known)
    };
    let (mut asked, mut others) = (false, 0);
    let lines: Vec<&str> = text
        .split('\n')
        .map(|line| {
            let keep = match line.split_once(": ") {
                Some(("Package", name)) => {
                    let is_known = PACKAGES.contains(&name);
                    others += usize::from(!is_known);
                    asked = is_known || (is_name(name) && others <= MOST);
                    asked
                }
                Some(("Status", value)) => asked && state(value),
                Some(("Version", value)) => asked && is_version(value),
                _ => false,
            };
            if keep { line } else { "" }
        })
        .collect();
    lines.join("\n").into_bytes()
}

/// Redacts the database of apk: keeps names and versions of the first `MOST` packages. Line numbers do not change.
pub(crate) fn redact_apk(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let (mut asked, mut count) = (false, 0);
    let lines: Vec<&str> = text
        .split('\n')
        .map(|line| {
            let keep = match line.split_once(':') {
                Some(("P", name)) => {
                    count += 1;
                    asked = is_name(name) && count <= MOST;
                    asked
                }
                Some(("V", version)) => asked && is_version(version),
                _ => false,
            };
            if keep { line } else { "" }
        })
        .collect();
    lines.join("\n").into_bytes()
}

/// Redacts os-release: keeps the name and version of the system.
pub(crate) fn redact_release(line: &str) -> String {
    let word = |value: &str| {
        let known = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        let bare = value.trim_matches(['"', '\'']);
        bare.len() <= 24 && bare.bytes().all(known)
    };
    let keep = match line.split_once('=') {
        Some(("PRETTY_NAME", _)) => true,
        Some(("ID" | "VERSION_ID", value)) => word(value),
        _ => false,
    };
    if keep { line } else { "" }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    /// Part of /var/lib/dpkg/status of Debian 12, with a removed package and a package that no check uses.
    const TEXT: &str = "\
Package: openssh-server
Status: install ok installed
Priority: optional
Maintainer: Debian OpenSSH Maintainers <debian-ssh@lists.debian.org>
Architecture: amd64
Version: 1:9.2p1-2+deb12u10
Conffiles:
 /etc/default/ssh 500e3cf069fe9a7b9936108eb9d9c035

Package: samba
Status: deinstall ok config-files
Version: 2:4.17.12+dfsg-0+deb12u4

Package: secret-tool
Status: install ok installed
Version: 1.0
";

    #[test]
    fn what_is_installed_has_its_version() {
        let facts = |text: &str| {
            let host = Recorded::new()
                .file(STATUS, text)
                .file(RELEASE, "ID=debian\nVERSION_ID=\"12\"\n");
            let mut g = Gather::new(&host);
            collect(&mut g);
            g.facts
        };
        let found = facts(TEXT);
        assert_eq!(
            found.str("package.openssh-server.version"),
            Some("1:9.2p1-2+deb12u10")
        );
        assert_eq!(found.str("os.version_id"), Some("12"));
        assert_eq!(found.map.len(), 3, "{:?}", found.map.keys());
        let kept = String::from_utf8(redact(TEXT.as_bytes())).unwrap();
        assert_eq!(facts(&kept), found);
        assert_eq!(redact(kept.as_bytes()), kept.as_bytes());
        assert!(!kept.contains("Maintainer"));
        let host = Recorded::new().file(STATUS, kept);
        let all = installed_packages(&host).unwrap();
        let all: Vec<_> = all
            .iter()
            .map(|(name, version)| format!("{name} {version}"))
            .collect();
        assert_eq!(
            all,
            ["openssh-server 1:9.2p1-2+deb12u10", "secret-tool 1.0"]
        );
    }

    /// /lib/apk/db/installed of Alpine 3.20, shortened.
    const ALPINE: &str = "\
C:Q1QNGZ6jBWLMnHBQVXmPKTDNrLJ2E=
P:alpine-baselayout
V:3.6.5-r0
A:x86_64
S:8515
o:alpine-baselayout
m:Natanael Copa <ncopa@alpinelinux.org>
D:alpine-baselayout-data=3.6.5-r0 /bin/sh
F:dev

C:Q1Jmo2hBCLUUUnFKXwb3JmSVzvXd8=
P:musl
V:1.2.5-r0
p:so:libc.musl-x86_64.so.1=1

";

    #[test]
    fn packages_of_alpine_are_compared_and_nothing_else_is_kept() {
        let kept = String::from_utf8(redact_apk(ALPINE.as_bytes())).unwrap();
        assert!(!kept.contains("Natanael") && !kept.contains("Q1"), "{kept}");
        assert_eq!(redact_apk(kept.as_bytes()), kept.as_bytes());
        for text in [ALPINE, &kept] {
            let all = installed_packages(&Recorded::new().file(APK, text)).unwrap();
            let all: Vec<(&str, &str)> = all
                .iter()
                .map(|(name, version)| (name.as_str(), version.as_str()))
                .collect();
            assert_eq!(
                all,
                [("alpine-baselayout", "3.6.5-r0"), ("musl", "1.2.5-r0")]
            );
        }
        let text: String = (0..MOST + 7).map(|at| format!("P:p{at}\nV:1\n")).collect();
        let kept = String::from_utf8(redact_apk(text.as_bytes())).unwrap();
        assert_eq!(kept.matches("V:").count(), MOST);
    }

    #[test]
    fn a_list_without_end_is_cut() {
        let one =
            |at: usize| format!("Package: p{at}\nStatus: install ok installed\nVersion: {at}\n\n");
        let text: String = (0..MOST + 700).map(one).collect();
        let kept = String::from_utf8(redact(text.as_bytes())).unwrap();
        assert_eq!(all_installed(&kept).len(), MOST);
    }
}
