//! Encodes and decodes SSH packets before encryption starts (RFC 4253 sections 6 and 7, RFC 5656 section 4).

use crate::error::{ProbeError, shown};
use crate::visit::{Connection, Visit};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use ssh_encoding::Decode as _;

/// Algorithms that a server offers, in the server's order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Algorithms {
    /// Key exchange algorithms, without the names in `extensions`.
    pub kex: Vec<String>,
    /// Names in the list of key exchanges that are not algorithms but announce an extension, such as
    /// `kex-strict-s-v00@openssh.com`.
    pub extensions: Vec<String>,
    /// Host key algorithms, which are also signature algorithms.
    pub host_keys: Vec<String>,
    /// Ciphers for data from client to server.
    pub ciphers_in: Vec<String>,
    /// Ciphers for data from server to client.
    pub ciphers_out: Vec<String>,
    /// MAC algorithms for data from client to server.
    pub macs_in: Vec<String>,
    /// MAC algorithms for data from server to client.
    pub macs_out: Vec<String>,
    /// Compression methods for data from client to server.
    pub compression_in: Vec<String>,
    /// Compression methods for data from server to client.
    pub compression_out: Vec<String>,
}

/// A host key of an SSH server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct HostKey {
    /// Kind of the key, such as `ssh-ed25519`, `ssh-rsa` or `ecdsa-sha2-nistp256`.
    pub kind: String,
    /// Size of the key in bits; `None` if all keys of this kind have the same size.
    pub bits: Option<usize>,
    /// Fingerprint in the format of `ssh-keygen -l`: `SHA256:` and base64.
    pub fingerprint: String,
}

/// Maximum packet length in bytes. RFC 4253 section 6.1 requires at least 35,000 bytes.
const LONGEST: usize = 64 << 10;

/// Reads the payload of the next packet.
pub(super) fn packet(connection: &mut Connection<'_>) -> Result<Vec<u8>, ProbeError> {
    let head = connection.take(5)?;
    let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
    let padding = usize::from(head[4]);
    if !(padding + 2..=LONGEST).contains(&length) {
        return Err(ProbeError::foreign("SSH", shown(&head)));
    }
    let mut body = connection.take(length - 1)?;
    body.truncate(length - 1 - padding);
    Ok(body)
}

/// Encodes a payload as a packet. Adds at least four bytes of padding, up to a multiple of eight bytes.
pub(super) fn framed(payload: &[u8]) -> Vec<u8> {
    let mut padding = 8 - (5 + payload.len()) % 8;
    if padding < 4 {
        padding += 8;
    }
    let length = u32::try_from(1 + payload.len() + padding).unwrap_or(0);
    let mut out = length.to_be_bytes().to_vec();
    out.push(u8::try_from(padding).unwrap_or(0));
    out.extend_from_slice(payload);
    out.resize(out.len() + padding, 0);
    out
}

fn broken(error: &ssh_encoding::Error) -> ProbeError {
    ProbeError::foreign("SSH", format!("a message that cannot be read: {error}"))
}

/// Parses SSH_MSG_KEXINIT.
///
/// # Errors
/// The message is not a SSH_MSG_KEXINIT.
pub fn algorithms(message: &[u8]) -> Result<Algorithms, ProbeError> {
    // Skip the message number and 16 bytes of cookie.
    let Some(mut rest) = message.get(17..).filter(|_| message[0] == 20) else {
        return Err(ProbeError::foreign("SSH", shown(message)));
    };
    let mut list = || -> Result<Vec<String>, ProbeError> {
        let text = String::decode(&mut rest).map_err(|error| broken(&error))?;
        let names = text.split(',').filter(|name| !name.is_empty());
        Ok(names.map(str::to_owned).collect())
    };
    let (extensions, kex) = list()?.into_iter().partition(|name| is_extension(name));
    Ok(Algorithms {
        kex,
        extensions,
        host_keys: list()?,
        ciphers_in: list()?,
        ciphers_out: list()?,
        macs_in: list()?,
        macs_out: list()?,
        compression_in: list()?,
        compression_out: list()?,
    })
}

fn is_extension(name: &str) -> bool {
    name.starts_with("ext-info-") || name.starts_with("kex-strict-")
}

/// Returns one algorithm for each kind of host key that the server offers, because `rsa-sha2-256` and `ssh-rsa` use the
/// same key. Algorithms for certificates are omitted, because a certificate contains the same key.
pub(super) fn kinds(algorithms: &Algorithms) -> Vec<&str> {
    let mut kinds: Vec<&str> = Vec::new();
    let mut has_rsa = false;
    for name in algorithms.host_keys.iter().map(String::as_str) {
        let is_rsa = name == "ssh-rsa" || name.starts_with("rsa-sha2-");
        if name.contains("-cert-") || (is_rsa && has_rsa) || kinds.contains(&name) {
            continue;
        }
        has_rsa |= is_rsa;
        kinds.push(name);
    }
    kinds.truncate(12);
    kinds
}

/// A key exchange in which the probe sends a public key without having the private key, because it only needs the
/// server's host key.
pub(super) struct Exchange {
    pub name: &'static str,
    pub begin: Vec<u8>,
}

/// The base point of P-256, a valid public key (SEC 2 section 2.4.2).
const P256: [u8; 65] = [
    0x04, 0x6b, 0x17, 0xd1, 0xf2, 0xe1, 0x2c, 0x42, 0x47, 0xf8, 0xbc, 0xe6, 0xe5, 0x63, 0xa4, 0x40,
    0xf2, 0x77, 0x03, 0x7d, 0x81, 0x2d, 0xeb, 0x33, 0xa0, 0xf4, 0xa1, 0x39, 0x45, 0xd8, 0x98, 0xc2,
    0x96, 0x4f, 0xe3, 0x42, 0xe2, 0xfe, 0x1a, 0x7f, 0x9b, 0x8e, 0xe7, 0xeb, 0x4a, 0x7c, 0x0f, 0x9e,
    0x16, 0x2b, 0xce, 0x33, 0x57, 0x6b, 0x31, 0x5e, 0xce, 0xcb, 0xb6, 0x40, 0x68, 0x37, 0xbf, 0x51,
    0xf5,
];

