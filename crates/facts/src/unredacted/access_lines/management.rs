//! Interfaces that manage a server and ask nobody who he is: OMAPI of the ISC DHCP server, the agent of Kea, the
//! administration of Prometheus, commands of Zabbix agents, and printers of CUPS.

use super::super::lines_of_files::{Line, exists, files, holds_enabled_units, is_loopback, read};
use super::{Lines, bare, words};
use crate::collectors::daemons::lines::at_line;
use crate::gather::{Gather, lossy};
use assay_model::FactPlace;
use serde_json::Value;

const DHCPD: [&str; 2] = ["/etc/dhcp/dhcpd.conf", "/etc/dhcp/dhcpd6.conf"];
const KEA: &str = "/etc/kea/kea-ctrl-agent.conf";
const PROMETHEUS: [&str; 2] = ["/etc/default/prometheus", "/etc/sysconfig/prometheus"];
/// Agents of Zabbix with the directories that their packages include.
const ZABBIX: [(&str, &str); 2] = [
    (
        "/etc/zabbix/zabbix_agentd.conf",
        "/etc/zabbix/zabbix_agentd.conf.d",
    ),
    (
        "/etc/zabbix/zabbix_agent2.conf",
        "/etc/zabbix/zabbix_agent2.d",
    ),
];
const CUPS: &str = "/etc/cups/cupsd.conf";
const BROWSED: &str = "/etc/cups/cups-browsed.conf";

pub(super) fn collect(g: &mut Gather<'_>) {
    note_dhcpd(g);
    note_kea(g);
    note_prometheus(g);
    note_zabbix(g);
    note_cups(g);
    note_browsed(g);
}

/// Notes a port of OMAPI without a key (dhcpd.conf(5), omapi-key).
fn note_dhcpd(g: &mut Gather<'_>) {
    let mut found = Lines::of("dhcpd", "omapi_open");
    for path in DHCPD {
        let lines = read(g, "dhcpd", path);
        let line_of = |key: &str| {
            lines
                .iter()
                .find(|line| words(line).first().is_some_and(|word| word.as_str() == key))
        };
        if let Some(line) = line_of("omapi-port") {
            found.add(g, line_of("omapi-key").is_none(), &line.place);
        }
    }
}

/// Replaces comments of Kea's JSON by blanks: `#`, `//`, and `/* */` outside of quotation marks.
pub(super) fn without_comments(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.chars().peekable();
    let (mut quoted, mut line, mut block) = (false, false, false);
    while let Some(letter) = rest.next() {
        let next = rest.peek().copied();
        if line || block {
            let ends = if line {
                letter == '\n'
            } else {
                letter == '*' && next == Some('/')
            };
            if ends && block {
                rest.next();
            }
            (line, block) = (line && !ends, block && !ends);
            out.push(if letter == '\n' { '\n' } else { ' ' });
            continue;
        }
        match (letter, next) {
            ('"', _) => quoted = !quoted,
            ('#', _) | ('/', Some('/')) if !quoted => line = true,
            ('/', Some('*')) if !quoted => block = true,
            _ => {}
        }
        out.push(if line || block { ' ' } else { letter });
    }
    out
}

/// Notes whether the agent of Kea takes commands from other machines without a password or a certificate.
fn note_kea(g: &mut Gather<'_>) {
    let Some(text) = g.read("kea_agent", KEA) else {
        return;
    };
    let Ok(all) = serde_json::from_str::<Value>(&without_comments(&text)) else {
        return;
    };
    let Some(agent) = all.get("Control-agent") else {
        return;
    };
    // The default address is 127.0.0.1 (Kea, Control Agent).
    let host = agent.get("http-host").and_then(Value::as_str);
    let beyond = host.is_some_and(|host| !is_loopback(host));
    let clients = agent.pointer("/authentication/clients");
    let asks = clients
        .and_then(Value::as_array)
        .is_some_and(|clients| !clients.is_empty());
    let certified = agent.get("trust-anchor").is_some()
        && agent.get("cert-required") != Some(&Value::Bool(false));
    let row = text
        .lines()
        .position(|line| line.contains("\"http-host\""))
        .map_or(1, |at| at + 1);
    Lines::of("kea_agent", "open").add(g, beyond && !asks && !certified, &at_line(KEA, row));
}

