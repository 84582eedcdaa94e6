//! Describes observed activities as causes, with stable id, evidence and next step.

use super::{LoginKind, Named, PamLine, ServerKnowledge, name_cause};
use crate::activity::{Activity, ActivityShare, ConnectionSide};
use crate::client_trace::Clues;
use crate::startup::StartupLine;
use crate::{Login, LoginPart};

/// Describes the activity of a process as a cause.
pub(super) fn name_activity(
    kind: LoginKind,
    share: &ActivityShare,
    login: &Login,
    known: &ServerKnowledge,
) -> Named {
    match share.side {
        ConnectionSide::Client => name_of_client(share, login, known),
        ConnectionSide::Server => name_of_server(kind, share, login, known),
    }
}

/// Returns whether an activity is the user's own shell on the server with assay's command.
pub(super) fn is_users_shell(share: &ActivityShare) -> bool {
    let Activity::Program { words, .. } = &share.activity else {
        return false;
    };
    share.side == ConnectionSide::Server && words.iter().any(|word| word.contains("assay-login"))
}

fn name_of_client(share: &ActivityShare, login: &Login, known: &ServerKnowledge) -> Named {
    let process = &share.process;
    match &share.activity {
        Activity::Program { words, inner } => {
            let proxy = login.clues.proxy.as_deref();
            let started = login
                .clues
                .commands
                .iter()
                .find(|(_, command)| is_command(words, command));
            let then = "time that command by hand";
            if let Some((option, command)) = started {
                let id = match &option[..] {
                    "KnownHostsCommand" => "known-hosts-command",
                    "Match exec" => "match-exec",
                    _ => "client-program",
                };
                let what = format!(
                    "ssh starts a program for each login: {option} {}",
                    first_word(command)
                );
                return name_cause(id, &what, "ssh -vvv, and its process was timed", then);
            }
            if let Some(proxy) =
                proxy.filter(|_| share.part == LoginPart::Banner || share.part == LoginPart::Name)
            {
                let program = first_word(proxy.trim_start_matches("exec "));
                let what = format!("the connection is made by ProxyCommand {program}");
                let then = "the way through the proxy and the server's banner are in this time: log in to the proxy alone";
                return name_cause(
                    "proxy-command",
                    &what,
                    "ssh -vvv, and its process was timed",
                    then,
                );
            }
            let what = format!(
                "ssh waits for a program that it started: {}",
                program_name(words)
            );
            name_cause(
                "client-program",
                &what,
                &format!("process {inner}, timed"),
                then,
            )
        }
        Activity::NameServer(address) => name_lookup(
            known,
            &format!("{process} waited for the name server {address}"),
        ),
        Activity::Socket(path) if path.contains("avahi") => {
            name_lookup(known, &format!("{process} waited for {path}"))
        }
        Activity::Socket(path) => name_cause(
            "agent",
            "ssh waits for an agent: to list its keys, or to sign",
            &format!("{process} waited for {path}"),
            "`ssh-add -l` shows how long the agent takes; an agent may ask its user, or be forwarded from far away",
        ),
        Activity::Peer(address) => name_cause(
            "client-network",
            &format!("the client waits for another machine: {address}"),
            &format!("socket of {process}"),
            "a proxy or a Kerberos server is at that address",
        ),
        Activity::Sleep => name_cause(
            "client-sleeps",
            "the client sleeps on a timer",
            &format!("process {process}"),
            "ssh sleeps between tries: see ConnectionAttempts in ssh_config",
        ),
        Activity::Disk => name_cause(
            "disk-wait",
            "the client waits for a disk",
            &format!("process {process}"),
            "",
        ),
        Activity::Cpu => name_cpu(share, login),
        Activity::CpuQueue => name_busy_machine(),
    }
}

