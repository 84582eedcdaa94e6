//! Classifies failed logins by the client's messages, the failed part, and facts about the server. Module
//! `cause` explains slow logins.

mod account_state;

use crate::cause::{LoginKind, ServerKnowledge};
use crate::{LoginError, LoginPart};
pub use account_state::{AccountState, ShadowEntry};
use serde::Serialize;

/// Kinds of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The host name has no address.
    UnknownHost,
    /// No service listens on the port.
    ConnectionRefused,
    /// No address answers.
    NoAnswer,
    /// The TLS handshake failed.
    Tls,
    /// The server closed the connection before its banner.
    ClosedBeforeBanner,
    /// The server has reached its limit of unauthenticated connections.
    MaxStartupsFull,
    /// The banner did not arrive in time.
    BannerTimeout,
    /// Client and server support no common algorithm.
    NoCommonAlgorithm,
    /// The client does not know the host key.
    HostKeyUnknown,
    /// The host key differs from the known key.
    HostKeyChanged,
    /// The host key is revoked.
    HostKeyRevoked,
    /// The server does not know the user.
    UnknownUser,
    /// The server rejects the client's credentials.
    AuthenticationRefused,
    /// The server cannot check credentials now.
    AuthenticationUnavailable,
    /// The configuration of the server does not let the user in.
    UserNotAllowed,
    /// The password of the user is locked.
    AccountLocked,
    /// The account of the user has expired.
    AccountExpired,
    /// The user has to change the password first.
    PasswordExpired,
    /// The login shell of the user does not exist.
    ShellMissing,
    /// The server lets only root in.
    LoginsDisabled,
    /// The client offered more keys than the server permits.
    TooManyKeys,
    /// The server closed the connection during authentication.
    ClosedInAuthentication,
    /// The login succeeded, but the session ended at once.
    SessionEnded,
    /// The server's greeting is a refusal.
    GreetingRefused,
    /// The server gave an unexpected answer.
    Answer,
    /// The login exceeded the time limit.
    TimedOut,
    /// Another failure.
    Other,
}

/// A login that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "Failure")]
pub struct LoginFailure {
    /// Kind of failure.
    pub kind: FailureKind,
    /// Part in which the login failed.
    pub part: LoginPart,
    /// Evidence.
    pub seen: String,
    /// Remedy, or next step of the diagnosis.
    pub then: String,
}

/// Classifies a failed login; returns `None` for an error that does not come from the server.
#[must_use]
pub fn classify_failure(
    kind: LoginKind,
    error: &LoginError,
    known: &ServerKnowledge,
) -> Option<LoginFailure> {
    let (failure, part, seen) = match error {
        LoginError::TimedOut { waited, limit, .. } => {
            let failure = match waited {
                LoginPart::Banner => FailureKind::BannerTimeout,
                LoginPart::Tcp => FailureKind::NoAnswer,
                _ => FailureKind::TimedOut,
            };
            (failure, waited.clone(), format!("no end within {limit}"))
        }
        LoginError::Refused {
            said, why, so_far, ..
        } => {
            let part = so_far
                .phases
                .last()
                .map_or(LoginPart::Name, |phase| phase.part.clone());
            let failure = match kind {
                LoginKind::Ssh => classify_ssh(said, &part, known),
                LoginKind::Imap | LoginKind::Smtp => classify_mail(why, &part),
                LoginKind::Http => classify_http(why, &part),
            };
            (failure, part, why.clone())
        }
        _ => return None,
    };
    let refusal = known.account.as_ref().filter(|_| kind == LoginKind::Ssh);
    let refusal = refusal.and_then(|account| {
        account.name_refusal(failure, known.sshd.as_deref().unwrap_or_default())
    });
    let (failure, seen) = match refusal {
        Some((refusal, evidence)) => (refusal, format!("{seen}; {evidence}")),
        None => (failure, seen),
    };
    let seen = match (failure, known.startups) {
        (FailureKind::MaxStartupsFull, Some((now, most))) => {
            format!("{seen}; sshd's title: {now} connections without a login, {most} are let in")
        }
        _ => seen,
    };
    Some(LoginFailure {
        kind: failure,
        part,
        seen,
        then: failure_remedy(failure).to_owned(),
    })
}

