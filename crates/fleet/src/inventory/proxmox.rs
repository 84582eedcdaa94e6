//! Lists nodes and guests of Proxmox VE with the program `pvesh` on one of the nodes.
//!
//! The formats come from the sources: `/cluster/resources` and `/cluster/status` of pve-manager (PVE/API2/Cluster.pm,
//! PVE/API2Tools.pm); `agent/network-get-interfaces` of qemu-server (PVE/API2/Qemu/Agent.pm), whose `result` comes from
//! the guest agent (`guest-network-get-interfaces`, qga/qapi-schema.json of QEMU); `interfaces` of pve-container
//! (PVE/API2/LXC.pm, `get_interfaces` of PVE/LXC.pm).

use super::Machine;
use crate::session::{SessionError, SessionFault, SshSession, check_name};
use assay_render::text::escape_line;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::Duration;

/// Prefix of the line that precedes each answer in the output of the node.
const MARK: &str = "assay-proxmox 1 ";
/// Maximum number of guests whose address is requested. The number is limited because each request starts the large
/// Perl program `pvesh`.
const MOST_ASKED: usize = 200;
/// Maximum size of one guest's answer in bytes, because the answer is untrusted. The size of all answers together is
/// limited too.
const MOST_OF_GUEST: usize = 256 << 10;
/// Time limit for the answer of one guest in seconds, because the agent of a guest may never answer.
const TIME_OF_GUEST: u64 = 15;
/// Reserved group names. Pools and guests cannot have these names as groups.
const OURS: [&str; 5] = ["node", "nodes", "guests", "qemu", "lxc"];

/// Requests from a node the list of nodes and guests, and the addresses of running guests.
pub(super) fn machines(
    session: &SshSession,
    stop: &mut dyn FnMut(Duration) -> bool,
) -> Result<Vec<Machine>, SessionError> {
    let no = |why: String| session.failed(SessionFault::Other, &why);
    let mut ask = |script: &str| -> Result<Answers, SessionError> {
        let sent = session.run(script, &mut *stop)?;
        Ok(sections(&String::from_utf8_lossy(&sent.bytes)))
    };
    let mut answers = ask(&format!(
        "{{ command -v pvesh >/dev/null || {{ echo 'there is no pvesh: it is no node of Proxmox VE' >&2; exit 1; }}
printf '{MARK}resources\\n'
pvesh get /cluster/resources --output-format json </dev/null || exit 1
printf '\\n{MARK}status\\n'
pvesh get /cluster/status --output-format json </dev/null || exit 1
exit 0; }}
"
    ))?;
    let all = read(&answers).map_err(no)?;
    let asked: Vec<&Resource> = all
        .iter()
        .filter(|one| one.is_guest() && one.runs())
        .collect();
    if !asked.is_empty() {
        // The remaining time is for the login.
        let time = session.deadline * 2 / 3;
        answers.extend(ask(&questions(&asked, time).map_err(no)?)?);
    }
    let user = session.host.rsplit_once('@').map(|(user, _)| user);
    understood(&all, &answers, user).map_err(no)
}

/// Requests to the node, each with its answer.
type Answers = Vec<(String, String)>;

/// Parses the machines from the answers.
pub(super) fn told(text: &str, user: Option<&str>) -> Result<Vec<Machine>, String> {
    let answers = sections(text);
    understood(&read(&answers)?, &answers, user)
}

fn understood(
    all: &[Resource],
    answers: &[(String, String)],
    user: Option<&str>,
) -> Result<Vec<Machine>, String> {
    let nodes = addresses_of_nodes(answer(answers, "status"))?;
    let address = |(what, text): &(String, String)| {
        let vmid: u64 = what.strip_prefix("guest ")?.parse().ok()?;
        Some((vmid, address_of_guest(text)?))
    };
    let guests: BTreeMap<u64, IpAddr> = answers.iter().filter_map(address).collect();
    listed(all, &nodes, &guests, user)
}

fn answer<'a>(answers: &'a [(String, String)], name: &str) -> &'a str {
    let found = answers.iter().find(|(what, _)| what == name);
    found.map_or("", |(_, text)| text.as_str())
}

/// Splits the output of the node into the requests and answers that follow the marks.
fn sections(text: &str) -> Answers {
    let mut found = Answers::new();
    for line in text.lines() {
        match (line.strip_prefix(MARK), found.last_mut()) {
            (Some(what), _) => found.push((what.trim().to_owned(), String::new())),
            (None, Some((_, text))) => {
                text.push_str(line);
                text.push('\n');
            }
            // Output of the login shell.
            (None, None) => {}
        }
    }
    found
}

