//! Determines who may log in to sshd: whether root can log in, whether a password alone suffices, and which account
//! lists decide this. The lines affect each other, so this module evaluates them together.

use super::scopes::yes_or_no;
use super::ssh::in_force;
use crate::gather::Gather;
use assay_config::effective::ssh_match::pattern_matches;
use assay_config::effective::{Effective, ScopeId, Setting};
use assay_model::{FactKind, FactPlace};

/// Keywords whose value is a list of accounts or groups.
pub(crate) const LISTS: [&str; 4] = ["allowusers", "denyusers", "allowgroups", "denygroups"];

/// Groups that exist on every system; root is a member of some of them, depending on the system.
pub(crate) const SYSTEM_GROUPS: [&str; 9] = [
    "root", "wheel", "sudo", "adm", "admin", "bin", "daemon", "sys", "disk",
];

/// Replaces the name of an account or group that may be private.
const LEFT_OUT: &str = "left-out";

/// Replaces the criteria of a `Match` block for users of whom none is root.
pub(crate) const OF_OTHERS: &str = "User other-than-root";

/// Authentication methods that redaction keeps (sshd_config(5), AuthenticationMethods).
pub(crate) const METHODS: [&str; 7] = [
    "publickey",
    "password",
    "keyboard-interactive",
    "hostbased",
    "gssapi-with-mic",
    "none",
    "any",
];

pub(super) fn collect(g: &mut Gather<'_>, all: &Effective, id: ScopeId, subject: &str) {
    let says = |key: &str| {
        let mut settings = all.settings().iter();
        settings.find(|said| said.scope == id && said.key == key)
    };
    if let Some(line) = LISTS.iter().find_map(|key| says(key)) {
        let fact = format!("{subject}.root_shut_out");
        let place = FactPlace::from(&line.place);
        match is_shut_out(all, id) {
            Some(shut) => g.facts.known(fact, shut, FactKind::Configured, place),
            None => g.facts.unknown(
                fact,
                "whether root is in a group of these lists",
                FactKind::Configured,
                place,
            ),
        }
    }
    if let Some(line) = says("permitrootlogin") {
        let fact = format!("{subject}.root_by_password");
        let place = FactPlace::from(&line.place);
        match is_open_by_password(all, id) {
            Some(open) => g.facts.known(fact, open, FactKind::Configured, place),
            None => g.facts.unknown(
                fact,
                "whether root is in a group of AllowGroups or DenyGroups",
                FactKind::Configured,
                place,
            ),
        }
    }
    if let Some(line) = says("permitemptypasswords") {
        let word = |key: &str| word(all, id, key);
        let open = word("permitemptypasswords").as_deref() == Some("yes")
            && word("passwordauthentication").as_deref() != Some("no");
        let fact = format!("{subject}.empty_passwords");
        g.facts.known(
            fact,
            open,
            FactKind::Configured,
            FactPlace::from(&line.place),
        );
    }
    // Nothing is noted for a scope without any of these keywords.
    let subject: Vec<&str> = subject.rsplitn(2, '.').collect();
    if let [name, kind] = subject[..] {
        g.about([kind, name]);
    }
}

fn word(all: &Effective, id: ScopeId, key: &str) -> Option<String> {
    let said = in_force(all, id, key)?;
    Some(yes_or_no(
        said.word().unwrap_or_default().to_ascii_lowercase(),
    ))
}

/// Returns whether root can log in with only a password; `None` if unknown.
fn is_open_by_password(all: &Effective, id: ScopeId) -> Option<bool> {
    let word = |key: &str| word(all, id, key);
    let says = |key: &str, value: &str| word(key).as_deref() == Some(value);
    // PasswordAuthentication and KbdInteractiveAuthentication are yes by default, UsePAM is no.
    let password = !says("passwordauthentication", "no");
    let asked_by_pam = !says("kbdinteractiveauthentication", "no") && says("usepam", "yes");
    if !says("permitrootlogin", "yes") || !(password || asked_by_pam) {
        return Some(false);
    }
    if all.path(id).into_iter().any(is_of_others) {
        return Some(false);
    }
    if in_force(all, id, "authenticationmethods").is_some_and(|said| !is_alone(said)) {
        return Some(false);
    }
    is_shut_out(all, id).map(|shut| !shut)
}

