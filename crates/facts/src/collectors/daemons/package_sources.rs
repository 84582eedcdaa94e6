//! Collects the package sources of apt, whether their signatures are checked, and whether security updates are
//! installed automatically.

use super::cleaned_words::{APT, SOURCES};
use super::lines::{Line, at_line, files, note, read};
use super::nested::read_braces;
use crate::gather::Gather;
use assay_model::FactPlace;

/// Options of apt that checks use, in lower case.
const OPTIONS: [&str; 5] = [
    "apt::get::allowunauthenticated",
    "acquire::allowinsecurerepositories",
    "acquire::https::verify-peer",
    "acquire::https::verify-host",
    "apt::periodic::unattended-upgrade",
];
/// Releases of Debian and Ubuntu that have a separate suite for security updates.
const RELEASES: [&str; 6] = ["buster", "bullseye", "bookworm", "trixie", "jammy", "noble"];

/// Debian's archive of security updates, and the keys of its package debian-archive-keyring.
const ARCHIVE: &str = "http://security.debian.org/debian-security";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// Components of Debian's archive.
const COMPONENTS: [&str; 4] = ["main", "contrib", "non-free", "non-free-firmware"];

pub(super) fn collect(g: &mut Gather<'_>) {
    note_options(g);
    note_sources(g);
}

/// Notes the options of apt. Files are read in the order of their names, and apt.conf after all others. The last value
/// of an option applies.
fn note_options(g: &mut Gather<'_>) {
    let mut all = files(g, "apt", APT, &[""]);
    // apt.conf(5): a file name without an ending, or with that of a configuration.
    all.retain(|path| {
        let name = path.rsplit('/').next().unwrap_or_default();
        !name.contains('.') || name.ends_with(".conf")
    });
    all.push("/etc/apt/apt.conf".to_owned());
    let mut last: Vec<Option<(String, FactPlace)>> = vec![None; OPTIONS.len()];
    for path in all {
        let text = g.read("apt", &path).unwrap_or_default();
        for one in read_braces(&text) {
            let Some((value, name)) = one.words.split_last() else {
                continue;
            };
            let blocks = one.within.iter().flat_map(|(_, words)| words);
            let names: Vec<&str> = blocks.chain(name).map(String::as_str).collect();
            let name = names.join("::");
            if let Some(at) = OPTIONS.iter().position(|known| *known == name) {
                let place = at_line(&path, one.line);
                last[at] = Some((value.clone(), place));
            }
        }
    }
    for (name, said) in OPTIONS.iter().zip(last) {
        let Some((value, place)) = said else { continue };
        let on = matches!(
            value.as_str(),
            "1" | "true" | "yes" | "on" | "enable" | "with"
        );
        let which = name.rsplit("::").next().unwrap_or_default();
        note(g, ("apt.option", which), "which", which, &place);
        note(g, ("apt.option", which), "on", on, &place);
    }
}

/// A package source with its address, and whether signature checks are turned off for it.
struct Source {
    uri: String,
    suites: Vec<String>,
    components: Vec<String>,
    trusted: bool,
    place: FactPlace,
}

fn note_sources(g: &mut Gather<'_>) {
    let mut all = Vec::new();
    let lines = read(g, "apt", "/etc/apt/sources.list", &['#']);
    all.extend(lines.iter().filter_map(one_line));
    for path in files(g, "apt", SOURCES, &[".list"]) {
        let lines = read(g, "apt", &path, &['#']);
        all.extend(lines.iter().filter_map(one_line));
    }
    for path in files(g, "apt", SOURCES, &[".sources"]) {
        let text = g.read("apt", &path).unwrap_or_default();
        all.extend(parse_stanzas(&path, &text));
    }
    for (number, source) in all.iter().enumerate() {
        let local = ["file:", "copy:", "cdrom:"]
            .iter()
            .any(|begin| source.uri.starts_with(begin));
        let which = (number + 1).to_string();
        let unchecked = source.trusted && !local;
        note(
            g,
            ("apt.source", &which),
            "unchecked",
            unchecked,
            &source.place,
        );
    }
    let suites = || {
        all.iter()
            .flat_map(|source| source.suites.iter().map(String::as_str))
    };
    let Some(release) = RELEASES
        .into_iter()
        .find(|name| suites().any(|suite| suite == *name))
    else {
        return;
    };
    // A file may name the release by its word: stable-security.
    let security =
        suites().any(|suite| suite.ends_with("-security") || suite.ends_with("/updates"));
    let first = all
        .iter()
        .find(|source| source.suites.iter().any(|suite| suite == release));
    // Raspbian has no suite for security updates.
    if files(g, "apt", SOURCES, &[".list"])
        .iter()
        .any(|path| path.ends_with("/raspi.list"))
    {
        return;
    }
    if let Some(first) = first {
        note(g, ("apt", "security"), "source", security, &first.place);
        if let Some(line) = security_line(&all, release) {
            note(g, ("apt", "security"), "line", line, &first.place);
        }
    }
}

