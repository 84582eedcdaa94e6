//! Finds the layers and disks under a path. A separate process accesses the path first, so that assay itself never
//! hangs. If the file system does not respond, the result contains this fact.
#![allow(
    clippy::disallowed_methods,
    reason = "starts a shell that touches the path in its own process"
)]

use assay_facts::mountinfo;
use assay_host::Host;
use assay_host::process::{Dies, Running};
use assay_model::stack::{LayerKind, Stack};
use assay_stack::{StackTarget, discover};
use assay_why::WatchSubject;
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Time limit for the file system of a path to respond.
const DEADLINE: Duration = Duration::from_secs(5);

/// Finds the layers and disks under a path.
pub(super) fn resolve(host: &Arc<dyn Host>, path: &Path) -> anyhow::Result<WatchSubject> {
    let path = std::path::absolute(path)?;
    let found = match answers(&path)? {
        true => discover_stack(host, &path)?,
        false => None,
    };
    let shown = path.to_string_lossy().into_owned();
    Ok(match found {
        Some(stack) => WatchSubject::Path {
            path: shown,
            disks: list_disks(host.as_ref(), &stack),
            layers: list_layers(&stack),
            hangs: false,
        },
        None => {
            eprintln!(
                "note: {shown} did not answer within {} s: its file system hangs; the whole machine is watched",
                DEADLINE.as_secs()
            );
            WatchSubject::Path {
                path: shown,
                disks: Vec::new(),
                layers: describe_mount(host.as_ref(), &path),
                hangs: true,
            }
        }
    })
}

/// Returns whether the file system of a path responds. A process that waits for a dead disk cannot be killed. It
/// remains until the disk responds or is removed.
fn answers(path: &Path) -> anyhow::Result<bool> {
    let mut command = Command::new("sh");
    command
        .args(["-c", "test -e \"$1\"", "sh"])
        .arg(path)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let probe = Running::start(command, Dies::OnItsOwn)?;
    if probe.wait(DEADLINE)? {
        return Ok(true);
    }
    probe.signal(Signal::KILL);
    Ok(false)
}

/// Finds the layers in a separate thread. `None` if this takes longer than `DEADLINE`.
fn discover_stack(host: &Arc<dyn Host>, path: &Path) -> anyhow::Result<Option<Stack>> {
    let (sender, answer) = channel();
    let (asked, machine) = (path.to_owned(), Arc::clone(host));
    std::thread::spawn(move || {
        let _ = sender.send(discover(machine.as_ref(), &StackTarget::Path(asked)));
    });
    match answer.recv_timeout(DEADLINE) {
        Ok(found) => Ok(Some(found?)),
        Err(_) => Ok(None),
    }
}

/// Returns the kernel names of the block devices in a stack, sorted.
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

/// Returns the kind and name of each layer, beginning with the top.
fn list_layers(stack: &Stack) -> Vec<String> {
    let shown = stack.layers.iter();
    let shown = shown.filter(|layer| layer.kind != LayerKind::Path);
    shown
        .map(|layer| format!("{} {}", layer.kind.label(), layer.name))
        .collect()
}

/// Returns the type, source and mount point of the path's file system, without accessing the path.
fn describe_mount(host: &dyn Host, path: &Path) -> Vec<String> {
    let text = host.read(Path::new("/proc/self/mountinfo"));
    let mounts = mountinfo::parse(&text.unwrap_or_default()).unwrap_or_default();
    let mount = mountinfo::of(&mounts, path);
    let describe = |mount: &mountinfo::Mount| {
        let source = mount.source.to_string_lossy();
        format!("{} {source} at {}", mount.fs_type, mount.point.display())
    };
    mount.map(describe).into_iter().collect()
}
