//! Properties of a process that do not change: control groups, limit of open files, guest.

use super::MachineReader;
use super::stat_line::StatLine;
use assay_facts::qemu;
use std::collections::BTreeMap;

/// Properties of a process that do not change.
#[derive(Clone, Debug, Default)]
pub(super) struct Lasting {
    pub(super) start: u64,
    pub(super) texts: BTreeMap<String, String>,
    pub(super) groups: Vec<String>,
    pub(super) open_files_limit: Option<f64>,
    /// CPUs that its affinity and its cpuset leave.
    pub(super) cpus_allowed: Option<f64>,
}

/// Reads them once for each process.
pub(super) fn read_lasting(reader: &mut MachineReader, pid: u32, stat: &StatLine) -> Lasting {
    let mut lasting = Lasting {
        start: stat.start,
        ..Lasting::default()
    };
    lasting.texts.insert("pid".to_owned(), pid.to_string());
    for line in reader
        .text(&format!("/proc/{pid}/cgroup"))
        .unwrap_or_default()
        .lines()
    {
        if let Some(path) = line.splitn(3, ':').nth(2).filter(|path| *path != "/") {
            lasting.groups.push(path.to_owned());
        }
    }
    lasting
        .texts
        .insert("groups".to_owned(), lasting.groups.join("\n"));
    if let Some(longest) = lasting.groups.iter().max_by_key(|path| path.len()) {
        lasting.texts.insert("group".to_owned(), longest.clone());
    }
    lasting.open_files_limit = read_open_files_limit(reader, pid);
    let status = reader.text(&format!("/proc/{pid}/status"));
    let status = status.unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed:"));
    lasting.cpus_allowed = mask.map(count_bits);
    if qemu::is_qemu(&stat.name)
        && let Some(text) = reader.text(&format!("/proc/{pid}/cmdline"))
    {
        let machine = qemu::parse(&qemu::argv(text.as_bytes()));
        if let Some(name) = machine.name.or(machine.id) {
            lasting.texts.insert("guest".to_owned(), name);
        }
    }
    lasting
}

/// Reads the soft limit of open files; none for "unlimited".
pub(super) fn read_open_files_limit(reader: &mut MachineReader, pid: u32) -> Option<f64> {
    let text = reader.text(&format!("/proc/{pid}/limits"))?;
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// Bits that are set in a mask such as `ff,00000003`.
fn count_bits(mask: &str) -> f64 {
    let digits = mask.chars().filter_map(|digit| digit.to_digit(16));
    f64::from(digits.map(u32::count_ones).sum::<u32>())
}
