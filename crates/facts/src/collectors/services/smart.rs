//! Collects the health of disks with smartctl(8), without waking a sleeping disk. Keeps the health assessment and a few
//! counters, but no serial numbers. Parses the output of smartmontools 7.3 (ataprint.cpp, scsiprint.cpp,
//! nvmeprint.cpp).

mod attributes;

pub(crate) use attributes::{ATTRIBUTES, WEAR};

use crate::gather::{Gather, lossy};
use assay_host::HostError;
use assay_model::{FactKind, FactPlace};
use attributes::{is_attribute, read_attribute};
use serde_json::Value;
use std::collections::BTreeMap;

/// smartctl command without its last argument, the disk.
pub(crate) const ASK: [&str; 5] = ["smartctl", "-n", "standby", "-H", "-A"];

/// Command that prints the error counter log of a SCSI disk, which `ASK` does not print. The disk is the last argument.
pub(crate) const ASK_LOG: [&str; 5] = ["smartctl", "-n", "standby", "-l", "error"];

/// Bits of smartctl's exit status that mean that the health was not read: invalid arguments, or a disk that cannot be
/// opened or sleeps (smartctl(8), EXIT STATUS).
const NOT_ASKED: i32 = 0b11;

/// Counters of SCSI disks, as (beginning of the line, name of the fact).
const SCSI_COUNTERS: [(&str, &str); 2] = [
    ("Elements in grown defect list:", "grown_defects"),
    ("Percentage used endurance indicator:", "percentage_used"),
];
/// Rows of the error counter log of SCSI disks. Their last column counts uncorrected errors (scsiprint.cpp).
const SCSI_ROWS: [&str; 3] = ["read:", "write:", "verify:"];
/// Name of the fact for the sum of the last column over all rows of the error counter log.
const SUMMED: &str = "uncorrected_errors";
const LEAST: &str = "life_left";

/// Lines of an NVMe disk's log, as (beginning of the line, name of the fact).
const NVME: [(&str, &str); 5] = [
    ("Critical Warning:", "critical_warning"),
    ("Available Spare:", "available_spare"),
    ("Available Spare Threshold:", "available_spare_threshold"),
    ("Percentage Used:", "percentage_used"),
    ("Media and Data Integrity Errors:", "media_errors"),
];

/// Health assessments, each with the end of the line that contains it.
const VERDICTS: [(&str, &str); 3] = [
    (
        "SMART overall-health self-assessment test result: PASSED",
        "passed",
    ),
    (
        "SMART overall-health self-assessment test result: FAILED!",
        "failed",
    ),
    ("SMART Health Status: OK", "passed"),
];
/// Start of the line with the health assessment of a SCSI disk. A text that is not in `VERDICTS` counts as a warning of
/// the disk.
const SCSI: &str = "SMART Health Status: ";

/// Returns whether a device may have SMART data, according to its kernel name.
fn may_know(name: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let nvme = name
        .strip_prefix("nvme")
        .and_then(|rest| rest.split_once('n'));
    let letters =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase());
    nvme.is_some_and(|(controller, space)| digits(controller) && digits(space))
        || name.strip_prefix("sd").is_some_and(letters)
}

pub(crate) fn collect(g: &mut Gather<'_>) {
    for name in g.list("smart", "/sys/block") {
        let name = lossy(&name);
        if may_know(&name) {
            one(g, &name);
        }
    }
}

/// What the commands printed about one disk.
#[derive(Default)]
struct Answers {
    counters: BTreeMap<String, i64>,
    health: Option<String>,
    /// Attributes at or below their threshold, grouped by type: `prefail`, `old` or `past`.
    failed: BTreeMap<String, Vec<Value>>,
    /// Reason why the health is unknown.
    unknown: Option<&'static str>,
}

