//! Finds file servers to which anonymous clients may write: ProFTPD and the rsync daemon. `key_values` has the settings
//! of vsftpd and tftpd.

use super::cleaned_words::PROFTPD;
use super::lines::{Line, files, is_loopback, note, read};
use crate::gather::Gather;
use assay_model::FactPlace;
use std::collections::BTreeMap;

const RSYNCD: &str = "/etc/rsyncd.conf";

pub(super) fn collect(g: &mut Gather<'_>) {
    note_proftpd(g);
    note_rsyncd(g);
}

/// Notes whether anonymous users of ProFTPD may write, and whether root may log in, from the sections of its
/// configuration.
fn note_proftpd(g: &mut Gather<'_>) {
    let mut all = vec!["/etc/proftpd/proftpd.conf".to_owned()];
    all.extend(files(g, "proftpd", PROFTPD, &[".conf"]));
    let mut number = 0;
    // Anonymous sections that limit no writing, and whether a section around them may do so.
    let (mut unlimited, mut limited) = (Vec::new(), false);
    for path in all {
        let mut within: Vec<Vec<String>> = Vec::new();
        let mut anonymous: Option<FactPlace> = None;
        for line in read(g, "proftpd", &path, &['#']) {
            let text = line.text.to_lowercase();
            if text.starts_with("<anonymous") {
                anonymous = Some(line.place.clone());
            } else if text.starts_with("<limit") && limits_writing(&text) {
                limited |= !within.iter().any(|words| words[0] == "anonymous");
                anonymous = None;
            } else if text.starts_with("</anonymous") {
                unlimited.extend(anonymous.take());
            }
            if let Some(section) = text.strip_prefix('<') {
                match section.starts_with('/') {
                    true => drop(within.pop()),
                    false => within.push(
                        section
                            .trim_end_matches('>')
                            .split_whitespace()
                            .map(str::to_owned)
                            .collect(),
                    ),
                }
                continue;
            }
            let inside = |name: &str, of: &[&str]| {
                within.iter().any(|words| {
                    words[0] == name
                        && (of.is_empty() || words.iter().any(|one| of.contains(&&**one)))
                })
            };
            if inside("limit", &["write", "stor"]) && inside("anonymous", &[]) {
                number += 1;
                let allows = line.first() == "allowall"
                    || (line.first() == "allow" && line.rest().any(|word| word == "all"));
                let which = number.to_string();
                note(
                    g,
                    ("proftpd.limit", &which),
                    "strangers_write",
                    allows,
                    &line.place,
                );
            }
            if line.first() == "rootlogin" {
                let on = line
                    .rest()
                    .any(|word| matches!(word, "on" | "yes" | "true" | "1"));
                note(g, ("proftpd", "login"), "root", on, &line.place);
            }
        }
    }
    for place in unlimited {
        number += 1;
        let which = number.to_string();
        note(
            g,
            ("proftpd.limit", &which),
            "strangers_write",
            !limited,
            &place,
        );
    }
}

/// Whether the head of a `<Limit>` section names commands that write.
fn limits_writing(head: &str) -> bool {
    let mut words = head.trim_end_matches('>').split_whitespace().skip(1);
    words.any(|word| matches!(word, "write" | "stor" | "all"))
}

/// Notes the modules of the rsync daemon to which every client may write. Global settings apply to all modules.
fn note_rsyncd(g: &mut Gather<'_>) {
    let lines = read(g, "rsyncd", RSYNCD, &['#', ';']);
    let mut common: BTreeMap<String, Line> = BTreeMap::new();
    let mut modules: Vec<BTreeMap<String, Line>> = Vec::new();
    for line in lines {
        if line.text.starts_with('[') {
            modules.push(common.clone());
            continue;
        }
        let Some((name, _)) = line.text.split_once('=') else {
            continue;
        };
        // Blanks in names are ignored.
        let name: String = name.split_whitespace().collect::<String>().to_lowercase();
        modules.last_mut().unwrap_or(&mut common).insert(name, line);
    }
    let value = |line: &Line| {
        let value = line.text.split_once('=').map(|(_, value)| value.trim());
        value.unwrap_or_default().to_lowercase()
    };
    let local = common
        .get("address")
        .is_some_and(|line| is_loopback(&value(line)));
    for (number, module) in modules.iter().enumerate() {
        let Some(line) = module.get("readonly") else {
            continue;
        };
        let writable = matches!(value(line).as_str(), "no" | "false" | "0");
        // A list that names all hosts admits everybody.
        let admits = |line: &Line| {
            let list = value(line);
            let mut hosts = list.split([' ', ',']).filter(|host| !host.is_empty());
            hosts.any(|host| ["*", "0.0.0.0/0", "::/0"].contains(&host))
        };
        let named = module.get("hostsallow").is_some_and(|line| !admits(line));
        let guarded = module.contains_key("authusers") || named;
        let open = writable && !guarded && !local;
        let which = (number + 1).to_string();
        note(g, ("rsyncd.module", &which), "open", open, &line.place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    fn facts(path: &str, text: &str) -> assay_model::Facts {
        let host = Recorded::new().file(path, text);
        let mut g = Gather::new(&host);
        collect(&mut g);
        g.facts
    }

    #[test]
    fn modules_of_rsync() {
        let text = "uid = nobody\n[a]\npath = /a\nread only = no\n[b]\nread only=false\nauth users = x\n\
                    [c]\nread only = yes\n[d]\nread only = no\nhosts allow = *\n";
        let found = facts(RSYNCD, text);
        let open = |number: u32| found.get(&format!("rsyncd.module.{number}.open"));
        assert_eq!(open(1), Some(&true.into()));
        assert_eq!(open(2), Some(&false.into()));
        assert_eq!(open(3), Some(&false.into()));
        assert_eq!(open(4), Some(&true.into()));
    }

    #[test]
    fn sections_of_proftpd() {
        let text = "RootLogin on\n<Anonymous ~ftp>\n <Directory *>\n  <Limit WRITE>\n   AllowAll\n  </Limit>\n\
                    </Directory>\n</Anonymous>\n<Limit WRITE>\n AllowAll\n</Limit>\n";
        let found = facts("/etc/proftpd/proftpd.conf", text);
        assert_eq!(
            found.get("proftpd.limit.1.strangers_write"),
            Some(&true.into())
        );
        assert!(!found.map.contains_key("proftpd.limit.2.strangers_write"));
        assert_eq!(found.get("proftpd.login.root"), Some(&true.into()));
    }
}
