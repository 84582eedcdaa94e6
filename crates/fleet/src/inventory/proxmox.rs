//! Nodes and guests of Proxmox VE, as `pvesh` on one of the nodes tells them.
//!
//! The forms are those of the sources: `/cluster/resources` and `/cluster/status` of pve-manager
//! (PVE/API2/Cluster.pm, PVE/API2Tools.pm), `agent/network-get-interfaces` of qemu-server (PVE/API2/Qemu/Agent.pm), whose
//! `result` is what the agent in the guest says (`guest-network-get-interfaces`, qga/qapi-schema.json of QEMU), and
//! `interfaces` of pve-container (PVE/API2/LXC.pm, `get_interfaces` of PVE/LXC.pm).

use super::Machine;
use crate::session::{Fault, Session, SessionError, check_name};
use assay_page::text::clean;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::Duration;

/// Begins the line before each answer.
const MARK: &str = "assay-proxmox 1 ";
/// Guests that are asked where they are: each costs a start of `pvesh`, which is a large Perl program.
const MOST_ASKED: usize = 200;
/// Groups that pools and guests may not be called, because they mean something else.
const OURS: [&str; 5] = ["node", "nodes", "guests", "qemu", "lxc"];

/// Asks a node which nodes and guests there are, and where those are that run.
pub(super) fn machines(
    session: &Session,
    stop: &mut dyn FnMut(Duration) -> bool,
) -> Result<Vec<Machine>, SessionError> {
    let no = |why: String| session.failed(Fault::Other, &why);
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
        // What is left is for the login.
        let time = session.deadline * 2 / 3;
        answers.extend(ask(&questions(&asked, time).map_err(no)?)?);
    }
    let user = session.host.rsplit_once('@').map(|(user, _)| user);
    understood(&all, &answers, user).map_err(no)
}

/// Answers with what was asked.
type Answers = Vec<(String, String)>;

/// The machines that answers tell of, as they come.
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

/// What stands behind each mark.
fn sections(text: &str) -> Answers {
    let mut found = Answers::new();
    for line in text.lines() {
        match (line.strip_prefix(MARK), found.last_mut()) {
            (Some(what), _) => found.push((what.trim().to_owned(), String::new())),
            (None, Some((_, text))) => {
                text.push_str(line);
                text.push('\n');
            }
            // What a login shell prints.
            (None, None) => {}
        }
    }
    found
}

/// A line of `/cluster/resources`: what is looked at of nodes and guests.
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

    /// A machine that can be asked: a node in the cluster, a guest that runs.
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

    /// What it is called, where ssh and people can use it. A guest without a name is called `VM 100` by Proxmox
    /// (PVE/QemuServer.pm), and a guest's owner may call it anything.
    fn called(&self) -> String {
        let name = match self.is_guest() {
            true => &self.name,
            false => &self.node,
        };
        match (name, self.vmid) {
            (Some(name), Some(_)) if check_name(name).is_ok() && !is_group(name) => name.clone(),
            (_, Some(vmid)) => format!("{}-{vmid}", self.kind),
            (name, None) => name.clone().unwrap_or_default(),
        }
    }
}

fn is_group(name: &str) -> bool {
    OURS.contains(&name) || name == "all" || name.starts_with("on-")
}

fn read(answers: &[(String, String)]) -> Result<Vec<Resource>, String> {
    let (text, what) = (answer(answers, "resources"), "/cluster/resources");
    let all: Vec<Value> = serde_json::from_str(text.trim())
        .map_err(|error| format!("what pvesh says of {what} is no JSON array: {error}"))?;
    // Storage, pools and whatever else there will be are none of ours, however they look.
    let ours = all.into_iter().filter(|one| {
        let kind = one.get("type").and_then(Value::as_str);
        kind.is_some_and(|kind| ["node", "qemu", "lxc"].contains(&kind))
    });
    ours.map(|one| {
        serde_json::from_value(one).map_err(|error| format!("what pvesh says of {what}: {error}"))
    })
    .collect()
}

/// Where the nodes of a cluster are; a node that is alone is not told of.
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

