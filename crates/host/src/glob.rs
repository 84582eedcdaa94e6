//! Which files a pattern means: the rules of glob(3), for includes of configuration files.

use crate::{Host, HostError};
use globset::GlobBuilder;
use std::path::{Component, Path, PathBuf};

/// The files that match an absolute pattern, sorted; none is no error.
///
/// # Errors
/// The pattern is malformed, or a directory cannot be listed.
pub fn glob(host: &dyn Host, pattern: &Path) -> Result<Vec<PathBuf>, HostError> {
    let mut found = vec![PathBuf::from("/")];
    for component in pattern.components() {
        let Component::Normal(name) = component else {
            if component == Component::ParentDir {
                found.iter_mut().for_each(|path| path.push(".."));
            }
            continue;
        };
        let Some(text) = name.to_str().filter(|text| text.contains(['*', '?', '['])) else {
            found.iter_mut().for_each(|path| path.push(name));
            continue;
        };
        let glob = GlobBuilder::new(text)
            .literal_separator(true)
            .build()
            .map_err(|error| HostError::Path {
                path: pattern.to_owned(),
                errno: None,
                reason: error.to_string(),
            })?
            .compile_matcher();
        let mut next = Vec::new();
        for dir in found {
            let names = match host.list(&dir) {
                Err(error) if error.is_absent() => continue,
                other => other?,
            };
            let hidden = |name: &Path| name.to_string_lossy().starts_with('.');
            let names = names.into_iter().map(PathBuf::from);
            let matches = names
                .filter(|name| glob.is_match(name) && (text.starts_with('.') || !hidden(name)));
            next.extend(matches.map(|name| dir.join(name)));
        }
        found = next;
    }
    found.sort();
    let mut there = Vec::new();
    for path in found {
        if host.exists(&path)? {
            there.push(path);
        }
    }
    Ok(there)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_of_glob() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["b.conf", "a.conf", ".c.conf", "d.txt", "e/f.conf"] {
            std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            std::fs::write(at(name), "").unwrap();
        }
        let found = |pattern: &str| {
            let pattern = at(pattern).to_str().unwrap().to_owned();
            glob(&crate::Live, Path::new(&pattern)).unwrap()
        };
        assert_eq!(found("*.conf"), [at("a.conf"), at("b.conf")]);
        assert_eq!(found("*/?.conf"), [at("e/f.conf")]);
        assert_eq!(found("d.txt"), [at("d.txt")]);
        assert!(found("none").is_empty() && found("none/*").is_empty());
    }
}
