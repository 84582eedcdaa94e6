//! Finds ways in which Exim relays mail for everybody, or accepts passwords without TLS. Reads Debian's macros and
//! authenticators, or the lists and the ACL of a configuration of the administrator's own.

use super::super::lines_of_files::{Line, exists, files, read};
use super::Misuses;
use crate::gather::Gather;
use assay_model::FactPlace;
use std::collections::BTreeMap;

/// Debian's settings, and the file that replaces Debian's generated configuration (exim4-config_files(5)).
const DEBIAN: &str = "/etc/exim4/update-exim4.conf.conf";
const OWN: [&str; 4] = [
    "/etc/exim4/exim4.conf",
    "/etc/exim/exim.conf",
    "/etc/exim.conf",
    "/usr/exim/configure",
];
/// Maximum depth of lists that name lists, and of files that include files.
const DEEPEST: usize = 8;

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut found = Misuses::default();
    match OWN.iter().find(|path| exists(g, path)) {
        Some(path) => {
            let lines = statements(read_included(g, path, 0));
            note_own(&lines, &mut found);
            note_authenticators(&lines, false, &mut found);
        }
        None if exists(g, DEBIAN) => {
            note_debian(g, &mut found);
            note_queue(g, &mut found);
        }
        None => {}
    }
    found.note(g, "exim.misuse");
}

/// Reads a file, and the lines of included files in their place (Exim, 6.4 "File inclusions in the configuration
/// file"). An include that cannot be read stays as a line.
fn read_included(g: &mut Gather<'_>, path: &str, depth: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    for line in read(g, "exim", path) {
        let text = line.text.trim();
        let (name, target) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        if ![".include", ".include_if_exists"].contains(&name) || depth >= DEEPEST {
            lines.push(line);
            continue;
        }
        let target = target.trim().trim_matches('"');
        let target = match (target.starts_with('/'), path.rsplit_once('/')) {
            (false, Some((dir, _))) => format!("{dir}/{target}"),
            _ => target.to_owned(),
        };
        match exists(g, &target) {
            true => lines.extend(read_included(g, &target, depth + 1)),
            false if name == ".include_if_exists" => {}
            false => lines.push(line),
        }
    }
    lines
}

/// Returns the lines without comments and blank lines.
fn statements(lines: Vec<Line>) -> Vec<Line> {
    let plain = |line: &Line| !line.text.trim().is_empty() && !line.text.trim().starts_with('#');
    lines.into_iter().filter(plain).collect()
}

/// Splits a list at its separator: a colon, or the letter after `<`.
fn items(list: &str) -> Vec<String> {
    let list = list.trim().trim_matches(['"', '\'']);
    let (separator, rest) = match list.strip_prefix('<') {
        Some(rest) => (
            rest.chars().next().unwrap_or(':'),
            rest.get(1..).unwrap_or_default(),
        ),
        None => (':', list),
    };
    // A doubled separator is part of an item, as in an IPv6 address.
    let doubled = separator.to_string().repeat(2);
    let rest = rest.replace(&doubled, "\u{0}");
    rest.split(separator)
        .map(|one| one.trim().replace('\u{0}', &separator.to_string()))
        .collect()
}

fn is_everybody(item: &str) -> bool {
    matches!(item, "*" | "0.0.0.0/0" | "::/0" | ":/0" | "0/0")
}

/// Returns the value of `NAME = value`.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (key, value) = text.trim().split_once('=')?;
    (key.trim() == name).then(|| value.trim_start_matches('=').trim())
}

/// Notes a service that never tries deferred mail again (/etc/default/exim4, QUEUERUNNER).
fn note_queue(g: &mut Gather<'_>, found: &mut Misuses) {
    for line in read(g, "exim", "/etc/default/exim4") {
        if let Some(value) = value(&line.text, "QUEUERUNNER") {
            let value = value.trim_matches(['"', '\'']);
            let never = value == "no" || value == "nodaemon";
            found.add("queue_never_runs", never, line.place.clone());
        }
    }
}

