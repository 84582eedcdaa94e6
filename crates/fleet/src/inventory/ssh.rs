//! Lists the names of machines in the ssh configuration, which are the words of `Host` lines without wildcards.

use super::InventoryError;
use assay_config::effective::files::{FileFault, OfHost};
use assay_config::effective::{Program, read_effective};
use assay_host::{HostError, LiveHost};
use std::path::{Path, PathBuf};

/// Returns the names in the order of the file; empty if there is no file.
pub(super) fn names(config: Option<&Path>) -> Result<Vec<String>, InventoryError> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let own = home.map(|home| home.join(".ssh/config"));
    let Some(path) = config.map(Path::to_owned).or(own) else {
        return Ok(Vec::new());
    };
    let absolute = std::path::absolute(&path).map_err(|error| HostError::io(&path, &error))?;
    let all = match read_effective(Program::Ssh, &absolute, &OfHost(&LiveHost)) {
        Ok(all) => all,
        // The default file does not exist, or it is a device such as `-F /dev/null`.
        Err(FileFault::Absent) if config.is_none() => return Ok(Vec::new()),
        Err(_) if path == Path::new("/dev/null") => return Ok(Vec::new()),
        Err(fault) => {
            return Err(InventoryError::Unreadable {
                path,
                source: fault.into(),
            });
        }
    };
    let mut names: Vec<String> = Vec::new();
    for (_, scope) in all.scopes() {
        let Some((head, words)) = scope.head.split_first() else {
            continue;
        };
        if !head.eq_ignore_ascii_case("host") {
            continue;
        }
        for word in words {
            let one = !word.contains(['*', '?', '!']) && crate::session::check_name(word).is_ok();
            if one && !names.contains(word) {
                names.push(word.clone());
            }
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_wildcards() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config");
        std::fs::write(&file, "Host web1 web2 !x db-*\n  Port 2\nHost *\n  User root\nMatch all\n  Port 3\nhost web1 mail\n").unwrap();
        assert_eq!(names(Some(&file)).unwrap(), ["web1", "web2", "mail"]);
        assert!(names(Some(&dir.path().join("none"))).is_err());
    }
}
