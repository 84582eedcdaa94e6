//! Finds lines of sshd_config that do not do what they seem to do: blocks that swallow the lines after them or never
//! apply, methods that are required and switched off, and files of keys that admit to every account.

use super::Misuses;
use crate::collectors::daemons::lines::is_loopback;
use crate::collectors::services::packages::find_any_version;
use crate::gather::Gather;
use assay_config::effective::{Effective, ScopeId, Setting};
use assay_model::FactPlace;
use std::path::Path;

/// Criteria of `Match` whose value is a list of patterns.
const CRITERIA: [&str; 7] = [
    "user",
    "group",
    "host",
    "address",
    "localaddress",
    "localport",
    "rdomain",
];
/// Methods of AuthenticationMethods, each with its keyword and whether the method is on without a line.
const METHODS: [(&str, &str, bool); 5] = [
    ("publickey", "pubkeyauthentication", true),
    ("password", "passwordauthentication", true),
    ("keyboard-interactive", "kbdinteractiveauthentication", true),
    ("hostbased", "hostbasedauthentication", false),
    ("gssapi-with-mic", "gssapiauthentication", false),
];

pub(super) fn note_traps(g: &Gather<'_>, all: &Effective, found: &mut Misuses) {
    for (id, scope) in all.scopes() {
        if let Some(never) = never_matches(&scope.head) {
            found.add("never_matches", never, &scope.place);
        }
        note_swallowed(g, all, id, found);
        note_methods(all, id, found);
        note_shared_files(all, id, found);
        note_forwarding(all, id, found);
        note_idle_limit(g, all, id, found);
    }
    note_passwords_of_pam(g, all, found);
    note_commands(all, found);
    note_revoked(g, all, found);
    note_refusals(g, all, found);
    note_sftp(g, all, found);
}

fn is(all: &Effective, id: ScopeId, key: &str, word: &str) -> bool {
    let said = all.value(id, key).and_then(Setting::word);
    said.is_some_and(|said| said.eq_ignore_ascii_case(word))
}

fn is_block(all: &Effective, id: ScopeId) -> bool {
    let head = &all.scope(id).head;
    let first = head.first().map_or("", String::as_str);
    first.eq_ignore_ascii_case("match")
        && !head
            .get(1)
            .is_some_and(|word| word.eq_ignore_ascii_case("all"))
}

/// Returns the criteria of a `Match` block with their values.
fn criteria(head: &[String]) -> Vec<(String, String)> {
    let words: Vec<&str> = head
        .iter()
        .skip(1)
        .flat_map(|word| match word.split_once('=') {
            Some((name, value)) if CRITERIA.contains(&name.to_ascii_lowercase().as_str()) => {
                vec![name, value]
            }
            _ => vec![word.as_str()],
        })
        .collect();
    words
        .windows(2)
        .filter(|pair| CRITERIA.contains(&pair[0].to_ascii_lowercase().as_str()))
        .map(|pair| {
            (
                pair[0].to_ascii_lowercase(),
                pair[1].trim_matches('"').to_owned(),
            )
        })
        .collect()
}

/// Returns whether a list of patterns has only negated patterns, which match nothing (ssh_config(5), PATTERNS).
pub(super) fn is_only_negated<'a>(mut patterns: impl Iterator<Item = &'a str>) -> bool {
    patterns.all(|one| one.trim().starts_with('!'))
}

fn never_matches(head: &[String]) -> Option<bool> {
    let criteria = criteria(head);
    let never = |(_, value): &(String, String)| is_only_negated(value.split(','));
    (!criteria.is_empty()).then(|| criteria.iter().any(never))
}

