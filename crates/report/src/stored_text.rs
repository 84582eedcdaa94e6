//! Bounds the texts of a stored document. Other users also write to a shared store, and a page must stay readable
//! whatever the store contains.

use assay_render::text::escape_line;
use serde_json::{Map, Value};

/// Maximum length of a text in characters; enough for a sentence with a path.
const MOST_OF_ONE: usize = 1000;
/// Maximum number of characters of all texts together.
const MOST_OF_ALL: usize = 2_000_000;
/// Minimum number of characters that each text counts towards [`MOST_OF_ALL`], because a page adds markup to every
/// text.
const LEAST_OF_ONE: usize = 20;
/// Maximum number of elements of a list that contains texts. A list of figures may be longer.
const MOST_LISTED: usize = 1000;
/// Number of elements that a list always keeps, even after [`MOST_OF_ALL`] is used up, so that tuples keep their
/// length.
const LEAST_LISTED: usize = 8;

/// Cuts long texts and names of fields, and drops the end of long lists of texts. An ellipsis marks a cut text.
pub fn bound_texts(document: &mut Value) {
    bound_value(document, &mut MOST_OF_ALL.clone());
}

/// Escapes all texts and names of fields. Each becomes a single line.
pub fn escape_texts(document: &mut Value) {
    match document {
        Value::String(text) => *text = escape_line(text),
        Value::Array(all) => all.iter_mut().for_each(escape_texts),
        Value::Object(fields) => {
            if fields.keys().any(|name| escape_line(name) != *name) {
                rename_fields(fields, |name| escape_line(&name));
            }
            fields.values_mut().for_each(escape_texts);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn bound_value(value: &mut Value, left: &mut usize) {
    match value {
        Value::String(text) => bound_text(text, left),
        Value::Array(all) => {
            if all.len() > MOST_LISTED && all.iter().any(contains_text) {
                all.truncate(MOST_LISTED);
            }
            for at in 0..all.len() {
                if *left == 0 && at >= LEAST_LISTED && contains_text(&all[at]) {
                    all.truncate(at);
                    break;
                }
                bound_value(&mut all[at], left);
            }
        }
        Value::Object(fields) => {
            if fields.keys().any(|name| name.len() > MOST_OF_ONE) {
                rename_fields(fields, |mut name| {
                    bound_text(&mut name, left);
                    name
                });
            }
            for one in fields.values_mut() {
                bound_value(one, left);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn bound_text(text: &mut String, left: &mut usize) {
    let most = MOST_OF_ONE.min(*left);
    if text.chars().nth(most).is_some() {
        let kept = text.chars().take(most.saturating_sub(1));
        *text = kept.chain(['…']).collect();
    }
    *left = left.saturating_sub(text.chars().count().max(LEAST_OF_ONE));
}

/// Renames fields. If two fields get the same name, the later one replaces the other.
fn rename_fields(fields: &mut Map<String, Value>, mut rename: impl FnMut(String) -> String) {
    let all = std::mem::take(fields).into_iter();
    *fields = all.map(|(name, value)| (rename(name), value)).collect();
}

fn contains_text(value: &Value) -> bool {
    match value {
        Value::String(_) => true,
        Value::Array(all) => all.iter().any(contains_text),
        Value::Object(fields) => fields.values().any(contains_text),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn long_texts_names_and_lists_are_cut_and_figures_stay() {
        let long = "ü".repeat(5000);
        let mut document = json!({
            &long: 1, "text": long, "short": "a\u{202e}b",
            "texts": vec![("a", 1); 5000], "figures": vec![1; 5000],
        });
        bound_texts(&mut document);
        let fields = document.as_object().unwrap();
        assert!(
            fields
                .keys()
                .all(|name| name.chars().count() <= MOST_OF_ONE)
        );
        let text = fields["text"].as_str().unwrap();
        assert!(text.chars().count() == MOST_OF_ONE && text.ends_with('…'));
        assert_eq!(fields["short"], "a\u{202e}b");
        assert_eq!(fields["texts"].as_array().unwrap().len(), MOST_LISTED);
        assert_eq!(fields["figures"].as_array().unwrap().len(), 5000);
    }

    #[test]
    fn many_long_texts_are_bounded_together() {
        let texts = vec![vec!["x".repeat(MOST_OF_ONE); MOST_LISTED]; 10];
        let mut document = json!(texts);
        bound_texts(&mut document);
        let left = document.to_string().len();
        assert!(left < MOST_OF_ALL * 2, "{left}");
        let mut document = json!(vec![vec![""; MOST_LISTED]; MOST_LISTED]);
        bound_texts(&mut document);
        let left = document.to_string().len();
        assert!(left < MOST_OF_ALL, "{left}");
    }
}
