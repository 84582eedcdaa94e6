//! Removes possible secrets from options. Engines for object stores, web servers and commands have options with
//! passwords, and fio repeats the options in its result.

use super::{ALIASES, NAMES, canonical_name};
use assay_model::secrets::{self, WITHHELD, is_plain, names_a_secret};

/// Options whose value is a path or an address of the target.
const PLACES: [&str; 14] = [
    "filename",
    "directory",
    "opendir",
    "filename_format",
    "uri",
    "ioengine",
    "mem",
    "read_iolog",
    "write_iolog",
    "write_bw_log",
    "write_lat_log",
    "write_iops_log",
    "merge_blktrace_file",
    "lockfile",
];

/// Options whose value is a command or free text.
const TEXTS: [&str; 5] = [
    "exec_prerun",
    "exec_postrun",
    "program",
    "arguments",
    "description",
];

/// Returns the value of an option if it is known to be harmless, else [`WITHHELD`]. Harmless values are numbers, words
/// and lists that fio documents, and paths. The login is removed from addresses.
#[must_use]
pub fn harmless_value(key: &str, value: &str) -> String {
    let key = canonical_name(key);
    if value.is_empty() {
        return String::new();
    }
    let known =
        NAMES.lines().any(|name| name == key) || ALIASES.iter().any(|(_, name)| *name == key);
    if !known || TEXTS.contains(&key.as_str()) || names_a_secret(&key) {
        return WITHHELD.to_owned();
    }
    if key == "name" {
        return secrets::withhold_in_text(value);
    }
    if PLACES.contains(&key.as_str()) {
        return place(value);
    }
    let mut parts = value.split([',', ':', ' ']).filter(|part| !part.is_empty());
    match parts.all(is_plain) && !value.contains("//") {
        true => value.to_owned(),
        false => WITHHELD.to_owned(),
    }
}

/// Removes logins from file names, which are separated by colons.
fn place(value: &str) -> String {
    let clean = secrets::withhold_in_text(value);
    // `user:password@host` without a protocol before it.
    let login = !clean.starts_with('/') && !clean.contains("://") && clean.contains('@');
    match clean.rsplit_once('@') {
        Some((_, rest)) if login => format!("{WITHHELD}@{rest}"),
        _ => clean,
    }
}

/// Returns the name of an option if it may be printed. `None` if the text does not look like the name of an option.
pub(crate) fn harmless_name(key: &str) -> Option<&str> {
    (key.len() <= 64 && is_plain(key)).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decides_a_result_stays() {
        for (key, value) in [
            ("rw", "randrw"),
            ("bssplit", "4k/50:8k/30:16k/20,4k/100"),
            ("filename", "/dev/sda:/dev/sdb"),
            ("filename", "/srv/a b/file"),
            ("directory", "/srv/t"),
            ("uri", "nbd+unix:///x?socket=/run/assay/s"),
            ("size", "50%"),
            ("cpus_allowed", "0-3,5"),
            ("random_distribution", "zipf:1.2"),
            ("ioengine", "external:/opt/engine.o"),
            ("readwrite", "read"),
            ("fsync", "1"),
        ] {
            assert_eq!(harmless_value(key, value), value, "{key}");
        }
        let long = ["4k/1"; 64].join(":");
        assert_eq!(harmless_value("bssplit", &long), long);
    }

    #[test]
    fn passwords_do_not() {
        for (key, value) in [
            ("http_pass", "Canary"),
            ("http_user", "Canary"),
            ("http_s3_key", "Canary"),
            ("http_s3_keyid", "Canary"),
            ("http_s3_security_token", "Canary"),
            ("http_swift_auth_token", "Canary"),
            ("nfs_url", "nfs://u:Canary@h/x"),
            ("filename", "http://u:Canary@h/x"),
            ("filename", "u:Canary@h:/x"),
            ("uri", "nbd://h/x?password=Canary"),
            ("uri", "iscsi://u%Canary@h/x"),
            ("hostname", "u:Canary@h"),
            ("exec_prerun", "curl -u u:Canary h"),
            ("description", "Canary"),
            ("an_option_of_tomorrow", "Canary"),
        ] {
            let clean = harmless_value(key, value);
            assert!(!clean.contains("Canary"), "{key}={clean}");
            assert_eq!(harmless_value(key, &clean), clean, "cleaned twice");
        }
    }
}
