//! Collects settings of the Samba server: global settings, and settings of each share that guests may enter. If a file
//! is unreadable, `samba` and the settings that this file may contain are unknown.

use super::packages;
use crate::gather::Gather;
use assay_config::effective::{Effective, Program, ScopeId, Setting};
use assay_model::{FactKind, FactPlace, secrets};
use std::collections::BTreeMap;

pub(crate) const MAIN: &str = "/etc/samba/smb.conf";
/// Directory of Samba's other configuration files.
pub(crate) const DIR: &str = "/etc/samba/";
/// Name patterns of the files, for the shell collector.
pub(crate) const FILES: &[&str] = &["*conf*", "*/*conf*"];

/// Global settings of smb.conf(5), as (name in lower case without blanks, name in the fact).
const OF_SERVER: [(&str, &str); 17] = [
    ("serversigning", "server_signing"),
    ("clientsigning", "client_signing"),
    ("serverminprotocol", "server_min_protocol"),
    ("servermaxprotocol", "server_max_protocol"),
    ("clientschannel", "client_schannel"),
    ("serverschannel", "server_schannel"),
    ("serverschannelrequireseal", "server_schannel_require_seal"),
    ("serverrole", "server_role"),
    ("domainlogons", "domain_logons"),
    ("security", "security"),
    ("lanmanauth", "lanman_auth"),
    ("ntlmauth", "ntlm_auth"),
    ("nullpasswords", "null_passwords"),
    ("encryptpasswords", "encrypt_passwords"),
    ("maptoguest", "map_to_guest"),
    ("unixextensions", "unix_extensions"),
    ("allowinsecurewidelinks", "allow_insecure_wide_links"),
];
/// Names of all settings whose values are words: the global settings, their synonyms, and settings of shares.
pub(crate) const NAMES: [&str; 32] = [
    "serversigning",
    "clientsigning",
    "serverminprotocol",
    "minprotocol",
    "servermaxprotocol",
    "maxprotocol",
    "protocol",
    "clientschannel",
    "serverschannel",
    "serverschannelrequireseal",
    "serverrole",
    "domainlogons",
    "security",
    "lanmanauth",
    "ntlmauth",
    "nullpasswords",
    "encryptpasswords",
    "maptoguest",
    "unixextensions",
    "allowinsecurewidelinks",
    "registryshares",
    "configbackend",
    "guestok",
    "public",
    "readonly",
    "writable",
    "writeable",
    "writeok",
    "guestonly",
    "onlyguest",
    "widelinks",
    "available",
];
/// Values of these settings that are kept, in lower case and with `_` for blanks.
pub(crate) const VALUES: [&str; 69] = [
    "yes",
    "no",
    "true",
    "false",
    "on",
    "off",
    "0",
    "1",
    "auto",
    "default",
    "mandatory",
    "disabled",
    "enabled",
    "required",
    "force",
    "forced",
    "enforced",
    "desired",
    "if_required",
    "core",
    "coreplus",
    "core+",
    "lanman1",
    "lanman2",
    "nt1",
    "smb2",
    "smb2_02",
    "smb2_10",
    "smb2_22",
    "smb2_24",
    "smb3",
    "smb3_00",
    "smb3_02",
    "smb3_10",
    "smb3_11",
    "user",
    "domain",
    "ads",
    "share",
    "server",
    "never",
    "bad_user",
    "bad_password",
    "bad_uid",
    "file",
    "registry",
    "standalone_server",
    "standalone",
    "member_server",
    "member",
    "classic_primary_domain_controller",
    "classic_backup_domain_controller",
    "active_directory_domain_controller",
    "domain_controller",
    "dc",
    "ipa_domain_controller",
    "primary_classic_domain_controller",
    "backup_classic_domain_controller",
    "pdc",
    "bdc",
    "netbios_backup_domain_controller",
    "bad_passwd",
    "baduser",
    "badpassword",
    "baduid",
    "tdb",
    "ntlmv1-permitted",
    "ntlmv2-only",
    "mschapv2-and-ntlmv2-only",
];
/// Settings whose value is the name of an account; only `root` is kept.
pub(crate) const ACCOUNTS: [&str; 2] = ["forceuser", "guestaccount"];
/// System directories that should not be shared with guests.
pub(crate) const SYSTEM: [&str; 14] = [
    "/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/proc", "/root", "/sbin", "/sys",
    "/usr", "/usr/bin", "/var",
];
/// Section names that are the same on every machine.
pub(crate) const SECTIONS: [&str; 6] =
    ["homes", "printers", "print$", "netlogon", "sysvol", "ipc$"];
