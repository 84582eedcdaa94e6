//! Sessions of PostgreSQL. A session that waits for a lock of the database sleeps like an idle session; only its
//! command line, into which PostgreSQL writes the current activity, shows the difference.

use super::super::MachineReader;
use crate::machine_snapshot::Entity;

/// Returns whether a process with this name may be a database session.
pub(super) fn is_session(name: &str) -> bool {
    name == "postgres"
}

/// Activity of a session according to its command line: `postgres: USER DATABASE [local] UPDATE waiting`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionState {
    /// The session waits for a lock of another session.
    WaitsForLock,
    /// The session is in a transaction and may hold locks, but its client sends nothing.
    IdleInTransaction,
}

/// Reads the activity of a session; `None` for any other activity.
pub(super) fn read_state(reader: &mut MachineReader, pid: u32) -> Option<SessionState> {
    parse_title(&read_title(reader, pid)?)
}

fn read_title(reader: &mut MachineReader, pid: u32) -> Option<String> {
    let text = reader.text(&format!("/proc/{pid}/cmdline"))?;
    Some(text.trim_end_matches(['\0', ' ']).to_owned())
}

fn parse_title(title: &str) -> Option<SessionState> {
    if !title.starts_with("postgres: ") {
        return None;
    }
    if title.ends_with(" waiting") {
        return Some(SessionState::WaitsForLock);
    }
    title
        .ends_with(" idle in transaction")
        .then_some(SessionState::IdleInTransaction)
}

/// Adds what a session waits for to its entity.
pub(super) fn describe(reader: &mut MachineReader, pid: u32, entity: &mut Entity) {
    if !is_session(&entity.name) {
        return;
    }
    let Some(title) = read_title(reader, pid) else {
        return;
    };
    match parse_title(&title) {
        Some(SessionState::WaitsForLock) => entity.set("wait.database-lock", 1.0),
        Some(SessionState::IdleInTransaction) => entity.set("idle_in_transaction", 1.0),
        None => return,
    }
    entity.texts.insert("title".to_owned(), title);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sessions_that_hold_up_others_have_a_state() {
        for (title, state) in [
            (
                "postgres: me shop [local] UPDATE waiting",
                Some(SessionState::WaitsForLock),
            ),
            (
                "postgres: 15/main: me shop 10.0.0.1(5123) idle in transaction",
                Some(SessionState::IdleInTransaction),
            ),
            ("postgres: me shop [local] idle", None),
            ("postgres: checkpointer", None),
            ("/usr/bin/postgres -D /waiting", None),
            ("vi is waiting", None),
        ] {
            assert_eq!(parse_title(title), state, "{title}");
        }
    }
}
