//! Builds ClientHello messages, because TLS libraries cannot offer old versions and old suites.
//!
//! Sources: RFC 8446 section 4.1.2, RFC 5246 section 7.4.1.2, RFC 6101 section 5.6.1.2; for DTLS RFC 6347 section
//! 4.2.2.

use super::version::Version;

/// All signature algorithms, so that no server refuses because of a missing signature algorithm.
const SIGNATURES: [u16; 24] = [
    0x0403, 0x0503, 0x0603, 0x0807, 0x0808, 0x0804, 0x0805, 0x0806, 0x0809, 0x080a, 0x080b, 0x0401,
    0x0501, 0x0601, 0x081a, 0x081b, 0x081c, 0x0303, 0x0301, 0x0402, 0x0302, 0x0203, 0x0201, 0x0202,
];

/// Key share that a TLS 1.3 ClientHello contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyShare {
    /// No key share. The server then answers with a HelloRetryRequest that contains its preferred group (RFC 8446
    /// section 4.2.8), so that neither side computes a key.
    Empty,
    /// A public key for which no private key is known. Every string of 32 bytes is a public key of X25519 (RFC 7748
    /// section 5).
    X25519([u8; 32]),
}

/// Fields of a ClientHello that vary between probes.
#[derive(Clone, Debug)]
pub struct Hello<'a> {
    /// Highest offered version. In a hello for TLS 1.3, this is the only offered version.
    pub version: Version,
    /// Ids of the cipher suites, the preferred first.
    pub suites: &'a [u16],
    /// Ids of the groups, the preferred first.
    pub groups: &'a [u16],
    /// Host name for SNI; `None` sends no name.
    pub server_name: Option<&'a str>,
    /// Key share for TLS 1.3.
    pub share: KeyShare,
    /// Whether to offer heartbeats (RFC 6520).
    pub heartbeat: bool,
    /// Whether to offer compression by DEFLATE (RFC 3749), in versions before 1.3.
    pub compression: bool,
    /// Random value of 32 bytes.
    pub random: [u8; 32],
    /// `verify_data` of the client's Finished message, for a renegotiation (RFC 5746); empty in the first hello.
    pub renegotiates: &'a [u8],
}

impl Hello<'_> {
    /// Encodes the message without its header of four bytes. `dtls` is the cookie of a DTLS hello; `None` encodes a TLS
    /// hello.
    #[must_use]
    pub fn body(&self, dtls: Option<&[u8]>) -> Vec<u8> {
        let mut out = Vec::with_capacity(1024);
        let version = match (dtls, self.version) {
            (Some(_), Version::Tls10 | Version::Tls11) => 0xfeff,
            (Some(_), _) => 0xfefd,
            // RFC 8446 section 4.1.2: TLS 1.3 is announced in an extension.
            (None, version) => version.number().min(0x0303),
        };
        put16(&mut out, version);
        out.extend_from_slice(&self.random);
        match self.version {
            // RFC 8446 appendix D.4: a session id makes middleboxes see a TLS 1.2 resumption.
            Version::Tls13 => {
                out.push(32);
                out.extend(self.random.iter().map(|byte| byte ^ 0x5a));
            }
            _ => out.push(0),
        }
        if let Some(cookie) = dtls {
            with_length8(&mut out, |out| out.extend_from_slice(cookie));
        }
        with_length16(&mut out, |out| {
            self.suites.iter().for_each(|suite| put16(out, *suite));
        });
        match self.compression && self.version != Version::Tls13 {
            true => out.extend_from_slice(&[2, 1, 0]),
            false => out.extend_from_slice(&[1, 0]),
        }
        if self.version != Version::Ssl3 {
            let mut extensions = Vec::new();
            self.extensions(&mut extensions);
            // RFC 7685: some load balancers hang on hellos of 256 to 511 bytes.
            let whole = 4 + out.len() + 2 + extensions.len();
            if (256..512).contains(&whole) {
                let missing = (512 - whole).saturating_sub(4);
                extension(&mut extensions, 21, |out| {
                    out.resize(out.len() + missing, 0)
                });
            }
            with_length16(&mut out, |out| out.extend_from_slice(&extensions));
        }
        out
    }

    fn extensions(&self, out: &mut Vec<u8>) {
        if let Some(name) = self.server_name {
            extension(out, 0, |out| {
                with_length16(out, |out| {
                    out.push(0);
                    with_length16(out, |out| out.extend_from_slice(name.as_bytes()));
                });
            });
        }
        if !self.groups.is_empty() {
            extension(out, 10, |out| {
                with_length16(out, |out| {
                    self.groups.iter().for_each(|group| put16(out, *group));
                });
            });
        }
        if self.version >= Version::Tls12 {
            extension(out, 13, |out| {
                with_length16(out, |out| {
                    SIGNATURES
                        .iter()
                        .for_each(|algorithm| put16(out, *algorithm));
                });
            });
        }
        if self.heartbeat {
            // peer_allowed_to_send
            extension(out, 15, |out| out.push(1));
        }
        if self.version == Version::Tls13 {
            extension(out, 43, |out| {
                with_length8(out, |out| put16(out, 0x0304));
            });
            // psk_dhe_ke
            extension(out, 45, |out| out.extend_from_slice(&[1, 1]));
            extension(out, 51, |out| {
                with_length16(out, |out| {
                    if let KeyShare::X25519(key) = self.share {
                        put16(out, 29);
                        with_length16(out, |out| out.extend_from_slice(&key));
                    }
                });
            });
        } else {
            extension(out, 11, |out| out.extend_from_slice(&[1, 0]));
            extension(out, 23, |_| {});
            extension(out, 0xff01, |out| {
                with_length8(out, |out| out.extend_from_slice(self.renegotiates));
            });
        }
    }

    /// Encodes the message with its header.
    #[must_use]
    pub fn message(&self) -> Vec<u8> {
        let body = self.body(None);
        let mut message = vec![1];
        message.extend_from_slice(&length(body.len()).to_be_bytes()[1..]);
        message.extend_from_slice(&body);
        message
    }

    /// Encodes the message in a record.
    #[must_use]
    pub fn record(&self) -> Vec<u8> {
        let message = self.message();
        // RFC 8446 section 5.1 and RFC 5246 appendix E.1: a low version number that every server accepts.
        let version = self.version.number().min(0x0301);
        record(22, version, &message)
    }
}

