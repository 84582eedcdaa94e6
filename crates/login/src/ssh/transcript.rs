//! Parses the output of `ssh -vvv` into parts of the login and facts about it. Supports OpenSSH 7 to 10.

use crate::{Login, LoginPart};
use assay_model::Nanos;

/// Maximum number of stored messages.
const COMPLAINTS: usize = 40;

/// Parser state: the parts of the login so far.
#[derive(Debug)]
pub struct Transcript {
    login: Login,
    /// Current part and its start.
    part: LoginPart,
    since: Nanos,
    /// Lines of standard error that are messages for the user, not trace output.
    complaints: Vec<String>,
    /// The address being tried, and since when.
    trying: Option<(String, Nanos)>,
    /// Time at which ssh offered the current key; `None` if no offer is pending.
    offered: Option<Nanos>,
    /// Exit status of the remote command.
    status: Option<i32>,
}

impl Default for Transcript {
    fn default() -> Self {
        Self {
            login: Login::default(),
            part: LoginPart::Name,
            since: Nanos(0),
            complaints: Vec::new(),
            trying: None,
            offered: None,
            status: None,
        }
    }
}

impl Transcript {
    /// Parses a line of standard error.
    pub fn line(&mut self, at: Nanos, line: &str) {
        let traced = ["debug1: ", "debug2: ", "debug3: "]
            .iter()
            .find_map(|prefix| line.strip_prefix(prefix));
        let Some(text) = traced else {
            self.plain(at, line);
            return;
        };
        self.note_clue(at, text);
        let part = match text {
            _ if text.starts_with("Connecting to ") => LoginPart::Tcp,
            _ if text.starts_with("Connection established") => LoginPart::Banner,
            _ if text.starts_with("Executing proxy command: ") => LoginPart::Banner,
            _ if text.starts_with("Remote protocol version") => LoginPart::KeyExchange,
            _ if text.starts_with("SSH2_MSG_SERVICE_ACCEPT received") => LoginPart::User,
            _ if text.starts_with("Next authentication method: ") => LoginPart::Method(
                text["Next authentication method: ".len()..]
                    .trim()
                    .to_owned(),
            ),
            _ => return,
        };
        // A further address, or another key for the same method, belongs to the same part.
        if part != self.part {
            self.enter(at, part);
        }
    }

    fn note_clue(&mut self, at: Nanos, text: &str) {
        let clues = &mut self.login.clues;
        let after = |prefix: &str| text.strip_prefix(prefix).map(|rest| rest.trim().to_owned());
        if let Some(address) = after("Connecting to ") {
            self.trying = Some((address, at));
        } else if text.starts_with("connect to address ") || text.contains("Connection timed out") {
            if let Some((address, since)) = self.trying.take() {
                clues
                    .unanswered
                    .push((address, Nanos(at.0.saturating_sub(since.0))));
            }
            self.login.remarks.push(text.to_owned());
        } else if let Some(command) = after("Executing proxy command: ") {
            clues.proxy = Some(command);
        } else if let Some(name) = after("kex: algorithm: ") {
            clues.algorithm = Some(name);
        } else if let Some(name) = after("kex: host key algorithm: ") {
            clues.host_key = Some(name);
        } else if let Some(rest) = after("subprocess: ") {
            // subprocess: KnownHostsCommand-ORDER command "/usr/bin/x" running as root (flags 0x1a)
            let mut quoted = rest.split('"');
            if let (Some(option), Some(command)) = (quoted.next(), quoted.next()) {
                let option = option.split([' ', '-']).next().unwrap_or_default();
                clues.commands.push((option.to_owned(), command.to_owned()));
            }
        } else if text.starts_with("Executing command: ") {
            let command = text.split('\'').nth(1).unwrap_or_default();
            clues
                .commands
                .push(("Match exec".to_owned(), command.to_owned()));
        } else if text.starts_with("Offering public key: ") {
            self.offered = Some(at);
        } else if text.starts_with("Server accepts key: ") {
            self.offered = None;
        } else if let Some(methods) = after("Authentications that can continue: ") {
            clues.methods = Some(methods);
            if let LoginPart::Method(tried) = &self.part
                && !clues.refused_methods.contains(tried)
            {
                clues.refused_methods.push(tried.clone());
            }
            if let Some(since) = self.offered.take() {
                clues.refused_keys.push(Nanos(at.0.saturating_sub(since.0)));
            }
        } else if text.starts_with("Remote: ") && text.contains("key options:") {
            clues.forced_by_key |= text
                .split_whitespace()
                .any(|word| word.trim_end_matches(',') == "command");
        } else if text.starts_with("Remote: Forced command") {
            clues.forced_by_key = true;
        } else if text.starts_with("channel_input_open_confirmation: ") {
            clues
                .opened
                .get_or_insert(Nanos(at.0.saturating_sub(self.since.0)));
        } else if let Some(status) = after("Exit status ") {
            self.status = status.parse().ok();
        } else if let Some(rest) = after("kex_exchange_identification: banner line ") {
            let said = rest
                .split_once(": ")
                .map_or("", |(_, said)| said)
                .to_owned();
            self.complaints.push(said);
        }
    }

    fn plain(&mut self, at: Nanos, line: &str) {
        if line.starts_with("Authenticated to ") {
            self.enter(at, LoginPart::Session);
        } else if !line.trim().is_empty()
            && !line.starts_with("OpenSSH_")
            && !line.starts_with("debug")
            && !line.starts_with("Transferred: ")
            && !line.starts_with("Bytes per second: ")
            && self.complaints.len() < COMPLAINTS
        {
            self.complaints.push(line.trim().to_owned());
        }
    }

