//! Collects the Dovecot version for which the configuration is written, and whether Dovecot accepts passwords without
//! TLS. Dovecot 2.4 renamed most settings and does not start with a 2.3 file (doc.dovecot.org, Upgrading Dovecot CE
//! from 2.3 to 2.4).

use crate::gather::Gather;
use crate::harmless::{is_pattern, kept_path};
use assay_config::effective::files::OfHost;
use assay_config::effective::{Program, included_files};
use assay_model::{FactKind, FactPlace, FactValue};
use std::path::{Path, PathBuf};

pub(crate) const MAIN: &str = "/etc/dovecot/dovecot.conf";
/// Directories of Dovecot's configuration files.
pub(crate) const DIRS: [&str; 2] = ["/etc/dovecot", "/etc/dovecot/conf.d"];
/// Limits of the parser: maximum depth of nested includes, and maximum number of files.
const DEEPEST: usize = 16;
const MOST: usize = 500;

/// Settings that permit passwords without TLS, as (name in 2.3, name in 2.4). The setting of 2.4 has the opposite
/// meaning.
pub(crate) const CLEARTEXT: [(&str, &str); 2] = [
    ("disable_plaintext_auth", "no"),
    ("auth_allow_cleartext", "yes"),
];

/// TLS settings of Dovecot that a check uses.
pub(crate) const TLS: [&str; 4] = [
    "ssl",
    "ssl_min_protocol",
    "ssl_protocols",
    "ssl_cipher_list",
];

/// Blocks that override the global settings for some connections (config-parser.c of 2.3.19).
pub(crate) const FILTERS: [&str; 4] = ["protocol", "local", "remote", "local_name"];

/// The setting with which a file for Dovecot 2.4 begins.
pub(crate) const VERSION: &str = "dovecot_config_version";

/// A line that takes effect, with its file.
pub(super) struct Line {
    pub(super) text: String,
    pub(super) place: FactPlace,
    /// Heads of the enclosing blocks, the outermost first.
    blocks: Vec<String>,
}

/// Settings that share the same nesting of filter blocks. Lines in blocks that are no filters are left out.
pub(super) struct Scope {
    /// `everywhere` for the global scope, or the names of the filters with a number.
    pub(super) name: String,
    heads: Vec<String>,
    /// Name, value and place of each setting. If several lines set the same name, only the last is kept.
    pub(super) own: Vec<(String, String, FactPlace)>,
}

impl Scope {
    /// Returns the effective value of a setting: the line of this scope, else the line outside of all filters.
    pub(super) fn value<'a>(&'a self, all: &'a [Self], key: &str) -> Option<&'a str> {
        let said = |scope: &'a Self| {
            let mut own = scope.own.iter();
            own.find(|(known, ..)| known == key)
                .map(|(_, value, _)| value.as_str())
        };
        let root = all.iter().find(|scope| scope.heads.is_empty());
        said(self).or_else(|| root.and_then(said))
    }

    /// Returns whether the scope applies only to connections from this machine.
    fn is_local(&self) -> bool {
        let own = |head: &String| {
            let mut words = head.split_whitespace();
            words.next() == Some("remote")
                && words
                    .next()
                    .is_some_and(|net| net.starts_with("127.") || net.starts_with("::1"))
        };
        self.heads.iter().any(own)
    }
}

/// Groups lines by the scope in which they apply.
fn split_scopes(lines: &[Line]) -> Vec<Scope> {
    let mut all: Vec<Scope> = vec![Scope {
        name: "everywhere".to_owned(),
        heads: Vec::new(),
        own: Vec::new(),
    }];
    for line in lines
        .iter()
        .filter(|line| line.blocks.iter().all(|head| is_filter(head)))
    {
        let Some((key, value)) = line.text.split_once('=') else {
            continue;
        };
        let at = all.iter().position(|scope| scope.heads == line.blocks);
        let at = at.unwrap_or_else(|| {
            all.push(Scope {
                name: format!("filter-{}", all.len()),
                heads: line.blocks.clone(),
                own: Vec::new(),
            });
            all.len() - 1
        });
        let value = value.trim().trim_matches(['"', '\'']);
        let (key, value) = (key.trim().to_owned(), value.to_owned());
        let own = &mut all[at].own;
        own.retain(|(known, ..)| *known != key);
        own.push((key, value, line.place.clone()));
    }
    all
}

fn is_filter(head: &str) -> bool {
    let name = head.split_whitespace().next().unwrap_or_default();
    FILTERS.contains(&name)
}

