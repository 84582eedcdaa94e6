//! Finds mistakes in system files: duplicate accounts, NIS entries in passwd, and a umask that lets everyone write to
//! new files.

use super::super::lines_of_files::{files, read};
use super::Misuses;
use crate::gather::Gather;
use std::collections::BTreeMap;

const PASSWD: &str = "/etc/passwd";

pub(super) fn collect(g: &mut Gather<'_>) {
    note_accounts(g);
    note_masks(g);
}

fn note_accounts(g: &mut Gather<'_>) {
    let nis = read(g, "accounts.misuse", "/etc/nsswitch.conf")
        .iter()
        .any(|line| {
            let text = line.text.split('#').next().unwrap_or_default();
            let words = text.trim().strip_prefix("passwd:").unwrap_or_default();
            words
                .split_whitespace()
                .any(|word| word == "compat" || word == "nis")
        });
    let mut found = Misuses::default();
    let mut seen: BTreeMap<String, (bool, String)> = BTreeMap::new();
    for line in read(g, "accounts.misuse", PASSWD) {
        let fields: Vec<&str> = line.text.split(':').collect();
        let [name, _, user, ..] = fields[..] else {
            continue;
        };
        if name.starts_with(['+', '-']) {
            found.add("line_of_nis", name.starts_with('+') && !nis, line.place);
            continue;
        }
        let shell = fields.get(6).copied().unwrap_or_default();
        let logs_in = !shell.ends_with("/nologin") && !shell.ends_with("/false");
        // Accounts beside root are another question.
        let root = user.trim_start_matches('0').is_empty();
        let home = fields.get(5).copied().unwrap_or_default();
        let before = seen.insert(user.to_owned(), (logs_in, home.to_owned()));
        if !root {
            // A hosting panel gives a site further logins, whose homes lie in that of the site.
            let same = before.is_some_and(|(logged_in, first)| {
                let inside = home
                    .strip_prefix(&first)
                    .is_some_and(|rest| rest.starts_with('/') && first.len() > 1);
                logged_in && logs_in && !inside
            });
            found.add("same_number", same, line.place);
        }
    }
    found.note(g, "accounts.misuse");
}

fn note_masks(g: &mut Gather<'_>) {
    let mut all: Vec<String> = [
        "/etc/profile",
        "/etc/bash.bashrc",
        "/etc/bashrc",
        "/etc/login.defs",
    ]
    .map(str::to_owned)
    .to_vec();
    all.extend(files(g, "mask.misuse", "/etc/profile.d", ".sh"));
    let mut found = Misuses::default();
    for path in all {
        for line in read(g, "mask.misuse", &path) {
            let words: Vec<&str> = line.text.split_whitespace().collect();
            let ["umask" | "UMASK", mask, ..] = words[..] else {
                continue;
            };
            if let Ok(mask) = u32::from_str_radix(mask.trim_end_matches(';'), 8) {
                found.add("all_may_write", mask & 0o002 == 0, line.place);
            }
        }
    }
    found.note(g, "mask.misuse");
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn lines_and_their_near_misses() {
        let root = "root:x:0:0::/root:/bin/sh\n";
        for (path, text, expected) in [
            (PASSWD, format!("{root}+::::::\n"), "line_of_nis=true"),
            (
                PASSWD,
                format!("{root}a:x:7:7::/:/bin/sh\nb:x:7:7::/:/bin/sh\n"),
                "same_number=false same_number=true",
            ),
            (
                PASSWD,
                format!("{root}a:x:7:7::/web/a:/bin/sh\nb:x:7:7::/web/a/home/b:/bin/sh\n"),
                "same_number=false same_number=false",
            ),
            (
                PASSWD,
                format!("{root}a:x:7:7::/:/bin/sh\nb:x:7:7::/:/bin/false\n"),
                "same_number=false same_number=false",
            ),
            (
                "/etc/profile",
                "  umask 000\n".to_owned(),
                "all_may_write=true",
            ),
            (
                "/etc/profile",
                "umask 022\n".to_owned(),
                "all_may_write=false",
            ),
            (
                "/etc/login.defs",
                "UMASK\t\t002\n".to_owned(),
                "all_may_write=false",
            ),
        ] {
            assert_eq!(
                found(&[(path, &text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn masks_of_nis_are_left_alone() {
        let files = [
            (PASSWD, "+::::::\n"),
            ("/etc/nsswitch.conf", "passwd: compat\n"),
        ];
        assert_eq!(found(&files, collect), ["line_of_nis=false"]);
    }
}
