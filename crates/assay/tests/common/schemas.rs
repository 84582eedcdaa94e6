//! Checks `--json` documents against their published schemas.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

pub fn published() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/schemas")
}

pub fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Returns the violations of a document against the schema of that name.
fn faults(name: &str, document: &Value) -> Vec<String> {
    let schema = fs::read_to_string(published().join(format!("{name}.schema.json"))).unwrap();
    let schema = jsonschema::validator_for(&json(&schema)).unwrap();
    let errors = schema.iter_errors(document);
    errors
        .map(|error| {
            let mut said = error.to_string();
            said.truncate(said.floor_char_boundary(300));
            format!("{}: {said}", error.instance_path())
        })
        .collect()
}

/// Checks a document against its schema, and that the schema rejects an unknown member in the
/// document and in each of its parts at `closed`, and a missing member.
pub fn holds(name: &str, printed: &str, closed: &[&str]) {
    let document = json(printed);
    let found = faults(name, &document);
    assert!(found.is_empty(), "{name}: {found:#?}");
    for at in [""].iter().chain(closed) {
        let mut more = document.clone();
        let part = more.pointer_mut(at).and_then(Value::as_object_mut);
        let part = part.unwrap_or_else(|| panic!("{name} has no object {at}"));
        part.insert("surprise".to_owned(), 1.into());
        assert!(!faults(name, &more).is_empty(), "{name}{at} takes anything");
    }
    let mut less = document;
    less.as_object_mut().unwrap().remove("schema");
    assert!(!faults(name, &less).is_empty(), "{name} takes less");
}
