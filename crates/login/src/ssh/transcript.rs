//! What `ssh -v` says, as the parts of a login. The lines are those of OpenSSH 7 to 10.

use crate::{Login, Part};
use assay_model::Nanos;

/// The parts so far.
#[derive(Debug)]
pub struct Transcript {
    login: Login,
    /// The part that goes on, and when it began.
    part: Part,
    since: Nanos,
    /// The last line that is no trace.
    complaint: Option<String>,
}

impl Default for Transcript {
    fn default() -> Self {
        Self {
            login: Login::default(),
            part: Part::Name,
            since: Nanos(0),
            complaint: None,
        }
    }
}

impl Transcript {
    /// A line of standard error.
    pub fn line(&mut self, at: Nanos, line: &str) {
        let traced = line.strip_prefix("debug1: ");
        let Some(text) = traced else {
            self.plain(at, line);
            return;
        };
        let part = match text {
            _ if text.starts_with("Connecting to ") => Part::Tcp,
            _ if text.starts_with("Connection established") => Part::Banner,
            _ if text.starts_with("Remote protocol version") => Part::KeyExchange,
            _ if text.starts_with("SSH2_MSG_SERVICE_ACCEPT received") => Part::User,
            _ if text.starts_with("Next authentication method: ") => Part::Method(
                text["Next authentication method: ".len()..]
                    .trim()
                    .to_owned(),
            ),
            _ if text.starts_with("connect to address ")
                || text.contains("Connection timed out") =>
            {
                self.login.remarks.push(text.to_owned());
                return;
            }
            _ => return,
        };
        // A second address, or a method that is tried with another key, belongs to the same part.
        if part != self.part {
            self.enter(at, part);
        }
    }

    fn plain(&mut self, at: Nanos, line: &str) {
        if line.starts_with("Authenticated to ") {
            self.enter(at, Part::Session);
        } else if !line.trim().is_empty()
            && !line.starts_with("OpenSSH_")
            && !line.starts_with("debug")
        {
            self.complaint = Some(line.trim().to_owned());
        }
    }

    fn enter(&mut self, at: Nanos, part: Part) {
        let took = Nanos(at.0.saturating_sub(self.since.0));
        let ended = std::mem::replace(&mut self.part, part);
        self.login.add(ended, took);
        self.since = at;
    }

    /// The far end said something; whether that was the mark, which is the end.
    pub fn said(&mut self, at: Nanos, mark: bool) -> bool {
        if mark {
            self.enter(at, Part::Answer);
        }
        mark
    }

    /// What goes on.
    #[must_use]
    pub fn waiting(&self) -> Part {
        self.part.clone()
    }

    /// What ssh complained about last.
    #[must_use]
    pub fn complaint(&self) -> String {
        let said = self.complaint.clone();
        said.unwrap_or_else(|| "ssh ended without a word".to_owned())
    }

    /// The whole login.
    #[must_use]
    pub fn finish(self) -> Login {
        self.login
    }

    /// What there is, when it ends in the middle.
    #[must_use]
    pub fn cut(mut self, at: Nanos) -> Login {
        self.enter(at, Part::Answer);
        self.login
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OpenSSH 9.2p1 (Debian 12), shortened; times are made up.
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
        assert_eq!(transcript.waiting(), Part::Method("publickey".to_owned()));
        assert!(transcript.complaint().contains("Permission denied"));
        let login = transcript.cut(Nanos(2100));
        assert_eq!(login.total(), Nanos(2100));
    }
}
