//! Checks whether sshd with StrictModes accepts the authorized_keys files of accounts. The file and each directory up
//! to the home directory must belong to the account or to root, and must not be writable for a group (`safe_path` of
//! OpenSSH's misc.c).
//!
//! Debian accepts a writable group whose only member is the account (its patch user-group-modes). A group therefore
//! counts only if it has another member. Names of groups and members are not reported.

use crate::collectors::daemons::lines::at_line;
use crate::collectors::services::authorized_keys::{OfAccount, files};
use crate::collectors::services::certificates::why_mode_unknown;
use crate::gather::Gather;
use assay_model::{FactKind, FactPlace};
use std::path::Path;

const PASSWD: &str = "/etc/passwd";
const GROUP: &str = "/etc/group";

pub(super) fn collect(g: &mut Gather<'_>) {
    for file in files(g.host) {
        if g.host.stat(Path::new(&file.path)).is_err() {
            continue;
        }
        note_commands(g, &file.path);
        let found = judge(g, &file);
        let mut note = |what: &str, pick: fn(&Judged) -> bool| {
            let fact = format!("authorized_keys.{}.{what}", file.path);
            let place = FactPlace::from(file.path.as_str());
            match &found {
                Ok(found) => g.facts.known(fact, pick(found), FactKind::Runtime, place),
                Err(why) => g.facts.unknown(fact, why.clone(), FactKind::Runtime, place),
            }
        };
        note("owned_by_another", |found| found.owned_by_another);
        note("group_writes", |found| found.group_writes);
        g.about(["authorized_keys", file.path.as_str()]);
    }
}

/// Notes the first key that is limited to a command and may still forward ports (sshd(8), AUTHORIZED_KEYS FILE FORMAT).
fn note_commands(g: &mut Gather<'_>, path: &str) {
    let Ok(text) = g.host.read_text(Path::new(path)) else {
        return;
    };
    let of_command = text.lines().enumerate().filter_map(|(number, line)| {
        let names = option_names(line)?;
        let has = |name: &str| names.iter().any(|one| one == name);
        let limited = (has("restrict") && !has("port-forwarding")) || has("no-port-forwarding");
        has("command").then_some((number, limited))
    });
    let lines: Vec<(usize, bool)> = of_command.collect();
    let open = lines.iter().find(|(_, limited)| !limited);
    let Some((number, _)) = open.or(lines.first()) else {
        return;
    };
    let fact = format!("authorized_keys.{path}.command_forwards");
    let place = at_line(path, number + 1);
    g.facts
        .known(fact, open.is_some(), FactKind::Configured, place);
}

/// Returns the names of the options before a key, in lower case; `None` for a comment or a line without options.
fn option_names(line: &str) -> Option<Vec<String>> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let mut names = vec![String::new()];
    let (mut quoted, mut escaped, mut value) = (false, false, false);
    for letter in line.chars() {
        match letter {
            '"' if !escaped => quoted = !quoted,
            ',' if !quoted => {
                names.push(String::new());
                value = false;
            }
            letter if letter.is_whitespace() && !quoted => break,
            '=' if !quoted => value = true,
            letter if !quoted && !value => names.last_mut()?.push(letter.to_ascii_lowercase()),
            _ => {}
        }
        escaped = letter == '\\' && !escaped;
    }
    let is_key = ["ssh-", "ecdsa-", "sk-"]
        .iter()
        .any(|start| names[0].starts_with(start));
    (!is_key).then_some(names)
}

/// Reasons why sshd rejects a file.
struct Judged {
    owned_by_another: bool,
    group_writes: bool,
}

