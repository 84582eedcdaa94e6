//! Judges the results of the TLS probe. Each remark contains its primary source.

use super::chain::{Disorder, find_disorder};
use super::distrust::{Distrust, is_old};
use super::enumerate::{VersionResult, VersionState};
use super::renegotiate::Renegotiation;
use super::version::{Version, group_bits};
use super::{Chain, Report};
use crate::certificate::Certificate;
use crate::heartbleed::Heartbeats;
use crate::remark::Severity::{Danger, Note, Weak};
use crate::remark::{Remark, ranked};
use jiff::{SignedDuration, Timestamp};

/// Remaining validity below which a certificate gets a warning. Automatic renewal happens when a third of the lifetime
/// is left, and the shortest common lifetime is 90 days. So the renewal of a certificate with less than 14 days has
/// failed.
const SOON: SignedDuration = SignedDuration::from_hours(14 * 24);

/// Returns all remarks of a report, the worst first.
pub(super) fn judge(
    report: &Report,
    found: &[VersionResult],
    host: &str,
    now: Timestamp,
) -> Vec<Remark> {
    let mut out = Vec::new();
    if report.heartbeats == Heartbeats::Vulnerable {
        out.push(heartbleed());
    }
    versions(report, &mut out);
    if report.renegotiation == Renegotiation::Accepted {
        out.push(renegotiation());
    }
    suites(report, &mut out);
    agreement(report, found, &mut out);
    for chain in &report.chains {
        certificates(chain, host, now, &mut out);
    }
    ranked(out)
}

/// Returns the remark on Heartbleed, for TLS and DTLS.
pub(crate) fn heartbleed() -> Remark {
    Remark::new(
        "heartbleed",
        Danger,
        "the server gives back a heartbeat that has no padding, as OpenSSL 1.0.1 to 1.0.1f does: \
         anybody can read its memory, 64 KiB at a time, keys and passwords included (tested without \
         receiving any of it)",
        "CVE-2014-0160; RFC 6520 section 4",
        "update OpenSSL where it is linked, restart the service, then renew keys, certificates, passwords",
    )
}

/// Returns the remark on client-initiated renegotiation.
fn renegotiation() -> Remark {
    Remark::new(
        "tls-client-renegotiation",
        Weak,
        "a client may renegotiate as often as it likes: each time costs the server a key exchange and the client \
         next to nothing, so a few clients can use up its processors",
        "CVE-2011-1473; RFC 9325 section 3.5",
        "remove SSL_OP_ALLOW_CLIENT_RENEGOTIATION (OpenSSL 3 refuses by itself), or speak TLS 1.3 alone",
    )
}

fn versions(report: &Report, out: &mut Vec<Remark>) {
    let state = |wanted: Version| {
        let found = report.versions.iter().find(|one| one.version == wanted);
        found.map_or(VersionState::Unknown, |one| one.state)
    };
    if state(Version::Ssl3) == VersionState::Offered {
        out.push(Remark::new(
            "tls-ssl3",
            Danger,
            "SSLv3 is spoken: an attacker on the path can decrypt it (POODLE)",
            "RFC 7568",
            "switch SSLv3 off",
        ));
    }
    let old: Vec<&str> = [Version::Tls10, Version::Tls11]
        .into_iter()
        .filter(|version| state(*version) == VersionState::Offered)
        .map(Version::name)
        .collect();
    if !old.is_empty() {
        out.push(Remark::new(
            "tls-old-version",
            Weak,
            format!(
                "{} spoken: deprecated since 2021, handshakes rest on SHA-1 and MD5",
                are(&old)
            ),
            "RFC 8996 sections 3 to 5",
            "allow TLS 1.2 and 1.3 only",
        ));
    }
    if state(Version::Tls12) == VersionState::Refused
        && state(Version::Tls13) == VersionState::Refused
    {
        out.push(Remark::new(
            "tls-no-current-version",
            Danger,
            "neither TLS 1.2 nor TLS 1.3 is spoken",
            "RFC 9325 section 3.1.1",
            "update the service or put a proxy before it",
        ));
    } else if state(Version::Tls13) == VersionState::Refused {
        out.push(Remark::new(
            "tls-no-13",
            Note,
            "TLS 1.3 is not spoken: it should be, and preferred",
            "RFC 9325 section 3.1.1",
            "switch it on, or update the library of TLS",
        ));
    }
    for version in &report.versions {
        if version.compression {
            out.push(Remark::new(
                "tls-compression",
                Danger,
                format!(
                    "{} compresses: secrets can be guessed from sizes (CRIME)",
                    version.version.name()
                ),
                "RFC 9325 section 3.3; CVE-2012-4929",
                "switch compression of TLS off",
            ));
        }
    }
    let insecure: Vec<&str> = report
        .versions
        .iter()
        .filter(|version| version.secure_renegotiation == Some(false))
        .map(|version| version.version.name())
        .collect();
    if !insecure.is_empty() {
        out.push(Remark::new(
            "tls-renegotiation",
            Weak,
            format!(
                "renegotiation is not protected in {}: others may put requests before a user's",
                insecure.join(", ")
            ),
            "RFC 5746; RFC 9325 section 3.5",
            "update the library of TLS",
        ));
    }
}

