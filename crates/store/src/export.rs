//! Exports a run as one complete JSON document that another store can import.

use crate::StoreError;
use assay_model::run::Run;
use assay_model::{Machine, SCHEMA_VERSION, Sample};
use serde::{Deserialize, Serialize};

/// Exported document: a run with its samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Export {
    /// Kind of the document; always `run`.
    pub assay: String,
    /// Version of the document's schema.
    pub schema: u32,
    /// Description of the run, without its samples.
    pub run: Run,
    /// Samples of the run, in the order of its plan.
    pub samples: Vec<Sample>,
    /// Id of the machine; `None` if unknown. The machine's name is not exported.
    #[serde(default)]
    pub machine: Option<String>,
}

impl Export {
    /// Returns the machine of the run; `None` if unknown.
    #[must_use]
    pub fn machine(&self) -> Option<Machine> {
        let id = self.machine.clone()?;
        Some(Machine { id, name: None })
    }
}

/// Encodes a run as a document.
///
/// # Errors
/// JSON cannot represent a value.
pub fn to_json(
    run: &Run,
    samples: &[Sample],
    machine: Option<&Machine>,
) -> Result<String, StoreError> {
    let export = Export {
        assay: "run".to_owned(),
        schema: SCHEMA_VERSION,
        run: run.clone(),
        samples: samples.to_vec(),
        machine: machine.map(|machine| machine.id.clone()),
    };
    serde_json::to_string(&export).map_err(|error| StoreError::Export(error.into()))
}

/// Parses a document.
///
/// # Errors
/// The text is not an export, or has a newer schema.
pub fn from_json(text: &str) -> Result<Export, StoreError> {
    #[derive(Deserialize)]
    struct Head {
        assay: String,
        schema: u32,
    }
    let fail = |reason: String| StoreError::Export(reason.into());
    let broken = |error: serde_json::Error| StoreError::Export(error.into());
    let head: Head = serde_json::from_str(text).map_err(broken)?;
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
    let export: Export = serde_json::from_str(text).map_err(broken)?;
    match &export.machine {
        Some(id) if !Machine::is_id(id) => Err(fail(format!(
            "the machine `{}` is not 32 hexadecimal digits",
            id.escape_debug()
        ))),
        _ => Ok(export),
    }
}
