//! Finds two default routes in the files of ifupdown (interfaces(5)). The second one cannot be added, and its interface
//! comes up in part.

use super::super::lines_of_files::{Line, files, read};
use super::Misuses;
use crate::gather::Gather;
use assay_model::FactPlace;

const MAIN: &str = "/etc/network/interfaces";

/// A stanza `iface NAME inet static` with its default route.
#[derive(Default)]
struct Stanza {
    name: String,
    family: String,
    gateway: Option<FactPlace>,
    metric: bool,
}

pub(super) fn collect(g: &mut Gather<'_>) {
    let lines = read_all(g);
    let mut started: Vec<String> = Vec::new();
    let mut stanzas: Vec<Stanza> = Vec::new();
    let mut inside = false;
    for line in &lines {
        let text = line.text.trim();
        if text.starts_with('#') {
            continue;
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        match words[..] {
            ["auto" | "allow-hotplug" | "allow-auto", ref names @ ..] => {
                started.extend(names.iter().map(|name| (*name).to_owned()));
                inside = false;
            }
            ["iface", name, family, ..] => {
                inside = true;
                stanzas.push(Stanza {
                    name: name.to_owned(),
                    family: family.to_owned(),
                    ..Stanza::default()
                });
            }
            ["mapping" | "source" | "source-directory", ..] => inside = false,
            [key, ..] if inside => {
                if let Some(last) = stanzas.last_mut() {
                    match key {
                        "gateway" => last.gateway = Some(line.place.clone()),
                        "metric" => last.metric = true,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    stanzas.retain(|one| !one.metric && started.contains(&one.name));
    let mut found = Misuses::default();
    for (at, one) in stanzas.iter().enumerate() {
        let Some(place) = one.gateway.clone() else {
            continue;
        };
        let second = stanzas[..at].iter().any(|before| {
            before.gateway.is_some() && before.name != one.name && before.family == one.family
        });
        found.add("second_gateway", second, place);
    }
    found.note(g, "interface_line");
}

/// Reads the main file with the files that it includes; the last part of a path may contain a star.
fn read_all(g: &mut Gather<'_>) -> Vec<Line> {
    let mut all = Vec::new();
    for line in read(g, "interface_line", MAIN) {
        let words: Vec<String> = line.text.split_whitespace().map(str::to_owned).collect();
        all.push(line);
        let [how, target] = &words[..] else { continue };
        let more = match how.as_str() {
            "source-directory" => files(g, "interface_line", target.trim_end_matches('/'), ""),
            "source" => match target.rsplit_once('/') {
                Some((dir, name)) if name.contains('*') => {
                    let end = name.rsplit('*').next().unwrap_or_default();
                    files(g, "interface_line", dir, end)
                }
                _ => vec![target.clone()],
            },
            _ => continue,
        };
        for path in more {
            all.extend(read(g, "interface_line", &path));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn one_default_route_for_each_family() {
        let first = "source /etc/network/interfaces.d/*\nauto eth0\niface eth0 inet static\n \
                     address 192.0.2.2/24\n gateway 192.0.2.1\n";
        let more = "/etc/network/interfaces.d/eth1";
        for (text, expected) in [
            (
                "auto eth1\niface eth1 inet static\n gateway 10.0.0.1\n",
                vec!["second_gateway=true", "second_gateway=false"],
            ),
            (
                "auto eth1\niface eth1 inet static\n gateway 10.0.0.1\n metric 100\n",
                vec!["second_gateway=false"],
            ),
            (
                "auto eth1\niface eth1 inet6 static\n gateway fe80::1\n",
                vec!["second_gateway=false", "second_gateway=false"],
            ),
            (
                "iface eth1 inet static\n gateway 10.0.0.1\n",
                vec!["second_gateway=false"],
            ),
            (
                "auto eth1\niface eth1 inet static\n #gateway 10.0.0.1\n",
                vec!["second_gateway=false"],
            ),
        ] {
            let mut facts = found(&[(MAIN, first), (more, text)], collect);
            facts.sort();
            let mut expected = expected;
            expected.sort_unstable();
            assert_eq!(facts, expected, "{text}");
        }
    }
}
