//! Finds packet filters that are configured but do not protect: rules that nothing loads at boot, IPv6 left open beside
//! a filter of IPv4, and front ends that accept everything.

use super::super::lines_of_files::{Line, exists, files, holds_enabled_units, read};
use super::Misuses;
use crate::gather::{Gather, lossy};
use assay_model::FactPlace;
use std::path::Path;

const UNITS: &str = "/etc/systemd/system";
const NFTABLES: &str = "/etc/nftables.conf";
/// Rules of IPv4 and IPv6 of Debian, Red Hat and Alpine.
const RULES: [(&str, &str); 3] = [
    (RULES_4, RULES_6),
    ("/etc/sysconfig/iptables", "/etc/sysconfig/ip6tables"),
    ("/etc/iptables/rules-save", "/etc/iptables/rules6-save"),
];
const RULES_4: &str = "/etc/iptables/rules.v4";
const RULES_6: &str = "/etc/iptables/rules.v6";
const ADDRESSES_6: &str = "/proc/net/if_inet6";
const UFW: &str = "/etc/ufw/ufw.conf";
const UFW_DEFAULTS: &str = "/etc/default/ufw";
const UFW_RULES: &str = "/etc/ufw/user.rules";
const FIREWALLD: &str = "/etc/firewalld/firewalld.conf";
const ZONES: &str = "/etc/firewalld/zones";

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut found = Misuses::default();
    note_nftables(g, &mut found);
    note_iptables(g, &mut found);
    note_ufw(g, &mut found);
    note_firewalld(g, &mut found);
    found.note(g, "filter_file");
}

/// Returns whether the machine starts a unit at boot.
fn is_enabled(g: &mut Gather<'_>, unit: &str) -> bool {
    let wants: Vec<String> = g
        .list("filter_file", UNITS)
        .iter()
        .map(|name| lossy(name))
        .filter(|name| name.ends_with(".wants") || name.ends_with(".requires"))
        .collect();
    wants.iter().any(|dir| {
        let names = g.host.list(Path::new(&format!("{UNITS}/{dir}")));
        names.is_ok_and(|names| names.iter().any(|name| lossy(name) == unit))
    })
}

fn is_comment(line: &Line) -> bool {
    line.text.trim_start().starts_with(['#', ';'])
}

/// Returns the last value of a setting `KEY=VALUE`, in lower case, with its place.
fn last(lines: &[Line], key: &str) -> Option<(String, FactPlace)> {
    lines.iter().rev().find_map(|line| {
        let (name, value) = line.text.trim().split_once('=')?;
        let value = value.split('#').next()?.trim().trim_matches(['"', '\'']);
        (name.trim() == key).then(|| (value.to_lowercase(), line.place.clone()))
    })
}

/// Reads the file of nftables with the files that it includes. A line of a file that is not there stays.
fn read_nftables(g: &mut Gather<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    for line in read(g, "filter_file", NFTABLES) {
        let bare = line.text.trim();
        let target = bare.strip_prefix("include ").map(|target| {
            let target = target
                .trim()
                .trim_end_matches(';')
                .trim_matches(['"', '\'']);
            match target.starts_with('/') {
                true => target.to_owned(),
                false => format!("/etc/{}", target.trim_start_matches("./")),
            }
        });
        let Some((dir, name)) = target.as_deref().and_then(|target| target.rsplit_once('/')) else {
            lines.push(line);
            continue;
        };
        let mut all = match name.split_once('*') {
            Some((start, end)) => {
                let mut all = files(g, "filter_file", dir, end);
                all.retain(|path| path.starts_with(&format!("{dir}/{start}")));
                all
            }
            None => vec![format!("{dir}/{name}")],
        };
        all.retain(|path| exists(g, path));
        if all.is_empty() {
            lines.push(line);
        }
        for path in all {
            lines.extend(read(g, "filter_file", &path));
        }
    }
    lines
}

/// Returns the words of a line of nftables, without a comment and the marks between statements.
fn words_of(line: &Line) -> Vec<&str> {
    let text = line.text.split('#').next().unwrap_or_default();
    let words = text.split([' ', '\t', ';', '{', '}', ',']);
    words.filter(|word| !word.is_empty()).collect()
}