fn one(g: &mut Gather<'_>, name: &str) {
    let node = format!("/dev/{name}");
    let argv: Vec<&str> = ASK.into_iter().chain([node.as_str()]).collect();
    let place = FactPlace::command(argv.clone());
    let output = match g.try_ask(&argv) {
        Ok(output) => output,
        // Only smartctl can read the health.
        Err(HostError::NoCommand { .. }) => return,
        Err(error) => return g.fault(&format!("smart.{name}"), &error, FactKind::Runtime, place),
    };
    let mut answers = Answers::default();
    let of_scsi = is_scsi(g, name);
    answers.add(&output.text());
    if of_scsi && output.status & NOT_ASKED == 0 {
        let argv: Vec<&str> = ASK_LOG.into_iter().chain([node.as_str()]).collect();
        // The log is an additional source; without it the other counters are still valid.
        if let Ok(log) = g.try_ask(&argv) {
            answers.add(&log.text());
        }
    }
    if counts_pending_wrongly(g, name) {
        answers.counters.remove("pending_sectors");
    }
    tell(g, name, &answers, &place);
    let known = answers.unknown.is_some()
        || answers.health.is_some()
        || !answers.counters.is_empty()
        || !answers.failed.is_empty();
    // A disk that smartctl cannot query, such as most virtual disks, has no health facts.
    if known && (output.status & NOT_ASKED == 0) {
        g.about(["smart", name]);
    }
}

/// Returns whether a disk is a SCSI disk. A SATA disk also appears as a SCSI device, but with the vendor `ATA`.
fn is_scsi(g: &mut Gather<'_>, name: &str) -> bool {
    let path = format!("/sys/block/{name}/device/vendor");
    let vendor = g.read(&format!("smart.{name}.uncorrected_errors"), &path);
    name.starts_with("sd") && vendor.is_some_and(|vendor| vendor.trim() != "ATA")
}

/// Returns whether a disk changes attribute 197 to 1 and back although no sector is lost, as Crucial's MX500 does.
/// smartmontools since 7.1 prints the attribute as `Bogus_Current_Pend_Sect` for this disk (ticket 1227); older
/// versions print the usual name.
fn counts_pending_wrongly(g: &mut Gather<'_>, name: &str) -> bool {
    let path = format!("/sys/block/{name}/device/model");
    let model = g.read(&format!("smart.{name}.pending_sectors"), &path);
    let model = model.unwrap_or_default();
    let model = model.trim();
    model.starts_with("CT") && model.contains("MX500SSD")
}

/// Names for the bits of an NVMe disk's Critical Warning (NVM Express base specification, SMART /
/// Health Information).
const WARNINGS: [&str; 6] = [
    "few spare blocks",
    "temperature",
    "reliability degraded",
    "read-only",
    "backup of its cache failed",
    "persistent memory read-only",
];

fn tell(g: &mut Gather<'_>, name: &str, answers: &Answers, place: &FactPlace) {
    let mut known = |what: &str, value: Value| {
        let key = format!("smart.{name}.{what}");
        g.facts.known(key, value, FactKind::Runtime, place.clone());
    };
    if let Some(verdict) = &answers.health {
        known("health", verdict.as_str().into());
    }
    for (what, number) in &answers.counters {
        known(what, (*number).into());
    }
    // For NVMe disks the used share of the endurance in percent, which may exceed 100.
    if let Some(used) = answers.counters.get("percentage_used") {
        known(LEAST, (100 - used).max(0).into());
    }
    if let Some(bits) = answers.counters.get("critical_warning") {
        let set = |bit: &usize| bits & (1 << bit) != 0;
        let words = (0..WARNINGS.len()).filter(set).map(|bit| WARNINGS[bit]);
        known("warnings", words.map(Value::from).collect());
    }
    for (how, key) in [
        ("prefail", "failing"),
        ("old", "below_limit"),
        ("past", "failed_before"),
    ] {
        if let Some(names) = answers.failed.get(how) {
            known(key, names.clone().into());
        }
    }
    if let Some(why) = answers.unknown {
        let key = format!("smart.{name}");
        g.facts.unknown(key, why, FactKind::Runtime, place.clone());
    }
}