/// A family of suites that servers should not accept any more.
struct Family {
    id: &'static str,
    severity: crate::remark::Severity,
    has: fn(&str) -> bool,
    says: &'static str,
    source: &'static str,
    remedy: &'static str,
}

/// Families of outdated suites. A suite that belongs to several families is reported only for the first family.
const FAMILIES: [Family; 9] = [
    Family {
        id: "tls-null",
        severity: Danger,
        has: |name| {
            name.contains("_WITH_NULL")
                || name == "TLS_SHA256_SHA256"
                || name == "TLS_SHA384_SHA384"
        },
        says: "without any encryption",
        source: "RFC 9325 section 4.1",
        remedy: "remove NULL (eNULL) from the list of ciphers",
    },
    Family {
        id: "tls-anonymous",
        severity: Danger,
        has: |name| name.contains("_anon_"),
        says: "without a certificate: anybody on the way can be the server",
        source: "RFC 5246 appendix F.1.1.1",
        remedy: "add !aNULL to the list of ciphers",
    },
    Family {
        id: "tls-export",
        severity: Danger,
        has: |name| name.contains("EXPORT"),
        says: "weakened for export to 40 or 56 bits (FREAK, Logjam)",
        source: "RFC 9325 section 4.1; CVE-2015-0204; CVE-2015-4000",
        remedy: "add !EXPORT to the list of ciphers",
    },
    Family {
        id: "tls-rc4",
        severity: Danger,
        has: |name| name.contains("_RC4_"),
        says: "with RC4, whose output tells about the text",
        source: "RFC 7465",
        remedy: "add !RC4 to the list of ciphers",
    },
    Family {
        id: "tls-des",
        severity: Danger,
        has: |name| name.contains("_DES_") || name.contains("_DES40_") || name.contains("_RC2_"),
        says: "with DES or RC2: 56 bits or fewer are tried out",
        source: "RFC 8996 section 1.1; RFC 9325 section 4.1",
        remedy: "remove DES (LOW) from the list of ciphers",
    },
    Family {
        id: "tls-3des",
        severity: Weak,
        has: |name| name.contains("_3DES_") || name.contains("_IDEA_"),
        says: "with blocks of 64 bits, which repeat after some 32 GiB (Sweet32)",
        source: "RFC 9325 section 4.1; RFC 8996 section 1.1 (IDEA); CVE-2016-2183",
        remedy: "add !3DES:!IDEA to the list of ciphers",
    },
    Family {
        id: "tls-md5",
        severity: Weak,
        has: |name| name.ends_with("_MD5"),
        says: "with MD5",
        source: "RFC 6151",
        remedy: "add !MD5 to the list of ciphers",
    },
    Family {
        id: "tls-static-key",
        severity: Weak,
        has: |name| {
            name.starts_with("TLS_RSA_WITH")
                || name.starts_with("TLS_DH_")
                || name.starts_with("TLS_ECDH_")
        },
        says: "without forward secrecy: who records today and has the key later reads it all",
        source: "RFC 10015 sections 2 and 4; RFC 9325 section 4.1",
        remedy: "add !kRSA to the list of ciphers, or keep to those with ECDHE",
    },
    Family {
        id: "tls-dhe",
        severity: Weak,
        has: |name| name.starts_with("TLS_DHE_"),
        says: "with Diffie-Hellman over a finite field, which TLS 1.2 must no longer use",
        source: "RFC 10015 section 3",
        remedy: "add !DHE to the list of ciphers: clients of the last ten years have ECDHE",
    },
];

