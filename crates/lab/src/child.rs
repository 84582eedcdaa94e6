//! QEMU processes, found by where they work.

use rustix::process::Pid;
use std::fs;
use std::path::Path;

/// Processes of QEMU whose working directory is `dir`: a guest's QEMU works in its directory, so
/// that it is found without a number that might have been given to another process since.
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
