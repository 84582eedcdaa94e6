//! Explains why clients refuse a chain, and how to fix the fault. The TLS library reports many different faults with
//! the same error, in its own terms.

use crate::certificate::Certificate;
use jiff::Timestamp;
use rustls::CertificateError;

/// Reasons why a chain does not lead to a root of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Distrust {
    /// This machine has no root certificates.
    NoRoots,
    /// The server's certificate is self-signed.
    SelfSigned,
    /// The chain ends at a root certificate that this machine does not trust. Contains the name of the root.
    UnknownRoot(String),
    /// The server did not send the issuer of the last certificate, and this issuer is not a root of this machine.
    /// Contains the name of the issuer.
    MissingIssuer(String),
    /// An intermediate certificate has expired. Contains the name and expiry date of this certificate.
    Expired(String, Timestamp),
    /// A certificate that the server did not send is not valid at this time.
    OtherTime,
    /// The server's certificate does not permit server authentication.
    NotForServers,
    /// The server's certificate belongs to a certificate authority.
    Authority,
    /// A certificate is signed with a key or algorithm that clients refuse. Contains the name of the certificate and
    /// the algorithm.
    WeakSignature(String, String),
    /// The signature of a certificate is invalid.
    BadSignature,
    /// Another reason, as text from the library.
    Other(String),
}

impl Distrust {
    /// Explains the library's error from the fields of the certificates. The first certificate must be the server's
    /// own.
    pub(super) fn explain(error: &CertificateError, chain: &[Certificate], now: Timestamp) -> Self {
        use CertificateError as E;
        let Some((leaf, rest)) = chain.split_first() else {
            return Self::Other("the certificate cannot be read".to_owned());
        };
        if !leaf.for_servers {
            return Self::NotForServers;
        }
        let expired = rest.iter().find(|one| one.not_after < now);
        if let (E::Expired | E::ExpiredContext { .. } | E::UnknownIssuer, Some(one)) =
            (error, expired)
        {
            return Self::Expired(one.subject.clone(), one.not_after);
        }
        if leaf.self_signed {
            return Self::SelfSigned;
        }
        match error {
            E::UnknownIssuer => unknown_issuer(leaf, rest),
            E::Expired
            | E::ExpiredContext { .. }
            | E::NotValidYet
            | E::NotValidYetContext { .. } => Self::OtherTime,
            E::InvalidPurpose | E::InvalidPurposeContext { .. } => Self::NotForServers,
            E::UnsupportedSignatureAlgorithmContext { .. }
            | E::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => weak_signature(chain),
            // The library reports keys that are too short as an invalid signature.
            E::BadSignature => match rest.iter().find(|one| has_small_key(one)) {
                Some(issuer) => Self::WeakSignature(signed_by(chain, issuer), issuer.key.clone()),
                None => Self::BadSignature,
            },
            _ if leaf.is_ca => Self::Authority,
            E::BadEncoding => Self::Other("a certificate in it cannot be read".to_owned()),
            E::Revoked => Self::Other("a certificate in it was revoked".to_owned()),
            E::UnhandledCriticalExtension => Self::Other(
                "a certificate in it has a critical extension that is not known here".to_owned(),
            ),
            other => Self::Other(format!(
                "a certificate in it breaks a rule: {}",
                in_words(&other.to_string())
            )),
        }
    }

    /// Describes the fault with a phrase that ends a sentence.
    #[must_use]
    pub fn says(&self) -> String {
        let day = |time: &Timestamp| time.strftime("%Y-%m-%d").to_string();
        match self {
            Self::NoRoots => {
                "this machine has no root certificates (package ca-certificates)".to_owned()
            }
            Self::SelfSigned => "the certificate is signed by itself, so no authority stands behind it".to_owned(),
            Self::UnknownRoot(name) => {
                format!("it ends at the root `{name}`, which is none of this machine's")
            }
            Self::MissingIssuer(name) => format!(
                "its last certificate is signed by `{name}`, which was not sent and is none of this machine's roots"
            ),
            Self::Expired(name, end) => {
                format!("the intermediate certificate `{name}` expired on {}", day(end))
            }
            Self::OtherTime => {
                "a certificate that signs it is not valid now, and was not sent".to_owned()
            }
            Self::NotForServers => {
                "the certificate is not for servers: its extended key usage has no serverAuth".to_owned()
            }
            Self::Authority => {
                "the certificate is an authority's (CA:TRUE), which several clients refuse as a server's".to_owned()
            }
            Self::WeakSignature(name, by) => {
                format!("the certificate `{name}` is signed with {by}, which clients refuse")
            }
            Self::BadSignature => {
                "a signature in it is wrong: a certificate was changed, or another key signed it".to_owned()
            }
            Self::Other(why) => why.clone(),
        }
    }