pub(crate) fn collect(g: &mut Gather<'_>) {
    match g.host.exists(Path::new(MAIN)) {
        Ok(true) => {}
        Ok(false) => return,
        Err(error) => return g.fault("dovecot.language", &error, FactKind::Configured, MAIN),
    }
    let lines = lines(g, "dovecot");
    if lines.is_empty() && g.read("dovecot.language", MAIN).is_none() {
        return;
    }
    let scopes = split_scopes(&lines);
    let everywhere = scopes.iter().find(|scope| scope.heads.is_empty());
    let version = everywhere.and_then(|scope| scope.own.iter().find(|(key, ..)| key == VERSION));
    let (language, at) = match version {
        Some((_, _, place)) => ("2.4", place.clone()),
        None => ("2.3", FactPlace::from(MAIN)),
    };
    g.facts
        .known("dovecot.language", language, FactKind::Configured, at);
    note_cleartext(g, &scopes);
    super::mail_tls::dovecot(g, &scopes);
}

/// Notes the scopes that accept passwords without TLS. With `ssl = required`, Dovecot rejects every login before TLS,
/// whatever the other settings are (`client_check_plaintext_auth` of 2.3.19's login-common). A missing certificate does
/// not change this.
fn note_cleartext(g: &mut Gather<'_>, scopes: &[Scope]) {
    // An unreadable file may set another value; the setting is then unknown.
    if let Some(fact) = g.facts.map.get("dovecot")
        && let FactValue::Unknown(why) = &fact.value
    {
        let (why, place) = (why.clone(), fact.place.clone());
        return g
            .facts
            .unknown("mail_tls", why, FactKind::Configured, place);
    }
    for scope in scopes {
        let mut lines = scope.own.iter().filter_map(|(key, value, place)| {
            let (_, open) = CLEARTEXT.iter().find(|(known, _)| known == key)?;
            Some((value == open, place))
        });
        let Some((open, place)) = lines.next_back() else {
            continue;
        };
        let required = scope.value(scopes, "ssl") == Some("required");
        let open = open && !required && !scope.is_local();
        let fact = format!("dovecot.scope.{}.cleartext", scope.name);
        if scope.heads.is_empty() {
            let fact = "dovecot.cleartext";
            g.facts
                .known(fact, open, FactKind::Configured, place.clone());
        }
        g.facts
            .known(fact, open, FactKind::Configured, place.clone());
        g.about(["dovecot.scope", &scope.name]);
    }
}

/// Returns all lines that take effect. Included files are inserted at the place of their include. Unreadable files are
/// noted under `key`.
pub(super) fn lines(g: &mut Gather<'_>, key: &str) -> Vec<Line> {
    let mut walk = Walk {
        lines: Vec::new(),
        open: Vec::new(),
        read: 0,
    };
    match g.host.exists(Path::new(MAIN)) {
        Ok(true) => walk.file(g, key, Path::new(MAIN), &[]),
        Ok(false) => {}
        Err(error) => g.fault(key, &error, FactKind::Configured, MAIN),
    }
    walk.lines
}

struct Walk {
    lines: Vec<Line>,
    /// Chain of files that include the current one, the outermost first.
    open: Vec<PathBuf>,
    read: usize,
}

impl Walk {
    fn file(&mut self, g: &mut Gather<'_>, key: &str, path: &Path, around: &[String]) {
        let Some(shown) = path.to_str() else {
            return;
        };
        if self.open.iter().any(|open| open == path) {
            return;
        }
        self.read += 1;
        if self.open.len() >= DEEPEST || self.read > MOST {
            let why = format!("more than {MOST} files, or deeper than {DEEPEST}");
            g.facts.unknown(key, why, FactKind::Configured, MAIN);
            return;
        }
        let Some(text) = g.read(key, shown) else {
            return;
        };
        self.open.push(path.to_owned());
        let mut blocks = around.to_vec();
        for (number, line) in text.lines().enumerate() {
            let said = line.trim();
            if said.is_empty() || said.starts_with('#') {
                continue;
            }
            if said == "}" {
                blocks.truncate(blocks.len().saturating_sub(1).max(around.len()));
            } else if let Some(head) = said.strip_suffix('{') {
                blocks.push(head.trim().to_owned());
            } else if let Some((pattern, wanted)) = parse_include(said) {
                let place = super::setting_lines::place(shown, number, line);
                self.include(g, key, path, (pattern, wanted), (&blocks, place));
            } else {
                self.lines.push(Line {
                    text: said.to_owned(),
                    place: super::setting_lines::place(shown, number, line),
                    blocks: blocks.clone(),
                });
            }
        }
        self.open.pop();
    }

