//! File servers: TLS of ProFTPD and Pure-FTPd, anonymous uploads to Pure-FTPd, symbolic links of the rsync daemon, and
//! short options of tftpd.

use super::super::lines_of_files::{Line, exists, files, read};
use super::{Lines, bare, words};
use crate::gather::Gather;
use assay_model::FactPlace;
use std::collections::BTreeMap;

const PROFTPD: &str = "/etc/proftpd/proftpd.conf";
const PROFTPD_MORE: &str = "/etc/proftpd/conf.d";
const PROFTPD_MODULES: &str = "/etc/proftpd/modules.conf";
/// Each file of this directory contains the value of one setting (pure-ftpd-wrapper(8) of Debian).
const PUREFTPD: &str = "/etc/pure-ftpd/conf";
const PUREFTPD_FILE: &str = "/etc/pure-ftpd.conf";
const PASSWD: &str = "/etc/passwd";
const RSYNCD: &str = "/etc/rsyncd.conf";
const TFTPD: &str = "/etc/default/tftpd-hpa";
/// Values of TLSRequired that protect the password (ProFTPD, mod_tls).
const PASSWORD_PROTECTED: [&str; 9] = [
    "on",
    "yes",
    "true",
    "1",
    "ctrl",
    "ctrl+data",
    "ctrl+!data",
    "auth",
    "auth+data",
];

pub(super) fn collect(g: &mut Gather<'_>) {
    note_proftpd(g);
    note_pureftpd(g);
    note_rsyncd(g);
    note_tftpd(g);
}

/// Notes whether ProFTPD accepts passwords without TLS although TLS is set up, and old TLS versions.
fn note_proftpd(g: &mut Gather<'_>) {
    let mut all = vec![PROFTPD.to_owned(), PROFTPD_MODULES.to_owned()];
    all.extend(files(g, "proftpd_tls", PROFTPD_MORE, ".conf"));
    // Of each server, the settings of TLS: the main server, each virtual server, and the global section.
    let mut servers: BTreeMap<String, BTreeMap<String, (String, FactPlace)>> = BTreeMap::new();
    let (mut modules, mut loaded, mut lacking) = (false, false, false);
    for path in all {
        let (mut server, mut number) = (String::new(), 0);
        for line in read(g, "proftpd_tls", &path) {
            let words = words(&line);
            let first = words.first().map_or("", String::as_str);
            if first == "loadmodule" {
                modules = true;
                loaded |= words.get(1).is_some_and(|module| module == "mod_tls.c");
            } else if first == "include" {
                let text = bare(&line).unwrap_or_default();
                let target = text.split_whitespace().nth(1).unwrap_or_default();
                // Debian's directory conf.d is empty at first, and a copy may lack it.
                lacking |= !target.ends_with('/') && !target.contains('*') && !exists(g, target);
            } else if first.starts_with("<virtualhost") {
                number += 1;
                server = format!("{path} {number}");
            } else if first.starts_with("<global") {
                "global".clone_into(&mut server);
            } else if first.starts_with("</virtualhost") || first.starts_with("</global") {
                server.clear();
            } else if ["tlsengine", "tlsrequired", "tlsprotocol"].contains(&first) {
                let said = (words[1..].join(" "), line.place.clone());
                let of_server = servers.entry(server.clone()).or_default();
                of_server.insert(first.to_owned(), said);
            }
        }
    }
    // A server without LoadModule lines has its modules built in; a file that is missing may contain them.
    let unsure = lacking && !loaded;
    let loaded = loaded || !modules;
    let global = servers.get("global").cloned().unwrap_or_default();
    let mut clear = Lines::of("proftpd_tls", "clear");
    let mut old = Lines::of("proftpd_protocol", "old");
    for own in servers.values() {
        let get = |key: &str| own.get(key).or_else(|| global.get(key));
        let Some((engine, engine_place)) = own.get("tlsengine") else {
            continue;
        };
        if !["on", "yes", "true", "1"].contains(&engine.as_str()) {
            continue;
        }
        let required = get("tlsrequired");
        let protects = required.is_some_and(|(value, _)| {
            PASSWORD_PROTECTED.contains(&value.replace(' ', "").as_str())
        }) || required.is_some_and(|(value, _)| value == "auth+!data");
        let place = required
            .filter(|_| loaded)
            .map_or(engine_place, |(_, place)| place);
        let why = "a file that is included is missing, and may load mod_tls";
        match protects && unsure {
            true => clear.add_unknown(g, why, place),
            false => clear.add(g, !(protects && loaded), place),
        }
        match get("tlsprotocol") {
            Some((versions, place)) if unsure && has_old_version(versions) => {
                old.add_unknown(g, why, place);
            }
            Some((versions, place)) if loaded => old.add(g, has_old_version(versions), place),
            _ => {}
        }
    }
}

