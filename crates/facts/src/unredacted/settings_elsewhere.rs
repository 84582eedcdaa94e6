//! Collects settings of small servers outside of their usual files: further instances, included files, options in
//! units, `/etc/default` and `/etc/sysconfig`, and named lists. `collectors::daemons` reads the usual files.

mod php;

use super::lines_of_files::{Line, exists, files, note, read};
use crate::collectors::daemons::access_points;
use crate::collectors::daemons::data_servers::redis_is_open;
use crate::collectors::daemons::lines::{is_loopback, is_world};
use crate::collectors::daemons::nested::read_braces;
use crate::gather::{Gather, lossy};
use assay_model::{FactKind, FactPlace};
use std::collections::{BTreeMap, BTreeSet};

const SQUID: &str = "/etc/squid/squid.conf";
const MEMCACHED: [&str; 1] = ["/etc/sysconfig/memcached"];
const UNITS: [&str; 2] = ["/etc/systemd/system", "/lib/systemd/system"];
const HOSTAPD: &str = "/etc/default/hostapd";
/// Maximum number of files that one configuration includes.
const MOST: usize = 50;

pub(super) fn collect(g: &mut Gather<'_>) {
    redis(g);
    memcached(g);
    etcd(g);
    squid(g);
    bind(g);
    hostapd(g);
    php::collect(g);
}

/// Notes the settings of Redis and Valkey instances with other file names, and of main files that include other files.
fn redis(g: &mut Gather<'_>) {
    let mut all = vec!["/etc/redis.conf".to_owned()];
    for dir in ["/etc/redis", "/etc/valkey"] {
        all.extend(files(g, "redis_instance", dir, ".conf"));
    }
    let mut included = BTreeSet::new();
    let mut instances = Vec::new();
    all.retain(|path| exists(g, path));
    for path in all {
        let mut lines = Vec::new();
        follow(g, &path, &mut lines, &mut included);
        let usual = ["/etc/redis/redis.conf", "/etc/valkey/valkey.conf"].contains(&path.as_str());
        let includes = lines.iter().any(|line| {
            let words = words(line);
            words
                .first()
                .is_some_and(|word| word == "include" || word == "user")
        });
        instances.push((path, lines, !usual || includes));
    }
    instances.retain(|(path, ..)| !included.contains(path));
    for (number, (path, lines, judged)) in instances.iter().enumerate() {
        let last = |key: &str| {
            lines
                .iter()
                .rfind(|line| words(line).first().is_some_and(|word| word == key))
        };
        let split: Vec<Vec<String>> = lines.iter().map(words).collect();
        let split: Vec<Vec<&str>> = split
            .iter()
            .map(|words| words.iter().map(String::as_str).collect())
            .collect();
        let which = (number + 1).to_string();
        for key in ["enable-module-command", "enable-debug-command"] {
            if let Some(line) = last(key) {
                let by_all = words(line).get(1).is_some_and(|word| word == "yes");
                let bound = last("bind").map(words);
                let beyond =
                    bound.is_none_or(|bound| !bound[1..].iter().all(|one| is_loopback(one)));
                let properties = [(key_of(key), (by_all && beyond).into())];
                note(g, "redis_command", &which, &line.place, &properties);
            }
        }
        let deciding = last("protected-mode").or(last("bind"));
        if let Some(line) = deciding.filter(|_| *judged) {
            let open = redis_is_open(&split);
            // `collectors::daemons` reads the main file alone, and leaves the answer open where it includes others.
            // This fact replaces its own.
            let main = match path.as_str() {
                "/etc/redis/redis.conf" => "redis.redis.open",
                "/etc/valkey/valkey.conf" => "redis.valkey.open",
                _ => "",
            };
            let known = !main.is_empty();
            let lacks = |line: &&Line| {
                let words = words(line);
                let file = words.get(1).filter(|_| words[0] == "include");
                file.is_some_and(|file| !file.contains('*') && !exists(g, file))
            };
            match lines.iter().find(lacks).map(|line| line.place.clone()) {
                Some(place) if open => {
                    let fact = match known {
                        true => main.to_owned(),
                        false => format!("redis_instance.{which}.open"),
                    };
                    let why = "a file that is included is missing, and may ask for a password";
                    g.facts.unknown(fact, why, FactKind::Configured, place);
                    if !known {
                        g.about(["redis_instance", which.as_str()]);
                    }
                }
                _ if known => {
                    let place = line.place.clone();
                    g.facts.known(main, open, FactKind::Configured, place);
                }
                _ => {
                    let properties = [("open", open.into())];
                    note(g, "redis_instance", &which, &line.place, &properties);
                }
            }
        }
    }
}

