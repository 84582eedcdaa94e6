//! Parses the health of a pool from `zpool status -LP`: devices that are not online, error counters and data errors.
//! [`crate::zpool`] parses the layout.

use crate::zpool::{class_of, tree};
use jiff::civil::DateTime;

/// A leaf device of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// Path of the device; for a missing device the former path.
    pub name: String,
    /// Class of the vdev: `data`, `log`, `cache`, `special`, `dedup` or `spare`.
    pub class: &'static str,
    /// State of the device, such as `ONLINE`, `FAULTED` or `AVAIL`.
    pub state: String,
    /// Numbers of read, write and checksum errors; `None` if the line has no counters.
    pub errors: Option<[u64; 3]>,
    /// Whether another device, a replacement or a spare, already replaces this device.
    pub replaced: bool,
}

/// States of a working device.
const WORKING: [&str; 3] = ["ONLINE", "AVAIL", "INUSE"];

impl Leaf {
    /// Returns whether the device does not work and no other device replaces it.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        // A line without a state is not a device.
        !self.state.is_empty() && !WORKING.contains(&self.state.as_str()) && !self.replaced
    }

    /// Returns whether the device stores data of the pool. The loss of a cache or spare device loses no data.
    #[must_use]
    pub fn holds_data(&self) -> bool {
        !matches!(self.class, "cache" | "spare")
    }

    /// Describes the error counters of the device; `None` if they are zero or missing.
    #[must_use]
    pub fn describe_errors(&self) -> Option<String> {
        let kinds = ["read", "write", "checksum"];
        let all = self.errors?.into_iter().zip(kinds);
        let some: Vec<String> = all
            .filter(|(number, _)| *number > 0)
            .map(|(number, kind)| {
                let plural = if number == 1 { "" } else { "s" };
                format!("{number} {kind} error{plural}")
            })
            .collect();
        (!some.is_empty()).then(|| format!("{} has {}", self.name, some.join(", ")))
    }
}

/// Returns the leaf devices of one pool in the order of the listing.
#[must_use]
pub fn leaves(status: &str, pool: &str) -> Vec<Leaf> {
    let lines: Vec<(usize, Vec<&str>)> = tree(status).collect();
    let mut found: Vec<Leaf> = Vec::new();
    let mut class = "data";
    // Enclosing groups of the line by indentation.
    let mut above: Vec<(usize, usize)> = Vec::new();
    let mut of_replacement: Vec<(usize, usize)> = Vec::new();
    for (at, (indent, words)) in lines.iter().enumerate() {
        above.retain(|(outer, _)| outer < indent);
        if *indent == 0 {
            // The first line is the pool, which may be called `logs` like a heading.
            class = if at == 0 && words[0] == pool {
                "data"
            } else {
                class_of(words[0])
            };
            continue;
        }
        let next = lines.get(at + 1).map_or(0, |(next, _)| *next);
        if next > *indent {
            above.push((*indent, at));
            continue;
        }
        let number = |text: &&str| nice_number(text);
        let counters: Vec<u64> = words.iter().skip(2).take(3).map_while(number).collect();
        let replacing = |(_, at): &&(usize, usize)| {
            let group = lines[*at].1[0];
            group.starts_with("replacing-") || group.starts_with("spare-")
        };
        if let Some((_, group)) = above.iter().rev().find(replacing) {
            of_replacement.push((found.len(), *group));
        }
        let was = words.iter().position(|word| *word == "was");
        let name = was.and_then(|at| words.get(at + 1)).unwrap_or(&words[0]);
        found.push(Leaf {
            name: (*name).to_owned(),
            class,
            state: words.get(1).copied().unwrap_or_default().to_owned(),
            errors: <[u64; 3]>::try_from(counters).ok(),
            replaced: false,
        });
    }
    for (leaf, group) in &of_replacement {
        let stands_in = of_replacement
            .iter()
            .any(|(other, of)| other != leaf && of == group && found[*other].state == "ONLINE");
        found[*leaf].replaced = stands_in;
    }
    found
}

/// Describes errors of groups and of the pool itself, which `zpool status` does not attribute to one device.
#[must_use]
pub fn group_errors(status: &str) -> Vec<String> {
    let lines: Vec<(usize, Vec<&str>)> = tree(status).collect();
    let groups = lines.windows(2).filter(|pair| pair[1].0 > pair[0].0);
    let errors = groups.filter_map(|pair| {
        let words = &pair[0].1;
        let counters = words.iter().skip(2).take(3);
        let counters: Vec<u64> = counters.map_while(|text| nice_number(text)).collect();
        let group = Leaf {
            name: words[0].to_owned(),
            class: "data",
            state: String::new(),
            errors: <[u64; 3]>::try_from(counters).ok(),
            replaced: false,
        };
        group.describe_errors()
    });
    errors.collect()
}

