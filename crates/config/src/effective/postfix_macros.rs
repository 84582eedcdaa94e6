//! Expands macros in values of Postfix like `postconf -x` (`mac_expand` and `mac_parse` of Postfix 3.7;
//! `src/util/mac_expand.c`, `mac_parse.c`). If no line sets the parameter of a macro, the macro remains as written,
//! because the default is not known.

use super::{Effective, ScopeId};

/// Maximum depth of nested macros. Postfix stops after 100.
const DEEPEST: usize = 20;
/// Maximum bytes of one expanded value.
const MOST: usize = 64 << 10;

/// Replaces macros by their values: `$name`, `${name}`, `$(name)`, `${name?text}`, `${name:text}`,
/// `${name?{text}:{text}}`, comparisons such as `${{a} == {b} ? {text} : {text}}`, and `$$`.
#[must_use]
pub fn expand_macros(all: &Effective, scope: ScopeId, text: &str) -> String {
    let mut out = String::new();
    Expansion { all, scope }.expand(text, 0, &mut out);
    out
}

/// Returns the names of all macros in a text.
#[must_use]
pub fn macro_names(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('$') {
        if let Some(after) = after.strip_prefix('$') {
            rest = after;
            continue;
        }
        let after = after.trim_start_matches(['{', '(']).trim_start();
        let name = name_of(after);
        if !name.is_empty() {
            names.push(name.to_owned());
        }
        rest = &after[name.len()..];
    }
    names
}

/// Returns the letters, digits and underscores at the beginning of a text.
fn name_of(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}

struct Expansion<'a> {
    all: &'a Effective,
    scope: ScopeId,
}

impl Expansion<'_> {
    /// Appends a text with expanded macros. Returns whether all macros are known.
    fn expand(&self, text: &str, depth: usize, out: &mut String) -> bool {
        let mut known = true;
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            out.push_str(before);
            if depth >= DEEPEST || out.len() > MOST {
                known = false;
                out.push('$');
                rest = after;
                continue;
            }
            if let Some(after) = after.strip_prefix('$') {
                out.push('$');
                rest = after;
                continue;
            }
            let (whole, inner) = match after.chars().next() {
                Some(open @ ('{' | '(')) => match find_closing(after, open) {
                    Some(end) => (end + 1, &after[1..end]),
                    None => (0, ""),
                },
                _ => {
                    let name = name_of(after);
                    (name.len(), name)
                }
            };
            match whole > 0 && self.one(inner, depth, out) {
                true => rest = &after[whole..],
                false => {
                    known = false;
                    out.push('$');
                    out.push_str(&after[..whole]);
                    rest = &after[whole..];
                }
            }
        }
        out.push_str(rest);
        known
    }

    /// Appends the value of one macro. Returns false if the value is unknown.
    fn one(&self, inner: &str, depth: usize, out: &mut String) -> bool {
        let inner = inner.trim();
        let (condition, rest) = match inner.starts_with('{') {
            true => match self.compared(inner, depth) {
                Some((holds, rest)) => (Some(holds), rest.trim_start()),
                None => return false,
            },
            false => {
                let name = name_of(inner);
                let rest = inner[name.len()..].trim_start();
                let Some(said) = self.all.value(self.scope, name) else {
                    return false;
                };
                if rest.is_empty() {
                    return self.put(&said.text(), depth, out);
                }
                // The condition tests the value before the value's own macros are expanded.
                (Some(!said.value.is_empty()), rest)
            }
        };
        let holds = condition == Some(true);
        let (wanted, text) = match (rest.strip_prefix('?'), rest.strip_prefix(':')) {
            (Some(text), _) => (holds, text),
            (_, Some(text)) => (!holds, text),
            _ => return false,
        };
        let (first, behind) = split_braced(text);
        let second = behind
            .trim_start()
            .strip_prefix(':')
            .map(|text| split_braced(text).0);
        match (wanted, second) {
            (true, _) => self.put(first, depth, out),
            (false, Some(second)) => self.put(second, depth, out),
            (false, None) => true,
        }
    }

    /// Appends a text with expanded macros. Appends nothing if the value of a macro is unknown.
    fn put(&self, text: &str, depth: usize, out: &mut String) -> bool {
        let mut text_out = String::new();
        let known = self.expand(text, depth + 1, &mut text_out);
        out.push_str(if known { &text_out } else { "" });
        known
    }

    /// Parses a comparison of two texts. Returns its result, and the text after the comparison.
    fn compared<'t>(&self, text: &'t str, depth: usize) -> Option<(bool, &'t str)> {
        let (left, rest) = split_braced(text);
        let rest = rest.trim_start();
        const SIGNS: [&str; 6] = ["==", "!=", "<=", ">=", "<", ">"];
        let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign))?;
        let (right, rest) = split_braced(rest[sign.len()..].trim_start());
        let full = |text: &str| {
            let mut out = String::new();
            self.expand(text, depth + 1, &mut out).then_some(out)
        };
        let (left, right) = (full(left)?, full(right)?);
        let order = match (left.parse::<i64>(), right.parse::<i64>()) {
            (Ok(left), Ok(right)) => left.cmp(&right),
            _ => left.cmp(&right),
        };
        let holds = match sign {
            "==" => order.is_eq(),
            "!=" => order.is_ne(),
            "<=" => order.is_le(),
            ">=" => order.is_ge(),
            "<" => order.is_lt(),
            _ => order.is_gt(),
        };
        Some((holds, rest))
    }
}

/// Returns the offset of the bracket that closes the bracket at the beginning.
fn find_closing(text: &str, open: char) -> Option<usize> {
    let close = if open == '{' { '}' } else { ')' };
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        if c == open {
            depth += 1;
        } else if c == close {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return Some(at);
            }
        }
    }
    None
}

/// Returns the text in braces at the beginning, without blanks at its ends, and the text after it. Without braces,
/// returns the whole text.
fn split_braced(text: &str) -> (&str, &str) {
    let start = text.trim_start();
    match start
        .starts_with('{')
        .then(|| find_closing(start, '{'))
        .flatten()
    {
        Some(end) => (start[1..end].trim(), &start[end + 1..]),
        None => (text, ""),
    }
}
