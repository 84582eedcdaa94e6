//! A measured ladder as one JSON document: that of the run, and the waterfalls.

use super::View;
use serde_json::Value;

/// Times are in nanoseconds; steps and paths name rungs by their index in `run.ladder.rungs`.
#[must_use]
pub fn json(view: &View) -> Value {
    let mut document = crate::json::run(view.run, view.judged, view.samples);
    if let Value::Object(map) = &mut document {
        let falls = serde_json::to_value(view.falls).unwrap_or_default();
        map.insert("waterfalls".to_owned(), falls);
    }
    document
}
