//! Parses the output of `ansible-inventory --list`, which contains groups with their machines, and variables of each
//! machine.

use super::Machine;
use crate::session::check_name;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the machines with their groups. Does not read secrets among the variables.
pub(super) fn machines(text: &str) -> Result<Vec<Machine>, String> {
    let all: Map<String, Value> = serde_json::from_str(text).map_err(|error| {
        format!("not what `ansible-inventory --list` prints, which is a JSON object: {error}")
    })?;
    let mut groups: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for group in all.keys().filter(|name| *name != "_meta") {
        for host in hosts(&all, group, &mut BTreeSet::new()) {
            groups.entry(host).or_default().insert(group.clone());
        }
    }
    let variables = all.get("_meta").and_then(|meta| meta.get("hostvars"));
    if let Some(Value::Object(known)) = variables {
        for name in known.keys() {
            groups.entry(name.clone()).or_default();
        }
    }
    let mut found = Vec::new();
    for (name, mut groups) in groups {
        let said = |keys: [&str; 2]| {
            let own = variables?.get(&name)?;
            keys.iter()
                .find_map(|key| own.get(*key))
                .map(|value| match value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                })
        };
        let host = said(["ansible_host", "ansible_ssh_host"]);
        let user = said(["ansible_user", "ansible_ssh_user"]);
        let port = said(["ansible_port", "ansible_ssh_port"]);
        let become_root = said(["ansible_become", "ansible_sudo"]);
        let place = host.unwrap_or_else(|| name.clone());
        let who = user.map_or_else(String::new, |user| format!("{user}@"));
        let address = match port {
            Some(port) if place.contains(':') => format!("ssh://{who}[{place}]:{port}"),
            Some(port) => format!("ssh://{who}{place}:{port}"),
            None => format!("{who}{place}"),
        };
        for text in [&name, &address] {
            check_name(text).map_err(|error| error.to_string())?;
        }
        // Every machine is in these groups.
        groups.remove("all");
        groups.remove("ungrouped");
        found.push(Machine {
            address,
            groups,
            sudo: become_root.map(|said| ["true", "True", "yes", "1"].contains(&said.as_str())),
            ..Machine::new(&name)
        });
    }
    Ok(found)
}

/// Returns the machines of a group and of its subgroups. Visits each group once, even if groups form a cycle.
fn hosts(all: &Map<String, Value>, group: &str, seen: &mut BTreeSet<String>) -> BTreeSet<String> {
    if !seen.insert(group.to_owned()) {
        return BTreeSet::new();
    }
    let texts = |key: &str| -> Vec<String> {
        let list = all.get(group).and_then(|group| group.get(key));
        let list = list.and_then(Value::as_array).into_iter().flatten();
        list.filter_map(|one| one.as_str().map(str::to_owned))
            .collect()
    };
    let mut found: BTreeSet<String> = texts("hosts").into_iter().collect();
    for child in texts("children") {
        found.extend(hosts(all, &child, seen));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shortened output of ansible-core 2.14.
    const TEXT: &str = r#"{
    "_meta": {"hostvars": {"web1": {"ansible_host": "10.0.0.1", "ansible_port": 2222, "ansible_user": "root",
        "ansible_password": "hunter2", "ansible_become": true}}},
    "all": {"children": ["ungrouped", "web"]},
    "ungrouped": {"hosts": ["mail"]},
    "web": {"children": ["inner"]},
    "inner": {"hosts": ["web1", "web2"], "children": ["web"]}}"#;

    #[test]
    fn groups_within_groups_and_where_machines_are() {
        let found = machines(TEXT).unwrap();
        let names: Vec<&str> = found.iter().map(|machine| machine.name.as_str()).collect();
        assert_eq!(names, ["mail", "web1", "web2"]);
        assert_eq!(found[1].address, "ssh://root@10.0.0.1:2222");
        assert_eq!(found[1].sudo, Some(true));
        assert!(found[2].groups.contains("web") && found[2].groups.contains("inner"));
        assert!(found[0].groups.is_empty());
        assert!(!format!("{found:?}").contains("hunter2"));
        assert!(machines("[]").is_err());
        assert!(machines(r#"{"web":{"hosts":["-oProxyCommand=x"]}}"#).is_err());
    }
}
