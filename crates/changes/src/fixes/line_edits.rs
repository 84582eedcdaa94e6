//! Edits whole lines and file permissions in a draft of a plan.

use assay_host::{Host, Limits};
use assay_model::change::Setting;
use assay_model::finding::Edit;
use std::ffi::OsStr;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The permissions of a file and their planned state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModeChange {
    /// Path of the file as in the finding.
    pub path: String,
    /// Path with symbolic links resolved.
    pub real: PathBuf,
    /// Permission bits that the file has now.
    pub before: u32,
    /// Permission bits that the file gets.
    pub after: u32,
}

impl ModeChange {
    /// Returns the change as a journal setting and the new value.
    pub(crate) fn setting(&self) -> (Setting, String) {
        let setting = Setting::FileMode {
            file: self.real.to_string_lossy().into_owned(),
        };
        (setting, format!("{:04o}", self.after))
    }
}

/// Returns the path of a file whose permissions change, with symbolic links in its directories resolved. Fails if the
/// file itself is a symbolic link.
pub(crate) fn find_real(host: &dyn Host, path: &str) -> Result<PathBuf, String> {
    let named = Path::new(path);
    let (Some(above), Some(name)) = (named.parent(), named.file_name()) else {
        return Err(format!("{path} is no path of a file"));
    };
    if !named.is_absolute() {
        return Err(format!("{path} is no path of a file"));
    }
    if host.link(named).is_ok() {
        return Err(format!(
            "{path} is a symbolic link, and assay changes no permissions through one"
        ));
    }
    let above = host.realpath(above).map_err(|error| error.to_string())?;
    Ok(above.join(name))
}

/// Returns the permission bits of a file; `None` if they are unknown.
pub(crate) fn read_mode(host: &dyn Host, path: &Path) -> Option<u32> {
    host.tree_mode(path).or_else(|| {
        let words = ["stat", "--format=%a", "--"].map(OsStr::new);
        let argv = [&words[..], &[path.as_os_str()]].concat();
        let output = host.run(&argv, Limits::default()).ok()?;
        u32::from_str_radix(output.text().trim(), 8).ok()
    })
}

/// Returns the line after an edit; `None` if the edit does not change it, or if the first word of the line is not the
/// edit's key.
pub(crate) fn edit_line(edit: &Edit, line: &str) -> Option<String> {
    if edit.key != "*" && line.split_whitespace().next() != Some(&edit.key) {
        return None;
    }
    let new = match &edit.comment {
        Some(sign) => {
            let bare = line.trim_start();
            let indentation = &line[..line.len() - bare.len()];
            format!("{indentation}{sign} {bare}")
        }
        None => (edit.line.iter()).fold(line.to_owned(), |line, [from, to]| {
            exchange(&line, from, to)
        }),
    };
    (new != line).then_some(new)
}

/// Replaces each occurrence of `from` in a line by `to`.
///
/// - A space at an end of `from` matches whitespace or the end of the line; the matched text stays.
/// - `^` requires the start of the statement, after the indentation.
/// - `*` matches a run of characters other than whitespace, quotes, commas, brackets and angle brackets. `*` in `to`
///   stands for the same run. If `*` has several matches in the line, the line stays unchanged.
fn exchange(line: &str, from: &str, to: &str) -> String {
    let (first, part) = match from.strip_prefix('^') {
        Some(part) => (true, part),
        None => (false, from),
    };
    let (core, new) = (part.trim(), to.trim());
    // A placeholder of the page was empty.
    if core.is_empty() {
        return line.to_owned();
    }
    let (open, closed) = (part.starts_with(' '), part.len() > 1 && part.ends_with(' '));
    let begin = line.len() - line.trim_start().len();
    let fits = |found: &Range<usize>| {
        let before = line[..found.start].chars().next_back();
        let after = line[found.end..].chars().next();
        (!open || before.is_none_or(char::is_whitespace))
            && (!closed || after.is_none_or(char::is_whitespace))
            && (!first || found.start == begin)
    };
    let (mut out, mut rest) = (String::new(), 0);
    let mut runs = 0;
    while let Some((found, run)) = find_part(line, rest, core) {
        out += &line[rest..found.start];
        match fits(&found) {
            true => out += &new.replace('*', run),
            false => out += &line[found.clone()],
        }
        runs += 1;
        rest = found.end;
    }
    match core.contains('*') && runs > 1 {
        true => line.to_owned(),
        false => out + &line[rest..],
    }
}

