//! One page of the catalogue: front matter and sections.
//!
//! ```text
//! +++
//! title = "…"            # the fields of assay_model::Advice, without id, domain and page:
//! statement = "…"        # the file's path says these
//! …
//! [trial]
//! …
//! +++
//! ## Claim
//! …
//! ## Sources
//! ```

use crate::check;
use crate::nearest_name;
use assay_model::advice::{
    ActsOn, Advice, Condition, Literature, Moderator, Parameter, Risk, Source,
};
use assay_model::finding::Check;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Sections of a page in order. Each must exist exactly once and must not be empty.
pub const SECTIONS: [&str; 6] = [
    "Claim",
    "Why it may help",
    "When it does not apply",
    "How we test",
    "Undo",
    "Sources",
];

const FENCE: &str = "+++";

/// Fields of the front matter, from which suggestions for unknown fields are made.
const FIELDS: [&str; 13] = [
    "title",
    "statement",
    "synonyms",
    "source",
    "when",
    "predicts",
    "risk",
    "literature",
    "parameters",
    "trial",
    "acts",
    "moderators",
    "check",
];

/// Error in a page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}:{line}: {message}")]
pub struct PageError {
    /// Path of the file.
    pub path: String,
    /// Line number, counted from 1.
    pub line: usize,
    /// Description of the error, and what was expected.
    pub message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FrontMatter {
    title: String,
    statement: String,
    #[serde(default)]
    synonyms: Vec<String>,
    source: Source,
    #[serde(default)]
    when: Vec<Condition>,
    predicts: String,
    risk: Risk,
    literature: Literature,
    #[serde(default)]
    parameters: BTreeMap<String, Parameter>,
    #[serde(default)]
    trial: Option<toml::Table>,
    #[serde(default)]
    acts: Option<ActsOn>,
    #[serde(default)]
    moderators: Vec<Moderator>,
    #[serde(default)]
    check: Option<Check>,
}

impl FrontMatter {
    fn into_advice(self, domain: &str, id: &str, page: &str) -> Advice {
        Advice {
            id: id.to_owned(),
            domain: domain.to_owned(),
            title: self.title,
            statement: self.statement,
            source: self.source,
            when: self.when,
            predicts: self.predicts,
            risk: self.risk,
            literature: self.literature,
            parameters: self.parameters,
            trial: self.trial,
            acts: self.acts,
            moderators: self.moderators,
            check: self.check,
            synonyms: self.synonyms,
            page: page.to_owned(),
        }
    }
}

/// Parses a built-in page, whose front matter the build script converted to JSON. Does not validate the page.
pub(crate) fn read_builtin(path: &str, front: &str, page: &str) -> Result<Advice, PageError> {
    let (domain, id) = names(path);
    let matter: FrontMatter = serde_json::from_str(front).map_err(|error| PageError {
        path: path.to_owned(),
        line: 1,
        message: error.to_string(),
    })?;
    Ok(matter.into_advice(domain, id, page))
}

/// Parses a page, and validates its sections, conditions, placeholders and trial as far as possible without a machine.
///
/// `path` is the path of the file for messages. Its last two components, `DOMAIN/ID.md`, contain the domain and the id.
///
/// # Errors
/// The first error, with its line.
pub fn parse(path: &str, text: &str) -> Result<Advice, PageError> {
    let (domain, id) = names(path);
    read(path, domain, id, text)
}

/// Parses a page at any path. Its domain is `own`, and its id is the name of the file.
///
/// # Errors
/// As [`parse`].
pub fn parse_own(path: &str, text: &str) -> Result<Advice, PageError> {
    let (_, id) = names(path);
    read(path, "own", id, text)
}

fn read(path: &str, domain: &str, id: &str, text: &str) -> Result<Advice, PageError> {
    let fault = |line: usize, message: String| PageError {
        path: path.to_owned(),
        line,
        message,
    };
    for name in [domain, id] {
        plain(name).map_err(|message| fault(1, message))?;
    }
    let (front, first_of_page) = split(text).map_err(|(line, message)| fault(line, message))?;
    let matter: FrontMatter = toml::from_str(front.text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        fault(front.line_at(at), front_matter_message(&error))
    })?;
    let page = text
        .lines()
        .skip(first_of_page - 1)
        .collect::<Vec<_>>()
        .join("\n");
    sections(&page, first_of_page).map_err(|(line, message)| fault(line, message))?;
    let advice = matter.into_advice(domain, id, page.trim());
    check::check(&advice).map_err(|found| fault(front.line_of(&found.path), found.message))?;
    Ok(advice)
}