/// Appends the lines of a Redis file and of its included files to `lines`, in the order in which they apply.
fn follow(g: &mut Gather<'_>, path: &str, lines: &mut Vec<Line>, included: &mut BTreeSet<String>) {
    for line in read(g, "redis_instance", path) {
        if let ["include", target] = words(&line).iter().map(String::as_str).collect::<Vec<_>>()[..]
        {
            for target in expand(g, target) {
                if included.len() < MOST && included.insert(target.clone()) {
                    follow(g, &target, lines, included);
                }
            }
        }
        // Accounts of a file of their own replace requirepass (redis.conf, aclfile).
        if let ["aclfile", target] = words(&line).iter().map(String::as_str).collect::<Vec<_>>()[..]
            && exists(g, target)
        {
            let accounts = read(g, "redis_instance", target);
            lines.retain(|line| words(line).first().is_none_or(|word| word != "requirepass"));
            lines.extend(accounts);
            continue;
        }
        lines.push(line);
    }
}

/// Returns the files that an include names. Its last part may contain stars.
fn expand(g: &mut Gather<'_>, target: &str) -> Vec<String> {
    if !target.contains('*') {
        return vec![target.to_owned()];
    }
    let Some((dir, pattern)) = target.rsplit_once('/') else {
        return Vec::new();
    };
    match pattern.split_once('*') {
        Some((start, end)) if !dir.contains('*') && !end.contains('*') => {
            let mut all = files(g, "redis_instance", dir, end);
            all.retain(|path| {
                path.rsplit('/')
                    .next()
                    .is_some_and(|name| name.starts_with(start))
            });
            all
        }
        _ => Vec::new(),
    }
}

fn key_of(name: &str) -> &'static str {
    match name {
        "enable-module-command" => "modules",
        _ => "debug",
    }
}

/// Returns the words of a line without quotation marks. A comment gives no words.
fn words(line: &Line) -> Vec<String> {
    let text = line.text.trim();
    if text.starts_with(['#', ';']) {
        return Vec::new();
    }
    text.split_whitespace()
        .map(|word| word.trim_matches(['"', '\'']).to_lowercase())
        .collect()
}

fn memcached(g: &mut Gather<'_>) {
    memcached_long(g);
    for path in MEMCACHED {
        let lines = read(g, "memcached_option", path);
        let Some(line) = lines
            .iter()
            .rfind(|line| line.text.trim().starts_with("OPTIONS="))
        else {
            continue;
        };
        let text = line
            .text
            .trim()
            .trim_start_matches("OPTIONS=")
            .trim_matches(['"', '\'']);
        let words: Vec<&str> = text.split_whitespace().collect();
        let after = |option: &str| {
            let at = words.iter().position(|word| word.starts_with(option))?;
            let rest = words[at].trim_start_matches(option).trim_start_matches('=');
            if rest.is_empty() {
                words.get(at + 1).copied()
            } else {
                Some(rest)
            }
        };
        let local = after("-l").is_some_and(|list| list.split(',').all(is_loopback))
            || after("-s").is_some();
        let open = !local && !words.contains(&"-S");
        let udp = open && after("-U").is_some_and(|port| port != "0");
        note(
            g,
            "memcached_option",
            "1",
            &line.place,
            &[("open", open.into()), ("udp", udp.into())],
        );
    }
}

