//! What must not leave the machine unless asked for: host names, addresses, secrets.

use std::ffi::OsStr;
use std::path::Path;

/// Stands where something was left out.
pub(crate) const LEFT_OUT: &str = "(left out)";

/// A value that is a number or a word, as those of the settings that are asked for are; anything else
/// is somebody's text.
pub(crate) fn word(value: &str) -> String {
    let plain = value.len() <= 16 && value.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if plain { value } else { "left-out" }.to_owned()
}

/// The source of a network file system without its server.
#[must_use]
pub fn mount_source(fs_type: &str, source: &str) -> String {
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
#[must_use]
pub fn mount_options(options: &str) -> String {
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

/// The kernel's command line without secrets, host names and addresses. What follows `--` is for
/// init, explains no figure and may be anything.
pub(crate) fn cmdline(text: &str) -> String {
    const PARTS: [&str; 8] = [
        "pass",
        "secret",
        "token",
        "credential",
        "hostname",
        "iscsi",
        "nfs",
        "auth=",
    ];
    let clean = |word: &str| match word.split_once('=') {
        Some((name, value)) => {
            let lower = format!("{}=", name.to_ascii_lowercase());
            // `0.0.0.0:2024` and other addresses name a machine too.
            let address = lower == "ip=" || value.parse::<std::net::SocketAddr>().is_ok();
            match address || PARTS.iter().any(|part| lower.contains(part)) {
                true => format!("{name}={LEFT_OUT}"),
                false => word.to_owned(),
            }
        }
        None => word.to_owned(),
    };
    let (text, init) = match text.split_once(" -- ") {
        Some((text, _)) => (text, format!(" -- {LEFT_OUT}")),
        None => (text, String::new()),
    };
    text.split(' ').map(clean).collect::<Vec<_>>().join(" ") + &init
}

/// What a capture may keep of a file: as much as the facts say.
#[must_use]
pub fn redact(path: &Path, contents: Vec<u8>) -> Vec<u8> {
    let lines = |clean: fn(&str) -> String| {
        let text = String::from_utf8_lossy(&contents).into_owned();
        text.split('\n')
            .map(clean)
            .collect::<Vec<_>>()
            .join("\n")
            .into_bytes()
    };
    match path.to_str() {
        Some(crate::collectors::kernel::CMDLINE) => lines(cmdline),
        Some(crate::target::MOUNTINFO) => lines(mount_line),
        Some(name) if name.starts_with(crate::collectors::nginx::DIR) => {
            crate::collectors::nginx::redact(&contents)
        }
        Some(crate::collectors::dovecot::FILE) => crate::collectors::dovecot::redact(&contents),
        Some(name) if name.starts_with("/etc/ssh/") => crate::collectors::sshd::redact(&contents),
        Some("/etc/pve/storage.cfg") => lines(crate::proxmox::redact_store),
        Some(name) if name.starts_with("/etc/pve/qemu-server/") => lines(crate::proxmox::redact),
        Some(name) if is_libvirt(name) => {
            crate::libvirt::redact(&String::from_utf8_lossy(&contents)).into_bytes()
        }
        Some(name) if is_command_line(name) => crate::qemu::redact(&contents),
        Some(name) if is_known(name) => contents,
        // A configuration may include any file, whose language nobody knows here.
        _ => UNKNOWN.to_vec(),
    }
}

/// Stands for a file of which nothing is kept. It is no configuration of any program, so that nobody
/// takes it for one that says nothing.
const UNKNOWN: &[u8] = b"\"left out\n";

/// Files of the kernel, and those of the system that are read by name.
fn is_known(name: &str) -> bool {
    let system = ["/proc/", "/sys/", "/etc/os-release", "/usr/lib/os-release"];
    let parts = [
        "/sysctl.d/",
        "/sysctl.conf",
        "/modprobe.d/",
        "/run/systemd/container",
    ];
    system.iter().any(|start| name.starts_with(start))
        || parts.iter().any(|part| name.contains(part))
}

/// What a capture may keep of what a command printed: as much as the facts say.
#[must_use]
pub fn redact_output(argv: &[&OsStr], output: Vec<u8>) -> Vec<u8> {
    let program = argv.first().and_then(|word| word.to_str());
    let keep: fn(&str) -> Option<String> = match program {
        Some("zdb") => zdb_line,
        Some("zfs" | "zpool") => property_line,
        Some("dmsetup") => table_line,
        Some("cryptsetup") => luks_line,
        _ => return output,
    };
    let text = String::from_utf8_lossy(&output);
    let lines: Vec<String> = text.split('\n').filter_map(keep).collect();
    lines.join("\n").into_bytes()
}

/// Numbers and names of the pool's devices say who it is; names of the kernel do not.
fn zdb_line(line: &str) -> Option<String> {
    const KEPT: [&str; 7] = [
        "vdev_tree",
        "type",
        "id",
        "nparity",
        "ashift",
        "asize",
        "is_log",
    ];
    let text = line.trim();
    let (key, value) = text.split_once(':')?;
    let device = value.trim().trim_matches('\'').strip_prefix("/dev/");
    let plain = device.is_some_and(|name| !name.contains('/'));
    let kept = KEPT.contains(&key) || key.starts_with("children[") || (key == "path" && plain);
    kept.then(|| line.to_owned())
}

/// Properties of users may say anything, and some of ZFS's own name the pool.
fn property_line(line: &str) -> Option<String> {
    let mut fields = line.split('\t');
    let name = fields.next().unwrap_or_default();
    if matches!(fields.next(), Some("path" | "ashift")) && fields.next().is_some() {
        return device_line(name, line);
    }
    let table = line.contains('\t') && !line.starts_with('\t');
    let named = name.contains(':') || crate::collectors::zfs::IDENTITY.contains(&name);
    (!(table && named)).then(|| line.to_owned())
}

/// Of the properties of devices (`zpool get … all-vdevs`) those of groups, and of leaves that the
/// kernel named: other names hold serial numbers.
fn device_line(name: &str, line: &str) -> Option<String> {
    let group = ["mirror-", "raidz", "draid"];
    let group = group.iter().any(|kind| name.starts_with(kind));
    let plain = |value: &str| !value.contains(['-', '/']);
    let value = line.rsplit('\t').next().unwrap_or_default();
    let value = value.strip_prefix("/dev/").unwrap_or(value);
    (group || plain(name) && plain(value)).then(|| line.to_owned())
}

/// A key in the kernel's keyring is named after its volume.
fn table_line(line: &str) -> Option<String> {
    let clean = |word: &str| match word.strip_prefix(':') {
        Some(rest) => {
            let length = rest.split(':').next().unwrap_or_default();
            format!(":{length}:{LEFT_OUT}").replace(' ', "-")
        }
        None => word.to_owned(),
    };
    Some(line.split(' ').map(clean).collect::<Vec<_>>().join(" "))
}

/// Of a LUKS header what the facts say; no salt, no digest, no uuid.
fn luks_line(line: &str) -> Option<String> {
    let kept = ["Version:", "PBKDF:", "Key Slot"];
    let text = line.trim_start();
    kept.iter()
        .any(|start| text.starts_with(start))
        .then(|| line.to_owned())
}

fn is_libvirt(name: &str) -> bool {
    let dirs = ["/etc/libvirt/qemu/", "/run/libvirt/qemu/"];
    dirs.iter().any(|dir| name.starts_with(dir)) && name.ends_with(".xml")
}

/// `/proc/PID/cmdline`.
fn is_command_line(name: &str) -> bool {
    let inner = name
        .strip_prefix("/proc/")
        .and_then(|rest| rest.strip_suffix("/cmdline"));
    inner.is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit()))
}