/// An entry of `/cluster/resources` for a node or guest, with the fields that are used.
#[derive(Deserialize)]
struct Resource {
    #[serde(rename = "type")]
    kind: String,
    node: Option<String>,
    vmid: Option<u64>,
    name: Option<String>,
    status: Option<String>,
    template: Option<Value>,
    pool: Option<String>,
}

impl Resource {
    fn is_guest(&self) -> bool {
        ["qemu", "lxc"].contains(&self.kind.as_str())
    }

    /// Returns whether the machine can be checked: a node of the cluster, or a running guest.
    fn runs(&self) -> bool {
        let status = self.status.as_deref();
        match self.kind.as_str() {
            "node" => status == Some("online"),
            _ => self.is_guest() && status == Some("running") && !self.is_template(),
        }
    }

    fn is_template(&self) -> bool {
        match &self.template {
            Some(Value::Number(number)) => number.as_u64() != Some(0),
            Some(Value::Bool(yes)) => *yes,
            Some(Value::String(text)) => text != "0",
            _ => false,
        }
    }

    /// Returns a name that is readable and safe for ssh. A guest without a name, which Proxmox calls `VM 100`
    /// (PVE/QemuServer.pm), gets its number as name; so does a guest with an unsafe name.
    fn called(&self) -> String {
        let name = match self.is_guest() {
            true => &self.name,
            false => &self.node,
        };
        match (name, self.vmid) {
            (Some(name), Some(_)) if is_name(name) => name.clone(),
            (_, Some(_)) => self.numbered(),
            (name, None) => name.clone().unwrap_or_default(),
        }
    }

    /// Returns a unique name, which consists of the kind and the number of the guest.
    fn numbered(&self) -> String {
        format!("{}-{}", self.kind, self.vmid.unwrap_or_default())
    }
}

fn is_group(name: &str) -> bool {
    OURS.contains(&name) || name == "all" || name.starts_with("on-")
}

/// Returns whether a guest's name is safe, that is whether ssh looks it up as a host name. An address, `user@host`,
/// `ssh://host` or the number of another guest is unsafe, because it would refer to another machine.
fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    // `127.1` and `0x7f000001` are also addresses for getaddrinfo(3) (inet_aton(3)).
    let last = name.rsplit('.').next().unwrap_or_default();
    let hexadecimal = last.strip_prefix("0x").or(last.strip_prefix("0X"));
    let address = match hexadecimal {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()),
    };
    let number = ["qemu-", "lxc-"].iter().any(|kind| {
        let rest = name.strip_prefix(kind);
        rest.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
    });
    check_name(name).is_ok()
        && name.len() <= 200
        && name.chars().all(plain)
        && !is_group(name)
        && !address
        && !number
}

/// Assigns a unique name to each machine. Two guests can have the same name, but not the same number.
fn names(running: &[&Resource], pools: &BTreeSet<&str>) -> Vec<String> {
    let mut names: Vec<String> = running.iter().map(|one| one.called()).collect();
    let often = |names: &[String]| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for name in names {
            *counts.entry(name.clone()).or_default() += 1;
        }
        counts
    };
    let counts = often(&names);
    for (name, one) in names.iter_mut().zip(running) {
        if let (Some(vmid), true) = (one.vmid, counts[name.as_str()] > 1) {
            *name = format!("{name}-{vmid}");
        }
    }
    // A guest or pool may have exactly this name.
    let counts = often(&names);
    for (name, one) in names.iter_mut().zip(running) {
        if one.is_guest() && (counts[name.as_str()] > 1 || pools.contains(name.as_str())) {
            *name = one.numbered();
        }
    }
    names
}

fn read(answers: &[(String, String)]) -> Result<Vec<Resource>, String> {
    let (text, what) = (answer(answers, "resources"), "/cluster/resources");
    let all: Vec<Value> = serde_json::from_str(text.trim())
        .map_err(|error| format!("what pvesh says of {what} is no JSON array: {error}"))?;
    // Storage, pools and unknown types are not machines.
    let ours = all.into_iter().filter(|one| {
        let kind = one.get("type").and_then(Value::as_str);
        kind.is_some_and(|kind| ["node", "qemu", "lxc"].contains(&kind))
    });
    ours.map(|one| {
        serde_json::from_value(one).map_err(|error| format!("what pvesh says of {what}: {error}"))
    })
    .collect()
}

/// Returns the addresses of the nodes in a cluster. A node without a cluster has no entry.
fn addresses_of_nodes(text: &str) -> Result<BTreeMap<String, IpAddr>, String> {
    let all: Vec<Value> = serde_json::from_str(text.trim())
        .map_err(|error| format!("what pvesh says of /cluster/status is no JSON array: {error}"))?;
    let text = |one: &Value, key: &str| one.get(key).and_then(Value::as_str).map(str::to_owned);
    let nodes = all
        .iter()
        .filter(|one| text(one, "type").as_deref() == Some("node"));
    let found = nodes.filter_map(|one| Some((text(one, "name")?, text(one, "ip")?.parse().ok()?)));
    Ok(found.collect())
}

