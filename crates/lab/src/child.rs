//! Finds QEMU processes by their working directory.

use rustix::process::Pid;
use std::fs;
use std::path::Path;

/// Returns the QEMU processes whose working directory is `dir`. A guest's QEMU works in the guest's directory,
/// so it is found without a process number, which may have been reused.
pub(crate) fn working_in(dir: &Path) -> Vec<Pid> {
    let Ok(dir) = dir.canonicalize() else {
        return Vec::new();
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let there = fs::read_link(entry.path().join("cwd")).ok()? == dir;
            let command = fs::read(entry.path().join("cmdline")).ok()?;
            let program = command.split(|byte| *byte == 0).next()?;
            let qemu = program
                .windows(b"qemu-system".len())
                .any(|word| word == b"qemu-system");
            (there && qemu).then(|| Pid::from_raw(pid)).flatten()
        })
        .collect()
}