fn mount_line(line: &str) -> String {
    let Some((head, tail)) = line.split_once(" - ") else {
        return line.to_owned();
    };
    let fields: Vec<&str> = tail.splitn(3, ' ').collect();
    match fields.as_slice() {
        // mountinfo separates by spaces, so there must be none inside.
        [fs_type, source, options] => {
            let escape = |text: String| text.replace(' ', "\\040");
            let (source, options) = (
                escape(mount_source(fs_type, source)),
                escape(mount_options(options)),
            );
            format!("{head} - {fs_type} {source} {options}")
        }
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_conf::effective::files::OfHost;
    use assay_conf::effective::{Program, effective};

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
    #[test]
    fn a_command_line_keeps_what_explains_figures() {
        assert_eq!(
            cmdline(
                "root=/dev/vda mitigations=off ip=10.0.0.2::::box luks.passphrase=x systemd.hostname=box"
            ),
            "root=/dev/vda mitigations=off ip=(left out) luks.passphrase=(left out) systemd.hostname=(left out)"
        );
    }

    #[test]
    fn what_init_is_told_is_left_out() {
        let once = cmdline("quiet -- --token abc");
        assert_eq!(once, "quiet -- (left out)");
        assert_eq!(cmdline(&once), once);
    }

    #[test]
    fn a_capture_keeps_of_a_configuration_what_the_facts_say() {
        let kept = |path: &str, text: &str| {
            String::from_utf8(redact(Path::new(path), text.into())).unwrap()
        };
        assert_eq!(
            kept(
                "/etc/ssh/sshd_config.d/10.conf",
                "UseDNS yes\nAllowUsers bob\nMatch User bob\n"
            ),
            "UseDNS yes\n\nMatch (left out)\n"
        );
        assert!(!kept("/srv/site/own.conf", "sendfile on;\n# secret\n").contains("se"));
        for program in [Program::Sshd, Program::Nginx, Program::Dovecot] {
            let host = assay_host::Recorded::new().file("/x", UNKNOWN);
            let all = effective(program, Path::new("/x"), &OfHost(&host)).unwrap();
            assert!(all.problems.iter().any(|problem| problem.trouble.hides()));
        }
        assert_eq!(
            kept(
                "/etc/nginx/nginx.conf",
                "worker_processes 2;\nhttp {\n  auth_basic \"x\";\n}\n"
            ),
            "worker_processes 2;\nhttp {\n\n}\n"
        );
        assert_eq!(
            kept(
                "/etc/dovecot/conf.d/10-auth.conf",
                "auth_realms = example.org\n!include auth-sql.conf.ext\n"
            ),
            "\n!include auth-sql.conf.ext\n"
        );
    }

    #[test]
    fn what_commands_print_keeps_no_names() {
        let keep = |program: &str, text: &str| {
            let output = redact_output(&[OsStr::new(program)], text.into());
            String::from_utf8(output).unwrap()
        };
        // Recorded: OpenZFS 2.1.11, cryptsetup 2.6.1.
        let zdb = include_str!("../fixtures/zfs-2.1.11/zdb-mirror.txt");
        let kept = keep("zdb", zdb);
        assert!(!kept.contains("host") && !kept.contains("guid") && !kept.contains("virtio"));
        let ashifts = crate::zpool::ashifts(&kept);
        assert_eq!(ashifts.by_id, crate::zpool::ashifts(zdb).by_id);
        let get = include_str!("../fixtures/zfs-2.1.11/get-pool.txt");
        let kept = keep("zpool", &format!("{get}backup:note\tsecret\tlocal\n"));
        assert!(kept.contains("ashift\t12\tlocal") && !kept.contains("guid\t"));
        assert!(!kept.contains("secret"));
        let status = include_str!("../fixtures/zfs-2.1.11/status-mirror.txt");
        assert_eq!(keep("zpool", status), status);
        let table = "v: 0 8 crypt aes-xts-plain64 :64:logon:cryptsetup:47bf48cc-d0 0 9:0 32768\n";
        let kept = keep("dmsetup", table);
        assert!(
            kept.contains(" :64:") && !kept.contains("47bf48cc"),
            "{kept}"
        );
        let dump = include_str!("../fixtures/cryptsetup-2.6.1-luksdump.txt");
        let kept = keep("cryptsetup", dump);
        assert_eq!(crate::crypt::pbkdf(&kept), ["pbkdf2"]);
        assert!(!kept.contains("Salt") && !kept.contains("UUID"));
    }

    #[test]
    fn a_capture_keeps_no_server() {
        let line = b"30 1 0:30 / /srv rw - nfs4 files.example.org:/a rw,addr=10.0.0.1\n".to_vec();
        let clean = redact(Path::new("/proc/self/mountinfo"), line);
        let text = String::from_utf8(clean).unwrap();
        assert_eq!(
            text,
            "30 1 0:30 / /srv rw - nfs4 (left\\040out):/a rw,addr=(left\\040out)\n"
        );
    }
}
