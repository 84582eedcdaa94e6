//! Checks SMB: which dialects a server supports, and whether it requires signing ([MS-SMB2] sections 2.2.3 and
//! 2.2.4, [MS-CIFS] section 2.2.4.52).

use crate::error::{ProbeError, shown};
use crate::remark::Severity::{Danger, Note, Weak};
use crate::remark::{Remark, ranked};
use crate::tls::VersionState;
use crate::visit::{Visit, Where};
use serde::Serialize;

/// Results of the SMB probe of one port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Report {
    /// Host and address that were probed.
    #[serde(flatten)]
    pub place: Where,
    /// Whether the server supports SMB 1, which all well-known attacks on SMB use.
    pub smb1: VersionState,
    /// Supported dialects of SMB 2 and 3, the newest first.
    pub dialects: Vec<&'static str>,
    /// Whether the server requires a signature on every message; `None` if unknown.
    pub signing_required: Option<bool>,
    /// Whether the server supports encryption (SMB 3), so that a share can require encryption; `None` if unknown.
    pub encryption: Option<bool>,
    /// Faults that were found.
    pub remarks: Vec<Remark>,
    /// Checks without a result, each with its reason.
    pub unknown: Vec<String>,
    /// Number of connections that the probe opened.
    pub connections: u32,
}

const DIALECTS: [(u16, &str); 5] = [
    (0x0311, "SMB 3.1.1"),
    (0x0302, "SMB 3.0.2"),
    (0x0300, "SMB 3.0"),
    (0x0210, "SMB 2.1"),
    (0x0202, "SMB 2.0.2"),
];

/// Fields of an SMB 2 NEGOTIATE response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Negotiated {
    /// Number of the chosen dialect.
    pub dialect: u16,
    /// Whether the server requires a signature on every message.
    pub signing_required: bool,
    /// Whether the response has SMB2_GLOBAL_CAP_ENCRYPTION, or contains a chosen cipher.
    pub encryption: bool,
}

/// Probes a port. Opens one connection for each dialect and up to three more.
///
/// # Errors
/// The first connection shows that the service is not SMB, or the service does not answer.
pub fn scan(visit: &Visit) -> Result<Report, ProbeError> {
    let mut report = Report {
        place: visit.place().clone(),
        smb1: VersionState::Unknown,
        dialects: Vec::new(),
        signing_required: None,
        encryption: None,
        remarks: Vec::new(),
        unknown: Vec::new(),
        connections: 0,
    };
    let mut left: Vec<u16> = DIALECTS.iter().map(|known| known.0).collect();
    let mut spoken = None;
    let mut hung_up = false;
    let mut first_error = None;
    while !left.is_empty() {
        match negotiate(visit, &left) {
            Ok(Some(found)) => {
                let Some(at) = left.iter().position(|dialect| *dialect == found.dialect) else {
                    let why = format!("dialect {:#06x}, which was not offered", found.dialect);
                    report
                        .unknown
                        .push(format!("dialects: the server chose {why}"));
                    break;
                };
                left.remove(at);
                spoken.get_or_insert(found.dialect);
                let known = DIALECTS.iter().find(|known| known.0 == found.dialect);
                report.dialects.extend(known.map(|known| known.1));
                // Signing is a setting of the server and is the same for all dialects.
                report
                    .signing_required
                    .get_or_insert(found.signing_required);
                report.encryption = Some(report.encryption == Some(true) || found.encryption);
            }
            Ok(None) => break,
            Err(error) if report.dialects.is_empty() => {
                first_error = Some(error);
                break;
            }
            // Windows closes the connection where Samba refuses the dialect.
            Err(ProbeError::Closed { .. }) => {
                hung_up = true;
                break;
            }
            Err(error) => {
                report
                    .unknown
                    .push(format!("not all dialects are known: {error}"));
                break;
            }
        }
    }
    match smb1(visit) {
        Ok(spoken) => {
            report.smb1 = if spoken {
                VersionState::Offered
            } else {
                VersionState::Refused
            }
        }
        Err(ProbeError::Closed { .. }) if spoken.is_some() => {
            report.smb1 = VersionState::Refused;
            hung_up = true;
        }
        Err(error) => report.unknown.push(format!("SMB 1: {error}")),
    }
    match first_error {
        // The server closed the connection on SMB 2 and answered SMB 1 afterwards: a refusal of SMB 2.
        Some(ProbeError::Closed { .. }) if report.smb1 == VersionState::Offered => {}
        Some(error) if report.smb1 == VersionState::Offered => {
            let why = format!("the dialects of SMB 2 and 3 are not known: {error}");
            report.unknown.push(why);
        }
        Some(error) => return Err(error),
        None => {}
    }
    if let (true, Some(dialect)) = (hung_up, spoken) {
        still_answers(visit, dialect, &mut report);
    }
    report.remarks = judge(&report);
    report.connections = visit.connections();
    Ok(report)
}