    fn enter(&mut self, at: Nanos, part: LoginPart) {
        let took = Nanos(at.0.saturating_sub(self.since.0));
        let ended = std::mem::replace(&mut self.part, part);
        self.login.add(ended, took);
        self.since = at;
    }

    /// Records that the session is established and the interactive shell starts.
    pub fn shell_begins(&mut self, at: Nanos) {
        self.enter(at, LoginPart::Prompt);
    }

    /// Records remote output. If the output is the mark, the login is complete. Returns `mark`.
    pub fn said(&mut self, at: Nanos, mark: bool) -> bool {
        if mark {
            self.enter(at, LoginPart::Logout);
        }
        mark
    }

    /// Returns the current part.
    #[must_use]
    pub fn waiting(&self) -> LoginPart {
        self.part.clone()
    }

    /// Returns whether the session ended successfully without printing the mark. Then the server ran another command
    /// than requested.
    #[must_use]
    pub fn ran_another_command(&self) -> bool {
        matches!(self.part, LoginPart::Session | LoginPart::Prompt) && self.status == Some(0)
    }

    /// Returns ssh's last message.
    #[must_use]
    pub fn complaint(&self) -> String {
        let said = self.complaints.last().cloned();
        said.unwrap_or_else(|| "ssh ended without a word".to_owned())
    }

    /// Returns all messages of ssh.
    #[must_use]
    pub fn complaints(&self) -> Vec<String> {
        self.complaints.clone()
    }

    /// Completes the login.
    #[must_use]
    pub fn finish(self) -> Login {
        self.login
    }

    /// Returns an unfinished login.
    #[must_use]
    pub fn cut(mut self, at: Nanos) -> Login {
        self.enter(at, LoginPart::Answer);
        self.login
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OpenSSH 9.2p1 (Debian 12), shortened, with invented times.
    const REAL: [(u64, &str); 16] = [
        (
            1,
            "OpenSSH_9.2p1 Debian-2+deb12u7, OpenSSL 3.0.17 1 Jul 2025",
        ),
        (1, "debug1: Reading configuration data /etc/ssh/ssh_config"),
        (30, "debug1: Connecting to localhost [::1] port 2222."),
        (
            31,
            "debug1: connect to address ::1 port 2222: Connection refused",
        ),
        (31, "debug1: Connecting to localhost [127.0.0.1] port 2222."),
        (32, "debug1: Connection established."),
        (33, "debug1: identity file /root/.ssh/id_ed25519 type 3"),
        (
            40,
            "debug1: Remote protocol version 2.0, remote software version OpenSSH_9.2p1",
        ),
        (41, "debug1: SSH2_MSG_KEXINIT sent"),
        (60, "debug1: SSH2_MSG_SERVICE_ACCEPT received"),
        (
            2060,
            "debug1: Authentications that can continue: publickey,password",
        ),
        (2061, "debug1: Next authentication method: publickey"),
        (
            2062,
            "debug1: Offering public key: /root/.ssh/id_ed25519 ED25519",
        ),
        (
            2090,
            "Authenticated to localhost ([127.0.0.1]:2222) using \"publickey\".",
        ),
        (2091, "debug1: Entering interactive session."),
        (2092, "debug1: Sending command: printf"),
    ];

    #[test]
    fn parts_of_a_real_login() {
        let mut transcript = Transcript::default();
        for (at, line) in REAL {
            transcript.line(Nanos(at), line);
        }
        assert!(!transcript.said(Nanos(2095), false));
        assert!(transcript.said(Nanos(2100), true));
        let login = transcript.finish();
        let parts: Vec<(String, u64)> = login
            .phases
            .iter()
            .map(|phase| (phase.part.name(), phase.took.0))
            .collect();
        let expected = [
            ("name", 30),
            ("TCP", 2),
            ("banner", 8),
            ("key exchange", 20),
            ("user", 2001),
            ("publickey", 29),
            ("session", 10),
        ];
        assert_eq!(parts, expected.map(|(part, took)| (part.to_owned(), took)));
        assert_eq!(login.total(), Nanos(2100));
        assert_eq!(login.remarks.len(), 1);
    }

    #[test]
    fn a_refusal_keeps_what_was_said_and_where_it_was() {
        let mut transcript = Transcript::default();
        for (at, line) in &REAL[..13] {
            transcript.line(Nanos(*at), line);
        }
        transcript.line(
            Nanos(2100),
            "root@localhost: Permission denied (publickey).",
        );
        assert_eq!(
            transcript.waiting(),
            LoginPart::Method("publickey".to_owned())
        );
        assert!(transcript.complaint().contains("Permission denied"));
        let login = transcript.cut(Nanos(2100));
        assert!(login.clues.refused_methods.is_empty());
        assert_eq!(login.total(), Nanos(2100));
    }

    #[test]
    fn a_method_that_is_refused_is_recorded_once() {
        let mut transcript = Transcript::default();
        for line in [
            // The answer to the method `none`.
            "debug1: Authentications that can continue: publickey,password",
            "debug1: Next authentication method: publickey",
            "debug1: Authentications that can continue: publickey,password",
            "debug1: Authentications that can continue: publickey,password",
            "debug1: Next authentication method: password",
            "Authenticated to localhost ([127.0.0.1]:2222) using \"password\".",
        ] {
            transcript.line(Nanos(1), line);
        }
        assert_eq!(transcript.finish().clues.refused_methods, ["publickey"]);
    }
}
