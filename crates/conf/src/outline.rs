//! What may be kept of a file that somebody shares.

use crate::lang::parse;
use crate::text::blank;
use crate::tree::{Block, Item};
use assay_model::change::ConfigLanguage as Language;
use std::ops::Range;

/// A piece of the new text in the place of a range of the old one.
struct Piece {
    place: Range<usize>,
    new: Vec<u8>,
    /// Whether it stands at the piece before it without a blank.
    joined: bool,
}

/// The text with nothing in it but the statements and blocks whose key or first word `keep` likes,
/// each in its line; what else the head of a block says is `left_out`. Comments go, and so does all of
/// a text that is not of this language: nobody can tell what it says.
#[must_use]
pub fn outline(
    language: Language,
    text: &[u8],
    keep: &dyn Fn(&str) -> bool,
    left_out: &str,
) -> Vec<u8> {
    let mut pieces = Vec::new();
    if let Ok(root) = parse(language, text) {
        walk(language, text, &root, keep, left_out, &mut pieces);
    }
    let mut out = Vec::new();
    let mut at = 0;
    for piece in &pieces {
        out.extend(newlines(&text[at..piece.place.start]));
        if !piece.joined
            && out
                .last()
                .is_some_and(|&byte| !blank(byte) && byte != b'\n')
        {
            out.push(b' ');
        }
        out.extend(&piece.new);
        at = piece.place.end;
    }
    out.extend(newlines(&text[at..]));
    out
}

fn newlines(text: &[u8]) -> impl Iterator<Item = u8> + '_ {
    text.iter().copied().filter(|&byte| byte == b'\n')
}

fn walk(
    language: Language,
    text: &[u8],
    block: &Block,
    keep: &dyn Fn(&str) -> bool,
    left_out: &str,
    pieces: &mut Vec<Piece>,
) {
    let as_is = |place: Range<usize>, joined| Piece {
        new: text[place.clone()].to_vec(),
        place,
        joined,
    };
    for item in &block.items {
        match item {
            Item::Directive(said) if keep(&said.key) => match said.words.is_empty() {
                // Where a statement has its words one by one, comments may stand between them.
                false => {
                    pieces.extend(said.words.iter().map(|word| as_is(word.clone(), false)));
                    pieces.push(as_is(said.span.end - 1..said.span.end, true));
                }
                true if said.inner.is_empty() => pieces.push(as_is(said.span.clone(), false)),
                true => {}
            },
            Item::Inclusion(said) if keep(&said.key) => {
                pieces.push(as_is(said.span.clone(), false));
            }
            Item::Block(block) => {
                let Some(name) = block.head.first().filter(|name| keep(name)) else {
                    continue;
                };
                let mut new = name.clone().into_bytes();
                if block.head.len() > 1 {
                    new.extend(format!(" {left_out}").into_bytes());
                }
                if block.close.is_some() {
                    new.extend(b" {");
                }
                new.extend(newlines(&text[block.span.start..block.open]));
                pieces.push(Piece {
                    place: block.span.start..block.open,
                    new,
                    joined: false,
                });
                walk(language, text, block, keep, left_out, pieces);
                pieces.extend(block.close.map(|at| as_is(at..at + 1, false)));
            }
            Item::Directive(_) | Item::Inclusion(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_and_nothing_else_does() {
        let keep = |name: &str| ["a", "http", "server", "include"].contains(&name);
        let text =
            b"# secret\na 'x # y' # secret\n z;\nhttp # secret\n{ b secret; server { a 1; }\n\
            location /secret { a 2; } include c*;\n}\nserver secret {}\n";
        let new = outline(Language::Nginx, text, &keep, "-");
        let new = String::from_utf8(new).unwrap();
        assert_eq!(
            new,
            "\na 'x # y'\nz;\nhttp {\nserver { a 1; }\ninclude c*;\n}\nserver - { }\n"
        );
        assert_eq!(outline(Language::Nginx, b"a secret; }", &keep, "-"), b"");
        let new = outline(
            Language::Ssh,
            b"Match User secret\n  a b # secret\nc d",
            &|key| ["a", "Match"].contains(&key),
            "-",
        );
        assert_eq!(new, b"Match -\na b\n");
    }
}
