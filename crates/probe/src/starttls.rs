//! Runs the plain-text part of a protocol until TLS starts.

use crate::error::{ProbeError, shown};
use crate::visit::Connection;

/// A protocol that starts in plain text and switches to TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starttls {
    /// SMTP with STARTTLS (RFC 3207).
    Smtp,
    /// IMAP with STARTTLS (RFC 9051 section 6.2.1).
    Imap,
    /// POP3 with STLS (RFC 2595 section 4).
    Pop3,
    /// LDAP with the StartTLS operation (RFC 4511 section 4.14).
    Ldap,
    /// The SSLRequest of PostgreSQL.
    Postgres,
    /// The SSLRequest of MySQL and MariaDB.
    Mysql,
    /// FTP with AUTH TLS (RFC 4217).
    Ftp,
    /// XMPP with STARTTLS, from client to server (RFC 6120 section 5).
    Xmpp,
}

impl Starttls {
    /// All protocols that the probe supports.
    pub const ALL: [Self; 8] = [
        Self::Smtp,
        Self::Imap,
        Self::Pop3,
        Self::Ldap,
        Self::Postgres,
        Self::Mysql,
        Self::Ftp,
        Self::Xmpp,
    ];

    /// Returns the name of the protocol for the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Smtp => "smtp",
            Self::Imap => "imap",
            Self::Pop3 => "pop3",
            Self::Ldap => "ldap",
            Self::Postgres => "postgres",
            Self::Mysql => "mysql",
            Self::Ftp => "ftp",
            Self::Xmpp => "xmpp",
        }
    }

    /// Returns the port that IANA registered for the protocol.
    #[must_use]
    pub fn port(self) -> u16 {
        match self {
            Self::Smtp => 25,
            Self::Imap => 143,
            Self::Pop3 => 110,
            Self::Ldap => 389,
            Self::Postgres => 5432,
            Self::Mysql => 3306,
            Self::Ftp => 21,
            Self::Xmpp => 5222,
        }
    }

    /// Runs the plain-text dialogue on a new connection until the next byte is TLS.
    pub(crate) fn begin(
        self,
        connection: &mut Connection<'_>,
        host: &str,
    ) -> Result<(), ProbeError> {
        match self {
            Self::Smtp => smtp(connection),
            Self::Imap => imap(connection),
            Self::Pop3 => pop3(connection),
            Self::Ldap => ldap(connection),
            Self::Postgres => postgres(connection),
            Self::Mysql => mysql(connection),
            Self::Ftp => ftp(connection),
            Self::Xmpp => xmpp(connection, host),
        }
    }
}

/// Maximum length of a line, in bytes. RFC 5321 section 4.5.3.1.5 allows 512 bytes, but servers send longer lines.
const LINE: usize = 4096;

/// Maximum number of lines in a greeting or in a list of capabilities.
const LINES: usize = 100;

/// Reads a reply of SMTP or FTP. It consists of lines `250-…` and a last line `250 …`.
fn reply(
    connection: &mut Connection<'_>,
    protocol: &'static str,
) -> Result<(u16, String), ProbeError> {
    let mut all = String::new();
    for _ in 0..LINES {
        let line = connection.line(LINE)?;
        let text = String::from_utf8_lossy(&line).into_owned();
        let code = text.get(..3).and_then(|code| code.parse::<u16>().ok());
        let Some(code) = code else {
            // In FTP the lines between the first and the last may contain any text.
            if protocol == "FTP" && !all.is_empty() {
                continue;
            }
            return Err(ProbeError::foreign(protocol, shown(&line)));
        };
        all.push_str(&text);
        all.push('\n');
        if !text[3..].starts_with('-') {
            return Ok((code, all));
        }
    }
    Err(ProbeError::foreign(protocol, "a reply without an end"))
}

fn wanted(got: (u16, String), code: u16, protocol: &'static str) -> Result<String, ProbeError> {
    match got.0 == code {
        true => Ok(got.1),
        false => Err(refused(protocol, got.1.trim_end().as_bytes())),
    }
}

fn refused(protocol: &'static str, said: &[u8]) -> ProbeError {
    let what = format!("it does not begin TLS here, it says {}", shown(said));
    ProbeError::foreign(protocol, what)
}