/// Returns the place of an input chain that accepts what its rules do not name, although its rules accept single ports
/// or networks. `None` if an input chain drops, rejects or hands over packets.
fn accepting_chain(lines: &[Line]) -> Option<FactPlace> {
    const CLOSING: [&str; 7] = ["drop", "reject", "jump", "goto", "queue", "vmap", "include"];
    let mut input: Option<(usize, FactPlace)> = None;
    let (mut depth, mut accepts, mut place) = (0_usize, false, None);
    for line in lines.iter().filter(|line| !is_comment(line)) {
        let words = words_of(line);
        let opened = line.text.matches('{').count();
        let closed = line.text.matches('}').count();
        let after = (depth + opened).saturating_sub(closed);
        let is_hook = words.windows(2).any(|two| two == ["hook", "input"]);
        if is_hook {
            input = Some((after, line.place.clone()));
        }
        if let Some((_, hook)) = &input {
            if words.iter().any(|word| CLOSING.contains(word)) {
                return None;
            }
            let rule = words.contains(&"accept") && !is_hook && !words.starts_with(&["policy"]);
            if rule && words.len() > 1 {
                accepts = true;
                place = Some(hook.clone());
            }
        }
        depth = after;
        let whole = is_hook && opened > 0 && closed >= opened;
        if whole || input.as_ref().is_some_and(|(inner, _)| depth < *inner) {
            input = None;
        }
    }
    place.filter(|_| accepts)
}

/// Notes the file of nftables with rules that drop packets, if no unit loads it, and rules that drop nothing.
fn note_nftables(g: &mut Gather<'_>, found: &mut Misuses) {
    let lines = read_nftables(g);
    if let Some(place) = accepting_chain(&lines).filter(|_| !filters_elsewhere(g)) {
        found.add("accepts_all", true, place);
    }
    let drops = lines.iter().find(|line| {
        let mut words = line.text.split([' ', '\t', ';']);
        !is_comment(line) && words.any(|word| word == "drop" || word == "reject")
    });
    let Some(place) = drops.map(|line| line.place.clone()) else {
        return;
    };
    // A copy without units does not show what starts.
    if !holds_enabled_units(g) {
        return;
    }
    let started = starts_nftables(g);
    found.add("not_started", !started, place);
}

fn starts_nftables(g: &mut Gather<'_>) -> bool {
    is_enabled(g, "nftables.service")
        || loads_elsewhere(g, |text| text.contains("nft") && text.contains("-f"))
}

/// Returns whether another unit, an interface or a job has a line that loads rules.
fn loads_elsewhere(g: &mut Gather<'_>, loads: fn(&str) -> bool) -> bool {
    let mut all = vec![
        "/etc/network/interfaces".to_owned(),
        "/etc/rc.local".to_owned(),
        "/etc/crontab".to_owned(),
    ];
    for dir in [
        "/etc/network/interfaces.d",
        "/etc/network/if-pre-up.d",
        "/etc/network/if-up.d",
        "/etc/cron.d",
    ] {
        all.extend(files(g, "filter_file", dir, ""));
    }
    all.extend(files(g, "filter_file", UNITS, ".service"));
    all.iter().any(|path| {
        let lines = read(g, "filter_file", path);
        lines
            .iter()
            .any(|line| !is_comment(line) && loads(&line.text))
    })
}

/// Returns whether the machine has files of another packet filter than nftables.conf.
fn filters_elsewhere(g: &Gather<'_>) -> bool {
    let rules = RULES.iter().any(|(four, _)| exists(g, four));
    rules || exists(g, UFW) || exists(g, FIREWALLD)
}

/// Notes rules of iptables that drop nothing, and rules of IPv6 that drop nothing beside rules of IPv4 that do. IPv6
/// counts on a machine with a public address, and where the file for IPv6 accepts single ports.
fn note_iptables(g: &mut Gather<'_>, found: &mut Misuses) {
    for (path_4, path_6) in RULES {
        let four = read(g, "filter_file", path_4);
        // Rules that nothing loads protect nothing. A copy without units does not show what starts.
        let units = holds_enabled_units(g);
        if four.is_empty() || units && !starts_iptables(g) {
            continue;
        }
        if let Some(place) = accepting_rule(&four).filter(|_| !exists(g, UFW)) {
            found.add("accepts_all", true, place);
            continue;
        }
        let Some(place) = closing_line(&four) else {
            continue;
        };
        let six = read(g, "filter_file", path_6);
        let closed = closing_line(&six).is_some()
            || nftables_filters_6(g) && (!units || starts_nftables(g))
            || ufw_filters_6(g);
        if has_public_6(g) {
            found.add("open_6", !closed, place);
        } else if let Some(place) = accepting_rule(&six).filter(|_| !closed) {
            found.add("open_6", true, place);
        }
    }
}

