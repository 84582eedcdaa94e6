//! Collects the space that thin volumes (zvols without a reservation) may still claim, and the free space of their
//! pool.

use crate::gather::Gather;
use assay_model::{FactKind, FactPlace};

/// Notes two facts of a pool. `thin_promised` is the number of bytes that volumes without a reservation may still
/// allocate until they reach their size. `thin_left` is the number of free bytes. Compression, which reduces the first
/// number, and snapshots, which increase it, are ignored.
pub(super) fn thin(g: &mut Gather<'_>, pool: &str, datasets: &[String], argv: &[&str]) {
    let of = |name: &str, property: &str| g.facts.u64(&format!("zfs.dataset.{name}.{property}"));
    let mut promised: Option<u64> = None;
    for name in datasets {
        if name.split('/').next() != Some(pool) || of(name, "refreservation") != Some(0) {
            continue;
        }
        let (Some(size), Some(used)) = (of(name, "volsize"), of(name, "used")) else {
            continue;
        };
        let held = used.saturating_sub(of(name, "usedbysnapshots").unwrap_or(0));
        let open = size.saturating_sub(held);
        promised = Some(promised.unwrap_or(0).saturating_add(open));
    }
    let left = of(pool, "available");
    if let (Some(promised), Some(left)) = (promised, left) {
        for (name, value) in [("thin_promised", promised), ("thin_left", left)] {
            let key = format!("zfs.pool.{pool}.{name}");
            g.facts
                .known(key, value, FactKind::Runtime, FactPlace::command(argv));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn only_volumes_without_a_reservation_count() {
        let host = Recorded::new();
        let mut g = Gather::new(&host);
        let argv = ["zfs", "get"];
        let mut know = |key: &str, value: u64| {
            let key = format!("zfs.dataset.{key}");
            g.facts
                .known(key, value, FactKind::Runtime, FactPlace::command(argv));
        };
        for (name, reserved) in [("tank/thin", 0), ("tank/thick", 100)] {
            know(&format!("{name}.volsize"), 100);
            know(&format!("{name}.used"), 50);
            know(&format!("{name}.usedbysnapshots"), 20);
            know(&format!("{name}.refreservation"), reserved);
        }
        know("tank.available", 60);
        let names = ["tank", "tank/thin", "tank/thick"].map(str::to_owned);
        thin(&mut g, "tank", &names, &argv);
        assert_eq!(g.facts.u64("zfs.pool.tank.thin_promised"), Some(70));
        assert_eq!(g.facts.u64("zfs.pool.tank.thin_left"), Some(60));
        thin(&mut g, "other", &names, &argv);
        assert!(!g.facts.map.contains_key("zfs.pool.other.thin_promised"));
    }
}
