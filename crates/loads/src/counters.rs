//! Kernel counters of a sample. They are read before and after the load, and subtracted.

pub mod zfs;

use assay_host::{Host, kstat};
use assay_model::sample::{Counters, CpuDelta, DeviceDelta, Throttle};
use assay_model::{Bytes, Nanos};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Values of the kernel counters at one time.
#[derive(Clone, Debug)]
pub struct CounterSnapshot {
    at: Instant,
    disks: BTreeMap<String, DeviceDelta>,
    cpu: Vec<CpuTimes>,
    arc: Option<zfs::Arc>,
    zil: Option<zfs::Zil>,
    throttle_events: Option<u64>,
    freq_share: Option<f64>,
    nvme_celsius: Option<(f64, f64)>,
    mem_available: Option<Bytes>,
}

/// Jiffies of one line of /proc/stat. In a list of lines, index 0 is the line of the whole machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CpuTimes {
    user: u64,
    system: u64,
    irq: u64,
    iowait: u64,
    steal: u64,
    idle: u64,
}

/// Paths of the files with kernel counters. They are searched once, so that a snapshot needs only a few reads.
#[derive(Clone, Debug)]
pub struct Sources {
    devices: Vec<String>,
    /// Disk of each device that is a partition, by the name of the device.
    disk_of: BTreeMap<String, String>,
    throttle: Vec<PathBuf>,
    freq: Vec<(PathBuf, f64)>,
    nvme: Vec<(PathBuf, f64)>,
}

fn read_text(host: &dyn Host, path: impl AsRef<Path>) -> Option<String> {
    host.read_text(path.as_ref()).ok()
}

fn read_number(host: &dyn Host, path: impl AsRef<Path>) -> Option<f64> {
    read_text(host, path)?.trim().parse().ok()
}

/// Returns the disk of a partition, such as `vda` for `vda2`; `None` if the device is not a partition.
fn disk_of(host: &dyn Host, name: &str) -> Option<String> {
    let dir = host
        .realpath(&Path::new("/sys/class/block").join(name))
        .ok()?;
    read_text(host, dir.join("partition"))?;
    Some(dir.parent()?.file_name()?.to_str()?.to_owned())
}

impl Sources {
    /// Finds the counters of `devices` (names in /proc/diskstats) and of the machine.
    #[must_use]
    pub fn find(host: &dyn Host, devices: &[String]) -> Self {
        let entries = |dir: &str, prefix: &str| -> Vec<PathBuf> {
            let names = host.list(Path::new(dir)).unwrap_or_default();
            let wanted = names
                .into_iter()
                .filter(|name| name.to_string_lossy().starts_with(prefix));
            wanted.map(|name| Path::new(dir).join(name)).collect()
        };
        let is_cpu = |path: &PathBuf| {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            name.strip_prefix("cpu")
                .is_some_and(|n| n.parse::<u32>().is_ok())
        };
        let cpus: Vec<PathBuf> = entries("/sys/devices/system/cpu", "cpu")
            .into_iter()
            .filter(is_cpu)
            .collect();
        let throttle: Vec<PathBuf> = cpus
            .iter()
            .map(|cpu| cpu.join("thermal_throttle/core_throttle_count"))
            .filter(|path| read_text(host, path).is_some())
            .collect();
        let freq = cpus
            .iter()
            .filter_map(|cpu| {
                let max = read_number(host, cpu.join("cpufreq/cpuinfo_max_freq"))?;
                Some((cpu.join("cpufreq/scaling_cur_freq"), max))
            })
            .collect();
        let nvme = entries("/sys/class/hwmon", "hwmon")
            .into_iter()
            .filter(|dir| {
                read_text(host, dir.join("name")).is_some_and(|name| name.trim() == "nvme")
            })
            .filter_map(|dir| {
                let limit = read_number(host, dir.join("temp1_max"))?;
                Some((dir.join("temp1_input"), limit / 1000.0))
            })
            .collect();
        let disk_of = devices
            .iter()
            .filter_map(|name| Some((name.clone(), disk_of(host, name)?)));
        Self {
            devices: devices.to_vec(),
            disk_of: disk_of.collect(),
            throttle,
            freq,
            nvme,
        }
    }
}

