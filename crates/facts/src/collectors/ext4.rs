//! Collects features and journal of ext4 file systems from the superblock, as dumpe2fs(8) prints them.

use crate::gather::{Gather, scalar};
use assay_model::{FactKind, FactPlace};
use serde_json::Value;

const FIELDS: [(&str, &str); 9] = [
    ("Filesystem features", "features"),
    ("Default mount options", "default_mount_options"),
    ("Block size", "block_size"),
    ("Inode size", "inode_size"),
    ("RAID stride", "raid_stride"),
    ("RAID stripe width", "raid_stripe_width"),
    ("Journal features", "journal_features"),
    ("Total journal size", "journal_size"),
    ("Checksum type", "checksum"),
];

pub(crate) fn collect(g: &mut Gather<'_>, device: &str) {
    let key = format!("ext4.{device}");
    let node = format!("/dev/{device}");
    let argv = ["dumpe2fs", "-h", &node];
    let Some(output) = g.ask(&key, &argv) else {
        return;
    };
    let source = FactPlace::command(argv);
    for (name, value) in parse(&output.text()) {
        g.facts.known(
            format!("{key}.{name}"),
            value,
            FactKind::Configured,
            source.clone(),
        );
    }
}

/// Returns the names of the superblock fields that become facts.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FIELDS.iter().map(|(name, _)| *name)
}

/// Returns whether a line of dumpe2fs is one of the fields that become facts.
pub(crate) fn is_known(line: &str) -> bool {
    let label = line.split_once(':').map(|(label, _)| label);
    FIELDS.iter().any(|(known, _)| Some(*known) == label)
}

fn parse(text: &str) -> Vec<(&'static str, Value)> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines
        .filter_map(|(label, value)| {
            let (_, name) = FIELDS.iter().find(|(known, _)| *known == label)?;
            let value = value.trim();
            let value = match *name {
                "features" | "journal_features" | "default_mount_options" => {
                    value.split_whitespace().map(Value::from).collect()
                }
                _ => scalar(value),
            };
            Some((*name, value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_superblock() {
        let found = parse(include_str!("../../fixtures/dumpe2fs-1.47.0.txt"));
        let get = |name: &str| &found.iter().find(|(key, _)| *key == name).unwrap().1;
        assert_eq!(get("block_size"), &1024);
        assert!(
            get("features")
                .as_array()
                .unwrap()
                .iter()
                .any(|feature| feature == "metadata_csum")
        );
        assert_eq!(get("journal_size"), "4096k");
    }
}
