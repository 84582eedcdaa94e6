//! Finds sockets of PHP-FPM that every account may use, and uploads that are larger than a request may be.

use super::super::lines_of_files::{files, read};
use super::Misuses;
use crate::gather::{Gather, lossy};
use assay_model::FactPlace;

const PHP: &str = "/etc/php";

/// A setting with its value and place.
type Said = (String, FactPlace);

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut found = Misuses::default();
    let mut pools = files(g, "php_trap", "/etc/php-fpm.d", ".conf");
    let versions: Vec<String> = g
        .list("php_trap", PHP)
        .iter()
        .map(|name| lossy(name))
        .collect();
    for version in versions.iter().take(20) {
        for part in ["fpm", "apache2"] {
            let dir = format!("{PHP}/{version}/{part}");
            let more = files(g, "php_trap", &format!("{dir}/conf.d"), ".ini");
            let own = files(g, "php_trap", &format!("{dir}/pool.d"), ".conf");
            let mut all = vec![format!("{dir}/php.ini")];
            all.extend(more);
            all.extend(own.iter().cloned());
            note_uploads(g, &all, &mut found);
            note_limits(g, &all, &mut found);
            pools.extend(own);
        }
    }
    let mut all = vec!["/etc/php.ini".to_owned()];
    all.extend(files(g, "php_trap", "/etc/php.d", ".ini"));
    note_uploads(g, &all, &mut found);
    for path in pools {
        note_sockets(g, &path, &mut found);
    }
    found.note(g, "php_trap");
}

/// Returns the name and the value of a setting; a pool names a setting of PHP in brackets.
fn setting(text: &str) -> Option<(String, String)> {
    let text = text.trim();
    if text.starts_with([';', '#', '[']) {
        return None;
    }
    let (name, value) = text.split_once('=')?;
    let value = value.split(';').next().unwrap_or_default().trim();
    Some((
        name.trim().to_owned(),
        value.trim_matches(['"', '\'']).to_owned(),
    ))
}

/// Notes sockets that accounts other than the owner and the group may write. Such an account runs code as the pool.
fn note_sockets(g: &mut Gather<'_>, path: &str, found: &mut Misuses) {
    let (mut socket, mut mode): (bool, Option<Said>) = (false, None);
    let mut lines = read(g, "php_trap", path);
    lines.push(super::super::lines_of_files::Line {
        text: "[end]".to_owned(),
        place: FactPlace::from(path),
    });
    for line in lines {
        if line.text.trim().starts_with('[') {
            if let Some((mode, place)) = mode.take().filter(|_| socket) {
                let open = mode.ends_with(['2', '3', '6', '7']);
                found.add("socket_open", open, place);
            }
            socket = false;
            continue;
        }
        match setting(&line.text) {
            Some((name, value)) if name == "listen" => socket = value.starts_with('/'),
            Some((name, value)) if name == "listen.mode" => mode = Some((value, line.place)),
            _ => {}
        }
    }
}

/// Returns the number of bytes of a size such as `8M` (PHP, "Shorthand bytes").
fn bytes(text: &str) -> Option<u64> {
    let (digits, factor) = match text.chars().last()?.to_ascii_lowercase() {
        'k' => (&text[..text.len() - 1], 1 << 10),
        'm' => (&text[..text.len() - 1], 1 << 20),
        'g' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    digits.trim().parse::<u64>().ok()?.checked_mul(factor)
}

/// Notes requests that may take all memory, and programs that are compiled for each request.
fn note_limits(g: &mut Gather<'_>, paths: &[String], found: &mut Misuses) {
    let (mut memory, mut cache): (Option<Said>, Option<Said>) = (None, None);
    for path in paths {
        for line in read(g, "php_trap", path) {
            let Some((name, value)) = setting(&line.text) else {
                continue;
            };
            let inner = name
                .split_once('[')
                .map(|(_, inner)| inner.trim_end_matches(']'));
            match inner.unwrap_or(&name) {
                "memory_limit" => memory = Some((value, line.place)),
                "opcache.enable" => cache = Some((value, line.place)),
                _ => {}
            }
        }
    }
    if let Some((value, place)) = memory {
        found.add("memory_unlimited", value.starts_with('-'), place);
    }
    if let Some((value, place)) = cache {
        let low = value.to_ascii_lowercase();
        let off = ["0", "off", "false", "no"].contains(&low.as_str());
        found.add("never_cached", off, place);
    }
}

/// Notes an upload limit above the limit of the whole request, which then decides.
fn note_uploads(g: &mut Gather<'_>, paths: &[String], found: &mut Misuses) {
    let (mut upload, mut post): (Option<Said>, Option<Said>) = (None, None);
    for path in paths {
        for line in read(g, "php_trap", path) {
            let Some((name, value)) = setting(&line.text) else {
                continue;
            };
            let bare = name
                .split_once('[')
                .map_or(name.as_str(), |(_, inner)| inner.trim_end_matches(']'));
            match bare {
                "upload_max_filesize" => upload = Some((value, line.place)),
                "post_max_size" => post = Some((value, line.place)),
                _ => {}
            }
        }
    }
    let Some((text, place)) = upload else { return };
    // Without a line, PHP accepts 8 MiB; 0 means no limit.
    let most = post.as_ref().map_or(Some(8 << 20), |(text, _)| bytes(text));
    if let (Some(upload), Some(most)) = (bytes(&text), most) {
        found.add("uploads_cut", most > 0 && upload > most, place);
    }
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn settings_and_their_near_misses() {
        let pool = "/etc/php/8.2/fpm/pool.d/www.conf";
        let ini = "/etc/php/8.2/fpm/conf.d/90-own.ini";
        for (path, text, expected) in [
            (ini, "memory_limit = -1\n", "memory_unlimited=true"),
            (ini, "memory_limit = 256M\n", "memory_unlimited=false"),
            (ini, "opcache.enable=0\n", "never_cached=true"),
            (
                ini,
                "opcache.enable=1\nopcache.enable_cli=0\n",
                "never_cached=false",
            ),
            (
                pool,
                "[www]\nlisten = /run/a.sock\nlisten.mode = 0666\n",
                "socket_open=true",
            ),
            (
                pool,
                "[www]\nlisten = /run/a.sock\nlisten.mode = 0660\n",
                "socket_open=false",
            ),
            (
                pool,
                "[www]\nlisten = 127.0.0.1:9000\nlisten.mode = 0666\n",
                "",
            ),
            (
                pool,
                "[www]\nlisten = /run/a.sock\n;listen.mode = 0666\n",
                "",
            ),
            (ini, "upload_max_filesize = 200M\n", "uploads_cut=true"),
            (
                ini,
                "upload_max_filesize = 1G\npost_max_size=1100M\n",
                "uploads_cut=false",
            ),
            (ini, "upload_max_filesize = 2M\n", "uploads_cut=false"),
            (
                ini,
                "upload_max_filesize = 20M\npost_max_size = 0\n",
                "uploads_cut=false",
            ),
        ] {
            assert_eq!(
                found(&[(path, text)], collect).join(" "),
                expected,
                "{text}"
            );
        }
    }
}
