//! Curves over time, with one point for each interval between two snapshots.

use super::Curve;
use crate::machine_snapshot::{EntityKind, MachineSnapshot, Numbers};
use std::collections::BTreeMap;

/// Adds a point for the interval between two snapshots to each curve.
pub(super) fn add_points(
    curves: &mut BTreeMap<String, Curve>,
    before: &MachineSnapshot,
    look: &MachineSnapshot,
    first: u64,
) {
    let seconds = look.at_ms.saturating_sub(before.at_ms) as f64 / 1000.0;
    if seconds <= 0.0 {
        return;
    }
    let at = look.at_ms.saturating_sub(first) as f64 / 1000.0;
    let rate = |now: &Numbers, then: &Numbers, key: &str| -> Option<f64> {
        Some(((now.get(key)? - then.get(key)?) / seconds).max(0.0))
    };
    let machine = |key: &str| rate(&look.machine, &before.machine, key);
    let cpus = look
        .machine
        .get("cpu.count")
        .copied()
        .unwrap_or(1.0)
        .max(1.0);
    let mut add = |name: &str, value: Option<f64>| {
        if let Some(value) = value {
            curves.entry(name.to_owned()).or_default().push((at, value));
        }
    };
    let busy = ["user", "nice", "system", "irq", "softirq"]
        .map(|kind| machine(&format!("cpu.{kind}_total")).unwrap_or(0.0));
    add("cpu: busy", Some(busy.iter().sum::<f64>() / cpus));
    add(
        "cpu: steal",
        machine("cpu.steal_total").map(|steal| steal / cpus),
    );
    for name in ["cpu", "io", "memory"] {
        add(
            &format!("pressure: {name}"),
            machine(&format!("psi.{name}.some_total")),
        );
    }
    for disk in look
        .entities
        .iter()
        .filter(|entity| entity.kind == EntityKind::Disk)
    {
        let earlier = before
            .entities
            .iter()
            .find(|entity| entity.kind == disk.kind && entity.id == disk.id);
        if let Some(earlier) = earlier {
            add(
                &format!("disk: {}", disk.name),
                rate(&disk.numbers, &earlier.numbers, "busy_total"),
            );
            let requests = ["read", "write"].map(|kind| {
                rate(
                    &disk.numbers,
                    &earlier.numbers,
                    &format!("{kind}.ops_total"),
                )
                .unwrap_or(0.0)
            });
            add(
                &format!("requests: {}", disk.name),
                Some(requests.iter().sum()),
            );
        }
    }
    let mut classes: BTreeMap<&str, f64> = BTreeMap::new();
    for entity in &look.entities {
        for (key, value) in entity
            .numbers
            .iter()
            .filter(|(key, _)| key.starts_with("wait."))
        {
            *classes.entry(&key["wait.".len()..]).or_default() += value;
        }
    }
    for (class, value) in classes {
        add(&format!("waiting: {class}"), Some(value));
    }
}
