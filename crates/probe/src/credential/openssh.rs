//! The files of OpenSSH: public keys, certificates and private keys (RFC 4253 section 6.6, PROTOCOL.certkeys and
//! PROTOCOL.key of OpenSSH).

use super::{Credential, Read, SshCertificate, SshKey};
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use ssh_encoding::Decode as _;

/// Parses a line of a `.pub` file, of `authorized_keys` or of `known_hosts`. Returns `None` if the line contains no
/// key.
pub(super) fn read_line(line: &str) -> Option<(&'static str, Read)> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let is_algorithm = |word: &str| {
        ["ssh-", "ecdsa-", "sk-ssh-", "sk-ecdsa-"]
            .iter()
            .any(|start| word.starts_with(start))
    };
    // Options may hold blanks between quotes, so the place of the algorithm is searched for.
    let mut begin = 0;
    let at = loop {
        let word = line[begin..].split_whitespace().next()?;
        let at = begin + line[begin..].find(word)?;
        if is_algorithm(word) {
            break at;
        }
        begin = at + word.len();
    };
    let (before, key) = line.split_at(at);
    let options = Some(before.trim().to_owned()).filter(|text| !text.is_empty());
    let (algorithm, rest) = key.split_once(char::is_whitespace)?;
    let (encoded, comment) = match rest.trim_start().split_once(char::is_whitespace) {
        Some((encoded, comment)) => (encoded, Some(comment.trim().to_owned())),
        None => (rest.trim_start(), None),
    };
    let blob = || -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(BASE64_STANDARD.decode(encoded)?)
    };
    Some(match algorithm.contains("-cert-v") {
        true => (
            "SSH certificate",
            blob().and_then(|blob| read_certificate(&blob)),
        ),
        false => (
            "SSH key",
            blob().and_then(|blob| {
                Ok(Credential::SshKey(SshKey {
                    private: false,
                    encrypted: false,
                    key: PublicKey::read(&mut &blob[..])?.name,
                    fingerprint: fingerprint(&blob),
                    comment,
                    options,
                }))
            }),
        ),
    })
}

/// Reads the body of a block `OPENSSH PRIVATE KEY`. Only the public key is read, which is never encrypted.
pub(super) fn read_private_key(block: &str) -> Read {
    let body: String = block
        .lines()
        .filter(|line| !line.starts_with("-----"))
        .flat_map(|line| line.trim().chars())
        .collect();
    let bytes = BASE64_STANDARD.decode(body)?;
    let mut rest = bytes
        .strip_prefix(b"openssh-key-v1\0")
        .ok_or("it does not begin with openssh-key-v1")?;
    let cipher = String::decode(&mut rest)?;
    let _function = String::decode(&mut rest)?;
    let _options = Vec::<u8>::decode(&mut rest)?;
    if u32::decode(&mut rest)? != 1 {
        return Err("it has more than one key".into());
    }
    let blob = Vec::<u8>::decode(&mut rest)?;
    Ok(Credential::SshKey(SshKey {
        private: true,
        encrypted: cipher != "none",
        key: PublicKey::read(&mut &blob[..])?.name,
        fingerprint: fingerprint(&blob),
        comment: None,
        options: None,
    }))
}

/// Fields of a public key in OpenSSH's encoding.
struct PublicKey {
    /// Algorithm and size, such as `RSA 3072`, `ED25519` or `ECDSA nistp256`.
    name: String,
    /// Encoded key without a certificate, from which the fingerprint is computed.
    blob: Vec<u8>,
}

