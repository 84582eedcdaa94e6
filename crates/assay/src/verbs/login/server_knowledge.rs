//! Reads sources on this machine that explain delays of a login. Reads nothing from another machine.

use assay_host::{Host, Limits, LiveHost};
use assay_login::cause::{LoginKind, PamLine, ServerKnowledge};
use assay_login::failure::{AccountState, ShadowEntry};
use assay_login::watch;
use std::ffi::OsStr;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};

/// Maximum depth of nested includes in PAM files.
const DEEPEST: usize = 8;
/// Directories of PAM services. The first directory that has the file is used.
const PAM: [&str; 2] = ["/etc/pam.d", "/usr/lib/pam.d"];

/// The server to which a login connects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoginServer {
    /// Host name or address.
    pub host: String,
    /// TCP port of the server.
    pub port: u16,
    /// Whether the connection uses a proxy. In this case, the proxy resolves the host name.
    pub proxied: bool,
}

impl LoginServer {
    /// Returns the address of the server if it is an address of this machine.
    fn address_here(&self) -> Option<SocketAddr> {
        if self.proxied {
            return None;
        }
        let addresses: Vec<SocketAddr> = (&self.host[..], self.port)
            .to_socket_addrs()
            .ok()?
            .collect();
        let here = addresses.iter().all(assay_web::is_here);
        here.then(|| addresses.first().copied()).flatten()
    }

    /// Returns the processes of the server if they run on this machine and are visible.
    pub fn watched(&self, kind: LoginKind) -> watch::WatchedServer {
        let listening = self
            .address_here()
            .map(|address| assay_web::ServerProcesses::listening(&address));
        let listeners = match listening {
            Some(assay_web::ServerProcesses::Processes(listeners)) => listeners,
            _ => Vec::new(),
        };
        watch::WatchedServer {
            listeners,
            port: self.port,
            forks: kind == LoginKind::Ssh,
        }
    }
}

/// Reads all sources that may explain a delay. If the server is another machine, reads only the host lookup services.
pub fn of(
    kind: LoginKind,
    server: &LoginServer,
    watched: &watch::WatchedServer,
    user: Option<&str>,
) -> ServerKnowledge {
    let mut known = ServerKnowledge {
        hosts: services("hosts:"),
        ..ServerKnowledge::default()
    };
    let Some(address) = server.address_here() else {
        return known;
    };
    let listeners = &watched.listeners[..];
    known.is_here = true;
    known.is_watched = !listeners.is_empty();
    known.user_exists = user.map(|user| said(&["getent", "passwd", "--", user]).is_some());
    match kind {
        LoginKind::Ssh => {
            known.account = user.and_then(read_account);
            known.sshd = sshd(listeners, &address, user);
            known.startups = listeners.iter().find_map(|pid| startups(&title(*pid)?));
            known.home = home(user).and_then(|home| {
                let target = assay_facts::target(&LiveHost, &home).ok()?;
                target.fs_type
            });
            let service = known
                .setting("pamservicename")
                .filter(|name| !name.is_empty());
            known.pam = match known.setting("usepam") {
                Some("no") => Some(Vec::new()),
                _ => pam(service.unwrap_or("sshd")),
            };
        }
        LoginKind::Imap => {
            known.pam = pam("dovecot");
            let config = listeners
                .iter()
                .find_map(|pid| argument(&title(*pid)?, "-c"));
            let mut argv = vec!["doveconf", "-n"];
            argv.extend(config.iter().flat_map(|file| ["-c", file]));
            known.passdbs = said(&argv).map(|text| passdbs(&text));
        }
        LoginKind::Smtp => {
            known.pam = pam("smtp");
            let directory = listeners.iter().find_map(|pid| mail_config(*pid));
            let mut argv = vec!["postconf"];
            argv.extend(directory.iter().flat_map(|file| ["-c", file]));
            argv.push("-n");
            known.sleeps = said(&argv).map(|text| sleeps(&text)).unwrap_or_default();
        }
        LoginKind::Http => {}
    }
    known
}

