//! Finds broken algorithms that the system-wide configuration of the ssh client offers to every server.

use super::Misuses;
use crate::collectors::services::ssh_algorithms::{WEAK, list_offered};
use crate::gather::Gather;
use assay_config::effective::files::OfHost;
use assay_config::effective::{Effective, Program, ScopeId, Setting, read_effective};
use std::path::Path;

const FILE: &str = "/etc/ssh/ssh_config";

/// Notes each algorithm list that applies to all servers. Lists in a block for certain hosts are ignored, because they
/// are usually meant for an old device.
pub(super) fn collect(g: &mut Gather<'_>) {
    let Ok(all) = read_effective(Program::Ssh, Path::new(FILE), &OfHost(g.host)) else {
        return;
    };
    let mut found = Misuses::default();
    for (id, scope) in all.scopes() {
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
    found.note(g, "ssh.misuse");
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
            assert_eq!(
                found(&[(FILE, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
    }
}
