//! Finds the disks under a path, with a time limit for unresponsive file systems.

use assay_host::Host;
use assay_model::stack::Stack;
use assay_stack::{StackTarget, discover};
use assay_why::WatchSubject;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Time limit for a path.
const DEADLINE: Duration = Duration::from_secs(5);

/// Finds the disks under a path.
pub(super) fn resolve(host: &Arc<dyn Host>, path: &Path) -> anyhow::Result<WatchSubject> {
    let path = std::path::absolute(path)?;
    let (sender, answer) = channel();
    let (asked, machine) = (path.clone(), Arc::clone(host));
    // If the file system hangs, the thread is abandoned.
    std::thread::spawn(move || {
        let found = discover(machine.as_ref(), &StackTarget::Path(asked));
        let disks = found.map(|stack| list_disks(machine.as_ref(), &stack));
        let _ = sender.send(disks);
    });
    let disks = match answer.recv_timeout(DEADLINE) {
        Ok(disks) => disks?,
        Err(_) => {
            eprintln!(
                "note: {} did not answer within {} s: its file system hangs; the whole machine is watched",
                path.display(),
                DEADLINE.as_secs()
            );
            Vec::new()
        }
    };
    Ok(WatchSubject::Path {
        path: path.to_string_lossy().into_owned(),
        disks,
    })
}

/// Returns the kernel names of the block devices in a stack.
fn list_disks(host: &dyn Host, stack: &Stack) -> Vec<String> {
    let mut names: Vec<String> = stack
        .layers
        .iter()
        .filter_map(|layer| layer.place.clone())
        .filter(|place| place.starts_with("/dev"))
        .map(|place| host.realpath(&place).unwrap_or(place))
        .filter_map(|place: PathBuf| {
            Some(place.strip_prefix("/dev").ok()?.to_str()?.replace('/', "!"))
        })
        .collect();
    names.sort();
    names.dedup();
    names
}
