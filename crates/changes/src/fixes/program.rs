//! Commands of each program: checking its configuration and reading it again.

use assay_host::{Host, Limits};
use assay_model::finding::Configured;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Returns the program's name for messages.
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

/// Returns the command that checks the configuration. With `{file}` it checks a candidate file; without
/// `{file}` it checks the whole configuration in its present place.
pub(crate) fn validate(program: Configured, file: &Path) -> Vec<String> {
    let words: &[&str] = match program {
        // An included file is not a complete configuration.
        Configured::Sshd if file == Path::new("/etc/ssh/sshd_config") => {
            &["sshd", "-t", "-f", "{file}"]
        }
        Configured::Sshd => &["sshd", "-t"],
        // This command does not connect; it prints the settings for a host with that name.
        Configured::Ssh => &["ssh", "-G", "-F", "{file}", "localhost"],
        Configured::Nginx => &["nginx", "-t", "-q"],
        Configured::Postfix => &["postfix", "check"],
        Configured::Dovecot => &["doveconf", "-n"],
        Configured::Samba => &["testparm", "-s", "{file}"],
    };
    to_owned_words(words)
}

/// Returns the command that makes the running service read its configuration; empty if the service does not
/// run, or has no such command.
pub(crate) fn reload(host: &dyn Host, program: Configured) -> Vec<String> {
    // Debian's unit, the name of the process, and the command without systemd.
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
            // This command ignores a unit that does not run, for example at boot before the unit starts.
            true => to_owned_words(&["systemctl", "try-reload-or-restart", unit]),
            false => Vec::new(),
        };
    }
    match is_running(host, process) {
        true => to_owned_words(other),
        false => Vec::new(),
    }
}

/// Whether a process with that name and the same view of the files runs.
fn is_running(host: &dyn Host, name: &str) -> bool {
    !find_processes(host, name).is_empty()
}

/// Returns the directories of the processes with that name and the same mount namespace (proc(5), `comm`;
/// namespaces(7)). A process in a container has its own configuration and is excluded.
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