/// Repeats a request that succeeded before. If it fails now, closed connections do not count as refusals, and the
/// results are marked as unknown.
fn still_answers(visit: &Visit, dialect: u16, report: &mut Report) {
    if matches!(negotiate(visit, &[dialect]), Ok(Some(_))) {
        return;
    }
    let why = "the server hung up, and answers no more";
    report
        .unknown
        .push(format!("not all dialects are known: {why}"));
    if report.smb1 == VersionState::Refused {
        report.smb1 = VersionState::Unknown;
        report.unknown.push(format!("SMB 1: {why}"));
    }
}

/// Offers these dialects to the server. Returns `None` if the server accepts none of them.
fn negotiate(visit: &Visit, dialects: &[u16]) -> Result<Option<Negotiated>, ProbeError> {
    let mut connection = visit.open()?;
    connection.expect("the answer to NEGOTIATE");
    connection.send(&framed(&request(dialects, visit.random())))?;
    let message = message(&mut connection)?;
    response(&message)
}

fn message(connection: &mut crate::visit::Connection<'_>) -> Result<Vec<u8>, ProbeError> {
    let head = connection.take(4)?;
    let length = u32::from_be_bytes([0, head[1], head[2], head[3]]) as usize;
    // RFC 1002 section 4.3.1: type 0 is a session message. Other types belong to NetBIOS.
    if head[0] != 0 || length > 64 << 10 {
        return Err(ProbeError::foreign("SMB", shown(&head)));
    }
    connection.take(length)
}

fn framed(message: &[u8]) -> Vec<u8> {
    let mut out = u32::try_from(message.len())
        .unwrap_or(0)
        .to_be_bytes()
        .to_vec();
    out.extend_from_slice(message);
    out
}

/// Encodes a NEGOTIATE request of SMB 2.
fn request(dialects: &[u16], random: [u8; 32]) -> Vec<u8> {
    let mut out = b"\xfeSMB".to_vec();
    let put16 = |out: &mut Vec<u8>, value: u16| out.extend_from_slice(&value.to_le_bytes());
    put16(&mut out, 64);
    // Rest of the header: command 0, one credit, zeros.
    out.resize(14, 0);
    put16(&mut out, 1);
    out.resize(64, 0);
    let newest = dialects.contains(&0x0311);
    put16(&mut out, 36);
    put16(&mut out, u16::try_from(dialects.len()).unwrap_or(0));
    // Signing is enabled, encryption is supported.
    put16(&mut out, 1);
    put16(&mut out, 0);
    out.extend_from_slice(&0x40_u32.to_le_bytes());
    out.extend_from_slice(&random[..16]);
    let contexts_at = out.len();
    out.extend_from_slice(&[0; 8]);
    dialects
        .iter()
        .for_each(|dialect| put16(&mut out, *dialect));
    if newest {
        // Contexts begin at a multiple of eight bytes.
        out.resize(out.len().next_multiple_of(8), 0);
        let at = u32::try_from(out.len()).unwrap_or(0);
        out[contexts_at..contexts_at + 4].copy_from_slice(&at.to_le_bytes());
        out[contexts_at + 4..contexts_at + 6].copy_from_slice(&2_u16.to_le_bytes());
        // SMB2_PREAUTH_INTEGRITY_CAPABILITIES: SHA-512, 16 bytes of salt.
        for value in [1, 22, 0, 0, 1, 16, 1] {
            put16(&mut out, value);
        }
        out.extend_from_slice(&random[16..]);
        out.resize(out.len().next_multiple_of(8), 0);
        // SMB2_ENCRYPTION_CAPABILITIES: AES-256-GCM, AES-128-GCM, AES-256-CCM, AES-128-CCM.
        for value in [2, 10, 0, 0, 4, 4, 2, 3, 1] {
            put16(&mut out, value);
        }
    }
    out
}

/// Parses a NEGOTIATE response. Returns `None` if the server accepts no dialect.
///
/// # Errors
/// The bytes are not a NEGOTIATE response.
pub fn response(message: &[u8]) -> Result<Option<Negotiated>, ProbeError> {
    let foreign = || ProbeError::foreign("SMB 2", shown(message));
    let at16 = |at: usize| {
        let bytes = message.get(at..at + 2)?;
        Some(u16::from_le_bytes([bytes[0], bytes[1]]))
    };
    let at32 = |at: usize| {
        let bytes = message.get(at..at + 4)?;
        Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    };
    if !message.starts_with(b"\xfeSMB") {
        return Err(foreign());
    }
    match at32(8).ok_or_else(foreign)? {
        0 => {}
        // STATUS_NOT_SUPPORTED, STATUS_INVALID_PARAMETER.
        0xc000_00bb | 0xc000_000d => return Ok(None),
        status => {
            let what = format!("NEGOTIATE fails with status {status:#010x}");
            return Err(ProbeError::foreign("SMB 2", what));
        }
    }
    let (mode, dialect) = (at16(66).ok_or_else(foreign)?, at16(68).ok_or_else(foreign)?);
    let capabilities = at32(88).ok_or_else(foreign)?;
    Ok(Some(Negotiated {
        dialect,
        signing_required: mode & 2 != 0,
        encryption: capabilities & 0x40 != 0 || (dialect == 0x0311 && has_cipher(message)),
    }))
}

