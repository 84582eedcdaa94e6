//! What must not leave the machine unless asked for: host names, addresses, secrets.

/// Stands where something was left out.
pub(crate) const LEFT_OUT: &str = "(left out)";

/// The source of a network file system without its server.
pub(crate) fn mount_source(fs_type: &str, source: &str) -> String {
    match fs_type {
        "nfs" | "nfs4" | "fuse.sshfs" | "ceph" | "fuse.glusterfs" => match source.rsplit_once(":/")
        {
            Some((_, path)) => format!("{LEFT_OUT}:/{path}"),
            None => LEFT_OUT.to_owned(),
        },
        "cifs" | "smb3" => match source.trim_start_matches('/').split_once('/') {
            Some((_, share)) => format!("//{LEFT_OUT}/{share}"),
            None => LEFT_OUT.to_owned(),
        },
        _ => source.to_owned(),
    }
}

/// Mount options without addresses, users and secrets.
pub(crate) fn mount_options(options: &str) -> String {
    const NAMES: [&str; 14] = [
        "addr",
        "clientaddr",
        "mountaddr",
        "username",
        "user",
        "domain",
        "password",
        "pass",
        "secret",
        "mon_addr",
        "name",
        "unc",
        "workgroup",
        "credentials",
    ];
    let clean = |option: &str| match option.split_once('=') {
        Some((name, _)) if NAMES.contains(&name) => format!("{name}={LEFT_OUT}"),
        _ => option.to_owned(),
    };
    options.split(',').map(clean).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_left_out_and_devices_are_not() {
        assert_eq!(
            mount_source("nfs4", "files.example.org:/export/a"),
            "(left out):/export/a"
        );
        assert_eq!(
            mount_source("nfs4", "[fe80::1]:/export"),
            "(left out):/export"
        );
        assert_eq!(
            mount_source("cifs", "//files/share/x"),
            "//(left out)/share/x"
        );
        assert_eq!(mount_source("ext4", "/dev/vda"), "/dev/vda");
        assert_eq!(
            mount_options("rw,vers=4.2,addr=10.0.0.1,sec=sys"),
            "rw,vers=4.2,addr=(left out),sec=sys"
        );
    }
}
