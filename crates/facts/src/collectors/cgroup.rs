//! Collects the limits of the control groups of this process. The tightest limit between the group of the process and
//! the root group applies.

use crate::gather::{Gather, not_understood};
use crate::mountinfo::{self, MOUNTINFO, Mount};
use assay_model::FactKind;
use std::path::{Path, PathBuf};

const CGROUP: &str = "/proc/self/cgroup";

pub(crate) fn collect(g: &mut Gather<'_>) {
    let Some(groups) = g.read("cgroup", CGROUP) else {
        return;
    };
    let mounts = match g.host.read(Path::new(MOUNTINFO)) {
        Ok(text) => mountinfo::parse(&text).unwrap_or_default(),
        Err(error) => return g.fault("cgroup", &error, FactKind::Runtime, MOUNTINFO),
    };
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let Some(mount) = mounts
            .iter()
            .find(|mount| has_controllers(mount, controllers))
        else {
            continue;
        };
        for dir in list_levels(mount, Path::new(path)) {
            match controllers {
                "" => {
                    tighten(g, "cgroup.cpu", &dir.join("cpu.max"), cpu_max);
                    tighten(g, "cgroup.memory", &dir.join("memory.max"), parse_limit);
                    note_io_limits(g, &dir.join("io.max"));
                }
                _ => {
                    for controller in controllers.split(',') {
                        version_1(g, controller, &dir);
                    }
                }
            }
        }
    }
}

fn version_1(g: &mut Gather<'_>, controller: &str, dir: &Path) {
    match controller {
        "memory" => tighten(
            g,
            "cgroup.memory",
            &dir.join("memory.limit_in_bytes"),
            |text| {
                // "No limit" is the largest multiple of the page size that fits a signed long.
                parse_limit(text).map(|limit| limit.filter(|bytes| *bytes < 1e18))
            },
        ),
        "cpu" => {
            let period = g.host.read_text(&dir.join("cpu.cfs_period_us"));
            let period: Option<f64> = period.ok().and_then(|text| text.trim().parse().ok());
            tighten(g, "cgroup.cpu", &dir.join("cpu.cfs_quota_us"), |text| {
                let quota: f64 = text.parse().ok()?;
                if quota < 0.0 {
                    return Some(None);
                }
                period.map(|period| Some(quota / period))
            });
        }
        "blkio" => {
            for name in ["read_bps", "write_bps", "read_iops", "write_iops"] {
                note_io_limits(g, &dir.join(format!("blkio.throttle.{name}_device")));
            }
        }
        _ => {}
    }
}

fn has_controllers(mount: &Mount, controllers: &str) -> bool {
    match controllers {
        "" => mount.fs_type == "cgroup2",
        _ => {
            let options: Vec<&str> = mount.super_options.split(',').collect();
            mount.fs_type == "cgroup"
                && controllers
                    .split(',')
                    .all(|controller| options.contains(&controller))
        }
    }
}

/// Returns the directories from the group up to the root of the mount. In a container the group may be outside of the
/// mount; the result is then only the root of the mount.
fn list_levels(mount: &Mount, path: &Path) -> Vec<PathBuf> {
    let below = path.strip_prefix(&mount.root).unwrap_or(Path::new(""));
    below
        .ancestors()
        .map(|part| mount.point.join(part))
        .collect()
}

/// Notes a limit if it is tighter than the limit noted so far. `understand` returns `Some(None)` for "no limit". The
/// root group does not have these files.
fn tighten(
    g: &mut Gather<'_>,
    key: &str,
    path: &Path,
    understand: impl FnOnce(&str) -> Option<Option<f64>>,
) {
    let source = path.display().to_string();
    let Some(text) = g.read(key, &source) else {
        return;
    };
    match understand(text.trim()) {
        Some(None) => {}
        Some(Some(limit)) => {
            let tighter = g
                .facts
                .get(key)
                .and_then(serde_json::Value::as_f64)
                .is_none_or(|before| limit < before);
            if tighter {
                let whole = limit.fract() == 0.0 && limit < 9e15;
                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "checked: whole, in range"
                )]
                let value = if whole {
                    serde_json::Value::from(limit as u64)
                } else {
                    limit.into()
                };
                g.facts.known(key, value, FactKind::Runtime, source);
            }
        }
        None => g
            .facts
            .unknown(key, not_understood(text.trim()), FactKind::Runtime, source),
    }
}