/// Notes the long options of Debian's memcached.conf: `--listen` adds to `-l`.
fn memcached_long(g: &mut Gather<'_>) {
    let lines = read(g, "memcached_option", "/etc/memcached.conf");
    let starts = |start: &[&str]| {
        let mut all = lines.iter().map(|line| line.text.trim());
        all.any(|text| start.iter().any(|one| text.starts_with(one)))
    };
    let guarded = starts(&["-S", "--enable-sasl", "-s ", "-s/", "--unix-socket"]);
    let mut listens = lines
        .iter()
        .filter(|line| line.text.trim().starts_with("--listen"));
    let beyond = listens.find(|line| {
        let list = line.text.trim().trim_start_matches("--listen");
        let list = list.trim_start_matches(['=', ' ']);
        list.split(',').any(|address| !is_loopback(address.trim()))
    });
    if let Some(line) = beyond {
        let properties = [("open", (!guarded).into())];
        note(g, "memcached_option", "long", &line.place, &properties);
    }
}

/// Notes the options in systemd units that start etcd.
fn etcd(g: &mut Gather<'_>) {
    for dir in UNITS {
        let path = format!("{dir}/etcd.service");
        let lines = read(g, "etcd_unit", &path);
        let Some(line) = lines.iter().rfind(|line| {
            line.text.trim().starts_with("ExecStart=") && line.text.contains("listen-client-urls")
        }) else {
            continue;
        };
        let after = line
            .text
            .split("listen-client-urls")
            .nth(1)
            .unwrap_or_default();
        let urls = after
            .trim_start_matches(['=', ' ', '"'])
            .split_whitespace()
            .next()
            .unwrap_or_default();
        let mut plain = urls
            .trim_matches(['"', '\''])
            .split(',')
            .filter(|url| url.starts_with("http://"));
        let open = plain.any(|url| !is_loopback(url));
        note(g, "etcd_unit", "1", &line.place, &[("open", open.into())]);
        return;
    }
}

/// Notes whether Squid admits clients by a named list that contains the whole Internet.
fn squid(g: &mut Gather<'_>) {
    let mut lines = Vec::new();
    for line in read(g, "squid_list", SQUID) {
        let included = words(&line).first().is_some_and(|word| word == "include")
            && line.text.contains("/etc/squid/conf.d/");
        lines.push(line);
        if included {
            for path in files(g, "squid_list", "/etc/squid/conf.d", ".conf") {
                lines.extend(read(g, "squid_list", &path));
            }
        }
    }
    let all: Vec<(Vec<String>, FactPlace)> = lines
        .iter()
        .map(|line| (words(line), line.place.clone()))
        .collect();
    let mut worlds: BTreeSet<&str> = BTreeSet::new();
    for (words, _) in &all {
        if let [acl, name, kind, values @ ..] = &words[..]
            && acl == "acl"
            && kind == "src"
            && values.iter().any(|value| is_world(value))
        {
            worlds.insert(name);
        }
    }
    let mut ports = all
        .iter()
        .filter(|(words, _)| words.first().is_some_and(|word| word == "http_port"));
    let serves = ports.clone().next().is_none()
        || ports.any(|(words, _)| {
            !words.get(1).is_some_and(|address| is_loopback(address))
                && !words.iter().any(|word| word == "accel" || word == "vhost")
        });
    for (number, (words, place)) in all.iter().enumerate() {
        match &words[..] {
            [access, deny, who] if access == "http_access" && deny == "deny" && who == "all" => {
                return;
            }
            // Clients that are on no list of this machine were refused before.
            [access, deny, who]
                if access == "http_access"
                    && deny == "deny"
                    && who.starts_with('!')
                    && !who.ends_with("_ports") =>
            {
                return;
            }
            [access, allow, lists @ ..]
                if access == "http_access" && allow == "allow" && !lists.is_empty() =>
            {
                let named =
                    lists.iter().all(|list| worlds.contains(list.as_str())) && lists != ["all"];
                if named {
                    note(
                        g,
                        "squid_list",
                        &number.to_string(),
                        place,
                        &[("open", serves.into())],
                    );
                }
            }
            _ => {}
        }
    }
}

