//! Computes how fast the memory of processes grows, and how long the remaining memory lasts.

use super::WatchWindow;
use super::derived::set;
use crate::machine_snapshot::EntityKind;
use crate::watch_subject::is_below;

/// Adds to each process the growth of its memory per second, and the seconds until its groups or the machine have no
/// memory left.
pub(super) fn add_memory_left(window: &mut WatchWindow) {
    let seconds = window.seconds;
    let machine = window.machine.numbers.get("mem.available.last").copied();
    let groups: Vec<(String, f64)> = window
        .of_kind(EntityKind::Group)
        .filter_map(|group| {
            let most = group.numbers.get("mem.max.last")?;
            Some((group.id.clone(), most - group.number("mem.current.last")))
        })
        .collect();
    let all = window.entities.iter_mut();
    for process in all.filter(|entity| entity.kind == EntityKind::Process) {
        let growth = process.number("memory.last") - process.number("memory.min");
        let rate = growth / seconds.max(1.0);
        let own = process.texts.get("groups").map_or("", String::as_str);
        let is_above = |id: &str| own.lines().any(|path| is_below(path, id));
        let left = groups
            .iter()
            .filter(|(id, _)| is_above(id))
            .map(|(_, left)| *left)
            .chain(machine)
            .fold(f64::INFINITY, f64::min);
        set(process, "memory.growth", rate);
        if rate > 0.0 {
            set(process, "memory.left_s", left.max(0.0) / rate);
        }
    }
}
