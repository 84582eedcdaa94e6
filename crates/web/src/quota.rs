//! Reads CPU quotas of control groups (`cpu.stat`): how often a group used up its quota and was throttled. Supports
//! control groups of version 1 and version 2.

use crate::procfs::read;
use assay_model::Nanos;
use assay_model::web::QuotaUse;
use std::path::{Path, PathBuf};

/// Mount points of control groups version 2, with and without version 1 beside it.
const UNIFIED: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
/// Mount points of the CPU controller of control groups version 1.
const CPU: [&str; 2] = ["/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu"];

/// Counters of a control group and of its ancestors at one time. Each of these groups can have a quota that throttles
/// the processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quotas(Vec<(PathBuf, Counts)>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    periods: u64,
    throttled: u64,
    nanos: u64,
}

impl Quotas {
    /// Reads the counters of the control groups of a process.
    pub fn of_process(pid: u32) -> Self {
        let text = read(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let mut found = Self::default();
        for (roots, path) in text.lines().filter_map(controller) {
            for root in roots.iter().map(Path::new) {
                found.add(root, path);
            }
        }
        found
    }

    /// Reads the counters of a control group of version 2.
    pub fn of_group(group: &Path) -> Self {
        let mut found = Self::default();
        for root in UNIFIED.iter().rev() {
            if let Ok(path) = group.strip_prefix(root) {
                found.add(Path::new(root), &path.to_string_lossy());
                break;
            }
        }
        found
    }

    fn add(&mut self, root: &Path, path: &str) {
        let group = root.join(path.trim_start_matches('/'));
        for group in group
            .ancestors()
            .take_while(|group| group.starts_with(root))
        {
            let counts = read(group.join("cpu.stat")).and_then(|text| counts(&text));
            if let Some(counts) = counts {
                self.0.push((group.to_owned(), counts));
            }
        }
    }

    /// Returns how much of its quota a group used since `then`, for the group that was throttled most often; `None` if
    /// no group has a quota.
    pub fn since(&self, then: &Self) -> Option<QuotaUse> {
        let used = self.0.iter().filter_map(|(group, now)| {
            let (_, before) = then.0.iter().find(|(own, _)| own == group)?;
            let periods = now.periods.saturating_sub(before.periods);
            (periods > 0).then(|| QuotaUse {
                group: group.display().to_string(),
                cpus: allowed(group),
                periods,
                throttled: now.throttled.saturating_sub(before.throttled),
                time: Nanos(now.nanos.saturating_sub(before.nanos)),
            })
        });
        used.max_by_key(|quota| quota.throttled)
    }
}

/// Parses a line of `/proc/PID/cgroup`. If the line has a CPU controller, returns the possible mount points and the
/// path of the group.
fn controller(line: &str) -> Option<([&'static str; 2], &str)> {
    let mut parts = line.splitn(3, ':');
    let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    match (number, controllers) {
        ("0", "") => Some((UNIFIED, path)),
        _ if controllers.split(',').any(|one| one == "cpu") => Some((CPU, path)),
        _ => None,
    }
}

fn counts(stat: &str) -> Option<Counts> {
    let value = |name: &str| {
        let mut lines = stat.lines().filter_map(|line| line.split_once(' '));
        let (_, value) = lines.find(|(own, _)| *own == name)?;
        value.trim().parse::<u64>().ok()
    };
    let micros = value("throttled_usec").map(|micros| micros.saturating_mul(1000));
    Some(Counts {
        periods: value("nr_periods")?,
        throttled: value("nr_throttled")?,
        nanos: micros.or_else(|| value("throttled_time"))?,
    })
}

/// Returns how many CPUs the quota of a group permits on average; `None` without a quota.
fn allowed(group: &Path) -> Option<f64> {
    let number = |file: &str| read(group.join(file))?.trim().parse::<f64>().ok();
    let (quota, period) = match read(group.join("cpu.max")) {
        Some(text) => {
            let (quota, period) = text.split_once(' ')?;
            (quota.parse().ok()?, period.trim().parse().ok()?)
        }
        None => (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?),
    };
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_counted_and_the_group_above_counts_as_well() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, name: &str, text: &str| {
            let directory = root.path().join(path);
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(directory.join(name), text).unwrap();
        };
        let look = || {
            let mut quotas = Quotas::default();
            quotas.add(root.path(), "/a/b");
            quotas
        };
        write(
            "a/b",
            "cpu.stat",
            "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n",
        );
        write(
            "a",
            "cpu.stat",
            "usage_usec 9\nnr_periods 5\nnr_throttled 1\nthrottled_usec 7\n",
        );
        let then = look();
        write(
            "a",
            "cpu.stat",
            "usage_usec 9\nnr_periods 25\nnr_throttled 16\nthrottled_usec 1007\n",
        );
        write("a", "cpu.max", "50000 100000\n");
        let used = look().since(&then).unwrap();
        assert_eq!(
            (used.periods, used.throttled, used.cpus),
            (20, 15, Some(0.5))
        );
        assert_eq!(used.time, Nanos(1_000_000));
        assert!(used.group.ends_with("/a"), "{used:?}");
        write("a", "cpu.max", "max 100000\n");
        assert_eq!(look().since(&then).unwrap().cpus, None);
        // No group has a quota.
        assert_eq!(then.since(&then), None);
    }

    #[test]
    fn lines_with_a_cpu_controller() {
        assert_eq!(
            controller("0::/system.slice/a:b"),
            Some((UNIFIED, "/system.slice/a:b"))
        );
        assert_eq!(controller("3:cpu,cpuacct:/x"), Some((CPU, "/x")));
        assert_eq!(controller("2:cpuset:/x"), None);
        assert_eq!(controller("nonsense"), None);
    }
}
