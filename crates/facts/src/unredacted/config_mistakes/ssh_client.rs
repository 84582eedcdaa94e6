//! Finds broken algorithms that the system-wide configuration of the ssh client offers to every server.

use super::super::lines_of_files::read;
use super::Misuses;
use super::ssh_traps::is_only_negated;
use crate::collectors::services::ssh_algorithms::{WEAK, list_offered};
use crate::gather::Gather;
use assay_config::effective::files::OfHost;
use assay_config::effective::{Effective, Program, ScopeId, Setting, read_effective};
use std::path::Path;

const FILE: &str = "/etc/ssh/ssh_config";
const KNOWN_HOSTS: [&str; 2] = ["/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"];

/// Notes each algorithm list that applies to all servers. Lists in a block for certain hosts are ignored, because they
/// are usually meant for an old device.
pub(super) fn collect(g: &mut Gather<'_>) {
    let mut found = Misuses::default();
    note_authorities(g, &mut found);
    let Ok(all) = read_effective(Program::Ssh, Path::new(FILE), &OfHost(g.host)) else {
        return found.note(g, "ssh.misuse");
    };
    for (id, scope) in all.scopes() {
        if let [kind, patterns @ ..] = &scope.head[..]
            && kind.eq_ignore_ascii_case("host")
        {
            let never = is_only_negated(patterns.iter().map(String::as_str));
            found.add("never_matches", never, &scope.place);
        }
        let everywhere = id == ScopeId::ROOT || scope.head.join(" ").eq_ignore_ascii_case("host *");
        if !everywhere {
            continue;
        }
        for (keyword, weak) in WEAK {
            let own = all
                .get(id, keyword)
                .into_iter()
                .find(|said| said.scope == id);
            if let Some(said) = own {
                found.add(
                    "weak_everywhere",
                    !list_offered(said, weak).is_empty(),
                    &said.place,
                );
            }
        }
    }
    note_displays(g, &all, &mut found);
    for said in all
        .settings()
        .iter()
        .filter(|said| said.key == "gatewayports")
    {
        let head = all.scope(said.scope).head.join(" ");
        if said.scope == ScopeId::ROOT || head.eq_ignore_ascii_case("host *") {
            let open = said
                .word()
                .is_some_and(|word| word.eq_ignore_ascii_case("yes"));
            found.add("forwards_for_all", open, &said.place);
        }
    }
    found.note(g, "ssh.misuse");
}

/// Notes certificate authorities that may vouch for every host of the world (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT).
fn note_authorities(g: &mut Gather<'_>, found: &mut Misuses) {
    for path in KNOWN_HOSTS {
        for line in read(g, "ssh.misuse", path) {
            let words: Vec<&str> = line.text.split_whitespace().collect();
            let ["@cert-authority", hosts, ..] = words[..] else {
                continue;
            };
            let every = hosts.split(',').any(|one| one == "*");
            found.add("authority_of_all_hosts", every, line.place);
        }
    }
}

/// Notes displays that every server may control: ForwardX11 for all servers, with full rights. Debian's default of
/// ForwardX11Trusted is yes (ssh_config(5) of its package), that of OpenSSH is no.
fn note_displays(g: &Gather<'_>, all: &Effective, found: &mut Misuses) {
    let everywhere = |id: ScopeId| {
        let head = all.scope(id).head.join(" ").to_ascii_lowercase();
        id == ScopeId::ROOT || ["host *", "match all"].contains(&head.as_str())
    };
    let first = |key: &str| {
        let mut lines = all.settings().iter();
        lines.find(|said| said.key == key && everywhere(said.scope))
    };
    let is = |said: &Setting, word: &str| {
        said.word()
            .is_some_and(|one| one.eq_ignore_ascii_case(word))
    };
    let Some(said) = first("forwardx11") else {
        return;
    };
    let release = g
        .host
        .read_text(Path::new("/etc/os-release"))
        .unwrap_or_default();
    let trusted = match first("forwardx11trusted") {
        Some(said) => is(said, "yes"),
        None => release.contains("debian"),
    };
    found.add("displays_trusted", is(said, "yes") && trusted, &said.place);
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn blocks_and_their_near_misses() {
        for (text, expected) in [
            ("Ciphers +3des-cbc\n", "weak_everywhere=true"),
            (
                "Host *\n    KexAlgorithms +diffie-hellman-group1-sha1\n",
                "weak_everywhere=true",
            ),
            ("Host *\n    Ciphers -3des-cbc\n", "weak_everywhere=false"),
            (
                "ForwardX11 yes\nForwardX11Trusted yes\n",
                "displays_trusted=true",
            ),
            (
                "Host *\n    ForwardX11 yes\n    ForwardX11Trusted no\n",
                "displays_trusted=false",
            ),
            (
                "Host box\n    ForwardX11 yes\n    ForwardX11Trusted yes\n",
                "",
            ),
            (
                "Host switch\n    KexAlgorithms +diffie-hellman-group1-sha1\n",
                "",
            ),
        ] {
            let all = found(&[(FILE, text)], collect);
            let own: Vec<&str> = all
                .iter()
                .filter(|one| !one.starts_with("never_matches"))
                .map(String::as_str)
                .collect();
            assert_eq!(own.join(" "), expected, "{text}");
        }
    }

    #[test]
    fn blocks_that_never_apply_and_authorities_of_all_hosts() {
        for (path, text, expected) in [
            (FILE, "Host !a !b\n User x\n", "never_matches=true"),
            (FILE, "Host * !b\n User x\n", "never_matches=false"),
            (
                KNOWN_HOSTS[0],
                "@cert-authority * ssh-ed25519 AAAA\n",
                "authority_of_all_hosts=true",
            ),
            (
                KNOWN_HOSTS[0],
                "@cert-authority *.example.com ssh-ed25519 AAAA\n",
                "authority_of_all_hosts=false",
            ),
            (KNOWN_HOSTS[0], "#@cert-authority * ssh-ed25519 AAAA\n", ""),
        ] {
            assert_eq!(
                found(&[(path, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
    }
}