fn parse_limit(text: &str) -> Option<Option<f64>> {
    match text {
        "max" => Some(None),
        _ => text.parse().ok().map(Some),
    }
}

/// Parses a line `QUOTA PERIOD` of `cpu.max`, and returns the quotient, which is a number of processors.
fn cpu_max(text: &str) -> Option<Option<f64>> {
    let (quota, period) = text.split_once(' ')?;
    let period: f64 = period.parse().ok().filter(|period| *period > 0.0)?;
    parse_limit(quota).map(|quota| quota.map(|quota| quota / period))
}

/// Notes the I/O limits of each device (`MAJOR:MINOR rbps=…`) from all levels of the control groups.
fn note_io_limits(g: &mut Gather<'_>, path: &Path) {
    let source = path.display().to_string();
    let Some(text) = g.read("cgroup.io", &source) else {
        return;
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let lines: Vec<String> = text
        .lines()
        .map(|line| format!("{name} {}", line.trim()))
        .collect();
    if !lines.is_empty() {
        let mut all: Vec<serde_json::Value> = g
            .facts
            .get("cgroup.io")
            .and_then(|value| value.as_array().cloned())
            .unwrap_or_default();
        all.extend(lines.into_iter().map(Into::into));
        g.facts.known("cgroup.io", all, FactKind::Runtime, source);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn the_tightest_limit_binds() {
        let host = Recorded::new()
            .file("/proc/self/cgroup", "0::/a/b\n")
            .file(
                "/proc/self/mountinfo",
                "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            )
            .file("/sys/fs/cgroup/a/cpu.max", "150000 100000\n")
            .file("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n")
            .file("/sys/fs/cgroup/a/memory.max", "1073741824\n")
            .file("/sys/fs/cgroup/a/b/memory.max", "2147483648\n")
            .file(
                "/sys/fs/cgroup/a/io.max",
                "8:0 rbps=1048576 wbps=max riops=max wiops=max\n",
            );
        let mut g = Gather::new(&host);
        collect(&mut g);
        assert_eq!(g.facts.get("cgroup.cpu"), Some(&1.5.into()));
        assert_eq!(g.facts.u64("cgroup.memory"), Some(1 << 30));
        assert_eq!(
            g.facts.map["cgroup.memory"].place.to_string(),
            "/sys/fs/cgroup/a/memory.max"
        );
        assert!(
            g.facts.get("cgroup.io").unwrap()[0]
                .as_str()
                .unwrap()
                .contains("rbps=1048576")
        );
    }

    #[test]
    fn version_1_limits() {
        let host = Recorded::new()
            .file("/proc/self/cgroup", "4:memory:/x\n1:cpu,cpuacct:/\n")
            .file(
                "/proc/self/mountinfo",
                "32 31 0:29 / /c/cpu rw - cgroup cgroup rw,cpu,cpuacct\n35 31 0:32 / /c/memory rw - cgroup cgroup rw,memory\n",
            )
            .file("/c/cpu/cpu.cfs_quota_us", "-1\n")
            .file("/c/cpu/cpu.cfs_period_us", "100000\n")
            .file("/c/memory/memory.limit_in_bytes", "9223372036854771712\n")
            .file("/c/memory/x/memory.limit_in_bytes", "4096\n");
        let mut g = Gather::new(&host);
        collect(&mut g);
        assert_eq!(g.facts.u64("cgroup.memory"), Some(4096));
        assert!(!g.facts.map.contains_key("cgroup.cpu"));
    }
}
