//! Checks SSH: the algorithms that a server offers, its host keys and their sizes. The probe does not log in, and does
//! not complete a key exchange.

mod judge;
mod wire;

pub use wire::{Algorithms, HostKey, algorithms, host_key};

use crate::error::{ProbeError, shown};
use crate::remark::Remark;
use crate::visit::{Connection, Visit, Where};
use serde::Serialize;

/// Results of the SSH probe of one port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Report {
    /// Host and address that were probed.
    #[serde(flatten)]
    pub place: Where,
    /// Version banner of the server. The banner does not show whether the server is out of date, because distributions
    /// fix faults without changing the banner.
    pub banner: String,
    /// Algorithms that the server offers.
    pub algorithms: Algorithms,
    /// Host keys, one of each kind.
    pub host_keys: Vec<HostKey>,
    /// Faults that were found, the worst first.
    pub remarks: Vec<Remark>,
    /// Checks without a result, each with its reason.
    pub unknown: Vec<String>,
    /// Number of connections that the probe opened.
    pub connections: u32,
}

/// Version line that the client sends first (RFC 4253 section 4.2).
const OWN: &[u8] = b"SSH-2.0-assay\r\n";

/// Probes a port. Opens one connection for the algorithms and one for each kind of host key.
///
/// # Errors
/// The service is not SSH, or does not answer.
pub fn scan(visit: &Visit) -> Result<Report, ProbeError> {
    let (_, banner, algorithms) = begin(visit)?;
    let mut host_keys: Vec<HostKey> = Vec::new();
    let mut unknown = Vec::new();
    for kind in wire::kinds(&algorithms) {
        match key_of(visit, kind, &algorithms) {
            Ok(key) if host_keys.contains(&key) => {}
            Ok(key) => host_keys.push(key),
            Err(error) => unknown.push(format!("the host key for {kind}: {error}")),
        }
    }
    let mut report = Report {
        place: visit.place().clone(),
        banner,
        algorithms,
        host_keys,
        remarks: Vec::new(),
        unknown,
        connections: visit.connections(),
    };
    report.remarks = judge::judge(&report);
    Ok(report)
}

/// Exchanges the version lines and the lists of algorithms.
fn begin(visit: &Visit) -> Result<(Connection<'_>, String, Algorithms), ProbeError> {
    let mut connection = visit.open()?;
    connection.expect("the first line of SSH");
    let banner = banner(&mut connection)?;
    connection.send(OWN)?;
    connection.expect("what the server of SSH offers");
    let offered = wire::packet(&mut connection)?;
    let algorithms = algorithms(&offered)?;
    Ok((connection, banner, algorithms))
}

/// Reads the version banner. The line has at most 255 bytes. Other lines may precede the banner (RFC 4253 section 4.2).
fn banner(connection: &mut Connection<'_>) -> Result<String, ProbeError> {
    for _ in 0..50 {
        let line = connection.line(1024)?;
        if line.starts_with(b"SSH-") {
            let text = String::from_utf8_lossy(&line).into_owned();
            return match text.starts_with("SSH-2.0-") || text.starts_with("SSH-1.99-") {
                true => Ok(text),
                false => Err(ProbeError::foreign("SSH 2", shown(&line))),
            };
        }
        // After a greeting of another protocol the server would send nothing more.
        let other = [b"220 ".as_slice(), b"220-", b"+OK", b"* OK", b"HTTP/"];
        if other.iter().any(|start| line.starts_with(start)) {
            return Err(ProbeError::foreign("SSH", shown(&line)));
        }
    }
    Err(ProbeError::foreign(
        "SSH",
        "many lines before the one of SSH",
    ))
}

/// Starts a key exchange that offers only the host key kind `kind`, and reads the key from the answer.
fn key_of(visit: &Visit, kind: &str, algorithms: &Algorithms) -> Result<HostKey, ProbeError> {
    let exchange = wire::exchange(algorithms, visit)?;
    let (mut connection, _, _) = begin(visit)?;
    connection.send(&wire::framed(&wire::offer(
        kind,
        exchange.name,
        algorithms,
        visit.random(),
    )))?;
    connection.send(&wire::framed(&exchange.begin))?;
    connection.expect("the host key");
    for _ in 0..8 {
        let message = wire::packet(&mut connection)?;
        match message.first() {
            // SSH_MSG_KEXDH_REPLY and the replies of the other key exchanges.
            Some(31) => return host_key(&message),
            // SSH_MSG_DISCONNECT.
            Some(1) => return Err(ProbeError::foreign("SSH", "the server ends the exchange")),
            // SSH_MSG_IGNORE, SSH_MSG_DEBUG.
            _ => {}
        }
    }
    Err(ProbeError::foreign(
        "SSH",
        "no host key among many messages",
    ))
}
