//! Numbers of connections and queues that come from the process behind them: its state, CPU time and waiting.

use super::derived::set;
use super::{WatchWindow, WatchedEntity};
use crate::machine_snapshot::{EntityKind, Numbers};
use assay_render::text::escape_line;
use std::collections::BTreeMap;

/// Adds the state of the process on the other side to connections, listeners and blocked processes.
pub(super) fn add_owners(window: &mut WatchWindow) {
    let accepted = window.machine.number("tcp.accepted");
    let processes: BTreeMap<String, (Numbers, String)> = window
        .of_kind(EntityKind::Process)
        .filter_map(|process| {
            let state = describe_state(process);
            Some((
                process.texts.get("pid")?.clone(),
                (process.numbers.clone(), state),
            ))
        })
        .collect();
    let remotes = list_remotes(window);
    let mut waited_for: BTreeMap<String, f64> = BTreeMap::new();
    for entity in &mut window.entities {
        let key = match entity.kind {
            EntityKind::Connection | EntityKind::Listener => "owner",
            EntityKind::Process => "peer",
            _ => continue,
        };
        if entity.kind == EntityKind::Listener {
            // Little's law: what stands in a queue, over what leaves it in a second. One queue is taken to accept
            // all, so that the time is a lower limit.
            let seconds = entity.number("queue") / accepted.max(0.05);
            set(entity, "queue_s", seconds.min(60.0));
        }
        let blocked = entity.texts.get("blocked_on");
        if let Some(remote) = blocked.and_then(|link| remotes.get(link)) {
            entity
                .texts
                .insert("peer".to_owned(), format!("the program at {remote}"));
        }
        let pid = entity.texts.get(&format!("{key}_pid")).cloned();
        let found = pid.as_ref().and_then(|pid| processes.get(pid));
        let state = match found {
            Some((_, state)) => state.clone(),
            None => "what it does is not known".to_owned(),
        };
        let is_known = f64::from(u8::from(found.is_some()));
        set(entity, &format!("{key}.known"), is_known);
        for name in ["cpu", "stopped", "waits", "queue"] {
            let value = found.and_then(|(numbers, _)| numbers.get(name)).copied();
            set(entity, &format!("{key}.{name}"), value.unwrap_or(0.0));
        }
        entity.texts.insert(format!("{key}_state"), state);
        let name = entity.texts.entry(key.to_owned());
        name.or_insert_with(|| "an unknown process".to_owned());
        let is_waited_for = match entity.kind {
            EntityKind::Listener => {
                entity.number("queue") >= 0.8 || entity.number("local_queue") >= 1.0
            }
            EntityKind::Connection => entity.number("wait.unread") >= 0.5,
            _ => entity.number("waits") >= 0.3,
        };
        if let Some(pid) = pid.filter(|_| is_waited_for) {
            *waited_for.entry(pid).or_default() += 1.0;
        }
    }
    for process in &mut window.entities {
        if process.kind == EntityKind::Process {
            let pid = process.texts.get("pid");
            let others = pid.and_then(|pid| waited_for.get(pid)).copied();
            set(process, "others_wait", others.unwrap_or(0.0));
        }
    }
}

/// Returns the remote addresses of the connections that make no progress, by the link target of their socket.
fn list_remotes(window: &WatchWindow) -> BTreeMap<String, String> {
    let connections = window.of_kind(EntityKind::Connection);
    connections
        .filter_map(|connection| {
            let text = |key: &str| connection.texts.get(key).cloned();
            Some((text("held_as")?, escape_line(&text("remote")?)))
        })
        .collect()
}

/// Describes in a phrase what a process did during the window.
fn describe_state(process: &WatchedEntity) -> String {
    let cpu = process.number("cpu");
    let waits = process.number("waits");
    let timer = process.number("asleep.timer");
    let percent = |value: f64| format!("{:.0} %", value * 100.0);
    match () {
        () if process.number("stopped") >= 0.5 => "it is stopped (state T)".to_owned(),
        () if cpu >= 0.5 => format!("it computes: {} of a CPU", percent(cpu)),
        () if process.number("queue") >= 0.3 => "it waits for a CPU".to_owned(),
        () if waits >= 0.3 => {
            let place = process.texts.get("waits_in").map_or("", String::as_str);
            format!("it waits itself, in {place}")
        }
        () if timer >= 0.3 => format!(
            "it sleeps in a timer {} of the time",
            percent(timer.min(1.0))
        ),
        () => format!(
            "it uses {} of a CPU and waits for something else",
            percent(cpu)
        ),
    }
}