/// Reads what the files of this machine contain about a user's account.
#[allow(
    clippy::disallowed_methods,
    reason = "whether an account has expired depends on today"
)]
fn read_account(user: &str) -> Option<AccountState> {
    let passwd = said(&["getent", "passwd", "--", user])?;
    // Only root may read it.
    let shadow = said(&["getent", "shadow", "--", user]);
    let shell = passwd.trim_end().rsplit(':').next().unwrap_or_default();
    let is_program = |shell: &str| shell.is_empty() || LiveHost.which(OsStr::new(shell)).is_some();
    let mut files = ["/etc/nologin", "/run/nologin"].into_iter();
    Some(AccountState {
        user: user.to_owned(),
        shadow: shadow.as_deref().and_then(ShadowEntry::parse),
        today: jiff::Timestamp::now().as_second() / 86_400,
        missing_shell: (!is_program(shell)).then(|| shell.to_owned()),
        nologin: files
            .find(|file| LiveHost.exists(Path::new(file)).unwrap_or(false))
            .map(str::to_owned),
    })
}

/// Returns the effective configuration of the sshd on this port. If sshd can evaluate its configuration for a user,
/// returns the configuration for `user`.
fn sshd(
    listeners: &[u32],
    address: &SocketAddr,
    user: Option<&str>,
) -> Option<Vec<(String, String)>> {
    let config = find_config(listeners).map(|file| file.display().to_string());
    let mut argv = vec!["sshd".to_owned(), "-T".to_owned()];
    argv.extend(config.into_iter().flat_map(|file| ["-f".to_owned(), file]));
    let ip = address.ip();
    let connection = format!(
        "user={},host={ip},addr={ip},laddr={ip},lport={}",
        user.unwrap_or("root"),
        address.port()
    );
    let asked = [&argv[..], &["-C".to_owned(), connection]].concat();
    let run = |argv: &[String]| said(&argv.iter().map(|word| &word[..]).collect::<Vec<_>>());
    let text = run(&asked).or_else(|| run(&argv))?;
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    Some(
        lines
            .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
            .collect(),
    )
}

/// Returns the configuration file with which sshd was started.
pub fn find_config(listeners: &[u32]) -> Option<PathBuf> {
    let named = |pid: &u32| argument(&title(*pid)?, "-f");
    listeners.iter().find_map(named).map(PathBuf::from)
}

/// Returns the path of the sshd program in the search path.
pub fn find_sshd() -> Option<PathBuf> {
    LiveHost.which(OsStr::new("sshd"))
}

fn text(path: &str) -> Option<String> {
    LiveHost.read_text(Path::new(path)).ok()
}

/// Returns the command line of a process, joined by spaces. sshd replaces its command line with a status text.
fn title(pid: u32) -> Option<String> {
    let title = text(&format!("/proc/{pid}/cmdline"))?;
    Some(title.replace('\0', " ").trim().to_owned())
}

/// Returns the argument that follows a flag in the command line of a process.
fn argument(title: &str, flag: &str) -> Option<String> {
    let mut words = title.split(' ');
    words.find(|word| *word == flag)?;
    words.next().map(str::to_owned)
}

/// Parses `[listener] 3 of 10-100 startups`: the number of unauthenticated connections, and the number from which sshd
/// drops some of them.
fn startups(title: &str) -> Option<(u32, u32)> {
    let (_, rest) = title.split_once("[listener] ")?;
    let mut words = rest.split([' ', '-']);
    let now = words.next()?.parse().ok()?;
    let most = words.nth(1)?.parse().ok()?;
    Some((now, most))
}

/// Returns the configuration directory of a running Postfix process, from the environment of the process.
fn mail_config(pid: u32) -> Option<String> {
    let environment = text(&format!("/proc/{pid}/environ"))?;
    let mut all = environment.split('\0');
    all.find_map(|entry| entry.strip_prefix("MAIL_CONFIG="))
        .map(str::to_owned)
}

