//! Collects the exports of the NFS server, and which clients may mount them: /etc/exports and /etc/exports.d/*.exports
//! (exports(5)).

use super::lines_of_files::{exists, files, note, read};
use crate::gather::Gather;
use assay_model::FactKind;

const MAIN: &str = "/etc/exports";
const DIR: &str = "/etc/exports.d";

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut all = vec![MAIN.to_owned()];
    all.extend(files(g, "nfs.export", DIR, ".exports"));
    let mut number: usize = 0;
    let is_there = exists(g, MAIN);
    for path in all {
        for line in read(g, "nfs.export", &path) {
            let text = line.text.split('#').next().unwrap_or_default();
            let mut words = words(text).into_iter();
            let Some(exported) = words.next() else {
                continue;
            };
            let whole = exported == "/";
            // Default options of a line for clients without options (`-rw,sync`).
            let mut defaults = String::new();
            // Whether the word before is a client without options.
            let mut bare = false;
            for client in words {
                if let Some(options) = client.strip_prefix('-') {
                    defaults = options.to_owned();
                    continue;
                }
                number += 1;
                let after_bare = std::mem::replace(&mut bare, !client.contains('('));
                let client = Client::parse(&client, &defaults);
                // Without a client before, the options are those of everybody, as exports(5) has it.
                let cut_off = client.host.is_empty() && after_bare;
                let properties = [
                    ("root_kept", client.has("no_root_squash").into()),
                    ("nobody_is_root", client.nobody_is_root().into()),
                    ("whole", whole.into()),
                    ("world", client.is_world().into()),
                    ("writable", client.is_writable().into()),
                    ("blank_before_options", cut_off.into()),
                    (
                        "acknowledges_early",
                        (client.is_async() && client.is_writable()).into(),
                    ),
                ];
                note(
                    g,
                    "nfs.export",
                    &number.to_string(),
                    &line.place,
                    &properties,
                );
            }
        }
    }
    if is_there {
        g.facts
            .known("nfs.exports", number, FactKind::Configured, MAIN);
    }
    note_udp(g);
}

/// Notes whether the server answers by UDP, and whether it has only a few threads (nfs.conf(5), nfsd: udp, threads).
/// Version 4 needs TCP.
fn note_udp(g: &mut Gather<'_>) {
    let mut all = vec!["/etc/nfs.conf".to_owned()];
    all.extend(files(g, "nfs.server", "/etc/nfs.conf.d", ".conf"));
    let (mut udp, mut version_3, mut section) = (None, true, String::new());
    let mut threads = None;
    for path in all {
        for line in read(g, "nfs.server", &path) {
            let text = line.text.split('#').next().unwrap_or_default().trim();
            if let Some(name) = text.strip_prefix('[') {
                section = name.trim_end_matches(']').trim().to_ascii_lowercase();
            }
            let Some((name, value)) = text.split_once('=') else {
                continue;
            };
            let value = value.trim().to_ascii_lowercase();
            let on = ["y", "yes", "1", "t", "true", "on"].contains(&value.as_str());
            match (section.as_str(), name.trim().to_ascii_lowercase().as_str()) {
                ("nfsd", "udp") => udp = Some((on, line.place)),
                ("nfsd", "threads") => threads = Some((value, line.place)),
                ("nfsd", "vers3") => version_3 = on,
                _ => {}
            }
        }
    }
    if let Some((on, place)) = udp {
        let properties = [("udp", (on && version_3).into())];
        note(g, "nfs.server", "settings", &place, &properties);
    }
    for line in read(g, "nfs.server", "/etc/default/nfs-kernel-server") {
        if let Some(value) = line.text.trim().strip_prefix("RPCNFSDCOUNT=") {
            threads = Some((value.trim_matches('"').to_owned(), line.place));
        }
    }
    if let Some((value, place)) = threads
        && let Ok(count) = value.parse::<u32>()
    {
        let properties = [("few_threads", (1..4).contains(&count).into())];
        note(g, "nfs.server", "threads", &place, &properties);
    }
}

