//! Reads processes from `/proc`.

use std::fs;

/// One process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub pid: u32,
    pub parent: u32,
    pub name: String,
    /// State, as in `ps`.
    pub state: char,
}

/// Maximum depth of the process tree that is searched.
const DEEPEST: usize = 32;
/// Names of programs that are a server, or a part of a server.
const OF_SERVERS: [&str; 8] = [
    "sshd", "nginx", "apache2", "httpd", "lighttpd", "master", "dovecot", "systemd",
];
/// Directories with the programs of mail servers.
const DIRECTORIES: [&str; 2] = ["/dovecot/", "/postfix/"];

impl Process {
    /// Reads a process; returns `None` if it has ended.
    pub fn read(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Self::parse(pid, &stat)
    }

    /// Parses `/proc/PID/stat`. The name may contain spaces and brackets.
    fn parse(pid: u32, stat: &str) -> Option<Self> {
        let (head, rest) = stat.rsplit_once(')')?;
        let (_, name) = head.split_once('(')?;
        let mut words = rest.split_whitespace();
        Some(Self {
            pid,
            name: name.to_owned(),
            state: words.next()?.chars().next()?,
            parent: words.next()?.parse().ok()?,
        })
    }

    /// Returns the command line, split into words.
    pub fn words(&self) -> Vec<String> {
        let bytes = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        let words = bytes
            .split(|byte| *byte == 0)
            .filter(|word| !word.is_empty());
        words
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect()
    }

    /// Returns the name for evidence. A process of sshd has its role in brackets, as in its title `sshd: USER [net]`.
    pub fn label(&self) -> String {
        let words = match self.name.starts_with("sshd") {
            true => self.words(),
            false => Vec::new(),
        };
        let role = words.last().and_then(|title| find_role(title));
        role.map_or_else(|| self.name.clone(), |role| format!("{} {role}", self.name))
    }

    /// Returns the kernel function in which the process waits; empty if unreadable.
    pub fn wait_channel(&self) -> String {
        fs::read_to_string(format!("/proc/{}/wchan", self.pid)).unwrap_or_default()
    }

    /// Returns whether the process waits only for time: select(2) or poll(2) without descriptors. PAM waits
    /// like this after a refusal.
    pub fn waits_for_time(&self) -> bool {
        let text = fs::read_to_string(format!("/proc/{}/syscall", self.pid)).unwrap_or_default();
        is_wait_for_time(&text)
    }

    /// Returns whether the program is a part of the server itself. Returns false for programs that the server started.
    pub fn is_of_server(&self) -> bool {
        if OF_SERVERS.iter().any(|name| self.name.starts_with(name)) {
            return true;
        }
        let exe = fs::read_link(format!("/proc/{}/exe", self.pid)).unwrap_or_default();
        DIRECTORIES
            .iter()
            .any(|part| exe.to_string_lossy().contains(part))
    }
}

/// Returns the role in brackets at the end of a title of sshd. A user's name in the title may contain brackets too.
fn find_role(title: &str) -> Option<&'static str> {
    const ROLES: [&str; 4] = ["[net]", "[pam]", "[priv]", "[accepted]"];
    ROLES.into_iter().find(|role| title.ends_with(role))
}

/// Numbers of system calls that wait for descriptors, and the argument with the number of descriptors.
#[cfg(target_arch = "x86_64")]
const WAITS: [(u32, usize); 4] = [(23, 0), (270, 0), (7, 1), (271, 1)];
/// The same for architectures with the generic table of system calls: pselect6 and ppoll.
#[cfg(not(target_arch = "x86_64"))]
const WAITS: [(u32, usize); 2] = [(72, 0), (73, 1)];

/// Parses `/proc/PID/syscall`: number of the call, then its arguments.
fn is_wait_for_time(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let Some(number) = words.next().and_then(|word| word.parse::<u32>().ok()) else {
        return false;
    };
    let arguments: Vec<&str> = words.collect();
    let count = WAITS.iter().find(|(call, _)| *call == number);
    count.is_some_and(|(_, at)| arguments.get(*at) == Some(&"0x0"))
}

/// Returns the children of a process.
pub(super) fn list_children(pid: u32) -> Vec<u32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let lists = tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let mut all: Vec<u32> = lists
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(|word| word.parse().ok())
                .collect::<Vec<u32>>()
        })
        .collect();
    all.sort_unstable();
    all
}

