//! Reduces certificates to one line each without names, and parses these lines.

use x509_parser::extensions::ParsedExtension;
use x509_parser::objects::{oid_registry, oid2sn};
use x509_parser::oid_registry::OID_PKIX_ACCESS_DESCRIPTOR_CA_ISSUERS;
use x509_parser::pem::Pem;
use x509_parser::prelude::X509Certificate;
use x509_parser::public_key::PublicKey;

/// A certificate on one line, as written by [`redact`].
pub(super) struct Line<'a> {
    pub(super) from: i64,
    pub(super) until: i64,
    pub(super) key: &'a str,
    pub(super) bits: u64,
    pub(super) signature: &'a str,
    pub(super) self_signed: bool,
    pub(super) then: Then,
    /// Whether the certificate contains the URL of its issuer's certificate (RFC 5280, section 4.2.2.1).
    pub(super) issuer_elsewhere: bool,
}

/// What follows a certificate in the same file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// The certificate of its issuer.
    Issuer,
    /// A certificate that is not that of the issuer.
    Gap,
    /// The end of the file.
    End,
}

impl<'a> Line<'a> {
    pub(super) fn read(line: &'a str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        let [
            "certificate",
            from,
            until,
            key,
            bits,
            signature,
            signed_by,
            more @ ..,
        ] = words.as_slice()
        else {
            return None;
        };
        // Captures of older versions lack this field.
        let (then, fetch) = match more {
            [] => ("end", "-"),
            [then, fetch] => (*then, *fetch),
            _ => return None,
        };
        let word = |text: &str| {
            text.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte))
        };
        Some(Self {
            from: from.parse().ok()?,
            until: until.parse().ok()?,
            key: Some(*key).filter(|key| word(key))?,
            bits: bits.parse().ok()?,
            signature: Some(*signature).filter(|name| word(name) && name.len() <= 40)?,
            self_signed: match *signed_by {
                "itself" => true,
                "another" => false,
                _ => return None,
            },
            then: match then {
                "next" => Then::Issuer,
                "gap" => Then::Gap,
                "end" => Then::End,
                _ => return None,
            },
            issuer_elsewhere: match fetch {
                "fetch" => true,
                "-" => false,
                _ => return None,
            },
        })
    }
}

impl std::fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let signed_by = if self.self_signed {
            "itself"
        } else {
            "another"
        };
        let then = match self.then {
            Then::Issuer => "next",
            Then::Gap => "gap",
            Then::End => "end",
        };
        let fetch = if self.issuer_elsewhere { "fetch" } else { "-" };
        write!(
            f,
            "certificate {} {} {} {} {} {signed_by} {then} {fetch}",
            self.from, self.until, self.key, self.bits, self.signature
        )
    }
}

/// Redacts a certificate file to one line for each certificate. Keys are dropped.
pub(crate) fn redact(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines: Vec<String> = text
        .lines()
        .filter_map(|line| Some(Line::read(line)?.to_string()))
        .collect();
    let blocks: Vec<Pem> = Pem::iter_from_buffer(bytes)
        .map_while(Result::ok)
        .filter(|block| block.label.ends_with("CERTIFICATE"))
        .collect();
    let all: Vec<X509Certificate<'_>> = blocks
        .iter()
        .filter_map(|block| block.parse_x509().ok())
        .collect();
    for (at, read) in all.iter().enumerate() {
        let then = match all.get(at + 1) {
            None => Then::End,
            Some(next) if next.subject().as_raw() == read.issuer().as_raw() => Then::Issuer,
            Some(_) => Then::Gap,
        };
        lines.push(format_certificate(read, then));
    }
    lines
        .iter()
        .flat_map(|line| (line.clone() + "\n").into_bytes())
        .collect()
}

fn format_certificate(read: &X509Certificate<'_>, then: Then) -> String {
    let oid = &read.signature_algorithm.algorithm;
    let name = oid2sn(oid, oid_registry()).map_or_else(|_| oid.to_id_string(), str::to_owned);
    let (key, bits) = match read.public_key().parsed() {
        Ok(PublicKey::RSA(rsa)) => ("RSA", rsa.key_size()),
        Ok(PublicKey::DSA(_)) => ("DSA", 0),
        Ok(PublicKey::EC(_)) => ("EC", 0),
        _ if is_edwards(read) => ("EdDSA", 0),
        _ => ("other", 0),
    };
    Line {
        from: read.validity().not_before.timestamp(),
        until: read.validity().not_after.timestamp(),
        key,
        bits: u64::try_from(bits).unwrap_or(u64::MAX),
        signature: &name,
        self_signed: read.subject().as_raw() == read.issuer().as_raw(),
        then,
        issuer_elsewhere: issuer_elsewhere(read),
    }
    .to_string()
}

/// Returns whether the key is Ed25519 or Ed448 (RFC 8410, section 3).
fn is_edwards(read: &X509Certificate<'_>) -> bool {
    let oid = read.public_key().algorithm.algorithm.to_id_string();
    matches!(oid.as_str(), "1.3.101.112" | "1.3.101.113")
}

fn issuer_elsewhere(read: &X509Certificate<'_>) -> bool {
    read.extensions().iter().any(|extension| {
        let ParsedExtension::AuthorityInfoAccess(access) = extension.parsed_extension() else {
            return false;
        };
        let mut all = access.accessdescs.iter();
        all.any(|one| one.access_method == OID_PKIX_ACCESS_DESCRIPTOR_CA_ISSUERS)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_the_line_is_kept() {
        for text in [
            "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ\n-----END PRIVATE KEY-----\n",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "certificate 1 2 RSA x sha256WithRSAEncryption itself",
            "certificate 1 2 RSA 2048 sha256 itself www.example.org",
            "certificate 1 2 RSA 2048 sha256 itself end www.example.org",
            "",
        ] {
            assert_eq!(redact(text.as_bytes()), b"", "{text}");
        }
        let line = b"certificate 1600000000 1700000000 RSA 2048 sha256WithRSAEncryption another gap fetch\n";
        assert_eq!(redact(line), line);
        let old = b"certificate 1600000000 1700000000 RSA 2048 sha256WithRSAEncryption another\n";
        assert!(redact(old).ends_with(b" another end -\n"));
    }
}
