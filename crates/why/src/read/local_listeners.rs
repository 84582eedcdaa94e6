//! Accept queues of UNIX sockets.

use super::MachineReader;
use crate::machine_snapshot::{Entity, EntityKind, MachineSnapshot};
use assay_host::{CommandOutput, Limits};
use std::ffi::OsStr;
use std::time::Duration;

/// Adds the accept queues of UNIX sockets. Only `ss` shows them: `u_str LISTEN QUEUE MOST PATH INODE …`.
pub(super) fn read(reader: &mut MachineReader, look: &mut MachineSnapshot) {
    let argv = ["ss", "-xlH"].map(OsStr::new);
    let sockets = reader.text("/proc/net/unix");
    let waits = |text: &String| text.lines().any(is_unaccepted);
    if sockets.is_some_and(|text| !waits(&text)) || reader.host.which(argv[0]).is_none() {
        return;
    }
    let limits = Limits {
        timeout: Duration::from_secs(1),
    };
    let done = reader.host.run(&argv, limits).ok();
    let text = done.filter(CommandOutput::success).map(|done| done.text());
    for line in text.unwrap_or_default().lines() {
        if let Some(entity) = parse_local_listener(line) {
            look.entities.push(entity);
        }
    }
}

/// Returns whether a line `NUM REFS PROTOCOL FLAGS TYPE STATE INODE PATH` of `/proc/net/unix` is a connection that no
/// server has accepted: its state is connecting (02), and its inode is 0.
fn is_unaccepted(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace().skip(5);
    words.next() == Some("02") && words.next() == Some("0")
}

/// Parses a line of `ss`; `None` if the accept queue is empty.
fn parse_local_listener(line: &str) -> Option<Entity> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let [_, "LISTEN", queue, most, path, inode, ..] = words[..] else {
        return None;
    };
    let (queue, most): (f64, f64) = (queue.parse().ok()?, most.parse().ok()?);
    if queue < 1.0 {
        return None;
    }
    let mut entity = Entity::new(EntityKind::Listener, path, format!("local socket {path}"));
    entity.set("local_queue", queue);
    entity.set("local_most", most);
    let link = format!("socket:[{inode}]");
    entity.texts.insert("held_as".to_owned(), link);
    Some(entity)
}

#[cfg(test)]
mod tests {
    use super::{is_unaccepted, parse_local_listener};

    #[test]
    fn a_connection_that_nobody_accepted_is_seen() {
        let line = "000000001b27f27e: 00000003 00000000 00000000 0001 02     0 /run/php.sock";
        assert!(is_unaccepted(line));
        for other in [
            "Num       RefCount Protocol Flags    Type St Inode Path",
            "000000006a74178b: 00000002 00000000 00010000 0001 01 16742686 /run/php.sock",
            "00000000e31628a8: 00000003 00000000 00000000 0001 03 16742691 /run/php.sock",
            "",
        ] {
            assert!(!is_unaccepted(other), "{other}");
        }
    }

    #[test]
    fn a_local_queue_that_is_not_empty_is_named() {
        let line = "u_str LISTEN 5 128 /run/php.sock 77123 * 0";
        let found = parse_local_listener(line).unwrap();
        assert_eq!(found.name, "local socket /run/php.sock");
        assert_eq!(found.numbers["local_queue"], 5.0);
        assert_eq!(found.texts["held_as"], "socket:[77123]");
        assert!(parse_local_listener("u_str LISTEN 0 128 /run/a 7 * 0").is_none());
        assert!(parse_local_listener("damaged").is_none());
    }
}