fn note_prometheus(g: &mut Gather<'_>) {
    let mut found = Lines::of("prometheus", "admin_open");
    for path in PROMETHEUS {
        for line in read(g, "prometheus", path) {
            let text = bare(&line).unwrap_or_default();
            let options: Vec<&str> = text
                .split(|letter: char| letter.is_whitespace() || "\"'=".contains(letter))
                .filter(|word| !word.is_empty())
                .collect();
            let last = |name: &str| options.iter().rposition(|word| *word == name);
            let (on, off) = (
                last("--web.enable-admin-api"),
                last("--no-web.enable-admin-api"),
            );
            let Some(on) = on else { continue };
            // Without the option, the address is 0.0.0.0:9090.
            let address = last("--web.listen-address").and_then(|at| options.get(at + 1));
            let beyond = address.is_none_or(|address| !is_loopback(address));
            let guarded = last("--web.config.file").is_some();
            let open = off.is_none_or(|off| off < on) && beyond && !guarded;
            found.add(g, open, &line.place);
        }
    }
}

/// Notes whether an agent of Zabbix runs every command. The first key rule that matches applies (Zabbix, Restricting
/// agent checks).
fn note_zabbix(g: &mut Gather<'_>) {
    let mut found = Lines::of("zabbix_agent", "runs_commands");
    for (main, dir) in ZABBIX {
        let mut lines: Vec<Line> = Vec::new();
        for line in read(g, "zabbix_agent", main) {
            let includes = bare(&line).is_some_and(|text| {
                let value = text.strip_prefix("Include=").map(str::trim);
                value.is_some_and(|value| value.trim_start_matches("./").starts_with(dir))
            });
            lines.push(line);
            if includes {
                for path in files(g, "zabbix_agent", dir, ".conf") {
                    lines.extend(read(g, "zabbix_agent", &path));
                }
            }
        }
        let rules = lines.iter().filter_map(|line| {
            let (name, value) = bare(line)?.split_once('=')?;
            let value = value.trim();
            let every = ["system.run[*]", "system.run[*", "*"].contains(&value);
            match name.trim() {
                "AllowKey" if every => Some((true, line)),
                "DenyKey" if every => Some((false, line)),
                "EnableRemoteCommands" => Some((value == "1", line)),
                _ => None,
            }
        });
        let first = rules.map(|(allows, line)| (allows, line.place.clone()));
        if let Some((allows, place)) = first.collect::<Vec<(bool, FactPlace)>>().first() {
            found.add(g, *allows, place);
        }
    }
}

/// Notes whether everybody may use the printers: the section `/` of cupsd.conf admits all clients.
fn note_cups(g: &mut Gather<'_>) {
    let lines = read(g, "cups_printers", CUPS);
    let beyond = lines.iter().any(|line| {
        let words = words(line);
        match words.first().map(String::as_str) {
            Some("port") => true,
            Some("listen") => words[1..].iter().any(|address| !is_loopback(address)),
            _ => false,
        }
    });
    let mut found = Lines::of("cups_printers", "for_all");
    let mut section: Option<(FactPlace, Vec<Vec<String>>)> = None;
    for line in &lines {
        let text = bare(line).unwrap_or_default().to_ascii_lowercase();
        if text.replace(' ', "") == "<location/>" {
            section = Some((line.place.clone(), Vec::new()));
        } else if text.starts_with("</location") {
            if let Some((place, inner)) = section.take() {
                found.add(g, beyond && admits_all(&inner), &place);
            }
        } else if let Some((_, inner)) = &mut section {
            inner.push(words(line));
        }
    }
}