/// Returns the line of Debian's archive of security updates for a release, with the components of the other sources.
/// `None` for Ubuntu, whose archive depends on the architecture.
fn security_line(all: &[Source], release: &str) -> Option<String> {
    let suite = match release {
        "buster" => "buster/updates".to_owned(),
        "bullseye" | "bookworm" | "trixie" => format!("{release}-security"),
        _ => return None,
    };
    let of_release = |source: &&Source| source.suites.iter().any(|suite| suite == release);
    let named: Vec<&str> = all
        .iter()
        .filter(of_release)
        .flat_map(|source| source.components.iter().map(String::as_str))
        .collect();
    let components = COMPONENTS.iter().filter(|one| named.contains(one));
    let components: Vec<&str> = components.copied().collect();
    (!components.is_empty()).then(|| {
        let components = components.join(" ");
        format!("deb [signed-by={KEYRING}] {ARCHIVE} {suite} {components}")
    })
}

/// Parses `deb [option=value] uri suite component…`.
fn one_line(line: &Line) -> Option<Source> {
    let rest = line.text.strip_prefix("deb ")?.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => ("", rest),
    };
    let mut words = rest.split_whitespace();
    let uri = words.next()?.to_lowercase();
    let suite = words.next()?.to_lowercase();
    Some(Source {
        uri,
        suites: vec![suite],
        components: words.map(str::to_lowercase).collect(),
        trusted: options
            .split_whitespace()
            .any(|one| one.eq_ignore_ascii_case("trusted=yes")),
        place: line.place.clone(),
    })
}

/// Parses stanzas of deb822, which are separated by empty lines.
fn parse_stanzas(path: &str, text: &str) -> Vec<Source> {
    let mut all = Vec::new();
    let mut fields: Vec<(String, String, usize)> = Vec::new();
    for (number, line) in text.lines().chain([""]).enumerate() {
        if line.starts_with('#') {
            continue;
        }
        if !line.trim().is_empty() {
            match line
                .split_once(':')
                .filter(|_| !line.starts_with([' ', '\t']))
            {
                Some((name, value)) => {
                    let value = value.trim().to_lowercase();
                    fields.push((name.trim().to_lowercase(), value, number + 1));
                }
                None => {
                    if let Some((_, value, _)) = fields.last_mut() {
                        value.push(' ');
                        value.push_str(&line.trim().to_lowercase());
                    }
                }
            }
            continue;
        }
        let stanza = std::mem::take(&mut fields);
        let of = |name: &str| stanza.iter().find(|(known, ..)| known == name);
        let says = |name: &str, value: &str| of(name).is_some_and(|(_, said, _)| said == value);
        let types = of("types").is_some_and(|(_, said, _)| said.split(' ').any(|one| one == "deb"));
        if !types || says("enabled", "no") {
            continue;
        }
        let trusted = says("trusted", "yes");
        let words = |name: &str| {
            of(name)
                .map(|(_, said, _)| said.clone())
                .unwrap_or_default()
        };
        let guilty = of("trusted")
            .filter(|_| trusted)
            .or(of("suites"))
            .or(of("uris"));
        let line = guilty.map_or(1, |(_, _, line)| *line);
        all.push(Source {
            uri: words("uris"),
            suites: words("suites")
                .split_whitespace()
                .map(str::to_owned)
                .collect(),
            components: words("components")
                .split_whitespace()
                .map(str::to_owned)
                .collect(),
            trusted,
            place: at_line(path, line),
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn sources_of_both_kinds() {
        let host = Recorded::new()
            .file(
                "/etc/apt/sources.list",
                "deb [trusted=yes] http://a/ bookworm main\ndeb [trusted=yes] file:/srv/x ./\n",
            )
            .file(
                "/etc/apt/sources.list.d/x.sources",
                "Types: deb\nURIs: https://b/\nSuites: bookworm-security\nTrusted: yes\n\nTypes: deb-src\n\
                 Trusted: yes\n",
            )
            .file(
                "/etc/apt/apt.conf.d/20x",
                "APT::Periodic::Unattended-Upgrade \"0\";\nAcquire { https { Verify-Peer \"false\"; }; };\n",
            );
        let mut g = Gather::new(&host);
        collect(&mut g);
        let unchecked = |number: u32| g.facts.get(&format!("apt.source.{number}.unchecked"));
        assert_eq!(unchecked(1), Some(&true.into()));
        assert_eq!(unchecked(2), Some(&false.into()));
        assert_eq!(unchecked(3), Some(&true.into()));
        assert_eq!(unchecked(4), None);
        assert_eq!(g.facts.get("apt.security.source"), Some(&true.into()));
        let line = g.facts.str("apt.security.line");
        assert!(line.is_some_and(|line| line.ends_with(" bookworm-security main")));
        assert_eq!(
            g.facts.get("apt.option.unattended-upgrade.on"),
            Some(&false.into())
        );
        assert_eq!(
            g.facts.get("apt.option.verify-peer.on"),
            Some(&false.into())
        );
    }
}
