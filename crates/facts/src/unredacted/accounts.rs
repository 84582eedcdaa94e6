//! Finds accounts that need no password, and sudo rules that require none: passwd(5), shadow(5), sudoers(5). A fact
//! contains the line number, but no name.

use super::lines_of_files::{Line, files, note, read};
use super::sudo_rules::{is_comment, runs_as_root, without_blanks_in_tags};
use crate::gather::Gather;

const PASSWD: &str = "/etc/passwd";
const SHADOW: &str = "/etc/shadow";
const SUDOERS: &str = "/etc/sudoers";
const SUDOERS_DIR: &str = "/etc/sudoers.d";

pub(super) fn collect(g: &mut Gather<'_>) {
    note_passwd(g);
    note_shadow(g);
    note_sudoers(g);
}

fn note_passwd(g: &mut Gather<'_>) {
    for (number, line) in read(g, "accounts.identity", PASSWD).iter().enumerate() {
        let fields: Vec<&str> = line.text.split(':').collect();
        let [name, password, user, _, _, _, shell] = fields[..] else {
            continue;
        };
        // A line of NIS begins with `+` or `-`.
        if name.starts_with(['+', '-']) {
            continue;
        }
        let twin = user.trim_start_matches('0').is_empty() && !user.is_empty() && name != "root";
        let may_log_in = !shell.ends_with("/nologin") && !shell.ends_with("/false");
        let properties = [
            ("twin_of_root", (twin && may_log_in).into()),
            ("no_password", password.is_empty().into()),
        ];
        note(
            g,
            "accounts.identity",
            &(number + 1).to_string(),
            &line.place,
            &properties,
        );
    }
}

fn note_shadow(g: &mut Gather<'_>) {
    for (number, line) in read(g, "accounts.password", SHADOW).iter().enumerate() {
        let mut fields = line.text.split(':');
        let (Some(name), Some(password)) = (fields.next(), fields.next()) else {
            continue;
        };
        if name.is_empty() || name.starts_with(['+', '-']) {
            continue;
        }
        // Traditional DES has 13 characters, MD5 begins with $1$ (crypt(5)).
        let des = password.len() == 13 && !password.starts_with(['$', '!', '*', '_']);
        let properties = [
            ("empty", password.is_empty().into()),
            ("old_hash", (des || password.starts_with("$1$")).into()),
        ];
        note(
            g,
            "accounts.password",
            &(number + 1).to_string(),
            &line.place,
            &properties,
        );
    }
}

fn note_sudoers(g: &mut Gather<'_>) {
    let mut all = vec![SUDOERS.to_owned()];
    let in_dir = files(g, "sudo.rule", SUDOERS_DIR, "");
    // sudo skips names that contain a dot or end with a tilde (sudoers(5), "Including other
    // files").
    let is_read = |path: &String| {
        let name = path.rsplit('/').next().unwrap_or_default();
        !name.contains('.') && !name.ends_with('~')
    };
    all.extend(in_dir.into_iter().filter(is_read));
    let mut number = 0;
    let lines: Vec<Line> = all
        .iter()
        .flat_map(|path| read(g, "sudo.rule", path))
        .collect();
    for line in &lines {
        {
            let text = line.text.trim();
            if text.is_empty() || is_comment(text) || text.starts_with('@') {
                continue;
            }
            number += 1;
            let (who, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
            if who.starts_with("Defaults") || who.ends_with("_Alias") {
                let unchecked = rest.split(',').any(|one| one.trim() == "!authenticate")
                    && (who == "Defaults"
                        || who
                            .strip_prefix("Defaults:")
                            .is_some_and(|user| may_run_all(&lines, user)));
                note(
                    g,
                    "sudo.rule",
                    &number.to_string(),
                    &line.place,
                    &[("free", unchecked.into())],
                );
                continue;
            }
            let commands =
                without_blanks_in_tags(rest.split_once('=').map_or("", |(_, commands)| commands));
            let free = match commands.rsplit_once("NOPASSWD:") {
                Some((before, after)) => {
                    runs_as_root(before) && after.split(',').any(|one| one.trim() == "ALL")
                }
                None => false,
            };
            let properties = [("free", (free && who != "root" && who != "%root").into())];
            note(
                g,
                "sudo.rule",
                &number.to_string(),
                &line.place,
                &properties,
            );
        }
    }
}

/// Returns whether a sudo rule allows a user or group to run all commands as root. Rules with and without a password
/// count.
fn may_run_all(lines: &[Line], user: &str) -> bool {
    lines.iter().any(|line| {
        let text = line.text.trim();
        let (who, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let commands = rest.split_once('=').map_or("", |(_, commands)| commands);
        let all = commands
            .rsplit([',', ')', ':'])
            .any(|one| one.trim() == "ALL");
        let of_root = who == "root" || who == "%root";
        who == user && !of_root && all && runs_as_root(commands)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn rules_without_a_password() {
        for (text, free) in [
            ("bob ALL = (ALL : ALL) \\\n  NOPASSWD : ALL\n", true),
            ("bob ALL=(www-data) NOPASSWD: ALL\n", false),
            ("bob ALL=(www-data, root) NOPASSWD: ALL\n", true),
            ("bob ALL=(:adm) NOPASSWD: ALL\n", false),
            ("bob ALL=NOPASSWD: ALL\n", true),
            ("Defaults:bob !authenticate\nbob ALL=(ALL) ALL\n", true),
            ("Defaults:bob !authenticate\nbob ALL=(ALL) /bin/ls\n", false),
            ("Defaults:root !authenticate\nroot ALL=(ALL) ALL\n", false),
        ] {
            let host = Recorded::new().file(SUDOERS, text);
            let mut g = Gather::new(&host);
            note_sudoers(&mut g);
            let found = g
                .facts
                .map
                .keys()
                .any(|key| key.ends_with(".free") && g.facts.get(key) == Some(&true.into()));
            assert_eq!(found, free, "{text}");
        }
    }

    #[test]
    fn lines_and_their_near_misses() {
        let host = Recorded::new()
            .file(
                PASSWD,
                "root:x:0:0::/root:/bin/bash\n\
                 toor:x:0:0::/root:/bin/bash\nbob::1000:1000::/home/bob:/bin/sh\n",
            )
            .file(SHADOW, "root:*:1::::::\nbob::1::::::\nold:$1$a$b:1::::::\n")
            .file(
                SUDOERS,
                "Defaults env_reset\nroot ALL=(ALL:ALL) ALL\n%sudo ALL=(ALL:ALL) ALL\n\
                 bob ALL=(ALL) NOPASSWD: ALL\nbackup ALL=(root) NOPASSWD: /usr/bin/rsync\n",
            );
        let mut g = Gather::new(&host);
        collect(&mut g);
        let holds = |end: &str| -> Vec<&str> {
            let all = g.facts.map.keys().map(String::as_str);
            all.filter(|key| key.ends_with(end) && g.facts.get(key) == Some(&true.into()))
                .collect()
        };
        assert_eq!(holds(".twin_of_root"), ["accounts.identity.2.twin_of_root"]);
        assert_eq!(holds(".no_password"), ["accounts.identity.3.no_password"]);
        assert_eq!(holds(".empty"), ["accounts.password.2.empty"]);
        assert_eq!(holds(".old_hash"), ["accounts.password.3.old_hash"]);
        assert_eq!(holds(".free"), ["sudo.rule.4.free"]);
        // No fact contains the name of an account.
        let text = format!("{:?}", g.facts);
        assert!(!text.contains("bob") && !text.contains("toor"), "{text}");
    }
}