/// Encodes a TLS record.
#[must_use]
pub fn record(kind: u8, version: u16, body: &[u8]) -> Vec<u8> {
    let mut out = vec![kind];
    put16(&mut out, version);
    with_length16(&mut out, |out| out.extend_from_slice(body));
    out
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

fn put16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_be_bytes());
}

fn extension(out: &mut Vec<u8>, kind: u16, write: impl FnOnce(&mut Vec<u8>)) {
    put16(out, kind);
    with_length16(out, write);
}

fn with_length8(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.push(0);
    write(out);
    let written = out.len() - at - 1;
    out[at] = u8::try_from(written).unwrap_or(u8::MAX);
}

fn with_length16(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    put16(out, 0);
    write(out);
    let written = u16::try_from(out.len() - at - 2).unwrap_or(u16::MAX);
    out[at..at + 2].copy_from_slice(&written.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use tls_parser::{TlsMessage, TlsMessageHandshake, parse_tls_client_hello_extensions};

    /// Checks every ClientHello with a parser of another project.
    #[test]
    fn a_foreign_parser_reads_every_hello() {
        for version in Version::ALL {
            let suites = version.suites();
            for name in [None, Some("example.org")] {
                for groups in [vec![], super::super::version::groups(version)] {
                    let hello = Hello {
                        version,
                        suites: &suites,
                        groups: &groups,
                        server_name: name,
                        share: KeyShare::X25519([7; 32]),
                        heartbeat: true,
                        compression: true,
                        random: [9; 32],
                        renegotiates: &[],
                    };
                    let bytes = hello.record();
                    let (rest, record) = tls_parser::parse_tls_plaintext(&bytes).unwrap();
                    assert!(rest.is_empty());
                    let [TlsMessage::Handshake(TlsMessageHandshake::ClientHello(read))] =
                        record.msg.as_slice()
                    else {
                        panic!("{version:?}: {record:?}");
                    };
                    let ids: Vec<u16> = read.ciphers.iter().map(|id| id.0).collect();
                    assert_eq!(ids, suites);
                    let known = version != Version::Ssl3;
                    assert_eq!(read.ext.is_some(), known);
                    if let Some(extensions) = read.ext {
                        let (rest, _) = parse_tls_client_hello_extensions(extensions).unwrap();
                        assert!(rest.is_empty());
                    }
                    assert!(!(256 + 5..512 + 5).contains(&bytes.len()) || !known);
                }
            }
        }
    }

    #[test]
    fn old_versions_are_offered_what_they_know() {
        let old = Version::Tls10.suites();
        // TLS_RSA_EXPORT_WITH_RC4_40_MD5, 3DES, AES-128-CBC-SHA; not GCM.
        for id in [0x0003, 0x000a, 0x002f] {
            assert!(old.contains(&id), "{id:04x}");
        }
        assert!(!old.contains(&0x009c));
        let new = Version::Tls12.suites();
        assert!(old.iter().all(|id| new.contains(id)));
        assert!(!new.contains(&0x00ff) && !new.contains(&0x5600) && !new.contains(&0x1301));
        assert!(Version::Tls13.suites().iter().all(|id| !new.contains(id)));
    }
}