/// Notes Debian's macros: those of the split configuration are in conf.d/main, the others in exim4.conf.localmacros.
fn note_debian(g: &mut Gather<'_>, found: &mut Misuses) {
    let settings = statements(read(g, "exim", DEBIAN));
    // Without addresses, or with the address of this machine only, no stranger reaches Exim.
    let local = settings.iter().any(|line| {
        let addresses = value(&line.text, "dc_local_interfaces")
            .unwrap_or_default()
            .trim_matches(['"', '\'']);
        let mut all = addresses
            .split([';', ':', ' '])
            .filter(|one| !one.is_empty());
        !addresses.trim().is_empty() && all.all(|one| one.starts_with("127.") || one == "1")
    });
    if local {
        return;
    }
    let is_split = |line: &Line| {
        value(&line.text, "dc_use_split_config")
            .is_some_and(|value| value.trim_matches(['"', '\'']) == "true")
    };
    let split = settings.iter().any(is_split);
    let (paths, logins) = match split {
        true => (
            files(g, "exim", "/etc/exim4/conf.d/main", ""),
            files(g, "exim", "/etc/exim4/conf.d/auth", ""),
        ),
        false => (
            vec!["/etc/exim4/exim4.conf.localmacros".to_owned()],
            vec!["/etc/exim4/exim4.conf.template".to_owned()],
        ),
    };
    let mut lines = Vec::new();
    for path in paths {
        lines.extend(statements(read_included(g, &path, 0)));
    }
    let names = [
        ("dc_relay_domains", "relays_all_domains"),
        ("MAIN_RELAY_TO_DOMAINS", "relays_all_domains"),
        ("MAIN_RELAY_NETS", "relays_all_nets"),
    ];
    for line in settings.iter().chain(&lines) {
        for (name, property) in names {
            if let Some(list) = value(&line.text, name).filter(|list| !list.contains("DEBCONF")) {
                let all = items(list).iter().any(|one| is_everybody(one));
                found.add(property, all, line.place.clone());
            }
        }
    }
    let allowed = lines
        .iter()
        .any(|line| value(&line.text, "AUTH_SERVER_ALLOW_NOTLS_PASSWORDS").is_some());
    for path in logins {
        let lines = statements(read(g, "exim", &path));
        note_authenticators(&lines, allowed, found);
    }
}

/// Notes authenticators of the server that take the password itself and are also offered without TLS. `always`: a
/// macro switches the condition of Debian's authenticators off.
fn note_authenticators(lines: &[Line], always: bool, found: &mut Misuses) {
    let advertised = lines
        .iter()
        .find_map(|line| value(&line.text, "auth_advertise_hosts"));
    let included = |line: &Line| line.text.trim().starts_with(".include");
    if advertised.is_none() && lines.iter().any(included) {
        return;
    }
    // An empty list offers no authentication.
    let only_tls = advertised.is_some_and(|hosts| hosts.contains("tls") || hosts.trim().is_empty());
    let mut block: Option<(FactPlace, bool, bool)> = None;
    let mut blocks = Vec::new();
    for line in lines {
        let text = line.text.trim();
        let begins = text.ends_with(':') && !text.contains([' ', '=']);
        if begins || text.starts_with("begin ") {
            blocks.extend(block.take());
        }
        let plain = value(text, "public_name")
            .is_some_and(|name| ["PLAIN", "LOGIN"].contains(&name.to_ascii_uppercase().as_str()));
        match &mut block {
            _ if plain => block = Some((line.place.clone(), false, false)),
            Some((_, serves, limited)) => {
                *serves |=
                    text.starts_with("server_condition") || text.starts_with("server_socket");
                *limited |= text.starts_with("server_advertise_condition") && text.contains("tls");
            }
            None => {}
        }
    }
    blocks.extend(block);
    for (place, serves, limited) in blocks {
        if serves {
            found.add("cleartext_login", !only_tls && (always || !limited), place);
        }
    }
}

/// Conditions that may tell whether a recipient is in a domain of the server.
const DECIDES: [&str; 5] = ["domains", "recipients", "hosts", "acl", "condition"];

/// What a condition or a list gives for a client that Exim does not know, and a recipient in another domain.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Yes,
    No,
    Unknown,
}

/// The named lists of a configuration.
struct Lists(BTreeMap<String, String>);

impl Lists {
    /// Evaluates a list. The first item that matches decides.
    fn holds(&self, list: &str, depth: usize) -> Holds {
        if list.contains('$') || depth > DEEPEST {
            return Holds::Unknown;
        }
        for item in items(list) {
            let (not, bare) = match item.strip_prefix('!') {
                Some(bare) => (true, bare.trim()),
                None => (false, item.as_str()),
            };
            let matches = match bare.strip_prefix('+') {
                Some(name) => match self.0.get(name) {
                    Some(list) => self.holds(list, depth + 1),
                    None => Holds::Unknown,
                },
                None if is_everybody(bare) => Holds::Yes,
                None if bare.contains(';') || bare.starts_with('/') => Holds::Unknown,
                None => Holds::No,
            };
            match (matches, not) {
                (Holds::Yes, true) => return Holds::No,
                (Holds::Yes, false) => return Holds::Yes,
                (Holds::Unknown, _) => return Holds::Unknown,
                _ => {}
            }
        }
        Holds::No
    }