impl CounterSnapshot {
    /// Reads the current values of all counters.
    #[must_use]
    pub fn take(host: &dyn Host, sources: &Sources) -> Self {
        let at = Instant::now();
        let mut disks = parse_diskstats(&read_text(host, "/proc/diskstats").unwrap_or_default());
        for (partition, disk) in &sources.disk_of {
            let flushed = disks.get(disk).map(|disk| (disk.flushes, disk.flush_ms));
            if let (Some(of), Some((flushes, flush_ms))) = (disks.get_mut(partition), flushed) {
                (of.flushes, of.flush_ms) = (flushes, flush_ms);
            }
        }
        let counts: Vec<u64> = sources
            .throttle
            .iter()
            .filter_map(|path| Some(read_number(host, path)? as u64))
            .collect();
        let shares: Vec<f64> = sources
            .freq
            .iter()
            .filter_map(|(path, max)| Some(read_number(host, path)? / max))
            .collect();
        let celsius = sources
            .nvme
            .iter()
            .filter_map(|(path, limit)| Some((read_number(host, path)? / 1000.0, *limit)))
            .max_by(|a, b| (a.0 - a.1).total_cmp(&(b.0 - b.1)));
        Self {
            at,
            disks: disks
                .into_iter()
                .filter(|(name, _)| sources.devices.contains(name))
                .collect(),
            cpu: parse_stat(&read_text(host, "/proc/stat").unwrap_or_default()),
            arc: read_text(host, kstat::ARCSTATS).map(|text| zfs::Arc::parse(&text)),
            zil: read_text(host, kstat::ZIL).and_then(|text| zfs::Zil::parse(&text)),
            throttle_events: (!counts.is_empty()).then(|| counts.iter().sum()),
            freq_share: (!shares.is_empty())
                .then(|| shares.iter().sum::<f64>() / shares.len() as f64),
            nvme_celsius: celsius,
            mem_available: read_text(host, "/proc/meminfo")
                .and_then(|text| parse_meminfo(&text, "MemAvailable")),
        }
    }

    /// Returns by how much the counters grew from `self` to the later `end`. Frequency, temperature and sizes are the
    /// values at `end`.
    #[must_use]
    pub fn until(&self, end: &Self) -> Counters {
        let throttle = Throttle {
            cpu_events: end
                .throttle_events
                .zip(self.throttle_events)
                .map(|(end, start)| end.saturating_sub(start)),
            cpu_freq_share: end.freq_share,
            nvme_celsius: end.nvme_celsius,
        };
        Counters {
            elapsed: Nanos::from(end.at.saturating_duration_since(self.at)),
            devices: self
                .disks
                .iter()
                .filter_map(|(name, start)| Some(device_delta(start, end.disks.get(name)?)))
                .collect(),
            cpu: cpu_delta(&self.cpu, &end.cpu),
            tool_cpu: None,
            arc: self.arc.zip(end.arc).map(|(start, end)| start.until(end)),
            zil: self.zil.zip(end.zil).map(|(start, end)| start.until(end)),
            throttle: (throttle != Throttle::default()).then_some(throttle),
            mem_available: self.mem_available,
        }
    }
}

/// Parses /proc/diskstats. Fields after the name (Documentation/admin-guide/iostats.rst): 1 reads, 3 sectors read, 4 ms
/// reading, 5 writes, 7 sectors written, 8 ms writing, 10 ms busy, 11 weighted ms, 12 discards (Linux 4.18), 16
/// flushes, 17 ms flushing (Linux 5.5). A sector in these counters always has 512 bytes.
fn parse_diskstats(text: &str) -> BTreeMap<String, DeviceDelta> {
    let parse = |line: &str| {
        let mut words = line.split_whitespace().skip(2);
        let name = words.next()?.to_owned();
        let fields: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        let field = |n: usize| fields.get(n - 1).copied().unwrap_or(0);
        (fields.len() >= 11).then(|| {
            let delta = DeviceDelta {
                name: name.clone(),
                reads: field(1),
                read_bytes: Bytes(field(3) * 512),
                read_ms: field(4),
                writes: field(5),
                write_bytes: Bytes(field(7) * 512),
                write_ms: field(8),
                busy_ms: field(10),
                weighted_ms: field(11),
                discards: field(12),
                flushes: field(16),
                flush_ms: field(17),
            };
            (name, delta)
        })
    };
    text.lines().filter_map(parse).collect()
}

fn device_delta(start: &DeviceDelta, end: &DeviceDelta) -> DeviceDelta {
    DeviceDelta {
        name: start.name.clone(),
        reads: end.reads.saturating_sub(start.reads),
        read_bytes: Bytes(end.read_bytes.0.saturating_sub(start.read_bytes.0)),
        read_ms: end.read_ms.saturating_sub(start.read_ms),
        writes: end.writes.saturating_sub(start.writes),
        write_bytes: Bytes(end.write_bytes.0.saturating_sub(start.write_bytes.0)),
        write_ms: end.write_ms.saturating_sub(start.write_ms),
        busy_ms: end.busy_ms.saturating_sub(start.busy_ms),
        weighted_ms: end.weighted_ms.saturating_sub(start.weighted_ms),
        flushes: end.flushes.saturating_sub(start.flushes),
        flush_ms: end.flush_ms.saturating_sub(start.flush_ms),
        discards: end.discards.saturating_sub(start.discards),
    }
}