impl Answers {
    fn add(&mut self, text: &str) {
        let kept: Vec<String> = text.lines().filter_map(redact).collect();
        for line in kept.iter().flat_map(|kept| kept.lines()) {
            match line.split(' ').collect::<Vec<_>>().as_slice() {
                ["health", verdict] => self.health = Some((*verdict).to_owned()),
                ["counter", what, number] => {
                    let Ok(number) = number.parse::<i64>() else {
                        continue;
                    };
                    let known = self.counters.get(*what).copied();
                    let value = match (*what, known) {
                        (SUMMED, Some(known)) => known.saturating_add(number),
                        (LEAST, Some(known)) => known.min(number),
                        _ => number,
                    };
                    self.counters.insert((*what).to_owned(), value);
                }
                ["failed", name, how] => {
                    let names = self.failed.entry((*how).to_owned()).or_default();
                    names.push((*name).into());
                }
                ["sleeps"] => {
                    self.unknown = Some("the disk sleeps, and is not woken to be asked");
                }
                _ => self.unknown = Some("the disk may not be opened; root may"),
            }
        }
    }
}

/// Redacts a line of smartctl to fixed words: `health passed`, `counter media_errors 0`, `failed SSD_Life_Left old`,
/// `sleeps`, `closed`. One attribute may give two lines.
pub(crate) fn redact(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    match words.as_slice() {
        ["health", "passed" | "failed" | "hot"] | ["sleeps" | "closed"] => {
            return Some(words.join(" "));
        }
        ["counter", what, value] => {
            let names = ATTRIBUTES.iter().map(|(_, _, name)| *name);
            let known = names
                .chain(NVME.iter().map(|(_, name)| *name))
                .chain(SCSI_COUNTERS.iter().map(|(_, name)| *name))
                .chain([SUMMED, LEAST])
                .any(|name| name == *what);
            return (known && number(value).is_some()).then(|| words.join(" "));
        }
        ["failed", name, "prefail" | "old" | "past"] => {
            return is_attribute(name).then(|| words.join(" "));
        }
        _ => {}
    }
    let line = line.trim();
    if let Some((_, verdict)) = VERDICTS.iter().find(|(text, _)| *text == line) {
        return Some(format!("health {verdict}"));
    }
    if let Some(verdict) = line.strip_prefix(SCSI) {
        // [asc=b, ascq=1] is a temporarily high temperature.
        let hot = verdict.contains("TEMPERATURE");
        return Some(if hot { "health hot" } else { "health failed" }.to_owned());
    }
    if line.starts_with("Device is in ") && line.contains(" mode") {
        return Some("sleeps".to_owned());
    }
    if line.starts_with("Smartctl open device: ") && line.ends_with("Permission denied") {
        return Some("closed".to_owned());
    }
    let labels = NVME.iter().chain(&SCSI_COUNTERS);
    let mut labelled = labels.filter_map(|(label, name)| {
        let value = line.strip_prefix(label)?.trim();
        let value = match value.strip_prefix("0x") {
            Some(hex) if hex.len() == 2 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                u8::from_str_radix(hex, 16).ok()?.to_string()
            }
            Some(_) => return None,
            None => number(&value.trim_end_matches('%').replace(',', ""))?,
        };
        Some(format!("counter {name} {value}"))
    });
    if let Some(counter) = labelled.next() {
        return Some(counter);
    }
    match words.as_slice() {
        [row, _, _, _, _, _, _, uncorrected] if SCSI_ROWS.contains(row) => {
            Some(format!("counter {SUMMED} {}", number(uncorrected)?))
        }
        // ID# ATTRIBUTE_NAME FLAG VALUE WORST THRESH TYPE UPDATED WHEN_FAILED RAW_VALUE
        [id, name, flag, value, _, _, kind, _, when, raw, ..] if flag.starts_with("0x") => {
            read_attribute(id.parse().ok()?, name, (value, raw), (kind, when))
        }
        _ => None,
    }
}

