//! What a finding says: its places, the deciding one first, and its texts filled in.

use super::Scene;
use assay_model::finding::Seen;
use assay_model::{Fact, FactValue, Facts, Place};
use serde_json::Value;

/// Returns where the facts that decided were read: lines of files before anything else, each once, since they
/// are what somebody changes. `first` goes before all.
pub(super) fn places(first: Option<&Fact>, deciding: &[&Seen]) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for seen in deciding {
        if !places.contains(&seen.place) {
            places.push(seen.place.clone());
        }
    }
    places.sort_by_key(|place| match place {
        Place::File { line: Some(_), .. } => 0,
        Place::Command { .. } | Place::Interface { .. } => 1,
        Place::File { .. } => 2,
        Place::Words(_) => 3,
    });
    if let Some(first) = first {
        places.retain(|place| *place != first.place);
        places.insert(0, first.place.clone());
    }
    places
}

/// Fills in the placeholders of a text; what is not known stays as it is written. `places` are those of the
/// finding, the deciding one first.
pub(super) fn fill(text: &str, scene: &Scene<'_>, facts: &Facts, places: &[Place]) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let value = after.split_once('}').and_then(|(name, behind)| {
            let found = match name {
                "name" if !scene.this.contains_key("name") => Some(scene.subject.label()),
                "at" => Some(deciding_line(places)),
                "at.file" => Some(deciding_file(places)),
                _ => match name.strip_prefix("place.") {
                    Some(name) => value_of(name, scene, facts).map(|fact| fact.place.to_string()),
                    None => value_of(name, scene, facts).map(|fact| shown(&fact.value)),
                },
            };
            Some((found?, behind))
        });
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

/// Returns the line that decides as `FILE:LINE`, or where else it was read.
fn deciding_line(places: &[Place]) -> String {
    places
        .first()
        .map_or_else(|| "its configuration".to_owned(), Place::to_string)
}

/// Returns the file whose line decides.
fn deciding_file(places: &[Place]) -> String {
    match places.first() {
        Some(Place::File { path, .. }) => path.clone(),
        _ => "its configuration".to_owned(),
    }
}

/// Returns the fact that a placeholder, or `at` of a page, names.
pub(super) fn value_of<'a>(name: &str, scene: &Scene<'a>, facts: &'a Facts) -> Option<&'a Fact> {
    match name.split_once('.') {
        Some(("parent", name)) => scene.parent.get(name).copied(),
        Some(("facts", key)) => facts.map.get(key),
        _ => scene.this.get(name).copied(),
    }
}

fn shown(value: &FactValue) -> String {
    let one = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match value {
        FactValue::Known(Value::Array(items)) => {
            items.iter().map(one).collect::<Vec<_>>().join(", ")
        }
        FactValue::Known(value) => one(value),
        FactValue::Unknown(_) => "unknown".to_owned(),
    }
}
