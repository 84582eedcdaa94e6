//! Accounts without an effective password, and sudo rules without a password: passwd(5), shadow(5), sudoers(5). A
//! fact contains the line number, but no name.

use super::lines_of_files::{files, note, read};
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
    for path in all {
        for line in read(g, "sudo.rule", &path) {
            let text = line.text.trim();
            if text.is_empty() || text.starts_with('#') || text.starts_with('@') {
                continue;
            }
            number += 1;
            let (who, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
            if who == "Defaults" || who.ends_with("_Alias") {
                let unchecked =
                    who == "Defaults" && rest.split(',').any(|one| one.trim() == "!authenticate");
                note(
                    g,
                    "sudo.rule",
                    &number.to_string(),
                    &line.place,
                    &[("free", unchecked.into())],
                );
                continue;
            }
            let commands = rest.split_once('=').map_or("", |(_, commands)| commands);
            let free = match commands.rsplit_once("NOPASSWD:") {
                Some((_, after)) => after.split(',').any(|one| one.trim() == "ALL"),
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

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

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