/// Returns the next occurrence of `core` at or after byte `from`, with the characters that `*` matches.
fn find_part<'a>(line: &'a str, from: usize, core: &str) -> Option<(Range<usize>, &'a str)> {
    let Some((head, tail)) = core.split_once('*') else {
        let start = from + line[from..].find(core)?;
        return Some((start..start + core.len(), "*"));
    };
    let is_run = |letter: char| !letter.is_whitespace() && !"\"',[]<>".contains(letter);
    line[from..].char_indices().find_map(|(at, _)| {
        let at = from + at;
        // A run begins at its first letter.
        let inside = head.is_empty() && line[..at].chars().next_back().is_some_and(is_run);
        let rest = line[at..].strip_prefix(head).filter(|_| !inside)?;
        let length = rest.find(|letter| !is_run(letter)).unwrap_or(rest.len());
        let (run, behind) = rest.split_at(length);
        let whole = head.len() + length + tail.len();
        (length > 0 && behind.starts_with(tail)).then_some((at..at + whole, run))
    })
}

/// Returns the number of the nearest line at or above `line` (from 1) whose first word is `word`.
pub(crate) fn find_line_above(text: &[u8], line: usize, word: &str) -> Option<usize> {
    let lines: Vec<&[u8]> = text.split(|&byte| byte == b'\n').take(line).collect();
    let begins = |line: &&[u8]| {
        let mut words = line
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty());
        words.next() == Some(word.as_bytes())
    };
    lines.iter().rposition(begins).map(|at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn parts_of_a_line_are_exchanged() {
        for (line, from, to, wanted) in [
            (
                "host\tall  all\t0.0.0.0/0 scram",
                "^host ",
                "hostssl",
                "hostssl\tall  all\t0.0.0.0/0 scram",
            ),
            ("  hostssl all", "^host ", "hostssl", "  hostssl all"),
            ("local host all", "^host ", "hostssl", "local host all"),
            ("all all trust", " trust ", "peer", "all all peer"),
            (
                "trusted distrust trust",
                " trust ",
                "peer",
                "trusted distrust peer",
            ),
            (
                "allow-recursion { any; };",
                " any; ",
                "localnets;",
                "allow-recursion { localnets; };",
            ),
            ("{any;}", "{any;}", "{ none; }", "{ none; }"),
            ("a: true,", ": true", ": false", "a: false,"),
            ("a a a", " a ", "b", "b b b"),
            ("  location /i {", "* {", "*/ {", "  location /i/ {"),
            (
                "location / { location /i {",
                "* {",
                "*/ {",
                "location / { location /i {",
            ),
            ("-H fd:// -H tcp://0.0.0.0:1", "-H tcp://*", "", "-H fd:// "),
            (
                "[\"unix:///a\", \"tcp://b:1\"]",
                ", \"tcp://*\"",
                "",
                "[\"unix:///a\"]",
            ),
            (
                "a: [\"b:1\", \"c\"]",
                "[\"*\"]",
                "[]",
                "a: [\"b:1\", \"c\"]",
            ),
            ("a: [\"b:1\"]", "[\"*\"]", "[]", "a: []"),
            (
                "<IfModule mod_a>",
                "<IfModule mod_*>",
                "<IfModule mod_*.c>",
                "<IfModule mod_a.c>",
            ),
            ("a b", "", "c", "a b"),
            ("a b", "^ ", "c", "a b"),
        ] {
            assert_eq!(exchange(line, from, to), wanted, "{line}");
        }
    }

    #[test]
    fn the_head_of_a_block() {
        let text = b"server {\n  location /a {\n    alias /b/;\n  }\n";
        assert_eq!(find_line_above(text, 3, "location"), Some(2));
        assert_eq!(find_line_above(text, 2, "location"), Some(2));
        assert_eq!(find_line_above(text, 1, "location"), None);
    }

    #[test]
    fn links_are_refused() {
        let host = Recorded::new()
            .file("/etc/a", "")
            .linked("/etc/b", "/etc/a")
            .linked("/way", "/etc");
        assert_eq!(find_real(&host, "/etc/a").unwrap(), Path::new("/etc/a"));
        assert_eq!(find_real(&host, "/way/a").unwrap(), Path::new("/etc/a"));
        for path in ["/etc/b", "etc/a", "/", "unknown"] {
            assert!(find_real(&host, path).is_err(), "{path}");
        }
    }
}