/// Notes a block with indented lines that also contains lines without indentation: these lines are meant for the whole
/// server, but belong to the block until the next `Match` or the end of the file.
fn note_swallowed(g: &Gather<'_>, all: &Effective, id: ScopeId, found: &mut Misuses) {
    if !is_block(all, id) {
        return;
    }
    let own: Vec<&Setting> = all
        .settings()
        .iter()
        .filter(|said| said.scope == id)
        .collect();
    let Some(first) = own.first() else { return };
    let path = &first.place.path;
    let Ok(text) = g.host.read_text(path) else {
        return;
    };
    let lines: Vec<&str> = text.lines().collect();
    let indented = |said: &Setting| {
        let line = lines.get(said.place.line.saturating_sub(1));
        line.is_some_and(|line| line.starts_with([' ', '\t']))
    };
    if !indented(first) {
        return;
    }
    // A blank line or a comment at the margin separates the lines from those of the block.
    let apart = |said: &Setting| {
        let before = lines[..said.place.line.saturating_sub(1)].iter().rev();
        let mut before =
            before.take_while(|line| line.trim().is_empty() || line.trim_start().starts_with('#'));
        before.any(|line| line.trim().is_empty() || line.starts_with('#'))
    };
    let swallowed = own
        .iter()
        .find(|said| said.place.path == *path && !indented(said) && apart(said));
    let place = swallowed.map_or(&first.place, |said| &said.place);
    found.add("lines_swallowed", swallowed.is_some(), place);
}

/// Notes required methods of which each combination contains one that is switched off.
fn note_methods(all: &Effective, id: ScopeId, found: &mut Misuses) {
    let said = all.value(id, "authenticationmethods");
    let Some(said) = said.filter(|said| said.scope == id) else {
        return;
    };
    let text = said.text().replace('"', "").to_ascii_lowercase();
    let is_off = |method: &str| {
        let name = method.split(':').next().unwrap_or_default();
        let known = METHODS.iter().find(|(known, ..)| *known == name);
        known.is_some_and(|(_, key, default)| match default {
            true => is(all, id, key, "no"),
            false => !is(all, id, key, "yes"),
        })
    };
    let mut lists = text
        .split_whitespace()
        .filter(|list| *list != "any")
        .peekable();
    if lists.peek().is_none() {
        return;
    }
    let impossible = lists.all(|list| list.split(',').any(is_off));
    found.add("method_disabled", impossible, &said.place);
}

/// Notes files of keys or principals that are the same for all accounts, so that each entry admits to every account.
fn note_shared_files(all: &Effective, id: ScopeId, found: &mut Misuses) {
    let mut around = all.path(id).into_iter();
    if around.any(|head| criteria(head).iter().any(|(name, _)| name == "user")) {
        return;
    }
    let authority = all.settings().iter().any(|said| {
        let word = said.word().unwrap_or_default();
        said.key == "trustedusercakeys" && !word.eq_ignore_ascii_case("none")
    });
    for key in ["authorizedkeysfile", "authorizedprincipalsfile"] {
        let said = all.value(id, key).filter(|said| said.scope == id);
        let Some(said) = said.filter(|_| authority || key == "authorizedkeysfile") else {
            continue;
        };
        let mut words = said.words.iter().map(|word| String::from_utf8_lossy(word));
        let shared = words.any(|word| word.starts_with('/') && !word.contains('%'));
        found.add("keys_shared", shared, &said.place);
    }
}

/// Notes blocks that permit only file transfer, but also forward TCP connections into the network of the server.
fn note_forwarding(all: &Effective, id: ScopeId, found: &mut Misuses) {
    let own = |key: &str| all.value(id, key).filter(|said| said.scope == id);
    let Some(said) = own("forcecommand").filter(|_| is_block(all, id)) else {
        return;
    };
    if !said.text().trim_matches('"').starts_with("internal-sftp") {
        return;
    }
    let limited = is(all, id, "disableforwarding", "yes")
        || is(all, id, "allowtcpforwarding", "no")
        || (is(all, id, "permitopen", "none") && is(all, id, "permitlisten", "none"));
    found.add("sftp_forwards", !limited, &said.place);
}

/// Notes an idle limit that is off: since OpenSSH 8.2, a count of 0 never ends a connection.
fn note_idle_limit(g: &Gather<'_>, all: &Effective, id: ScopeId, found: &mut Misuses) {
    let said = all.value(id, "clientalivecountmax");
    let Some(said) = said.filter(|said| said.scope == id) else {
        return;
    };
    let asks = all.value(id, "clientaliveinterval").and_then(Setting::word);
    let asks = asks.is_some_and(|word| {
        word.starts_with(|letter: char| letter.is_ascii_digit()) && word != "0"
    });
    let off = said.word().as_deref() == Some("0") && asks && !is_before(g, (8, 2));
    found.add("idle_limit_off", off, &said.place);
}

