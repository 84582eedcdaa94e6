//! What the client's own trace of a login shows beside its parts.

use assay_model::Nanos;

/// Facts of one login.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clues {
    /// Addresses that did not answer or refused, and how long each was tried.
    pub unanswered: Vec<(String, Nanos)>,
    /// The ProxyCommand that carries the connection.
    pub proxy: Option<String>,
    /// Key exchange that was agreed on.
    pub algorithm: Option<String>,
    /// Algorithm of the host's key.
    pub host_key: Option<String>,
    /// Programs that the client's configuration starts: option and command.
    pub commands: Vec<(String, String)>,
    /// How long each key took that was offered and not accepted.
    pub refused_keys: Vec<Nanos>,
    /// Methods that the server offers.
    pub methods: Option<String>,
    /// Whether the authorized key has a command of its own.
    pub forced_by_key: bool,
    /// From the start of the session until sshd opened the channel: its PAM session was open by then.
    pub opened: Option<Nanos>,
    /// From the connection until the first line of a greeting of several lines.
    pub greeted: Option<Nanos>,
}
