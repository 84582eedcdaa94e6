//! Memory: free memory, reclaim, swap, page cache, and the kernel's table of open files.

use super::{MachineReader, parse_pairs};
use crate::machine_snapshot::MachineSnapshot;

const MEMINFO: [(&str, &str); 11] = [
    ("MemTotal", "mem.total"),
    ("MemAvailable", "mem.available"),
    ("MemFree", "mem.free"),
    ("Cached", "mem.cached"),
    ("Dirty", "mem.dirty"),
    ("Writeback", "mem.writeback"),
    ("SwapTotal", "swap.size"),
    ("SwapFree", "swap.free"),
    ("Zswap", "swap.zswap"),
    ("Zswapped", "swap.zswapped"),
    ("Slab", "mem.slab"),
];

const VMSTAT: [(&str, &str); 20] = [
    ("pswpin", "swap.in_total"),
    ("pswpout", "swap.out_total"),
    ("zswpin", "swap.zswap_in_total"),
    ("zswpout", "swap.zswap_out_total"),
    ("pgmajfault", "mem.majfaults_total"),
    ("pgscan_direct", "mem.scan_direct_total"),
    ("pgscan_kswapd", "mem.scan_kswapd_total"),
    ("pgsteal_direct", "mem.steal_direct_total"),
    ("pgsteal_kswapd", "mem.steal_kswapd_total"),
    ("workingset_refault_file", "mem.refault_file_total"),
    ("workingset_refault_anon", "mem.refault_anon_total"),
    ("compact_stall", "mem.compact_stall_total"),
    ("oom_kill", "mem.oom_kill_total"),
    ("balance_dirty_pages", "mem.dirty_stalls_total"),
    ("nr_dirty_threshold", "mem.dirty_threshold"),
    ("nr_dirty", "mem.dirty_pages"),
    ("numa_foreign", "mem.numa_foreign_total"),
    ("numa_hint_faults", "mem.numa_faults_total"),
    ("pgmigrate_success", "mem.migrated_total"),
    ("thp_fault_fallback", "mem.thp_fallback_total"),
];

pub(super) fn read(reader: &mut MachineReader, look: &mut MachineSnapshot) {
    if let Some(text) = reader.text("/proc/meminfo") {
        for (name, kib) in parse_pairs(&text) {
            if let Some((_, key)) = MEMINFO.iter().find(|(known, _)| *known == name) {
                look.set(*key, kib * 1024.0);
            }
        }
    }
    if let Some(text) = reader.text("/proc/vmstat") {
        let mut stalls = 0.0;
        for (name, count) in parse_pairs(&text) {
            if let Some((_, key)) = VMSTAT.iter().find(|(known, _)| *known == name) {
                look.set(*key, count);
            } else if name.starts_with("allocstall_") {
                stalls += count;
            }
        }
        look.set("mem.stalls_total", stalls);
    }
    if let Some(text) = reader.text("/proc/sys/fs/file-nr") {
        let numbers: Vec<f64> = text
            .split_ascii_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        if let [open, _, most] = numbers[..] {
            look.set("files.open", open);
            look.set("files.max", most);
        }
    }
}