/// Maximum number of BIND files that are read.
const MOST_FILES: usize = 200;

/// Notes the address lists of BIND that refer to an `acl`, with the content of the `acl`, and lists in included files.
fn bind(g: &mut Gather<'_>) {
    const LISTS: [&str; 4] = [
        "allow-recursion",
        "allow-query-cache",
        "allow-transfer",
        "allow-update",
    ];
    let mut all: Vec<String> = Vec::new();
    for name in g.list("bind_list", "/etc/bind") {
        let path = format!("/etc/bind/{}", lossy(&name));
        if path.starts_with("/etc/bind/named.conf") && !path.ends_with('~') {
            all.push(path);
        }
    }
    all.push("/etc/named.conf".to_owned());
    let main = all.len();
    let mut statements = Vec::new();
    let mut at = 0;
    while let Some(path) = all.get(at).cloned() {
        let text = g.read("bind_list", &path).unwrap_or_default();
        for one in read_braces(&text) {
            if let [include, file] = &one.words[..]
                && include == "include"
                && file.starts_with('/')
                && !all.contains(file)
                && all.len() < MOST_FILES
            {
                all.push(file.clone());
            }
            statements.push((path.clone(), one));
        }
        at += 1;
    }
    let mut acls: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (_, one) in &statements {
        if let Some((_, head)) = one.within.last()
            && let [acl, name] = &head[..]
            && acl == "acl"
        {
            acls.entry(name.clone())
                .or_default()
                .extend(one.words.iter().cloned());
        }
    }
    let recursion = !statements
        .iter()
        .any(|(_, one)| one.words == ["recursion", "no"]);
    let mut number = 0;
    for (path, one) in &statements {
        let head = one.within.last().and_then(|(_, words)| words.first());
        let Some(list) = head.filter(|head| LISTS.contains(&head.as_str())) else {
            continue;
        };
        // The lists of the main files stand in `bind.list`.
        let included = all.iter().skip(main).any(|file| file == path);
        let named = one.words.first().and_then(|name| acls.get(name));
        let own = std::slice::from_ref(&one.words)
            .first()
            .filter(|_| included);
        let Some(members) = named.or(own) else {
            continue;
        };
        number += 1;
        let asked =
            recursion || !list.starts_with("allow-recursion") && !list.starts_with("allow-query");
        // The first member that fits counts, and `!` before a member leaves it out.
        let first = members
            .iter()
            .find(|one| is_world(one.trim_start_matches('!')));
        let open = first.is_some_and(|one| !one.starts_with('!')) && asked;
        let place = crate::collectors::daemons::lines::at_line(path, one.line);
        let properties = [("open", open.into()), ("list", list.as_str().into())];
        note(g, "bind_list", &number.to_string(), &place, &properties);
    }
}

