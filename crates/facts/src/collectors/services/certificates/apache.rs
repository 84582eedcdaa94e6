//! Certificates and keys in Apache's files.

use super::Uses;
use crate::collectors::services::apache::{APACHE, MAINS, OTHERS};
use crate::collectors::services::apache_reading;
use crate::gather::Gather;
use crate::harmless::kept_path;
use assay_model::FactKind;

/// Apache's directives for certificates and keys, each with whether it is a key. Names of directives are
/// case-insensitive.
pub(crate) const APACHE_KEYS: [(&str, bool); 3] = [
    ("sslcertificatefile", false),
    ("sslcertificatechainfile", false),
    ("sslcertificatekeyfile", true),
];

/// Adds the certificates and keys of all servers of Apache.
pub(super) fn apache(g: &mut Gather<'_>, certificates: &mut Uses, keys: &mut Uses) {
    let reading = apache_reading::read(g.host);
    if let Some((why, place)) = reading.problems.first() {
        g.facts.unknown(
            "certificate",
            why.clone(),
            FactKind::Configured,
            place.clone(),
        );
    }
    for line in reading.servers.into_iter().flat_map(|server| server.lines) {
        let Some((is_key, path)) = of_apache(&format!("{} {}", line.name, line.arguments))
            .map(|(is_key, path)| (is_key, path.to_owned()))
        else {
            continue;
        };
        let uses = if is_key {
            &mut *keys
        } else {
            &mut *certificates
        };
        let all = uses.entry(path).or_default();
        if !all.iter().any(|(_, place)| *place == line.place) {
            all.push(("apache", line.place));
        }
    }
}

/// Returns the path in a line of Apache's configuration, and whether the path is that of a key.
pub(crate) fn of_apache(line: &str) -> Option<(bool, &str)> {
    let (name, path) = line.trim().split_once([' ', '\t'])?;
    let name = name.to_ascii_lowercase();
    let (_, is_key) = APACHE_KEYS.iter().find(|(known, _)| *known == name)?;
    let path = path.trim().trim_matches('"');
    (!path.is_empty()).then(|| (*is_key, kept_path(path)))
}

/// Returns whether a file belongs to Apache.
pub(crate) fn is_of_apache(path: &str) -> bool {
    let dir = path.rsplit_once('/').map_or("", |(dir, _)| dir);
    let available = dir
        .strip_prefix("/etc/apache2/")
        .is_some_and(|dir| dir.ends_with("-available"));
    let ours = path.ends_with(".conf") || path.ends_with(".load");
    ours && (APACHE.contains(&dir) || available) || MAINS.contains(&path) || OTHERS.contains(&path)
}