    fn condition(&self, name: &str, list: &str) -> Option<Holds> {
        let (not, name) = match name.strip_prefix('!') {
            Some(name) => (true, name.trim()),
            None => (false, name),
        };
        let holds = match name {
            "hosts" | "domains" | "local_parts" | "senders" | "sender_domains" => {
                self.holds(list, 0)
            }
            "authenticated" | "encrypted" => Holds::No,
            "verify" if list.starts_with("recipient") => Holds::Yes,
            "verify" | "acl" | "condition" | "dnslists" | "ratelimit" | "recipients" | "spam"
            | "malware" | "spf" => Holds::Unknown,
            _ => return None,
        };
        Some(match (holds, not) {
            (Holds::Yes, true) => Holds::No,
            (Holds::No, true) => Holds::Yes,
            (holds, _) => holds,
        })
    }
}

/// Notes whether the ACL for recipients accepts mail of an unknown client for another domain.
fn note_own(lines: &[Line], found: &mut Misuses) {
    let mut lists = BTreeMap::new();
    for line in lines {
        let text = line.text.trim();
        for kind in ["hostlist ", "domainlist ", "addresslist "] {
            if let Some((name, list)) = text
                .strip_prefix(kind)
                .and_then(|rest| rest.split_once('='))
            {
                lists.insert(name.trim().to_owned(), list.trim().to_owned());
            }
        }
    }
    let lists = Lists(lists);
    let Some(name) = lines
        .iter()
        .find_map(|line| value(&line.text, "acl_smtp_rcpt"))
    else {
        return;
    };
    let begin = format!("{name}:");
    let mut body = lines
        .iter()
        .skip_while(|line| line.text.trim() != begin)
        .skip(1)
        .peekable();
    let verbs = [
        "accept", "deny", "require", "drop", "defer", "warn", "discard",
    ];
    while let Some(line) = body.next() {
        let text = line.text.trim();
        let (verb, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        if !verbs.contains(&verb) {
            return;
        }
        let mut conditions = vec![rest.to_owned()];
        while let Some(next) = body.peek() {
            let text = next.text.trim();
            let first = text.split(char::is_whitespace).next().unwrap_or_default();
            let ends = verbs.contains(&first)
                || (text.ends_with(':') && !text.contains('='))
                || first == "begin";
            if ends {
                break;
            }
            conditions.push(text.to_owned());
            body.next();
        }
        let all: Vec<(&str, Holds)> = conditions
            .iter()
            .filter_map(|text| text.split_once('='))
            .filter_map(|(name, list)| Some((name, lists.condition(name.trim(), list.trim())?)))
            .collect();
        let has = |wanted: Holds| all.iter().any(|(_, holds)| *holds == wanted);
        let holds = match () {
            () if has(Holds::No) => Holds::No,
            () if has(Holds::Unknown) => Holds::Unknown,
            () => Holds::Yes,
        };
        // Such a statement may be the one that refuses other domains.
        let may_decide = all.iter().any(|(name, holds)| {
            let name = name.trim().trim_start_matches('!').trim();
            *holds == Holds::Unknown && DECIDES.contains(&name)
        });
        match (verb, holds) {
            ("accept", Holds::Yes) => {
                return found.add("relays_for_everybody", true, line.place.clone());
            }
            ("deny" | "drop" | "defer" | "discard", Holds::Yes) | ("require", Holds::No) => {
                return found.add("relays_for_everybody", false, line.place.clone());
            }
            ("accept", Holds::Unknown) => return,
            (_, Holds::Unknown) if verb != "warn" && may_decide => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    fn debian(split: bool, more: &[(&str, &str)]) -> Vec<String> {
        let text = format!("dc_relay_domains='example.org'\ndc_use_split_config='{split}'\n");
        let mut all = vec![(DEBIAN, text.as_str())];
        all.extend(more);
        found(&all, collect)
    }

    #[test]
    fn macros_of_debian() {
        let nets = (
            "/etc/exim4/conf.d/main/000_own",
            "MAIN_RELAY_NETS = 10.0.0.0/8 : 0.0.0.0/0\n",
        );
        assert_eq!(
            debian(true, &[nets]),
            ["relays_all_domains=false", "relays_all_nets=true"]
        );
        assert_eq!(debian(false, &[nets]), ["relays_all_domains=false"]);
        let all = found(&[(DEBIAN, "dc_relay_domains='example.net : *'\n")], collect);
        assert_eq!(all, ["relays_all_domains=true"]);
        let all = found(&[(DEBIAN, "dc_relay_domains='*.example.net'\n")], collect);
        assert_eq!(all, ["relays_all_domains=false"]);
        let local = "dc_local_interfaces='127.0.0.1 ; ::1'\ndc_relay_domains='*'\n";
        assert!(found(&[(DEBIAN, local)], collect).is_empty());
        let login = "plain_server:\n driver = plaintext\n public_name = PLAIN\n server_condition = x\n\
                     .ifndef AUTH_SERVER_ALLOW_NOTLS_PASSWORDS\n\
                     server_advertise_condition = ${if eq{$tls_in_cipher}{}{}{*}}\n.endif\n";
        let login = ("/etc/exim4/conf.d/auth/40_own", login);
        let clear = (
            "/etc/exim4/conf.d/main/000_own",
            "AUTH_SERVER_ALLOW_NOTLS_PASSWORDS = 1\n",
        );
        assert!(debian(true, &[login, clear]).contains(&"cleartext_login=true".to_owned()));
        assert!(debian(true, &[login]).contains(&"cleartext_login=false".to_owned()));
    }

    #[test]
    fn acls_and_their_near_misses() {
        for (acl, expected) in [
            (
                " accept hosts = : +relay_from_hosts\n accept domains = *\n",
                "true",
            ),
            (
                " accept hosts = : +relay_from_hosts\n accept domains = +local_domains\n deny message = no\n",
                "false",
            ),
            (
                " accept hosts = +near\n require domains = +local_domains\n accept\n",
                "true",
            ),
            (
                " accept authenticated = *\n require domains = +local_domains\n accept\n",
                "false",
            ),
            (" accept hosts = +far\n deny\n", "false"),
            (" deny dnslists = a.example\n accept\n", "true"),
            (" accept condition = ${if x}\n", ""),
            (" require domains = +looked_up\n accept\n", ""),
            (" deny !domains = +looked_up\n accept\n", ""),
            (" warn domains = +looked_up\n accept\n", "true"),
        ] {
            let text = format!(
                "domainlist local_domains = @\ndomainlist looked_up = lsearch;/etc/localdomains\n\
                 hostlist relay_from_hosts = localhost\nhostlist near = 10.0.0.0/8 : *\n\
                 hostlist far = ! *\nacl_smtp_rcpt = rcpt\nbegin acl\nrcpt:\n{acl}begin routers\n"
            );
            let all = found(&[(OWN[0], &text)], collect);
            let expected = match expected {
                "" => Vec::new(),
                value => vec![format!("relays_for_everybody={value}")],
            };
            assert_eq!(all, expected, "{acl}");
        }
    }

    #[test]
    fn hosts_to_which_logins_are_offered() {
        let login = "begin authenticators\nplain:\n driver = plaintext\n public_name = PLAIN\n \
                     server_condition = x\n";
        for (line, expected) in [
            ("", &["cleartext_login=true"][..]),
            ("auth_advertise_hosts = *\n", &["cleartext_login=true"]),
            ("auth_advertise_hosts =\n", &["cleartext_login=false"]),
            (
                "auth_advertise_hosts = ${if eq{$tls_in_cipher}{}{}{*}}\n",
                &["cleartext_login=false"],
            ),
            (".include /etc/exim/more\n", &[]),
        ] {
            let text = format!("{line}{login}");
            assert_eq!(found(&[(OWN[0], &text)], collect), expected, "{line}");
        }
    }

    /// Each file stands in the place of its `.include` line.
    #[test]
    fn included_files_count() {
        let main = |include: &str| {
            format!(
                "domainlist local_domains = @\n{include}\nacl_smtp_rcpt = c\nbegin acl\nc:\n \
                 accept hosts = +near\n require domains = +local_domains\n accept\n"
            )
        };
        let wide = ("/etc/exim4/lists", "hostlist near = *\n");
        let narrow = ("/etc/exim4/lists", "hostlist near = 10.0.0.0/8\n");
        for include in [".include /etc/exim4/lists", ".include_if_exists lists"] {
            let text = main(include);
            for (list, expected) in [(wide, "true"), (narrow, "false")] {
                assert_eq!(
                    found(&[(OWN[0], &text), list], collect),
                    [format!("relays_for_everybody={expected}")],
                    "{include}"
                );
            }
        }
    }
}
