//! Resolves the user's argument to a process, a control group, a guest or a process name.

use crate::WatchSubject;
use assay_facts::qemu;
use assay_host::Host;
use std::path::Path;

/// The argument does not name anything on this machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no process, control group, systemd unit, container or guest is called {word:?}. Give a process number, \
     a unit such as ssh.service, or a path with a slash such as ./{word}"
)]
pub struct NothingMeant {
    /// The user's argument.
    pub word: String,
}

/// Resolves an argument without a slash.
///
/// # Errors
/// Nothing on this machine has this name.
pub fn resolve_word(host: &dyn Host, word: &str) -> Result<WatchSubject, NothingMeant> {
    if let Ok(pid) = word.parse::<u32>()
        && host
            .exists(Path::new(&format!("/proc/{pid}/stat")))
            .unwrap_or(false)
    {
        return Ok(WatchSubject::Process(pid));
    }
    let mut group = None;
    let mut is_name = false;
    for name in host.list(Path::new("/proc")).unwrap_or_default() {
        let Some(pid) = name
            .to_str()
            .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        else {
            continue;
        };
        let text = |file: &str| {
            host.read_text(Path::new(&format!("/proc/{pid}/{file}")))
                .unwrap_or_default()
        };
        let groups = text("cgroup");
        let paths = groups.lines().filter_map(|line| line.splitn(3, ':').nth(2));
        group = group.or_else(|| paths.filter_map(|path| find_group(path, word)).next());
        let comm = text("comm");
        let comm = comm.trim_end_matches('\n');
        if comm == word {
            is_name = true;
        } else if qemu::is_qemu(comm) {
            let machine = qemu::parse(&qemu::argv(text("cmdline").as_bytes()));
            is_name |= machine.name.as_deref() == Some(word);
            is_name |= machine.name.is_none() && machine.id.as_deref() == Some(word);
        }
    }
    match (group, is_name) {
        (Some(path), _) => Ok(WatchSubject::Group(path)),
        (None, true) => Ok(WatchSubject::Named(word.to_owned())),
        (None, false) => Err(NothingMeant {
            word: word.to_owned(),
        }),
    }
}

/// Returns the path of a control group up to the component that matches `word`: a unit, a container, or a name.
fn find_group(path: &str, word: &str) -> Option<String> {
    let mut end = 0;
    for component in path.split('/').skip(1) {
        end += 1 + component.len();
        if names_component(component, word) {
            return path.get(..end).map(str::to_owned);
        }
    }
    None
}

fn names_component(component: &str, word: &str) -> bool {
    let unit = component
        .strip_suffix(".service")
        .or_else(|| component.strip_suffix(".scope"))
        .unwrap_or(component);
    let container = [
        "docker-",
        "libpod-",
        "crio-",
        "cri-containerd-",
        "lxc.payload.",
        "lxc.monitor.",
    ]
    .iter()
    .find_map(|prefix| unit.strip_prefix(prefix));
    let is_id = |id: &str| {
        word.len() >= 8 && id.starts_with(word) && word.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    component == word
        || unit == word
        || container == Some(word)
        || is_id(container.unwrap_or(component))
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    fn machine() -> Recorded {
        let id = "f".repeat(64);
        Recorded::new()
            .file("/proc/7/stat", "7 (web) S")
            .file("/proc/7/comm", "web\n")
            .file("/proc/7/cgroup", "0::/system.slice/web.service/worker\n")
            .file("/proc/8/comm", "sh\n")
            .file("/proc/8/cgroup", format!("0::/docker-{id}.scope\n"))
            .file("/proc/9/comm", "qemu-system-x86\n")
            .file("/proc/9/cgroup", "0::/\n")
            .file(
                "/proc/9/cmdline",
                "qemu-system-x86_64\0-name\0guest=db,debug-threads=on\0",
            )
    }

    #[test]
    fn a_word_is_a_process_a_unit_a_container_or_a_guest() {
        let host = machine();
        let find = |word: &str| resolve_word(&host, word).ok();
        assert_eq!(find("7"), Some(WatchSubject::Process(7)));
        assert_eq!(
            find("web.service"),
            Some(WatchSubject::Group("/system.slice/web.service".to_owned()))
        );
        assert_eq!(find("web"), find("web.service"));
        assert!(
            matches!(find("ffffffffffff"), Some(WatchSubject::Group(path)) if path.starts_with("/docker-"))
        );
        assert_eq!(find("db"), Some(WatchSubject::Named("db".to_owned())));
        assert_eq!(
            find("qemu-system-x86"),
            Some(WatchSubject::Named("qemu-system-x86".to_owned()))
        );
        assert!(find("12345").is_none() && find("nothing").is_none());
    }
}
