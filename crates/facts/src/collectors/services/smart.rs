//! What disks say of their own health: smartctl(8), asked without waking a disk that sleeps. Of the answer are kept the
//! verdict and a few counters, no serial number; text as smartmontools 7.3 prints it (ataprint.cpp, scsiprint.cpp,
//! nvmeprint.cpp).

use crate::gather::{Gather, lossy};
use assay_host::HostError;
use assay_model::{FactKind, Place};

/// The words of the command, but for the disk.
pub(crate) const ASK: [&str; 5] = ["smartctl", "-n", "standby", "-H", "-A"];

/// Bits of the exit status (smartctl(8), EXIT STATUS): words that are not understood, a disk that cannot be opened or
/// sleeps.
const NOT_ASKED: i32 = 0b11;

/// Attributes of ATA disks that count what went wrong (column ID#), and what they are called here.
const ATTRIBUTES: [(u32, &str); 4] = [
    (5, "reallocated_sectors"),
    (187, "uncorrectable_errors"),
    (197, "pending_sectors"),
    (198, "offline_uncorrectable_sectors"),
];

/// Lines of an NVMe disk's log, and what they are called here.
const NVME: [(&str, &str); 5] = [
    ("Critical Warning:", "critical_warning"),
    ("Available Spare:", "available_spare"),
    ("Available Spare Threshold:", "available_spare_threshold"),
    ("Percentage Used:", "percentage_used"),
    ("Media and Data Integrity Errors:", "media_errors"),
];

/// The verdict of a disk, as its line ends.
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
/// A verdict of a SCSI disk that is none of these is one of its warnings.
const SCSI: &str = "SMART Health Status: ";

/// Disks of which the kernel's name says that they may know of their health.
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

fn one(g: &mut Gather<'_>, name: &str) {
    let node = format!("/dev/{name}");
    let argv: Vec<&str> = ASK.into_iter().chain([node.as_str()]).collect();
    let key = |what: &str| format!("smart.{name}.{what}");
    let place = Place::command(argv.clone());
    let output = match g.try_ask(&argv) {
        Ok(output) => output,
        // Only that program asks a disk.
        Err(HostError::NoCommand { .. }) => return,
        Err(error) => return g.fault(&format!("smart.{name}"), &error, FactKind::Runtime, place),
    };
    let text = output.text();
    let mut known = false;
    for line in text.lines() {
        let Some(kept) = redact(line) else { continue };
        match kept.split(' ').collect::<Vec<_>>().as_slice() {
            ["health", verdict] => {
                let verdict = verdict.to_string();
                g.facts
                    .known(key("health"), verdict, FactKind::Runtime, place.clone());
            }
            ["counter", what, number] => {
                let Ok(number) = number.parse::<i64>() else {
                    continue;
                };
                g.facts
                    .known(key(what), number, FactKind::Runtime, place.clone());
            }
            ["sleeps"] => {
                let why = "the disk sleeps, and is not woken to be asked";
                g.facts.unknown(
                    format!("smart.{name}"),
                    why,
                    FactKind::Runtime,
                    place.clone(),
                );
            }
            _ => {
                let why = "the disk may not be opened; root may";
                g.facts.unknown(
                    format!("smart.{name}"),
                    why,
                    FactKind::Runtime,
                    place.clone(),
                );
                continue;
            }
        }
        known = true;
    }
    // A disk that smartctl cannot ask, as most of virtual machines, has no health to tell of.
    if known && (output.status & NOT_ASKED == 0) {
        g.about(["smart", name]);
    }
}

/// What a capture keeps of a line, in words of its own: `health passed`, `counter media_errors 0`, `sleeps`, `closed`.
pub(crate) fn redact(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        (digits && text.len() <= 18).then(|| text.to_owned())
    };
    match words.as_slice() {
        ["health", "passed" | "failed"] | ["sleeps" | "closed"] => return Some(words.join(" ")),
        ["counter", what, value] => {
            let names = ATTRIBUTES.iter().map(|(_, name)| name);
            let known = names
                .chain(NVME.iter().map(|(_, name)| name))
                .any(|name| name == what);
            return (known && number(value).is_some()).then(|| words.join(" "));
        }
        _ => {}
    }
    let line = line.trim();
    if let Some((_, verdict)) = VERDICTS.iter().find(|(text, _)| *text == line) {
        return Some(format!("health {verdict}"));
    }
    if line.starts_with(SCSI) {
        return Some("health failed".to_owned());
    }
    if line.starts_with("Device is in ") && line.contains(" mode") {
        return Some("sleeps".to_owned());
    }
    if line.starts_with("Smartctl open device: ") && line.ends_with("Permission denied") {
        return Some("closed".to_owned());
    }
    let nvme = NVME.iter().find_map(|(label, name)| {
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
    if nvme.is_some() {
        return nvme;
    }
    // ID# ATTRIBUTE_NAME FLAG VALUE WORST THRESH TYPE UPDATED WHEN_FAILED RAW_VALUE
    let (id, raw) = (words.first()?, words.get(9)?);
    let id: u32 = id.parse().ok()?;
    let (_, name) = ATTRIBUTES.iter().find(|(known, _)| *known == id)?;
    words.get(2).filter(|flag| flag.starts_with("0x"))?;
    Some(format!("counter {name} {}", number(raw)?))
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
            ("counter serial 5", None),
            ("health S3CR3T", None),
        ] {
            let found = redact(line);
            assert_eq!(found.as_deref(), kept, "{line}");
            if let Some(found) = found {
                assert_eq!(redact(&found), Some(found.clone()));
            }
        }
    }
}
