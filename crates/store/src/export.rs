//! A run as one JSON document: complete and raw, so that another store can take it in.

use crate::StoreError;
use assay_model::run::Run;
use assay_model::{SCHEMA_VERSION, Sample};
use serde::{Deserialize, Serialize};

/// The document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Export {
    /// Always `run`.
    pub assay: String,
    /// Schema version.
    pub schema: u32,
    /// The run.
    pub run: Run,
    /// Its samples.
    pub samples: Vec<Sample>,
}

/// Writes the document.
///
/// # Errors
/// A value that JSON cannot hold.
pub fn to_json(run: &Run, samples: &[Sample]) -> Result<String, StoreError> {
    let export = Export {
        assay: "run".to_owned(),
        schema: SCHEMA_VERSION,
        run: run.clone(),
        samples: samples.to_vec(),
    };
    serde_json::to_string(&export).map_err(|error| StoreError::Export(error.to_string()))
}

/// Reads the document back.
///
/// # Errors
/// Something else, or of a newer schema.
pub fn from_json(text: &str) -> Result<Export, StoreError> {
    #[derive(Deserialize)]
    struct Head {
        assay: String,
        schema: u32,
    }
    let fail = |reason: String| StoreError::Export(reason);
    let head: Head = serde_json::from_str(text).map_err(|error| fail(error.to_string()))?;
    if head.assay != "run" {
        return Err(fail(format!(
            "it holds a `{}`, not a run",
            head.assay.escape_debug()
        )));
    }
    if head.schema > SCHEMA_VERSION {
        let (found, known) = (head.schema, SCHEMA_VERSION);
        return Err(fail(format!(
            "schema {found} is newer than {known}, the newest known here"
        )));
    }
    serde_json::from_str(text).map_err(|error| fail(error.to_string()))
}