fn smtp(connection: &mut Connection<'_>) -> Result<(), ProbeError> {
    connection.expect("the greeting of SMTP");
    wanted(reply(connection, "SMTP")?, 220, "SMTP")?;
    connection.expect("the answer to EHLO");
    connection.send(b"EHLO assay.invalid\r\n")?;
    let offers = wanted(reply(connection, "SMTP")?, 250, "SMTP")?;
    if !offers.to_ascii_uppercase().contains("STARTTLS") {
        return Err(ProbeError::foreign(
            "SMTP with STARTTLS",
            "the server does not offer it",
        ));
    }
    connection.expect("the answer to STARTTLS");
    connection.send(b"STARTTLS\r\n")?;
    wanted(reply(connection, "SMTP")?, 220, "SMTP").map(drop)
}

fn ftp(connection: &mut Connection<'_>) -> Result<(), ProbeError> {
    connection.expect("the greeting of FTP");
    wanted(reply(connection, "FTP")?, 220, "FTP")?;
    connection.expect("the answer to AUTH TLS");
    connection.send(b"AUTH TLS\r\n")?;
    wanted(reply(connection, "FTP")?, 234, "FTP").map(drop)
}

fn imap(connection: &mut Connection<'_>) -> Result<(), ProbeError> {
    connection.expect("the greeting of IMAP");
    let greeting = connection.line(LINE)?;
    if !greeting.starts_with(b"* OK") {
        return Err(ProbeError::foreign("IMAP", shown(&greeting)));
    }
    connection.expect("the answer to STARTTLS");
    connection.send(b"a1 STARTTLS\r\n")?;
    for _ in 0..LINES {
        let line = connection.line(LINE)?;
        if let Some(said) = line.strip_prefix(b"a1 ") {
            return match said.to_ascii_uppercase().starts_with(b"OK") {
                true => Ok(()),
                false => Err(refused("IMAP", said)),
            };
        }
    }
    Err(ProbeError::foreign(
        "IMAP",
        "no answer to STARTTLS among many lines",
    ))
}

fn pop3(connection: &mut Connection<'_>) -> Result<(), ProbeError> {
    connection.expect("the greeting of POP3");
    let greeting = connection.line(LINE)?;
    if !greeting.starts_with(b"+OK") {
        return Err(ProbeError::foreign("POP3", shown(&greeting)));
    }
    connection.expect("the answer to STLS");
    connection.send(b"STLS\r\n")?;
    let line = connection.line(LINE)?;
    match line.starts_with(b"+OK") {
        true => Ok(()),
        false => Err(refused("POP3", &line)),
    }
}

fn ldap(connection: &mut Connection<'_>) -> Result<(), ProbeError> {
    let mut request = vec![0x30, 29, 2, 1, 1, 0x77, 24, 0x80, 22];
    request.extend_from_slice(b"1.3.6.1.4.1.1466.20037");
    connection.expect("the answer to StartTLS");
    connection.send(&request)?;
    let head = connection.take(2)?;
    let length = match head[..] {
        [0x30, short @ 0..=0x7f] => usize::from(short),
        [0x30, 0x81] => usize::from(connection.take(1)?[0]),
        [0x30, 0x82] => {
            let length = connection.take(2)?;
            usize::from(u16::from_be_bytes([length[0], length[1]]))
        }
        _ => return Err(ProbeError::foreign("LDAP", shown(&head))),
    };
    let body = connection.take(length)?;
    match ldap_result(&body) {
        Some(0) => Ok(()),
        Some(code) => Err(refused("LDAP", format!("result {code}").as_bytes())),
        None => Err(ProbeError::foreign("LDAP", shown(&body))),
    }
}

/// Parses the result code of an LDAP ExtendedResponse without its outer header. The body contains a message number and
/// an element with application tag 24. The first element in the latter is the result code.
fn ldap_result(body: &[u8]) -> Option<u8> {
    let rest = match body {
        [2, 1, 1, rest @ ..] => rest,
        _ => return None,
    };
    let rest = match rest {
        [0x78, 0x81, _, rest @ ..] | [0x78, 0x82, _, _, rest @ ..] => rest,
        [0x78, 0..=0x7f, rest @ ..] => rest,
        _ => return None,
    };
    match rest {
        [10, 1, code, ..] => Some(*code),
        _ => None,
    }
}

fn postgres(connection: &mut Connection<'_>) -> Result<(), ProbeError> {
    connection.expect("the answer to the SSLRequest");
    connection.send(&[0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f])?;
    let answer = connection.take(1)?;
    match answer[0] {
        b'S' => Ok(()),
        b'N' => Err(ProbeError::foreign(
            "PostgreSQL with TLS",
            "the server has it switched off",
        )),
        _ => Err(ProbeError::foreign("PostgreSQL", shown(&answer))),
    }
}

