//! Properties of a process that do not change: control groups, limit of open files, guest.

use super::MachineReader;
use super::stat_line::StatLine;
use assay_facts::qemu;
use std::collections::BTreeMap;
use std::path::Path;

/// Properties of a process that do not change.
#[derive(Clone, Debug, Default)]
pub(super) struct Lasting {
    pub(super) start: u64,
    pub(super) texts: BTreeMap<String, String>,
    pub(super) groups: Vec<String>,
    pub(super) limits: ProcessLimits,
    /// The user that it runs as.
    pub(super) uid: Option<u32>,
    /// Number of CPUs that the affinity and the cpuset of the process permit.
    pub(super) cpus_allowed: Option<f64>,
}

/// Reads the properties of a process that do not change. Called once for each process.
pub(super) fn read_lasting(reader: &mut MachineReader, pid: u32, stat: &StatLine) -> Lasting {
    let mut lasting = Lasting {
        start: stat.start,
        ..Lasting::default()
    };
    lasting.texts.insert("pid".to_owned(), pid.to_string());
    for line in reader
        .text_once(&format!("/proc/{pid}/cgroup"))
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
    lasting.limits = ProcessLimits::read(reader, pid);
    lasting.uid = reader.owner(Path::new(&format!("/proc/{pid}")));
    let status = reader.text_once(&format!("/proc/{pid}/status"));
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

/// Soft limits of a process; none for "unlimited", and for 0: a sandbox such as that of sshd forbids on purpose what
/// its process never does.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProcessLimits {
    /// Maximum number of open files.
    pub(super) files: Option<f64>,
    /// Maximum number of tasks of the process's user.
    pub(super) processes: Option<f64>,
}

impl ProcessLimits {
    pub(super) fn read(reader: &mut MachineReader, pid: u32) -> Self {
        let text = reader.text_once(&format!("/proc/{pid}/limits"));
        Self::parse(&text.unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let limit = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            let limit: f64 = line.split_ascii_whitespace().next()?.parse().ok()?;
            (limit > 0.0).then_some(limit)
        };
        Self {
            files: limit("Max open files"),
            processes: limit("Max processes"),
        }
    }
}

/// Bits that are set in a mask such as `ff,00000003`.
fn count_bits(mask: &str) -> f64 {
    let digits = mask.chars().filter_map(|digit| digit.to_digit(16));
    f64::from(digits.map(u32::count_ones).sum::<u32>())
}

#[cfg(test)]
mod tests {
    use super::ProcessLimits;

    #[test]
    fn a_sandbox_is_at_no_limit() {
        let text = "Limit                     Soft Limit           Hard Limit           Units\n\
                    Max processes             0                    0                    processes\n\
                    Max open files            1024                 524288               files\n";
        let limits = ProcessLimits::parse(text);
        assert_eq!((limits.processes, limits.files), (None, Some(1024.0)));
        assert_eq!(
            ProcessLimits::parse("Max processes unlimited").processes,
            None
        );
    }
}
