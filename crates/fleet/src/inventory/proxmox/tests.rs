use super::*;

// Written according to the sources named above, not recorded.
const RESOURCES: &str = include_str!("../../../fixtures/proxmox/resources.json");
const STATUS: &str = include_str!("../../../fixtures/proxmox/status.json");
const AGENT: &str = include_str!("../../../fixtures/proxmox/agent.json");
const CONTAINER: &str = include_str!("../../../fixtures/proxmox/container.json");

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

/// Returns the machines of an inventory with these guests and nodes. Each is given as `(kind, vmid, name, pool)`.
fn of(all: &[(&str, u64, &str, Option<&str>)]) -> Result<Vec<Machine>, String> {
    let line = |&(kind, vmid, name, pool): &(&str, u64, &str, Option<&str>)| match kind {
        "node" => serde_json::json!({ "type": kind, "node": name, "status": "online" }),
        _ => serde_json::json!({ "type": kind, "node": "pve1", "vmid": vmid, "name": name,
            "status": "running", "pool": pool }),
    };
    let lines: Vec<Value> = all.iter().map(line).collect();
    told(
        &format!(
            "{MARK}resources\n{}\n{MARK}status\n[]\n",
            Value::from(lines)
        ),
        None,
    )
}

#[test]
fn attack_a_guest_that_is_called_as_another_machine() {
    let called = |all: &[(&str, u64, &str, Option<&str>)]| -> Vec<String> {
        of(all).unwrap().into_iter().map(|one| one.name).collect()
    };
    let web = ("qemu", 100, "web", None);
    // The third guest has the name that would distinguish the first two.
    let all = [
        web,
        ("qemu", 101, "web", None),
        ("qemu", 102, "web-100", None),
    ];
    assert_eq!(called(&all), ["qemu-100", "web-101", "qemu-102"]);
    let all = [web, ("qemu", 102, "lxc-200", None), ("lxc", 200, "", None)];
    assert_eq!(called(&all), ["web", "qemu-102", "lxc-200"]);
    let all = [("node", 0, "pve1", None), ("lxc", 200, "pve1", None)];
    assert_eq!(called(&all), ["pve1", "pve1-200"]);
    let all = [
        ("node", 0, "pve1-200", None),
        ("lxc", 200, "pve1", None),
        ("node", 0, "pve1", None),
    ];
    assert_eq!(called(&all), ["pve1-200", "lxc-200", "pve1"]);
    // The owner of a pool must not select a guest outside the pool.
    let all = [
        ("qemu", 100, "web", Some("shop")),
        ("qemu", 102, "shop", None),
    ];
    assert_eq!(called(&all), ["web", "qemu-102"]);
    assert!(of(&[web, web]).is_err(), "one number twice");
    // Ten thousand guests with the same name are all listed.
    let many: Vec<_> = (1..=10_000)
        .map(|vmid| ("qemu", vmid, "web", None))
        .collect();
    let names: BTreeSet<String> = called(&many).into_iter().collect();
    assert_eq!(names.len(), many.len());
    assert!(names.contains("web-10000"));
}

#[test]
fn attack_documents_that_are_too_deep() {
    let deep = "[".repeat(100_000);
    let within = format!(r#"[{{"type":"qemu","vmid":1,"pool":{deep}"#);
    for text in [&deep, &within, &deep.replace('[', "{\"a\":")] {
        assert!(told(&whole(text), None).is_err());
        let all = format!("{MARK}resources\n[]\n{MARK}status\n{text}\n");
        assert!(told(&all, None).is_err());
        assert_eq!(address_of_guest(text), None);
    }
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
    // The owner of a guest may choose any name; unsafe ones are replaced by the number.
    for name in [
        "-oProxyCommand=x",
        "a\u{1b}[2Jb",
        "VM 7",
        "a\nb",
        "",
        "nodes",
        "all",
        "on-pve1",
        "<script>",
        "192.0.2.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "a.0Xff",
        "::1",
        "root@bastion",
        "ssh://root@192.0.2.1:22",
        "qemu-8",
        &"a".repeat(253),
    ] {
        let found = with("qemu", "pve1", name).unwrap();
        assert_eq!(
            (found[0].name.as_str(), found[0].address.as_str()),
            ("qemu-7", "qemu-7"),
            "{name:?}"
        );
    }
    for name in ["web", "web-1.example.org", "7zip", "a1b2", "db_2"] {
        assert_eq!(with("qemu", "pve1", name).unwrap()[0].name, name);
    }
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
