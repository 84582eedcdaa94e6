//! Lists the TLS versions, and the suites and groups of each version.

use serde::Serialize;
use tls_parser::{TlsCipherKx, TlsCipherMac, TlsCipherSuite};

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
pub enum Version {
    /// SSL 3.0 (RFC 6101).
    #[serde(rename = "SSLv3")]
    Ssl3,
    /// TLS 1.0 (RFC 2246).
    #[serde(rename = "TLS 1.0")]
    Tls10,
    /// TLS 1.1 (RFC 4346).
    #[serde(rename = "TLS 1.1")]
    Tls11,
    /// TLS 1.2 (RFC 5246).
    #[serde(rename = "TLS 1.2")]
    Tls12,
    /// TLS 1.3 (RFC 8446).
    #[serde(rename = "TLS 1.3")]
    Tls13,
}

impl Version {
    /// All versions, the newest first.
    pub const ALL: [Self; 5] = [
        Self::Tls13,
        Self::Tls12,
        Self::Tls11,
        Self::Tls10,
        Self::Ssl3,
    ];

    /// Returns the name of the version, such as `TLS 1.2`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ssl3 => "SSLv3",
            Self::Tls10 => "TLS 1.0",
            Self::Tls11 => "TLS 1.1",
            Self::Tls12 => "TLS 1.2",
            Self::Tls13 => "TLS 1.3",
        }
    }

    /// Returns the version number on the wire.
    #[must_use]
    pub fn number(self) -> u16 {
        match self {
            Self::Ssl3 => 0x0300,
            Self::Tls10 => 0x0301,
            Self::Tls11 => 0x0302,
            Self::Tls12 => 0x0303,
            Self::Tls13 => 0x0304,
        }
    }

    /// Returns the suites that a server can choose in this version.
    #[must_use]
    pub fn suites(self) -> Vec<u16> {
        if self == Self::Tls13 {
            // TLS_AES_128_GCM, _256_GCM, CHACHA20, AES_128_CCM, AES_128_CCM_8 (RFC 8446 B.4), then the
            // Chinese SM4 (RFC 8998) and AEGIS.
            return vec![
                0x1302, 0x1303, 0x1301, 0x1304, 0x1305, 0x00c6, 0x00c7, 0x1306, 0x1307,
            ];
        }
        let registered = (0..=u16::MAX).filter(|id| {
            let Some(suite) = TlsCipherSuite::from_id(*id) else {
                return false;
            };
            let needs_12 = matches!(
                suite.mac,
                TlsCipherMac::Aead | TlsCipherMac::HmacSha256 | TlsCipherMac::HmacSha384
            );
            suite.kx != TlsCipherKx::Tls13
                && !suite.name.ends_with("_SCSV")
                && !matches!(id, 0 | 0x00c6 | 0x00c7 | 0x1300..=0x13ff)
                && (self == Self::Tls12 || !needs_12)
        });
        let unregistered = UNREGISTERED.iter().filter(|(id, _)| {
            let needs_12 = (0xcc13..=0xcc15).contains(id);
            self == Self::Tls12 || !needs_12
        });
        let mut all: Vec<u16> = unregistered.map(|(id, _)| *id).chain(registered).collect();
        // Suites with forward secrecy and AEAD come first, as in a modern client, so that the server's choice
        // is the choice for most clients. Within a family, higher numbers are newer.
        all.sort_by_key(|id| {
            let name = suite_name(*id);
            let exchange = match name.starts_with("TLS_ECDHE") {
                true => 0,
                false if name.starts_with("TLS_DHE") => 1,
                false => 2,
            };
            let aead = name.contains("GCM") || name.contains("POLY1305") || name.contains("CCM");
            (exchange, !aead, !name.contains("256"))
        });
        all
    }
}

