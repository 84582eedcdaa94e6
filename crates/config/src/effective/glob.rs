//! Finds the files that the pattern of an include line matches, like glob(3). Implements glob(7) and POSIX.1-2017, 2.13
//! "Pattern Matching Notation": `*`, `?` and `[…]` with ranges, `!` and character classes. A backslash escapes a
//! character. Only a dot in the pattern matches a leading dot. The result is sorted by bytes as in the C locale, which
//! the supported programs always use. Braces are special only with `GLOB_BRACE`, which Dovecot sets.

use super::files::{FileFault, Files};
use globset::{GlobBuilder, GlobMatcher};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// Implementation of glob(3) that a program uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// The OpenBSD implementation, which OpenSSH contains. `^` in brackets is an ordinary character.
    OpenBsd,
    /// The implementation of the C library. `^` in brackets negates, like `!`.
    Libc,
    /// The implementation of the C library with `GLOB_BRACE`.
    Braces,
}

/// Maximum number of paths that a pattern may match.
const MOST: usize = 10_000;

/// Returns the files that an absolute pattern matches; there may be none. With braces, each alternative is expanded as
/// a pattern of its own, and the results are appended in order.
pub fn expand(files: &dyn Files, pattern: &str, style: Style) -> Result<Vec<PathBuf>, FileFault> {
    let patterns = match style {
        Style::Braces => expand_alternatives(pattern)?,
        Style::Libc | Style::OpenBsd => vec![pattern.to_owned()],
    };
    let mut all = Vec::new();
    for pattern in patterns {
        all.extend(match_pattern(files, &pattern, style)?);
    }
    Ok(all)
}

fn match_pattern(
    files: &dyn Files,
    pattern: &str,
    style: Style,
) -> Result<Vec<PathBuf>, FileFault> {
    let mut found: Vec<PathBuf> = vec![PathBuf::from("/")];
    for component in pattern.split('/').filter(|part| !part.is_empty()) {
        let Some(matcher) = component_matcher(component, style)? else {
            let name = unescape_component(component);
            found.iter_mut().for_each(|path| path.push(&name));
            continue;
        };
        let dotted = unescape_component(component).starts_with('.');
        let mut next = Vec::new();
        for dir in found {
            // Without GLOB_ERR, glob(3) finds no match in a path that is not a directory or cannot be
            // listed. A directory that cannot be listed here may still be readable for the program, which runs
            // as another user.
            let names = match files.list(&dir) {
                Err(FileFault::Absent) => continue,
                other => other?,
            };
            let fits = |name: &[u8]| {
                matcher.is_match(Path::new(std::ffi::OsStr::from_bytes(name)))
                    && (dotted || !name.starts_with(b"."))
            };
            let names = names.into_iter().map(|name| name.into_vec());
            let names = names.filter(|name| fits(name));
            next.extend(names.map(|name| dir.join(std::ffi::OsString::from_vec(name))));
            if next.len() > MOST {
                let reason = format!("`{pattern}` means more than {MOST} files");
                return Err(FileFault::Unreadable(reason));
            }
        }
        found = next;
    }
    found.sort_by(|a, b| a.as_os_str().as_bytes().cmp(b.as_os_str().as_bytes()));
    let mut there = Vec::new();
    for path in found {
        if files.exists(&path)? {
            there.push(path);
        }
    }
    Ok(there)
}

/// Returns the component with its escape sequences resolved.
fn unescape_component(component: &str) -> String {
    let mut out = String::new();
    let mut letters = component.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => out.extend(letters.next()),
            letter => out.push(letter),
        }
    }
    out
}

/// Builds the matcher of a path component; `None` if the component has no wildcard.
fn component_matcher(component: &str, style: Style) -> Result<Option<GlobMatcher>, FileFault> {
    let letters: Vec<char> = component.chars().collect();
    let (mut wild, mut out, mut at) = (false, String::new(), 0);
    while let Some(&letter) = letters.get(at) {
        at += 1;
        match letter {
            '*' => {
                wild = true;
                // Two stars are written as one, because `**` has another meaning in globset.
                if !out.ends_with('*') || out.ends_with("\\*") {
                    out.push('*');
                }
            }
            '?' => {
                wild = true;
                out.push('?');
            }
            '[' => match parse_class(&letters[at..], style) {
                Some((class, length)) => {
                    wild = true;
                    out.push_str(&class);
                    at += length;
                }
                // A bracket that is not closed is an ordinary character.
                None => escape('[', &mut out),
            },
            '\\' => {
                if let Some(&letter) = letters.get(at) {
                    at += 1;
                    escape(letter, &mut out);
                }
            }
            letter => escape(letter, &mut out),
        }
    }
    if !wild {
        return Ok(None);
    }
    let glob = GlobBuilder::new(&out)
        .literal_separator(true)
        .backslash_escape(true)
        .build();
    let glob = glob.map_err(|error| {
        FileFault::Unreadable(format!(
            "the pattern `{component}` is not understood: {error}"
        ))
    })?;
    Ok(Some(glob.compile_matcher()))
}