/// Replaces a value that may be private.
const LEFT_OUT: &str = "(left-out)";

/// First version of each release line that has `server schannel require seal`, which is on by default.
const SEALED: [(u32, u32, u32); 3] = [(4, 15, 13), (4, 16, 8), (4, 17, 4)];
/// First version that refuses SMB 1 by default (release notes of Samba 4.11).
const WITHOUT_SMB_1: (u32, u32, u32) = (4, 11, 0);

pub(crate) fn collect(g: &mut Gather<'_>) {
    let Some(all) = g.configuration("samba", Program::Samba, MAIN) else {
        return;
    };
    for (name, fact) in OF_SERVER {
        if let Some(said) = effective_setting(&all, ScopeId::ROOT, name) {
            note_word(g, &format!("samba.{fact}"), said);
        }
    }
    note_role(g, &all);
    note_version(g);
    note_wide_links(g, &all);
    let guests = note_shares(g, &all);
    note_guests(g, &all, guests);
    if let Some(said) = effective_setting(&all, ScopeId::ROOT, "registryshares")
        && is_true(said)
    {
        let why = "shares of Samba's registry are not read here";
        g.facts
            .unknown("samba.share", why, FactKind::Configured, &said.place);
    }
}

/// Returns the line that sets a setting in a scope. `None` if there is none, or if an unreadable file may set it.
fn effective_setting<'a>(all: &'a Effective, scope: ScopeId, name: &str) -> Option<&'a Setting> {
    all.certain(scope, name).ok().flatten()
}

fn note_word(g: &mut Gather<'_>, fact: &str, said: &Setting) {
    let words: Vec<String> = said.text().split_whitespace().map(str::to_owned).collect();
    let value = words.join(" ").to_ascii_lowercase();
    let place = FactPlace::from(&said.place);
    match value == LEFT_OUT {
        true => {
            let why = "no value that is understood here";
            g.facts.unknown(fact, why, FactKind::Configured, place);
        }
        false => g.facts.known(fact, value, FactKind::Configured, place),
    }
}

fn is_true(said: &Setting) -> bool {
    let value = said.text().to_ascii_lowercase();
    ["yes", "true", "on", "1"].contains(&value.as_str())
}

/// Notes `samba.role`: `dc`, `member` or `standalone`.
fn note_role(g: &mut Gather<'_>, all: &Effective) {
    let ask = |name| all.certain(ScopeId::ROOT, name);
    let (Ok(role), Ok(logons), Ok(security)) =
        (ask("serverrole"), ask("domainlogons"), ask("security"))
    else {
        return;
    };
    let text = |said: Option<&Setting>| said.map(|said| said.text().to_ascii_lowercase());
    let named = text(role).unwrap_or_else(|| "auto".to_owned());
    let domain = text(security).is_some_and(|word| ["domain", "ads"].contains(&word.as_str()));
    let (value, line) = match named.as_str() {
        LEFT_OUT => return,
        name if name.contains("controller") || ["dc", "pdc", "bdc"].contains(&name) => ("dc", role),
        name if name.starts_with("member") => ("member", role),
        name if name.starts_with("standalone") => ("standalone", role),
        _ if logons.is_some_and(is_true) => ("dc", logons),
        _ if domain => ("member", security),
        _ => ("standalone", role),
    };
    let (kind, place) = match line {
        Some(line) => (FactKind::Configured, FactPlace::from(&line.place)),
        None => (
            FactKind::Default,
            FactPlace::from("smb.conf(5), server role"),
        ),
    };
    g.facts.known("samba.role", value, kind, place);
}

/// Notes the defaults that depend on the version. If the version is unknown, it is also unknown whether the channel is
/// sealed, and the default protocols are left out.
fn note_version(g: &mut Gather<'_>) {
    let (sealed, smb_1) = ("samba.seals_by_default", "samba.smb_1_by_default");
    match packages::read_version(g, "samba") {
        Ok(Some((version, place))) => {
            let version = packages::numbers(&version);
            let facts = [
                (sealed, seals_by_default(version)),
                (smb_1, version < WITHOUT_SMB_1),
            ];
            for (fact, decided) in facts {
                g.facts
                    .known(fact, decided, FactKind::Default, place.clone());
            }
        }
        Err(why) => {
            for fact in [sealed, smb_1] {
                g.facts
                    .unknown(fact, why.clone(), FactKind::Default, packages::STATUS);
            }
        }
        Ok(None) => {
            let why = "the version of Samba is not known";
            g.facts
                .unknown(sealed, why, FactKind::Default, packages::STATUS);
        }
    }
}

