//! Which lines of a text become which others.

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Lines that are exchanged for others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// The first of them, from 1; where nothing goes, the line that the new ones come before.
    pub line: usize,
    /// What goes, without line ends.
    pub before: Vec<String>,
    /// What comes.
    pub after: Vec<String>,
}

/// What tells two texts apart. Bytes that are not UTF-8 become U+FFFD.
#[must_use]
pub fn hunks(before: &[u8], after: &[u8]) -> Vec<Hunk> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_go_and_come() {
        let all = hunks(b"a\nb\nc\nd\n", b"a\nB\nc\n");
        let told: Vec<_> = all
            .iter()
            .map(|hunk| (hunk.line, hunk.before.len(), hunk.after.len()))
            .collect();
        assert_eq!(told, [(2, 1, 1), (4, 1, 0)]);
        assert_eq!(hunks(b"a\r\n", b"a\r\nb\r\n")[0].after, ["b"]);
        assert_eq!(hunks(b"\xff\n", b"\xff\n"), []);
    }
}