/// Appends an ordinary character. It is escaped if it is special in globset, which also supports braces.
fn escape(letter: char, out: &mut String) {
    if matches!(letter, '*' | '?' | '[' | ']' | '{' | '}' | ',' | '!' | '\\') {
        out.push('\\');
    }
    out.push(letter);
}

/// Parses a bracket expression from the character after `[` up to its `]`. Returns the class for globset, and the
/// number of characters that were parsed.
fn parse_class(letters: &[char], style: Style) -> Option<(String, usize)> {
    let mut at = 0;
    let negated = match letters.first() {
        Some('^') => style != Style::OpenBsd,
        first => first == Some(&'!'),
    };
    at += usize::from(negated);
    let mut ranges: Vec<(char, char)> = Vec::new();
    let first = at;
    loop {
        let mut letter = *letters.get(at)?;
        if letter == ']' && at > first {
            break;
        }
        if letter == '[' && letters.get(at + 1) == Some(&':') {
            let rest: String = letters[at + 2..].iter().collect();
            if let Some((known, name)) = parse_named_class(&rest) {
                ranges.extend(known);
                at += 2 + name + 2;
                continue;
            }
        }
        if letter == '\\' {
            at += 1;
            letter = *letters.get(at)?;
        }
        at += 1;
        let to = match (letters.get(at), letters.get(at + 1)) {
            (Some('-'), Some(&to)) if to != ']' => {
                let escaped = usize::from(to == '\\');
                let to = *letters.get(at + 1 + escaped)?;
                at += 2 + escaped;
                to
            }
            _ => letter,
        };
        // A range from a greater to a lesser character is empty.
        if letter <= to {
            ranges.push((letter, to));
        }
    }
    Some((render_class(&ranges, negated), at + 1))
}

/// Formats a class for globset, which supports neither backslashes nor empty classes. Special characters are put at
/// positions at which they have no special meaning.
fn render_class(ranges: &[(char, char)], negated: bool) -> String {
    if ranges.is_empty() {
        // An empty class matches nothing, a negated one every character; names contain no NUL.
        return if negated { "?" } else { "[\0]" }.to_owned();
    }
    let mut out = String::from(if negated { "[!" } else { "[" });
    let special = |letter: &char| matches!(letter, ']' | '-' | '!' | '^');
    let holds = |letter: char| ranges.iter().any(|&(a, b)| a <= letter && letter <= b);
    out.extend(holds(']').then_some(']'));
    for &(from, to) in ranges {
        // A range that begins or ends with a special character is shortened, and the character is added
        // separately.
        let from = if special(&from) { next(from) } else { from };
        let to = if special(&to) { previous_char(to) } else { to };
        match from.cmp(&to) {
            std::cmp::Ordering::Less => out.extend([from, '-', to]),
            std::cmp::Ordering::Equal => out.push(from),
            std::cmp::Ordering::Greater => {}
        }
    }
    // In the first place these characters would negate the class.
    if out == "[" && (holds('!') || holds('^')) {
        out.push('\0');
    }
    out.extend(['!', '^'].into_iter().filter(|&letter| holds(letter)));
    out.extend(holds('-').then_some('-'));
    out.push(']');
    out
}

fn next(letter: char) -> char {
    char::from_u32(letter as u32 + 1).unwrap_or(letter)
}

fn previous_char(letter: char) -> char {
    char::from_u32((letter as u32).saturating_sub(1)).unwrap_or(letter)
}

