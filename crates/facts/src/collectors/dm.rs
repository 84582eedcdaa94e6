//! Targets of device-mapper devices: what LVM, dm-crypt and multipath made of them.

use crate::gather::{Gather, lossy};
use assay_model::FactKind;
use serde_json::Value;
use std::collections::BTreeMap;

const ARGV: [&str; 2] = ["dmsetup", "table"];

pub(crate) fn collect(g: &mut Gather<'_>) {
    let names: Vec<String> = g
        .list("dm", "/sys/block")
        .iter()
        .map(|name| lossy(name))
        .collect();
    if !names.iter().any(|name| name.starts_with("dm-")) {
        return;
    }
    let Some(output) = g.ask("dm", &ARGV) else {
        return;
    };
    for (name, table) in parse(&output.text()) {
        let targets: Vec<Value> = table.targets.into_iter().map(Value::from).collect();
        g.facts.known(
            format!("dm.{name}.targets"),
            targets,
            FactKind::Runtime,
            ARGV.join(" "),
        );
        if let Some(cipher) = table.cipher {
            g.facts.known(
                format!("dm.{name}.cipher"),
                cipher,
                FactKind::Runtime,
                ARGV.join(" "),
            );
            let options: Vec<Value> = table.options.into_iter().map(Value::from).collect();
            g.facts.known(
                format!("dm.{name}.crypt_options"),
                options,
                FactKind::Runtime,
                ARGV.join(" "),
            );
        }
    }
}

#[derive(Debug, Default, PartialEq)]
struct Table {
    targets: Vec<String>,
    cipher: Option<String>,
    /// Optional parameters of dm-crypt: `allow_discards`, `no_read_workqueue`, `sector_size:4096`.
    options: Vec<String>,
}

/// `NAME: START LENGTH TARGET PARAMETERS`, one line a segment; dm-crypt's parameters are
/// `CIPHER KEY IV-OFFSET DEVICE OFFSET [#OPTIONS OPTION…]`
/// (Documentation/admin-guide/device-mapper/dm-crypt.rst). The key is never looked at.
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
            table.cipher = parameters.first().map(|cipher| (*cipher).to_owned());
            table.options = parameters
                .iter()
                .skip(6)
                .map(|option| (*option).to_owned())
                .collect();
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written from dm-crypt.rst and dmsetup(8); not recorded.
    const TABLE: &str = include_str!("../../fixtures/dmsetup-table-from-documentation.txt");

    #[test]
    fn targets_and_crypt_options() {
        let found = parse(TABLE);
        assert_eq!(found["home"].cipher.as_deref(), Some("aes-xts-plain64"));
        assert_eq!(
            found["home"].options,
            ["allow_discards", "no_read_workqueue"]
        );
        assert_eq!(found["vg-root"].targets, ["linear"]);
        assert!(!format!("{found:?}").contains("000000"));
        assert!(parse("No devices found\n").is_empty());
    }
}