/// Builds a script that requests the addresses of these guests within `time`. The script contains nothing from the
/// node's output except validated names.
fn questions(guests: &[&Resource], time: Duration) -> Result<String, String> {
    let mut script = String::from("{ begun=$(date +%s)\n");
    for guest in guests.iter().take(MOST_ASKED) {
        let (Some(node), Some(vmid)) = (&guest.node, guest.vmid) else {
            continue;
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if node.is_empty() || node.starts_with('-') || !node.chars().all(plain) {
            return Err(format!("`{}` is no name of a node", escape_line(node)));
        }
        let what = match guest.kind.as_str() {
            "qemu" => "agent/network-get-interfaces",
            _ => "interfaces",
        };
        let (kind, time) = (&guest.kind, time.as_secs());
        let (most, seconds) = (MOST_OF_GUEST, TIME_OF_GUEST);
        let _ = write!(
            script,
            "[ $(($(date +%s) - begun)) -lt {time} ] || exit 0
printf '\\n{MARK}guest {vmid}\\n'
timeout {seconds} pvesh get /nodes/{node}/{kind}/{vmid}/{what} --output-format json </dev/null 2>/dev/null | head -c {most}
"
        );
    }
    script.push_str("exit 0; }\n");
    Ok(script)
}

/// Returns the first reachable address, preferring IPv4 to IPv6; `None` if there is no such address.
fn address_of_guest(text: &str) -> Option<IpAddr> {
    let answer: Value = serde_json::from_str(text.trim()).ok()?;
    // An agent's answer is in `result`; a container's answer is the array itself.
    let interfaces = answer.get("result").unwrap_or(&answer).as_array()?;
    let addresses = interfaces.iter().flat_map(|one| {
        let all = one.get("ip-addresses").and_then(Value::as_array);
        let each = all.into_iter().flatten();
        let each = each.filter_map(|one| one.get("ip-address")?.as_str());
        // Containers of Proxmox VE before 9 report only these fields, with the prefix length.
        let old = ["inet", "inet6"].into_iter();
        let old = old.filter_map(|key| one.get(key)?.as_str()?.split('/').next());
        each.chain(old)
    });
    let reached = addresses.filter_map(|one| {
        let address: IpAddr = one.parse().ok()?;
        let own = match address {
            IpAddr::V4(address) => address.is_link_local(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        };
        let nobody = address.is_loopback() || address.is_unspecified() || address.is_multicast();
        (!own && !nobody).then_some(address)
    });
    reached.min_by_key(IpAddr::is_ipv6)
}

fn listed(
    all: &[Resource],
    nodes: &BTreeMap<String, IpAddr>,
    guests: &BTreeMap<u64, IpAddr>,
    user: Option<&str>,
) -> Result<Vec<Machine>, String> {
    let running: Vec<&Resource> = all.iter().filter(|one| one.runs()).collect();
    let pools = all.iter().filter_map(|one| one.pool.as_deref()).collect();
    // A guest reports its own address. A guest that reports the address of another is not trusted.
    let mut places: BTreeMap<IpAddr, usize> = BTreeMap::new();
    for address in nodes.values().chain(guests.values()) {
        *places.entry(*address).or_default() += 1;
    }
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for (name, one) in names(&running, &pools).into_iter().zip(&running) {
        if !seen.insert(name.clone()) {
            return Err(format!(
                "pvesh tells of two machines that are `{}`",
                escape_line(&name)
            ));
        }
        let mut groups = BTreeSet::from([one.kind.clone()]);
        let address = match one.is_guest() {
            true => {
                groups.insert("guests".to_owned());
                groups.extend(one.node.as_ref().map(|node| format!("on-{node}")));
                groups.extend(one.pool.as_ref().map(|pool| match is_group(pool) {
                    true => format!("pool-{pool}"),
                    false => pool.clone(),
                }));
                // The user's ssh configuration determines the login name for a guest.
                let known = one.vmid.and_then(|vmid| guests.get(&vmid));
                let known = known.filter(|address| places.get(address) == Some(&1));
                known.map_or_else(|| name.clone(), ToString::to_string)
            }
            false => {
                groups.insert("nodes".to_owned());
                let place = nodes
                    .get(&name)
                    .map_or_else(|| name.clone(), ToString::to_string);
                user.map_or_else(|| place.clone(), |user| format!("{user}@{place}"))
            }
        };
        for text in [&name, &address] {
            check_name(text).map_err(|error| error.to_string())?;
        }
        found.push(Machine {
            address,
            groups,
            ..Machine::new(&name)
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
