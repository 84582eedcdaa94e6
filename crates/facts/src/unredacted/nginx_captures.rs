//! Determines which characters a group of a regular expression can capture. For example, `(.*)` captures any host, and
//! `([a-z]+)` captures no text with a dot.

use regex_syntax::hir::{Capture, Class, Hir, HirKind};

/// Returns whether a group can capture a character. Returns `None` if the expression has no such group, or uses syntax
/// that only PCRE supports.
///
/// `group` is the number or the name of the group, as after the `$` of its variable.
pub(super) fn can_capture(pattern: &str, group: &str, letter: char) -> Option<bool> {
    let tree = regex_syntax::parse(pattern).ok()?;
    find_group(&tree, group).map(|group| matches_letter(&group.sub, letter))
}

fn find_group<'a>(tree: &'a Hir, group: &str) -> Option<&'a Capture> {
    let is_group = |capture: &Capture| match group.parse::<u32>() {
        Ok(number) => capture.index == number,
        Err(_) => capture.name.as_deref() == Some(group),
    };
    if let HirKind::Capture(capture) = tree.kind()
        && is_group(capture)
    {
        return Some(capture);
    }
    tree.kind()
        .subs()
        .iter()
        .find_map(|sub| find_group(sub, group))
}

/// Returns whether a character class in the expression contains a character. Literal characters do not count, because
/// the client cannot choose them.
fn matches_letter(tree: &Hir, letter: char) -> bool {
    match tree.kind() {
        HirKind::Class(Class::Unicode(class)) => class
            .ranges()
            .iter()
            .any(|range| range.start() <= letter && letter <= range.end()),
        HirKind::Class(Class::Bytes(class)) => class.ranges().iter().any(|range| {
            u32::from(range.start()) <= letter.into() && u32::from(letter) <= range.end().into()
        }),
        kind => kind.subs().iter().any(|sub| matches_letter(sub, letter)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_of_groups() {
        for (pattern, group, letter, expected) in [
            ("^/p/(.*)$", "1", '.', Some(true)),
            ("^/p/([a-z]+)/(.*)$", "1", '.', Some(false)),
            ("^/p/([a-z]+)/(.*)$", "2", '/', Some(true)),
            ("^/p/(?<h>[^/]+)/", "h", '.', Some(true)),
            ("^/p/(?<h>[^/]+)/", "h", '/', Some(false)),
            ("^/p/(?P<h>[\\w.-]+)$", "h", '.', Some(true)),
            ("^/p/(img\\d\\.shop)/", "1", '.', Some(false)),
            ("^/p/((?:a|b.)+)$", "1", '.', Some(true)),
            ("^/p/(x)$", "2", '.', None),
            ("^/p/(?=x)(.*)$", "1", '.', None),
        ] {
            assert_eq!(
                can_capture(pattern, group, letter),
                expected,
                "{pattern} {group}"
            );
        }
    }
}