fn name_of_server(
    kind: LoginKind,
    share: &ActivityShare,
    login: &Login,
    known: &ServerKnowledge,
) -> Named {
    let process = &share.process;
    match &share.activity {
        Activity::Program { words, inner } => name_program(share, words, inner, login, known),
        Activity::NameServer(address) => name_server_lookup(kind, process, address, known),
        Activity::Socket(path) => name_service(process, path, known),
        Activity::Peer(address) => name_peer(process, address, known),
        Activity::Sleep => name_sleep(kind, share, login, known),
        Activity::Disk => match known.home.as_deref().filter(|fs| is_network_fs(fs)) {
            Some(fs) => name_cause(
                "home-on-network",
                &format!("the home is on {fs}: keys and start-up files are read over the network"),
                &format!("process {process} waits for a file system"),
                "time `cat ~/.bashrc` there",
            ),
            None => name_cause(
                "disk-wait",
                "the server's process waits for a disk",
                &format!("process {process}"),
                "measure the file system with `assay run quick DIRECTORY`",
            ),
        },
        Activity::Cpu => name_cpu(share, login),
        Activity::CpuQueue => name_busy_machine(),
    }
}

/// Describes a program that the server started.
fn name_program(
    share: &ActivityShare,
    words: &[String],
    inner: &str,
    login: &Login,
    known: &ServerKnowledge,
) -> Named {
    let line = words.join(" ");
    let process = format!("process {inner} below {}, timed", share.process);
    if let Some(command) = known.setting("forcecommand").filter(|value| is_set(value))
        && is_command(words, command)
    {
        let what = format!(
            "sshd runs a command of its own for this user: ForceCommand {}",
            first_word(command)
        );
        let then = "time that command by hand as the user";
        return name_cause("force-command", &what, &format!("sshd -T; {process}"), then);
    }
    if line.contains(".ssh/rc") {
        let then = "time `sh ~/.ssh/rc` there; sshd waits for it at each login";
        return name_cause("ssh-rc", "sshd runs ~/.ssh/rc of the user", &process, then);
    }
    if line.contains("/etc/ssh/sshrc") {
        let then = "time `sh /etc/ssh/sshrc` there; sshd waits for it at each login";
        return name_cause("sshrc", "sshd runs /etc/ssh/sshrc", &process, then);
    }
    if is_users_shell(share) {
        let what = "the user's shell runs its start-up files before the command";
        let then = "move what is slow in the shell's start-up files behind a test for a terminal";
        return name_cause(
            "shell-start-up",
            &format!("{what}: {inner}"),
            &process,
            then,
        );
    }
    for (keyword, id, user) in [
        (
            "authorizedkeyscommand",
            "authorized-keys-command",
            "AuthorizedKeysCommandUser",
        ),
        (
            "authorizedprincipalscommand",
            "authorized-principals-command",
            "AuthorizedPrincipalsCommandUser",
        ),
    ] {
        if let Some(command) = known.setting(keyword).filter(|value| is_set(value))
            && is_command(words, first_word(command))
        {
            let what = format!(
                "sshd starts a program for each login: {}",
                first_word(command)
            );
            return name_cause(
                id,
                &what,
                &format!("sshd -T: {keyword}; {process}"),
                &format!("time it by hand as {user}"),
            );
        }
    }
    if let Some(cause) = name_pam_program(&line, words, &process, known) {
        return cause;
    }
    if login.clues.forced_by_key && share.part == LoginPart::Session {
        let what = format!(
            "the user's key runs a command of its own: {}",
            program_name(words)
        );
        let seen = format!("`command=` in authorized_keys; {process}");
        return name_cause(
            "force-command",
            &what,
            &seen,
            "time that command by hand as the user",
        );
    }
    let what = format!(
        "the server waits for a program that it started: {}",
        program_name(words)
    );
    name_cause(
        "server-program",
        &what,
        &process,
        "time that program by hand",
    )
}

