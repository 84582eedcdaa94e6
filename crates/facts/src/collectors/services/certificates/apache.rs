//! Apache's files: which certificates and keys they name.

use super::Uses;
use crate::collectors::services::apache::APACHE;
use crate::gather::{Gather, lossy};
use crate::harmless::is_path;

/// Apache's directives with the path of a certificate, and of a key; names are not case-sensitive.
pub(crate) const APACHE_KEYS: [(&str, bool); 3] = [
    ("sslcertificatefile", false),
    ("sslcertificatechainfile", false),
    ("sslcertificatekeyfile", true),
];

/// Apache reads what its directories have at the time; a file that says a path again names it again.
pub(super) fn apache(g: &mut Gather<'_>, certificates: &mut Uses, keys: &mut Uses) {
    for dir in APACHE {
        for name in g.list("certificate", dir) {
            let file = format!("{dir}/{}", lossy(&name));
            if !file.ends_with(".conf") {
                continue;
            }
            let Some(text) = g.read("certificate", &file) else {
                continue;
            };
            of_lines(&file, &text, certificates, keys);
        }
    }
}

/// Takes in the certificates and keys that the lines of a file name.
fn of_lines(file: &str, text: &str, certificates: &mut Uses, keys: &mut Uses) {
    for (number, line) in text.lines().enumerate() {
        let Some((is_key, path)) = of_apache(line) else {
            continue;
        };
        let uses = if is_key {
            &mut *keys
        } else {
            &mut *certificates
        };
        let place = super::super::lines::place(file, number, line);
        uses.entry(path.to_owned())
            .or_default()
            .push(("apache", place));
    }
}

/// Whether a line of Apache names a key, and the path.
pub(crate) fn of_apache(line: &str) -> Option<(bool, &str)> {
    let mut words = line.split_whitespace();
    let name = words.next()?.to_ascii_lowercase();
    let (_, is_key) = APACHE_KEYS.iter().find(|(known, _)| *known == name)?;
    let path = words.next()?.trim_matches('"');
    (path.starts_with('/') && is_path(path)).then_some((*is_key, path))
}

/// Whether a file is one of Apache's.
pub(crate) fn is_of_apache(path: &str) -> bool {
    let dir = path.rsplit_once('/').map_or("", |(dir, _)| dir);
    let available = dir
        .strip_prefix("/etc/apache2/")
        .is_some_and(|dir| dir.ends_with("-available"));
    let ours = path.ends_with(".conf") || path.ends_with(".load");
    ours && (APACHE.contains(&dir) || available)
}

/// What a capture keeps of a line of Apache's.
pub(crate) fn redact_apache(line: &str) -> String {
    match of_apache(line) {
        Some((_, path)) => {
            let name = line.split_whitespace().next().unwrap_or_default();
            format!("{name} {path}")
        }
        None => super::super::tls_lines::redact_apache(line).unwrap_or_default(),
    }
}