/// Returns the domain and the id in `…/DOMAIN/ID.md`. A missing part is empty.
fn names(path: &str) -> (&str, &str) {
    let mut parts = path.rsplit('/');
    let id = parts.next().and_then(|name| name.strip_suffix(".md"));
    (parts.next().unwrap_or_default(), id.unwrap_or_default())
}

/// Checks that the name of a domain or a page has only permitted characters.
fn plain(name: &str) -> Result<(), String> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    match name {
        "" => Err("a piece of advice is a file DOMAIN/ID.md".to_owned()),
        name if name.chars().all(good) => Ok(()),
        name => Err(format!(
            "`{name}` cannot name a piece of advice: use a-z, 0-9 and `-`"
        )),
    }
}

/// Text of the front matter, and the number of its first line.
struct Front<'a> {
    text: &'a str,
    first_line: usize,
}

impl Front<'_> {
    fn line_at(&self, offset: usize) -> usize {
        let before = self.text.get(..offset).unwrap_or(self.text);
        self.first_line + before.matches('\n').count()
    }

    /// Returns the line of a key, which is given as a path from the root. If the key is missing, returns the line of
    /// its nearest existing ancestor.
    fn line_of(&self, path: &[String]) -> usize {
        let Ok(table) = toml::de::DeTable::parse(self.text) else {
            return self.first_line;
        };
        let mut line = self.line_at(table.span().start);
        let mut table = Some(table.get_ref());
        let mut items: Option<&toml::de::DeArray<'_>> = None;
        for step in path {
            let (span, value) = match (table, items) {
                (Some(within), _) => {
                    let Some((key, value)) = within.get_key_value(step.as_str()) else {
                        break;
                    };
                    (key.span(), value.get_ref())
                }
                (None, Some(within)) => {
                    let Some(value) = step.parse().ok().and_then(|at: usize| within.get(at)) else {
                        break;
                    };
                    (value.span(), value.get_ref())
                }
                (None, None) => break,
            };
            line = self.line_at(span.start);
            table = value.as_table();
            items = value.as_array();
        }
        line
    }
}

/// Splits a page into the front matter and the rest, with the line number of the rest, counted from 1.
fn split(text: &str) -> Result<(Front<'_>, usize), (usize, String)> {
    let opening = || {
        (
            1,
            format!("a page begins with a line `{FENCE}` and its front matter in TOML"),
        )
    };
    let first = text.split_inclusive('\n').next().ok_or_else(opening)?;
    if first.trim_end() != FENCE {
        return Err(opening());
    }
    let body = &text[first.len()..];
    let mut offset = 0;
    for (number, line) in body.split_inclusive('\n').enumerate() {
        if line.trim_end() == FENCE {
            let front = Front {
                text: &body[..offset],
                first_line: 2,
            };
            return Ok((front, number + 3));
        }
        offset += line.len();
    }
    Err((1, format!("no second line `{FENCE}` ends the front matter")))
}

/// Formats an error message of the TOML parser. For an unknown field, adds the most similar field.
fn front_matter_message(error: &toml::de::Error) -> String {
    let message = error.message();
    let unknown = message
        .strip_prefix("unknown field `")
        .and_then(|rest| rest.split('`').next());
    match unknown {
        Some("id" | "domain" | "page") => {
            "`id`, `domain` and `page` are not written here: the file's path and text say them"
                .to_owned()
        }
        Some(name) => format!(
            "{message}{}",
            nearest_name::hint(name, FIELDS.into_iter().chain(expected(message)))
        ),
        None => message.to_owned(),
    }
}

/// Returns the names in the part "expected one of `a`, `b`" of a serde message.
fn expected(message: &str) -> impl Iterator<Item = &str> {
    let names = message
        .split_once(", expected ")
        .map_or("", |(_, rest)| rest);
    names.split('`').skip(1).step_by(2)
}