fn name_pam_program(
    line: &str,
    words: &[String],
    process: &str,
    known: &ServerKnowledge,
) -> Option<Named> {
    let stack = known.pam.as_deref().unwrap_or_default();
    if line.contains("/etc/update-motd.d") || line.contains("run-parts") {
        let script = words
            .iter()
            .find(|word| word.starts_with("/etc/update-motd.d/"));
        let what = match script {
            Some(script) => format!("pam_motd runs {script}"),
            None => "pam_motd runs the programs of /etc/update-motd.d".to_owned(),
        };
        let runs = |line: &&PamLine| {
            line.module == "pam_motd" && !line.arguments.iter().any(|word| word == "noupdate")
        };
        let place = stack.iter().find(runs).map(|line| line.place.clone());
        let seen = format!("{}; {process}", place.as_deref().unwrap_or("its processes"));
        return Some(name_cause("pam-motd", &what, &seen, TIME_MOTD));
    }
    let own = stack.iter().find(|line| {
        let paths = line.arguments.iter().filter(|word| word.starts_with('/'));
        paths.into_iter().any(|path| is_command(words, path))
    });
    let by_helper = || {
        let helper = words
            .iter()
            .find(|word| word.contains("_helper") || word.contains("unix_chkpwd"))?;
        let module = match helper.contains("mkhomedir") {
            true => "pam_mkhomedir",
            false => "pam_unix",
        };
        stack.iter().find(|line| line.module == module)
    };
    let found = own.or_else(by_helper)?;
    let id = match &found.module[..] {
        "pam_exec" => "pam-exec",
        "pam_script" => "pam-script",
        "pam_mkhomedir" => "pam-mkhomedir",
        _ => "pam-module",
    };
    let what = format!("{} runs {}", found.module, program_name(words));
    let then = format!(
        "time that program by hand as root; the login waits for it until it ends or the line at {} goes",
        found.place
    );
    Some(name_cause(
        id,
        &what,
        &format!("{}; {process}", found.place),
        &then,
    ))
}

/// Command that times each program of pam_motd; `run-parts --test` would print only names.
pub(super) const TIME_MOTD: &str = "time each of them: `for f in /etc/update-motd.d/*; do [ -x \"$f\" ] && \
    echo \"$f\" && bash -c 'time \"$0\" >/dev/null' \"$f\"; done`";

fn name_server_lookup(
    kind: LoginKind,
    process: &str,
    address: &str,
    known: &ServerKnowledge,
) -> Named {
    let seen = format!("{process} waited for the name server {address}");
    if kind == LoginKind::Ssh && known.setting("usedns") == Some("yes") {
        return name_cause(
            "usedns",
            "sshd looks the client's name up (UseDNS yes)",
            &format!("sshd -T; {seen}"),
            "try it: assay trial ssh-usedns",
        );
    }
    name_cause(
        "server-dns",
        "the server asks a name server, which does not answer at once",
        &seen,
        "time `getent hosts ADDRESS` there, with the client's address",
    )
}

/// Describes the service behind a Unix socket.
fn name_service(process: &str, path: &str, known: &ServerKnowledge) -> Named {
    let seen = format!("{process} waited for {path}");
    let of = |module: &str| pam_line(known, module).map(|line| line.place.clone());
    if path.contains("io.systemd.Resolve") {
        return name_cause(
            "server-dns",
            "the server asks systemd-resolved for a name",
            &seen,
            "resolvectl statistics",
        );
    }
    if (path.contains("dbus") || path.contains("/systemd/"))
        && let Some(place) = of("pam_systemd")
    {
        return name_cause(
            "pam-systemd",
            "pam_systemd asks systemd-logind for a session",
            &format!("{place}; {seen}"),
            "`systemctl status systemd-logind dbus`: it waits 25 s when one of them hangs; see assay advice \
             pam-systemd-off before taking it out",
        );
    }
    for (word, module, whom) in [
        ("/sss/", "pam_sss", "sssd"),
        ("nslcd", "pam_ldap", "nslcd, which asks an LDAP server"),
        (
            "winbind",
            "pam_winbind",
            "winbind, which asks a domain controller",
        ),
        ("nscd", "nscd", "nscd"),
    ] {
        if path.contains(word) {
            let place = of(module).map_or_else(String::new, |place| format!("{place}; "));
            let what = format!("the user is looked up or checked by {whom}");
            return name_cause(
                "user-lookup",
                &what,
                &format!("{place}{seen}"),
                "time `getent passwd USER` there",
            );
        }
    }
    name_cause(
        "server-socket",
        "the server waits for a service of its machine",
        &seen,
        "see what that service does",
    )
}