fn judge(g: &Gather<'_>, file: &OfAccount) -> Result<Judged, String> {
    let mut all = Vec::new();
    for one in up_to(&file.path, &file.home) {
        let argv = ["stat", "--dereference", "--format=%a %u %g", "--", &one];
        let output = g.try_ask(&argv).map_err(|error| {
            format!("whose {one} is, is not known: {}", why_mode_unknown(&error))
        })?;
        let owned = Owned::read(&output.text());
        all.push(owned.ok_or_else(|| format!("whose {one} is, is not known"))?);
    }
    let strange = |owned: &Owned| owned.user != 0 && owned.user != file.uid;
    let mut group_writes = false;
    for owned in all.iter().filter(|owned| owned.mode & 0o020 != 0) {
        let read = |path: &str| {
            let text = g.host.read_text(Path::new(path));
            text.map_err(|error| format!("who is in a group is not known: {}", error.reason()))
        };
        let (accounts, groups) = (read(PASSWD)?, read(GROUP)?);
        group_writes |= others_in(owned.group, &file.user, &accounts, &groups);
    }
    Ok(Judged {
        owned_by_another: all.iter().any(strange),
        group_writes,
    })
}

/// Returns the file and the directories above it, up to the home directory or `/`.
fn up_to(path: &str, home: &str) -> Vec<String> {
    let home = Path::new(home);
    let end = if Path::new(path).starts_with(home) {
        home
    } else {
        Path::new("/")
    };
    let mut all = Vec::new();
    for dir in Path::new(path).ancestors() {
        all.push(dir.to_string_lossy().into_owned());
        if dir == end {
            break;
        }
    }
    all
}

/// Mode, owner and group of a file, as stat prints them.
struct Owned {
    mode: u32,
    user: u32,
    group: u32,
}

impl Owned {
    fn read(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let mode = u32::from_str_radix(words.next()?, 8).ok()?;
        let mut number = || words.next()?.parse().ok();
        let (user, group) = (number()?, number()?);
        Some(Self { mode, user, group })
    }
}

/// Returns whether a group has a member other than the account: by primary group in passwd(5), or in group(5). Also
/// returns true if the group is unknown or has no member.
fn others_in(group: u32, user: &str, accounts: &str, groups: &str) -> bool {
    let id = group.to_string();
    let mut members: Vec<&str> = Vec::new();
    for line in accounts.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        if let [name, _, _, first, ..] = fields.as_slice()
            && *first == id
        {
            members.push(name);
        }
    }
    let mut known = false;
    for line in groups.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        if let [_, _, number, list] = fields.as_slice()
            && *number == id
        {
            known = true;
            members.extend(list.split(',').filter(|name| !name.is_empty()));
        }
    }
    !known || members.is_empty() || members.iter().any(|name| *name != user)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0::/root:/bin/bash\nalice:x:1000:1000::/home/alice:/bin/sh\nbob:x:1001:100::/home/bob:/bin/sh\n";
    const GROUP: &str = "root:x:0:\nalice:x:1000:\nusers:x:100:alice\nempty:x:7:\nown:x:8:alice\n";

    #[test]
    fn a_group_of_ones_own() {
        let others = |group| others_in(group, "alice", PASSWD, GROUP);
        assert!(!others(1000) && !others(8));
        assert!(others(100) && others(7) && others(4711) && others(0));
    }

    #[test]
    fn where_sshd_stops() {
        assert_eq!(
            up_to("/home/a/.ssh/authorized_keys", "/home/a"),
            ["/home/a/.ssh/authorized_keys", "/home/a/.ssh", "/home/a"]
        );
        assert_eq!(up_to("/etc/k", "/home/a"), ["/etc/k", "/etc", "/"]);
        assert!(Owned::read("700 1000 1000\n").is_some());
        for text in ["", "700", "8 0 0", "700 x 0", "700 -1 0"] {
            assert!(Owned::read(text).is_none(), "{text}");
        }
    }

    #[test]
    fn options_before_a_key() {
        let names = |line| option_names(line).map(|names| names.join(" "));
        assert_eq!(
            names("restrict,command=\"a \\\", b\",no-pty ssh-ed25519 AAAA x"),
            Some("restrict command no-pty".to_owned())
        );
        assert_eq!(names("ssh-ed25519 AAAA x"), None);
        assert_eq!(names("# command=\"x\" ssh-ed25519 AAAA"), None);
    }
}