    /// Returns how to fix the fault.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NoRoots => "install ca-certificates on this machine, and probe again",
            Self::SelfSigned => {
                "get a certificate from an authority (ACME is free); for a service of your own, pin the certificate \
                 or sign it with a root of your own that all clients have"
            }
            Self::UnknownRoot(_) => {
                "give that root to all clients, or get a certificate from an authority that they trust"
            }
            Self::MissingIssuer(_) => {
                "send the intermediate certificates too; with a root of your own, give it to all clients"
            }
            Self::Expired(..) => {
                "replace it with the authority's current intermediate certificate (with ACME: renew, and configure \
                 fullchain.pem)"
            }
            Self::OtherTime => {
                "look at the clocks, and send the authority's current intermediate certificates"
            }
            Self::NotForServers => {
                "get a certificate with extendedKeyUsage = serverAuth: this one is for clients or for mail"
            }
            Self::Authority => {
                "sign a certificate with CA:FALSE for the server, and keep the authority's key away from it"
            }
            Self::WeakSignature(..) => {
                "get a certificate that is signed with SHA-256 and a key of 2,048 bits or more"
            }
            Self::BadSignature => {
                "configure the certificates that the authority sent, in their order"
            }
            Self::Other(_) => "get a new certificate for the server",
        }
    }
}

/// Explains an unknown issuer, which is a private root or a certificate that the server did not send.
fn unknown_issuer(leaf: &Certificate, rest: &[Certificate]) -> Distrust {
    let mut last = leaf;
    // At most one step per certificate, so that a cycle ends.
    for _ in rest {
        match rest.iter().find(|one| one.subject == last.issuer) {
            Some(next) if !last.self_signed => last = next,
            _ => break,
        }
    }
    match last.self_signed {
        true => Distrust::UnknownRoot(last.subject.clone()),
        false => Distrust::MissingIssuer(last.issuer.clone()),
    }
}

fn has_small_key(certificate: &Certificate) -> bool {
    certificate.key_bits.is_some_and(|bits| bits < 2048)
}

/// Returns the name of the certificate that `issuer` signed.
fn signed_by(chain: &[Certificate], issuer: &Certificate) -> String {
    let signed = chain.iter().find(|one| one.issuer == issuer.subject);
    signed.map_or_else(String::new, |one| one.subject.clone())
}

fn weak_signature(chain: &[Certificate]) -> Distrust {
    let weak = |one: &&Certificate| !one.self_signed && is_old(&one.signature);
    let found = chain.iter().find(weak).or(chain.first());
    found.map_or_else(
        || {
            Distrust::Other(
                "a certificate in it is signed in a way that is not taken here".to_owned(),
            )
        },
        |one| Distrust::WeakSignature(one.subject.clone(), one.signature.clone()),
    )
}

/// Returns whether a signature uses MD2, MD5 or SHA-1, for which collisions are known.
pub(super) fn is_old(signature: &str) -> bool {
    ["md2", "md5", "sha1"]
        .iter()
        .any(|hash| signature.starts_with(hash))
}

/// Splits an identifier of the library into words: `CaUsedAsEndEntity` becomes `ca used as end entity`.
fn in_words(name: &str) -> String {
    let mut words = String::new();
    let mut before = ' ';
    for letter in name.chars() {
        if letter.is_uppercase() && before.is_lowercase() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
        before = letter;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether a text is a sentence. A word with two capital letters shows that the text is an identifier of
    /// the library.
    fn is_plain(says: &str) -> bool {
        let camel = |word: &str| {
            let capitals = word.chars().filter(|letter| letter.is_uppercase()).count();
            capitals > 1 && word.chars().any(char::is_lowercase)
        };
        let allowed = ["serverAuth,", "extendedKeyUsage"];
        let mut words = says.split_whitespace();
        // Names of certificates may have any capitals.
        !words.any(|word| camel(word) && !allowed.contains(&word) && !word.contains('='))
    }

    #[test]
    fn names_of_the_library_become_words() {
        assert_eq!(in_words("CaUsedAsEndEntity"), "ca used as end entity");
        assert!(!is_plain("it is BadSignature") && is_plain(&in_words("BadSignature")));
    }

    #[test]
    fn every_reason_is_a_sentence_with_a_way_out() {
        let fixture = include_bytes!("../../fixtures/cert.der");
        let mut leaf = Certificate::read(fixture).unwrap();
        leaf.self_signed = false;
        let now: Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
        use CertificateError as E;
        for error in [
            E::UnknownIssuer,
            E::BadSignature,
            E::BadEncoding,
            E::Expired,
            E::NotValidYet,
            E::Revoked,
            E::UnhandledCriticalExtension,
            E::InvalidPurpose,
            E::UnknownRevocationStatus,
            E::Other(rustls::OtherError(std::sync::Arc::new(
                std::io::Error::other("CaUsedAsEndEntity"),
            ))),
        ] {
            let reason = Distrust::explain(&error, std::slice::from_ref(&leaf), now);
            let says = reason.says();
            assert!(is_plain(&says), "{says}");
            assert!(!reason.remedy().is_empty());
        }
    }
}
