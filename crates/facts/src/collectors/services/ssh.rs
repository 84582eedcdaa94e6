//! Collects sshd settings of every `Match` block, and ssh client settings of every `Host` and `Match` block.

use super::scopes::{Take, is_time, names, note_own_settings, yes_or_no};
use super::{ssh_access, ssh_algorithms, sshd_lines};
use crate::gather::Gather;
use crate::harmless::{LEFT_OUT, is_pattern};
use assay_config::effective::{Effective, Program, SSHD_GLOBAL, ScopeId, Setting};
use assay_model::change::ConfigLanguage;
use assay_model::secrets::is_plain;
use assay_model::{FactKind, FactPlace};

pub(crate) const SERVER: &str = "/etc/ssh/sshd_config";
pub(crate) const CLIENT: &str = "/etc/ssh/ssh_config";

/// Keywords of sshd that are noted.
const SERVER_KEYS: [(&str, Take); 36] = [
    ("allowtcpforwarding", Take::Word),
    ("disableforwarding", Take::Word),
    ("usedns", Take::Word),
    ("gssapiauthentication", Take::Word),
    ("kerberosauthentication", Take::Word),
    ("hostbasedauthentication", Take::Word),
    ("ignorerhosts", Take::Word),
    ("kbdinteractiveauthentication", Take::Word),
    ("passwordauthentication", Take::Word),
    ("pubkeyauthentication", Take::Word),
    ("permitemptypasswords", Take::Word),
    ("permitrootlogin", Take::Word),
    ("permituserenvironment", Take::Word),
    ("strictmodes", Take::Word),
    ("usepam", Take::Word),
    ("exposeauthinfo", Take::Word),
    ("loglevel", Take::Word),
    ("maxauthtries", Take::Word),
    ("logingracetime", Take::Word),
    ("gatewayports", Take::Word),
    ("x11forwarding", Take::Word),
    ("x11uselocalhost", Take::Word),
    ("permittunnel", Take::Word),
    ("trustedusercakeys", Take::Word),
    ("authorizedprincipalsfile", Take::Word),
    ("authorizedprincipalscommand", Take::Word),
    ("authorizedprincipalscommanduser", Take::Word),
    ("authorizedkeyscommanduser", Take::Word),
    ("revokedkeys", Take::Word),
    ("ciphers", Take::List),
    ("macs", Take::List),
    ("kexalgorithms", Take::List),
    ("hostkeyalgorithms", Take::List),
    ("pubkeyacceptedalgorithms", Take::List),
    ("casignaturealgorithms", Take::List),
    ("authenticationmethods", Take::Word),
];

/// Keywords of the ssh client that are noted.
const CLIENT_KEYS: [(&str, Take); 14] = [
    ("stricthostkeychecking", Take::Word),
    ("forwardagent", Take::Word),
    ("forwardx11trusted", Take::Word),
    ("gssapiauthentication", Take::Word),
    ("controlmaster", Take::Word),
    ("controlpath", Take::Word),
    ("identityfile", Take::Word),
    ("certificatefile", Take::Word),
    ("identitiesonly", Take::Word),
    ("identityagent", Take::Word),
    ("ciphers", Take::List),
    ("macs", Take::List),
    ("kexalgorithms", Take::List),
    ("userknownhostsfile", Take::Word),
];

/// Keywords whose effective value is noted in every scope, even if an outer scope sets it. Their meaning depends on
/// another keyword, which may be set in another scope.
const SERVER_IN_FORCE: [&str; 2] = ["trustedusercakeys", "revokedkeys"];
const CLIENT_IN_FORCE: [&str; 4] = [
    "identityfile",
    "certificatefile",
    "identitiesonly",
    "identityagent",
];