/// Parses a number as zpool prints it: `83`, `1.20K`. The factor is 1024 (libzutil, zfs_nicenum).
fn nice_number(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(['K', 'M', 'G', 'T', 'P', 'E']);
    let power = match &text[digits.len()..] {
        "" => 0,
        unit => 1 + u32::try_from("KMGTPE".find(unit)?).ok()?,
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let scale = 10u128.checked_pow(u32::try_from(part.len()).ok()?)?;
    let value: u128 = format!("{whole}{part}").parse().ok()?;
    u64::try_from(value.checked_mul(1 << (10 * power))? / scale).ok()
}

/// Returns the number of data errors from the line `errors:`; `None` if there is no such line.
///
/// # Errors
/// The number is unknown; the error is zpool's text.
pub fn data_errors(status: &str) -> Option<Result<u64, String>> {
    let mut lines = status.lines();
    let said = lines.find_map(|line| line.strip_prefix("errors: "))?;
    if said.starts_with("No known data errors") {
        return Some(Ok(0));
    }
    let number = said.split_once(" data errors");
    match number.and_then(|(number, _)| nice_number(number)) {
        Some(number) => Some(Ok(number)),
        // `zpool status -v` lists the errors without a number.
        None if said.starts_with("Permanent errors") => Some(Ok(1)),
        None => Some(Err(said.to_owned())),
    }
}

/// Returns when the last scrub ended, as `zpool status` prints it in local time: `Sun Mar  9 03:36:45 2025`.
#[must_use]
pub fn scrub_end(status: &str) -> Option<DateTime> {
    let scan = |line: &str| line.trim_start().starts_with("scan: scrub repaired");
    let line = status.lines().find(|line| scan(line))?;
    let (_, date) = line.split_once(" errors on ")?;
    let words: Vec<&str> = date.split_whitespace().skip(1).collect();
    DateTime::strptime("%b %d %H:%M:%S %Y", words.join(" ")).ok()
}

/// Returns whether a resilver is running.
#[must_use]
pub fn is_resilvering(status: &str) -> bool {
    let scan = |line: &str| line.trim_start().starts_with("scan: resilver in progress");
    status.lines().any(scan)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(config: &str) -> Vec<String> {
        let status = format!(
            "  pool: tank\nconfig:\n\n\tNAME STATE READ WRITE CKSUM\n{config}\nerrors: x\n"
        );
        let lost = leaves(&status, "tank").into_iter().filter(Leaf::is_lost);
        lost.map(|leaf| format!("{} {} {}", leaf.class, leaf.name, leaf.state))
            .collect()
    }

    /// Sources are openzfs/zfs issues 16245, 4653 and 12263, and zpool-replace(8). Devices are listed by path.
    #[test]
    fn ends_of_scrubs() {
        let end = |text: &str| scrub_end(&format!("  scan: {text}\n")).map(|end| end.to_string());
        let done = "scrub repaired 0B in 03:12:44 with 0 errors on Sun Mar  9 03:36:45 2025";
        assert_eq!(end(done).as_deref(), Some("2025-03-09T03:36:45"));
        assert_eq!(
            end("scrub in progress since Sun Mar  9 03:36:45 2025"),
            None
        );
        assert_eq!(end("none requested"), None);
    }

    #[test]
    fn devices_that_are_lost() {
        for (config, expected) in [
            (
                "\ttank ONLINE 0 0 0\n\t  mirror-0 ONLINE 0 0 0\n\t    /dev/sda1 ONLINE 0 0 0\n\t    /dev/sdb1 FAULTED 12 753 83 too many errors\n",
                &["data /dev/sdb1 FAULTED"][..],
            ),
            (
                "\ttank DEGRADED 0 0 0\n\t  raidz1-0 DEGRADED 0 0 0\n\t    /dev/sda1 ONLINE 0 0 0\n\t    123456 UNAVAIL 0 0 0 was /dev/sdb1\n\t    /dev/sdc1 REMOVED 0 0 0\n",
                &["data /dev/sdb1 UNAVAIL", "data /dev/sdc1 REMOVED"],
            ),
            // The replaced device is not reported.
            (
                "\ttank DEGRADED 0 0 0\n\t  mirror-0 DEGRADED 0 0 0\n\t    replacing-0 DEGRADED 0 0 0\n\t      123 UNAVAIL 0 0 0 was /dev/sda1/old\n\t      /dev/sdc1 ONLINE 0 0 0 (resilvering)\n\t    /dev/sdb1 ONLINE 0 0 0\n",
                &[],
            ),
            // The spare is in use and no longer available.
            (
                "\ttank DEGRADED 0 0 0\n\t  mirror-0 DEGRADED 0 0 0\n\t    /dev/sda1 ONLINE 0 0 0\n\t    spare-1 DEGRADED 0 0 0\n\t      /dev/sdb1 FAULTED 0 0 0 too many errors\n\t      /dev/sdc1 ONLINE 0 0 0\n\tspares\n\t  /dev/sdc1 INUSE currently in use\n\t  /dev/sdd1 AVAIL\n",
                &[],
            ),
            (
                "\ttank ONLINE 0 0 0\n\t  /dev/sda1 ONLINE 0 0 0\n\tspecial\t\n\t  mirror-1 ONLINE 0 0 0\n\t    /dev/sdb1 OFFLINE 0 0 0\n\t    /dev/sdc1 ONLINE 0 0 0\n\tdedup\t\n\t  /dev/sdx1 ONLINE 0 0 0\n\tlogs\t\n\t  /dev/sdd1 UNAVAIL 0 0 0 cannot open\n\tcache\n\t  /dev/sde1 UNAVAIL 0 0 0\n\tspares\n\t  /dev/sdf1 FAULTED corrupted data\n",
                &[
                    "special /dev/sdb1 OFFLINE",
                    "log /dev/sdd1 UNAVAIL",
                    "cache /dev/sde1 UNAVAIL",
                    "spare /dev/sdf1 FAULTED",
                ],
            ),
            // A replacement whose two devices are both missing.
            (
                "\ttank UNAVAIL 0 0 0\n\t  replacing-0 UNAVAIL 0 0 0\n\t    /dev/sda1 FAULTED 0 0 0\n\t    /dev/sdb1 UNAVAIL 0 0 0\n",
                &["data /dev/sda1 FAULTED", "data /dev/sdb1 UNAVAIL"],
            ),
        ] {
            assert_eq!(lost(config), expected, "{config}");
        }
    }

    #[test]
    fn errors_that_no_device_has() {
        let status = "config:\n\n\tNAME STATE READ WRITE CKSUM\n\ttank ONLINE 0 0 5\n\t  raidz1-0 ONLINE 0 0 14\n\t    /dev/sda1 ONLINE 0 0 0\n\nerrors: x\n";
        assert_eq!(
            group_errors(status),
            [
                "tank has 5 checksum errors",
                "raidz1-0 has 14 checksum errors"
            ]
        );
    }

    #[test]
    fn counters_and_data_errors() {
        let status = "config:\n\n\tNAME STATE READ WRITE CKSUM\n\ttank ONLINE 0 0 0\n\t  /dev/sda1 ONLINE 0 1 33\n\t  /dev/sdb1 ONLINE 1.20K 0 0 (repairing)\n\t  /dev/sdc1 ONLINE 0 0 0 block size: 512B configured, 4096B native\n\nerrors: 3 data errors, use '-v' for a list\n";
        let words: Vec<Option<String>> = leaves(status, "tank")
            .iter()
            .map(Leaf::describe_errors)
            .collect();
        assert_eq!(
            words,
            [
                Some("/dev/sda1 has 1 write error, 33 checksum errors".to_owned()),
                Some("/dev/sdb1 has 1228 read errors".to_owned()),
                None,
            ]
        );
        assert_eq!(data_errors(status), Some(Ok(3)));
        for (line, expected) in [
            ("errors: No known data errors", Some(Ok(0))),
            (
                "errors: 1.5K data errors, use '-v' for a list",
                Some(Ok(1536)),
            ),
            (
                "errors: Permanent errors have been detected in the following files:",
                Some(Ok(1)),
            ),
            ("state: ONLINE", None),
        ] {
            assert_eq!(data_errors(line), expected);
        }
        let hidden = data_errors("errors: List of errors unavailable (insufficient privileges)");
        assert!(matches!(hidden, Some(Err(_))));
        let runs = "  scan: resilver in progress since Mon Dec  5 19:00:01 2022\n";
        assert!(is_resilvering(runs) && !is_resilvering("  scan: resilvered 2M in 0s\n"));
    }
}
