//! Finds broken algorithms that the system-wide configuration of the ssh client offers to every server.

use super::Misuses;
use crate::collectors::services::ssh_algorithms::{WEAK, list_offered};
use crate::gather::Gather;
use assay_config::effective::files::OfHost;
use assay_config::effective::{Program, ScopeId, read_effective};
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
    found.note(g, "ssh.misuse");
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