/// Keywords that sshd ignores, each with the first release that ignores it. They are `sDeprecated` in servconf.c of
/// OpenSSH 9.2, for which `sshd -t` prints "Deprecated option", and `protocol`, which is ignored silently. In older
/// releases the line has an effect: removing the line may then enable what it disables.
pub(crate) const SERVER_DEAD: [(&str, &str); 13] = [
    ("authorizedkeysfile2", "5.9"),
    ("checkmail", "3.7"),
    ("keyregenerationinterval", "7.4"),
    ("pamauthenticationviakbdint", "3.7"),
    ("reversemappingcheck", "3.7"),
    ("rhostsauthentication", "3.7"),
    ("rhostsrsaauthentication", "7.4"),
    ("rsaauthentication", "7.4"),
    ("serverkeybits", "7.4"),
    ("uselogin", "7.4"),
    ("useprivilegeseparation", "7.5"),
    ("verifyreversemapping", "3.7"),
    ("protocol", "7.4"),
];

pub(crate) fn server(g: &mut Gather<'_>) {
    if let Some(all) = g.configuration("sshd", Program::Sshd, SERVER) {
        scopes(g, &all, "sshd.scope", &SERVER_KEYS, &SERVER_IN_FORCE);
        note_forwarding(g, &all);
        for (id, name) in names(&all) {
            let subject = format!("sshd.scope.{name}");
            ssh_access::collect(g, &all, id, &subject);
            ssh_algorithms::collect(g, &all, id, &name);
        }
        sshd_lines::collect(g, &all);
    }
}

/// Notes settings that decide whether forwarding is possible: the settings that affect `gatewayports`, and
/// `x11uselocalhost` where a block turns X11 forwarding on that is off outside of the block.
fn note_forwarding(g: &mut Gather<'_>, all: &Effective) {
    let word = |id: ScopeId, key: &str| {
        in_force(all, id, key).map(|said| yes_or_no(said.word().unwrap_or_default()))
    };
    for (id, name) in names(all) {
        let own = |key: &str| {
            let mut settings = all.settings().iter();
            settings.find(|said| said.scope == id && said.key == key)
        };
        if own("gatewayports").is_some() {
            let off = word(id, "disableforwarding").as_deref() == Some("yes")
                || matches!(
                    word(id, "allowtcpforwarding").as_deref(),
                    Some("no" | "local")
                );
            let elsewhere = all.settings().iter().any(|said| {
                said.key == "allowtcpforwarding"
                    && said.scope != ScopeId::ROOT
                    && id == ScopeId::ROOT
            });
            if let Some(said) = in_force(all, id, "allowtcpforwarding")
                .or_else(|| in_force(all, id, "disableforwarding"))
                .filter(|_| off && !elsewhere)
            {
                let fact = format!("sshd.scope.{name}.no_remote_forwarding");
                let place = FactPlace::from(&said.place);
                g.facts.known(fact, true, FactKind::Configured, place);
                g.about(["sshd.scope", &name]);
            }
        }
        let turns_on = id != ScopeId::ROOT
            && own("x11forwarding").is_some()
            && own("x11uselocalhost").is_none()
            && word(id, "x11forwarding").as_deref() == Some("yes")
            && word(ScopeId::ROOT, "x11forwarding").as_deref() != Some("yes");
        let outside = in_force(all, id, "x11uselocalhost").filter(|_| turns_on);
        if let Some(said) = outside {
            let fact = format!("sshd.scope.{name}.x11uselocalhost");
            let value = yes_or_no(said.word().unwrap_or_default());
            let place = FactPlace::from(&said.place);
            g.facts.known(fact, value, FactKind::Configured, place);
            g.about(["sshd.scope", &name]);
        }
    }
}

