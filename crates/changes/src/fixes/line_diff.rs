//! Compares two texts line by line.

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Consecutive lines of a file that are replaced by other lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// Number of the first replaced line, from 1. If lines are only inserted, the number of the line that follows them.
    pub line: usize,
    /// Removed lines, without line ends.
    pub before: Vec<String>,
    /// Inserted lines, without line ends.
    pub after: Vec<String>,
}

/// Compares two texts. Bytes that are not UTF-8 become U+FFFD.
#[must_use]
pub fn diff_hunks(before: &[u8], after: &[u8]) -> Vec<Hunk> {
    let lines = |text: &[u8]| -> Vec<String> {
        String::from_utf8_lossy(text)
            .split_inclusive('\n')
            .map(str::to_owned)
            .collect()
    };
    let (old, new) = (lines(before), lines(after));
    let bare = |lines: &[String]| -> Vec<String> {
        let end = ['\n', '\r'];
        let lines = lines.iter();
        lines
            .map(|line| line.trim_end_matches(end).to_owned())
            .collect()
    };
    let ops = capture_diff_slices(Algorithm::Myers, &old, &new);
    let changed = ops
        .into_iter()
        .filter(|op| !matches!(op, DiffOp::Equal { .. }));
    changed
        .map(|op| Hunk {
            line: op.old_range().start + 1,
            before: bare(&old[op.old_range()]),
            after: bare(&new[op.new_range()]),
        })
        .collect()
}

/// Text shown instead of the parts of a line that are omitted.
const LEFT_OUT: &str = "…";

impl Hunk {
    /// Returns the lines as they may be shown: only the statement that changes. Other statements and comments
    /// in the same line may contain a secret and are omitted.
    #[must_use]
    pub fn shown(&self) -> Self {
        let pair = |lines: &[String], others: &[String]| -> Vec<String> {
            let other = |at: usize| match lines.len() == others.len() {
                true => others[at].as_str(),
                false => "",
            };
            let lines = lines.iter().enumerate();
            lines
                .map(|(at, line)| differing_statement(line, other(at)))
                .collect()
        };
        Self {
            line: self.line,
            before: pair(&self.before, &self.after),
            after: pair(&self.after, &self.before),
        }
    }
}

/// Returns the statements of `line` that do not occur in `other`; if `other` is empty, the first statement.
fn differing_statement(line: &str, other: &str) -> String {
    let others: Vec<&str> = split_statements(other).collect();
    let mut shown = line[..line.len() - line.trim_start().len()].to_owned();
    let mut left_out = false;
    let mut any = false;
    for one in split_statements(line) {
        let is_shown = match other.is_empty() {
            true => !any,
            false => !others.contains(&one),
        };
        let text = match is_shown && !one.starts_with('#') {
            true => assay_model::secrets::withhold_in_text(one),
            false if left_out => continue,
            false => LEFT_OUT.to_owned(),
        };
        left_out = text == LEFT_OUT;
        if any {
            shown.push(' ');
        }
        shown += &text;
        any = true;
    }
    shown
}

/// Splits a line after each semicolon or bracket outside quotation marks, and before the comment.
fn split_statements(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line.trim();
    std::iter::from_fn(move || {
        let mut quote = None;
        let mut blank = true;
        let end = rest.char_indices().find_map(|(at, c)| {
            let was_blank = std::mem::replace(&mut blank, c.is_whitespace());
            match (quote, c) {
                (Some(open), _) if c == open => quote = None,
                (None, '"' | '\'') if was_blank || rest[..at].ends_with('=') => quote = Some(c),
                (None, ';' | '{' | '}') => return Some(at + 1),
                (None, '#') if was_blank && at > 0 => return Some(at),
                (None, '#') if was_blank => return Some(rest.len()),
                _ => {}
            }
            None
        });
        let (one, behind) = rest.split_at(end.unwrap_or(rest.len()));
        rest = behind.trim_start();
        (!one.is_empty()).then(|| one.trim_end())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Secrets in the same line as a setting must not be shown. They can be in other statements, comments, headers and
    /// addresses.
    #[test]
    fn attack_what_stands_in_the_same_line_is_not_shown() {
        for (before, after, shown) in [
            (
                "server { set $p hunter2; ssl_protocols SSLv3 TLSv1.2; proxy_pass http://u:hunter2@h; }",
                "server { set $p hunter2; ssl_protocols TLSv1.2; proxy_pass http://u:hunter2@h; }",
                [
                    "… ssl_protocols SSLv3 TLSv1.2; …",
                    "… ssl_protocols TLSv1.2; …",
                ],
            ),
            (
                "    ssl_protocols SSLv3; # hunter2",
                "    ssl_protocols TLSv1.2; # hunter2",
                ["    ssl_protocols SSLv3; …", "    ssl_protocols TLSv1.2; …"],
            ),
            (
                "PermitRootLogin yes # password hunter2",
                "PermitRootLogin prohibit-password # password hunter2",
                [
                    "PermitRootLogin yes …",
                    "PermitRootLogin prohibit-password …",
                ],
            ),
            (
                "proxy_set_header Authorization \"Basic hunter2;hunter2\"; autoindex on;",
                "proxy_set_header Authorization \"Basic hunter2;hunter2\"; autoindex off;",
                ["… autoindex on;", "… autoindex off;"],
            ),
            (
                "autoindex on; add_header X-Key hunter2;",
                " add_header X-Key hunter2;",
                ["autoindex on; …", " …"],
            ),
            (
                "set $a 1; set $b hunter2;",
                "set $b hunter2;",
                ["set $a 1; …", "…"],
            ),
        ] {
            let both = diff_hunks(before.as_bytes(), after.as_bytes())[0].shown();
            let both = [both.before[0].as_str(), both.after[0].as_str()];
            let text = both.join("\n");
            assert!(!text.contains("hunter2"), "{text}");
            assert_eq!(both, shown);
        }
        // A removed line without a replacement.
        let gone = diff_hunks(
            b"a\nautoindex on; set $p hunter2; # hunter2\nb\n",
            b"a\nb\n",
        );
        assert_eq!(gone[0].shown().before, ["autoindex on; …"]);
        let gone = diff_hunks(b"UsePAM no\t# hunter2\n", b"");
        assert_eq!(gone[0].shown().before, ["UsePAM no …"]);
    }

    #[test]
    fn lines_that_go_and_come() {
        let all = diff_hunks(b"a\nb\nc\nd\n", b"a\nB\nc\n");
        let told: Vec<_> = all
            .iter()
            .map(|hunk| (hunk.line, hunk.before.len(), hunk.after.len()))
            .collect();
        assert_eq!(told, [(2, 1, 1), (4, 1, 0)]);
        assert_eq!(diff_hunks(b"a\r\n", b"a\r\nb\r\n")[0].after, ["b"]);
        assert_eq!(diff_hunks(b"\xff\n", b"\xff\n"), []);
    }
}
