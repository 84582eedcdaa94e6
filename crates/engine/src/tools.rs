//! What loads need besides their place: fio, and passwords. It is found before anything begins.

use crate::EngineError;
use assay_host::Host;
use assay_instruments::fio::Fio;
use assay_instruments::imap::Secret;
use assay_model::Load;
use std::collections::BTreeMap;
use std::path::Path;

/// What the loads of a plan need.
#[derive(Default)]
pub struct Tools {
    /// For loads of fio.
    pub fio: Option<Fio>,
    /// By the file that holds them; they reach no sample and no report.
    passwords: BTreeMap<String, Secret>,
}

impl Tools {
    /// fio alone.
    #[must_use]
    pub fn fio(fio: Fio) -> Self {
        Self {
            fio: Some(fio),
            ..Self::default()
        }
    }

    /// Finds what these loads need; `fio` is the user's, when it is not the one on PATH.
    ///
    /// # Errors
    /// fio is missing, or a password cannot be read.
    pub fn find<'a>(
        host: &dyn Host,
        fio: Option<&Path>,
        loads: impl IntoIterator<Item = &'a Load>,
    ) -> Result<Self, EngineError> {
        let mut found = Self::default();
        for load in loads {
            match load {
                Load::Fio { .. } if found.fio.is_none() => found.fio = Some(Fio::find(host, fio)?),
                Load::Imap { password_file, .. } => {
                    let secret = password(host, password_file)?;
                    found.passwords.insert(password_file.clone(), secret);
                }
                _ => {}
            }
        }
        Ok(found)
    }

    /// The password of a file that was read.
    pub(crate) fn password(&self, file: &str) -> Option<&Secret> {
        self.passwords.get(file)
    }
}

/// The first line of the user's file.
fn password(host: &dyn Host, file: &str) -> Result<Secret, EngineError> {
    let fail = |reason: String| EngineError::Password {
        file: file.to_owned(),
        reason,
    };
    let path = std::path::absolute(file).map_err(|error| fail(error.to_string()))?;
    let bytes = host.read(&path).map_err(|error| fail(error.reason()))?;
    let line = bytes.split(|byte| *byte == b'\n').next();
    match line.unwrap_or_default() {
        [] => Err(fail(
            "its first line is empty; write the password there".to_owned(),
        )),
        line => Ok(Secret::new(line)),
    }
}