fn suites(report: &Report, out: &mut Vec<Remark>) {
    let mut names: Vec<&str> = Vec::new();
    for version in &report.versions {
        for name in &version.suites {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
    }
    for family in &FAMILIES {
        let (hit, rest): (Vec<&str>, Vec<&str>) =
            names.into_iter().partition(|name| (family.has)(name));
        names = rest;
        if let [first, ..] = hit[..] {
            let suites = match hit.len() {
                1 => format!("{first} is taken"),
                count => format!("{first} and {} more are taken", count - 1),
            };
            out.push(Remark::new(
                family.id,
                family.severity,
                format!("{suites}: {}", family.says),
                family.source,
                family.remedy,
            ));
        }
    }
}

fn agreement(report: &Report, found: &[VersionResult], out: &mut Vec<Remark>) {
    let smallest = report
        .versions
        .iter()
        .filter_map(|one| one.prime_bits)
        .min();
    if let Some(bits) = smallest.filter(|bits| *bits < 2048) {
        out.push(Remark::new(
            "tls-small-prime",
            if bits <= 1024 { Danger } else { Weak },
            format!("Diffie-Hellman with a prime of {bits} bits (Logjam)"),
            "RFC 9325 section 4.5; CVE-2015-4000",
            "remove DHE from the list of ciphers, or make parameters of 2,048 bits at least",
        ));
    }
    let mut weak: Vec<String> = found
        .iter()
        .flat_map(|one| &one.groups)
        .filter(|group| group_bits(**group).is_some_and(|bits| bits < 112))
        // A strict calculation gives ffdhe2048 103 bits of security, but RFC 9325 allows 2,048 bits.
        .filter(|group| **group != 256)
        .map(|group| super::group_name(*group))
        .collect();
    weak.sort();
    weak.dedup();
    if !weak.is_empty() {
        out.push(Remark::new(
            "tls-small-curve",
            Weak,
            format!("keys are agreed on with small curves: {}", weak.join(", ")),
            "RFC 9325 section 4.5; RFC 8422 section 5.1.1",
            "allow x25519, secp256r1 and larger ones only",
        ));
    }
}

fn certificates(chain: &Chain, host: &str, now: Timestamp, out: &mut Vec<Remark>) {
    let Some(leaf) = chain.certificates.first() else {
        return;
    };
    dates(leaf, now, out);
    if !leaf.is_for(host) {
        let names = match leaf.names.is_empty() {
            _ if leaf.has_address_as_name(host) => {
                "the address stands there as a DNS name, which clients do not take for an address"
                    .to_owned()
            }
            true => "none in subjectAltName; the common name does not count".to_owned(),
            false => shortened(&leaf.names),
        };
        out.push(Remark::new(
            "tls-name",
            Danger,
            format!("the certificate is not for {host}, its names: {names}"),
            "RFC 9525 section 6",
            "get a certificate that has the name (or name the host as clients do)",
        ));
    }
    trust(chain, leaf, now, out);
    order(chain, out);
    staple(chain, leaf, out);
    lifetime(leaf, out);
    for (at, certificate) in chain.certificates.iter().enumerate() {
        strength(at, certificate, out);
    }
}

fn trust(chain: &Chain, leaf: &Certificate, now: Timestamp, out: &mut Vec<Remark>) {
    let Some(reason) = &chain.distrust else {
        return;
    };
    if now < leaf.not_before || leaf.not_after < now {
        return;
    }
    let sent = match chain.certificates.len() {
        1 => "the certificate".to_owned(),
        count => format!("the chain of {count} certificates"),
    };
    let source = match reason {
        Distrust::NotForServers => "RFC 5280 section 4.2.1.12",
        Distrust::Authority => "RFC 5280 section 4.2.1.9",
        _ => "RFC 5280 section 6",
    };
    out.push(Remark::new(
        "tls-untrusted",
        Weak,
        format!(
            "clients that trust what this machine trusts refuse {sent}: {}",
            reason.says()
        ),
        source,
        reason.remedy(),
    ));
}

fn order(chain: &Chain, out: &mut Vec<Remark>) {
    let (id, severity, says, remedy) = match find_disorder(&chain.certificates) {
        None => return,
        Some(Disorder::WrongOrder(names)) => (
            "tls-chain-order",
            Weak,
            format!(
                "the certificates are sent in the wrong order, and clients that do not sort them refuse the chain; \
                 right is: {}",
                names.join("; ")
            ),
            "put the server's own certificate first, then each one that signs the one before",
        ),
        Some(Disorder::AuthorityFirst(name)) => (
            "tls-chain-order",
            Weak,
            format!("the first certificate is an authority's, `{name}`, and not the server's own"),
            "put the server's own certificate first, then each one that signs the one before",
        ),
        Some(Disorder::Stray(names)) => (
            "tls-chain-stray",
            Note,
            format!(
                "certificates are sent that sign nothing in the chain: {}",
                shortened(&names)
            ),
            "remove them from the file of certificates",
        ),
    };
    let source = "RFC 5246 section 7.4.2; RFC 8446 section 4.4.2";
    out.push(Remark::new(id, severity, says, source, remedy));
}

fn staple(chain: &Chain, leaf: &Certificate, out: &mut Vec<Remark>) {
    if leaf.must_staple && chain.stapled == Some(false) {
        out.push(Remark::new(
            "tls-must-staple",
            Danger,
            "the certificate wants an OCSP response in every handshake (must-staple), and the server sends none: \
             clients that honour it, such as Firefox, refuse the server",
            "RFC 7633 section 4.2.3",
            "switch stapling on (nginx: ssl_stapling on; Apache: SSLUseStapling on), or get a certificate without \
             must-staple",
        ));
    }
}

/// Maximum lifetime in days of a server certificate that Apple's systems accept (support.apple.com/103769).
const APPLE_DAYS: i64 = 825;
/// Maximum lifetime in days of a certificate from a public authority, each with the day of issue from which the limit
/// applies (CA/Browser Forum, ballots SC-31 and SC-081v3). The newest limit is first.
const PUBLIC_DAYS: [(&str, i64); 4] = [
    ("2029-03-15", 47),
    ("2027-03-15", 100),
    ("2026-03-15", 200),
    ("", 398),
];

/// Returns the maximum lifetime for a certificate of a public authority that was issued on this day (such as
/// `2026-03-15`). The result consists of the day from which the limit applies, and the limit in days. Without a day of
/// issue, returns the oldest limit.
fn find_longest_lifetime(issued: Option<&str>) -> (&'static str, i64) {
    let [.., oldest] = PUBLIC_DAYS;
    let holds = |(since, _): &(&str, i64)| issued.is_some_and(|issued| issued >= *since);
    PUBLIC_DAYS.into_iter().find(holds).unwrap_or(oldest)
}

/// Judges the lifetime of a certificate. The limits since 2026 apply only to public authorities, whose certificates are
/// in transparency logs. Other certificates are judged by the oldest limit.
fn lifetime(leaf: &Certificate, out: &mut Vec<Remark>) {
    let hours = leaf.not_after.duration_since(leaf.not_before).as_hours();
    // The validity includes the last second. Rounding up counts a day less an hour as a day.
    let days = (hours + 1) / 24;
    let issued = leaf.not_before.strftime("%Y-%m-%d").to_string();
    let (since, most) = find_longest_lifetime(leaf.is_logged.then_some(&issued));
    let since = match since {
        "" => String::new(),
        since => format!(" from {since} on"),
    };
    let (severity, says) = match days {
        days if days > APPLE_DAYS => (
            Weak,
            format!(
                "the certificate is valid for {days} days: Apple's systems refuse more than {APPLE_DAYS}, and a stolen \
                 key stays useful as long"
            ),
        ),
        days if days > most => (
            Note,
            format!(
                "the certificate is valid for {days} days: a public authority may sign {most} at most{since}, and a \
                 stolen key stays useful as long"
            ),
        ),
        _ => return,
    };
    out.push(Remark::new(
        "tls-long-validity",
        severity,
        says,
        "CA/Browser Forum Baseline Requirements section 6.3.2; Apple, support.apple.com/103769",
        "get certificates for 90 days or less, and renew them automatically (ACME)",
    ));
}

fn dates(leaf: &Certificate, now: Timestamp, out: &mut Vec<Remark>) {
    let day = |time: Timestamp| time.strftime("%Y-%m-%d").to_string();
    if now > leaf.not_after {
        out.push(Remark::new(
            "tls-expired",
            Danger,
            format!("the certificate expired on {}", day(leaf.not_after)),
            "RFC 5280 section 4.1.2.5",
            "renew it, and find out why nobody did",
        ));
    } else if now < leaf.not_before {
        out.push(Remark::new(
            "tls-not-yet",
            Danger,
            format!(
                "the certificate is valid only from {}",
                day(leaf.not_before)
            ),
            "RFC 5280 section 4.1.2.5",
            "look at the clocks of the server and of this machine",
        ));
    } else if leaf.not_after.duration_since(now) < SOON
        // A certificate with a lifetime of a week is renewed in its last days.
        && leaf.not_after.duration_since(leaf.not_before) > SOON * 2
    {
        out.push(Remark::new(
            "tls-expires",
            Weak,
            format!("the certificate expires on {}", day(leaf.not_after)),
            "RFC 5280 section 4.1.2.5",
            "renew it; when that is automatic, look why it has not happened yet",
        ));
    }
}

fn strength(at: usize, certificate: &Certificate, out: &mut Vec<Remark>) {
    let which = match at {
        0 => "the certificate".to_owned(),
        _ => format!("the intermediate certificate {}", certificate.subject),
    };
    if let Some(bits) = certificate.key_bits.filter(|bits| *bits < 2048) {
        out.push(Remark::new(
            "tls-small-key",
            if bits <= 1024 { Danger } else { Weak },
            format!("{which} has a key of {bits} bits"),
            "RFC 9325 section 4.5",
            "make a new key of 2,048 bits or on P-256, and a certificate for it",
        ));
    }
    if ["EC secp192r1", "EC secp224r1"].contains(&&*certificate.key) {
        out.push(Remark::new(
            "tls-small-key",
            Weak,
            format!("{which} has a key on a small curve ({})", certificate.key),
            "RFC 9325 section 4.5; RFC 8422 section 5.1.1",
            "make a new key on P-256, and a certificate for it",
        ));
    }
    // No client verifies the signature of a self-signed certificate.
    if !certificate.self_signed && is_old(&certificate.signature) {
        out.push(Remark::new(
            "tls-signature",
            Danger,
            format!(
                "{which} is signed by {}: collisions are computed",
                certificate.signature
            ),
            "RFC 9325 section 4.5; RFC 9155",
            "get a certificate that is signed with SHA-256",
        ));
    }
}

fn are(names: &[&str]) -> String {
    match names {
        [one] => format!("{one} is"),
        _ => format!("{} are", names.join(" and ")),
    }
}

fn shortened(names: &[String]) -> String {
    let some: Vec<&str> = names.iter().take(4).map(String::as_str).collect();
    match names.len() - some.len() {
        0 => some.join(", "),
        more => format!("{} and {more} more", some.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_lifetime_depends_on_the_day_of_issue() {
        for (issued, most) in [
            (Some("2021-05-01"), 398),
            (Some("2026-03-14"), 398),
            (Some("2026-03-15"), 200),
            (Some("2027-03-14"), 200),
            (Some("2027-03-15"), 100),
            (Some("2029-03-15"), 47),
            (Some("2031-01-01"), 47),
            (None, 398),
        ] {
            assert_eq!(find_longest_lifetime(issued).1, most, "{issued:?}");
        }
    }
}
