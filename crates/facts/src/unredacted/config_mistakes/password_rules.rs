//! Finds rules about passwords that do not protect: a lock that never locks, short passwords, and a script that
//! receives each password (pam_faillock(8), pwquality.conf(5), pam_exec(8)).

use super::super::lines_of_files::{Line, files, read};
use super::Misuses;
use crate::gather::Gather;

const PAM: &str = "/etc/pam.d";
const FAILLOCK: &str = "/etc/security/faillock.conf";
const QUALITY: &str = "/etc/security/pwquality.conf";

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut lines = Vec::new();
    for path in files(g, "password_rule", PAM, "") {
        lines.extend(read(g, "password_rule", &path));
    }
    lines.retain(|line| !line.text.trim_start().starts_with('#'));
    let mut found = Misuses::default();
    note_lock(g, &lines, &mut found);
    note_length(g, &lines, &mut found);
    for line in lines
        .iter()
        .filter(|line| line.text.contains("pam_exec.so"))
    {
        let session = line
            .text
            .trim_start()
            .trim_start_matches('-')
            .starts_with("session");
        let hands = has_word(line, "expose_authtok") && !session;
        found.add("hands_out", hands, line.place.clone());
    }
    found.note(g, "password_rule");
}

fn has_word(line: &Line, word: &str) -> bool {
    line.text.split_whitespace().any(|one| one == word)
}

/// Returns the value of `name = value` or `name=value`.
fn value_of<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let rest = text.trim().strip_prefix(name)?.trim_start();
    let value = rest.strip_prefix('=')?.trim();
    Some(value.split('#').next().unwrap_or_default().trim())
}

fn argument<'a>(line: &'a Line, name: &str) -> Option<&'a str> {
    line.text
        .split_whitespace()
        .find_map(|word| value_of(word, name))
}

/// Notes a number of failures of 0, with which pam_faillock never locks an account.
fn note_lock(g: &mut Gather<'_>, lines: &[Line], found: &mut Misuses) {
    let used: Vec<&Line> = lines
        .iter()
        .filter(|line| line.text.contains("pam_faillock.so"))
        .collect();
    if used.is_empty() {
        return;
    }
    let in_pam = used
        .iter()
        .rev()
        .find_map(|line| Some((argument(line, "deny")?.to_owned(), line.place.clone())));
    let in_file = read(g, "password_rule", FAILLOCK).into_iter().rev();
    let mut in_file =
        in_file.filter_map(|line| Some((value_of(&line.text, "deny")?.to_owned(), line.place)));
    if let Some((value, place)) = in_pam.or_else(|| in_file.next()) {
        found.add("never_locks", value == "0", place);
    }
}

/// Notes the least length of new passwords, and whether a short one only leads to a warning. The main file is read
/// after its directory.
fn note_length(g: &mut Gather<'_>, lines: &[Line], found: &mut Misuses) {
    let mut used = lines.iter().filter(|line| {
        line.text.contains("pam_pwquality.so") || line.text.contains("pam_cracklib.so")
    });
    let Some(pam) = used.next() else { return };
    let mut all = files(g, "password_rule", &format!("{QUALITY}.d"), ".conf");
    all.push(QUALITY.to_owned());
    let (mut length, mut enforced) = (None, None);
    for path in all {
        for line in read(g, "password_rule", &path) {
            if let Some(value) = value_of(&line.text, "minlen") {
                length = value
                    .parse::<u32>()
                    .ok()
                    .map(|value| (value, line.place.clone()));
            }
            if let Some(value) = value_of(&line.text, "enforcing") {
                enforced = Some((value == "0", line.place));
            }
        }
    }
    if let Some(value) = argument(pam, "minlen").and_then(|value| value.parse().ok()) {
        length = Some((value, pam.place.clone()));
    }
    if let Some((length, place)) = length {
        found.add("short", length < 8, place);
    }
    if let Some((off, place)) = enforced {
        found.add("only_warns", off, place);
    }
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn rules_and_their_near_misses() {
        let auth = (
            "/etc/pam.d/common-auth",
            "auth required pam_faillock.so preauth\n",
        );
        for (text, expected) in [
            ("deny = 0\n", "never_locks=true"),
            ("deny = 5\n", "never_locks=false"),
            ("# deny = 0\n", ""),
        ] {
            assert_eq!(
                found(&[auth, (FAILLOCK, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
        assert!(found(&[(FAILLOCK, "deny = 0\n")], collect).is_empty());
        let path = "/etc/pam.d/common-password";
        for (text, expected) in [
            (
                "password requisite pam_pwquality.so minlen=4\n",
                "short=true",
            ),
            (
                "password requisite pam_pwquality.so minlen=12\n",
                "short=false",
            ),
            (
                "auth optional pam_exec.so expose_authtok /a\n",
                "hands_out=true",
            ),
            ("session optional pam_exec.so quiet /a\n", "hands_out=false"),
        ] {
            assert_eq!(
                found(&[(path, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
        let pam = (path, "password requisite pam_pwquality.so retry=3\n");
        let own = (
            "/etc/security/pwquality.conf.d/a.conf",
            "minlen=4\nenforcing = 0\n",
        );
        assert_eq!(
            found(&[pam, own], collect),
            ["short=true", "only_warns=true"]
        );
        let main = (QUALITY, "minlen = 14\n");
        assert_eq!(
            found(&[pam, own, main], collect),
            ["short=false", "only_warns=true"]
        );
    }
}
