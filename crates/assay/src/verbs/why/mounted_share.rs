//! Finds where a share of a file server is mounted on this machine.

use assay_facts::mountinfo::{self, Mount};
use assay_host::Host;
use std::path::{Path, PathBuf};

/// Returns the directory in which the share of a URL is mounted. `None` if the URL is not of a share, or if the share
/// is not mounted. Does not access the file system.
pub(super) fn find_directory(host: &dyn Host, scheme: &str, rest: &str) -> Option<PathBuf> {
    let text = host.read(Path::new("/proc/self/mountinfo")).ok()?;
    let mounts = mountinfo::parse(&text).ok()?;
    choose_directory(&mounts, scheme, rest)
}

fn choose_directory(mounts: &[Mount], scheme: &str, rest: &str) -> Option<PathBuf> {
    let rest = rest.split('?').next().unwrap_or(rest);
    let (server, path) = rest.split_once('/')?;
    let server = server.rsplit('@').next().unwrap_or(server);
    // The port does not stand in the source of a mount.
    let server = match server.split_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => server,
    };
    let path = path.trim_end_matches('/');
    let (start, kinds) = match scheme {
        "nfs" => (format!("{server}:/"), ["nfs", "nfs4"]),
        "smb" | "cifs" => (format!("//{server}/"), ["cifs", "smb3"]),
        _ => return None,
    };
    let found = mounts.iter().rev().filter_map(|mount| {
        let source = mount.source.to_str()?;
        if !kinds.contains(&&mount.fs_type[..]) {
            return None;
        }
        let below = Path::new(source.strip_prefix(&start)?);
        let inside = Path::new(path).strip_prefix(below).ok()?;
        Some((below.components().count(), mount.point.join(inside)))
    });
    // The longest export is the nearest one.
    let (_, directory) = found.max_by_key(|(depth, _)| *depth)?;
    Some(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_found_below_the_mounts_of_its_server() {
        let text = "30 1 0:40 / /mnt/srv rw - nfs4 nas:/srv rw\n31 1 0:41 / /mnt/data rw - nfs nas:/srv/data rw\n\
                    32 1 0:42 / /mnt/smb rw - cifs //nas/data rw\n33 1 0:43 / /x rw - ext4 nas:/srv/x rw\n";
        let mounts = mountinfo::parse(text.as_bytes()).unwrap();
        for (scheme, rest, expected) in [
            ("nfs", "nas/srv/data/a", Some("/mnt/data/a")),
            ("nfs", "nas:2049/srv/?uid=1", Some("/mnt/srv/")),
            ("nfs", "nas/srv/x", Some("/mnt/srv/x")),
            ("nfs", "other/srv", None),
            ("smb", "me@nas/data", Some("/mnt/smb/")),
            ("https", "nas/srv", None),
        ] {
            let found = choose_directory(&mounts, scheme, rest);
            assert_eq!(found.as_deref(), expected.map(Path::new), "{scheme} {rest}");
        }
    }
}
