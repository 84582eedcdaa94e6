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

/// Notes who may open the administration pages of CUPS.
fn note_cups(g: &mut Gather<'_>) {
    let lines = read(g, "cups", CUPS, &['#']);
    let beyond = lines.iter().any(|line| match line.first() {
        "port" => true,
        "listen" => line
            .rest()
            .any(|one| !one.starts_with('/') && !is_loopback(one)),
        _ => false,
    });
    let mut inside: Option<(bool, bool, Line)> = None;
    let mut number = 0;
    for line in &lines {
        let text = line.text.to_lowercase();
        if let Some(section) = text.strip_prefix("<location ") {
            let admin = section.trim_end_matches('>').trim().starts_with("/admin");
            inside = admin.then(|| (false, false, line.clone()));
        } else if text.starts_with("</location") {
            if let Some((allows, guarded, first)) = inside.take() {
                let open = allows && !guarded && beyond;
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
            *guarded |= matches!(line.first(), "require" | "authtype");
        }
    }
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
        assert_eq!(get(CUPS, &more, "cups.admin.open"), Some(true));
        assert_eq!(get(CUPS, &more, "cups.admin_2.open"), Some(false));
        let guarded = pages.replace("Allow all", "Allow all\nRequire user @SYSTEM");
        assert_eq!(get(CUPS, &guarded, "cups.admin.open"), Some(false));
    }
}
