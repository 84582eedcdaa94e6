//! Selects the commands that `assay` without a verb proposes. Each rule reads the state of the machine and gives one
//! reason.

use assay_changes::Journal;
use assay_host::{Host, LiveHost};
use assay_model::Facts;
use assay_model::run::RunState;
use assay_model::target::TargetInfo;
use assay_store::RunRow;
use std::path::Path;

/// Maximum number of proposed commands.
const SHOWN: usize = 3;

/// A command, and the reason why it is useful on this machine.
pub(super) struct Proposal {
    pub command: String,
    pub reason: String,
    /// Number that orders proposals; higher means more useful on this machine.
    weight: u8,
}

/// Input of the rules: the facts, the current directory, and past runs.
pub(super) struct Seen<'a> {
    pub facts: &'a Facts,
    /// The layers under the current directory; `None` if they cannot be read.
    pub target: Option<&'a TargetInfo>,
    /// Past runs, the newest first.
    pub runs: &'a [RunRow],
    pub journal: Option<&'a Journal>,
}

/// Returns the most useful commands for this machine, in order.
pub(super) fn propose(seen: &Seen<'_>) -> Vec<Proposal> {
    let rules = [
        recover(seen),
        resume(seen),
        why(),
        Some(check()),
        Some(stack(seen)),
        disks(),
        login(),
        web(),
        measure(seen),
        compare(seen),
    ];
    let mut all: Vec<Proposal> = rules.into_iter().flatten().collect();
    all.sort_by_key(|proposal| std::cmp::Reverse(proposal.weight));
    all.truncate(SHOWN);
    all
}

fn proposal(weight: u8, command: impl Into<String>, reason: impl Into<String>) -> Proposal {
    Proposal {
        command: command.into(),
        reason: reason.into(),
        weight,
    }
}

fn recover(seen: &Seen<'_>) -> Option<Proposal> {
    let pending = seen.journal?.pending().ok()?;
    (!pending.is_empty()).then(|| {
        let reason = "a killed assay left changes on this machine";
        proposal(100, "assay trial --recover", reason)
    })
}

fn resume(seen: &Seen<'_>) -> Option<Proposal> {
    let last = seen.runs.first()?;
    let open = last.state != RunState::Complete && last.samples < last.planned;
    open.then(|| {
        let reason = format!("run {} was interrupted", last.id);
        proposal(90, format!("assay run --resume {}", last.id), reason)
    })
}

/// Minimum percentage of the last minute in which tasks waited, for `assay why` to be proposed.
const PRESSURE: f64 = 10.0;

/// Proposes `assay why` if the kernel's pressure files (PSI) show that tasks are waiting now.
fn why() -> Option<Proposal> {
    let resources = [
        ("cpu", "a free CPU"),
        ("io", "storage"),
        ("memory", "memory"),
    ];
    let shares = resources.into_iter().filter_map(|(name, what)| {
        let path = Path::new("/proc/pressure").join(name);
        let text = LiveHost.read_text(&path).ok()?;
        Some((parse_pressure(&text)?, what))
    });
    let (share, what) = shares.max_by(|one, other| one.0.total_cmp(&other.0))?;
    (share >= PRESSURE).then(|| {
        let reason = format!("tasks waited for {what} in {share:.0} % of the last minute");
        proposal(85, "assay why", reason)
    })
}

/// Returns `avg60` of the line `some avg10=0.00 avg60=1.25 avg300=… total=…`, in percent.
fn parse_pressure(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    let value = line
        .split(' ')
        .find_map(|word| word.strip_prefix("avg60="))?;
    value.parse().ok()
}

/// Services about which `assay check` has many rules.
const SERVICES: [(&str, &str); 8] = [
    ("/etc/ssh/sshd_config", "sshd"),
    ("/etc/nginx/nginx.conf", "nginx"),
    ("/etc/apache2/apache2.conf", "Apache"),
    ("/etc/postfix/main.cf", "Postfix"),
    ("/etc/dovecot/dovecot.conf", "Dovecot"),
    ("/etc/samba/smb.conf", "Samba"),
    ("/etc/postgresql", "PostgreSQL"),
    ("/etc/mysql/my.cnf", "MySQL"),
];

fn check() -> Proposal {
    let found: Vec<&str> = SERVICES
        .into_iter()
        .filter(|(path, _)| LiveHost.exists(Path::new(path)).unwrap_or(false))
        .map(|(_, name)| name)
        .collect();
    let reason = match found.as_slice() {
        [] => "the settings of this kernel and its packages have rules".to_owned(),
        _ => format!(
            "{} {} configured here",
            found.join(", "),
            match found.len() {
                1 => "is",
                _ => "are",
            }
        ),
    };
    proposal(80, "assay check", reason)
}