fn classify_ssh(said: &[String], part: &LoginPart, known: &ServerKnowledge) -> FailureKind {
    let has = |text: &str| said.iter().any(|line| line.contains(text));
    let closed =
        has("Connection closed") || has("Connection reset") || has("closed by remote host");
    match part {
        _ if has("Could not resolve hostname") => FailureKind::UnknownHost,
        _ if has("REMOTE HOST IDENTIFICATION HAS CHANGED") => FailureKind::HostKeyChanged,
        _ if has("REVOKED HOST KEY") || has("marked as revoked") => FailureKind::HostKeyRevoked,
        _ if has("Host key verification failed") => FailureKind::HostKeyUnknown,
        _ if has("Unable to negotiate with") => FailureKind::NoCommonAlgorithm,
        _ if has("Exceeded MaxStartups") => FailureKind::MaxStartupsFull,
        _ if has("timed out during banner exchange") => FailureKind::BannerTimeout,
        _ if has("Too many authentication failures") => FailureKind::TooManyKeys,
        _ if has("Permission denied (") => match known.user_exists {
            Some(false) => FailureKind::UnknownUser,
            _ => FailureKind::AuthenticationRefused,
        },
        LoginPart::Name | LoginPart::Tcp if has("Connection refused") => {
            FailureKind::ConnectionRefused
        }
        LoginPart::Name | LoginPart::Tcp => FailureKind::NoAnswer,
        LoginPart::Banner if closed => match known.startups {
            Some((now, most)) if now >= most => FailureKind::MaxStartupsFull,
            _ => FailureKind::ClosedBeforeBanner,
        },
        LoginPart::User | LoginPart::Method(_) if closed => FailureKind::ClosedInAuthentication,
        LoginPart::Session | LoginPart::Prompt => FailureKind::SessionEnded,
        _ => FailureKind::Other,
    }
}

fn classify_mail(why: &str, part: &LoginPart) -> FailureKind {
    let closed = why.contains("closed the connection") || why.contains("reset by peer");
    match part {
        LoginPart::Name => FailureKind::UnknownHost,
        LoginPart::Tcp if why.contains("refused") => FailureKind::ConnectionRefused,
        LoginPart::Tcp => FailureKind::NoAnswer,
        LoginPart::Tls => FailureKind::Tls,
        LoginPart::Banner if closed => FailureKind::ClosedBeforeBanner,
        LoginPart::Banner => FailureKind::GreetingRefused,
        LoginPart::Method(_) if closed => FailureKind::ClosedInAuthentication,
        // RFC 4954: 454 is a temporary failure. RFC 5530: so is UNAVAILABLE.
        LoginPart::Method(_) if why.starts_with('4') || why.contains("[UNAVAILABLE]") => {
            FailureKind::AuthenticationUnavailable
        }
        LoginPart::Method(_) => FailureKind::AuthenticationRefused,
        _ => FailureKind::Other,
    }
}

fn classify_http(why: &str, part: &LoginPart) -> FailureKind {
    match part {
        _ if why.contains("no address for this host") => FailureKind::UnknownHost,
        _ if why.contains("refused") => FailureKind::ConnectionRefused,
        _ if why.starts_with("status ") => FailureKind::Answer,
        _ if why.contains("TLS") || why.contains("certificate") => FailureKind::Tls,
        _ => FailureKind::Other,
    }
}