/// Notes the networks in the file that Debian's hostapd service reads.
fn hostapd(g: &mut Gather<'_>) {
    let mut all = BTreeSet::new();
    for line in read(g, "hostapd_file", HOSTAPD) {
        if let Some(value) = line.text.trim().strip_prefix("DAEMON_CONF=") {
            let paths = value
                .trim_matches(['"', '\''])
                .split_whitespace()
                .map(str::to_owned);
            all.extend(
                paths.filter(|path| path.starts_with('/') && !path.starts_with("/etc/hostapd/")),
            );
        }
    }
    access_points::note_files(g, "hostapd_file", all);
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    fn holds(files: &[(&str, &str)]) -> Vec<String> {
        let host = files
            .iter()
            .fold(Recorded::new(), |host, (path, text)| host.file(path, *text));
        let mut g = Gather::new(&host);
        collect(&mut g);
        let holds = |key: &&String| g.facts.get(key) == Some(&true.into());
        g.facts.map.keys().filter(holds).cloned().collect()
    }

    #[test]
    fn instances_and_units() {
        let unit = "/etc/systemd/system/etcd.service";
        for (files, fact) in [
            (
                vec![("/etc/redis.conf", "bind *\nprotected-mode no\n")],
                Some("redis_instance.1.open"),
            ),
            (
                vec![("/etc/redis/a.conf", "bind 0.0.0.0\nprotected-mode yes\n")],
                None,
            ),
            (
                vec![
                    ("/etc/redis/redis.conf", "include /etc/b.conf\n"),
                    ("/etc/b.conf", "bind 0.0.0.0\nprotected-mode no\n"),
                ],
                Some("redis.redis.open"),
            ),
            (
                vec![
                    (
                        "/etc/redis/redis.conf",
                        "bind *\nprotected-mode no\nrequirepass x\naclfile /etc/redis/u.acl\n",
                    ),
                    ("/etc/redis/u.acl", "user default on nopass ~* +@all\n"),
                ],
                Some("redis.redis.open"),
            ),
            (
                vec![
                    (
                        "/etc/redis/redis.conf",
                        "bind *\nprotected-mode no\naclfile /etc/redis/u.acl\n",
                    ),
                    ("/etc/redis/u.acl", "user default off\n"),
                ],
                None,
            ),
            (
                vec![(
                    "/etc/redis/redis.conf",
                    "bind *\nrequirepass x\nenable-module-command yes\n",
                )],
                Some("redis_command.1.modules"),
            ),
            (
                vec![(
                    "/etc/redis/redis.conf",
                    "bind *\nrequirepass x\nenable-module-command local\n",
                )],
                None,
            ),
            (
                vec![(
                    "/etc/memcached.conf",
                    "-l 127.0.0.1\n--listen=10.0.0.5,::\n",
                )],
                Some("memcached_option.long.open"),
            ),
            (
                vec![("/etc/sysconfig/memcached", "OPTIONS=\"-l 0.0.0.0\"\n")],
                Some("memcached_option.1.open"),
            ),
            (
                vec![("/etc/sysconfig/memcached", "OPTIONS=\"-l 127.0.0.1,::1\"\n")],
                None,
            ),
            (
                vec![(
                    unit,
                    "ExecStart=/usr/bin/etcd \\\n --listen-client-urls=http://0.0.0.0:2379\n",
                )],
                Some("etcd_unit.1.open"),
            ),
            (
                vec![(
                    unit,
                    "ExecStart=/usr/bin/etcd --listen-client-urls http://127.0.0.1:2379\n",
                )],
                None,
            ),
        ] {
            assert_eq!(
                holds(&files),
                fact.into_iter().collect::<Vec<_>>(),
                "{files:?}"
            );
        }
    }

    #[test]
    fn lists_with_a_name() {
        for (path, text, fact) in [
            (
                SQUID,
                "acl us src 0.0.0.0/0\nhttp_access allow us\nhttp_access deny all\n",
                Some("squid_list.1.open"),
            ),
            (
                SQUID,
                "acl us src 10.0.0.0/8\nhttp_access allow us\nhttp_access deny all\n",
                None,
            ),
            (
                SQUID,
                "acl us src all\nhttp_access deny all\nhttp_access allow us\n",
                None,
            ),
            (
                SQUID,
                "acl us src all\nacl hours time 8:00-9:00\nhttp_access allow us hours\n",
                None,
            ),
            (
                "/etc/named.conf",
                "acl us { any; }; options { allow-recursion { us; }; };",
                Some("bind_list.1.open"),
            ),
            (
                "/etc/named.conf",
                "acl us { !192.0.2.1; any; }; options { allow-recursion { us; }; };",
                Some("bind_list.1.open"),
            ),
            (
                "/etc/named.conf",
                "acl us { !any; }; options { allow-recursion { us; }; };",
                None,
            ),
            (
                "/etc/named.conf",
                "acl us { any; }; options { recursion no; allow-recursion { us; }; };",
                None,
            ),
            (
                "/etc/named.conf",
                "acl us { localnets; }; options { allow-transfer { us; }; };",
                None,
            ),
        ] {
            assert_eq!(
                holds(&[(path, text)]),
                fact.into_iter().collect::<Vec<_>>(),
                "{text}"
            );
        }
    }
}
