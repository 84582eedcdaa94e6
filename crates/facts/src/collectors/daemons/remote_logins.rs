//! Finds remote logins that are older than SSH: hosts.equiv, and telnet and the r-commands started by inetd or xinetd.

use super::cleaned_words::XINETD;
use super::lines::{files, note, read};
use crate::gather::Gather;

const EQUIV: &str = "/etc/hosts.equiv";
const INETD: &str = "/etc/inetd.conf";
/// Services that send passwords in clear text or need no password.
const SERVICES: [&str; 4] = ["telnet", "shell", "login", "exec"];

pub(super) fn collect(g: &mut Gather<'_>) {
    for (number, line) in read(g, "hosts_equiv", EQUIV, &['#']).iter().enumerate() {
        let all = line.text.split_whitespace().next() == Some("+");
        let which = (number + 1).to_string();
        note(g, ("hosts_equiv", &which), "all", all, &line.place);
    }
    for (number, line) in read(g, "inetd", INETD, &['#']).iter().enumerate() {
        let clear = SERVICES.contains(&line.first());
        let which = (number + 1).to_string();
        note(g, ("inetd", &which), "cleartext", clear, &line.place);
    }
    for (number, path) in files(g, "inetd", XINETD, &[""]).iter().enumerate() {
        let lines = read(g, "inetd", path, &['#']);
        let service = lines.iter().find(|line| line.first() == "service");
        let Some(line) = service else { continue };
        let switch = lines.iter().find(|line| line.first() == "disable");
        let off = switch.is_some_and(|line| line.rest().any(|word| word == "yes"));
        let named = line.rest().any(|word| SERVICES.contains(&word));
        let which = format!("x{}", number + 1);
        note(
            g,
            ("inetd", &which),
            "cleartext",
            named && !off,
            &switch.unwrap_or(line).place,
        );
    }
}
