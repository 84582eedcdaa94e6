//! How each program is asked whether it takes its configuration, and told to read it.

use assay_host::{Host, Limits};
use assay_model::finding::Configured;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// What a message calls it.
pub(crate) fn program_name(program: Configured) -> &'static str {
    match program {
        Configured::Sshd => "sshd",
        Configured::Ssh => "ssh",
        Configured::Nginx => "nginx",
        Configured::Postfix => "postfix",
        Configured::Dovecot => "dovecot",
        Configured::Samba => "samba",
    }
}

/// The command that says whether the configuration is acceptable; with `{file}` it looks at a file that is
/// not in its place yet, without it at everything as it stands.
pub(crate) fn validate(program: Configured, file: &Path) -> Vec<String> {
    let words: &[&str] = match program {
        // A file that is included is not a whole configuration.
        Configured::Sshd if file == Path::new("/etc/ssh/sshd_config") => {
            &["sshd", "-t", "-f", "{file}"]
        }
        Configured::Sshd => &["sshd", "-t"],
        // It connects to nothing: it prints what it would do for a host of that name.
        Configured::Ssh => &["ssh", "-G", "-F", "{file}", "localhost"],
        Configured::Nginx => &["nginx", "-t", "-q"],
        Configured::Postfix => &["postfix", "check"],
        Configured::Dovecot => &["doveconf", "-n"],
        Configured::Samba => &["testparm", "-s", "{file}"],
    };
    to_owned_words(words)
}

/// The command that makes the running service read its configuration; nothing when it does not run, or has
/// none.
pub(crate) fn reload(host: &dyn Host, program: Configured) -> Vec<String> {
    // Debian's units, the name of the process, and the way without systemd.
    let (unit, process, other): (&str, &str, &[&str]) = match program {
        Configured::Ssh => return Vec::new(),
        Configured::Sshd => ("ssh", "sshd", &["service", "ssh", "reload"]),
        Configured::Nginx => ("nginx", "nginx", &["nginx", "-s", "reload"]),
        Configured::Postfix => ("postfix", "master", &["postfix", "reload"]),
        Configured::Dovecot => ("dovecot", "dovecot", &["doveadm", "reload"]),
        Configured::Samba => ("smbd", "smbd", &["smbcontrol", "smbd", "reload-config"]),
    };
    if host
        .exists(Path::new("/run/systemd/system"))
        .unwrap_or(false)
    {
        let argv = ["systemctl", "is-active", "--quiet", unit].map(OsStr::new);
        let active = host.run(&argv, Limits::default());
        return match active.is_ok_and(|output| output.success()) {
            // A unit that does not run any more is left alone, as at boot before it is started.
            true => to_owned_words(&["systemctl", "try-reload-or-restart", unit]),
            false => Vec::new(),
        };
    }
    match is_running(host, process) {
        true => to_owned_words(other),
        false => Vec::new(),
    }
}

/// Whether a process of that name is there that sees the same files.
fn is_running(host: &dyn Host, name: &str) -> bool {
    !find_processes(host, name).is_empty()
}

/// The directories of the processes of that name that see the same files (proc(5), `comm`; namespaces(7)): one in a
/// container has a configuration of its own.
pub(crate) fn find_processes(host: &dyn Host, name: &str) -> Vec<PathBuf> {
    let mounts = |process: &Path| host.link(&process.join("ns/mnt")).ok();
    let Some(ours) = mounts(Path::new("/proc/self")) else {
        return Vec::new();
    };
    let all = host.list(Path::new("/proc")).unwrap_or_default();
    all.iter()
        .filter(|pid| pid.as_encoded_bytes().iter().all(u8::is_ascii_digit))
        .map(|pid| Path::new("/proc").join(pid))
        .filter(|process| {
            host.read_text(&process.join("comm"))
                .is_ok_and(|text| text.trim() == name)
                && mounts(process).as_ref() == Some(&ours)
        })
        .collect()
}

fn to_owned_words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}