fn stack(seen: &Seen<'_>) -> Proposal {
    let source = seen.target.and_then(|target| target.mount_source.clone());
    let source = source.unwrap_or_default();
    let fs = seen.target.and_then(|target| target.fs_type.clone());
    let is_guest = seen
        .facts
        .str("virtualisation.vm")
        .is_some_and(|kind| kind != "none");
    let (weight, reason) = match fs.as_deref() {
        Some(fs @ ("zfs" | "btrfs" | "overlay" | "nfs" | "nfs4" | "cifs" | "9p" | "virtiofs")) => (
            70,
            format!("this directory is on {fs}: see what lies below"),
        ),
        _ if source.starts_with("/dev/mapper/") || source.starts_with("/dev/md") => (
            70,
            format!("this directory is on {source}: see what lies below"),
        ),
        _ if is_guest => (
            66,
            "this is a virtual machine: its disks have layers below".to_owned(),
        ),
        Some(fs) => (40, format!("this directory is on {fs}")),
        None => (40, "shows what lies below this directory".to_owned()),
    };
    proposal(weight, "assay stack", reason)
}

fn disks() -> Option<Proposal> {
    let arrays = LiveHost
        .read_text(Path::new("/proc/mdstat"))
        .unwrap_or_default();
    let array = arrays
        .lines()
        .find(|line| line.contains(" active raid"))?
        .split_whitespace()
        .next()?
        .to_owned();
    let reason = format!("array {array} is as slow as its slowest disk");
    Some(proposal(64, "assay stack disks", reason))
}

fn login() -> Option<Proposal> {
    for (port, command, service) in [
        (22, "assay login ssh localhost", "sshd"),
        (143, "assay login imap localhost", "an IMAP server"),
        (25, "assay login smtp localhost", "an SMTP server"),
    ] {
        if listens(port) {
            let reason = format!("{service} listens on port {port}: measure where logins wait");
            return Some(proposal(62, command, reason));
        }
    }
    None
}

fn web() -> Option<Proposal> {
    listens(80).then(|| {
        let reason = "a web server listens on port 80: find its capacity";
        proposal(61, "assay web http://localhost/", reason)
    })
}

fn measure(seen: &Seen<'_>) -> Option<Proposal> {
    seen.runs.is_empty().then(|| {
        let reason = "nothing was measured here yet; takes about a minute";
        proposal(60, "assay run quick .", reason)
    })
}

fn compare(seen: &Seen<'_>) -> Option<Proposal> {
    let [last, before, ..] = seen.runs else {
        return None;
    };
    (last.plan == before.plan && last.targets == before.targets).then(|| {
        let reason = format!(
            "the last two runs measured {} on the same target",
            last.plan
        );
        proposal(58, "assay report compare last~1 last", reason)
    })
}

/// Returns whether a process on this machine listens on the TCP port.
fn listens(port: u16) -> bool {
    ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().any(|path| {
        let table = LiveHost.read_text(Path::new(path)).unwrap_or_default();
        table.lines().any(|line| is_listening(line, port))
    })
}

/// Returns whether a line of /proc/net/tcp is a listening socket on this port.
fn is_listening(line: &str, port: u16) -> bool {
    /// State of a listening socket in /proc/net/tcp (TCP_LISTEN in include/net/tcp_states.h).
    const LISTEN: &str = "0A";
    let mut words = line.split_whitespace().skip(1);
    let (local, state) = (words.next(), words.nth(1));
    let number = local.and_then(|local| local.rsplit(':').next());
    state == Some(LISTEN) && number.and_then(|hex| u16::from_str_radix(hex, 16).ok()) == Some(port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_is_the_share_of_the_last_minute() {
        let text = "some avg10=1.00 avg60=12.50 avg300=0.10 total=5\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(parse_pressure(text), Some(12.5));
        assert_eq!(parse_pressure("some avg10=1.00\n"), None);
        assert_eq!(parse_pressure(""), None);
    }

    #[test]
    fn a_listening_socket_is_found_by_its_port() {
        let line =
            "   0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1 1";
        assert!(is_listening(line, 22));
        assert!(!is_listening(line, 80));
        assert!(!is_listening(&line.replace(" 0A ", " 01 "), 22));
        assert!(!is_listening("sl local_address rem_address st", 22));
    }
}
