//! Path patterns that a collector read: `*`, `?` and `[…]` within a name, and `**` for any number of directories, also
//! at the end.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

/// Maximum number of patterns in a bundle.
const MOST: usize = 2000;

#[derive(Debug, Default)]
pub(super) struct Patterns(Vec<Vec<String>>);

impl Patterns {
    pub(super) fn new(patterns: &[String]) -> Self {
        let parts = |pattern: &String| {
            let parts = pattern.split('/').filter(|part| !part.is_empty());
            parts.map(str::to_owned).collect()
        };
        Self(patterns.iter().take(MOST).map(parts).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether a pattern matches the path. A pattern with a star also matches the parent directory that was
    /// listed for it.
    pub(super) fn covers(&self, path: &Path) -> bool {
        let parts: Vec<&OsStr> = path
            .components()
            .filter_map(|part| match part {
                Component::Normal(name) => Some(name),
                _ => None,
            })
            .collect();
        self.0.iter().any(|pattern| path_matches(pattern, &parts))
    }
}

fn path_matches(pattern: &[String], parts: &[&OsStr]) -> bool {
    match (pattern.split_first(), parts.split_first()) {
        (None, None) => true,
        (Some((stars, rest)), _) if stars == "**" => {
            // A pattern has at most one `**`, so the matching time is limited.
            rest.is_empty()
                || (rest.len() <= parts.len() && {
                    let tail = &parts[parts.len() - rest.len()..];
                    rest.iter()
                        .zip(tail)
                        .all(|(one, part)| name_matches(one, part))
                })
        }
        (Some((one, pattern)), Some((part, parts))) => {
            name_matches(one, part) && path_matches(pattern, parts)
        }
        _ => false,
    }
}

fn name_matches(pattern: &str, name: &OsStr) -> bool {
    glob_matches(pattern.as_bytes(), name.as_bytes())
}

/// Returns whether a pattern matches a text, like fnmatch(3) without options.
fn glob_matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        let step = match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p + 1, t));
                p += 1;
                continue;
            }
            Some(b'?') => Some(1),
            Some(b'[') => class_length(&pattern[p..], text[t]),
            Some(&byte) if byte == text[t] => Some(1),
            _ => None,
        };
        match (step, retry) {
            (Some(length), _) => (p, t) = (p + length, t + 1),
            (None, Some((after, from))) => {
                retry = Some((after, from + 1));
                (p, t) = (after, from + 1);
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

/// If the pattern starts with a character class such as `[a-z]` that matches the byte, returns the length of the class.
fn class_length(pattern: &[u8], byte: u8) -> Option<usize> {
    let end = pattern.iter().position(|&byte| byte == b']')?;
    let inner = &pattern[1..end];
    let mut at = 0;
    while at < inner.len() {
        let (from, to, length) = match inner.get(at + 1) {
            Some(b'-') if at + 2 < inner.len() => (inner[at], inner[at + 2], 3),
            _ => (inner[at], inner[at], 1),
        };
        if (from..=to).contains(&byte) {
            return Some(end + 1);
        }
        at += length;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_names() {
        let patterns = [
            "/etc/ssh/**",
            "/sys/devices/**/queue/scheduler",
            "/proc/[0-9]*/maps",
            "/a/*.conf",
        ];
        let patterns = Patterns::new(&patterns.map(str::to_owned));
        for path in [
            "/etc/ssh/a/b",
            "/sys/devices/pci0/x/block/sda/queue/scheduler",
            "/proc/12/maps",
            "/a/x.conf",
        ] {
            assert!(patterns.covers(Path::new(path)), "{path}");
        }
        for path in [
            "/etc/sshd",
            "/sys/devices/queue2/scheduler",
            "/proc/self/maps",
            "/a/x",
            "/a/b/x.conf",
        ] {
            assert!(!patterns.covers(Path::new(path)), "{path}");
        }
        assert!(!glob_matches(b"*a*a*a*a*a*a*b", &[b'a'; 4000]));
    }
}