/// Ports of services, the PAM modules that use them, and descriptions.
const PEERS: [(&[u16], &str, &str); 5] = [
    (&[389, 636, 3268, 3269], "pam_ldap", "an LDAP server"),
    (&[88, 464], "pam_krb5", "a Kerberos server"),
    (&[1812, 1645], "pam_radius", "a RADIUS server"),
    (&[3306], "pam_mysql", "a MySQL or MariaDB server"),
    (&[5432], "pam_pgsql", "a PostgreSQL server"),
];

fn name_peer(process: &str, address: &str, known: &ServerKnowledge) -> Named {
    let seen = format!("{process} waited for {address}");
    let port: u16 = address
        .rsplit(':')
        .next()
        .and_then(|port| port.parse().ok())
        .unwrap_or(0);
    for (ports, module, whom) in PEERS {
        if ports.contains(&port) {
            let line = pam_line(known, module);
            let place = line.map_or_else(String::new, |line| format!("{}; ", line.place));
            let what = format!("the server asks {whom}");
            return name_cause(
                "server-network",
                &what,
                &format!("{place}{seen}"),
                "see whether it answers at once",
            );
        }
    }
    let what = format!("the server waits for another machine: {address}");
    name_cause(
        "server-network",
        &what,
        &seen,
        "see whether it answers at once",
    )
}

fn name_sleep(
    kind: LoginKind,
    share: &ActivityShare,
    login: &Login,
    known: &ServerKnowledge,
) -> Named {
    let process = format!("process {} sleeps on a timer", share.process);
    let mail = matches!(kind, LoginKind::Imap | LoginKind::Smtp);
    if mail && share.part == LoginPart::Banner {
        return name_late_greeting(&login.clues, known);
    }
    if let Some(passdbs) = &known.passdbs
        && let Some(at) = passdbs.iter().position(|(driver, _)| driver == "pam")
        && passdbs.len() > at + 1
    {
        return name_cause(
            "dovecot-pam-order",
            "PAM is asked before the other users' database, and waits after each refusal",
            &format!("{}; {process}", passdbs[at].1),
            "try it: assay trial dovecot-pam-order",
        );
    }
    let refused = matches!(share.part, LoginPart::Method(_) | LoginPart::User);
    let slow = ["pam_faildelay", "pam_unix"]
        .into_iter()
        .find_map(|module| {
            let line = pam_line(known, module)?;
            let waits = line.kind == "auth" && !line.arguments.iter().any(|word| word == "nodelay");
            (refused && waits).then_some(line)
        });
    if let Some(line) = slow {
        return name_cause(
            "pam-fail-delay",
            &format!("PAM waits on purpose after a refusal ({})", line.module),
            &format!("{}; {process}", line.place),
            "offer the method that succeeds first",
        );
    }
    let what =
        "a process of the server sleeps on a timer: a module or a delay of its configuration";
    name_cause(
        "server-sleeps",
        what,
        &process,
        "look for delays in the server's configuration and its modules",
    )
}

fn name_cpu(share: &ActivityShare, login: &Login) -> Named {
    let who = match share.side {
        ConnectionSide::Client => "the client",
        ConnectionSide::Server => "the server",
    };
    if share.part == LoginPart::KeyExchange {
        let clues = &login.clues;
        let name = |name: &Option<String>| name.clone().unwrap_or_else(|| "unknown".to_owned());
        return name_cause(
            "key-exchange",
            &format!(
                "{who} computes: {} with host key {}",
                name(&clues.algorithm),
                name(&clues.host_key)
            ),
            &format!("CPU time of {}", share.process),
            "curve25519-sha256 with ssh-ed25519 takes a few milliseconds",
        );
    }
    let id = match share.side {
        ConnectionSide::Client => "client-cpu",
        ConnectionSide::Server => "server-cpu",
    };
    name_cause(
        id,
        &format!("{who} computes"),
        &format!("CPU time of {}", share.process),
        "",
    )
}

