//! Helpers for ZFS in a guest: commands that must succeed, waiting for device nodes, and copying records out of the
//! guest.

use crate::CommandOutputPart;
use crate::Guest;
use crate::LabError;
use crate::record::SIZE;
use assay_host::{Host as _, Limits};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time limit of one ZFS command in an emulated guest.
pub(crate) const ZFS_COMMAND_LIMIT: Duration = Duration::from_secs(180);
/// Maximum number of attempts to create a pool. An attempt fails if the partitions appear too late.
const TRIES: usize = 3;
/// Messages of `zpool create` after it waited 30 s in vain for udev to show the new partitions. An emulated guest on a
/// busy machine may need longer; the next attempt finds the partitions.
const PARTITIONS_LATE: [&str; 2] = ["failed to detect device partitions", "was partitioned but"];

impl Guest {
    /// Runs `zpool create -f` with additional arguments, and tries again if udev was late. `limit` is the time limit of
    /// one attempt.
    ///
    /// # Errors
    /// `zpool` refuses or takes too long, or the guest has ended.
    pub fn create_pool(&self, arguments: &[&str], limit: Duration) -> Result<(), LabError> {
        let argv = [&["zpool", "create", "-f"], arguments].concat();
        let words: Vec<_> = argv.iter().map(OsStr::new).collect();
        let mut complaint = String::new();
        for _ in 0..TRIES {
            let output = self.run(&words, Limits { timeout: limit })?;
            if output.success() {
                return Ok(());
            }
            complaint = output.complaint();
            let printed = String::from_utf8_lossy(&output.stderr);
            if !PARTITIONS_LATE.iter().any(|late| printed.contains(late)) {
                break;
            }
        }
        Err(refused_path(Path::new("zpool create"), &complaint))
    }
}

/// Copies `count` records from a file or device of the guest into the host file `found`.
pub(crate) fn copy_out(
    guest: &Guest,
    path: &Path,
    records: u64,
    found: &Path,
) -> Result<(), LabError> {
    wait_for(guest, path)?;
    let mut file = File::create(found).map_err(LabError::io(found))?;
    let bytes = format!("--bytes={}", records * SIZE as u64);
    let argv = [OsStr::new("head"), OsStr::new(&bytes), path.as_os_str()];
    let (mut failed, mut said) = (None, Vec::new());
    let status = guest.stream(
        &argv,
        Some(ZFS_COMMAND_LIMIT),
        None,
        &mut |output| match output {
            CommandOutputPart::Out(bytes) => {
                if let Err(error) = file.write_all(bytes) {
                    failed.get_or_insert(error);
                }
            }
            CommandOutputPart::Err(bytes) => said.extend_from_slice(bytes),
        },
    )?;
    match (failed, status) {
        (Some(error), _) => Err(LabError::io(found)(error)),
        (None, 0) => Ok(()),
        (None, _) => Err(refused_path(path, String::from_utf8_lossy(&said).trim())),
    }
}

/// Waits for the device node of a volume, which ZFS creates with a delay.
pub(crate) fn wait_for(guest: &Guest, path: &Path) -> Result<(), LabError> {
    let deadline = Instant::now() + ZFS_COMMAND_LIMIT;
    while let Err(error) = guest.stat(path) {
        guest.watch()?;
        if Instant::now() > deadline {
            let waited = ZFS_COMMAND_LIMIT.as_secs();
            return Err(refused_path(
                path,
                &format!("not there after {waited} s: {error}"),
            ));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Runs a command that must succeed, and returns its output.
pub(crate) fn run_command(guest: &Guest, argv: &[&str]) -> Result<String, LabError> {
    let words: Vec<_> = argv.iter().map(OsStr::new).collect();
    let output = guest.run(
        &words,
        Limits {
            timeout: ZFS_COMMAND_LIMIT,
        },
    )?;
    match output.success() {
        true => Ok(output.text()),
        false => Err(refused_path(Path::new(argv[0]), &output.complaint())),
    }
}

pub(crate) fn refused_path(path: &Path, reason: &str) -> LabError {
    LabError::Refused {
        path: path.to_owned(),
        errno: 0,
        reason: reason.to_owned(),
    }
}