/// Whether a list of TLSProtocol contains a version below 1.2. `ALL -VERSION` removes versions.
fn has_old_version(list: &str) -> bool {
    let words: Vec<&str> = list
        .split([' ', ','])
        .filter(|word| !word.is_empty())
        .collect();
    let old = ["sslv3", "tlsv1", "tlsv1.1"];
    match words.first() {
        Some(&"all" | &"sslv23") => old.iter().skip(1).any(|version| {
            let removed = format!("-{version}");
            !words.contains(&removed.as_str())
        }),
        _ => words.iter().any(|word| old.contains(word)),
    }
}

fn note_pureftpd(g: &mut Gather<'_>) {
    let mut said: BTreeMap<&str, (String, FactPlace)> = BTreeMap::new();
    let keys = ["NoAnonymous", "AnonymousCantUpload", "TLS"];
    for key in keys {
        let path = format!("{PUREFTPD}/{key}");
        let lines = read(g, "pure_ftpd", &path);
        if let Some(line) = lines.iter().find(|line| !line.text.trim().is_empty()) {
            said.insert(
                key,
                (line.text.trim().to_ascii_lowercase(), line.place.clone()),
            );
        }
    }
    for line in read(g, "pure_ftpd", PUREFTPD_FILE) {
        let words = words(&line);
        let Some((name, value)) = words.first().zip(words.get(1)) else {
            continue;
        };
        if let Some(key) = keys.into_iter().find(|key| key.eq_ignore_ascii_case(name)) {
            said.insert(key, (value.clone(), line.place.clone()));
        }
    }
    let is_on = |key: &str| {
        said.get(key)
            .is_some_and(|(value, _)| ["yes", "1", "on", "true"].contains(&value.as_str()))
    };
    if let Some((_, place)) = said.get("NoAnonymous") {
        let writes = !is_on("NoAnonymous") && !is_on("AnonymousCantUpload");
        // Anonymous users have the rights of this account. Without it, their login fails.
        let has_account = read(g, "pure_ftpd", PASSWD)
            .iter()
            .any(|line| line.text.starts_with("ftp:") || line.text.starts_with("_ftp:"));
        Lines::of("pure_ftpd", "strangers_write").add(g, writes && has_account, place);
    }
    // 0 is the default: TLS is not set up.
    if let Some((value, place)) = said.get("TLS").filter(|(value, _)| value != "0") {
        Lines::of("pure_ftpd_tls", "clear").add(g, value == "1", place);
    }
}

/// Notes modules of the rsync daemon in which a client may place symbolic links that lead out of the module
/// (rsyncd.conf(5), munge symlinks).
fn note_rsyncd(g: &mut Gather<'_>) {
    let mut common: BTreeMap<String, Line> = BTreeMap::new();
    let mut modules: Vec<BTreeMap<String, Line>> = Vec::new();
    for line in read(g, "rsyncd_links", RSYNCD) {
        let Some(text) = bare(&line) else { continue };
        if text.starts_with('[') {
            modules.push(BTreeMap::new());
        } else if let Some((name, _)) = text.split_once('=') {
            let name: String = name.split_whitespace().collect::<String>().to_lowercase();
            modules.last_mut().unwrap_or(&mut common).insert(name, line);
        }
    }
    let mut found = Lines::of("rsyncd_links", "lead_out");
    for module in &modules {
        let get = |name: &str| module.get(name).or_else(|| common.get(name));
        let is_off = |name: &str| {
            get(name).is_some_and(|line| {
                let value = line.text.split_once('=').map(|(_, value)| value.trim());
                let value = value.unwrap_or_default().to_lowercase();
                ["no", "false", "off", "0"].contains(&value.as_str())
            })
        };
        if let Some(line) = get("mungesymlinks") {
            let wrong = is_off("mungesymlinks") && is_off("usechroot") && is_off("readonly");
            found.add(g, wrong, &line.place.clone());
        }
    }
}