/// Returns the names of restriction lists that contain `sleep`, from the output of `postconf -n`.
fn sleeps(text: &str) -> Vec<String> {
    let sleeps = |line: &&str| {
        let mut words = line.split([' ', ',', '=']).filter(|word| !word.is_empty());
        words.any(|word| word == "sleep") && line.contains("_restrictions")
    };
    text.lines()
        .filter(sleeps)
        .map(|line| line.trim().to_owned())
        .collect()
}

/// Returns the services of a line of nsswitch.conf, such as `files dns`, and the place of the line (`FILE:LINE`).
fn services(key: &str) -> Option<(String, String)> {
    const FILE: &str = "/etc/nsswitch.conf";
    let text = text(FILE)?;
    let mut lines = (1..).zip(text.lines());
    lines.find_map(|(number, line)| {
        let services = line.trim().strip_prefix(key)?;
        Some((services.trim().to_owned(), format!("{FILE}:{number}")))
    })
}

fn said(argv: &[&str]) -> Option<String> {
    let argv: Vec<&OsStr> = argv.iter().map(OsStr::new).collect();
    let output = LiveHost.run(&argv, Limits::default()).ok()?;
    output.success().then(|| output.text())
}

/// Returns the lines of a service's PAM stack in order. `None` if the file of the service cannot be read.
fn pam(service: &str) -> Option<Vec<PamLine>> {
    let mut found = Vec::new();
    follow(service, None, 0, &mut found).then_some(found)
}

/// Reads a PAM file and its includes. With `only`, reads only lines of this type. Returns false if the file itself
/// cannot be read.
fn follow(service: &str, only: Option<&str>, depth: usize, found: &mut Vec<PamLine>) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if depth > DEEPEST || !service.chars().all(plain) {
        return false;
    }
    let paths = PAM.iter().map(|directory| format!("{directory}/{service}"));
    let Some((path, text)) = paths
        .into_iter()
        .find_map(|path| Some((path.clone(), text(&path)?)))
    else {
        return false;
    };
    for (number, line) in (1..).zip(text.lines()) {
        match parse_pam_line(line) {
            Some(Entry::Include(kind, other)) => {
                let kind = kind.as_deref().or(only);
                follow(&other, kind, depth + 1, found);
            }
            Some(Entry::Line(mut line)) if only.is_none_or(|only| only == line.kind) => {
                line.place = format!("{path}:{number}");
                found.push(line);
            }
            _ => {}
        }
    }
    true
}

/// A line of a PAM configuration.
enum Entry {
    /// A line that includes another file, as (type to include or all, name of the file).
    Include(Option<String>, String),
    /// A line with a module.
    Line(PamLine),
}

fn parse_pam_line(line: &str) -> Option<Entry> {
    let line = line.split('#').next()?.trim();
    if let Some(other) = line.strip_prefix("@include") {
        return Some(Entry::Include(None, other.trim().to_owned()));
    }
    let (kind, rest) = line
        .trim_start_matches('-')
        .split_once(char::is_whitespace)?;
    let rest = rest.trim_start();
    let (control, rest) = match rest.strip_prefix('[') {
        Some(inner) => inner.split_once(']')?,
        None => rest.split_once(char::is_whitespace)?,
    };
    let mut words = rest.split_whitespace();
    let module = words.next()?;
    let kind = kind.to_lowercase();
    if matches!(control, "include" | "substack") {
        return Some(Entry::Include(Some(kind), module.to_owned()));
    }
    let name = module.rsplit('/').next().unwrap_or(module);
    Some(Entry::Line(PamLine {
        kind,
        module: name.trim_end_matches(".so").to_owned(),
        // An argument in brackets may contain blanks.
        arguments: words
            .map(|word| word.trim_matches(['[', ']']).to_owned())
            .collect(),
        place: String::new(),
    }))
}

