//! Checks before a destructive write that nothing uses a block device. A check that fails counts as a use.
//!
//! Between this check and the first write, another program may open the device, or the path may come to refer to
//! another device. A caller that writes should therefore keep the device open with `O_EXCL` and check the open
//! descriptor ([`device_use_held`]).

use crate::block::{Device, everything_above};
use crate::mountinfo::{self, MOUNTINFO};
use crate::signatures;
use assay_host::{CommandOutput, DeviceNumber, FileKind, Host, HostError, Limits};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// Process id of init, which the kernel starts first.
const INIT: &str = "1";
/// Error number for "permission denied" (errno(3)).
const EACCES: i32 = 13;

/// Reasons why a device must not be overwritten.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {}", path.display(), reasons.join("; "))]
pub struct DeviceInUse {
    /// The path that was checked.
    pub path: PathBuf,
    /// All reasons as text, including each check that failed.
    pub reasons: Vec<String>,
    /// The reasons that only report a failed check. They suffice to refuse the write, but do not prove that the device
    /// is in use.
    pub unchecked: Vec<String>,
}

impl DeviceInUse {
    fn unchecked(&mut self, why: &str) {
        let reason = format!("could not be checked: {why}");
        self.reasons.push(reason.clone());
        self.unchecked.push(reason);
    }
}

/// Checks that the device at `path` may be overwritten. `path` must be the device node itself, not a link. The device
/// must be writable and must contain neither partitions nor a known signature. The device must not be mounted, used as
/// swap, part of another device, or open in a process.
///
/// # Errors
/// All reasons against overwriting. A check that fails is a reason.
pub fn device_use(host: &dyn Host, path: &Path) -> Result<(), DeviceInUse> {
    look(host, path, None)
}

/// Checks like [`device_use`], for a device that the caller has opened with `O_EXCL`. `through` is the path of the
/// caller's descriptor, `/proc/PID/fd/N`. All checks use the device of the descriptor, and `path` must still refer to
/// this device.
///
/// # Errors
/// As [`device_use`].
pub fn device_use_held(host: &dyn Host, path: &Path, through: &Path) -> Result<(), DeviceInUse> {
    look(host, path, Some(through))
}

fn look(host: &dyn Host, path: &Path, held: Option<&Path>) -> Result<(), DeviceInUse> {
    let checks: [Look; 11] = [
        writable,
        partitions,
        holders,
        mounts,
        btrfs,
        swaps,
        find_loops,
        blkid,
        wipefs,
        open_handles,
        exclusive,
    ];
    let mut against = DeviceInUse {
        path: path.to_owned(),
        reasons: Vec::new(),
        unchecked: Vec::new(),
    };
    match identify(host, path, held) {
        Ok(Ok(device)) => match everything_above(host, &device) {
            Ok(above) => {
                let numbers = above
                    .iter()
                    .map(|device| (device.number, device.name.clone()))
                    .collect();
                let check = Check {
                    host,
                    path: held.unwrap_or(path),
                    held,
                    device: &device,
                    above: &above,
                    numbers,
                };
                for look in checks {
                    match look(&check) {
                        Ok(found) => against.reasons.extend(found),
                        Err(reason) => against.unchecked(&reason),
                    }
                }
            }
            Err(error) => against.unchecked(&words(error)),
        },
        Ok(Err(reason)) => against.reasons.push(reason),
        Err(error) => against.unchecked(&words(error)),
    }
    match against.reasons.is_empty() {
        true => Ok(()),
        false => Err(against),
    }
}

struct Check<'a> {
    host: &'a dyn Host,
    /// Path by which the device is read: the caller's descriptor, or the path of the device if there is no descriptor.
    path: &'a Path,
    /// The caller's descriptor, opened with `O_EXCL`.
    held: Option<&'a Path>,
    device: &'a Device,
    /// The device, its partitions, and all devices that are built on them, such as RAID arrays and volumes.
    above: &'a BTreeSet<Device>,
    numbers: BTreeMap<DeviceNumber, String>,
}