/// Whether a section of cupsd.conf admits all clients without a sign-in (cupsd.conf(5), Order).
fn admits_all(lines: &[Vec<String>]) -> bool {
    let has = |name: &str| {
        let mut all = lines.iter();
        all.any(|words| words.first().is_some_and(|first| first == name))
    };
    let names_all = |name: &str| {
        lines.iter().any(|words| {
            words.first().is_some_and(|first| first == name)
                && words
                    .last()
                    .is_some_and(|who| ["all", "*", "0.0.0.0"].contains(&who.as_str()))
        })
    };
    let order = lines
        .iter()
        .rfind(|words| words.first().is_some_and(|first| first == "order"))
        .map(|words| words[1..].join(","))
        .unwrap_or_default();
    let asked = has("require") || has("authtype");
    let by_default = order.starts_with("deny") && !has("deny");
    !asked && (by_default || (names_all("allow") && !names_all("deny")))
}

/// Notes whether cups-browsed takes printers from every sender of a packet (CVE-2024-47176).
fn note_browsed(g: &mut Gather<'_>) {
    let lines = read(g, "cups_browsed", BROWSED);
    let last = lines.iter().rev().find_map(|line| {
        let words = words(line);
        let protocols = ["browseremoteprotocols", "browseprotocols"];
        let is = words
            .first()
            .is_some_and(|first| protocols.contains(&first.as_str()));
        is.then(|| (words, line.place.clone()))
    });
    if let Some((words, place)) = last {
        let takes = words[1..].iter().any(|word| word == "cups");
        let all: Vec<Vec<String>> = lines.iter().map(self::words).collect();
        let open = takes && !refuses_strangers(&all);
        let mut found = Lines::of("cups_browsed", "open");
        match starts_browsed(g) {
            Some(starts) => found.add(g, open && starts, &place),
            None if open => found.add_unknown(g, "which services start is not known", &place),
            None => found.add(g, false, &place),
        }
    }
}

/// Returns whether cups-browsed starts. Debian starts it, and Red Hat does not unless it is enabled
/// (90-default.preset). `None` for a copy of Red Hat's files without the links of units.
fn starts_browsed(g: &mut Gather<'_>) -> Option<bool> {
    const UNITS: &str = "/etc/systemd/system";
    if holds_enabled_units(g) {
        let wants = g.list("cups_browsed", UNITS);
        let mut dirs = wants.iter().map(|name| format!("{UNITS}/{}", lossy(name)));
        return Some(dirs.any(|dir| exists(g, &format!("{dir}/cups-browsed.service"))));
    }
    let release = g
        .read("cups_browsed", "/etc/os-release")
        .unwrap_or_default();
    let red_hat = release.lines().any(|line| {
        let (name, value) = line.split_once('=').unwrap_or_default();
        let mut words = value.trim_matches('"').split_whitespace();
        ["ID", "ID_LIKE"].contains(&name) && words.any(|word| ["rhel", "fedora"].contains(&word))
    });
    (!red_hat && !exists(g, "/etc/redhat-release")).then_some(true)
}

