//! Checks a regular file before assay overwrites it.

use crate::overwrite::{Against, Found, OverwriteRefused, content, loops, processes, refused};
use assay_host::held::{Access, Held, Lease};
use assay_host::{Host, HostError};
use rustix::fs::IFlags;
use rustix::io::Errno;
use std::path::Path;

/// Checks that a regular file may be overwritten, and keeps it open. `path` must be the file itself and not a link.
/// With `unknown`, the file may have any content.
///
/// # Errors
/// All reasons against overwriting. A check that fails is a reason.
pub fn file(host: &dyn Host, path: &Path, unknown: bool) -> Result<Held, OverwriteRefused> {
    let held =
        Held::open(path, Access::ReadWrite).map_err(|error| refused(path, why_not(&error)))?;
    let mut against = Against::new(path);
    against.add(check_names(&held));
    against.add(check_flags(&held));
    against.add(loops::of_file(host, held.identity()));
    against.add(check_swap(host, &held));
    against.add(check_locks(&held));
    against.add(find_other_users(host, &held));
    if !unknown && against.reasons.is_empty() {
        against.add(content::look(&held));
    }
    against.end()?;
    Ok(held)
}

fn why_not(error: &HostError) -> String {
    let is = |errno: Errno| error.errno() == Some(errno.raw_os_error());
    if is(Errno::LOOP) {
        "it is a link: name the file itself".to_owned()
    } else if is(Errno::TXTBSY) {
        "it is a swap file in use, or a program that runs".to_owned()
    } else if is(Errno::PERM) {
        format!("{error}; it may be immutable (lsattr shows it)")
    } else {
        error.to_string()
    }
}

fn describe_error(error: HostError) -> String {
    error.to_string()
}

fn check_names(held: &Held) -> Found {
    Ok(match held.names().map_err(describe_error)? {
        1 => Vec::new(),
        0 => vec!["its name was removed just now".to_owned()],
        count => vec![format!(
            "it has {count} names (hard links), and all of them would change (`find -samefile` shows them)"
        )],
    })
}

fn check_flags(held: &Held) -> Found {
    let flags = match rustix::fs::ioctl_getflags(held.file()) {
        Ok(flags) => flags,
        // This file system does not support it.
        Err(_) => return Ok(Vec::new()),
    };
    let bad = [
        (IFlags::IMMUTABLE, "immutable (chattr +i)"),
        (IFlags::APPEND, "append-only (chattr +a)"),
    ];
    let found = bad.into_iter().filter(|(flag, _)| flags.contains(*flag));
    Ok(found.map(|(_, words)| words.to_owned()).collect())
}

fn check_swap(host: &dyn Host, held: &Held) -> Found {
    let text = match host.read_text(Path::new("/proc/swaps")) {
        Ok(text) => text,
        Err(error) if error.is_absent() => return Ok(Vec::new()),
        Err(error) => return Err(describe_error(error)),
    };
    // Linux does not permit to rename a swap file or to open it for writing; this check is for
    // other kernels.
    let mut files = text
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().next());
    let used = files.any(|file| {
        assay_host::held::read_identity(Path::new(file)).is_ok_and(|found| found == held.identity())
    });
    Ok(used
        .then(|| "used as swap".to_owned())
        .into_iter()
        .collect())
}

/// Byte range in which QEMU locks an image, starting at `RAW_LOCK_PERM_BASE` of its block/file-posix.c.
const QEMU: std::ops::Range<i64> = 100..300;

fn check_locks(held: &Held) -> Found {
    let lock = match held.locked() {
        Ok(lock) => lock,
        // This file system does not support locks, so there are none.
        Err(_) => return Ok(Vec::new()),
    };
    Ok(lock
        .map(|lock| match lock.process {
            Some(process) => format!("locked by process {process}"),
            None if QEMU.contains(&lock.start) => "locked as QEMU locks an image in use".to_owned(),
            None => "locked by somebody (an open file description lock)".to_owned(),
        })
        .into_iter()
        .collect())
}

/// Finds processes that have the file open or mapped. A file lease also detects processes that /proc does not show.
fn find_other_users(host: &dyn Host, held: &Held) -> Found {
    let lease = held.lease().map_err(describe_error)?;
    let users = processes::users(host, held.identity(), Some(&held.through()));
    if !users.found.is_empty() {
        return Ok(users.found);
    }
    match lease {
        Lease::Alone => Ok(Vec::new()),
        Lease::Shared => Ok(vec![
            "open somewhere (the kernel grants no lease on it): in the kernel itself, in a process that went just now, or in one that cannot be seen from here"
                .to_owned(),
        ]),
        Lease::NotGranted if users.hidden.is_empty() => Ok(Vec::new()),
        Lease::NotGranted => {
            let more = users.hidden.len().saturating_sub(3);
            let shown: Vec<&str> = users.hidden.iter().take(3).map(String::as_str).collect();
            Err(format!(
                "what {}{} have open, and this file system grants no leases",
                shown.join(", "),
                if more > 0 { format!(" and {more} others") } else { String::new() }
            ))
        }
    }
}