/// Returns the fix for a kind of failure.
fn failure_remedy(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::UnknownHost => "check the spelling: `getent ahosts HOST`",
        FailureKind::ConnectionRefused => "nothing listens on that port, or a firewall refuses it",
        FailureKind::NoAnswer => "the host is down, or a firewall drops the packets",
        FailureKind::Tls => "see why: assay probe tls HOST:PORT",
        FailureKind::ClosedBeforeBanner => {
            "the server's log shows why; MaxStartups, PerSourceMaxStartups and programs such as fail2ban do this"
        }
        FailureKind::MaxStartupsFull => {
            "find out who holds those connections (`ss -tnp sport = :22` on the server), then raise MaxStartups"
        }
        FailureKind::BannerTimeout => {
            "something listens there that is slow or speaks another protocol"
        }
        FailureKind::NoCommonAlgorithm => "see what the server offers: assay probe ssh HOST",
        FailureKind::HostKeyUnknown => {
            "compare the key's fingerprint with the server's own, then add the key to known_hosts"
        }
        FailureKind::HostKeyChanged => {
            "do not log in before you know why: compare the fingerprint with the server's own \
             (`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` there)"
        }
        FailureKind::HostKeyRevoked => "do not log in: that key is known to be stolen or retired",
        FailureKind::UnknownUser => {
            "the user does not exist on the server: `getent passwd USER` finds nobody there"
        }
        FailureKind::AuthenticationRefused => {
            "the server does not take what was offered; its log shows whether it is the key, the user or a rule"
        }
        FailureKind::AuthenticationUnavailable => {
            "the server's user database does not answer: see its log"
        }
        FailureKind::UserNotAllowed => {
            "see AllowUsers and DenyUsers in the configuration of sshd: `sshd -T | grep -i users`"
        }
        FailureKind::AccountLocked => {
            "unlock it if it is to log in: `usermod -U USER`; with UsePAM yes, keys are let in all the same"
        }
        FailureKind::AccountExpired => "if it is to log in again: `chage -E -1 USER`",
        FailureKind::PasswordExpired => {
            "log in with a terminal and set a new password, or as root: `passwd USER`"
        }
        FailureKind::ShellMissing => {
            "install that shell, or set another one: `usermod -s /bin/sh USER`"
        }
        FailureKind::LoginsDisabled => {
            "maintenance or a shutdown put that file there; remove it when that is over"
        }
        FailureKind::TooManyKeys => "name the key with IdentityFile and set IdentitiesOnly yes",
        FailureKind::ClosedInAuthentication => {
            "the server's log shows why it closed the connection"
        }
        FailureKind::SessionEnded => {
            "the user's shell or a command of the server ended the session: see its log"
        }
        FailureKind::GreetingRefused => "the server turns this client away: see its log",
        FailureKind::Answer => "name the status that is good with --status",
        FailureKind::TimedOut => "raise --limit to see how long it takes",
        FailureKind::Other => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Login, PartTime};
    use assay_model::Nanos;

    fn refused(
        kind: LoginKind,
        part: LoginPart,
        said: &[&str],
        known: &ServerKnowledge,
    ) -> FailureKind {
        let phase = PartTime {
            part,
            took: Nanos(1),
        };
        let error = LoginError::Refused {
            target: "h".to_owned(),
            why: said.last().copied().unwrap_or_default().to_owned(),
            said: said.iter().map(|line| (*line).to_owned()).collect(),
            so_far: Box::new(Login {
                phases: vec![phase],
                ..Login::default()
            }),
        };
        classify_failure(kind, &error, known).unwrap().kind
    }

    #[test]
    fn each_failure_of_ssh_has_its_own_kind() {
        let none = ServerKnowledge::default();
        let full = ServerKnowledge {
            startups: Some((10, 10)),
            ..ServerKnowledge::default()
        };
        let nobody = ServerKnowledge {
            user_exists: Some(false),
            ..ServerKnowledge::default()
        };
        let method = || LoginPart::Method("publickey".to_owned());
        let closed = "kex_exchange_identification: Connection closed by remote host";
        let denied = "x@h: Permission denied (publickey).";
        for (part, said, known, expected) in [
            (
                LoginPart::Name,
                "ssh: Could not resolve hostname h: Name or service not known",
                &none,
                FailureKind::UnknownHost,
            ),
            (
                LoginPart::Tcp,
                "ssh: connect to host h port 22: Connection refused",
                &none,
                FailureKind::ConnectionRefused,
            ),
            (
                LoginPart::Tcp,
                "ssh: connect to host h port 22: No route to host",
                &none,
                FailureKind::NoAnswer,
            ),
            (
                LoginPart::Banner,
                closed,
                &none,
                FailureKind::ClosedBeforeBanner,
            ),
            (
                LoginPart::Banner,
                closed,
                &full,
                FailureKind::MaxStartupsFull,
            ),
            (
                LoginPart::Banner,
                "Connection timed out during banner exchange",
                &none,
                FailureKind::BannerTimeout,
            ),
            (
                LoginPart::KeyExchange,
                "Host key verification failed.",
                &none,
                FailureKind::HostKeyUnknown,
            ),
            (method(), denied, &none, FailureKind::AuthenticationRefused),
            (method(), denied, &full, FailureKind::AuthenticationRefused),
            (method(), denied, &nobody, FailureKind::UnknownUser),
            (
                method(),
                "Connection closed by 192.0.2.1 port 22",
                &full,
                FailureKind::ClosedInAuthentication,
            ),
            (
                LoginPart::Session,
                "This account is currently not available.",
                &none,
                FailureKind::SessionEnded,
            ),
        ] {
            assert_eq!(
                refused(LoginKind::Ssh, part, &[said], known),
                expected,
                "{said}"
            );
        }
        let changed = [
            "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @",
            "Host key verification failed.",
        ];
        assert_eq!(
            refused(LoginKind::Ssh, LoginPart::KeyExchange, &changed, &none),
            FailureKind::HostKeyChanged
        );
    }

    #[test]
    fn a_mail_server_that_cannot_check_is_not_one_that_refuses() {
        let none = ServerKnowledge::default();
        let method = || LoginPart::Method("AUTH PLAIN".to_owned());
        for (part, why, expected) in [
            (
                method(),
                "535 5.7.8 Error: authentication failed",
                FailureKind::AuthenticationRefused,
            ),
            (
                method(),
                "454 4.7.0 Temporary authentication failure",
                FailureKind::AuthenticationUnavailable,
            ),
            (
                method(),
                "NO [UNAVAILABLE] Temporary authentication failure.",
                FailureKind::AuthenticationUnavailable,
            ),
            (
                method(),
                "NO [AUTHENTICATIONFAILED] Authentication failed.",
                FailureKind::AuthenticationRefused,
            ),
            (
                LoginPart::Banner,
                "554 5.7.1 No service",
                FailureKind::GreetingRefused,
            ),
            (
                LoginPart::Banner,
                "the server closed the connection",
                FailureKind::ClosedBeforeBanner,
            ),
        ] {
            assert_eq!(
                refused(LoginKind::Imap, part, &[why], &none),
                expected,
                "{why}"
            );
        }
    }
}
