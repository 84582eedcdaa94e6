//! Facts from the client's own trace of a login, in addition to the parts.

use assay_model::Nanos;

/// Facts about one login.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clues {
    /// Addresses that refused or did not answer, and the time spent on each.
    pub unanswered: Vec<(String, Nanos)>,
    /// ProxyCommand through which the client connected.
    pub proxy: Option<String>,
    /// Negotiated key exchange.
    pub algorithm: Option<String>,
    /// Algorithm of the host key.
    pub host_key: Option<String>,
    /// Programs that the client's configuration starts: option and command.
    pub commands: Vec<(String, String)>,
    /// Time spent on each key that was offered and rejected.
    pub refused_keys: Vec<Nanos>,
    /// Authentication methods that the server refused after a try.
    pub refused_methods: Vec<String>,
    /// Authentication methods that the server offers.
    pub methods: Option<String>,
    /// The authorized key has a forced command.
    pub forced_by_key: bool,
    /// Time from the start of the session until sshd opened the channel; sshd opens it after its PAM session.
    pub opened: Option<Nanos>,
    /// Time from the connection until the first line of a multi-line greeting.
    pub greeted: Option<Nanos>,
}