impl Check<'_> {
    /// Returns `what` if `name` is the device itself. For a device on top of it, returns a sentence with the name of
    /// that device.
    fn about(&self, name: &str, what: &str) -> String {
        match name == self.device.name {
            true => what.to_owned(),
            false => format!("{name}, which is part of it, is {what}"),
        }
    }
}

/// Returns the device, or the reason why a device at this path must not be overwritten.
fn identify(
    host: &dyn Host,
    path: &Path,
    held: Option<&Path>,
) -> Result<Result<Device, String>, HostError> {
    match host.realpath(path) {
        Ok(real) if real == path => {}
        Ok(real) => {
            return Ok(Err(format!(
                "a link to {0}: name the device itself, {0}",
                real.display()
            )));
        }
        Err(error) if error.is_absent() => return Ok(Err("no such device".to_owned())),
        Err(error) => return Err(error),
    }
    let Some(named) = Device::of_node(host, path)? else {
        return Ok(Err("not a block device".to_owned()));
    };
    let Some(held) = held else {
        return Ok(Ok(named));
    };
    Ok(match Device::of_node(host, held)? {
        Some(device) if device == named => Ok(device),
        _ => Err("another device has its name by now".to_owned()),
    })
}

type Found = Result<Vec<String>, String>;
type Look = fn(&Check<'_>) -> Found;

fn words(error: HostError) -> String {
    error.to_string()
}

fn writable(check: &Check<'_>) -> Found {
    let mut found = Vec::new();
    let path = check.device.dir.join("ro");
    match check.host.read_text(&path).map_err(words)?.trim() {
        "0" => {}
        "1" => found.push("read-only".to_owned()),
        other => {
            return Err(format!(
                "{}: expected 0 or 1, found `{other}`",
                path.display()
            ));
        }
    }
    if check.device.size(check.host).map_err(words)? == 0 {
        found.push("of size 0 (no medium, or not set up)".to_owned());
    }
    Ok(found)
}

fn partitions(check: &Check<'_>) -> Found {
    let found = check.device.partitions(check.host).map_err(words)?;
    let names: Vec<_> = found.iter().map(|device| device.name.as_str()).collect();
    Ok(match names.is_empty() {
        true => Vec::new(),
        false => vec![format!("partitioned: {}", names.join(", "))],
    })
}

fn holders(check: &Check<'_>) -> Found {
    let mut found = Vec::new();
    let disk = check.device.disk(check.host).map_err(words)?;
    for device in check.above.iter().chain(&disk) {
        for holder in device.holders(check.host).map_err(words)? {
            let kind = match check.host.read_text(&holder.dir.join("dm/uuid")) {
                Ok(uuid) => format!(" ({})", crate::dm::describe(uuid.trim())),
                Err(_) if holder.name.starts_with("md") => " (Linux RAID)".to_owned(),
                Err(_) => String::new(),
            };
            found.push(check.about(&device.name, &format!("in use by {}{kind}", holder.name)));
        }
    }
    Ok(found)
}

fn mounts(check: &Check<'_>) -> Found {
    let text = check.host.read(Path::new(MOUNTINFO)).map_err(words)?;
    let mounts = mountinfo::parse(&text).map_err(|line| {
        format!("{MOUNTINFO}:{line}: expected a mount as in proc_pid_mountinfo(5)")
    })?;
    let disk = check.device.disk(check.host).map_err(words)?;
    let mut found = Vec::new();
    for mount in &mounts {
        let mut number = mount.dev;
        // The device number of btrfs in mountinfo is anonymous; the source is one of the members.
        if number.major == 0 && mount.source.as_bytes().starts_with(b"/dev/") {
            match check.host.stat(Path::new(&mount.source)) {
                Ok(stat) => number = stat.rdev,
                Err(error) if error.is_absent() => {}
                Err(error) => return Err(words(error)),
            }
        }
        let at = format!("mounted at {}", mount.point.display());
        if let Some(name) = check.numbers.get(&number) {
            found.push(check.about(name, &at));
        } else if let Some(disk) = disk.as_ref().filter(|disk| disk.number == number) {
            found.push(format!("part of {}, which is {at}", disk.name));
        }
    }
    found.dedup();
    Ok(found)
}

/// Finds a mounted btrfs that has the device as a member, even if another member is the source of
/// the mount.
fn btrfs(check: &Check<'_>) -> Found {
    let base = Path::new("/sys/fs/btrfs");
    let file_systems = match check.host.list(base) {
        Ok(names) => names,
        Err(error) if error.is_absent() => return Ok(Vec::new()),
        Err(error) => return Err(words(error)),
    };
    let mut found = Vec::new();
    for name in file_systems {
        let members = match check.host.list(&base.join(&name).join("devices")) {
            Ok(members) => members,
            // `features` is a directory beside the file systems.
            Err(error) if error.is_absent() => continue,
            Err(error) => return Err(words(error)),
        };
        for device in check
            .above
            .iter()
            .filter(|device| members.iter().any(|member| *member == device.name.as_str()))
        {
            found.push(check.about(&device.name, "a member of a mounted btrfs"));
        }
    }
    Ok(found)
}

fn swaps(check: &Check<'_>) -> Found {
    let text = match check.host.read(Path::new("/proc/swaps")) {
        Ok(text) => text,
        // A kernel without swap support.
        Err(error) if error.is_absent() => return Ok(Vec::new()),
        Err(error) => return Err(words(error)),
    };
    let mut found = Vec::new();
    for line in text
        .split(|&byte| byte == b'\n')
        .skip(1)
        .filter(|line| !line.is_empty())
    {
        let name = line
            .split(|byte| matches!(byte, b' ' | b'\t'))
            .next()
            .unwrap_or_default();
        let path = PathBuf::from(std::ffi::OsString::from_vec(mountinfo::unescape(name)));
        let stat = match check.host.stat(&path) {
            Ok(stat) => stat,
            // The path is deleted or not visible here; the exclusive open detects a swap device
            // anyway.
            Err(error) if error.is_absent() => continue,
            Err(error) => return Err(words(error)),
        };
        let number = if stat.kind == FileKind::BlockDevice {
            stat.rdev
        } else {
            stat.dev
        };
        if let Some(device) = check.numbers.get(&number) {
            found.push(check.about(device, "used as swap"));
        }
    }
    Ok(found)
}

/// Finds loop devices that are backed by the device. Opening the device with `O_EXCL` does not detect them, because the
/// kernel does not open a backing device exclusively.
fn find_loops(check: &Check<'_>) -> Found {
    let mut found = Vec::new();
    let base = Path::new("/sys/block");
    for name in check.host.list(base).map_err(words)? {
        if !name.as_bytes().starts_with(b"loop") {
            continue;
        }
        let file = match check
            .host
            .read_text(&base.join(&name).join("loop/backing_file"))
        {
            Ok(file) => file,
            Err(error) if error.is_absent() => continue,
            Err(error) => return Err(words(error)),
        };
        let stat = match check.host.stat(Path::new(file.trim_end_matches('\n'))) {
            Ok(stat) => stat,
            Err(error) if error.is_absent() => continue,
            Err(error) => return Err(words(error)),
        };
        if stat.kind == FileKind::BlockDevice
            && let Some(device) = check.numbers.get(&stat.rdev)
        {
            found.push(check.about(device, &format!("behind {}", name.to_string_lossy())));
        }
    }
    Ok(found)
}

fn ask(check: &Check<'_>, argv: &[&str]) -> Result<CommandOutput, String> {
    let argv: Vec<&OsStr> = argv
        .iter()
        .map(OsStr::new)
        .chain([check.path.as_os_str()])
        .collect();
    check
        .host
        .run(&argv, Limits::default())
        .map_err(|error| match error.is_absent() {
            true => format!("{error} (it is in the package util-linux)"),
            false => error.to_string(),
        })
}

fn blkid(check: &Check<'_>) -> Found {
    let found = signatures::blkid(&ask(check, &["blkid", "-p", "-o", "export"])?)?;
    Ok(match found.is_empty() {
        true => Vec::new(),
        false => vec![format!("not empty: blkid finds {}", found.join(" "))],
    })
}

fn wipefs(check: &Check<'_>) -> Found {
    let found = signatures::wipefs(&ask(check, &["wipefs", "-n", "-p"])?)?;
    Ok(match found.is_empty() {
        true => Vec::new(),
        false => vec![format!("not empty: wipefs finds {}", found.join(", "))],
    })
}

/// Finds processes that have the device, or a device on top of it, open. `O_EXCL` detects only processes that opened
/// the device exclusively. Some sandboxes hide the descriptors of a process even from root.
fn open_handles(check: &Check<'_>) -> Found {
    let proc = Path::new("/proc");
    let (mut found, mut hidden) = (Vec::new(), Vec::new());
    let pids = check.host.list(proc).map_err(words)?;
    for pid in pids
        .iter()
        .filter(|pid| pid.as_bytes().iter().all(u8::is_ascii_digit))
    {
        let dir = proc.join(pid);
        let name = || {
            let comm = check.host.read_text(&dir.join("comm")).unwrap_or_default();
            format!("{} ({})", pid.to_string_lossy(), comm.trim())
        };
        match opened_by(check, &dir.join("fd")) {
            Ok(Some(device)) => {
                found.push(check.about(&device, &format!("open in process {}", name())))
            }
            Ok(None) => {}
            // A sandbox or container may deny access to process 1 even to root. Process 1 starts
            // other processes and does no I/O on raw devices; its children are checked.
            Err(error) if pid == INIT && error.errno() == Some(EACCES) => {}
            Err(error) => hidden.push(format!("{}: {}", name(), error.reason())),
        }
    }
    if hidden.is_empty() || !found.is_empty() {
        return Ok(found);
    }
    let more = hidden.len().saturating_sub(3);
    hidden.truncate(3);
    let others = if more > 0 {
        format!(" and {more} others")
    } else {
        String::new()
    };
    Err(format!(
        "what these processes have open cannot be read ({}): {}{others}",
        way_to_see(check),
        hidden.join(", ")
    ))
}

/// Returns advice on how to see hidden processes. The advice for root differs, because root need not become root.
fn way_to_see(check: &Check<'_>) -> &'static str {
    let status = check.host.read_text(Path::new("/proc/self/status"));
    let status = status.unwrap_or_default();
    // Real, effective, saved and file system user (proc_pid_status(5)).
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().nth(1));
    match effective {
        Some("0") => "a sandbox or container hides them from root as well: run assay outside of it",
        _ => "run assay as root",
    }
}

/// Returns the name of an affected device that a process has open; `None` if there is none.
fn opened_by(check: &Check<'_>, dir: &Path) -> Result<Option<String>, HostError> {
    let gone = |error: HostError| {
        if has_ended(&error) {
            Ok(None)
        } else {
            Err(error)
        }
    };
    let handles = match check.host.list(dir) {
        Ok(handles) => handles,
        Err(error) => return gone(error),
    };
    for handle in handles {
        let handle = dir.join(handle);
        if Some(handle.as_path()) == check.held {
            continue;
        }
        match check.host.stat(&handle) {
            Ok(stat) if stat.kind == FileKind::BlockDevice => {
                if let Some(device) = check.numbers.get(&stat.rdev) {
                    return Ok(Some(device.clone()));
                }
            }
            Ok(_) => {}
            Err(error) if has_ended(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Returns whether a process ended during the check (ESRCH).
fn has_ended(error: &HostError) -> bool {
    const ESRCH: i32 = 3;
    error.is_absent() || error.errno() == Some(ESRCH)
}

fn exclusive(check: &Check<'_>) -> Found {
    const EBUSY: i32 = 16;
    if check.held.is_some() {
        return Ok(Vec::new());
    }
    match check.host.open_exclusive(check.path) {
        Ok(()) => Ok(Vec::new()),
        Err(error) if error.errno() == Some(EBUSY) => Ok(vec![
            "claimed by the kernel or by a process (it cannot be opened exclusively)".to_owned(),
        ]),
        Err(error) => Err(words(error)),
    }
}
