//! Collects memory sizes in bytes from /proc/meminfo, huge pages, and NUMA nodes.

use crate::gather::{Gather, chosen, lossy};
use assay_model::FactKind;

const MEMINFO: &str = "/proc/meminfo";
const EDAC: &str = "/sys/devices/system/edac/mc";

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
            if let Some(value) = parse_meminfo(&text, name) {
                g.facts.known(key, value, FactKind::Runtime, MEMINFO);
            }
        }
    }
    g.value(
        "memory.transparent_hugepages",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        chosen,
    );
    g.value(
        "memory.transparent_hugepages_defrag",
        "/sys/kernel/mm/transparent_hugepage/defrag",
        chosen,
    );
    g.flag("memory.zswap", "/sys/module/zswap/parameters/enabled");
    note_errors(g);
    let node = "/sys/devices/system/node";
    let nodes = g.list("memory.numa_nodes", node);
    let count = nodes.iter().filter(|name| is_node(&lossy(name))).count();
    if count > 0 {
        g.facts
            .known("memory.numa_nodes", count, FactKind::Runtime, node);
    }
}

/// Notes `edac.mc0`: the errors that a memory controller with ECC counted since boot
/// (Documentation/ABI/testing/sysfs-devices-edac). A machine without ECC has no such controller.
fn note_errors(g: &mut Gather<'_>) {
    for name in g.list("edac", EDAC) {
        let name = lossy(&name);
        let number = name.strip_prefix("mc").unwrap_or_default();
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let key = format!("edac.{name}");
        for count in ["ce_count", "ue_count"] {
            g.number(
                &format!("{key}.{count}"),
                &format!("{EDAC}/{name}/{count}"),
                1,
            );
        }
        g.about(["edac", &name]);
    }
}

fn is_node(name: &str) -> bool {
    name.strip_prefix("node")
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns the value of a line of meminfo. The value is in bytes if the unit of the line is kB; otherwise it is a
/// count.
fn parse_meminfo(text: &str, name: &str) -> Option<u64> {
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
    fn errors_by_controller() {
        let host = assay_host::Recorded::new()
            .file(&format!("{EDAC}/mc0/ce_count"), "3\n")
            .file(&format!("{EDAC}/mc0/ue_count"), "0\n")
            .file(&format!("{EDAC}/power/control"), "auto\n");
        let mut g = Gather::new(&host);
        note_errors(&mut g);
        assert_eq!(g.facts.u64("edac.mc0.ce_count"), Some(3));
        assert_eq!(g.facts.u64("edac.mc0.ue_count"), Some(0));
        assert_eq!(g.facts.map.len(), 2);
    }

    #[test]
    fn units() {
        let text = "MemTotal:       24668924 kB\nMemTotalX: 3 kB\nHugePages_Total:       2\n";
        assert_eq!(parse_meminfo(text, "MemTotal"), Some(24_668_924 * 1024));
        assert_eq!(parse_meminfo(text, "HugePages_Total"), Some(2));
        assert_eq!(parse_meminfo(text, "Mem"), None);
        assert!(is_node("node0") && !is_node("node") && !is_node("nodes1"));
    }
}
