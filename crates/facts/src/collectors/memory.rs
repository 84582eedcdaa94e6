//! Memory: sizes from /proc/meminfo in bytes, huge pages, NUMA nodes.

use crate::gather::{Gather, chosen, lossy};
use assay_model::FactKind;

const MEMINFO: &str = "/proc/meminfo";

pub(crate) fn collect(g: &mut Gather<'_>) {
    let names = [
        ("memory.total", "MemTotal"),
        ("memory.available", "MemAvailable"),
        ("memory.swap_total", "SwapTotal"),
        ("memory.swap_free", "SwapFree"),
        ("memory.dirty", "Dirty"),
        ("memory.hugepages_total", "HugePages_Total"),
        ("memory.hugepage_size", "Hugepagesize"),
    ];
    if let Some(text) = g.read("memory", MEMINFO) {
        for (key, name) in names {
            if let Some(value) = meminfo(&text, name) {
                g.facts.known(key, value, FactKind::Runtime, MEMINFO);
            }
        }
    }
    g.value(
        "memory.transparent_hugepages",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        chosen,
    );
    g.flag("memory.zswap", "/sys/module/zswap/parameters/enabled");
    let node = "/sys/devices/system/node";
    let nodes = g.list("memory.numa_nodes", node);
    let count = nodes.iter().filter(|name| is_node(&lossy(name))).count();
    if count > 0 {
        g.facts
            .known("memory.numa_nodes", count, FactKind::Runtime, node);
    }
}

fn is_node(name: &str) -> bool {
    name.strip_prefix("node")
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A line of meminfo: bytes where it says kB, else a count.
fn meminfo(text: &str, name: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let mut words = line.split_whitespace();
    let value: u64 = words.next()?.parse().ok()?;
    match words.next() {
        Some("kB") => value.checked_mul(1024),
        Some(_) => None,
        None => Some(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        let text = "MemTotal:       24668924 kB\nMemTotalX: 3 kB\nHugePages_Total:       2\n";
        assert_eq!(meminfo(text, "MemTotal"), Some(24_668_924 * 1024));
        assert_eq!(meminfo(text, "HugePages_Total"), Some(2));
        assert_eq!(meminfo(text, "Mem"), None);
        assert!(is_node("node0") && !is_node("node") && !is_node("nodes1"));
    }
}
