//! Collects the targets of device-mapper devices, as LVM, dm-crypt and multipath set them up.

use crate::crypt;
use crate::gather::{Gather, lossy};
use assay_model::{FactKind, FactPlace};
use serde_json::Value;
use std::collections::BTreeMap;

const ARGV: [&str; 2] = ["dmsetup", "table"];

pub(crate) fn collect(g: &mut Gather<'_>) {
    let devices: Vec<String> = g
        .list("dm", "/sys/block")
        .iter()
        .map(|name| lossy(name))
        .filter(|name| name.starts_with("dm-"))
        .collect();
    if devices.is_empty() {
        return;
    }
    for device in &devices {
        note_luks(g, device);
    }
    let Some(output) = g.ask("dm", &ARGV) else {
        return;
    };
    for (name, table) in parse(&output.text()) {
        let mut known = |key: &str, value: Value| {
            let source = FactPlace::command(ARGV);
            g.facts
                .known(format!("dm.{name}.{key}"), value, FactKind::Runtime, source);
        };
        let targets: Vec<Value> = table.targets.into_iter().map(Value::from).collect();
        known("targets", targets.into());
        for (key, value) in &table.crypt {
            match *key {
                "flags" => known("crypt_options", value.split(' ').map(Value::from).collect()),
                key => known(key, crate::gather::scalar(value)),
            }
        }
        g.about(["dm", &name]);
    }
}

/// Notes the format of an encrypted device from its UUID, and the key derivation functions of its passphrases.
fn note_luks(g: &mut Gather<'_>, device: &str) {
    let dir = format!("/sys/block/{device}");
    let source = format!("{dir}/dm/uuid");
    let name = g.read("dm", &format!("{dir}/dm/name"));
    let (Some(name), Some(uuid)) = (name, g.read("dm", &source)) else {
        return;
    };
    let (name, uuid) = (name.trim(), uuid.trim());
    if crate::dm::kind(uuid) != "crypt" {
        return;
    }
    g.text(&format!("dm.{name}.zoned"), &format!("{dir}/queue/zoned"));
    // The kernel copies the flag from the device below.
    let turns = format!("{dir}/queue/rotational");
    g.flag(&format!("dm.{name}.rotational"), &turns);
    // CRYPT-LUKS2-…
    let Some(format) = uuid.split('-').nth(1) else {
        return;
    };
    let key = format!("dm.{name}.format");
    g.facts.known(key, format, FactKind::Configured, source);
    if !format.starts_with("LUKS") {
        return;
    }
    let slaves = g.list(&format!("dm.{name}.pbkdf"), &format!("{dir}/slaves"));
    let Some(below) = slaves.first() else {
        return;
    };
    let node = format!("/dev/{}", lossy(below));
    let argv = ["cryptsetup", "luksDump", &node];
    let key = format!("dm.{name}.pbkdf");
    if let Some(output) = g.ask(&key, &argv) {
        let slots: Vec<Value> = crypt::pbkdf(&output.text())
            .into_iter()
            .map(Value::from)
            .collect();
        g.facts
            .known(key, slots, FactKind::Configured, FactPlace::command(argv));
    }
}

#[derive(Debug, Default, PartialEq)]
struct Table {
    targets: Vec<String>,
    crypt: crypt::CryptSettings,
}

/// Parses lines `NAME: START LENGTH TARGET PARAMETERS`, one for each segment. Encryption keys are dropped.
fn parse(text: &str) -> BTreeMap<String, Table> {
    let mut found: BTreeMap<String, Table> = BTreeMap::new();
    for line in text.lines() {
        let Some((name, rest)) = line.split_once(": ") else {
            continue;
        };
        let words: Vec<&str> = rest.split_whitespace().collect();
        let [_, _, target, parameters @ ..] = words.as_slice() else {
            continue;
        };
        let table = found.entry(name.to_owned()).or_default();
        if !table.targets.iter().any(|known| known == target) {
            table.targets.push((*target).to_owned());
        }
        if *target == "crypt" {
            table.crypt = crypt::table(parameters);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of `dmsetup table`, recorded with libdevmapper 1.02.185: LVM on LUKS2.
    const TABLE: &str = include_str!("../../fixtures/dmsetup-1.02.185-table.txt");

    #[test]
    fn targets_and_crypt_options() {
        let found = parse(TABLE);
        let vault = &found["vault"].crypt;
        assert_eq!(vault["cipher"], "aes-xts-plain64");
        assert_eq!(vault["key_size"], "512");
        assert_eq!(vault["sector_size"], "4096");
        assert_eq!(vault["flags"], "allow_discards no_read_workqueue");
        assert_eq!(found["vg--a-data"].targets, ["linear"]);
        assert_eq!(found["vg--a-pool-tpool"].targets, ["thin-pool"]);
        assert!(!format!("{found:?}").contains("47bf48cc"));
        assert!(parse("No devices found\n").is_empty());
    }
}