/// Returns the release of the installed package of sshd.
fn release(g: &Gather<'_>) -> Option<(u32, u32)> {
    let version = find_any_version(g, "openssh-server")?;
    let bare = version
        .split_once(':')
        .map_or(version.as_str(), |(_, bare)| bare);
    let mut parts = bare.split(|letter: char| !letter.is_ascii_digit());
    let mut number = || parts.next().and_then(|part| part.parse::<u32>().ok());
    Some((number()?, number()?))
}

/// Returns whether sshd is certainly older than a release.
fn is_before(g: &Gather<'_>, wanted: (u32, u32)) -> bool {
    if let Some(known) = release(g) {
        return known < wanted;
    }
    let release = g
        .host
        .read_text(Path::new("/etc/os-release"))
        .unwrap_or_default();
    let value = |name: &str| {
        let line = release.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim_matches('"').to_owned())
    };
    let first = value("VERSION_ID=").and_then(|id| id.split('.').next()?.parse::<u32>().ok());
    let like = [value("ID="), value("ID_LIKE=")]
        .map(Option::unwrap_or_default)
        .join(" ");
    // Red Hat 8 has OpenSSH 8.0, Red Hat 9 has 8.7; Debian 12 has 9.2.
    let least = if wanted <= (8, 2) { 8 } else { 9 };
    let debian = like.split(' ').any(|one| one == "debian") && wanted > (8, 2);
    first.is_some_and(|first| (like.contains("rhel") && first <= least) || (debian && first <= 12))
}

/// Notes passwords that PAM still asks for, although PasswordAuthentication is no (sshd_config(5), UsePAM).
fn note_passwords_of_pam(g: &Gather<'_>, all: &Effective, found: &mut Misuses) {
    let root = |key: &str, word: &str| is(all, ScopeId::ROOT, key, word);
    let Some(said) = all.value(ScopeId::ROOT, "passwordauthentication") else {
        return;
    };
    if !root("passwordauthentication", "no") {
        return;
    }
    let limited = all.value(ScopeId::ROOT, "authenticationmethods").is_some();
    let stack = g.host.read_text(Path::new("/etc/pam.d/sshd"));
    let asks = stack.is_ok_and(|text| {
        let lines = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.starts_with('#'));
        let names = ["common-auth", "password-auth", "system-auth", "pam_unix"];
        let mut auth =
            lines.filter(|line| line.starts_with("auth") || line.starts_with("@include"));
        auth.any(|line| names.iter().any(|name| line.contains(name)))
    }) || !g.host.exists(Path::new("/etc/pam.d/sshd")).unwrap_or(true);
    let open =
        root("usepam", "yes") && !root("kbdinteractiveauthentication", "no") && !limited && asks;
    found.add("passwords_through_pam", open, &said.place);
}

/// Notes commands that need an account to run as: sshd does not start without it.
fn note_commands(all: &Effective, found: &mut Misuses) {
    for key in ["authorizedkeyscommand", "authorizedprincipalscommand"] {
        let Some(said) = all.value(ScopeId::ROOT, key) else {
            continue;
        };
        let set = said
            .word()
            .is_some_and(|word| !word.eq_ignore_ascii_case("none"));
        let user = all.value(ScopeId::ROOT, &format!("{key}user"));
        found.add("command_without_user", set && user.is_none(), &said.place);
    }
}

/// Notes a list of revoked keys that does not exist: sshd then refuses all keys.
fn note_revoked(g: &Gather<'_>, all: &Effective, found: &mut Misuses) {
    let Some(said) = all.value(ScopeId::ROOT, "revokedkeys") else {
        return;
    };
    let word = said.word().unwrap_or_default();
    let path = Path::new(&word);
    let known = |path: &Path| g.host.exists(path).ok();
    // A tree may lack the directories outside of /etc.
    if let (true, Some(true), Some(there)) = (
        path.starts_with("/etc"),
        path.parent().and_then(known),
        known(path),
    ) {
        found.add("revoked_missing", !there, &said.place);
    }
}

