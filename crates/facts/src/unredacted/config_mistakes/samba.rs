//! Finds mistakes in Samba's configuration: accounts that act as root, logins with a wrong password that become guest
//! logins, and an unencrypted connection to the LDAP server.

use super::Misuses;
use crate::collectors::services::samba::MAIN;
use crate::gather::Gather;
use assay_config::effective::files::OfHost;
use assay_config::effective::{Effective, Program, ScopeId, Setting, read_effective};
use std::path::Path;

/// Groups whose members are administrators already, so that admin rights in Samba give them nothing new.
const ADMINISTRATORS: [&str; 7] = [
    "root",
    "admin",
    "wheel",
    "sudo",
    "adm",
    "administrator",
    "domain adm",
];

pub(super) fn collect(g: &mut Gather<'_>) {
    let Ok(all) = read_effective(Program::Samba, Path::new(MAIN), &OfHost(g.host)) else {
        return;
    };
    let mut found = Misuses::default();
    note_server(&all, &mut found);
    for (id, _) in all.scopes() {
        note_share(&all, id, &mut found);
    }
    found.note(g, "samba.misuse");
}

fn low(said: &Setting) -> String {
    let words: Vec<String> = said
        .text()
        .split_whitespace()
        .map(str::to_lowercase)
        .collect();
    words.join(" ")
}

fn note_server(all: &Effective, found: &mut Misuses) {
    if let Some(said) = all.value(ScopeId::ROOT, "maptoguest") {
        let wrong = matches!(
            low(said).as_str(),
            "bad password" | "badpassword" | "bad passwd"
        );
        found.add("wrong_password_is_guest", wrong, &said.place);
    }
    let (Some(store), Some(said)) = (
        all.value(ScopeId::ROOT, "passdbbackend"),
        all.value(ScopeId::ROOT, "ldapssl"),
    ) else {
        return;
    };
    let store = low(store);
    let Some((_, server)) = store.split_once("ldapsam:") else {
        return;
    };
    let server = server.trim_matches(['"', ' ']);
    let near = ["ldapi:", "ldaps:", "ldap://localhost", "ldap://127."];
    let clear = matches!(low(said).as_str(), "off" | "no")
        && !near.iter().any(|one| server.starts_with(one));
    found.add("directory_in_the_clear", clear, &said.place);
}

/// Notes the mistakes of a share. Settings of `[global]` apply to each share.
fn note_share(all: &Effective, id: ScopeId, found: &mut Misuses) {
    let own = |key: &str| all.value(id, key).filter(|said| said.scope == id);
    if let Some(said) = own("adminusers") {
        let text = low(said);
        let all_of_group = text.split(',').flat_map(names).any(|name| {
            let group = name.trim_start_matches(['@', '+', '&']);
            let of_group = group.len() < name.len();
            of_group
                && !ADMINISTRATORS
                    .iter()
                    .any(|known| group.trim_start_matches('"').contains(known))
        });
        found.add("group_is_root", all_of_group, &said.place);
    }
    if let Some(said) = own("strictsync") {
        let ignored = matches!(low(said).as_str(), "no" | "false" | "0" | "off");
        found.add(
            "flushes_ignored",
            ignored && is_writable(all, id),
            &said.place,
        );
    }
    if let Some(said) = own("forceuser") {
        let root = low(said) == "root";
        found.add(
            "writers_are_root",
            root && is_writable(all, id),
            &said.place,
        );
    }
}

/// Splits a list of names. A name in quotation marks may contain blanks.
fn names(list: &str) -> Vec<String> {
    match list.contains('"') {
        true => vec![list.trim().to_owned()],
        false => list.split_whitespace().map(str::to_owned).collect(),
    }
}

fn is_writable(all: &Effective, id: ScopeId) -> bool {
    let yes = |said: &Setting| matches!(low(said).as_str(), "yes" | "true" | "1" | "on");
    let mut said: Vec<(&Setting, bool)> = Vec::new();
    for (key, inverted) in [
        ("readonly", true),
        ("writable", false),
        ("writeable", false),
        ("writeok", false),
    ] {
        said.extend(all.value(id, key).map(|one| (one, inverted)));
    }
    said.iter().any(|(one, inverted)| yes(one) != *inverted)
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn shares_and_their_near_misses() {
        for (text, expected) in [
            (
                "[global]\nmap to guest = Bad Password\n",
                "wrong_password_is_guest=true",
            ),
            (
                "[global]\nmap to guest = Bad User\n",
                "wrong_password_is_guest=false",
            ),
            ("[a]\nadmin users = @users\n", "group_is_root=true"),
            ("[a]\nadmin users = bob, @wheel\n", "group_is_root=false"),
            (
                "[a]\nadmin users = @\"Domain Admins\"\n",
                "group_is_root=false",
            ),
            (
                "[a]\nforce user = root\nread only = no\n",
                "writers_are_root=true",
            ),
            ("[a]\nforce user = root\n", "writers_are_root=false"),
            (
                "[a]\nstrictsync = false\nread only = no\n",
                "flushes_ignored=true",
            ),
            ("[a]\nstrict sync = no\n", "flushes_ignored=false"),
            (
                "[a]\nforce user = bob\nwritable = yes\n",
                "writers_are_root=false",
            ),
            (
                "[global]\npassdb backend = ldapsam:ldap://a.example\nldap ssl = off\n",
                "directory_in_the_clear=true",
            ),
            (
                "[global]\npassdb backend = ldapsam:ldap://127.0.0.1\nldap ssl = off\n",
                "directory_in_the_clear=false",
            ),
            ("[global]\npassdb backend = tdbsam\nldap ssl = off\n", ""),
        ] {
            assert_eq!(
                found(&[(MAIN, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
    }
}