/// Notes lines of the client that have no effect because an earlier block for all hosts sets the same keyword. Also
/// notes blocks that apply only to connections to this machine.
fn note_client_reach(g: &mut Gather<'_>, all: &Effective) {
    let for_all =
        |scope: ScopeId| scope == ScopeId::ROOT || all.path(scope).into_iter().all(always);
    for (id, name) in names(all) {
        for key in ["forwardagent", "stricthostkeychecking"] {
            let mut of_key = all.settings().iter().filter(|said| said.key == key);
            let Some(said) = of_key.clone().find(|said| said.scope == id) else {
                continue;
            };
            let shadowed = of_key
                .find(|said| for_all(said.scope))
                .is_some_and(|first| first.scope != id && comes_before(all, first, said));
            if shadowed {
                let fact = format!("ssh.scope.{name}.{key}_shadowed");
                let place = FactPlace::from(&said.place);
                g.facts.known(fact, true, FactKind::Configured, place);
            }
        }
        let scope = all.scope(id);
        if let [host, patterns @ ..] = &scope.head[..]
            && host.eq_ignore_ascii_case("host")
            && !patterns.is_empty()
            && patterns.iter().all(|pattern| is_this_machine(pattern))
        {
            let fact = format!("ssh.scope.{name}.of_this_machine");
            let place = FactPlace::from(&scope.place);
            g.facts.known(fact, true, FactKind::Configured, place);
        }
        let noted = [
            ".forwardagent_shadowed",
            ".stricthostkeychecking_shadowed",
            ".of_this_machine",
        ];
        let is_noted = |end: &&str| g.facts.map.contains_key(&format!("ssh.scope.{name}{end}"));
        if noted.iter().any(is_noted) {
            g.about(["ssh.scope", &name]);
        }
    }
}

/// Returns whether a setting was read before another.
fn comes_before(all: &Effective, first: &Setting, second: &Setting) -> bool {
    let at = |wanted: &Setting| {
        let mut settings = all.settings().iter();
        settings.position(|said| std::ptr::eq(said, wanted))
    };
    at(first) < at(second)
}

/// Returns whether a pattern of `Host` matches only the loopback interface.
fn is_this_machine(pattern: &str) -> bool {
    matches!(pattern, "localhost" | "127.0.0.1" | "::1" | "127.*")
}

/// Returns whether the values of two lines of a keyword can be compared. The value must be a word or list without
/// private names.
pub(super) fn is_compared(key: &str) -> bool {
    let mut asked = SERVER_KEYS.iter();
    !is_path(key) && asked.any(|(known, _)| *known == key)
}

/// Returns whether the value of a keyword is a path.
fn is_path(key: &str) -> bool {
    PATHS.contains(&key)
}

/// Keywords whose value is a path.
const PATHS: [&str; 9] = [
    "authorizedprincipalscommand",
    "authorizedprincipalsfile",
    "certificatefile",
    "controlpath",
    "identityagent",
    "identityfile",
    "revokedkeys",
    "trustedusercakeys",
    "userknownhostsfile",
];

pub(crate) fn client(g: &mut Gather<'_>) {
    if let Some(all) = g.configuration("ssh", Program::Ssh, CLIENT) {
        scopes(g, &all, "ssh.scope", &CLIENT_KEYS, &CLIENT_IN_FORCE);
        note_client_reach(g, &all);
    }
}

fn scopes(
    g: &mut Gather<'_>,
    all: &Effective,
    kind: &str,
    keys: &[(&str, Take)],
    in_force_keys: &[&str],
) {
    for (id, name) in names(all) {
        note_own_settings(g, all, id, &[kind, &name], keys);
        let says = |key: &&str| {
            let mut settings = all.settings().iter();
            settings.any(|said| said.scope == id && said.key == **key)
        };
        if !in_force_keys.iter().any(says) {
            continue;
        }
        for key in in_force_keys {
            if let Some(said) = in_force(all, id, key) {
                let fact = format!("{kind}.{name}.{key}_in_force");
                let value = yes_or_no(said.word().unwrap_or_default());
                let place = FactPlace::from(&said.place);
                g.facts.known(fact, value, FactKind::Configured, place);
            }
        }
        g.about([kind, &name]);
    }
}