/// Notes lines with which no other machine can log in, or with which sshd does not start.
fn note_refusals(g: &Gather<'_>, all: &Effective, found: &mut Misuses) {
    let listens = all.get(ScopeId::ROOT, "listenaddress");
    let words: Vec<String> = listens.iter().filter_map(|said| said.word()).collect();
    if let Some(first) = listens.first() {
        let here = words.iter().all(|word| is_loopback(word));
        found.add("only_loopback", here, &first.place);
    }
    if let Some(said) = all.value(ScopeId::ROOT, "maxsessions") {
        found.add(
            "no_sessions",
            said.word().as_deref() == Some("0"),
            &said.place,
        );
    }
    let of_sftp = |said: &&Setting| {
        said.scope == ScopeId::ROOT
            && said.key == "subsystem"
            && said
                .word()
                .is_some_and(|word| word.eq_ignore_ascii_case("sftp"))
    };
    let mut lines = all.settings().iter().filter(of_sftp);
    if let Some(first) = lines.next() {
        // Since 9.5, the first line counts.
        let second = lines.next().filter(|_| is_before(g, (9, 5)));
        let place = second.map_or(&first.place, |said| &said.place);
        found.add("subsystem_twice", second.is_some(), place);
    }
}

/// Notes a packaged line for sftp that was commented out without a replacement.
fn note_sftp(g: &Gather<'_>, all: &Effective, found: &mut Misuses) {
    let mut lines = all.settings().iter();
    let there = lines.any(|said| {
        said.key == "subsystem"
            && said
                .word()
                .is_some_and(|word| word.eq_ignore_ascii_case("sftp"))
    });
    let main = super::ssh_server::main_file();
    let text = g.host.read_text(Path::new(main)).unwrap_or_default();
    for (number, line) in text.lines().enumerate() {
        let bare = line
            .trim_start_matches(['#', ' ', '\t'])
            .to_ascii_lowercase();
        let mut words = bare.split_whitespace();
        if (words.next(), words.next()) == (Some("subsystem"), Some("sftp")) {
            let off = line.trim_start().starts_with('#') && !there;
            let place = FactPlace::File {
                path: main.to_owned(),
                line: Some(number + 1),
                span: None,
            };
            return found.add("without_sftp", off, place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{found, ssh_server};

    #[test]
    fn lines_and_their_near_misses() {
        for (text, expected) in [
            (
                "Match Address !10.0.0.0/8\n PasswordAuthentication no\n",
                "never_matches=true",
            ),
            (
                "Match Address *,!10.0.0.0/8\n PasswordAuthentication no\n",
                "never_matches=false",
            ),
            ("Match User !root Address 10.0.0.1\n", "never_matches=true"),
            (
                "Match User a\n ForceCommand x\n\nMaxAuthTries 3\n",
                "lines_swallowed=true",
            ),
            (
                "Match User a\n ForceCommand x\nMatch all\nMaxAuthTries 3\n",
                "lines_swallowed=false",
            ),
            ("Match User a\nForceCommand x\nMaxAuthTries 3\n", ""),
            (
                "Match User a\n ForceCommand x\nMaxAuthTries 3\n",
                "lines_swallowed=false",
            ),
            (
                "KbdInteractiveAuthentication no\nAuthenticationMethods publickey,keyboard-interactive\n",
                "method_disabled=true",
            ),
            (
                "KbdInteractiveAuthentication no\nAuthenticationMethods publickey,keyboard-interactive publickey\n",
                "method_disabled=false",
            ),
            ("AuthenticationMethods any\n", ""),
            ("AuthorizedKeysFile /etc/ssh/keys\n", "keys_shared=true"),
            ("AuthorizedKeysFile /etc/ssh/keys/%u\n", "keys_shared=false"),
            ("Match User a\n AuthorizedKeysFile /etc/ssh/keys\n", ""),
            ("AuthorizedPrincipalsFile /etc/ssh/p\n", ""),
            (
                "TrustedUserCAKeys /etc/ssh/ca\nAuthorizedPrincipalsFile /etc/ssh/p\n",
                "keys_shared=true",
            ),
            (
                "Match Group s\n ForceCommand internal-sftp\n",
                "sftp_forwards=true",
            ),
            (
                "AllowTcpForwarding no\nMatch Group s\n ForceCommand internal-sftp -l INFO\n",
                "sftp_forwards=false",
            ),
            ("Match Group s\n ForceCommand /bin/x\n", ""),
            (
                "ClientAliveInterval 5m\nClientAliveCountMax 0\n",
                "idle_limit_off=true",
            ),
            (
                "ClientAliveInterval 0\nClientAliveCountMax 0\n",
                "idle_limit_off=false",
            ),
            (
                "PasswordAuthentication no\nUsePAM yes\n",
                "passwords_through_pam=true",
            ),
            (
                "PasswordAuthentication no\nUsePAM yes\nChallengeResponseAuthentication no\n",
                "passwords_through_pam=false",
            ),
            (
                "AuthorizedKeysCommand /usr/bin/a %u\n",
                "command_without_user=true",
            ),
            (
                "AuthorizedKeysCommand /usr/bin/a %u\nAuthorizedKeysCommandUser nobody\n",
                "command_without_user=false",
            ),
            ("RevokedKeys /etc/ssh/gone\n", "revoked_missing=true"),
            ("RevokedKeys /srv/gone\n", ""),
            ("ListenAddress 127.0.0.1\n", "only_loopback=true"),
            (
                "ListenAddress 127.0.0.1\nListenAddress 10.0.0.4\n",
                "only_loopback=false",
            ),
            ("MaxSessions 0\n", "no_sessions=true"),
            ("MaxSessions 10\n", "no_sessions=false"),
            (
                "#Subsystem sftp /usr/lib/openssh/sftp-server\n",
                "without_sftp=true",
            ),
            ("Subsystem sftp internal-sftp\n", "without_sftp=false"),
        ] {
            let all = found(&[("/etc/ssh/sshd_config", text)], ssh_server::collect);
            let name = expected.split('=').next().unwrap_or_default();
            let names = [
                "method_disabled",
                "keys_shared",
                "sftp_forwards",
                "revoked_missing",
            ];
            let own = all.iter().filter(|one| match name {
                "" => names.iter().any(|name| one.starts_with(name)),
                name => one.starts_with(name),
            });
            let own: Vec<&str> = own.map(String::as_str).collect();
            assert_eq!(own.join(" "), expected, "{text}: {all:?}");
        }
    }

    #[test]
    fn older_releases_end_idle_logins() {
        let text = "ClientAliveInterval 300\nClientAliveCountMax 0\n";
        let release = ("/etc/os-release", "ID=\"rhel\"\nVERSION_ID=\"8.10\"\n");
        let all = found(
            &[("/etc/ssh/sshd_config", text), release],
            ssh_server::collect,
        );
        assert!(all.contains(&"idle_limit_off=false".to_owned()), "{all:?}");
    }

    #[test]
    fn stacks_without_passwords() {
        let text = "PasswordAuthentication no\nUsePAM yes\n";
        for (stack, expected) in [
            ("@include common-auth\n", "true"),
            (
                "#@include common-auth\nauth required pam_google_authenticator.so\n",
                "false",
            ),
        ] {
            let files = [("/etc/ssh/sshd_config", text), ("/etc/pam.d/sshd", stack)];
            let all = found(&files, ssh_server::collect);
            assert!(
                all.contains(&format!("passwords_through_pam={expected}")),
                "{stack}: {all:?}"
            );
        }
    }

    #[test]
    fn a_second_subsystem_stops_older_releases() {
        let text = "Subsystem sftp /usr/lib/openssh/sftp-server\nSubsystem sftp internal-sftp\n";
        for (version, expected) in [("12", "true"), ("13", "false")] {
            let release = format!("ID=debian\nVERSION_ID=\"{version}\"\n");
            let files = [
                ("/etc/ssh/sshd_config", text),
                ("/etc/os-release", &release),
            ];
            let all = found(&files, ssh_server::collect);
            assert!(
                all.contains(&format!("subsystem_twice={expected}")),
                "{version}: {all:?}"
            );
        }
    }
}
