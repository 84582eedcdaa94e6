//! Paths of new files in a draft of a plan.

use assay_host::Host;
use std::path::{Path, PathBuf};

/// Returns the path of a new file with symbolic links in its directories resolved, and the directories that do not
/// exist, the outermost first.
///
/// # Errors
/// The file exists already, or one of its directories cannot be used, as a reason for the user.
pub(crate) fn find_new_path(
    host: &dyn Host,
    path: &str,
) -> Result<(PathBuf, Vec<PathBuf>), String> {
    let named = Path::new(path);
    let (Some(above), Some(name)) = (named.parent(), named.file_name()) else {
        return Err(format!("{path} is no path of a file"));
    };
    if host.link(named).is_ok() || host.exists(named).map_err(|error| error.to_string())? {
        return Err(format!(
            "{path} exists already, and assay overwrites no file: look at it, and move it away or edit it"
        ));
    }
    let mut absent = Vec::new();
    for dir in above.ancestors() {
        match host.realpath(dir) {
            Ok(real) => {
                let mut below = real;
                let mut missing = Vec::new();
                for name in absent.iter().rev() {
                    below.push(name);
                    missing.push(below.clone());
                }
                below.push(name);
                return Ok((below, missing));
            }
            Err(error) if error.is_absent() && host.link(dir).is_err() => {
                absent.extend(dir.file_name());
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    Err(format!("{path}: none of its directories exists"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn directories_are_followed_or_missing() {
        let host = Recorded::new()
            .file("/etc/real/a", "")
            .linked("/etc/way", "/etc/real")
            .linked("/etc/dangling", "/nowhere");
        let (real, missing) = find_new_path(&host, "/etc/way/x/y/b").unwrap();
        assert_eq!(real, Path::new("/etc/real/x/y/b"));
        let wanted = ["/etc/real/x", "/etc/real/x/y"].map(PathBuf::from);
        assert_eq!(missing, wanted);
        assert_eq!(find_new_path(&host, "/etc/way/b").unwrap().1.len(), 0);
        for there in [
            "/etc/real/a",
            "/etc/way/a",
            "/etc/dangling",
            "/etc/dangling/b",
            "/",
        ] {
            assert!(find_new_path(&host, there).is_err(), "{there}");
        }
    }
}