/// Returns the effective line of a key in a scope. The line may be in a block that always matches (`Match all`, `Host
/// *`). For sshd, the first matching block takes precedence over lines outside of blocks; for ssh, the first of all
/// lines applies (sshd_config(5), ssh_config(5)).
pub(super) fn in_force<'a>(all: &'a Effective, scope: ScopeId, key: &str) -> Option<&'a Setting> {
    let around: Vec<ScopeId> =
        std::iter::successors(Some(scope), |id| all.scope(*id).parent).collect();
    let blocks_first = all.program == Program::Sshd;
    let holds = |said: &&Setting| match said.scope {
        ScopeId::ROOT => !blocks_first,
        id => around.contains(&id) || all.path(id).into_iter().all(always),
    };
    let mut said = all.settings().iter().filter(|said| said.key == key);
    said.clone()
        .find(holds)
        .or_else(|| said.find(|said| said.scope == ScopeId::ROOT))
}

/// Returns whether a block with this head matches every connection.
fn always(head: &[String]) -> bool {
    let [name, criteria @ ..] = head else {
        return false;
    };
    let wanted = if name.eq_ignore_ascii_case("host") {
        "*"
    } else {
        "all"
    };
    matches!(criteria, [one] if one.eq_ignore_ascii_case(wanted))
}

/// Returns the keywords of sshd with a single word as value. `sshd -T` prints this word unchanged.
pub(crate) fn words_of_server() -> impl Iterator<Item = &'static str> {
    // `sshd -T` prints all times in seconds.
    let is_word = |(key, take): &&(&str, Take)| *take == Take::Word && *key != "logingracetime";
    let words = SERVER_KEYS.iter().filter(is_word);
    words.map(|(key, _)| *key)
}

/// Redacts a configuration file of sshd or ssh: keeps only the noted keywords, because other lines contain users, hosts
/// and addresses.
pub(crate) fn redact(text: &[u8]) -> Vec<u8> {
    let kept = |name: &str, value: &str| {
        let name = name.to_ascii_lowercase();
        match &name[..] {
            "match" if value.trim().eq_ignore_ascii_case("all") => Some("all".to_owned()),
            "host" if value.trim() == "*" => Some("*".to_owned()),
            "host" if value.split_whitespace().all(is_this_machine) => {
                Some(value.trim().to_owned())
            }
            "match" if ssh_access::is_of_others(&head_of(value)) => {
                Some(ssh_access::OF_OTHERS.to_owned())
            }
            "match" | "host" => Some(LEFT_OUT.to_owned()),
            "include" => {
                // Quotation marks are removed: a single one would change the meaning of the text
                // after it.
                let patterns: Vec<&str> = value
                    .split_whitespace()
                    .filter(|pattern| is_pattern(pattern))
                    .map(|pattern| pattern.trim_matches(['"', '\'']))
                    .collect();
                (!patterns.is_empty()).then(|| patterns.join(" "))
            }
            "authorizedkeysfile" => Some(files(value)),
            "authenticationmethods" => Some(ssh_access::redact_methods(value)),
            name if ssh_access::LISTS.contains(&name) => Some(ssh_access::redact(name, value)),
            name => known(name)
                .map(|take| harmless(name, value, take))
                .or_else(|| SSHD_GLOBAL.contains(&name).then(|| "withheld".to_owned())),
        }
    };
    assay_config::outline_text(ConfigLanguage::Ssh, text, &kept)
}

/// Splits the criteria of a `Match` line into words.
fn head_of(value: &str) -> Vec<String> {
    value.split_whitespace().map(str::to_owned).collect()
}

fn known(name: &str) -> Option<Take> {
    let one = match name {
        "challengeresponseauthentication" => "kbdinteractiveauthentication",
        "pubkeyacceptedkeytypes" => "pubkeyacceptedalgorithms",
        name => name,
    };
    let all = SERVER_KEYS.iter().chain(&CLIENT_KEYS);
    all.clone()
        .find(|(key, _)| *key == one)
        .map(|(_, take)| *take)
        .or_else(|| is_dead(one).then_some(Take::Word))
}

fn is_dead(key: &str) -> bool {
    SERVER_DEAD.iter().any(|(dead, _)| *dead == key)
}

