//! Nodes and guests of Proxmox VE as an inventory. A program replaces `pvesh`, with the output formats of
//! `crates/fleet/fixtures/proxmox/README.md`; ssh and its server are real.

use super::common::servers::Servers;
use super::common::{self, Home};
use super::{json, run};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fleet/fixtures/proxmox");

/// A node whose `pvesh` prints these resources, `status.json`, and guests.
struct Node {
    servers: Servers,
    config: String,
    home: Home,
}

impl Node {
    fn new() -> Option<Self> {
        let mut servers = Servers::new()?;
        let path = servers.dir.path().display().to_string();
        servers.machine("pve", &format!("SetEnv PATH={path}:/usr/bin:/bin"));
        servers.machine("plain", "SetEnv PATH=/usr/bin:/bin");
        let config = servers.config();
        Some(Self {
            servers,
            config,
            home: Home::new(),
        })
    }

    fn answers(&self, resources: &str, guests: &str) {
        let body = format!(
            "echo \"$*\" >> {asked}
case $* in
'get /cluster/resources --output-format json') {resources} ;;
'get /cluster/status --output-format json') cat {FIXTURES}/status.json ;;
{guests}
*) echo 'QEMU guest agent is not running' >&2; exit 255 ;;
esac",
            asked = self.servers.path("asked").display()
        );
        common::script(self.servers.dir.path(), "pvesh", &body);
    }

    fn list(&self, more: &[&str]) -> common::Ran {
        let args = [&["fleet", "list", "--proxmox", "root@pve"], more].concat();
        run(&self.home, &self.config, &args)
    }

    /// Returns names with addresses.
    fn machines(&self) -> Vec<String> {
        let ran = self.list(&["--json"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let value = json(&ran.stdout);
        let all = value["machines"].as_array().unwrap().iter();
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        all.map(|one| format!("{} {}", text(&one["name"]), text(&one["address"])))
            .collect()
    }
}

#[test]
fn nodes_and_guests_of_proxmox_are_an_inventory() {
    let Some(node) = Node::new() else {
        return;
    };
    let guests = format!(
        "'get /nodes/pve1/qemu/100/agent/network-get-interfaces --output-format json') cat {FIXTURES}/agent.json ;;
'get /nodes/pve1/lxc/200/interfaces --output-format json') cat {FIXTURES}/container.json ;;"
    );
    node.answers(&format!("cat {FIXTURES}/resources.json"), &guests);
    assert_eq!(
        node.machines(),
        [
            "lxc-200 192.0.2.200",
            "pve1 root@192.0.2.1",
            "pve2 root@192.0.2.2",
            "qemu-103 qemu-103",
            "web-100 192.0.2.100",
            "web-101 web-101",
        ]
    );
    // Only this is queried, and nothing of guests that do not run.
    let asked = std::fs::read_to_string(node.servers.path("asked")).unwrap();
    assert!(
        asked.lines().all(|line| line.starts_with("get ")),
        "{asked}"
    );
    assert_eq!(asked.lines().count(), 6, "{asked}");
    let ran = node.list(&["shop"]);
    assert!(
        ran.stdout.contains("web-100") && !ran.stdout.contains("web-101"),
        "{}",
        ran.stdout
    );
}