/// Returns whether the machine has a public address of IPv6.
fn has_public_6(g: &mut Gather<'_>) -> bool {
    let addresses = read(g, "filter_file", ADDRESSES_6);
    addresses.iter().any(|line| {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        // The fourth number is the scope; addresses that begin with f are private.
        words.len() >= 6 && words[3] == "00" && !words[0].starts_with('f')
    })
}

/// Returns the place of a rule that makes the other rules of incoming packets void: one that accepts every packet
/// before any is dropped, or the last of rules that accept ports although the policy accepts all. Chains of the user
/// may drop packets, except those of fail2ban.
fn accepting_rule(lines: &[Line]) -> Option<FactPlace> {
    const HARMLESS: [&str; 6] = ["ACCEPT", "LOG", "NFLOG", "MARK", "RETURN", "CONNMARK"];
    let policy = lines
        .iter()
        .any(|line| line.text.starts_with(":INPUT DROP"));
    let (mut accepts, mut last, mut void) = (0, None, None);
    for line in lines {
        let text = line.text.trim();
        let text = match text.starts_with('[') {
            true => text.split_once(' ').map_or("", |(_, rest)| rest),
            false => text,
        };
        let mut words: Vec<&str> = text.split_whitespace().collect();
        if words.len() < 2 || words[0] != "-A" || words[1] != "INPUT" {
            continue;
        }
        let jump = words.iter().position(|word| ["-j", "-g"].contains(word));
        let target = jump.and_then(|at| words.get(at + 1)).copied().unwrap_or("");
        if target == "ACCEPT" {
            accepts += 1;
            // Rules for one network card are those of bridges and tunnels.
            if !words.contains(&"-i") {
                last = Some(line.place.clone());
            }
            if let Some(at) = words.windows(2).position(|two| two == ["-m", "comment"]) {
                words.truncate(at);
            } else {
                words.truncate(jump.unwrap_or(words.len()));
            }
            if words == ["-A", "INPUT"] && void.is_none() {
                void = Some(line.place.clone());
            }
        } else if !HARMLESS.contains(&target) && !target.starts_with("f2b-") {
            // What follows a rule for every packet is not reached.
            return void;
        }
    }
    match void {
        // A policy that accepts, and one rule that says the same, are no rules for single ports.
        Some(place) => Some(place).filter(|_| accepts > 1),
        None => last.filter(|_| !policy),
    }
}

fn starts_iptables(g: &mut Gather<'_>) -> bool {
    is_enabled(g, "netfilter-persistent.service")
        || is_enabled(g, "iptables.service")
        || loads_elsewhere(g, |text| {
            text.contains("rules.v4") || text.contains("netfilter-persistent")
        })
}

/// Returns whether a chain of nftables drops incoming packets of IPv6 by its policy. An included file that is missing
/// counts as filter.
fn nftables_filters_6(g: &mut Gather<'_>) -> bool {
    let lines = read_nftables(g);
    let (mut in_6, mut input) = (false, false);
    lines.iter().filter(|line| !is_comment(line)).any(|line| {
        let text = line.text.split_whitespace().collect::<Vec<_>>().join(" ");
        if text.starts_with("table ") || text.starts_with("add table ") {
            in_6 = text.contains("table inet ") || text.contains("table ip6 ");
        }
        if text.contains("hook ") {
            input = text.contains("hook input");
        }
        text.starts_with("include ") || in_6 && input && text.contains("policy drop")
    })
}

fn ufw_filters_6(g: &mut Gather<'_>) -> bool {
    let mut is_yes = |path: &str, key: &str| {
        let lines = read(g, "filter_file", path);
        last(&lines, key).is_some_and(|(value, _)| value == "yes")
    };
    is_yes(UFW, "ENABLED") && is_yes(UFW_DEFAULTS, "IPV6")
}

/// Returns the first line that drops incoming packets.
fn closing_line(lines: &[Line]) -> Option<FactPlace> {
    let closes = |line: &&Line| {
        let text = line.text.trim();
        text.starts_with(":INPUT DROP")
            || (text.starts_with("-A INPUT")
                && (text.contains("-j DROP") || text.contains("-j REJECT")))
    };
    lines.iter().find(closes).map(|line| line.place.clone())
}