impl PublicKey {
    /// Parses the algorithm and the fields of a key, and advances the reader to the byte after them. In a certificate,
    /// skips the nonce between algorithm and fields.
    fn read(reader: &mut &[u8]) -> ssh_encoding::Result<Self> {
        let algorithm = String::decode(reader)?;
        let plain = algorithm.replace("-cert-v01@openssh.com", "");
        if plain != algorithm {
            Vec::<u8>::decode(reader)?;
        }
        // Security keys keep their vendor's name in the plain algorithm.
        let plain = match plain.starts_with("sk-") {
            true => {
                format!("{plain}@openssh.com").replace("@openssh.com@openssh.com", "@openssh.com")
            }
            false => plain,
        };
        let count = match plain.as_str() {
            "ssh-ed25519" => 1,
            "ssh-dss" => 4,
            name if name.starts_with("sk-ecdsa-") => 3,
            _ => 2,
        };
        let mut fields = Vec::new();
        for _ in 0..count {
            fields.push(Vec::<u8>::decode(reader)?);
        }
        let text = |at: usize| String::from_utf8_lossy(&fields[at]).into_owned();
        let name = match plain.as_str() {
            "ssh-ed25519" => "ED25519".to_owned(),
            "ssh-rsa" => format!("RSA {}", crate::tls::bits(&fields[1])),
            "ssh-dss" => format!("DSA {}", crate::tls::bits(&fields[0])),
            "sk-ssh-ed25519@openssh.com" => "ED25519-SK".to_owned(),
            name if name.starts_with("sk-ecdsa-") => "ECDSA-SK".to_owned(),
            name if name.starts_with("ecdsa-") => format!("ECDSA {}", text(0)),
            other => other.to_owned(),
        };
        let mut blob = Vec::new();
        for field in std::iter::once(plain.as_bytes()).chain(fields.iter().map(Vec::as_slice)) {
            blob.extend(u32::try_from(field.len()).unwrap_or(u32::MAX).to_be_bytes());
            blob.extend(field);
        }
        Ok(Self { name, blob })
    }
}

fn read_certificate(blob: &[u8]) -> Read {
    let mut rest = blob;
    let key = PublicKey::read(&mut rest)?;
    let serial = u64::decode(&mut rest)?;
    let of = match u32::decode(&mut rest)? {
        1 => "user",
        2 => "host",
        other => return Err(format!("it is for neither users nor hosts: type {other}").into()),
    };
    let key_id = String::decode(&mut rest)?;
    let names = Vec::<u8>::decode(&mut rest)?;
    let (after, before) = (u64::decode(&mut rest)?, u64::decode(&mut rest)?);
    let critical = Vec::<u8>::decode(&mut rest)?;
    let extensions = Vec::<u8>::decode(&mut rest)?;
    let _reserved = Vec::<u8>::decode(&mut rest)?;
    let authority = Vec::<u8>::decode(&mut rest)?;
    let mut principals = Vec::new();
    let mut names = &names[..];
    while !names.is_empty() {
        principals.push(String::decode(&mut names)?);
    }
    // 0 and the largest number stand for "no limit".
    let time = |seconds: u64| {
        let seconds = i64::try_from(seconds).ok().filter(|seconds| *seconds != 0);
        seconds.and_then(|seconds| Timestamp::from_second(seconds).ok())
    };
    Ok(Credential::SshCertificate(Box::new(SshCertificate {
        of,
        key_id,
        serial,
        principals,
        not_before: time(after),
        not_after: time(before),
        critical_options: read_options(&critical)?,
        extensions: read_options(&extensions)?,
        key: key.name,
        fingerprint: fingerprint(&key.blob),
        authority: fingerprint(&authority),
    })))
}

/// Parses options of a certificate. Returns each in the form `name` or `name=value`.
fn read_options(mut bytes: &[u8]) -> ssh_encoding::Result<Vec<String>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let name = String::decode(&mut bytes)?;
        let data = Vec::<u8>::decode(&mut bytes)?;
        all.push(match data.is_empty() {
            true => name,
            // The value is a string within the data.
            false => format!("{name}={}", String::decode(&mut &data[..])?),
        });
    }
    Ok(all)
}

/// Computes the fingerprint in the format of `ssh-keygen -l`.
fn fingerprint(blob: &[u8]) -> String {
    format!(
        "SHA256:{}",
        BASE64_STANDARD_NO_PAD.encode(Sha256::digest(blob))
    )
}
