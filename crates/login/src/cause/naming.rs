//! Describes observed activities as causes of a wait, with a stable id, evidence and the next step.

mod programs;
mod services;

use super::{LoginKind, Named, PamLine, ServerKnowledge, name_cause};
use crate::activity::{Activity, ActivityShare, ConnectionSide};
use crate::client_trace::Clues;
use crate::pam_timing::PamModuleTime;
use crate::startup::{LineTrigger, StartupLine};
use crate::{Login, LoginPart};
use programs::{first_word, is_command, name_program, program_name};
use services::{name_peer, name_server_lookup, name_service};

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
    let slow = ["pam_faildelay", "pam_unix"]
        .into_iter()
        .find_map(|module| {
            let line = pam_line(known, module)?;
            let waits = line.kind == "auth" && !line.arguments.iter().any(|word| word == "nodelay");
            waits.then_some(line)
        });
    if let Some(line) = slow.filter(|_| may_follow_refusal(kind, share, login, known)) {
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
        match can_time_modules(kind, known) {
            true => TIME_MODULES,
            false => "look for delays in the server's configuration and its modules",
        },
    )
}

/// Returns whether PAM may have refused an attempt before this sleep. sshd itself sleeps too, in its process `[net]`
/// and after any attempt that has not succeeded yet.
fn may_follow_refusal(
    kind: LoginKind,
    share: &ActivityShare,
    login: &Login,
    known: &ServerKnowledge,
) -> bool {
    match (&share.part, kind) {
        (LoginPart::Method(_) | LoginPart::User, LoginKind::Ssh)
            if share.process.ends_with("[net]") =>
        {
            false
        }
        // A method that was cut off has no answer yet.
        (LoginPart::Method(method), LoginKind::Ssh) => {
            let asks_pam = matches!(&method[..], "password" | "keyboard-interactive");
            let refused = login.clues.refused_methods.contains(method);
            let is_in = login
                .phases
                .iter()
                .any(|phase| phase.part == LoginPart::Session);
            asks_pam && (refused || !is_in)
        }
        // sshd tries an empty password first.
        (LoginPart::User, LoginKind::Ssh) => known
            .setting("permitemptypasswords")
            .is_none_or(|value| value == "yes"),
        (LoginPart::Method(_) | LoginPart::User, _) => true,
        _ => false,
    }
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

/// Describes a slow line of a start-up file, or of what the shell runs at each prompt, as a cause.
pub(super) fn name_line(line: &StartupLine) -> Named {
    let (command, place) = (&line.command, &line.place);
    let seen = format!("{place}, each line was timed");
    let (id, what, then) = match line.trigger {
        LineTrigger::StartUpFile if command.is_empty() => (
            "start-up-file",
            format!("start-up file {place}: its many short lines together"),
            "leave out what you do not use in it, or load it when it is first needed",
        ),
        LineTrigger::StartUpFile => (
            "start-up-line",
            format!("start-up file: `{command}` at {place}"),
            "run that command by hand; a tool that waits for a lock names its file",
        ),
        LineTrigger::PromptCommand => (
            "prompt-command",
            format!(
                "the shell runs `{command}` before each prompt (PROMPT_COMMAND, precmd): {place}"
            ),
            "take it out there, or let it run in the background; the shell waits for it at each prompt",
        ),
        LineTrigger::PromptString => (
            "prompt-string",
            format!("the prompt (PS1) runs `{command}` each time: {place}"),
            "take that substitution out of PS1, or cache what it prints",
        ),
        LineTrigger::DebugTrap => (
            "debug-trap",
            format!("`trap … DEBUG` runs `{command}` before each command: {place}"),
            "remove it with `trap - DEBUG`; the shell waits for it before each command",
        ),
        LineTrigger::ReplacedShell => (
            "shell-replaced",
            format!(
                "a start-up file hands the terminal to another program: `{command}` at {place}"
            ),
            "assay cannot see when that program is ready; `--command-only` leaves the prompt out",
        ),
        LineTrigger::LogoutFile => (
            "logout-line",
            format!("logout file: `{command}` at {place}"),
            "run that command by hand; a login shell waits for it when it ends",
        ),
    };
    name_cause(id, &what, &seen, then)
}

/// Describes a module of PAM that was timed as a cause.
pub(super) fn name_module(module: &PamModuleTime) -> Named {
    let what = format!(
        "{} of PAM ({}) takes {:.2} s",
        module.module,
        module.kind,
        module.took.as_secs_f64()
    );
    let then = format!(
        "the login waits for that module until it ends or the line at {} goes",
        module.place
    );
    let seen = format!("{}; each module was timed", module.place);
    name_cause("pam-module", &what, &seen, &then)
}

/// Describes an address that did not answer as a cause.
pub(super) fn name_unanswered(address: &str) -> Named {
    name_cause(
        "address-unanswered",
        &format!("an address of the host does not answer: {address}"),
        "the client tried it first",
        "remove that address from DNS or /etc/hosts, or let its packets through the firewall",
    )
}

/// Describes the lookup of the server's name on this machine as a cause.
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

/// Returns whether the resolver asks mDNS for every name before DNS. The `minimal` modules ask mDNS only for .local
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

/// Describes a failed Kerberos (GSSAPI) attempt of the client as a cause.
pub(super) fn name_gssapi() -> Named {
    name_cause(
        "gssapi",
        "the client tries Kerberos (GSSAPIAuthentication yes)",
        "ssh -vvv: the method was tried and timed",
        "try it: assay trial ssh-gssapi; without Kerberos set GSSAPIAuthentication no",
    )
}

/// Describes keys that the server rejected as a cause.
pub(super) fn name_refused_keys() -> Named {
    name_cause(
        "refused-keys",
        "ssh offers keys that the server does not take before the one that it takes",
        "ssh -vvv: each offer was timed",
        "name the key with IdentityFile and set IdentitiesOnly yes",
    )
}

/// Describes a late greeting of the server as a cause.
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

/// Describes the round-trip time to the server as a cause.
pub(super) fn name_distance() -> Named {
    name_cause(
        "distance",
        "each question to the server and back takes a while, and a login asks several times",
        "the time to connect, which is one round trip",
        "keep a connection open: ControlMaster auto, ControlPersist 10m",
    )
}

/// Advice in a finding: how to find the module of PAM.
const TIME_MODULES: &str = "find the module of PAM: log in again with --each-module";

/// Returns whether the modules of PAM can be timed, and were not.
fn can_time_modules(kind: LoginKind, known: &ServerKnowledge) -> bool {
    let has_modules = known.pam.as_ref().is_some_and(|stack| !stack.is_empty());
    kind == LoginKind::Ssh && has_modules && known.is_watched && known.modules.is_empty()
}

/// Describes what is known about unexplained time, and the next step to find its cause.
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
        (LoginKind::Ssh, LoginPart::Logout, ..) => {
            "see whether programs of the session are left in the background, and the `session` lines in /etc/pam.d/sshd"
        }
        (_, LoginPart::Name, ..) => "time `getent ahosts HOST`",
        (_, LoginPart::Tcp, ..) => {
            "see the addresses that were tried, with `ssh -v` or `getent ahosts HOST`"
        }
        (_, LoginPart::Session | LoginPart::Method(_), true, true)
            if can_time_modules(kind, known) =>
        {
            TIME_MODULES
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

#[cfg(test)]
mod tests {
    use super::*;

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
