//! Collects which clients Squid serves, SNMP access, and access to the administration pages of CUPS.

use super::cleaned_words::SQUID;
use super::lines::{Line, files, is_loopback, is_world, note, read};
use crate::gather::Gather;

const SNMPD: &str = "/etc/snmp/snmpd.conf";
const CUPS: &str = "/etc/cups/cupsd.conf";

pub(super) fn collect(g: &mut Gather<'_>) {
    note_squid(g);
    note_snmpd(g);
    note_cups(g);
}

/// Notes whether Squid is an open proxy: whether the first rule that matches an unknown client allows the request.
fn note_squid(g: &mut Gather<'_>) {
    let mut lines = Vec::new();
    for line in read(g, "squid", "/etc/squid/squid.conf", &['#']) {
        let included = line.first() == "include" && line.text.contains("/etc/squid/conf.d/");
        lines.push(line);
        if included {
            for path in files(g, "squid", SQUID, &[".conf"]) {
                lines.extend(read(g, "squid", &path, &['#']));
            }
        }
    }
    let ports: Vec<&Line> = lines
        .iter()
        .filter(|line| matches!(line.first(), "http_port" | "https_port"))
        .collect();
    let serves = ports.is_empty()
        || ports.iter().any(|line| {
            let address = line.words.get(1).map_or("", String::as_str);
            !is_loopback(address) && !line.rest().any(|word| matches!(word, "accel" | "vhost"))
        });
    let mut guarded = false;
    for line in lines.iter().filter(|line| line.first() == "http_access") {
        let words: Vec<&str> = line.rest().collect();
        let place = &line.place;
        match words[..] {
            ["allow", "all", ref rest @ ..] if rest.iter().all(|one| one.starts_with('!')) => {
                return note(g, ("squid", "access"), "open", serves && !guarded, place);
            }
            ["deny", "all"] => return note(g, ("squid", "access"), "open", false, place),
            // A rule that denies clients outside of a list of addresses.
            ["deny", ref rest @ ..] if !rest.is_empty() => {
                let own = |word: &&str| word.starts_with('!') && !word.ends_with("_ports");
                guarded |= rest.iter().all(own);
            }
            _ => {}
        }
    }
}

fn note_snmpd(g: &mut Gather<'_>) {
    let lines = read(g, "snmp", SNMPD, &['#']);
    let mut addresses = lines
        .iter()
        .filter(|line| line.first() == "agentaddress")
        .flat_map(Line::rest)
        .peekable();
    let beyond = addresses.peek().is_none() || addresses.any(|one| !is_loopback(one));
    let mut number = 0;
    for line in &lines {
        let writes = line.first().starts_with("rwcommunity");
        if !writes && !line.first().starts_with("rocommunity") {
            continue;
        }
        number += 1;
        let which = number.to_string();
        let (name, source) = (line.words.get(1), line.words.get(2));
        let world = source.is_none_or(|source| is_world(source)) && beyond;
        let whole = line.words.len() <= 3;
        let known = name.is_some_and(|name| matches!(name.as_str(), "public" | "private"));
        let subject = ("snmp.community", which.as_str());
        note(g, subject, "writable", writes && world, &line.place);
        let read_by_all = !writes && world && whole && known;
        note(g, subject, "readable", read_by_all, &line.place);
    }
}

/// Notes who may open the administration pages of CUPS. Without a sign-in, /admin shows only forms where the policy of
/// the server asks for an account before it changes a printer.
fn note_cups(g: &mut Gather<'_>) {
    let lines = read(g, "cups", CUPS, &['#']);
    let beyond = lines.iter().any(|line| match line.first() {
        "port" => true,
        "listen" => line
            .rest()
            .any(|one| !one.starts_with('/') && !is_loopback(one)),
        _ => false,
    });
    let configuration_guarded = lines.iter().any(|line| {
        line.text
            .to_lowercase()
            .starts_with("<location /admin/conf")
    });
    let only_forms = policy_asks(&lines) && configuration_guarded;
    let mut inside: Option<(bool, bool, Line)> = None;
    let mut number = 0;
    for line in &lines {
        let text = line.text.to_lowercase();
        if let Some(section) = text.strip_prefix("<location ") {
            let admin = section.trim_end_matches('>').trim().starts_with("/admin");
            inside = admin.then(|| (false, false, line.clone()));
        } else if text.starts_with("</location") {
            if let Some((allows, guarded, first)) = inside.take() {
                let forms = only_forms && !first.text.contains("/admin/");
                let open = allows && !guarded && !forms && beyond;
                number += 1;
                // Each section has a subject of its own; the first keeps the old name.
                let which = match number {
                    1 => "admin".to_owned(),
                    number => format!("admin_{number}"),
                };
                note(g, ("cups", &which), "open", open, &first.place);
            }
        } else if let Some((allows, guarded, _)) = inside.as_mut() {
            *allows |= line.first() == "allow"
                && line
                    .rest()
                    .any(|word| matches!(word, "all" | "@local" | "any"));
            *guarded |= asks(line);
        }
    }
}

