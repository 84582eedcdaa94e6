//! ZFS datasets that assay created: checks their existence and their mark (zfs(8), OpenZFS 2.1).

use super::Made;
use crate::error::ChangeError;
use assay_host::{CommandOutput, HostMut, Limits};
use std::ffi::OsStr;
use std::time::Duration;

/// Time limit of `zfs`, which waits until a transaction group is written.
const ZFS_LIMITS: Limits = Limits {
    timeout: Duration::from_secs(120),
};

/// Whether the name is a file system or volume below a pool, and not a snapshot, bookmark, pool or option.
pub(super) fn is_below_a_pool(name: &str) -> bool {
    let plain = |part: &str| {
        part != "."
            && part != ".."
            && part.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_')
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | ' '))
    };
    name.contains('/') && name.split('/').all(plain)
}

pub(super) fn is_there(host: &dyn HostMut, name: &str) -> Result<bool, ChangeError> {
    let output = run(host, &["zfs", "list", "-H", "-o", "name", name])?;
    if output.success() {
        return Ok(true);
    }
    // `zfs` prints the same message for a pool that is not imported and for a missing dataset.
    let pool = name.split('/').next().unwrap_or_default();
    query_zfs(host, name, &["zpool", "list", "-H", "-o", "name", pool])?;
    match output.complaint().contains("does not exist") {
        true => Ok(false),
        false => Err(command_failed(name, &["zfs", "list", name], &output)),
    }
}

/// Refuses a dataset that does not have the session's mark as a local property; an inherited or received mark
/// does not count.
pub(super) fn check_mark(host: &dyn HostMut, name: &str, tag: &str) -> Result<(), ChangeError> {
    let mark = Made::ZFS_MARK;
    let argv = ["zfs", "get", "-H", "-o", "value", "-s", "local", mark, name];
    match query_zfs(host, name, &argv)?.trim() == tag {
        true => Ok(()),
        false => Err(ChangeError::refused(
            describe_dataset(name),
            format!("not destroyed: it does not carry {mark}={tag}, so it is not assay's"),
        )),
    }
}

/// Destroys the dataset's snapshots, which programs that take snapshots of everything may have created.
pub(super) fn destroy_snapshots(host: &dyn HostMut, name: &str) -> Result<(), ChangeError> {
    let argv = [
        "zfs", "list", "-H", "-o", "name", "-t", "snapshot", "-d", "1", name,
    ];
    for snapshot in query_zfs(host, name, &argv)?.lines() {
        let own = snapshot.strip_prefix(name);
        if own.is_some_and(|rest| rest.starts_with('@')) {
            query_zfs(host, name, &["zfs", "destroy", snapshot])?;
        }
    }
    Ok(())
}

fn query_zfs(host: &dyn HostMut, name: &str, argv: &[&str]) -> Result<String, ChangeError> {
    let output = run(host, argv)?;
    match output.success() {
        true => Ok(output.text()),
        false => Err(command_failed(name, argv, &output)),
    }
}

fn run(host: &dyn HostMut, argv: &[&str]) -> Result<CommandOutput, ChangeError> {
    let argv: Vec<&OsStr> = argv.iter().map(OsStr::new).collect();
    Ok(host.run(&argv, ZFS_LIMITS)?)
}

fn command_failed(name: &str, argv: &[&str], output: &CommandOutput) -> ChangeError {
    ChangeError::Command {
        what: describe_dataset(name),
        command: argv.join(" "),
        reason: output.complaint(),
    }
}

fn describe_dataset(name: &str) -> String {
    Made::Dataset {
        name: name.to_owned(),
    }
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_file_systems_and_volumes_below_a_pool() {
        for name in ["tank/a", "tank/a b/c-d", "tank/.assay-x-now"] {
            assert!(is_below_a_pool(name), "{name}");
        }
        for name in [
            "tank",
            "tank/",
            "/tank/a",
            "tank/a@b",
            "tank/a#b",
            "-r/a",
            "tank/../x",
        ] {
            assert!(!is_below_a_pool(name), "{name}");
        }
    }
}
