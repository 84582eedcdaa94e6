//! Reduces a configuration file to the parts that may be stored or shared.

use crate::languages::{format_statement, parse};
use crate::text::to_lossy_text;
use crate::tree::{Block, Item};
use assay_model::change::ConfigLanguage as Language;
use std::ops::Range;

/// A range of the old text and its replacement.
struct Piece {
    place: Range<usize>,
    new: Vec<u8>,
}

/// Returns the text with only the parts that `keep` accepts, each on its original line. `keep` is called for each
/// statement, include line and block. Its arguments are the key or first word, and the value, pattern or rest of the
/// head. It returns the text that replaces the value, or `None` to omit the item; a block is omitted with its contents.
/// Comments are removed. If the text is not of this language, the result is empty.
#[must_use]
pub fn outline_text(
    language: Language,
    text: &[u8],
    keep: &dyn Fn(&str, &str) -> Option<String>,
) -> Vec<u8> {
    let mut pieces = Vec::new();
    if let Ok(root) = parse(language, text) {
        walk(language, text, &root, keep, &mut pieces);
    }
    let mut out = Vec::new();
    let mut at = 0;
    for piece in &pieces {
        let between = &text[at..piece.place.start];
        out.extend(only_newlines(between));
        let blank_between = out
            .last()
            .is_some_and(|&byte| !matches!(byte, b' ' | b'\n'));
        out.extend(blank_between.then_some(b' '));
        if matches!(out.last(), None | Some(b'\n')) {
            out.extend(trailing_indentation(between));
        }
        out.extend(&piece.new);
        at = piece.place.end;
    }
    out.extend(only_newlines(&text[at..]));
    out
}

/// Returns the blanks before the next item if nothing else precedes the item on its line. The item therefore keeps its
/// column.
fn trailing_indentation(between: &[u8]) -> &[u8] {
    let line = between
        .rsplit(|&byte| byte == b'\n')
        .next()
        .unwrap_or_default();
    match line.iter().all(|&byte| matches!(byte, b' ' | b'\t')) {
        true => line,
        false => &[],
    }
}

fn only_newlines(text: &[u8]) -> impl Iterator<Item = u8> + '_ {
    text.iter().copied().filter(|&byte| byte == b'\n')
}

fn walk(
    language: Language,
    text: &[u8],
    block: &Block,
    keep: &dyn Fn(&str, &str) -> Option<String>,
    pieces: &mut Vec<Piece>,
) {
    // The number of lines of a statement stays the same; the replacement is one line.
    let written = |mut new: String, place: Range<usize>| {
        new = new.replace(['\n', '\r'], " ");
        Piece {
            new: new
                .into_bytes()
                .into_iter()
                .chain(only_newlines(&text[place.clone()]))
                .collect(),
            place,
        }
    };
    for item in &block.items {
        match item {
            Item::Directive(said) => {
                if let Some(value) = keep(&said.key, &to_lossy_text(&said.value)) {
                    let new = format_statement(language, &said.key, &value);
                    pieces.push(written(new, said.span.clone()));
                }
            }
            Item::Inclusion(said) => {
                if let Some(pattern) = keep(&said.key, &said.pattern) {
                    let end = if language == Language::Nginx { ";" } else { "" };
                    let new = format!("{} {pattern}{end}", said.key);
                    pieces.push(written(new, said.span.clone()));
                }
            }
            Item::Block(block) => {
                let name = block.head.first().map_or("", |name| name);
                let rest = block.head.get(1..).unwrap_or_default().join(" ");
                let Some(rest) = keep(name, &rest) else {
                    continue;
                };
                let mut new = match language {
                    Language::Ini => format!("[{name}]"),
                    _ => format!("{name} {rest}").trim_end().to_owned(),
                };
                new.push_str(if block.close.is_some() { " {" } else { "" });
                pieces.push(written(new, block.span.start..block.open));
                walk(language, text, block, keep, pieces);
                pieces.extend(block.close.map(|at| written("}".to_owned(), at..at + 1)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_and_nothing_else_does() {
        let keep = |name: &str, value: &str| {
            let kept = ["a", "http", "server", "include"].contains(&name);
            kept.then(|| value.replace("secret", "-"))
        };
        let text =
            b"# secret\na 'x # y' # secret\n z;\nhttp # secret\n{ b secret; server { a 1; }\n\
            location /secret { a 2; } include c*;\n}\nserver secret {}\n";
        let new = outline_text(Language::Nginx, text, &keep);
        let new = String::from_utf8(new).unwrap();
        assert_eq!(
            new,
            "\na 'x # y' z;\n\nhttp {\nserver { a 1; }\ninclude c*;\n}\nserver - { }\n"
        );
        assert_eq!(
            new.lines().count(),
            text.split(|&byte| byte == b'\n').count() - 1
        );
        assert_eq!(outline_text(Language::Nginx, b"a secret; }", &keep), b"");
        let keep = |key: &str, value: &str| match key {
            "Match" => Some("-".to_owned()),
            "a" => Some(value.to_owned()),
            _ => None,
        };
        let new = outline_text(
            Language::Ssh,
            b"Match User secret\n  a b # secret\nc d",
            &keep,
        );
        assert_eq!(new, b"Match -\n  a b\n");
    }
}
