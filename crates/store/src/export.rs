//! A run as one JSON document: complete and raw, so that another store can take it in.

use crate::StoreError;
use assay_model::run::Run;
use assay_model::{Machine, SCHEMA_VERSION, Sample};
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
    /// Id of the machine that it was measured on, where that is known. Its name stays at home.
    #[serde(default)]
    pub machine: Option<String>,
}

impl Export {
    /// The machine that it was measured on, where that is known.
    #[must_use]
    pub fn machine(&self) -> Option<Machine> {
        let id = self.machine.clone()?;
        Some(Machine { id, name: None })
    }
}

/// Writes the document.
///
/// # Errors
/// A value that JSON cannot hold.
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