fn note_ufw(g: &mut Gather<'_>, found: &mut Misuses) {
    let on = read(g, "filter_file", UFW);
    if last(&on, "ENABLED").is_none_or(|(value, _)| value != "yes") {
        return;
    }
    let defaults = read(g, "filter_file", UFW_DEFAULTS);
    let beside = RULES.iter().any(|(four, _)| exists(g, four));
    if let Some((value, place)) = last(&defaults, "IPV6").filter(|_| !beside)
        && has_public_6(g)
    {
        let open = value == "no" && !nftables_filters_6(g);
        found.add("open_6", open, place);
    }
    let Some((policy, place)) = last(&defaults, "DEFAULT_INPUT_POLICY") else {
        return;
    };
    let rules = read(g, "filter_file", UFW_RULES);
    let denies = rules
        .iter()
        .any(|line| line.text.starts_with("-A ufw-user-input") && !line.text.contains("-j ACCEPT"));
    let all = rules
        .iter()
        .find(|line| line.text.trim() == "-A ufw-user-input -j ACCEPT");
    match all {
        Some(line) if !denies => found.add("accepts_all", true, line.place.clone()),
        _ => found.add("accepts_all", policy == "accept" && !denies, place),
    }
}

fn note_firewalld(g: &mut Gather<'_>, found: &mut Misuses) {
    let lines = read(g, "filter_file", FIREWALLD);
    let Some((_, place)) = last(&lines, "DefaultZone") else {
        return;
    };
    // `last` returns small letters, but the names of zones may have others.
    let mut zones = lines
        .iter()
        .rev()
        .filter_map(|line| line.text.trim().strip_prefix("DefaultZone="));
    let zone = zones.next().unwrap_or_default().trim().to_owned();
    let own = read(g, "filter_file", &format!("{ZONES}/{zone}.xml"));
    let target = own.iter().find_map(|line| {
        let (_, rest) = line.text.split_once("target=\"")?;
        rest.split('"').next()
    });
    let accepts = match target {
        Some(target) => target == "ACCEPT",
        None => zone == "trusted",
    };
    let ports = own.iter().find(|line| {
        let bare = line.text.replace(' ', "");
        ["\"1-65535\"", "\"0-65535\""]
            .iter()
            .any(|range| bare.contains(&format!("<portport={range}")))
            && bare.contains("protocol=\"tcp\"")
    });
    match ports.filter(|_| !accepts) {
        Some(line) => found.add("accepts_all", true, line.place.clone()),
        None => found.add("accepts_all", accepts, place),
    }
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn rules_of_nftables() {
        let rules = (
            NFTABLES,
            "table inet filter {\n chain input {\n  policy drop;\n }\n}\n",
        );
        let other = (
            "/etc/systemd/system/multi-user.target.wants/cron.service",
            "",
        );
        let own = (
            "/etc/systemd/system/sysinit.target.wants/nftables.service",
            "",
        );
        let unit = (
            "/etc/systemd/system/fw.service",
            "[Service]\nExecStart=/usr/sbin/nft -f /etc/nftables.conf\n",
        );
        let stock = (
            NFTABLES,
            "table inet filter {\n chain input {\n  type filter hook input priority filter;\n }\n}\n",
        );
        let included = (
            NFTABLES,
            "flush ruleset\ninclude \"/etc/nftables.d/*.nft\"\n",
        );
        let part = (
            "/etc/nftables.d/a.nft",
            "table inet filter {\n chain input {\n  type filter hook input priority 0; policy accept;\n  \
             tcp dport { 22, 443 } accept\n }\n}\n",
        );
        let whole = (
            "/etc/nftables.d/a.nft",
            "table inet filter {\n chain input {\n  type filter hook input priority 0;\n  tcp dport 22 accept\n  \
             counter reject\n }\n}\n",
        );
        for (files, expected) in [
            (vec![rules, other], "not_started=true"),
            (vec![rules, other, own], "not_started=false"),
            (vec![rules, other, unit], "not_started=false"),
            (vec![rules, unit], ""),
            (vec![stock, other], ""),
            (vec![rules], ""),
            (vec![included, part], "accepts_all=true"),
            (vec![included, whole], ""),
            (vec![included, part, (UFW, "ENABLED=yes\n")], ""),
        ] {
            assert_eq!(found(&files, collect).join(" "), expected, "{files:?}");
        }
    }

    #[test]
    fn rules_of_iptables() {
        let four = (RULES_4, "*filter\n:INPUT DROP [0:0]\nCOMMIT\n");
        let open = (RULES_6, "*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n");
        let closed = (
            RULES_6,
            "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -j REJECT\nCOMMIT\n",
        );
        let public = (
            ADDRESSES_6,
            "20010db8000000000000000000000005 02 40 00 80     eth0\n",
        );
        let other = (
            "/etc/systemd/system/multi-user.target.wants/cron.service",
            "",
        );
        let persistent = (
            "/etc/systemd/system/multi-user.target.wants/netfilter-persistent.service",
            "",
        );
        let interface = (
            "/etc/network/interfaces",
            " pre-up iptables-restore < /etc/iptables/rules.v4\n",
        );
        let ports = (
            RULES_6,
            "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p tcp --dport 22 -j ACCEPT\nCOMMIT\n",
        );
        let all = (
            RULES_4,
            ":INPUT DROP [0:0]\n-A INPUT -j ACCEPT\n-A INPUT -p tcp --dport 22 -j ACCEPT\n",
        );
        let no_drop = (
            RULES_4,
            ":INPUT ACCEPT [0:0]\n-A INPUT -i lo -j ACCEPT\n-A INPUT -p tcp --dport 22 -j ACCEPT\n",
        );
        let chain = (
            RULES_4,
            ":INPUT ACCEPT [0:0]\n-A INPUT -i lo -j ACCEPT\n-A INPUT -j own\n",
        );
        let local = (
            ADDRESSES_6,
            "fe800000000000000000000000000005 02 40 20 80     eth0\n",
        );
        for (files, expected) in [
            (vec![four, open, public], "open_6=true"),
            (vec![four, public], "open_6=true"),
            (vec![four, closed, public], "open_6=false"),
            (vec![four, open, local], ""),
            (vec![open, public], ""),
            (vec![four, open, public, other], ""),
            (vec![four, open, public, persistent], "open_6=true"),
            (vec![four, open, public, other, interface], "open_6=true"),
            (vec![four, ports], "open_6=true"),
            (vec![all], "accepts_all=true"),
            (vec![no_drop], "accepts_all=true"),
            (vec![chain], ""),
        ] {
            assert_eq!(found(&files, collect).join(" "), expected, "{files:?}");
        }
    }

    #[test]
    fn other_filters_of_ipv6() {
        let four = (RULES_4, "*filter\n:INPUT DROP [0:0]\nCOMMIT\n");
        let public = (
            ADDRESSES_6,
            "20010db8000000000000000000000005 02 40 00 80     eth0\n",
        );
        let ufw = (UFW, "ENABLED=yes\n");
        let chain = "chain input {\n type filter hook input priority 0; policy drop;\n }\n}\n";
        let inet = format!("table inet filter {{\n {chain}");
        let only_4 = format!("table ip filter {{\n {chain}");
        let forward = inet.replace("hook input", "hook forward");
        for (file, expected) in [
            ((NFTABLES, &*inet), "open_6=false"),
            ((NFTABLES, &*only_4), "open_6=true"),
            ((NFTABLES, &*forward), "open_6=true"),
            ((UFW_DEFAULTS, "IPV6=yes\n"), "open_6=false"),
            ((UFW_DEFAULTS, "IPV6=no\n"), "open_6=true"),
        ] {
            let facts = found(&[four, public, ufw, file], collect);
            assert_eq!(facts.join(" "), expected, "{file:?}");
        }
    }

    #[test]
    fn front_ends() {
        let on = (UFW, "ENABLED=yes\n");
        let accept = (UFW_DEFAULTS, "DEFAULT_INPUT_POLICY=\"ACCEPT\"\n");
        let denies = (UFW_RULES, "-A ufw-user-input -p tcp --dport 25 -j DROP\n");
        for (files, expected) in [
            (vec![on, accept], "accepts_all=true"),
            (vec![on, accept, denies], "accepts_all=false"),
            (
                vec![on, (UFW_DEFAULTS, "DEFAULT_INPUT_POLICY=\"DROP\"\n")],
                "accepts_all=false",
            ),
            (
                vec![
                    on,
                    (UFW_DEFAULTS, "DEFAULT_INPUT_POLICY=\"DROP\"\n"),
                    (UFW_RULES, "-A ufw-user-input -j ACCEPT\n"),
                ],
                "accepts_all=true",
            ),
            (
                vec![
                    (FIREWALLD, "DefaultZone=public\n"),
                    (
                        "/etc/firewalld/zones/public.xml",
                        "<zone>\n<port port=\"1-65535\" protocol=\"tcp\"/>\n",
                    ),
                ],
                "accepts_all=true",
            ),
            (vec![(UFW, "ENABLED=no\n"), accept], ""),
            (
                vec![(FIREWALLD, "DefaultZone=trusted\n")],
                "accepts_all=true",
            ),
            (
                vec![(FIREWALLD, "DefaultZone=public\n")],
                "accepts_all=false",
            ),
            (
                vec![
                    (FIREWALLD, "DefaultZone=public\n"),
                    (
                        "/etc/firewalld/zones/public.xml",
                        "<zone target=\"ACCEPT\">\n",
                    ),
                ],
                "accepts_all=true",
            ),
        ] {
            assert_eq!(found(&files, collect).join(" "), expected, "{files:?}");
        }
    }
}