fn seals_by_default(version: (u32, u32, u32)) -> bool {
    let same = |(major, minor, _): &&(u32, u32, u32)| (*major, *minor) == (version.0, version.1);
    match SEALED.iter().find(same) {
        Some(since) => version >= *since,
        None => version > SEALED[2],
    }
}

/// Notes whether symlinks may lead out of a share, with the first line that permits this.
fn note_wide_links(g: &mut Gather<'_>, all: &Effective) {
    let scopes = all.scopes().map(|(id, _)| id);
    let wide = scopes
        .filter_map(|id| effective_setting(all, id, "widelinks").filter(|said| is_true(said)));
    if let Some(said) = wide.min_by_key(|said| (said.scope != ScopeId::ROOT, said.place.line)) {
        let place = FactPlace::from(&said.place);
        g.facts
            .known("samba.wide_links", true, FactKind::Configured, place);
    }
}

/// Notes the shares. Returns the first line that permits guests to enter a share.
fn note_shares<'a>(g: &mut Gather<'_>, all: &'a Effective) -> Option<&'a Setting> {
    let mut guests = None;
    let mut files: BTreeMap<&std::path::Path, usize> = BTreeMap::new();
    for (number, file) in all.files.iter().enumerate() {
        files.entry(file).or_insert(number);
    }
    for (id, scope) in all.scopes().filter(|(id, _)| *id != ScopeId::ROOT) {
        // Names of shares are removed and numbered within each file.
        let said = all.settings().iter().filter(|said| said.scope == id);
        let mut by_file: BTreeMap<usize, Vec<&Setting>> = BTreeMap::new();
        for said in said {
            let number = files.get(&*said.place.path).copied().unwrap_or_default();
            by_file.entry(number).or_default().push(said);
        }
        for (number, said) in by_file {
            let name = match number {
                0 => scope.head[0].clone(),
                number => format!("{}-of-file-{number}", scope.head[0]),
            };
            let share = Share { all, said };
            guests = guests.or(share.note(g, &name));
        }
    }
    guests
}

/// A share with its lines.
struct Share<'a> {
    all: &'a Effective,
    said: Vec<&'a Setting>,
}

impl<'a> Share<'a> {
    /// Returns the effective line of a setting: the line of the share, else the line of `[global]`.
    fn find(&self, name: &str) -> Option<&'a Setting> {
        let own = self.said.iter().rev().find(|said| said.key == name);
        own.copied()
            .or_else(|| effective_setting(self.all, ScopeId::ROOT, name))
    }

    /// Notes the facts of the share. Returns the line that permits guests to enter.
    fn note(&self, g: &mut Gather<'_>, name: &str) -> Option<&'a Setting> {
        let subject = format!("samba.share.{name}");
        let switched_off = self.find("available").is_some_and(|said| !is_true(said));
        if switched_off {
            return None;
        }
        // A section of another file, or one that does not exist.
        if let Some(said) = self.find("copy").filter(|said| said.text() == LEFT_OUT) {
            let why = "what it copies from another share is not followed here";
            g.facts
                .unknown(&*subject, why, FactKind::Configured, &said.place);
        }
        let mut switch =
            |property: &str, said: Option<&Setting>, holds: &dyn Fn(&Setting) -> bool| {
                let fact = format!("{subject}.{property}");
                match said {
                    Some(said) => {
                        let place = FactPlace::from(&said.place);
                        g.facts
                            .known(fact, holds(said), FactKind::Configured, place);
                    }
                    None => g.facts.known(fact, false, FactKind::Default, "smb.conf(5)"),
                }
            };
        let guest = self.find("guestok");
        // A list of users keeps guests out, unless the account of guests is one that may be in it.
        let account = self.find("guestaccount");
        let listed = self
            .find("validusers")
            .is_some_and(|said| !said.text().is_empty());
        let kept_out = listed && account.is_none_or(|said| said.text() == "nobody");
        let enters = |said: &Setting| is_true(said) && !kept_out;
        switch("guest", guest, &enters);
        switch("writable", self.find("readonly"), &|said| !is_true(said));
        let root = |said: &Setting| said.text() == "root";
        switch("as_root", self.find("forceuser"), &root);
        if let Some(path) = self.find("path") {
            let value = match path.text() {
                text if text == LEFT_OUT => "elsewhere".to_owned(),
                text => text,
            };
            let place = FactPlace::from(&path.place);
            g.facts.known(
                format!("{subject}.path"),
                value,
                FactKind::Configured,
                place,
            );
        }
        g.about(["samba.share", name]);
        guest.filter(|said| enters(said))
    }
}

