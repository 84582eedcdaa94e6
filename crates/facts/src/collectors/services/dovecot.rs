//! Dovecot: in which version's language its files are written, and whether it takes passwords without
//! TLS. 2.4 has other names for most settings and does not start with a file of 2.3
//! (doc.dovecot.org, Upgrading Dovecot CE from 2.3 to 2.4).

use crate::gather::Gather;
use crate::harmless::{is_path, is_pattern};
use assay_conf::effective::files::OfHost;
use assay_conf::effective::{Program, included};
use assay_model::{FactKind, Place};
use std::path::{Path, PathBuf};

pub(crate) const MAIN: &str = "/etc/dovecot/dovecot.conf";
/// Where its files lie.
pub(crate) const DIRS: [&str; 2] = ["/etc/dovecot", "/etc/dovecot/conf.d"];
/// As deep as anybody's files include each other, and as many as anybody has.
const DEEPEST: usize = 16;
const MOST: usize = 500;

/// Settings whose value is a word, at the top level: 2.3's name and 2.4's for the same, which means the
/// contrary.
pub(crate) const CLEARTEXT: [(&str, &str); 2] = [
    ("disable_plaintext_auth", "no"),
    ("auth_allow_cleartext", "yes"),
];

/// The first setting of a file for 2.4.
pub(crate) const VERSION: &str = "dovecot_config_version";

/// A line that counts, of whatever file.
pub(super) struct Line {
    pub(super) text: String,
    pub(super) place: Place,
    /// In how many blocks it stands.
    depth: usize,
}

pub(crate) fn collect(g: &mut Gather<'_>) {
    match g.host.exists(Path::new(MAIN)) {
        Ok(true) => {}
        Ok(false) => return,
        Err(error) => return g.fault("dovecot.language", &error, FactKind::Configured, MAIN),
    }
    let lines = lines(g, "dovecot.cleartext");
    if lines.is_empty() && g.read("dovecot.language", MAIN).is_none() {
        return;
    }
    let mut language = ("2.3", Place::from(MAIN));
    let mut cleartext = None;
    for line in lines.into_iter().filter(|line| line.depth == 0) {
        let Some((key, value)) = line.text.split_once('=') else {
            continue;
        };
        let (key, value) = (key.trim(), value.trim());
        if key == VERSION {
            language = ("2.4", line.place);
        } else if let Some((_, open)) = CLEARTEXT.iter().find(|(known, _)| *known == key) {
            // The last one counts (config-parser.c of 2.3.19).
            cleartext = Some((value == *open, line.place));
        }
    }
    let (value, at) = language;
    g.facts
        .known("dovecot.language", value, FactKind::Configured, at);
    // What could not be read may say something else.
    if let Some((open, at)) = cleartext
        && !g.facts.map.contains_key("dovecot.cleartext")
    {
        g.facts
            .known("dovecot.cleartext", open, FactKind::Configured, at);
    }
}

/// All lines of its files that say something, each file where it is included. What cannot be read is noted
/// under `key`.
pub(super) fn lines(g: &mut Gather<'_>, key: &str) -> Vec<Line> {
    let mut walk = Walk {
        lines: Vec::new(),
        open: Vec::new(),
        read: 0,
    };
    match g.host.exists(Path::new(MAIN)) {
        Ok(true) => walk.file(g, key, Path::new(MAIN), 0),
        Ok(false) => {}
        Err(error) => g.fault(key, &error, FactKind::Configured, MAIN),
    }
    walk.lines
}

struct Walk {
    lines: Vec<Line>,
    /// The files that include the one that is read, the outermost first.
    open: Vec<PathBuf>,
    read: usize,
}

impl Walk {
    fn file(&mut self, g: &mut Gather<'_>, key: &str, path: &Path, around: usize) {
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
        let mut depth = around;
        for (number, line) in text.lines().enumerate() {
            let said = line.trim();
            if said.is_empty() || said.starts_with('#') {
                continue;
            }
            if said == "}" {
                depth = depth.saturating_sub(1).max(around);
            } else if said.ends_with('{') {
                depth += 1;
            } else if let Some(pattern) = inclusion(said) {
                self.include(g, key, path, pattern, depth);
            } else {
                self.lines.push(Line {
                    text: said.to_owned(),
                    place: super::lines::place(shown, number, line),
                    depth,
                });
            }
        }
        self.open.pop();
    }

    fn include(&mut self, g: &mut Gather<'_>, key: &str, from: &Path, pattern: &str, depth: usize) {
        let main = Path::new(MAIN);
        // What the package brings elsewhere names protocols, and databases of passwords lie in files that no
        // check asks for.
        let dir = from.parent().unwrap_or(main).join(pattern);
        let ours = dir.parent().and_then(Path::to_str);
        if !ours.is_some_and(|dir| DIRS.contains(&dir)) || !pattern.ends_with(".conf") {
            return;
        }
        match included(Program::Dovecot, main, from, pattern, &OfHost(g.host)) {
            Ok(found) => {
                let found = found.iter();
                for path in found.filter(|path| path.to_str().is_some_and(is_file)) {
                    self.file(g, key, path, depth);
                }
            }
            Err(fault) => g
                .facts
                .unknown(key, fault.to_string(), FactKind::Configured, MAIN),
        }
    }
}

/// The pattern of an `!include` or `!include_try`.
fn inclusion(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("!include")?;
    let rest = rest.strip_prefix("_try").unwrap_or(rest);
    let pattern = rest.trim_start();
    (pattern.len() < rest.len()).then(|| pattern.trim_end())
}

/// Whether it is one of its files.
pub(crate) fn is_file(path: &str) -> bool {
    path.rsplit_once('/').is_some_and(|(dir, name)| {
        DIRS.contains(&dir) && name.ends_with(".conf") && !name.starts_with('.')
    })
}

/// What a capture keeps of a line: where blocks begin and end, what is included, the paths of certificates
/// and keys, and what a check asks besides.
pub(crate) fn redact(line: &str) -> String {
    let line = line.trim();
    let known = || {
        let said = line.split_once('=');
        said.is_some_and(|(name, value)| is_kept(name.trim(), value.trim()))
    };
    match line {
        _ if line.starts_with('#') => String::new(),
        "}" => line.to_owned(),
        _ if line.ends_with('{') => "block {".to_owned(),
        _ => match inclusion(line) {
            Some(pattern) if is_pattern(pattern) => line.to_owned(),
            Some(_) => String::new(),
            None if known() || certificate(line).is_some() => line.to_owned(),
            None => String::new(),
        },
    }
}

fn is_kept(name: &str, value: &str) -> bool {
    let word = matches!(value, "yes" | "no");
    let number = value.len() <= 12
        && value
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
    CLEARTEXT.iter().any(|(known, _)| *known == name) && word || name == VERSION && number
}

/// The path of a certificate that a line names, or of a key, and whether it is one.
pub(super) fn certificate(line: &str) -> Option<(bool, &str)> {
    let (name, value) = line.split_once('=')?;
    let is_key = match name.trim() {
        "ssl_cert" | "ssl_server_cert_file" => false,
        "ssl_key" | "ssl_server_key_file" => true,
        _ => return None,
    };
    let path = value.trim().trim_start_matches('<').trim();
    (path.starts_with('/') && is_path(path)).then_some((is_key, path))
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