/// Returns the noted keywords with a list of algorithms if `lists` is true, else those with a word.
pub(crate) fn keywords(lists: bool) -> Vec<&'static str> {
    let all = SERVER_KEYS.iter().chain(&CLIENT_KEYS);
    let mut found: Vec<&str> = all
        .filter(|(_, take)| (*take == Take::List) == lists)
        .map(|(key, _)| *key)
        .collect();
    if !lists {
        found.extend(SERVER_DEAD.map(|(dead, _)| dead));
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Redacts a value. Keeps lower-case algorithm names. Drops paths below a home directory, because they reveal its
/// owner. Of other paths, keeps only whether everyone may write there.
fn harmless(name: &str, value: &str, take: Take) -> String {
    let word = value.trim().trim_matches('"');
    let algorithm = |text: &str| {
        let text = text.trim_start_matches(['+', '-', '^']);
        let name = text.split_once('@').map_or(text, |(name, _)| name);
        let plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.*".contains(&byte);
        let domain = text.len() == name.len() || text.ends_with("@openssh.com");
        domain && name.len() <= 64 && name.bytes().all(plain)
    };
    match take {
        Take::List => {
            let known: Vec<&str> = word
                .split(',')
                .filter(|text| algorithm(text) || *text == "@openssh.com")
                .collect();
            known.join(",")
        }
        _ if word.is_empty() || word.eq_ignore_ascii_case("none") => word.to_owned(),
        _ if is_path(name) => match word {
            "/dev/null" => word.to_owned(),
            _ if word.starts_with("/tmp/") || word.starts_with("/var/tmp/") => {
                "/tmp/(left-out)".to_owned()
            }
            _ if word.starts_with("/etc/ssh/") && is_plain(word) => word.to_owned(),
            _ => "/(left-out)".to_owned(),
        },
        _ => kept_word(word),
    }
}

/// Redacts the paths of AuthorizedKeysFile: keeps patterns, and paths that contain no private names.
fn files(value: &str) -> String {
    let kept = |word: &&str| {
        let named = word.starts_with("/home/") && !word.contains('%');
        !named && word.len() <= 256 && is_plain(&word.replace('%', "-"))
    };
    let words: Vec<&str> = value.split_whitespace().filter(kept).collect();
    match words.is_empty() {
        true => "(left-out)".to_owned(),
        false => words.join(" "),
    }
}

/// Keeps words that the noted keywords define, numbers and times.
fn kept_word(word: &str) -> String {
    const WORDS: [&str; 25] = [
        "yes",
        "no",
        "true",
        "false",
        "ask",
        "accept-new",
        "off",
        "auto",
        "autoask",
        "prohibit-password",
        "without-password",
        "forced-commands-only",
        "shosts-only",
        "quiet",
        "silent",
        "fatal",
        "error",
        "info",
        "verbose",
        "debug",
        "debug1",
        "debug2",
        "debug3",
        "root",
        "nobody",
    ];
    let lower = word.to_ascii_lowercase();
    match is_time(word) || WORDS.contains(&lower.as_str()) {
        true => word.to_owned(),
        false => "withheld".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn lines_of_the_client_without_effect() {
        let of = |text: &str, end: &str| {
            let host = Recorded::new()
                .file(CLIENT, text)
                .file("/etc/ssh/a.conf", "Host *\n ForwardAgent no\n");
            let mut g = Gather::new(&host);
            client(&mut g);
            let mut keys = g.facts.map.keys();
            keys.any(|key| key.ends_with(end))
        };
        let yes = "Host *\n ForwardAgent yes\n";
        let after = format!("Include /etc/ssh/a.conf\n{yes}");
        assert!(of(&after, ".forwardagent_shadowed"));
        assert!(!of(yes, ".forwardagent_shadowed"));
        let unchecked = " StrictHostKeyChecking no\n";
        let own = format!("Host 127.0.0.1 localhost\n{unchecked}");
        assert!(of(&own, ".of_this_machine"));
        let web = format!("Host localhost web\n{unchecked}");
        assert!(!of(&web, ".of_this_machine"));
    }
}