/// Returns all descendants of a process, the innermost last.
pub(super) fn list_descendants(pid: u32) -> Vec<Process> {
    let mut found = Vec::new();
    let mut level = vec![pid];
    for _ in 0..DEEPEST {
        let next: Vec<Process> = level
            .iter()
            .flat_map(|pid| list_children(*pid))
            .filter_map(Process::read)
            .filter(|process| process.state != 'Z')
            .collect();
        if next.is_empty() {
            break;
        }
        level = next.iter().map(|process| process.pid).collect();
        found.extend(next);
    }
    found
}

/// Returns the listening processes whose parent does not listen. If systemd opened the socket, it belongs to the server
/// that took it over.
pub(super) fn topmost_listeners(listeners: &[u32]) -> Vec<u32> {
    let others = listeners.iter().any(|pid| *pid != 1);
    let parent = |pid: u32| Process::read(pid).map_or(0, |process| process.parent);
    let own = listeners.iter().copied().filter(|pid| {
        let taken_over = *pid == 1 && others;
        !taken_over && (!listeners.contains(&parent(*pid)) || parent(*pid) == 1)
    });
    own.collect()
}

/// Returns the CPU time of a process and the time that it waited for a CPU, in nanoseconds; zero if the kernel does not
/// count them.
pub(super) fn read_cpu_times(pid: u32) -> (u64, u64) {
    read_times(&format!("/proc/{pid}/schedstat"))
}

/// Returns the CPU time of this thread and the time that it waited for a CPU, in nanoseconds.
pub(super) fn own_times() -> (u64, u64) {
    read_times("/proc/thread-self/schedstat")
}

fn read_times(path: &str) -> (u64, u64) {
    let text = fs::read_to_string(path).unwrap_or_default();
    let mut words = text
        .split_whitespace()
        .map(|word| word.parse().unwrap_or(0));
    (words.next().unwrap_or(0), words.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_hold_brackets_and_blanks() {
        let read = |name: &str| Process::parse(5, &format!("5 ({name}) S 3 5 5 0 -1 4194560"));
        for name in ["sshd", "a b", ") R 1 (x", "(sd-pam)"] {
            let process = read(name).unwrap();
            assert_eq!(
                (&process.name[..], process.state, process.parent),
                (name, 'S', 3)
            );
        }
        assert_eq!(Process::parse(5, "5 (x"), None);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_wait_without_descriptors_is_a_sleep() {
        // libpam 1.5.2 after a refusal, an idle sshd, a running process.
        assert!(is_wait_for_time(
            "270 0x0 0x0 0x0 0x0 0x7ffd2f0 0x0 0x7ffd2d8 0x7f1"
        ));
        assert!(is_wait_for_time(
            "7 0x0 0x0 0x7d0 0x0 0x0 0x0 0x7ffd2d8 0x7f1"
        ));
        assert!(!is_wait_for_time(
            "7 0x7ffc 0x2 0xffffffff 0x0 0x0 0x0 0x7ffd2d8 0x7f1"
        ));
        assert!(!is_wait_for_time(
            "230 0x0 0x0 0x7ff 0x7ff 0x0 0x0 0x7ff 0x7f4"
        ));
        assert!(!is_wait_for_time("running") && !is_wait_for_time(""));
    }

    #[test]
    fn the_role_of_sshd_is_the_end_of_its_title() {
        for (title, role) in [
            ("sshd: anna [net]", Some("[net]")),
            ("sshd-session: anna [priv]", Some("[priv]")),
            ("sshd: [net] [pam]", Some("[pam]")),
            ("sshd: anna@pts/0", None),
            ("sshd: [net]a", None),
        ] {
            assert_eq!(find_role(title), role, "{title}");
        }
    }

    #[test]
    fn a_child_is_found_with_its_command_line() {
        let mut child = std::process::Command::new("sleep")
            .arg("30")
            .spawn()
            .unwrap();
        let found = loop {
            let all = list_descendants(std::process::id());
            let own = all.into_iter().find(|process| process.pid == child.id());
            match own {
                Some(process) if process.name == "sleep" => break process,
                _ => std::thread::yield_now(),
            }
        };
        let _ = child.kill();
        assert_eq!(found.parent, std::process::id());
        let _ = child.wait();
    }
}
