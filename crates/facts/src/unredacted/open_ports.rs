//! Finds databases and control services that listen on all addresses, and checks whether there is a packet filter.

use crate::gather::Gather;
use assay_model::{FactKind, FactPlace};

/// Ports of services that only few clients should reach, with the names of the services.
const PORTS: [(u16, &str); 14] = [
    (2375, "Docker"),
    (2379, "etcd"),
    (3306, "MariaDB"),
    (5432, "PostgreSQL"),
    (5900, "VNC"),
    (5901, "VNC"),
    (6000, "X11"),
    (6379, "Redis"),
    (8086, "InfluxDB"),
    (9200, "Elasticsearch"),
    (10250, "kubelet"),
    (11211, "memcached"),
    (15672, "RabbitMQ"),
    (27017, "MongoDB"),
];
const RULES: [&[&str]; 2] = [&["nft", "list", "ruleset"], &["iptables-save"]];

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut open: Vec<u16> = Vec::new();
    let mut read = false;
    for path in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let Ok(text) = g.host.read_text(std::path::Path::new(path)) else {
            continue;
        };
        read = true;
        open.extend(text.lines().filter_map(port_on_all_addresses));
    }
    if !read {
        return;
    }
    open.sort_unstable();
    open.dedup();
    let named: Vec<serde_json::Value> = PORTS
        .iter()
        .filter(|(port, _)| open.contains(port))
        .map(|(port, what)| format!("{what} ({port})").into())
        .collect();
    let place = FactPlace::from("/proc/net/tcp");
    g.facts
        .known("firewall.open_ports", named, FactKind::Runtime, place);
    let mut filters = None;
    for argv in RULES {
        let Ok(output) = g.try_ask(argv) else {
            continue;
        };
        if !output.success() {
            return;
        }
        let text = output.text();
        let any = text.lines().any(is_rule);
        filters = Some((filters.is_some_and(|(before, _)| before) || any, argv));
    }
    if let Some((filters, argv)) = filters {
        let place = FactPlace::command(argv);
        g.facts
            .known("firewall.filters", filters, FactKind::Runtime, place);
    }
}

/// Returns the port of a line of /proc/net/tcp, if the socket listens on all addresses.
fn port_on_all_addresses(line: &str) -> Option<u16> {
    let mut words = line.split_whitespace();
    let (_, local, _, state) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let (address, port) = local.split_once(':')?;
    let all = state == "0A" && address.bytes().all(|byte| byte == b'0');
    u16::from_str_radix(port, 16).ok().filter(|_| all)
}

/// Returns whether a line of a rule set rejects or drops packets.
fn is_rule(line: &str) -> bool {
    let line = line.trim();
    let words = ["drop", "reject", "DROP", "REJECT"];
    line.split([' ', ';']).any(|word| words.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn ports_and_rules() {
        let tcp = "  sl  local_address rem_address   st\n   0: 00000000:18EB 00000000:0000 0A 0\n\
                   \x20  1: 0100007F:0CEA 00000000:0000 0A 0\n";
        let get = |rules: &str| {
            let host = Recorded::new()
                .file("/proc/net/tcp", tcp)
                .command(&["nft", "list", "ruleset"], rules);
            let mut g = Gather::new(&host);
            collect(&mut g);
            g.facts
        };
        let found = get(
            "table inet filter {\n chain input { type filter hook input priority 0; policy accept; }\n}\n",
        );
        assert_eq!(
            found.get("firewall.open_ports"),
            Some(&serde_json::json!(["Redis (6379)"]))
        );
        assert_eq!(found.get("firewall.filters"), Some(&false.into()));
        let found = get("chain input {\n type filter hook input priority 0; policy drop;\n}\n");
        assert_eq!(found.get("firewall.filters"), Some(&true.into()));
    }
}