/// A script that asks where these guests are, for so long. Nothing of it is text of the other side but names that
/// were looked at.
fn questions(guests: &[&Resource], time: Duration) -> Result<String, String> {
    let mut script = String::from("{ begun=$(date +%s)\n");
    for guest in guests.iter().take(MOST_ASKED) {
        let (Some(node), Some(vmid)) = (&guest.node, guest.vmid) else {
            continue;
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if node.is_empty() || node.starts_with('-') || !node.chars().all(plain) {
            return Err(format!("`{}` is no name of a node", clean(node)));
        }
        let what = match guest.kind.as_str() {
            "qemu" => "agent/network-get-interfaces",
            _ => "interfaces",
        };
        let (kind, time) = (&guest.kind, time.as_secs());
        let _ = write!(
            script,
            "[ $(($(date +%s) - begun)) -lt {time} ] || exit 0
printf '\\n{MARK}guest {vmid}\\n'
pvesh get /nodes/{node}/{kind}/{vmid}/{what} --output-format json </dev/null 2>/dev/null
"
        );
    }
    script.push_str("exit 0; }\n");
    Ok(script)
}

/// The first address that others can reach, IPv4 before IPv6; none where nobody says any.
fn address_of_guest(text: &str) -> Option<IpAddr> {
    let answer: Value = serde_json::from_str(text.trim()).ok()?;
    // An agent's answer is in `result`; that of a container is the array itself.
    let interfaces = answer.get("result").unwrap_or(&answer).as_array()?;
    let addresses = interfaces.iter().flat_map(|one| {
        let all = one.get("ip-addresses").and_then(Value::as_array);
        let each = all.into_iter().flatten();
        let each = each.filter_map(|one| one.get("ip-address")?.as_str());
        // Containers of Proxmox VE before 9 say these alone, with the length of the prefix.
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
    let running = || all.iter().filter(|one| one.runs());
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    for one in running() {
        *names.entry(one.called()).or_default() += 1;
    }
    // A guest says itself where it is. One that names the address of another is not believed.
    let mut places: BTreeMap<IpAddr, usize> = BTreeMap::new();
    for address in nodes.values().chain(guests.values()) {
        *places.entry(*address).or_default() += 1;
    }
    let mut found = Vec::new();
    for one in running() {
        let name = match (one.called(), one.vmid) {
            // Two guests may have the same name; a number only one.
            (name, Some(vmid)) if names.get(&name).is_some_and(|count| *count > 1) => {
                format!("{name}-{vmid}")
            }
            (name, _) => name,
        };
        let mut groups = BTreeSet::from([one.kind.clone()]);
        let address = match one.is_guest() {
            true => {
                groups.insert("guests".to_owned());
                groups.extend(one.node.as_ref().map(|node| format!("on-{node}")));
                groups.extend(one.pool.as_ref().map(|pool| match is_group(pool) {
                    true => format!("pool-{pool}"),
                    false => pool.clone(),
                }));
                // Who logs in to a guest is the user's own configuration of ssh to say.
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
mod tests {
    use super::*;

    // Written after the sources that are named above, not recorded on a machine.
    const RESOURCES: &str = include_str!("../../fixtures/proxmox/resources.json");
    const STATUS: &str = include_str!("../../fixtures/proxmox/status.json");
    const AGENT: &str = include_str!("../../fixtures/proxmox/agent.json");
    const CONTAINER: &str = include_str!("../../fixtures/proxmox/container.json");

    fn whole(resources: &str) -> String {
        format!(
            "Welcome\n{MARK}resources\n{resources}\n{MARK}status\n{STATUS}\n{MARK}guest 100\n{AGENT}\n{MARK}guest 200\n{CONTAINER}"
        )
    }

    #[test]
    fn nodes_and_guests_that_run() {
        let found = told(&whole(RESOURCES), Some("root")).unwrap();
        let shown: Vec<(&str, &str)> = found
            .iter()
            .map(|one| (one.name.as_str(), one.address.as_str()))
            .collect();
        assert_eq!(
            shown,
            [
                ("web-100", "192.0.2.100"),
                ("web-101", "web-101"),
                ("qemu-103", "qemu-103"),
                ("lxc-200", "192.0.2.200"),
                ("pve1", "root@192.0.2.1"),
                ("pve2", "root@192.0.2.2"),
            ]
        );
        let groups = |at: usize| found[at].groups.iter().map(String::as_str);
        assert!(groups(0).eq(["guests", "on-pve1", "qemu", "shop"]));
        assert!(groups(3).eq(["guests", "lxc", "on-pve1", "pool-nodes"]));
        assert!(groups(4).eq(["node", "nodes"]));
        let all = read(&sections(&whole(RESOURCES))).unwrap();
        let asked: Vec<&Resource> = all
            .iter()
            .filter(|one| one.is_guest() && one.runs())
            .collect();
        let script = questions(&asked, Duration::from_secs(40)).unwrap();
        assert_eq!(script.matches("pvesh get").count(), 4);
        assert!(
            script.contains("get /nodes/pve1/lxc/200/interfaces "),
            "{script}"
        );
        assert!(script.contains("-lt 40 ]"), "{script}");
    }

    #[test]
    fn agents_that_say_nothing_useful() {
        for text in [
            "",
            "null",
            "QEMU guest agent is not running",
            r#"{"result":{"error":{"class":"Unsupported"}}}"#,
            r#"{"result":[{"name":"lo","ip-addresses":[{"ip-address":"127.0.0.1"}]},{"name":"x"}]}"#,
            r#"{"result":[{"ip-addresses":[{"ip-address":"fe80::1"},{"ip-address":"-oProxyCommand=x"}]}]}"#,
            r#"[{"name":"lo","inet":"127.0.0.1/8"},{"inet":7},{"inet":"-oProxyCommand=x/24"}]"#,
        ] {
            assert_eq!(address_of_guest(text), None, "{text}");
        }
        let six = r#"{"result":[{"ip-addresses":[{"ip-address":"2001:db8::7"}]}]}"#;
        assert_eq!(address_of_guest(six).unwrap().to_string(), "2001:db8::7");
        let old = r#"[{"name":"eth0","hwaddr":"bc:24:11:0:0:2","inet6":"2001:db8::8/64","inet":"192.0.2.8/24"}]"#;
        assert_eq!(address_of_guest(old).unwrap().to_string(), "192.0.2.8");
    }

    #[test]
    fn a_guest_is_not_believed_to_be_where_another_machine_is() {
        let says = |agent: &str| {
            let text = whole(RESOURCES).replace(AGENT, agent);
            let found = told(&text, None).unwrap();
            (found[0].address.clone(), found[3].address.clone())
        };
        let at = |address: &str| {
            format!(r#"{{"result":[{{"ip-addresses":[{{"ip-address":"{address}"}}]}}]}}"#)
        };
        let own = says(&at("192.0.2.7"));
        assert_eq!(own, ("192.0.2.7".to_owned(), "192.0.2.200".to_owned()));
        assert_eq!(says(&at("192.0.2.1")).0, "web-100", "that is a node");
        let both = says(&at("192.0.2.200"));
        assert_eq!(both, ("web-100".to_owned(), "lxc-200".to_owned()));
    }

    #[test]
    fn names_that_are_none() {
        let with = |kind: &str, node: &str, name: &str| {
            let line = serde_json::json!([{ "type": kind, "node": node, "vmid": 7, "name": name,
                "status": if kind == "node" { "online" } else { "running" } }]);
            told(
                &format!("{MARK}resources\n{line}\n{MARK}status\n[]\n"),
                None,
            )
        };
        // Whoever owns a guest may call it anything, and it is the number then.
        for name in [
            "-oProxyCommand=x",
            "a\u{1b}[2Jb",
            "VM 7",
            "a\nb",
            "",
            "nodes",
            "all",
            "on-pve1",
        ] {
            let found = with("qemu", "pve1", name).unwrap();
            assert_eq!(
                (found[0].name.as_str(), found[0].address.as_str()),
                ("qemu-7", "qemu-7"),
                "{name:?}"
            );
        }
        assert_eq!(
            with("qemu", "pve1", "<script>").unwrap()[0].name,
            "<script>"
        );
        let hostile = r#"[{"type":"node","status":"online","node":"-x"}]"#;
        for resources in [
            hostile,
            r#"[{"type":"node","status":"online"}]"#,
            "",
            "{}",
            "nothing",
            r#"[{"type":"qemu","vmid":"x"}]"#,
            &RESOURCES[..RESOURCES.len() / 2],
        ] {
            assert!(told(&whole(resources), None).is_err(), "{resources}");
        }
        for node in ["", "-x", "a b", "a;reboot", "a/../b", "a\nb", "$(x)"] {
            let guest = Resource {
                kind: "qemu".to_owned(),
                node: Some(node.to_owned()),
                vmid: Some(1),
                name: None,
                status: None,
                template: None,
                pool: None,
            };
            assert!(
                questions(&[&guest], Duration::from_secs(1)).is_err(),
                "{node}"
            );
        }
    }
}
