//! Derives the JSON schema of a document from its type.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

/// A document, as (file name of its schema, commands that print the document, schema).
pub(in crate::verbs) type Form = (&'static str, &'static str, Schema);

/// Returns the JSON schema of a type. An object schema whose members are all known forbids additional members.
pub(in crate::verbs) fn form<T: JsonSchema>() -> Schema {
    let mut schema = SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<T>();
    if let Some(root) = schema.as_object_mut() {
        close(root, false);
    }
    schema
}

/// Forbids additional members in objects with named members. `part` is true if this schema is combined with others for
/// one object (`allOf`, `oneOf` …). The members of the other schemas are then permitted.
fn close(schema: &mut Map<String, Value>, part: bool) {
    let of_several = ["oneOf", "anyOf", "allOf"];
    let named = schema.contains_key("properties");
    let composed = of_several.iter().any(|word| schema.contains_key(*word));
    for (word, value) in &mut *schema {
        match (word.as_str(), value) {
            ("properties" | "patternProperties" | "$defs", Value::Object(all)) => {
                let each = all.values_mut().filter_map(Value::as_object_mut);
                each.for_each(|one| close(one, false));
            }
            (word, Value::Array(all)) if of_several.contains(&word) || word == "prefixItems" => {
                let part = named && word != "prefixItems";
                let each = all.iter_mut().filter_map(Value::as_object_mut);
                each.for_each(|one| close(one, part));
            }
            ("items" | "additionalProperties", Value::Object(one)) => close(one, false),
            _ => {}
        }
    }
    if named && !part && !schema.contains_key("additionalProperties") {
        let word = match composed {
            true => "unevaluatedProperties",
            false => "additionalProperties",
        };
        schema.insert(word.to_owned(), false.into());
    }
}