/// Notes whether tftpd may create files, as short options say it: `-c`, also among others (tftpd(8)).
fn note_tftpd(g: &mut Gather<'_>) {
    let lines = read(g, "tftpd_option", TFTPD);
    let option = lines
        .iter()
        .rfind(|line| bare(line).is_some_and(|text| text.trim_start().starts_with("TFTP_OPTIONS")));
    let Some(line) = option else { return };
    let words = words(line);
    // Flags without an argument, before one with an argument.
    let creates = words.iter().skip(1).any(|word| {
        let flags = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        // The option alone is in `collectors::daemons`.
        flags.is_some_and(|flags| {
            flags != "c"
                && flags
                    .chars()
                    .take_while(|flag| "46clLprsv".contains(*flag))
                    .any(|flag| flag == 'c')
        })
    });
    Lines::of("tftpd_option", "creates").add(g, creates, &line.place);
}

#[cfg(test)]
mod tests {
    use super::super::holds;
    use super::*;

    const LOADED: (&str, &str) = (PROFTPD_MODULES, "LoadModule mod_tls.c\n");
    const OTHERS: (&str, &str) = (PROFTPD_MODULES, "LoadModule mod_ctrls.c\n");

    #[test]
    fn tls_of_proftpd() {
        for (modules, text, expected) in [
            (LOADED, "TLSEngine on\nTLSRequired on\n", ""),
            (LOADED, "TLSEngine on\nTLSRequired AUTH+data\n", ""),
            (LOADED, "TLSEngine off\nTLSRequired off\n", ""),
            (LOADED, "TLSEngine on\n", "proftpd_tls.1.clear 1"),
            (
                LOADED,
                "TLSEngine on\ntlsrequired data\n",
                "proftpd_tls.1.clear 2",
            ),
            (
                OTHERS,
                "<IfModule mod_tls.c>\nTLSEngine on\nTLSRequired on\n</IfModule>\n",
                "proftpd_tls.1.clear 2",
            ),
            (
                LOADED,
                "<Global>\nTLSRequired on\n</Global>\n<VirtualHost 192.0.2.1>\nTLSEngine on\n</VirtualHost>\n",
                "",
            ),
            (
                LOADED,
                "TLSEngine on\nTLSRequired on\nTLSProtocol ALL -SSLv3\n",
                "proftpd_protocol.1.old 3",
            ),
            (
                LOADED,
                "TLSEngine on\nTLSRequired on\nTLSProtocol ALL -SSLv3 -TLSv1 -TLSv1.1\n",
                "",
            ),
            (
                LOADED,
                "TLSEngine on\nTLSRequired on\nTLSProtocol TLSv1 TLSv1.2\n",
                "proftpd_protocol.1.old 3",
            ),
        ] {
            let files = [modules, ("/etc/proftpd/conf.d/tls.conf", text)];
            assert_eq!(holds(&files).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn other_servers_and_their_near_misses() {
        let anonymous = "/etc/pure-ftpd/conf/NoAnonymous";
        let uploads = "/etc/pure-ftpd/conf/AnonymousCantUpload";
        let account = (PASSWD, "ftp:x:110:65534::/srv/ftp:/usr/sbin/nologin\n");
        for (files, expected) in [
            (
                vec![(anonymous, "no\n"), account],
                "pure_ftpd.1.strangers_write 1",
            ),
            (vec![(anonymous, "no\n")], ""),
            (vec![(anonymous, "No\n"), (uploads, "yes\n"), account], ""),
            (vec![(anonymous, "yes\n"), account], ""),
            (vec![(PUREFTPD_FILE, "TLS  1\n")], "pure_ftpd_tls.1.clear 1"),
            (vec![(PUREFTPD_FILE, "TLS  0\n")], ""),
            (vec![("/etc/pure-ftpd/conf/TLS", "2\n")], ""),
            (
                vec![(
                    RSYNCD,
                    "use chroot = no\n[a]\nread only=0\nmungesymlinks = no\n",
                )],
                "rsyncd_links.1.lead_out 4",
            ),
            (
                vec![(RSYNCD, "use chroot = no\n[a]\nmunge symlinks = no\n")],
                "",
            ),
            (
                vec![(TFTPD, "TFTP_OPTIONS=\"-sc -u tftp\"\n")],
                "tftpd_option.1.creates 1",
            ),
            (vec![(TFTPD, "TFTP_OPTIONS=\"-s -u crew --secure\"\n")], ""),
        ] {
            assert_eq!(holds(&files).join(" "), expected, "{files:?}");
        }
    }
}
