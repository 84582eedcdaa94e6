//! Where the user's guest images lie.

use crate::error::LabError;
use std::ffi::OsString;
use std::path::PathBuf;

/// Names another place than the usual one.
pub(crate) const VARIABLE: &str = "ASSAY_LAB_CACHE";

/// `$ASSAY_LAB_CACHE`, else `$XDG_CACHE_HOME/assay/lab`, else `~/.cache/assay/lab` (XDG Base
/// Directory Specification 0.8: relative paths in its variables are ignored).
pub(crate) fn of(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, LabError> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    if let Some(dir) = set(VARIABLE).map(PathBuf::from) {
        return std::path::absolute(&dir).map_err(LabError::io(&dir));
    }
    let absolute = |name: &str| {
        set(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute("XDG_CACHE_HOME")
        .or_else(|| Some(absolute("HOME")?.join(".cache")))
        .map(|base| base.join("assay/lab"))
        .ok_or(LabError::NoCache)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn place(variables: &[(&str, &str)]) -> Option<PathBuf> {
        of(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.into())
        })
        .ok()
    }

    #[test]
    fn the_nearest_variable_says_where() {
        let home = ("HOME", "/home/u");
        let is = |variables: &[_], path| assert_eq!(place(variables).as_deref(), path);
        is(&[home], Some(Path::new("/home/u/.cache/assay/lab")));
        let xdg = ("XDG_CACHE_HOME", "/cache");
        is(&[home, xdg], Some(Path::new("/cache/assay/lab")));
        is(
            &[home, xdg, (VARIABLE, "/images")],
            Some(Path::new("/images")),
        );
        is(
            &[home, ("XDG_CACHE_HOME", "relative"), (VARIABLE, "")],
            Some(Path::new("/home/u/.cache/assay/lab")),
        );
        is(&[], None);
    }
}