/// Returns whether the negotiate contexts of SMB 3.1.1 contain a cipher.
fn has_cipher(message: &[u8]) -> bool {
    let at16 = |at: usize| {
        let bytes = message.get(at..at + 2)?;
        Some(usize::from(u16::from_le_bytes([bytes[0], bytes[1]])))
    };
    let walk = || {
        let count = at16(70)?;
        let mut at = message
            .get(124..128)
            .map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize)?;
        for _ in 0..count.min(16) {
            let (kind, length) = (at16(at)?, at16(at + 2)?);
            if kind == 2 {
                return Some(at16(at + 8)? > 0 && at16(at + 10)? > 0);
            }
            at = (at + 8 + length).next_multiple_of(8);
        }
        Some(false)
    };
    walk() == Some(true)
}

/// Returns whether the server accepts the dialect `NT LM 0.12`.
fn smb1(visit: &Visit) -> Result<bool, ProbeError> {
    let mut request = b"\xffSMB\x72".to_vec();
    // Status 0; flags of old clients; the rest of the header is 0.
    request.resize(9, 0);
    request.extend_from_slice(&[0x18, 0x01, 0x28]);
    request.resize(32, 0);
    // No parameters, then one dialect.
    request.extend_from_slice(&[0, 12, 0, 2]);
    request.extend_from_slice(b"NT LM 0.12\0");
    let mut connection = visit.open()?;
    connection.expect("the answer to NEGOTIATE of SMB 1");
    connection.send(&framed(&request))?;
    smb1_response(&message(&mut connection)?)
}

/// Returns whether an SMB 1 NEGOTIATE response accepts the only offered dialect.
fn smb1_response(message: &[u8]) -> Result<bool, ProbeError> {
    match (message.get(..5), message.get(32..35)) {
        (Some(b"\xffSMB\x72"), Some([words, low, high])) => {
            // Index of the dialect; 0xffff means none.
            Ok(*words > 0 && (*low, *high) != (0xff, 0xff))
        }
        // A server without SMB 1 may answer in SMB 2.
        (Some(start), _) if start.starts_with(b"\xfeSMB") => Ok(false),
        _ => Err(ProbeError::foreign("SMB 1", shown(message))),
    }
}

/// Runs every parser on arbitrary bytes, for tests with random input.
pub fn read_any(bytes: &[u8]) {
    let _ = response(bytes);
    let _ = smb1_response(bytes);
}

fn judge(report: &Report) -> Vec<Remark> {
    let mut out = Vec::new();
    if report.smb1 == VersionState::Offered {
        out.push(Remark::new(
            "smb1",
            Danger,
            "SMB 1 is spoken: no protection against who is on the way, and given up by Microsoft in 2014",
            "Microsoft, Stop using SMB1 (2016); Microsoft, SMBv1 is not installed by default in Windows",
            "Samba: `server min protocol = SMB2_02` or higher, the default since 4.11",
        ));
    }
    if report.signing_required == Some(false) {
        out.push(Remark::new(
            "smb-signing",
            Weak,
            "messages need not be signed: an attacker on the path can take over a session or relay a login",
            "[MS-SMB2] section 3.1.1.1; Microsoft, Overview of Server Message Block signing",
            "Samba: `server signing = mandatory`; Windows: RequireSecuritySignature. Not for speed: see \
             the advice on signing",
        ));
    }
    if report.encryption == Some(false)
        && report.dialects.iter().any(|name| name.starts_with("SMB 3"))
    {
        out.push(Remark::new(
            "smb-encryption",
            Note,
            "SMB 3 is spoken, but the server encrypts nothing",
            "[MS-SMB2] sections 2.2.4 and 3.1.1.1",
            "Samba: `server smb encrypt = desired` when data goes through networks of others",
        ));
    }
    ranked(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_stand_where_the_request_says() {
        let request = request(&[0x0311, 0x0202], [7; 32]);
        let at = u32::from_le_bytes(request[92..96].try_into().unwrap()) as usize;
        assert_eq!(at % 8, 0);
        assert_eq!(request[at..at + 2], [1, 0]);
        // Two contexts, the second after 8 + 22 bytes, on the next multiple of eight (length 38 to 40).
        assert_eq!(request[96..98], [2, 0]);
        let second = (at + 8 + usize::from(request[at + 2])).next_multiple_of(8);
        assert_eq!(request[second..second + 2], [2, 0]);
        assert_eq!(request.len(), second + 8 + usize::from(request[second + 2]));
    }

    #[test]
    fn answers_that_are_cut_short_are_none() {
        let mut answer = b"\xfeSMB".to_vec();
        answer.resize(128, 0);
        answer[66] = 3;
        answer[68..70].copy_from_slice(&0x0302_u16.to_le_bytes());
        answer[88] = 0x40;
        let read = response(&answer).unwrap().unwrap();
        assert!(read.signing_required && read.encryption);
        assert_eq!(read.dialect, 0x0302);
        for length in 0..92 {
            assert!(response(&answer[..length]).is_err(), "{length}");
        }
        answer[8..12].copy_from_slice(&0xc000_00bb_u32.to_le_bytes());
        assert_eq!(response(&answer).unwrap(), None);
    }
}