fn name_busy_machine() -> Named {
    name_cause(
        "busy-machine",
        "processes of the login wait for a CPU of this machine",
        "/proc/PID/schedstat",
        "see what else runs: `top`",
    )
}

/// Describes a line of a start-up file.
pub(super) fn name_line(line: &StartupLine) -> Named {
    let what = format!("start-up file: `{}`", line.command);
    let then = "run that command by hand; a tool that waits for a lock names its file";
    let what = format!("{what} at {}", line.place);
    name_cause(
        "start-up-line",
        &what,
        &format!("{}, each line was timed", line.place),
        then,
    )
}

/// Describes an address that did not answer.
pub(super) fn name_unanswered(address: &str) -> Named {
    name_cause(
        "address-unanswered",
        &format!("an address of the host does not answer: {address}"),
        "the client tried it first",
        "remove that address from DNS or /etc/hosts, or let its packets through the firewall",
    )
}

/// Describes the lookup of the server's name on this machine.
pub(super) fn name_lookup(known: &ServerKnowledge, seen: &str) -> Named {
    if let Some((hosts, place)) = &known.hosts
        && asks_mdns_first(hosts)
    {
        return name_cause(
            "client-mdns",
            &format!("names are asked of the whole network (mDNS) before DNS: {hosts}"),
            &format!("{place}; {seen}"),
            "write `mdns4_minimal [NOTFOUND=return]` in place of mdns, or put mdns behind dns",
        );
    }
    name_cause(
        "name-lookup",
        "the host's name is looked up here, and the resolver does not answer at once",
        seen,
        "time `getent ahosts HOST`, and ask each name server of /etc/resolv.conf by itself: `dig @SERVER HOST`",
    )
}

/// Returns whether every name is looked up in mDNS before DNS. The `minimal` modules look up only .local
/// names.
fn asks_mdns_first(hosts: &str) -> bool {
    for word in hosts.split_whitespace() {
        if word == "dns" || word == "resolve" {
            return false;
        }
        if word.starts_with("mdns") && !word.ends_with("_minimal") {
            return true;
        }
    }
    false
}

/// Describes a failed Kerberos attempt of the client.
pub(super) fn name_gssapi() -> Named {
    name_cause(
        "gssapi",
        "the client tries Kerberos (GSSAPIAuthentication yes)",
        "ssh -vvv: the method was tried and timed",
        "try it: assay trial ssh-gssapi; without Kerberos set GSSAPIAuthentication no",
    )
}

/// Describes keys that the server rejected.
pub(super) fn name_refused_keys() -> Named {
    name_cause(
        "refused-keys",
        "ssh offers keys that the server does not take before the one that it takes",
        "ssh -vvv: each offer was timed",
        "name the key with IdentityFile and set IdentitiesOnly yes",
    )
}

/// Describes a late greeting.
pub(super) fn name_late_greeting(clues: &Clues, known: &ServerKnowledge) -> Named {
    let (seen, then) = match (known.sleeps.first(), clues.greeted) {
        (Some(sleep), _) => (
            format!("postconf -n: {sleep}"),
            "take `sleep` out of those restrictions",
        ),
        (None, Some(_)) => (
            "the first line of the greeting came before the others, as postscreen sends it"
                .to_owned(),
            "postscreen_greet_wait is the time; clients that passed are not asked again for a day",
        ),
        (None, None) => (
            "the time from the connection to the greeting".to_owned(),
            "the server's configuration or its log shows why it waits before it greets",
        ),
    };
    name_cause("greeting-delayed", "the server greets late", &seen, then)
}

/// Describes the network distance.
pub(super) fn name_distance() -> Named {
    name_cause(
        "distance",
        "each question to the server and back takes a while, and a login asks several times",
        "the time to connect, which is one round trip",
        "keep a connection open: ControlMaster auto, ControlPersist 10m",
    )
}