/// Returns the driver of each passdb in the output of `doveconf -n`, with the place of its line.
fn passdbs(text: &str) -> Vec<(String, String)> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        match line {
            _ if line.starts_with("passdb") && line.ends_with('{') => inside = true,
            "}" => inside = false,
            _ => {
                if let (true, Some(driver)) = (inside, line.strip_prefix("driver = ")) {
                    found.push((driver.to_owned(), "doveconf -n".to_owned()));
                }
            }
        }
    }
    found
}

/// Returns the home directory of the user who logs in, or of the current user if `user` is `None`.
fn home(user: Option<&str>) -> Option<PathBuf> {
    let Some(user) = user else {
        return std::env::var_os("HOME").map(PathBuf::from);
    };
    let text = text("/etc/passwd")?;
    let line = text.lines().find_map(|line| {
        let (name, rest) = line.split_once(':')?;
        (name == user).then_some(rest)
    })?;
    line.split(':').nth(4).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passdbs_in_their_order() {
        // Output of doveconf 2.3.19.
        let text = "passdb {\n  driver = pam\n}\npassdb {\n  args = /x\n  driver = sql\n}\nuserdb {\n  driver = passwd\n}\n";
        let drivers: Vec<String> = passdbs(text)
            .into_iter()
            .map(|(driver, _)| driver)
            .collect();
        assert_eq!(drivers, ["pam", "sql"]);
    }

    #[test]
    fn names_that_lead_out_of_the_directory_are_not_followed() {
        assert!(!follow("../passwd", None, 0, &mut Vec::new()));
    }

    #[test]
    fn lines_of_pam() {
        let line = |text: &str| match parse_pam_line(text) {
            Some(Entry::Line(line)) => Some((line.kind, line.module, line.arguments.join(" "))),
            Some(Entry::Include(kind, file)) => {
                Some((kind.unwrap_or_default(), "include".to_owned(), file))
            }
            None => None,
        };
        let expect = |kind: &str, module: &str, rest: &str| {
            Some((kind.to_owned(), module.to_owned(), rest.to_owned()))
        };
        // From Debian 12, Fedora 40, Alpine 3.19, and pam.d(5).
        for (text, expected) in [
            (
                "session    optional     pam_motd.so noupdate",
                expect("session", "pam_motd", "noupdate"),
            ),
            (
                "-session optional pam_systemd.so",
                expect("session", "pam_systemd", ""),
            ),
            (
                "auth [success=1 default=ignore] pam_unix.so nullok",
                expect("auth", "pam_unix", "nullok"),
            ),
            (
                "session optional /usr/lib/security/pam_exec.so quiet /x/y",
                expect("session", "pam_exec", "quiet /x/y"),
            ),
            ("@include common-auth", expect("", "include", "common-auth")),
            (
                "auth       substack     password-auth",
                expect("auth", "include", "password-auth"),
            ),
            (
                "account include base-account",
                expect("account", "include", "base-account"),
            ),
            ("# session optional pam_motd.so", None),
            ("", None),
        ] {
            assert_eq!(line(text), expected, "{text}");
        }
    }

    #[test]
    fn titles_and_settings_of_servers() {
        let title =
            "sshd: /usr/sbin/sshd -D -f /x/sshd_config -E /x/log [listener] 3 of 10-100 startups";
        assert_eq!(startups(title), Some((3, 10)));
        assert_eq!(argument(title, "-f").as_deref(), Some("/x/sshd_config"));
        assert_eq!(startups("sshd: root@pts/0"), None);
        let text = "smtpd_client_restrictions = sleep 3, reject_unauth_pipelining\nmail_spool = /sleep\n\
                    smtpd_helo_restrictions = check_helo_access hash:/etc/sleep 1\n";
        assert_eq!(
            sleeps(text),
            ["smtpd_client_restrictions = sleep 3, reject_unauth_pipelining"]
        );
    }
}
