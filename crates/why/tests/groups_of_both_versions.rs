//! Control groups of version 2 and of version 1 give the same numbers; a kernel without PSI is no fault.
#![allow(clippy::disallowed_methods, reason = "tests read no real machine")]

use assay_host::{Host, Recorded};
use assay_why::{
    Entity, EntityKind, MachineSnapshot, WatchPace, WatchSubject, WatchWindow, judge_window, watch,
};
use std::sync::Arc;
use std::time::Duration;

/// A machine with one process in the group `/web`.
fn machine(cgroup: &str, mount: &str) -> Recorded {
    let stat = "7 (web) R 1 7 7 0 -1 4194304 10 0 3 0 500 600 0 0 20 0 2 0 99 1000 12 0\n";
    Recorded::new()
        .file(
            "/proc/stat",
            "cpu 10 0 10 100 0 0 0 0\ncpu0 10 0 10 100 0 0 0 0\n",
        )
        .file("/proc/uptime", "100.0 100.0\n")
        .file("/proc/7/stat", stat)
        .file("/proc/7/cgroup", cgroup)
        .file("/proc/self/mountinfo", mount)
}

fn look_at(host: Recorded) -> Vec<MachineSnapshot> {
    let host: Arc<dyn Host> = Arc::new(host);
    let pace = WatchPace {
        length: Duration::from_millis(300),
        interval: Duration::from_millis(100),
        deadline: Duration::from_secs(20),
    };
    let mut looks = Vec::new();
    let thing = WatchSubject::Group("/web".to_owned());
    watch(&host, &thing, pace, &|| false, &mut |look| looks.push(look));
    looks
}

fn group(looks: &[MachineSnapshot]) -> Entity {
    let entities = looks.iter().flat_map(|look| &look.entities);
    let mut groups = entities.filter(|entity| entity.kind == EntityKind::Group);
    groups
        .find(|entity| entity.id == "/web")
        .expect("the group")
        .clone()
}

/// Numbers that both versions give.
const EXPECTED: [(&str, f64); 11] = [
    ("cpu.periods_total", 100.0),
    ("cpu.throttled_total", 60.0),
    ("cpu.throttled_s_total", 3.0),
    ("cpu.quota", 0.2),
    ("mem.max", 1e8),
    ("mem.current", 9.9e7),
    ("mem.reached_max_total", 700.0),
    ("mem.refault_file_total", 40.0),
    ("pids.max", 8.0),
    ("io.read_ops_limit", 50.0),
    ("frozen", 1.0),
];

#[test]
fn groups_of_version_two_are_read() {
    let dir = "/sys/fs/cgroup/web";
    let host = machine(
        "0::/web\n",
        "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n",
    )
    .file(
        &format!("{dir}/cpu.stat"),
        "usage_usec 900\nnr_periods 100\nnr_throttled 60\nthrottled_usec 3000000\n",
    )
    .file(&format!("{dir}/cpu.max"), "20000 100000\n")
    .file(&format!("{dir}/memory.max"), "100000000\n")
    .file(&format!("{dir}/memory.current"), "99000000\n")
    .file(
        &format!("{dir}/memory.events"),
        "low 0\nhigh 0\nmax 700\noom 0\noom_kill 0\n",
    )
    .file(
        &format!("{dir}/memory.stat"),
        "anon 5\nworkingset_refault_file 40\n",
    )
    .file(&format!("{dir}/pids.current"), "2\n")
    .file(&format!("{dir}/pids.max"), "8\n")
    .file(
        &format!("{dir}/io.max"),
        "254:0 rbps=max wbps=max riops=50 wiops=max\n",
    )
    .file(
        &format!("{dir}/io.stat"),
        "254:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n",
    )
    .file(&format!("{dir}/cgroup.events"), "populated 1\nfrozen 1\n");
    let group = group(&look_at(host));
    for (key, value) in EXPECTED {
        assert_eq!(group.numbers.get(key), Some(&value), "{key}");
    }
    assert_eq!(group.numbers["io.read_total"], 4096.0);
}

#[test]
fn groups_of_version_one_are_read() {
    let names = ["cpu", "memory", "pids", "blkio", "freezer"];
    let mount =
        |name: &&str| format!("31 20 0:27 / /sys/fs/cgroup/{name} rw - cgroup cgroup rw,{name}\n");
    let mounts: String = names.iter().map(mount).collect();
    let dir = |name: &str| format!("/sys/fs/cgroup/{name}/web");
    let host = machine("4:memory:/web\n3:cpu:/web\n", &mounts)
        .file(
            &format!("{}/cpu.stat", dir("cpu")),
            "nr_periods 100\nnr_throttled 60\nthrottled_time 3000000000\n",
        )
        .file(&format!("{}/cpu.cfs_quota_us", dir("cpu")), "20000\n")
        .file(&format!("{}/cpu.cfs_period_us", dir("cpu")), "100000\n")
        .file(
            &format!("{}/memory.limit_in_bytes", dir("memory")),
            "100000000\n",
        )
        .file(
            &format!("{}/memory.usage_in_bytes", dir("memory")),
            "99000000\n",
        )
        .file(&format!("{}/memory.failcnt", dir("memory")), "700\n")
        .file(
            &format!("{}/memory.stat", dir("memory")),
            "workingset_refault_file 40\n",
        )
        .file(&format!("{}/pids.max", dir("pids")), "8\n")
        .file(
            &format!("{}/blkio.throttle.read_iops_device", dir("blkio")),
            "254:0 50\n",
        )
        .file(&format!("{}/freezer.state", dir("freezer")), "FROZEN\n");
    let group = group(&look_at(host));
    for (key, value) in EXPECTED {
        assert_eq!(group.numbers.get(key), Some(&value), "{key}");
    }
}

#[test]
fn a_kernel_without_pressure_figures_is_watched_all_the_same() {
    let host = machine("0::/\n", "20 1 254:0 / / rw - ext4 /dev/vda rw\n");
    let looks = look_at(host);
    assert!(looks.len() >= 2);
    let thing = WatchSubject::Machine;
    let answer = judge_window(&WatchWindow::new(&looks, &thing), &thing).unwrap();
    let pressure = answer.figures.iter().find(|(name, _)| name == "Pressure");
    assert!(pressure.is_some_and(|(_, text)| text.contains("PSI")));
}