/// Returns the known facts about unexplained time, and the next step of the diagnosis.
pub(super) fn how_to_find_out(
    kind: LoginKind,
    part: &LoginPart,
    logins: &[Login],
    known: &ServerKnowledge,
) -> (Option<String>, String) {
    let opened = logins
        .iter()
        .find_map(|login| login.clues.opened)
        .filter(|_| *part == LoginPart::Session);
    let within = opened.map(|opened| format!("sshd opened the session after {opened}"));
    let then = match (kind, part, known.is_here, known.is_watched) {
        (_, _, true, false) => "run this as root: assay then watches the server's processes",
        (LoginKind::Ssh, LoginPart::Prompt, ..) => {
            "run `bash -lixc exit` there and see where it stops"
        }
        (_, LoginPart::Name, ..) => "time `getent ahosts HOST`",
        (_, LoginPart::Tcp, ..) => {
            "see the addresses that were tried, with `ssh -v` or `getent ahosts HOST`"
        }
        (_, _, true, true) => {
            "no process of the server was seen to work or to wait for somebody: see its log"
        }
        (_, _, false, _) => "run this on the server as root: assay then watches its processes",
    };
    (within, then.to_owned())
}

fn is_network_fs(fs: &str) -> bool {
    const FAR: [&str; 8] = [
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "fuse.sshfs",
        "autofs",
        "afs",
        "ceph",
    ];
    FAR.contains(&fs)
}

fn pam_line<'a>(known: &'a ServerKnowledge, module: &str) -> Option<&'a PamLine> {
    known
        .pam
        .iter()
        .flatten()
        .find(|line| line.module.starts_with(module))
}

fn is_set(value: &str) -> bool {
    !value.is_empty() && value != "none"
}

/// Returns whether words of a process are this command.
fn is_command(words: &[String], command: &str) -> bool {
    let command = command.trim();
    if command.is_empty() {
        return false;
    }
    let path = first_word(command);
    let by_path = path.starts_with('/') && words.iter().any(|word| word == path);
    by_path || words.join(" ").contains(command)
}

fn first_word(command: &str) -> &str {
    command.split_whitespace().next().unwrap_or(command)
}

/// Returns the program of a process without its arguments, which may contain secrets: the script of an
/// interpreter, the first word after `sh -c`.
fn program_name(words: &[String]) -> String {
    const SHELLS: [&str; 8] = ["sh", "bash", "dash", "ash", "zsh", "ksh", "env", "python3"];
    let base = |word: &str| {
        word.rsplit('/')
            .next()
            .unwrap_or(word)
            .trim_start_matches('-')
            .to_owned()
    };
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if word.starts_with('-') && !SHELLS.contains(&&base(word)[..]) {
            continue;
        }
        let first = first_word(word);
        let is_shell = SHELLS.contains(&&base(first)[..]);
        if !is_shell || rest.len() == 0 {
            return first.trim_matches(['\'', '"']).to_owned();
        }
    }
    "unknown".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_named_without_their_arguments() {
        for (words, expected) in [
            (
                &["/usr/local/bin/hook", "--token", "hunter2"][..],
                "/usr/local/bin/hook",
            ),
            (&["/bin/sh", "/etc/hook.sh", "hunter2"], "/etc/hook.sh"),
            (&["sh", "-c", "curl -H hunter2 https://x/"], "curl"),
            (&["/bin/bash", "-e", "/x/y"], "/x/y"),
            (&["-bash"], "-bash"),
        ] {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(program_name(&words), expected);
        }
    }

    #[test]
    fn a_remedy_is_not_what_is_there_already() {
        for (hosts, first) in [
            ("files mdns4 dns", true),
            ("files mdns dns", true),
            ("files mdns4_minimal [NOTFOUND=return] dns", false),
            (
                "files mdns_minimal [NOTFOUND=return] resolve [!UNAVAIL=return] dns",
                false,
            ),
            ("files dns mdns4", false),
            ("files mdns4_minimal [NOTFOUND=return] dns mdns4", false),
            ("files", false),
        ] {
            assert_eq!(asks_mdns_first(hosts), first, "{hosts}");
        }
    }
}
