//! Finds lines of sshd_config that shut everybody out, never end an open login, or let one account act for another.

use super::Misuses;
use super::ssh_traps::note_traps;
use crate::collectors::services::scopes::names;
use crate::collectors::services::ssh::SERVER;
use crate::collectors::services::ssh_access::is_of_others;
use crate::gather::Gather;
use assay_config::effective::files::OfHost;
use assay_config::effective::ssh_match::pattern_matches;
use assay_config::effective::{Effective, Program, ScopeId, Setting, read_effective};
use assay_model::{FactKind, FactPlace};
use std::path::Path;

/// Directories in which every account may create files.
const SHARED: [&str; 3] = ["/tmp/", "/var/tmp/", "/dev/shm/"];
/// Variables with which a user runs other programs than the permitted one (ld.so(8), bash(1)).
const LOADING: [&str; 4] = ["LD_PRELOAD", "LD_LIBRARY_PATH", "BASH_ENV", "ENV"];
/// Sources of accounts that are files of this machine (nsswitch.conf(5)).
const OF_FILES: [&str; 4] = ["files", "compat", "systemd", "extrausers"];

pub(super) fn collect(g: &mut Gather<'_>) {
    let Ok(all) = read_effective(Program::Sshd, Path::new(SERVER), &OfHost(g.host)) else {
        return;
    };
    let strict = all
        .value(ScopeId::ROOT, "strictmodes")
        .and_then(Setting::word)
        .is_none_or(|word| !word.eq_ignore_ascii_case("no"));
    let mut found = Misuses::default();
    for (id, _) in all.scopes() {
        let own = |key: &str| all.value(id, key).filter(|said| said.scope == id);
        if let Some(said) = own("permituserenvironment") {
            let value = said.word().unwrap_or_default();
            let mut patterns = value.split(',');
            let loads =
                patterns.any(|pattern| LOADING.iter().any(|name| pattern_matches(name, pattern)));
            found.add("environment_loads", loads, &said.place);
        }
        if let Some(said) = own("authorizedkeysfile") {
            let mut paths = said.words.iter().map(|word| String::from_utf8_lossy(word));
            let shared = paths.any(|path| SHARED.iter().any(|dir| path.starts_with(dir)));
            found.add("keys_in_shared_directory", shared, &said.place);
            found.also("strict", strict);
        }
    }
    if let Some(said) = all.value(ScopeId::ROOT, "logingracetime") {
        let value = said.word().unwrap_or_default();
        // The facts of a single unit are those of `sshd.scope`.
        if value.len() > 2 {
            found.add("no_grace_limit", is_zero_time(&value), &said.place);
        }
    }
    note_other_users(g, &all);
    note_lists(g, &all, &mut found);
    note_traps(g, &all, &mut found);
    found.note(g, "sshd.misuse");
}

/// Returns the path of sshd's main file.
pub(super) fn main_file() -> &'static str {
    SERVER
}

/// Notes that root cannot log in through a block for other users. The names of users are withheld from the collector of
/// `sshd.scope`, whose fact this one replaces.
fn note_other_users(g: &mut Gather<'_>, all: &Effective) {
    for (id, name) in names(all) {
        let mut lines = all.settings().iter();
        let Some(said) = lines.find(|said| said.scope == id && said.key == "permitrootlogin")
        else {
            continue;
        };
        if all.path(id).into_iter().any(is_of_others) {
            let fact = format!("sshd.scope.{name}.root_by_password");
            let place = FactPlace::from(&said.place);
            g.facts.known(fact, false, FactKind::Configured, place);
            g.about(["sshd.scope", &name]);
        }
    }
}

/// Returns whether a time such as `0h0m` is zero (sshd_config(5), TIME FORMATS).
fn is_zero_time(value: &str) -> bool {
    let digits = value.bytes().filter(u8::is_ascii_digit);
    value.starts_with(|letter: char| letter.is_ascii_digit())
        && digits.into_iter().all(|digit| digit == b'0')
}

