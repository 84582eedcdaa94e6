//! Texts of a finding: the places (file lines or commands) of its facts, of which the deciding place is the first, and
//! the templates of the page with replaced placeholders.

use super::Scene;
use assay_model::finding::Seen;
use assay_model::{Fact, FactPlace, FactValue, Facts};
use serde_json::Value;

/// Returns the places of the deciding facts without duplicates. `first` comes first. Lines of files follow, because the
/// user changes lines of files.
pub(super) fn places(first: Option<&Fact>, deciding: &[&Seen]) -> Vec<FactPlace> {
    let mut places: Vec<FactPlace> = Vec::new();
    for seen in deciding {
        if !places.contains(&seen.place) {
            places.push(seen.place.clone());
        }
    }
    places.sort_by_key(|place| match place {
        FactPlace::File { line: Some(_), .. } => 0,
        FactPlace::Command { .. } | FactPlace::Interface { .. } => 1,
        FactPlace::File { .. } => 2,
        FactPlace::Words(_) => 3,
    });
    if let Some(first) = first {
        places.retain(|place| *place != first.place);
        places.insert(0, first.place.clone());
    }
    places
}

/// Returns the values that replace the placeholder `name`: one value, or the items of a list. `None` if the value is
/// unknown. `places` are the places of the finding, of which the deciding place is the first.
pub(super) fn words(
    name: &str,
    scene: &Scene<'_>,
    facts: &Facts,
    places: &[FactPlace],
) -> Option<Vec<String>> {
    if let Some(name) = name.strip_prefix("place.") {
        return value_of(name, scene, facts).map(|fact| vec![fact.place.to_string()]);
    }
    if let Some(fact) = value_of(name, scene, facts) {
        return match &fact.value {
            FactValue::Unknown(_) => None,
            FactValue::Known(Value::Array(items)) => Some(items.iter().map(shown).collect()),
            FactValue::Known(value) => Some(vec![shown(value)]),
        };
    }
    match name {
        "name" => Some(vec![scene.subject.label()]),
        "at" => Some(vec![deciding_line(places)]),
        "at.file" => Some(vec![deciding_file(places)]),
        "file" => places.iter().find_map(file_of).map(|file| vec![file]),
        _ => None,
    }
}

/// Replaces the placeholders of a text by their values. A placeholder without a value is left unchanged.
pub(super) fn fill(text: &str, words: &dyn Fn(&str) -> Option<Vec<String>>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let value = after
            .split_once('}')
            .and_then(|(name, behind)| Some((words(name)?.join(", "), behind)));
        match value {
            Some((value, behind)) => {
                out.push_str(&value);
                rest = behind;
            }
            None => {
                out.push('{');
                rest = after;
            }
        }
    }
    out + rest
}

/// Returns the place of the deciding fact, such as `FILE:LINE`. Without a place, returns "its configuration".
fn deciding_line(places: &[FactPlace]) -> String {
    places
        .first()
        .map_or_else(|| "its configuration".to_owned(), FactPlace::to_string)
}

/// Returns the file of the deciding fact. If the fact is not from a file, returns "its configuration".
fn deciding_file(places: &[FactPlace]) -> String {
    let first = places.first().and_then(file_of);
    first.unwrap_or_else(|| "its configuration".to_owned())
}

/// Returns the fact for a placeholder or for the page's `at`. The forms of a name are `parent.NAME`, `facts.KEY`, or a
/// property of the subject.
pub(super) fn value_of<'a>(name: &str, scene: &Scene<'a>, facts: &'a Facts) -> Option<&'a Fact> {
    match name.split_once('.') {
        Some(("parent", name)) => scene.parent.get(name).copied(),
        Some(("facts", key)) => facts.map.get(key),
        _ => scene.this.get(name).copied(),
    }
}

/// Returns the path if the place is a file.
fn file_of(place: &FactPlace) -> Option<String> {
    match place {
        FactPlace::File { path, .. } => Some(path.clone()),
        _ => None,
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
