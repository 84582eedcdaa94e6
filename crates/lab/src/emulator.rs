//! The emulator.

use crate::error::LabError;
use std::io::{Error, ErrorKind};

/// Its program.
pub(crate) const QEMU: &str = "qemu-system-x86_64";
/// Debian's package of it.
pub(crate) const PACKAGE: &str = "qemu-system-x86";

/// It could not be started at all.
pub(crate) fn start_error(error: Error) -> LabError {
    match error.kind() {
        ErrorKind::NotFound => LabError::Missing {
            tool: QEMU,
            package: PACKAGE,
        },
        _ => LabError::Qemu(error.to_string()),
    }
}
