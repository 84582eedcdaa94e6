//! Locations of stores: a file, or the URL of a PostgreSQL server. A URL is shown without its password.

use std::path::{Path, PathBuf};

/// Returns whether the location is a PostgreSQL URL.
#[must_use]
pub fn is_url(path: &Path) -> bool {
    let text = path.to_string_lossy();
    text.starts_with("postgresql://") || text.starts_with("postgres://")
}

/// Returns the location for display, without the password of a URL.
#[must_use]
pub fn shown(path: &Path) -> PathBuf {
    match is_url(path) {
        true => PathBuf::from(masked(&path.to_string_lossy())),
        false => path.to_owned(),
    }
}

/// Removes the password from a URL, and also the parameters, which may contain a password. A password may contain any
/// character, so the result contains nothing of the text between the user and the last `@`.
pub(crate) fn masked(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return String::new();
    };
    let without = |text: &str, ends: &[char]| -> String {
        text.split(ends).next().unwrap_or_default().to_owned()
    };
    let shown = match rest.split_once('@') {
        Some((who, place)) => {
            let place = match place.contains('@') {
                true => "…".to_owned(),
                false => without(place, &['?']),
            };
            format!("{}@{place}", without(who, &[':', '/', '?']))
        }
        // If a user forgot the host, the password is where the port should be.
        None => match without(rest, &['?', '/']).split(',').all(is_port) {
            true => without(rest, &['?']),
            false => format!("{}:…", without(rest, &[':', '/', '?'])),
        },
    };
    let plain = format!("{scheme}://{shown}");
    plain
        .chars()
        .filter(|c| !c.is_control())
        .take(200)
        .collect()
}

/// Returns whether the part after the host is empty or a port number.
fn is_port(place: &str) -> bool {
    let behind = place.rsplit(']').next().unwrap_or_default();
    let (_, port) = behind.split_once(':').unwrap_or_default();
    port.bytes().all(|byte| byte.is_ascii_digit())
}
