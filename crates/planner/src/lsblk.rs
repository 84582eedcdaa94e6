//! Parses the machine's disks from `lsblk -J -b`.

use crate::error::PlannerError;
use serde::Deserialize;

/// Arguments for `lsblk`. [`parse`] accepts the output with these arguments.
pub const ARGUMENTS: [&str; 5] = ["-J", "-b", "-d", "-o", "NAME,TYPE,SIZE,ROTA,LOG-SEC,RO"];

/// A disk of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HereDisk {
    /// Kernel name, such as `sda`.
    pub name: String,
    /// Size of the disk in bytes.
    pub size: u64,
    /// Whether the disk rotates (hard disk).
    pub rotational: bool,
    /// Logical sector size in bytes.
    pub sector: u64,
}

#[derive(Deserialize)]
struct Output {
    blockdevices: Vec<Device>,
}

#[derive(Deserialize)]
struct Device {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    size: Number,
    rota: Option<Flag>,
    #[serde(rename = "log-sec")]
    sector: Option<Number>,
    ro: Option<Flag>,
}

/// A number in lsblk's output. lsblk before 2.33 prints numbers in quotation marks.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Plain(u64),
    Quoted(String),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Flag {
    Plain(bool),
    Quoted(String),
}

impl Number {
    fn value(&self) -> Option<u64> {
        match self {
            Self::Plain(value) => Some(*value),
            Self::Quoted(text) => text.trim().parse().ok(),
        }
    }
}

impl Flag {
    fn set(&self) -> bool {
        match self {
            Self::Plain(value) => *value,
            Self::Quoted(text) => text == "1",
        }
    }
}

/// Parses the output of `lsblk`, and returns the writable disks. Omits loop devices, ROMs, and devices without a
/// medium.
///
/// # Errors
/// [`PlannerError::Record`] if the text is not the complete output of `lsblk`.
pub fn parse(text: &str) -> Result<Vec<HereDisk>, PlannerError> {
    let output: Output = serde_json::from_str(text).map_err(|error| {
        PlannerError::record("lsblk -J -b", error.line().max(1), error.to_string())
    })?;
    Ok(output
        .blockdevices
        .iter()
        .filter(|device| device.kind == "disk" && !device.ro.as_ref().is_some_and(Flag::set))
        .filter_map(|device| {
            let size = device.size.value().filter(|&size| size > 0)?;
            Some(HereDisk {
                name: device.name.clone(),
                size,
                rotational: device.rota.as_ref().is_some_and(Flag::set),
                sector: device
                    .sector
                    .as_ref()
                    .and_then(Number::value)
                    .unwrap_or(512),
            })
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_output() {
        let disks = parse(include_str!("../fixtures/lsblk-2.38.1.json")).unwrap();
        assert_eq!(disks.len(), 1);
        assert_eq!((disks[0].name.as_str(), disks[0].sector), ("vda", 512));
        let old = r#"{"blockdevices":[{"name":"sda","type":"disk","size":"4000787030016","rota":"1","log-sec":"512","ro":"0"}]}"#;
        assert_eq!(parse(old).unwrap()[0].size, 4_000_787_030_016);
    }

    #[test]
    fn cut_off_output_is_named() {
        for bad in ["", "{\"blockdevices\": [", "[]"] {
            assert!(parse(bad).unwrap_err().to_string().contains("lsblk"));
        }
    }
}
