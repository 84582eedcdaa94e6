//! Dovecot: in which version's language its main file is written, and whether it takes passwords without
//! TLS. 2.4 has other names for most settings and does not start with a file of 2.3
//! (doc.dovecot.org, Upgrading Dovecot CE from 2.3 to 2.4).

use super::certificates::DOVECOT;
use crate::collectors::dovecot::FILE as AUTH;
use crate::gather::Gather;
use assay_model::{FactKind, Place};
use std::path::Path;

/// Settings whose value is a word, at the top level: 2.3's name and 2.4's for the same, which means the
/// contrary.
pub(crate) const CLEARTEXT: [(&str, &str); 2] = [
    ("disable_plaintext_auth", "no"),
    ("auth_allow_cleartext", "yes"),
];

/// The first setting of a file for 2.4.
pub(crate) const VERSION: &str = "dovecot_config_version";

pub(crate) fn collect(g: &mut Gather<'_>) {
    let main = DOVECOT[0];
    match g.host.exists(Path::new(main)) {
        Ok(true) => {}
        Ok(false) => return,
        Err(error) => return g.fault("dovecot.language", &error, FactKind::Configured, main),
    }
    let mut language = ("2.3", Place::from(main));
    let mut cleartext = None;
    for (path, fact) in [(main, "dovecot.language"), (AUTH, "dovecot.cleartext")] {
        let Some(text) = g.read(fact, path) else {
            match path == main {
                true => return,
                false => continue,
            }
        };
        for (number, line) in text.lines().enumerate() {
            let Some((key, value)) = line.split_once('=') else {
                continue;
            };
            let (key, value) = (key.trim(), value.trim());
            let at = super::lines::place(path, number, line);
            if key == VERSION {
                language = ("2.4", at);
            } else if let Some((_, open)) = CLEARTEXT.iter().find(|(known, _)| *known == key) {
                // The last line counts, and the included file stands where it is included; no file of a
                // distribution says it twice.
                cleartext = Some((value == *open, at));
            }
        }
    }
    let (value, at) = language;
    g.facts
        .known("dovecot.language", value, FactKind::Configured, at);
    if let Some((open, at)) = cleartext {
        g.facts
            .known("dovecot.cleartext", open, FactKind::Configured, at);
    }
}

/// Whether a setting and its value are kept by a capture.
pub(crate) fn is_kept(name: &str, value: &str) -> bool {
    let word = matches!(value, "yes" | "no");
    let number = value.len() <= 12
        && value
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
    CLEARTEXT.iter().any(|(known, _)| *known == name) && word || name == VERSION && number
}