/// Parses /proc/stat (proc_stat(5)). The columns are user nice system idle iowait irq softirq steal; user includes
/// guest time.
fn parse_stat(text: &str) -> Vec<CpuTimes> {
    text.lines()
        .take_while(|line| line.starts_with("cpu"))
        .map(|line| {
            let fields: Vec<u64> = line
                .split_whitespace()
                .skip(1)
                .map_while(|word| word.parse().ok())
                .collect();
            let field = |n: usize| fields.get(n).copied().unwrap_or(0);
            CpuTimes {
                user: field(0) + field(1),
                system: field(2),
                idle: field(3),
                iowait: field(4),
                irq: field(5) + field(6),
                steal: field(7),
            }
        })
        .collect()
}

impl CpuTimes {
    fn since(self, start: Self) -> Self {
        Self {
            user: self.user.saturating_sub(start.user),
            system: self.system.saturating_sub(start.system),
            irq: self.irq.saturating_sub(start.irq),
            iowait: self.iowait.saturating_sub(start.iowait),
            steal: self.steal.saturating_sub(start.steal),
            idle: self.idle.saturating_sub(start.idle),
        }
    }

    fn busy(self) -> u64 {
        self.user + self.system + self.irq + self.steal
    }

    fn total(self) -> u64 {
        self.busy() + self.iowait + self.idle
    }
}

fn cpu_delta(start: &[CpuTimes], end: &[CpuTimes]) -> Option<CpuDelta> {
    if start.len() != end.len() {
        return None; // a CPU came or went
    }
    let mut deltas = start.iter().zip(end).map(|(start, end)| end.since(*start));
    let all = deltas.next().filter(|all| all.total() > 0)?;
    let share = |part: u64| part as f64 / all.total() as f64;
    let busiest = deltas
        .filter(|cpu| cpu.total() > 0)
        .map(|cpu| cpu.busy() as f64 / cpu.total() as f64)
        .fold(0.0, f64::max);
    Some(CpuDelta {
        cpus: u32::try_from(start.len() - 1).unwrap_or(u32::MAX),
        user: share(all.user),
        system: share(all.system),
        irq: share(all.irq),
        iowait: share(all.iowait),
        steal: share(all.steal),
        idle: share(all.idle),
        busiest,
    })
}

/// Parses the value of `key` from /proc/meminfo, in bytes.
#[must_use]
pub fn parse_meminfo(text: &str, key: &str) -> Option<Bytes> {
    let line = text
        .lines()
        .find(|line| line.split(':').next() == Some(key))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(Bytes(kib * 1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diskstats_of_linux_6_and_of_linux_4() {
        let text = " 254       0 vda 49748 6576 2564714 11457 25388 7930 2199736 6207 0 8524 18354 8079 48 694200 534 3762 155\n   8       1 sda1 10 0 80 5 20 0 160 6 0 7 11\nshort\n";
        let disks = parse_diskstats(text);
        let vda = &disks["vda"];
        assert_eq!((vda.reads, vda.writes, vda.flushes), (49748, 25388, 3762));
        assert_eq!(vda.read_bytes, Bytes(2_564_714 * 512));
        assert_eq!(
            (vda.busy_ms, vda.weighted_ms, vda.flush_ms),
            (8524, 18354, 155)
        );
        assert_eq!((disks["sda1"].flushes, disks["sda1"].busy_ms), (0, 7));
    }

    #[test]
    fn shares_of_cpu_time() {
        let start =
            parse_stat("cpu 0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0\nintr 1\n");
        let end = parse_stat(
            "cpu 50 0 30 100 10 0 10 0\ncpu0 50 0 30 10 0 0 10 0\ncpu1 0 0 0 90 10 0 0 0\nintr 1\n",
        );
        let delta = cpu_delta(&start, &end).unwrap();
        assert_eq!(delta.cpus, 2);
        assert!((delta.user - 0.25).abs() < 1e-9 && (delta.iowait - 0.05).abs() < 1e-9);
        assert!((delta.busiest - 0.9).abs() < 1e-9);
        assert_eq!(cpu_delta(&start, &end[..2]), None, "a CPU went away");
        assert_eq!(cpu_delta(&start, &start), None, "no time passed");
    }

    #[test]
    fn available_memory() {
        assert_eq!(
            parse_meminfo("MemTotal: 8 kB\nMemAvailable: 4 kB\n", "MemAvailable"),
            Some(Bytes(4096))
        );
        assert_eq!(parse_meminfo("", "MemAvailable"), None);
    }
}
