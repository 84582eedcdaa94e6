//! Finds processes that use a path: open files below it, the working directory, or the program itself. Only links in
//! `/proc` are read, never the files, so a hanging file system blocks nothing.

use super::super::MachineReader;

/// Maximum number of open files of a process that are examined.
const MOST_FILES: usize = 512;

/// Counts the files at or below a path that a process uses: open files, working directory, program.
pub(super) fn count_uses(reader: &mut MachineReader, pid: u32, path: &str) -> f64 {
    let mut count = 0.0;
    let dir = format!("/proc/{pid}");
    for name in ["cwd", "exe"] {
        let link = reader.link(&format!("{dir}/{name}"));
        count += f64::from(u8::from(
            link.is_some_and(|link| is_at_or_below(&link, path)),
        ));
    }
    for name in reader.names(&format!("{dir}/fd")).iter().take(MOST_FILES) {
        let link = reader.link(&format!("{dir}/fd/{name}"));
        count += f64::from(u8::from(
            link.is_some_and(|link| is_at_or_below(&link, path)),
        ));
    }
    count
}

/// Returns whether a file is the path or lies below it.
fn is_at_or_below(file: &str, path: &str) -> bool {
    let path = path.trim_end_matches('/');
    file.strip_prefix(path)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || rest == " (deleted)")
}

#[cfg(test)]
mod tests {
    use super::is_at_or_below;

    #[test]
    fn a_namesake_beside_the_path_is_not_below_it() {
        assert!(
            is_at_or_below("/srv/data/x", "/srv/data/") && is_at_or_below("/srv/data", "/srv/data")
        );
        assert!(is_at_or_below("/srv/f (deleted)", "/srv/f") && is_at_or_below("/x", "/"));
        assert!(
            !is_at_or_below("/srv/data2/x", "/srv/data") && !is_at_or_below("pipe:[1]", "/srv")
        );
    }
}
