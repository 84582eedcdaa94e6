//! Name, package and checks of the QEMU program.

use crate::error::LabError;
use std::io::{Error, ErrorKind};
use std::process::{Command, Stdio};

/// Name of QEMU's program.
pub(crate) const QEMU: &str = "qemu-system-x86_64";
/// Debian package that contains QEMU.
pub(crate) const PACKAGE: &str = "qemu-system-x86";

/// Converts the error of a failed start of QEMU. If the program is missing, the error contains the package to install.
pub(crate) fn start_error(error: Error) -> LabError {
    match error.kind() {
        ErrorKind::NotFound => LabError::Missing {
            tool: QEMU,
            package: PACKAGE,
        },
        _ => LabError::Qemu(error.into()),
    }
}

/// Checks that QEMU supports a CPU model (`-cpu`).
///
/// # Errors
/// The model is unknown, or QEMU is missing.
pub(crate) fn check_cpu(model: &str) -> Result<(), LabError> {
    let listed = Command::new(QEMU)
        .args(["-cpu", "help"])
        .stdin(Stdio::null())
        .output()
        .map_err(start_error)?;
    let listed = String::from_utf8_lossy(&listed.stdout);
    let name = model.split(',').next().unwrap_or_default();
    match listed.split_whitespace().any(|word| word == name) {
        true => Ok(()),
        false => Err(LabError::Qemu(
            format!("there is no CPU model {name:?}: `{QEMU} -cpu help` lists those there are")
                .into(),
        )),
    }
}