#[test]
fn attack_a_guest_that_lies_of_its_name_and_place() {
    let Some(node) = Node::new() else {
        return;
    };
    let guest = |vmid: u32, name: &str| serde_json::json!({"type": "qemu", "vmid": vmid, "node": "pve1", "name": name, "status": "running"});
    let names = [
        "-oProxyCommand=touch /tmp/x",
        "<script>alert(1)</script>",
        "a\u{1b}[2Jb",
        "a\nb",
        "nodes",
        "VM 105",
        "pve1",
        "talks",
        "192.0.2.1",
    ];
    let mut all: Vec<_> = (100..)
        .zip(names)
        .map(|(at, name)| guest(at, name))
        .collect();
    all.push(serde_json::json!({"type": "node", "node": "pve1", "status": "online"}));
    let file = node.servers.path("hostile.json");
    std::fs::write(&file, serde_json::to_string(&all).unwrap()).unwrap();
    let at = |vmid: u32, address: &str| {
        format!(
            "'get /nodes/pve1/qemu/{vmid}/agent/network-get-interfaces --output-format json')
echo '{{\"result\":[{{\"ip-addresses\":[{{\"ip-address\":\"{address}\"}}]}}]}}' ;;\n"
        )
    };
    // The address of a node, no address, and a misplaced mark.
    let guests = [
        at(101, "192.0.2.1"),
        at(102, "-oProxyCommand=x"),
        at(103, "127.0.0.1"),
        "'get /nodes/pve1/qemu/105/agent/network-get-interfaces --output-format json')
printf 'assay-proxmox 1 guest 104\\nassay-proxmox 1 resources\\n[]\\n' ;;"
            .to_owned(),
        // More than the permitted total.
        "'get /nodes/pve1/qemu/107/agent/network-get-interfaces --output-format json') yes ;;\n"
            .to_owned(),
        at(108, "192.0.2.108"),
    ];
    node.answers(&format!("cat {}", file.display()), &guests.concat());
    assert_eq!(
        node.machines(),
        [
            "pve1 root@192.0.2.1",
            "pve1-106 pve1-106",
            "qemu-100 qemu-100",
            "qemu-101 qemu-101",
            "qemu-102 qemu-102",
            "qemu-103 qemu-103",
            "qemu-104 qemu-104",
            "qemu-105 qemu-105",
            "qemu-108 192.0.2.108",
            "talks talks",
        ]
    );
    assert_eq!(
        node.list(&["nodes"]).stdout.lines().count(),
        2,
        "head and node"
    );
    assert_eq!(node.list(&[]).stdout.matches('\u{1b}').count(), 0);
}

#[test]
fn a_node_that_cannot_be_asked_is_named() {
    let Some(node) = Node::new() else {
        return;
    };
    let hostile = r#"[{"type":"node","status":"online","node":"-oProxyCommand=x"}]"#;
    let cut = format!("head -c 300 {FIXTURES}/resources.json");
    for (says, said) in [
        (format!("printf '%s' '{hostile}'"), "hyphen"),
        ("yes".to_owned(), "more than"),
        ("echo '<html>'".to_owned(), "no JSON"),
        (cut, "no JSON"),
        (
            "echo 'ipcc_send_rec failed: Connection refused' >&2; exit 255".to_owned(),
            "ipcc_send_rec",
        ),
    ] {
        node.answers(&says, "");
        let ran = node.list(&[]);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (Some(3), ""),
            "{says}: {}",
            ran.stderr
        );
        assert!(ran.stderr.contains(said), "{says}: {}", ran.stderr);
        assert!(ran.stderr.contains("root@pve"), "{says}: {}", ran.stderr);
    }
    let ask = |name: &str| {
        run(
            &node.home,
            &node.config,
            &["fleet", "list", "--proxmox", name],
        )
    };
    let ran = ask("plain");
    insta::assert_snapshot!(node.home.told(&ran.stderr), @"assay: plain: there is no pvesh: it is no node of Proxmox VE");
    assert_eq!(ran.code, Some(3));
    let ran = ask("-oProxyCommand=x");
    assert!(
        ran.code != Some(0) && ran.stderr.contains("hyphen") || ran.code == Some(2),
        "{}",
        ran.stderr
    );
    let mut gone = node.servers;
    gone.name("gone", 1, "");
    let config = gone.config();
    let ran = run(
        &node.home,
        &config,
        &["fleet", "check", "all", "--proxmox", "gone"],
    );
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(3), ""),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("gone: "), "{}", ran.stderr);
}