    fn include(
        &mut self,
        g: &mut Gather<'_>,
        key: &str,
        from: &Path,
        (pattern, wanted): (&str, bool),
        (blocks, place): (&[String], FactPlace),
    ) {
        let main = Path::new(MAIN);
        // Files of the package elsewhere only name protocols; password databases are in files that
        // no check reads.
        let dir = from.parent().unwrap_or(main).join(pattern);
        let ours = dir.parent().and_then(Path::to_str);
        if !ours.is_some_and(|dir| DIRS.contains(&dir)) || !pattern.ends_with(".conf") {
            return;
        }
        match included_files(Program::Dovecot, main, from, pattern, &OfHost(g.host)) {
            Ok(found) => {
                if found.is_empty() && wanted {
                    let why =
                        format!("Dovecot does not start: nothing matches `!include {pattern}`");
                    g.facts.unknown(key, why, FactKind::Configured, place);
                    return;
                }
                let found = found.iter();
                for path in found.filter(|path| path.to_str().is_some_and(is_file)) {
                    self.file(g, key, path, blocks);
                }
            }
            Err(fault) => g
                .facts
                .unknown(key, fault.to_string(), FactKind::Configured, MAIN),
        }
    }
}

/// Returns the pattern of an `!include` or `!include_try`, and whether a missing file is an error.
fn parse_include(line: &str) -> Option<(&str, bool)> {
    let rest = line.strip_prefix("!include")?;
    let (rest, wanted) = match rest.strip_prefix("_try") {
        Some(rest) => (rest, false),
        None => (rest, true),
    };
    let pattern = rest.trim_start();
    (pattern.len() < rest.len()).then(|| (pattern.trim_end(), wanted))
}

/// Returns whether a path is a file of Dovecot.
pub(crate) fn is_file(path: &str) -> bool {
    path.rsplit_once('/').is_some_and(|(dir, name)| {
        DIRS.contains(&dir) && name.ends_with(".conf") && !name.starts_with('.')
    })
}

/// Redacts a line: keeps the start and end of blocks, includes, paths of certificates and keys, and the settings that a
/// check uses.
pub(crate) fn redact(line: &str) -> String {
    let line = line.trim();
    let known = || {
        let said = line.split_once('=');
        said.is_some_and(|(name, value)| is_kept(name.trim(), value.trim()))
    };
    match line {
        _ if line.starts_with('#') => String::new(),
        "}" => line.to_owned(),
        _ if line.ends_with('{') => redact_head(line.trim_end_matches('{').trim()),
        _ => match parse_include(line) {
            Some((pattern, _)) if is_pattern(pattern) => line.to_owned(),
            Some(_) => String::new(),
            None if known() => line.to_owned(),
            None => match certificate(line) {
                Some((_, path)) => {
                    let (name, _) = line.split_once('=').unwrap_or_default();
                    format!("{}= <{path}", name)
                }
                None => String::new(),
            },
        },
    }
}

/// Redacts the head of a block: keeps filters. Of a network, keeps only whether it is this machine.
fn redact_head(head: &str) -> String {
    let mut words = head.split_whitespace();
    let (name, rest) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let local = ["127.0.0.1", "127.0.0.0/8", "::1"].contains(&rest);
    let protocol = name == "protocol"
        && rest
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    match FILTERS.contains(&name) {
        true if local || protocol => format!("{name} {rest} {{"),
        true => format!("{name} left-out {{"),
        false => "block {".to_owned(),
    }
}

fn is_kept(name: &str, value: &str) -> bool {
    let value = value.trim_matches(['"', '\'']);
    let word = matches!(value, "yes" | "no");
    let number = value.len() <= 12
        && value
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let tls = |byte: u8| byte.is_ascii_alphanumeric() || b":!+@=_., -".contains(&byte);
    match name {
        "ssl" => word || value == "required",
        _ if TLS.contains(&name) => (1..=512).contains(&value.len()) && value.bytes().all(tls),
        _ if CLEARTEXT.iter().any(|(known, _)| *known == name) => word,
        _ => name == VERSION && number,
    }
}

/// Returns the path of a certificate or key in a line, and whether it is a certificate.
pub(super) fn certificate(line: &str) -> Option<(bool, &str)> {
    let (name, value) = line.split_once('=')?;
    let is_key = match name.trim() {
        "ssl_cert" | "ssl_server_cert_file" => false,
        "ssl_key" | "ssl_server_key_file" => true,
        _ => return None,
    };
    let value = value.trim().trim_matches(['"', '\'']);
    let path = value.trim_start_matches('<').trim();
    // Without `<`, 2.3 takes the text itself for the certificate.
    let named = value.starts_with('<') || path.starts_with('/');
    named.then(|| (is_key, kept_path(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_certificates() {
        assert_eq!(
            certificate("ssl_cert = </etc/x.pem"),
            Some((false, "/etc/x.pem"))
        );
        assert_eq!(
            certificate("ssl_server_key_file = /etc/x.key"),
            Some((true, "/etc/x.key"))
        );
        assert_eq!(certificate("#ssl_cert = </etc/x.pem"), None);
        assert_eq!(certificate("ssl_cert = literal text"), None);
    }
}
