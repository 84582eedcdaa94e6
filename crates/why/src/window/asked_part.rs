//! Marks which processes, groups and sockets of a window belong to the watched subject.

use super::{WatchWindow, WatchedEntity};
use crate::WatchSubject;
use crate::machine_snapshot::EntityKind;
use crate::watch_subject::is_below;
use std::collections::BTreeSet;

/// Number of threads that wait for data of a connection; see `describe_sleep` in `read::sleep_class`.
const ASLEEP_FOR_DATA: &str = "asleep_in.data of a connection";

/// Marks the entities that belong to the watched subject.
pub(super) fn mark_asked(window: &mut WatchWindow, thing: &WatchSubject) {
    let mut groups = Vec::new();
    for entity in &mut window.entities {
        if entity.kind != EntityKind::Process {
            continue;
        }
        let text = |key: &str| entity.texts.get(key).map_or("", String::as_str);
        let ancestors: Vec<u32> = text("ancestors")
            .split(' ')
            .filter_map(|word| word.parse().ok())
            .collect();
        entity.is_asked = match thing {
            WatchSubject::Machine | WatchSubject::Path { .. } => true,
            WatchSubject::Process(pid) => ancestors.contains(pid),
            WatchSubject::Group(path) => text("groups").lines().any(|group| is_below(group, path)),
            WatchSubject::Named(name) => entity.name == *name || text("guest") == name,
        };
        if matches!(thing, WatchSubject::Path { .. }) && entity.number("uses_path") == 0.0 {
            entity.numbers.insert("storage_only".to_owned(), 1.0);
        }
        if entity.is_asked {
            groups.extend(text("groups").lines().map(str::to_owned));
        }
    }
    mark_asked_sockets(window, thing);
    if let WatchSubject::Group(path) = thing {
        groups.push(path.clone());
    }
    groups.sort();
    groups.dedup();
    for entity in &mut window.entities {
        if entity.kind == EntityKind::Group {
            entity.is_asked = *thing == WatchSubject::Machine
                || groups.iter().any(|group| is_below(group, &entity.id));
        }
    }
    window.groups = groups;
}

/// Marks the sockets of the watched subject: its own, and all sockets while it waits for data of a connection.
fn mark_asked_sockets(window: &mut WatchWindow, thing: &WatchSubject) {
    let is_broad = matches!(thing, WatchSubject::Machine | WatchSubject::Path { .. });
    let all = window.of_kind(EntityKind::Process);
    let asked: Vec<_> = all.filter(|process| process.is_asked).collect();
    let awaits_data = |process: &&WatchedEntity| process.number(ASLEEP_FOR_DATA) >= 0.3;
    let are_all_asked =
        *thing == WatchSubject::Machine || (!is_broad && asked.iter().any(awaits_data));
    let pids: BTreeSet<String> = asked
        .iter()
        .filter(|process| process.number("storage_only") == 0.0)
        .filter_map(|process| process.texts.get("pid").cloned())
        .collect();
    for entity in &mut window.entities {
        if matches!(entity.kind, EntityKind::Listener | EntityKind::Connection) {
            let owner = entity.texts.get("owner_pid");
            entity.is_asked = are_all_asked || owner.is_some_and(|pid| pids.contains(pid));
        }
    }
}
