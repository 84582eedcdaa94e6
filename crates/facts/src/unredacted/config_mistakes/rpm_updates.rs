//! Finds settings of dnf that install unsigned packages or keep updates away, and a masked timer of apt (dnf.conf(5)).

use super::super::lines_of_files::{files, read};
use super::Misuses;
use crate::gather::Gather;
use assay_model::FactPlace;
use std::path::Path;

const DNF: [&str; 2] = ["/etc/dnf/dnf.conf", "/etc/yum.conf"];
const REPOS: &str = "/etc/yum.repos.d";
/// Beginnings of the names of packages whose faults can be used from the network or by any account.
const EXPOSED: [&str; 7] = [
    "kernel", "openssl", "glibc", "openssh", "sudo", "httpd", "nginx",
];
const APT: &str = "/etc/apt/apt.conf.d";
const TIMERS: [&str; 2] = [
    "/etc/systemd/system/apt-daily-upgrade.timer",
    "/etc/systemd/system/apt-daily.timer",
];

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut found = Misuses::default();
    let mut all: Vec<(String, bool)> = DNF.map(|path| (path.to_owned(), true)).to_vec();
    let repos = files(g, "dnf", REPOS, ".repo").into_iter();
    all.extend(repos.map(|path| (path, false)));
    for (path, main) in all {
        note_file(g, &path, main, &mut found);
    }
    found.note(g, "dnf");
    note_timer(g);
}

fn is_off(value: &str) -> bool {
    matches!(
        value.to_ascii_lowercase().as_str(),
        "0" | "no" | "false" | "off"
    )
}

fn note_file(g: &mut Gather<'_>, path: &str, main: bool, found: &mut Misuses) {
    let lines = read(g, "dnf", path);
    for section in lines.split(|line| line.text.trim_start().starts_with('[')) {
        let value = |names: &[&str]| {
            section.iter().rev().find_map(|line| {
                let (name, value) = line.text.split_once('=')?;
                names
                    .contains(&name.trim())
                    .then(|| (value.trim().to_owned(), line.place.clone()))
            })
        };
        // A repository that is switched off installs nothing.
        if !main && value(&["enabled"]).is_some_and(|(value, _)| is_off(&value)) {
            continue;
        }
        let local = value(&["baseurl"]).is_some_and(|(value, _)| value.starts_with("file:"));
        if let Some((value, place)) = value(&["gpgcheck"]) {
            found.add("unsigned", is_off(&value) && !local, place);
        }
        if let Some((value, place)) = value(&["sslverify"]) {
            found.add("unverified", is_off(&value), place);
        }
        if let Some((value, place)) = value(&["exclude", "excludepkgs"]) {
            let mut names = value.split([' ', ',']).filter(|name| !name.is_empty());
            let exposed = names.any(|name| {
                let bare = name.trim_end_matches('*').trim_end_matches('-');
                EXPOSED.contains(&bare) || bare.is_empty()
            });
            found.add("kept_away", exposed, place);
        }
    }
}

/// Notes a masked timer of apt on a machine that asks for automatic upgrades.
fn note_timer(g: &mut Gather<'_>) {
    let mut asked = false;
    for path in files(g, "apt_timer", APT, "") {
        for line in read(g, "apt_timer", &path) {
            let text = line.text.trim().to_ascii_lowercase();
            if !text.starts_with("//") && text.contains("apt::periodic::unattended-upgrade ") {
                asked = !text.contains("\"0\"");
            }
        }
    }
    if !asked {
        return;
    }
    let mut found = Misuses::default();
    for path in TIMERS {
        let masked = g.host.link(Path::new(path));
        if masked.is_ok_and(|target| target == Path::new("/dev/null")) {
            found.add("masked", true, FactPlace::from(path));
        }
    }
    found.note(g, "apt_timer");
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn settings_and_their_near_misses() {
        let repo = "/etc/yum.repos.d/a.repo";
        for (path, text, expected) in [
            (
                repo,
                "[a]\nbaseurl=http://a\ngpgcheck=False\n",
                "unsigned=true",
            ),
            (repo, "[a]\nenabled=0\ngpgcheck=0\n", ""),
            (
                repo,
                "[a]\nbaseurl=file:///srv/a\ngpgcheck=0\n",
                "unsigned=false",
            ),
            (
                repo,
                "[a]\ngpgcheck=1\n[b]\ngpgcheck=0\n",
                "unsigned=false unsigned=true",
            ),
            (repo, "[a]\nsslverify=0\n", "unverified=true"),
            (
                DNF[0],
                "[main]\nexcludepkgs=kernel* php*\n",
                "kept_away=true",
            ),
            (
                DNF[0],
                "[main]\nexclude=php*,docker-ce\n",
                "kept_away=false",
            ),
            (DNF[0], "[main]\n#exclude=kernel*\n", ""),
        ] {
            assert_eq!(
                found(&[(path, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn timers_of_apt() {
        let of = |text: &str| {
            let host = assay_host::Recorded::new()
                .file("/etc/apt/apt.conf.d/20auto-upgrades", text)
                .linked(TIMERS[0], "/dev/null");
            let mut g = Gather::new(&host);
            collect(&mut g);
            g.facts.get("apt_timer.1.masked").cloned()
        };
        assert_eq!(
            of("APT::Periodic::Unattended-Upgrade \"1\";\n"),
            Some(true.into())
        );
        assert_eq!(of("APT::Periodic::Unattended-Upgrade \"0\";\n"), None);
    }
}