/// Returns whether a line of cupsd.conf demands a sign-in; `AuthType None` does not.
fn asks(line: &Line) -> bool {
    match line.first() {
        "require" => true,
        "authtype" => line.rest().any(|word| word != "none"),
        _ => false,
    }
}

/// Returns whether the default policy of cupsd.conf asks for an account before it adds a printer. Without a policy in
/// the file, cupsd creates one that does (cups, scheduler/conf.c).
fn policy_asks(lines: &[Line]) -> bool {
    let named = lines.iter().rfind(|line| line.first() == "defaultpolicy");
    let name = named
        .and_then(|line| line.rest().next())
        .unwrap_or("default");
    let (mut inside, mut found) = (false, false);
    // The operations of the innermost section, and whether a sign-in is demanded there.
    let mut limit: Option<(String, bool)> = None;
    let (mut own, mut all) = (None, None);
    for line in lines {
        let text = line.text.to_lowercase();
        if let Some(policy) = text.strip_prefix("<policy ") {
            inside = policy.trim_end_matches('>').trim() == name;
            found |= inside;
        } else if text.starts_with("</policy") {
            inside = false;
        } else if let Some(operations) = text.strip_prefix("<limit ") {
            limit = inside.then(|| (operations.to_owned(), false));
        } else if text.starts_with("</limit") {
            if let Some((operations, asked)) = limit.take() {
                let mut words = operations.trim_end_matches('>').split_whitespace();
                if words.any(|word| word == "cups-add-modify-printer") {
                    own = Some(asked);
                } else if operations.trim_end_matches('>').trim() == "all" {
                    all = Some(asked);
                }
            }
        } else if let Some((_, asked)) = limit.as_mut() {
            *asked |= asks(line);
        }
    }
    !found || own.or(all).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    fn get(path: &str, text: &str, fact: &str) -> Option<bool> {
        let host = Recorded::new().file(path, text);
        let mut g = Gather::new(&host);
        collect(&mut g);
        g.facts.get(fact).and_then(serde_json::Value::as_bool)
    }

    #[test]
    fn who_is_served() {
        let squid = "/etc/squid/squid.conf";
        for (text, open) in [
            (
                "http_access deny !Safe_ports\nhttp_access allow all\nhttp_port 3128\n",
                true,
            ),
            (
                "http_access allow localhost\nhttp_access deny all\nhttp_access allow all\n",
                false,
            ),
            ("http_access deny !staff\nhttp_access allow all\n", false),
            ("http_access allow all !bad\nhttp_access deny all\n", true),
            ("http_access allow all\nhttp_port 127.0.0.1:3128\n", false),
            ("http_access allow all\nhttp_port 80 accel vhost\n", false),
        ] {
            assert_eq!(get(squid, text, "squid.access.open"), Some(open), "{text}");
        }
        for (text, open) in [
            ("rwcommunity x\n", true),
            ("rwcommunity x 127.0.0.1\n", false),
            (
                "agentaddress 127.0.0.1,[::1]\nrwcommunity x default\n",
                false,
            ),
        ] {
            assert_eq!(
                get(SNMPD, text, "snmp.community.1.writable"),
                Some(open),
                "{text}"
            );
        }
        let pages = "Port 631\n<Location /admin>\n Order allow,deny\n Allow all\n</Location>\n";
        assert_eq!(get(CUPS, pages, "cups.admin.open"), Some(true));
        let more =
            format!("{pages}<Location /admin/conf>\n AuthType Default\n Allow all\n</Location>\n");
        assert_eq!(get(CUPS, &more, "cups.admin.open"), Some(false));
        assert_eq!(get(CUPS, &more, "cups.admin_2.open"), Some(false));
        let guarded = pages.replace("Allow all", "Allow all\nRequire user @SYSTEM");
        assert_eq!(get(CUPS, &guarded, "cups.admin.open"), Some(false));
        let no_guard = pages.replace("Allow all", "AuthType None\n Allow all");
        assert_eq!(get(CUPS, &no_guard, "cups.admin.open"), Some(true));
        let policy = |guard: &str| {
            format!(
                "{more}<Policy default>\n<Limit CUPS-Add-Modify-Printer>\n{guard}</Limit>\n</Policy>\n"
            )
        };
        let asked = policy("AuthType Default\nRequire user @SYSTEM\n");
        assert_eq!(get(CUPS, &asked, "cups.admin.open"), Some(false));
        assert_eq!(
            get(CUPS, &policy("Order deny,allow\n"), "cups.admin.open"),
            Some(true)
        );
    }
}