/// Checks that all sections exist in the right order and are not empty. `first` is the line number of the first line of
/// the text.
fn sections(page: &str, first: usize) -> Result<(), (usize, String)> {
    let mut found: Vec<(usize, &str, bool)> = Vec::new();
    let mut in_code = false;
    for (number, line) in page.lines().enumerate() {
        let line_number = first + number;
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        let heading = line.strip_prefix("## ").filter(|_| !in_code);
        match (heading, found.last_mut()) {
            (Some(name), _) => {
                let name = name.trim();
                let Some(expected) = SECTIONS.get(found.len()) else {
                    return Err((
                        line_number,
                        format!("no section follows `{}`", SECTIONS[SECTIONS.len() - 1]),
                    ));
                };
                if name != *expected {
                    return Err((
                        line_number,
                        format!(
                            "section `{expected}` was expected here, not `{name}`; the sections are {}",
                            nearest_name::list(SECTIONS)
                        ),
                    ));
                }
                found.push((line_number, name, false));
            }
            (None, Some((_, _, filled))) => *filled |= !line.trim().is_empty(),
            (None, None) if line.trim().is_empty() => {}
            (None, None) => {
                return Err((
                    line_number,
                    format!("the page begins with `## {}`", SECTIONS[0]),
                ));
            }
        }
    }
    if let Some((line, name, _)) = found.iter().find(|(_, _, filled)| !filled) {
        return Err((*line, format!("section `{name}` is empty")));
    }
    match SECTIONS.get(found.len()) {
        None => Ok(()),
        Some(missing) => Err((
            first + page.lines().count(),
            format!("section `{missing}` is missing"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tests::PAGE;
    use proptest::prelude::*;

    fn message(text: &str) -> String {
        parse("images/test.md", text).unwrap_err().to_string()
    }

    #[test]
    fn a_whole_page() {
        let advice = parse("x/images/test.md", PAGE).unwrap();
        assert_eq!(
            (advice.domain.as_str(), advice.id.as_str()),
            ("images", "test")
        );
        assert!(advice.page.starts_with("## Claim"), "{}", advice.page);
        assert_eq!(advice.when.len(), 1);
        let windows = PAGE.replace('\n', "\r\n");
        assert_eq!(parse("images/test.md", &windows).unwrap().id, "test");
    }

    #[test]
    fn errors_name_line_and_nearest() {
        for (from, to, expected) in [
            (
                "title =",
                "titel =",
                "images/test.md:2: unknown field `titel`",
            ),
            ("title =", "titel =", "did you mean `title`?"),
            ("title =", "id = \"x\"\ntitle =", "the file's path"),
            (
                "standing = \"conditional\"",
                "standing = \"maybe\"",
                "images/test.md:15: unknown variant `maybe`",
            ),
            (
                "## Undo",
                "## Revert",
                "section `Undo` was expected here, not `Revert`",
            ),
            ("## Sources\n\nNone.", "", "section `Sources` is missing"),
            ("## Undo\n\nNothing.", "## Undo", "section `Undo` is empty"),
            (
                "+++\n## Claim",
                "\n## Claim",
                "images/test.md:1: no second line `+++`",
            ),
            ("+++\ntitle", "title", "begins with a line `+++`"),
            (
                "\"tool.fio\" in facts",
                "\"tool.fio\" im facts",
                "images/test.md:8: condition",
            ),
            (
                "kind = \"sysctl\"",
                "kind = \"sysctrl\"",
                "images/test.md:30: ",
            ),
            ("{swap}", "{swop}", "did you mean `swap`?"),
            ("metric = \"p99\"", "metric = \"p98\"", "p99.9"),
        ] {
            let text = PAGE.replacen(from, to, 1);
            assert_ne!(text, PAGE, "{from}");
            let found = message(&text);
            assert!(found.contains(expected), "{from} -> {to}: {found}");
        }
        assert!(
            parse("Images/Test.md", PAGE)
                .unwrap_err()
                .to_string()
                .contains("a-z")
        );
        assert!(
            parse("test.txt", PAGE)
                .unwrap_err()
                .to_string()
                .contains("DOMAIN/ID.md")
        );
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in any::<String>(), cut in 0usize..2000) {
            let _ = parse("a/b.md", &text);
            let cut = cut.min(PAGE.len());
            if PAGE.is_char_boundary(cut) {
                prop_assert!(parse("a/b.md", &PAGE[..cut]).is_err() || PAGE[cut..].trim().is_empty()
                    || PAGE[..cut].contains("## Sources\n\nN"));
            }
        }
    }
}