/// Parses a named class such as `digit:]`. Returns its ranges, and the length of the text.
fn parse_named_class(rest: &str) -> Option<(Vec<(char, char)>, usize)> {
    let (name, _) = rest.split_once(":]")?;
    let ranges: &[(char, char)] = match name {
        "digit" => &[('0', '9')],
        "lower" => &[('a', 'z')],
        "upper" => &[('A', 'Z')],
        "alpha" => &[('A', 'Z'), ('a', 'z')],
        "alnum" => &[('0', '9'), ('A', 'Z'), ('a', 'z')],
        "xdigit" => &[('0', '9'), ('A', 'F'), ('a', 'f')],
        "blank" => &[('\t', '\t'), (' ', ' ')],
        "space" => &[('\t', '\r'), (' ', ' ')],
        "punct" => &[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')],
        "cntrl" => &[('\u{1}', '\u{1f}'), ('\u{7f}', '\u{7f}')],
        "graph" => &[('!', '~')],
        "print" => &[(' ', '~')],
        _ => return None,
    };
    Some((ranges.to_vec(), name.len()))
}

/// Expands braces: `a{b,c}d` becomes `abd` and `acd`. Braces without a comma at their own level are not expanded (csh,
/// and GLOB_BRACE).
fn expand_alternatives(pattern: &str) -> Result<Vec<String>, FileFault> {
    let mut done = Vec::new();
    let mut open = vec![pattern.to_owned()];
    while let Some(pattern) = open.pop() {
        if done.len() + open.len() > MOST {
            let reason = format!("`{pattern}` has more than {MOST} alternatives");
            return Err(FileFault::Unreadable(reason));
        }
        match find_brace(&pattern) {
            Some((start, commas, end)) => {
                let mut from = start + 1;
                let mut parts = Vec::new();
                for to in commas.into_iter().chain([end]) {
                    parts.push(
                        [&pattern[..start], &pattern[from..to], &pattern[end + 1..]].concat(),
                    );
                    from = to + 1;
                }
                open.extend(parts.into_iter().rev());
            }
            None => done.push(pattern),
        }
    }
    Ok(done)
}

/// Finds the first pair of braces that is not `{}`, which is ordinary text. Returns the offsets of the opening brace,
/// of its commas, and of the closing brace.
fn find_brace(pattern: &str) -> Option<(usize, Vec<usize>, usize)> {
    let bytes = pattern.as_bytes();
    let mut start = 0;
    loop {
        start += bytes.get(start..)?.iter().position(|&byte| byte == b'{')?;
        let escaped = bytes[..start]
            .iter()
            .rev()
            .take_while(|&&byte| byte == b'\\');
        if escaped.count() % 2 == 1 || bytes.get(start + 1) == Some(&b'}') {
            start += 1;
            continue;
        }
        let (mut depth, mut commas, mut at) = (0_usize, Vec::new(), start + 1);
        loop {
            match bytes.get(at)? {
                b'\\' => at += 1,
                b'{' => depth += 1,
                b'}' if depth == 0 => return Some((start, commas, at)),
                b'}' => depth -= 1,
                b',' if depth == 0 => commas.push(at),
                _ => {}
            }
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, name: &str) -> bool {
        component_matcher(pattern, Style::Libc)
            .unwrap()
            .unwrap()
            .is_match(name)
    }

    #[test]
    fn brackets_stars_and_what_only_globset_knows() {
        for (pattern, yes, no) in [
            (
                "[0-9]*.conf",
                &["10-a.conf", "9.conf"][..],
                &["a.conf", "x9.conf"][..],
            ),
            ("[!0-9]*", &["a", "-"], &["1"]),
            ("[^0-9]*", &["a"], &["1"]),
            ("[]a]x", &["]x", "ax"], &["bx"]),
            ("[!]a]x", &["bx"], &["]x", "ax"]),
            ("[a-]x", &["-x", "ax"], &["bx"]),
            ("[[:digit:][:upper:]_]x", &["1x", "Ax", "_x"], &["ax"]),
            ("[a\\]]x", &["]x", "ax"], &["\\x"]),
            ("[\\!]x", &["!x"], &["ax"]),
            ("[z-a]x", &[], &["ax", "zx", "-x"]),
            ("**.conf", &["a.conf"], &["a.txt"]),
            ("\\*?", &["*a"], &["ba"]),
            ("{a,b}*", &["{a,b}c"], &["a", "b"]),
            ("[ab*", &["[abc"], &["a"]),
            ("[^]a]", &["b"], &["]", "a"]),
            ("[+--]?", &["+x", ",x", "-x"], &["."]),
        ] {
            for name in yes {
                assert!(fits(pattern, name), "{pattern} {name}");
            }
            for name in no {
                assert!(!fits(pattern, name), "{pattern} {name}");
            }
        }
        assert!(component_matcher("a\\*b", Style::Libc).unwrap().is_none());
        let openbsd = component_matcher("[^b]", Style::OpenBsd).unwrap().unwrap();
        assert!(openbsd.is_match("^") && openbsd.is_match("b") && !openbsd.is_match("a"));
        assert!(component_matcher("a[b", Style::Libc).unwrap().is_none());
    }

    #[test]
    fn braces() {
        let of = |pattern: &str| expand_alternatives(pattern).unwrap();
        assert_eq!(of("a{b,c{d,e}}f"), ["abf", "acdf", "acef"]);
        assert_eq!(of("{}x"), ["{}x"]);
        assert_eq!(of("a{b"), ["a{b"]);
        assert_eq!(of("{a,b}{c,d}"), ["ac", "ad", "bc", "bd"]);
    }
}