/// Returns whether cups-browsed takes printers only from the senders of a list (cups-browsed.conf(5), BrowseAllow,
/// BrowseDeny and BrowseOrder).
fn refuses_strangers(lines: &[Vec<String>]) -> bool {
    let has = |name: &str| {
        let mut all = lines.iter();
        all.any(|words| words.first().is_some_and(|first| first == name))
    };
    let names_all = |name: &str| {
        lines.iter().any(|words| {
            words.first().is_some_and(|first| first == name)
                && words
                    .last()
                    .is_some_and(|who| ["all", "0.0.0.0/0"].contains(&who.as_str()))
        })
    };
    let order = lines
        .iter()
        .rfind(|words| words.first().is_some_and(|first| first == "browseorder"))
        .map(|words| words[1..].join(","));
    // The second kind of list overrides the first.
    let deny_first = match order {
        Some(order) => order.starts_with("deny"),
        None => has("browsedeny") || !has("browseallow"),
    };
    match deny_first {
        true => names_all("browsedeny") && !names_all("browseallow"),
        false => names_all("browsedeny") || !names_all("browseallow"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::holds;
    use super::*;

    #[test]
    fn interfaces_and_their_near_misses() {
        let dhcpd = DHCPD[0];
        let prometheus = PROMETHEUS[0];
        let zabbix = ZABBIX[0].0;
        for (path, text, expected) in [
            (dhcpd, "omapi-port 7911;\n", "dhcpd.1.omapi_open 1"),
            (dhcpd, "omapi-port 7911;\nomapi-key k;\n", ""),
            (dhcpd, "#omapi-port 7911;\n", ""),
            (
                KEA,
                "{ // a\n\"Control-agent\": { \"http-host\": \"0.0.0.0\" } }\n",
                "kea_agent.1.open 2",
            ),
            (
                KEA,
                "{ \"Control-agent\": { \"http-port\": 8000 } } # default\n",
                "",
            ),
            (
                KEA,
                "{ \"Control-agent\": { \"http-host\": \"0.0.0.0\", \"authentication\": \
                 {\"clients\": [{\"user\": \"a\"}]} } }\n",
                "",
            ),
            (
                prometheus,
                "ARGS=\"--web.enable-admin-api\"\n",
                "prometheus.1.admin_open 1",
            ),
            (
                prometheus,
                "ARGS=\"--web.enable-admin-api --web.listen-address=127.0.0.1:9090\"\n",
                "",
            ),
            (
                prometheus,
                "ARGS=\"--web.enable-admin-api --no-web.enable-admin-api\"\n",
                "",
            ),
            (
                zabbix,
                "AllowKey=system.run[*]\nDenyKey=system.run[*]\n",
                "zabbix_agent.1.runs_commands 1",
            ),
            (
                zabbix,
                "DenyKey=system.run[*]\nAllowKey=system.run[*]\n",
                "",
            ),
            (zabbix, "AllowKey=system.run[uptime]\n", ""),
            (
                zabbix,
                "EnableRemoteCommands=1\n",
                "zabbix_agent.1.runs_commands 1",
            ),
            (
                CUPS,
                "Port 631\n<Location />\n Order deny,allow\n</Location>\n",
                "cups_printers.1.for_all 2",
            ),
            (
                CUPS,
                "Listen localhost:631\n<Location />\n Order deny,allow\n</Location>\n",
                "",
            ),
            (
                CUPS,
                "Port 631\n<Location />\n Order allow,deny\n Allow @LOCAL\n</Location>\n",
                "",
            ),
            (
                CUPS,
                "Port 631\n<Location />\n Order deny,allow\n Deny from all\n</Location>\n",
                "",
            ),
            (
                BROWSED,
                "BrowseRemoteProtocols DNSSD CUPS\n",
                "cups_browsed.1.open 1",
            ),
            (BROWSED, "BrowseRemoteProtocols dnssd\n", ""),
            (
                BROWSED,
                "BrowseRemoteProtocols cups\nBrowseAllow 192.0.2.0/24\n",
                "",
            ),
            (
                BROWSED,
                "BrowseRemoteProtocols cups\nBrowseAllow All\n",
                "cups_browsed.1.open 1",
            ),
            (
                BROWSED,
                "BrowseRemoteProtocols cups\nBrowseDeny 192.0.2.1\n",
                "cups_browsed.1.open 1",
            ),
            (
                BROWSED,
                "BrowseRemoteProtocols cups\nBrowseDeny all\nBrowseAllow 192.0.2.1\n",
                "",
            ),
            (
                BROWSED,
                "BrowseRemoteProtocols cups\nBrowseDeny 192.0.2.1\nBrowseAllow 192.0.2.2\n",
                "cups_browsed.1.open 1",
            ),
            (
                BROWSED,
                "BrowseRemoteProtocols cups\nBrowseOrder Allow,Deny\nBrowseDeny 192.0.2.1\n\
                 BrowseAllow 192.0.2.0/24\n",
                "",
            ),
        ] {
            assert_eq!(holds(&[(path, text)]).join(" "), expected, "{text}");
        }
    }
}