/// Returns whether a `Match` block names users of whom none is root.
pub(crate) fn is_of_others(head: &[String]) -> bool {
    let words: Vec<&str> = head.iter().flat_map(|word| word.splitn(2, '=')).collect();
    let mut criteria = words
        .windows(2)
        .filter(|pair| pair[0].eq_ignore_ascii_case("user"));
    criteria.any(|pair| {
        let users = pair[1].trim_matches('"');
        // Redaction replaces names; then root may be meant.
        let known = !users.is_empty() && !users.contains("left-out");
        let (not, only): (Vec<&str>, Vec<&str>) =
            users.split(',').partition(|one| one.starts_with('!'));
        let denied = not.iter().any(|one| pattern_matches("root", &one[1..]));
        known && (denied || !only.iter().any(|one| pattern_matches("root", one)))
    })
}

/// Returns whether a password alone satisfies one of the method lists of an AuthenticationMethods line.
fn is_alone(said: &Setting) -> bool {
    let by_password = |list: &str| {
        list.split(',').all(|method| {
            let name = method.split(':').next().unwrap_or_default();
            matches!(name, "password" | "keyboard-interactive" | "any")
        })
    };
    let text = said.text().to_ascii_lowercase();
    let mut lists = text.split_whitespace().peekable();
    lists.peek().is_none() || lists.any(by_password)
}

/// Returns whether account lists exclude root, as `allowed_user` in auth.c of OpenSSH decides; `None` if unknown. A
/// list of users that is not empty must contain root. A pattern with a host applies only to some clients.
fn is_shut_out(all: &Effective, id: ScopeId) -> Option<bool> {
    let list = |key: &str| -> Vec<String> {
        let lines = all.get(id, key);
        let words = lines.iter().flat_map(|said| &said.words);
        words
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect()
    };
    let user =
        |pattern: &String| pattern_matches("root", pattern.split('@').next().unwrap_or_default());
    let (allowed, denied) = (list("allowusers"), list("denyusers"));
    let denied = denied
        .iter()
        .any(|pattern| !pattern.contains('@') && user(pattern));
    if denied || (!allowed.is_empty() && !allowed.iter().any(user)) {
        return Some(true);
    }
    let (allowed, denied) = (list("allowgroups"), list("denygroups"));
    let own = |pattern: &String| pattern_matches("root", pattern);
    let perhaps = |patterns: &[String]| {
        let mut groups = SYSTEM_GROUPS.iter().skip(1);
        groups.any(|group| {
            patterns
                .iter()
                .any(|pattern| pattern_matches(group, pattern))
        })
    };
    match () {
        () if denied.iter().any(own) => Some(true),
        () if perhaps(&denied) => None,
        () if allowed.is_empty() || allowed.iter().any(own) => Some(false),
        () if perhaps(&allowed) => None,
        () => Some(true),
    }
}

/// Redacts an account list: keeps patterns that match root, and groups that exist on every system.
pub(crate) fn redact(name: &str, value: &str) -> String {
    let names: &[&str] = match name.ends_with("groups") {
        true => &SYSTEM_GROUPS,
        false => &["root"],
    };
    let word = |pattern: &str| {
        let (account, host) = match pattern.split_once('@') {
            Some((account, _)) if names.len() == 1 => (account, "@left-out"),
            _ => (pattern, ""),
        };
        let meant = names.iter().filter(|name| pattern_matches(name, account));
        let kept: Vec<String> = meant.map(|name| format!("{name}{host}")).collect();
        match kept.is_empty() {
            true => LEFT_OUT.to_owned(),
            false => kept.join(" "),
        }
    };
    let words = value.split_whitespace();
    let words: Vec<String> = words
        .map(|pattern| word(pattern.trim_matches('"')))
        .collect();
    words.join(" ")
}

/// Redacts AuthenticationMethods: keeps a value that consists of known methods, and replaces any other value.
pub(crate) fn redact_methods(value: &str) -> String {
    let known = |list: &&str| {
        list.split(',').all(|method| {
            let (name, device) = method.split_once(':').unwrap_or((method, ""));
            METHODS.contains(&name) && matches!(device, "" | "pam" | "bsdauth" | "skey")
        })
    };
    let words: Vec<&str> = value
        .split_whitespace()
        .map(|word| word.trim_matches('"'))
        .collect();
    match words.iter().all(known) {
        true => words.join(" "),
        false => "withheld".to_owned(),
    }
}