/// Notes lists of users or groups of which none exists, so that nobody can log in.
fn note_lists(g: &mut Gather<'_>, all: &Effective, found: &mut Misuses) {
    for (key, file, source) in [
        ("allowgroups", "/etc/group", "group"),
        ("allowusers", "/etc/passwd", "passwd"),
    ] {
        let of_key = |said: &&Setting| said.scope == ScopeId::ROOT && said.key == key;
        let lines: Vec<&Setting> = all.settings().iter().filter(of_key).collect();
        let Some(first) = lines.first() else { continue };
        let Ok(names) = g.host.read_text(Path::new(file)) else {
            continue;
        };
        let switch = g
            .host
            .read_text(Path::new("/etc/nsswitch.conf"))
            .unwrap_or_default();
        let other = |line: &str| {
            let (name, sources) = line.split_once(':').unwrap_or((line, ""));
            name.trim() == source
                && sources
                    .split_whitespace()
                    .any(|one| !OF_FILES.contains(&one))
        };
        if switch.lines().any(other) || names.trim().is_empty() {
            continue;
        }
        let patterns = lines.iter().flat_map(|said| &said.words);
        let mut patterns = patterns.map(|word| String::from_utf8_lossy(word).into_owned());
        let exists = patterns.any(|pattern| {
            let name = pattern.split('@').next().unwrap_or_default();
            let mut all = names.lines().filter_map(|line| line.split(':').next());
            !name.starts_with('!') && all.any(|known| pattern_matches(known, name))
        });
        found.add("nobody_allowed", !exists, &first.place);
    }
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    /// Properties of this module; `ssh_traps` notes the others.
    const OWN: [&str; 5] = [
        "environment_loads",
        "keys_in_shared_directory",
        "strict",
        "no_grace_limit",
        "nobody_allowed",
    ];

    #[test]
    fn lines_and_their_near_misses() {
        let files = |text: &'static str| {
            [
                (SERVER, text),
                ("/etc/group", "root:x:0:\nsudo:x:27:a\n"),
                (
                    "/etc/passwd",
                    "root:x:0:0::/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\n",
                ),
            ]
        };
        for (text, expected) in [
            (
                "PermitUserEnvironment LANG,LD_*\n",
                "environment_loads=true",
            ),
            (
                "PermitUserEnvironment LANG,LC_*\n",
                "environment_loads=false",
            ),
            ("PermitUserEnvironment no\n", "environment_loads=false"),
            (
                "AuthorizedKeysFile /tmp/keys/%u\n",
                "keys_in_shared_directory=true strict=true",
            ),
            (
                "StrictModes no\nAuthorizedKeysFile /tmp/keys/%u\n",
                "keys_in_shared_directory=true strict=false",
            ),
            (
                "AuthorizedKeysFile .ssh/authorized_keys\n",
                "keys_in_shared_directory=false strict=true",
            ),
            ("LoginGraceTime 0h0m\n", "no_grace_limit=true"),
            ("LoginGraceTime 120\n", "no_grace_limit=false"),
            ("AllowGroups wheel\n", "nobody_allowed=true"),
            (
                "AllowGroups wheel\nAllowGroups su*\n",
                "nobody_allowed=false",
            ),
            ("AllowUsers bob carol@192.0.2.1\n", "nobody_allowed=true"),
            ("AllowUsers alice@192.0.2.1\n", "nobody_allowed=false"),
        ] {
            let all = found(&files(text), collect);
            let own = |one: &&String| OWN.iter().any(|name| one.starts_with(name));
            let own: Vec<&str> = all.iter().filter(own).map(String::as_str).collect();
            assert_eq!(own.join(" "), expected, "{text}");
        }
        let ldap = [
            (SERVER, "AllowGroups wheel\n"),
            ("/etc/group", "root:x:0:\n"),
            ("/etc/nsswitch.conf", "group: files sss\n"),
        ];
        assert!(found(&ldap, collect).is_empty());
    }
}