/// Returns the text of an unsigned integer unchanged; `None` for other text.
fn number(text: &str) -> Option<String> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (digits && text.len() <= 18).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_disks() {
        for name in ["sda", "sdab", "nvme0n1", "nvme12n3"] {
            assert!(may_know(name), "{name}");
        }
        for name in [
            "sda1",
            "nvme0n1p1",
            "nvme0c0n1",
            "vda",
            "loop0",
            "zd0",
            "sr0",
            "dm-0",
            "sd",
        ] {
            assert!(!may_know(name), "{name}");
        }
    }

    #[test]
    fn what_is_kept_of_a_line() {
        for (line, kept) in [
            (
                "SMART overall-health self-assessment test result: PASSED",
                Some("health passed"),
            ),
            (
                "SMART Health Status: FAILURE PREDICTION THRESHOLD EXCEEDED",
                Some("health failed"),
            ),
            (
                "197 Current_Pending_Sector  0x0012   100   100   000    Old_age   Always       -       8",
                Some("counter pending_sectors 8"),
            ),
            (
                "  5 Reallocated_Sector_Ct   0x0033   100   100   010    Pre-fail  Always       -       0 (1 2)",
                Some("counter reallocated_sectors 0"),
            ),
            (
                "  9 Power_On_Hours          0x0032   095   095   000    Old_age   Always       -       21345",
                None,
            ),
            (
                "Critical Warning:                   0x04",
                Some("counter critical_warning 4"),
            ),
            (
                "Media and Data Integrity Errors:    1,234",
                Some("counter media_errors 1234"),
            ),
            (
                "Percentage Used:                    103%",
                Some("counter percentage_used 103"),
            ),
            ("Device is in STANDBY mode, exit(2)", Some("sleeps")),
            (
                "Smartctl open device: /dev/sda failed: Permission denied",
                Some("closed"),
            ),
            ("Serial Number:    S3CR3T", None),
            (
                "197 Bogus_Current_Pend_Sect 0x0032   100   100   000    Old_age   Always       -       1",
                None,
            ),
            // SandForce and Samsung: the same numbers have another meaning.
            (
                "198 Host_Reads_GiB          0x0000   100   100   000    Old_age   Offline      -       9217",
                None,
            ),
            (
                "197 Not_In_Use              0x0000   100   100   000    Old_age   Offline      -       7",
                None,
            ),
            (
                "187 Reported_Uncorrect      0x0032   001   001   000    Old_age   Always       -       4295032833",
                None,
            ),
            (
                "177 Wear_Leveling_Count     0x0013   001   001   000    Pre-fail  Always       -       3604",
                Some("counter life_left 1"),
            ),
            (
                "233 Media_Wearout_Indicator 0x0032   098   098   000    Old_age   Always       -       0",
                Some("counter life_left 98"),
            ),
            // WD counts upwards in attribute 230.
            (
                "230 Media_Wearout_Indicator 0x0032   001   001   ---    Old_age   Always       -       0x002c00a8002c",
                None,
            ),
            (
                "202 Percent_Lifetime_Remain 0x0030   000   000   001    Old_age   Offline  FAILING_NOW 100",
                Some("counter life_left 0\nfailed Percent_Lifetime_Remain old"),
            ),
            (
                "  5 Reallocated_Sector_Ct   0x0033   001   001   036    Pre-fail  Always   FAILING_NOW 4095",
                Some("counter reallocated_sectors 4095\nfailed Reallocated_Sector_Ct prefail"),
            ),
            (
                "  1 Raw_Read_Error_Rate     0x000f   100   006   044    Pre-fail  Always   In_the_past 0",
                Some("failed Raw_Read_Error_Rate past"),
            ),
            (
                "190 Airflow_Temperature_Cel 0x0022   055   041   045    Old_age   Always   In_the_past 45",
                None,
            ),
            (
                "Elements in grown defect list: 24",
                Some("counter grown_defects 24"),
            ),
            (
                "read:   2097523480       22         0  2097523502         22     122346.221           3",
                Some("counter uncorrected_errors 3"),
            ),
            (
                "SMART Health Status: WARNING - TEMPERATURE EXCEEDED [asc=b, ascq=1]",
                Some("health hot"),
            ),
            ("failed x@y old", None),
            ("counter serial 5", None),
            ("health S3CR3T", None),
        ] {
            let found = redact(line);
            assert_eq!(found.as_deref(), kept, "{line}");
            for found in found.iter().flat_map(|found| found.lines()) {
                assert_eq!(redact(found).as_deref(), Some(found));
            }
        }
    }
}