fn mysql(connection: &mut Connection<'_>) -> Result<(), ProbeError> {
    connection.expect("the greeting of MySQL");
    let head = connection.take(4)?;
    let length = u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
    if head[3] != 0 || length > 4096 {
        return Err(ProbeError::foreign("MySQL", shown(&head)));
    }
    let greeting = connection.take(length)?;
    match mysql_has_tls(&greeting) {
        Ok(true) => {}
        Ok(false) => {
            return Err(ProbeError::foreign(
                "MySQL with TLS",
                "the server does not offer it",
            ));
        }
        Err(what) => return Err(ProbeError::foreign("MySQL", what)),
    }
    // CLIENT_PROTOCOL_41, CLIENT_SSL, CLIENT_SECURE_CONNECTION.
    let mut request = vec![32, 0, 0, 1];
    request.extend_from_slice(&0x0000_8a00_u32.to_le_bytes());
    request.extend_from_slice(&(1_u32 << 24).to_le_bytes());
    request.push(45);
    request.resize(4 + 32, 0);
    connection.send(&request)
}

/// Returns whether the capabilities in a greeting (protocol 10) contain CLIENT_SSL.
fn mysql_has_tls(greeting: &[u8]) -> Result<bool, String> {
    match greeting {
        [0xff, _, _, said @ ..] => Err(format!("the server refuses: {}", shown(said))),
        [10, rest @ ..] => {
            let end = rest.iter().position(|byte| *byte == 0);
            // The version is followed by the thread id (4 bytes), salt (8), a zero and the lower capabilities.
            let at = end.ok_or("a version without an end")? + 1 + 4 + 8 + 1;
            let low = rest.get(at..at + 2).ok_or("a greeting that is cut short")?;
            Ok(low[1] & 0x08 != 0)
        }
        _ => Err(shown(greeting)),
    }
}

fn xmpp(connection: &mut Connection<'_>, host: &str) -> Result<(), ProbeError> {
    connection.expect("the stream of XMPP");
    let stream = format!(
        "<?xml version='1.0'?><stream:stream to='{host}' version='1.0' xmlns='jabber:client' \
         xmlns:stream='http://etherx.jabber.org/streams'>"
    );
    connection.send(stream.as_bytes())?;
    let features = connection.up_to(b"</stream:features>", 16 << 10)?;
    let text = String::from_utf8_lossy(&features);
    if !text.contains("urn:ietf:params:xml:ns:xmpp-tls") {
        return Err(ProbeError::foreign("XMPP with STARTTLS", shown(&features)));
    }
    connection.expect("the answer to starttls");
    connection.send(b"<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>")?;
    let answer = connection.up_to(b">", 4096)?;
    match String::from_utf8_lossy(&answer).contains("<proceed") {
        true => Ok(()),
        false => Err(refused("XMPP", &answer)),
    }
}

/// Runs every binary parser on arbitrary bytes, for tests with random input.
pub fn read_any(bytes: &[u8]) {
    let _ = ldap_result(bytes);
    let _ = mysql_has_tls(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_ldap() {
        let success = [2, 1, 1, 0x78, 7, 10, 1, 0, 4, 0, 4, 0];
        assert_eq!(ldap_result(&success), Some(0));
        // Answer of OpenLDAP without a certificate: code 2, protocolError.
        let refused = [2, 1, 1, 0x78, 0x81, 7, 10, 1, 2, 4, 0, 4, 0];
        assert_eq!(ldap_result(&refused), Some(2));
        assert_eq!(ldap_result(&[2, 1, 1, 0x61, 7, 10, 1, 0]), None);
        assert_eq!(ldap_result(&[]), None);
    }

    #[test]
    fn greetings_of_mysql() {
        let mut greeting = b"\x0a8.0.36\0".to_vec();
        greeting.extend([7; 12]);
        greeting.push(0);
        greeting.extend([0xff, 0xf7]);
        assert_eq!(mysql_has_tls(&greeting), Ok(false));
        let last = greeting.len() - 1;
        greeting[last] = 0xff;
        assert_eq!(mysql_has_tls(&greeting), Ok(true));
        assert!(mysql_has_tls(&greeting[..last]).is_err());
        assert!(mysql_has_tls(b"\xff\x69\x04Host is blocked").is_err());
    }
}