/// Suites that were used but never registered: the 56-bit export suites of
/// draft-ietf-tls-56-bit-ciphersuites-01 and ChaCha20 of draft-agl-tls-chacha20poly1305-04.
const UNREGISTERED: [(u16, &str); 10] = [
    (0x0060, "TLS_RSA_EXPORT1024_WITH_RC4_56_MD5"),
    (0x0061, "TLS_RSA_EXPORT1024_WITH_RC2_CBC_56_MD5"),
    (0x0062, "TLS_RSA_EXPORT1024_WITH_DES_CBC_SHA"),
    (0x0063, "TLS_DHE_DSS_EXPORT1024_WITH_DES_CBC_SHA"),
    (0x0064, "TLS_RSA_EXPORT1024_WITH_RC4_56_SHA"),
    (0x0065, "TLS_DHE_DSS_EXPORT1024_WITH_RC4_56_SHA"),
    (0x0066, "TLS_DHE_DSS_WITH_RC4_128_SHA"),
    (0xcc13, "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_OLD"),
    (0xcc14, "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_OLD"),
    (0xcc15, "TLS_DHE_RSA_WITH_CHACHA20_POLY1305_OLD"),
];

/// Returns the IANA name of a suite.
#[must_use]
pub fn suite_name(id: u16) -> String {
    let registered = TlsCipherSuite::from_id(id).map(|suite| suite.name);
    let other = || UNREGISTERED.iter().find(|known| known.0 == id);
    match registered.or_else(|| Some(other()?.1)) {
        Some(name) => name.to_owned(),
        None => format!("0x{id:04x}"),
    }
}

/// Groups for key exchange, each with its number, its name, and its security in bits (half the curve size). Sources:
/// RFC 8422 section 5.1.1, RFC 7919, RFC 8734, draft-ietf-tls-ecdhe-mlkem.
const GROUPS: [(u16, &str, u16); 45] = [
    (0x11ec, "X25519MLKEM768", 128),
    (0x11eb, "SecP256r1MLKEM768", 128),
    (0x11ed, "SecP384r1MLKEM1024", 192),
    (0x6399, "X25519Kyber768Draft00", 128),
    (0x0200, "MLKEM512", 128),
    (0x0201, "MLKEM768", 192),
    (0x0202, "MLKEM1024", 256),
    (29, "x25519", 128),
    (23, "secp256r1", 128),
    (30, "x448", 224),
    (24, "secp384r1", 192),
    (25, "secp521r1", 260),
    (31, "brainpoolP256r1tls13", 128),
    (32, "brainpoolP384r1tls13", 192),
    (33, "brainpoolP512r1tls13", 256),
    (26, "brainpoolP256r1", 128),
    (27, "brainpoolP384r1", 192),
    (28, "brainpoolP512r1", 256),
    (22, "secp256k1", 128),
    (256, "ffdhe2048", 103),
    (257, "ffdhe3072", 125),
    (258, "ffdhe4096", 150),
    (259, "ffdhe6144", 175),
    (260, "ffdhe8192", 192),
    (1, "sect163k1", 81),
    (2, "sect163r1", 81),
    (3, "sect163r2", 81),
    (4, "sect193r1", 96),
    (5, "sect193r2", 96),
    (6, "sect233k1", 116),
    (7, "sect233r1", 116),
    (8, "sect239k1", 119),
    (9, "sect283k1", 141),
    (10, "sect283r1", 141),
    (11, "sect409k1", 204),
    (12, "sect409r1", 204),
    (13, "sect571k1", 285),
    (14, "sect571r1", 285),
    (15, "secp160k1", 80),
    (16, "secp160r1", 80),
    (17, "secp160r2", 80),
    (18, "secp192k1", 96),
    (19, "secp192r1", 96),
    (20, "secp224k1", 112),
    (21, "secp224r1", 112),
];

/// Returns the IANA name of a group.
#[must_use]
pub fn group_name(id: u16) -> String {
    let known = GROUPS.iter().find(|known| known.0 == id);
    known.map_or_else(|| format!("0x{id:04x}"), |known| known.1.to_owned())
}

/// Returns the security of a group in bits; `None` if unknown.
#[must_use]
pub fn group_bits(id: u16) -> Option<u16> {
    Some(GROUPS.iter().find(|known| known.0 == id)?.2)
}

/// Returns the groups that a server can choose in a version.
#[must_use]
pub fn groups(version: Version) -> Vec<u16> {
    let all = GROUPS.iter().map(|known| known.0);
    all.filter(|id| match version {
        Version::Tls13 => !matches!(id, 1..=22 | 26..=28),
        // Hybrids and the new Brainpool numbers are only for TLS 1.3. Finite-field groups are omitted, because
        // a server sends the prime itself: see `Exchange`.
        _ => (1..=30).contains(id),
    })
    .collect()
}