/// Notes whether guests can log in, and whether guests run as root.
fn note_guests(g: &mut Gather<'_>, all: &Effective, by_share: Option<&Setting>) {
    let mapped = effective_setting(all, ScopeId::ROOT, "maptoguest");
    let mapped = mapped.filter(|said| !said.text().eq_ignore_ascii_case("never"));
    let account = effective_setting(all, ScopeId::ROOT, "guestaccount");
    if let Some(line) = by_share.or(mapped) {
        let place = FactPlace::from(&line.place);
        g.facts
            .known("samba.guests", true, FactKind::Configured, place);
    }
    if let Some(account) = account {
        let root = account.text() == "root";
        let place = FactPlace::from(&account.place);
        g.facts
            .known("samba.guest_is_root", root, FactKind::Configured, place);
    }
}

/// Returns whether a file belongs to Samba.
pub(crate) fn may_be(path: &str) -> bool {
    let name = path.strip_prefix(DIR).filter(|rest| !rest.contains("/."));
    name.is_some_and(|name| {
        name.split('/').count() <= 2
            && name
                .rsplit('/')
                .next()
                .is_some_and(|name| name.contains("conf"))
    })
}

/// Redacts smb.conf: keeps sections without names of shares, and settings with harmless values. A continued line is
/// joined into its first line.
pub(crate) fn redact(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let mut out: Vec<String> = Vec::new();
    let mut sections: Vec<String> = Vec::new();
    // Text of a continued line so far, and its first line.
    let mut open: Option<(usize, String)> = None;
    for (at, line) in text.split('\n').enumerate() {
        out.push(String::new());
        let line = line.trim_end_matches(BLANK);
        if open.is_none() && line.trim_start_matches(BLANK).starts_with(['#', ';']) {
            continue;
        }
        let (body, goes_on) = match line.strip_suffix('\\') {
            Some(body) => (body, true),
            None => (line, false),
        };
        let (begin, mut said) = open.take().unwrap_or((at, String::new()));
        said.push_str(body);
        match goes_on {
            true => open = Some((begin, said)),
            false => out[begin] = clean_line(&said, &mut sections),
        }
    }
    if let Some((begin, said)) = open {
        out[begin] = clean_line(&said, &mut sections);
    }
    out.join("\n").into_bytes()
}

const BLANK: [char; 3] = [' ', '\t', '\r'];

fn clean_line(line: &str, sections: &mut Vec<String>) -> String {
    let bare = line.trim_matches(BLANK);
    if let Some(rest) = bare.strip_prefix('[') {
        let Some((name, _)) = rest.split_once(']') else {
            return String::new();
        };
        return format!("[{}]", clean_section(name, sections));
    }
    let Some((name, value)) = line.split_once('=') else {
        return String::new();
    };
    let key: String = name.split(BLANK).collect::<String>().to_ascii_lowercase();
    let value = value.trim_matches(BLANK);
    let word = value.split(BLANK).filter(|word| !word.is_empty());
    let word = word.collect::<Vec<_>>().join("_").to_ascii_lowercase();
    let keep = match key.as_str() {
        // Elsewhere a path may contain private names.
        "include" | "configfile" => secrets::is_plain(value) && value.starts_with("/etc/samba/"),
        "path" | "directory" => SYSTEM.contains(&value),
        "copy" => {
            let words: Vec<&str> = value.split_whitespace().collect();
            let other = words.join(" ").to_ascii_lowercase();
            let known = SECTIONS.contains(&other.as_str()) || sections.contains(&other);
            if known {
                return format!(
                    "{} = {}",
                    name.trim_matches(BLANK),
                    clean_section(&other, sections)
                );
            }
            false
        }
        // Who may enter is private; only whether somebody is named is kept.
        "validusers" => value.is_empty(),
        key if ACCOUNTS.contains(&key) => ["root", "nobody"].contains(&value),
        key if NAMES.contains(&key) => VALUES.contains(&word.as_str()),
        _ => return String::new(),
    };
    match keep {
        true => line.to_owned(),
        false => format!("{} = {LEFT_OUT}", name.trim_matches(BLANK)),
    }
}

/// Returns the redacted name of a section: share names are replaced by numbers.
fn clean_section(name: &str, sections: &mut Vec<String>) -> String {
    let words = name.split(BLANK).filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join(" ").to_ascii_lowercase();
    match name.as_str() {
        "global" | "globals" => return "global".to_owned(),
        known if SECTIONS.contains(&known) => return name,
        _ => {}
    }
    let at = sections.iter().position(|known| *known == name);
    let at = at.unwrap_or_else(|| {
        sections.push(name);
        sections.len() - 1
    });
    format!("share-{}", at + 1)
}

#[cfg(test)]
mod tests;