/// Splits text at blanks outside of quotation marks.
fn words(text: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut quoted = false;
    for letter in text.chars() {
        match letter {
            '"' => quoted = !quoted,
            ' ' | '\t' if !quoted => out.push(String::new()),
            other => {
                if let Some(last) = out.last_mut() {
                    last.push(other);
                }
            }
        }
    }
    out.retain(|word| !word.is_empty());
    out
}

struct Client {
    host: String,
    options: Vec<String>,
}

impl Client {
    fn parse(word: &str, defaults: &str) -> Self {
        let (host, options) = word.split_once('(').unwrap_or((word, ""));
        let both = defaults
            .split(',')
            .chain(options.trim_end_matches(')').split(','));
        Self {
            host: host.to_owned(),
            options: both.map(str::to_owned).collect(),
        }
    }

    fn has(&self, option: &str) -> bool {
        let opposite = option.strip_prefix("no_").unwrap_or(option);
        let last = self
            .options
            .iter()
            .rfind(|one| *one == option || *one == opposite);
        last.is_some_and(|last| last == option)
    }

    /// Whether the account that replaces others is root: with all_squash, every user of a client is then root here.
    fn nobody_is_root(&self) -> bool {
        let mut last = self.options.iter().rev();
        let nobody = last.find_map(|one| one.strip_prefix("anonuid="));
        nobody == Some("0")
    }

    fn is_world(&self) -> bool {
        let kerberos = self.options.iter().any(|one| one.starts_with("sec=krb5"));
        matches!(self.host.as_str(), "" | "*" | "0.0.0.0/0" | "::/0") && !kerberos
    }

    /// Whether the server answers before the data is on the disk.
    fn is_async(&self) -> bool {
        let mut last = self.options.iter().rev();
        last.find(|one| *one == "async" || *one == "sync")
            .is_some_and(|one| one == "async")
    }

    fn is_writable(&self) -> bool {
        self.options
            .iter()
            .rfind(|one| *one == "rw" || *one == "ro")
            .is_some_and(|one| one == "rw")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn options_that_lose_data() {
        let exports = "/srv -async,rw h1 h2(sync)\n/b h3(ro,async)\n";
        let host = Recorded::new()
            .file(MAIN, exports)
            .file("/etc/nfs.conf.d/a.conf", "[NFSD]\n UDP = y\n");
        let mut g = Gather::new(&host);
        collect(&mut g);
        let get = |key: &str| g.facts.get(key) == Some(&true.into());
        assert!(get("nfs.export.1.acknowledges_early"));
        assert!(!get("nfs.export.2.acknowledges_early"));
        assert!(!get("nfs.export.3.acknowledges_early"));
        assert!(get("nfs.server.settings.udp"));
    }

    #[test]
    fn clients_of_a_line() {
        let text = "# c\n/srv/a 192.0.2.0/24(rw,no_root_squash) *(ro)\n/srv/b host (rw)\n\
                    \"/srv/c d\" -rw,root_squash \\\n  h1 h2(ro)\n/pub (ro)\n";
        let host = Recorded::new().file(MAIN, text);
        let mut g = Gather::new(&host);
        collect(&mut g);
        let flags = |number: usize| {
            ["root_kept", "world", "writable", "blank_before_options"].map(|name| {
                g.facts.get(&format!("nfs.export.{number}.{name}")) == Some(&true.into())
            })
        };
        assert_eq!(flags(1), [true, false, true, false]);
        assert_eq!(flags(2), [false, true, false, false]);
        assert_eq!(flags(3), [false, false, false, false]);
        assert_eq!(flags(4), [false, true, true, true]);
        assert_eq!(flags(5), [false, false, true, false]);
        assert_eq!(flags(6), [false, false, false, false]);
        assert_eq!(flags(7), [false, true, false, false]);
        assert_eq!(g.facts.map["nfs.export.5.world"].place.line(), Some(4));
    }
}