/// Methods of finite-field Diffie-Hellman, each with its name and the length of the public number in bytes.
const FIELDS: [(&str, usize); 5] = [
    ("diffie-hellman-group14-sha256", 256),
    ("diffie-hellman-group16-sha512", 512),
    ("diffie-hellman-group18-sha512", 1024),
    ("diffie-hellman-group14-sha1", 256),
    ("diffie-hellman-group1-sha1", 128),
];

/// Chooses a key exchange method that the server offers.
pub(super) fn exchange(algorithms: &Algorithms, visit: &Visit) -> Result<Exchange, ProbeError> {
    let offered = |name: &&str| algorithms.kex.iter().any(|kex| kex == name);
    let begin = |point: &[u8]| {
        let mut out = vec![30];
        put(&mut out, point);
        out
    };
    let curves = ["curve25519-sha256", "curve25519-sha256@libssh.org"];
    if let Some(name) = curves.into_iter().find(offered) {
        return Ok(Exchange {
            name,
            begin: begin(&visit.random()),
        });
    }
    if offered(&"ecdh-sha2-nistp256") {
        return Ok(Exchange {
            name: "ecdh-sha2-nistp256",
            begin: begin(&P256),
        });
    }
    if let Some((name, bytes)) = FIELDS.into_iter().find(|(name, _)| offered(name)) {
        let mut number: Vec<u8> = Vec::new();
        while number.len() < bytes {
            number.extend(visit.random());
        }
        // The number is positive and less than every prime of its size, because these primes start with ones.
        number[0] = number[0] & 0x7f | 0x40;
        return Ok(Exchange {
            name,
            begin: begin(&number),
        });
    }
    Err(ProbeError::foreign(
        "an exchange of keys that is known here",
        format!("the server offers {}", algorithms.kex.join(", ")),
    ))
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(0).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// Encodes the client's SSH_MSG_KEXINIT. The message offers one key exchange and one kind of host key. In all other
/// lists, it offers the first algorithm of the server.
pub(super) fn offer(kind: &str, kex: &str, algorithms: &Algorithms, cookie: [u8; 32]) -> Vec<u8> {
    let mut out = vec![20];
    out.extend_from_slice(&cookie[..16]);
    let lists = [
        kex.to_owned(),
        kind.to_owned(),
        algorithms.ciphers_in.join(","),
        algorithms.ciphers_out.join(","),
        algorithms.macs_in.join(","),
        algorithms.macs_out.join(","),
        algorithms.compression_in.join(","),
        algorithms.compression_out.join(","),
        String::new(),
        String::new(),
    ];
    lists.iter().for_each(|list| put(&mut out, list.as_bytes()));
    // No guessed packet follows; reserved field.
    out.extend_from_slice(&[0; 5]);
    out
}

/// Parses the host key in the server's answer to the key exchange.
///
/// # Errors
/// The answer contains no host key.
pub fn host_key(message: &[u8]) -> Result<HostKey, ProbeError> {
    let mut rest = message.get(1..).unwrap_or_default();
    let blob = Vec::<u8>::decode(&mut rest).map_err(|error| broken(&error))?;
    let mut inside = blob.as_slice();
    let kind = String::decode(&mut inside).map_err(|error| broken(&error))?;
    let mut number = || Vec::<u8>::decode(&mut inside).map_err(|error| broken(&error));
    let bits = match kind.as_str() {
        "ssh-rsa" => {
            number()?;
            Some(crate::tls::bits(&number()?))
        }
        "ssh-dss" => Some(crate::tls::bits(&number()?)),
        _ => None,
    };
    use base64::Engine as _;
    let digest = base64::prelude::BASE64_STANDARD_NO_PAD.encode(Sha256::digest(&blob));
    Ok(HostKey {
        kind,
        bits,
        fingerprint: format!("SHA256:{digest}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_offer_is_read_again() {
        let named = |name: &str| vec![name.to_owned()];
        let server = Algorithms {
            ciphers_in: named("aes128-ctr"),
            macs_out: named("hmac-sha2-256"),
            ..Algorithms::default()
        };
        let message = offer("ssh-ed25519", "curve25519-sha256", &server, [3; 32]);
        let read = algorithms(&message).unwrap();
        assert_eq!(read.kex, ["curve25519-sha256"]);
        assert_eq!(read.host_keys, ["ssh-ed25519"]);
        assert_eq!(read.ciphers_in, server.ciphers_in);
        assert_eq!(read.macs_out, server.macs_out);
        for length in 0..message.len() - 13 {
            assert!(algorithms(&message[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn packets_are_multiples_of_eight() {
        for length in 1..40 {
            let packet = framed(&vec![7; length]);
            assert_eq!(packet.len() % 8, 0);
            assert!(packet[4] >= 4);
        }
    }

    #[test]
    fn one_key_for_all_names_of_rsa() {
        let host_keys = [
            "rsa-sha2-512",
            "rsa-sha2-256",
            "ssh-rsa",
            "ssh-ed25519",
            "ssh-ed25519-cert-v01@openssh.com",
        ];
        let server = Algorithms {
            host_keys: host_keys.map(str::to_owned).to_vec(),
            ..Algorithms::default()
        };
        assert_eq!(kinds(&server), ["rsa-sha2-512", "ssh-ed25519"]);
    }
}
