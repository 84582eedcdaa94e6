//! Reads the present properties of a dataset.

use super::{Dataset, PACKAGE};
use crate::side_by_side::ArmError;
use crate::side_by_side::teardown::Things;
use crate::side_by_side::tool::run;

/// Properties to read: they determine how data is stored and when a write is durable. `direct` exists since 2.3.
const TOLD: [&str; 18] = [
    "type",
    "recordsize",
    "volblocksize",
    "compression",
    "checksum",
    "copies",
    "dedup",
    "atime",
    "relatime",
    "sync",
    "logbias",
    "primarycache",
    "secondarycache",
    "xattr",
    "dnodesize",
    "redundant_metadata",
    "special_small_blocks",
    "direct",
];

impl Dataset {
    /// Returns the type and the properties in one line, as `summarize_properties` formats them.
    pub fn read_back(&self, things: &Things<'_>) -> Result<String, ArmError> {
        let argv = [
            "zfs",
            "get",
            "-Hp",
            "-o",
            "property,value",
            "all",
            &self.name,
        ];
        let text = run(things.host, &argv, PACKAGE)?;
        Ok(summarize_properties(&text))
    }
}

/// Converts the lines of `zfs get -Hp -o property,value all` to `filesystem, recordsize 131072, …`.
fn summarize_properties(text: &str) -> String {
    let pairs: Vec<(&str, &str)> = text
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .collect();
    let parts = TOLD.iter().filter_map(|wanted| {
        let (_, value) = pairs.iter().find(|(name, _)| name == wanted)?;
        match *wanted {
            "type" => Some((*value).to_owned()),
            // Properties that a volume or a file system does not have.
            _ if *value == "-" => None,
            name => Some(format!("{name} {value}")),
        }
    });
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_of_zfs_2_1_11() {
        let text = "type\tfilesystem\ncreation\t1795282367\nused\t106496\nrecordsize\t131072\n\
                    checksum\ton\ncompression\toff\nsync\tstandard\n";
        assert_eq!(
            summarize_properties(text),
            "filesystem, recordsize 131072, compression off, checksum on, sync standard"
        );
    }
}
