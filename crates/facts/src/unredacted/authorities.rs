//! Checks whether sshd accepts a certificate authority for hosts also as an authority for users. Compares the keys of
//! TrustedUserCAKeys with the `@cert-authority` lines of the global known hosts, and with the authority that signed the
//! host's certificates. The keys are not reported.

use crate::collectors::services::ssh::SERVER;
use crate::gather::Gather;
use assay_config::effective::files::OfHost;
use assay_config::effective::{Program, read_effective};
use assay_model::{FactKind, FactPlace};
use base64::Engine as _;
use std::path::Path;

/// Known hosts files for all users (ssh_config(5), GlobalKnownHostsFile).
const KNOWN_HOSTS: [&str; 2] = ["/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"];

pub(super) fn collect(g: &mut Gather<'_>) {
    let host = g.host;
    let Ok(all) = read_effective(Program::Sshd, Path::new(SERVER), &OfHost(host)) else {
        return;
    };
    let said = |key: &'static str| {
        let settings = all.settings().iter();
        settings.filter(move |said| said.key == key)
    };
    let read = |path: &str| host.read_text(Path::new(path)).ok();
    let mut of_hosts: Vec<Vec<u8>> = Vec::new();
    for path in KNOWN_HOSTS {
        let text = read(path).unwrap_or_default();
        let lines = text
            .lines()
            .filter(|line| line.trim_start().starts_with("@cert-authority"));
        of_hosts.extend(lines.filter_map(find_key));
    }
    for said in said("hostcertificate") {
        let text = said.word().and_then(|path| read(&path));
        let certificate = text.as_deref().and_then(find_key);
        of_hosts.extend(certificate.as_deref().and_then(find_signer));
    }
    for (number, said) in said("trustedusercakeys").enumerate() {
        let Some(text) = said.word().and_then(|path| read(&path)) else {
            continue;
        };
        let lines = text.lines().map(str::trim);
        let lines: Vec<&str> = lines
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .collect();
        let marked = |line: &&&str| line.trim_start_matches('@').starts_with("cert-authority");
        let keys: Vec<Vec<u8>> = lines.iter().filter_map(|line| find_key(line)).collect();
        let both = keys.iter().filter(|key| of_hosts.contains(key)).count();
        let which = number.to_string();
        let place = FactPlace::from(&said.place);
        let mut note = |what: &str, value: usize| {
            let fact = format!("sshd.user_authority.{which}.{what}");
            g.facts
                .known(fact, value, FactKind::Configured, place.clone());
        };
        note("keys", keys.len());
        note("marked", lines.iter().filter(marked).count());
        note("of_hosts", both);
        g.about(["sshd.user_authority", &which]);
    }
}

/// Decodes the first word of a line that is a key or certificate.
fn find_key(line: &str) -> Option<Vec<u8>> {
    let engine = base64::engine::general_purpose::STANDARD;
    line.split_whitespace().find_map(|word| {
        let bytes = engine.decode(word).ok()?;
        let mut rest = &bytes[..];
        let name = read_string(&mut rest)?;
        let known =
            name.starts_with(b"ssh-") || name.starts_with(b"ecdsa-") || name.starts_with(b"sk-");
        known.then_some(bytes)
    })
}

/// Returns the public key of the authority that signed a certificate (PROTOCOL.certkeys of OpenSSH).
fn find_signer(certificate: &[u8]) -> Option<Vec<u8>> {
    let mut rest = certificate;
    let kind = read_string(&mut rest)?;
    // Fields of the signed key.
    let parts = match kind.split(|byte| *byte == b'@').next()? {
        b"ssh-ed25519-cert-v01" => 1,
        b"ssh-rsa-cert-v01" => 2,
        b"ssh-dss-cert-v01" => 4,
        b"sk-ssh-ed25519-cert-v01" => 2,
        b"sk-ecdsa-sha2-nistp256-cert-v01" => 3,
        name if name.starts_with(b"ecdsa-sha2-") && name.ends_with(b"-cert-v01") => 2,
        _ => return None,
    };
    // A nonce precedes the fields.
    for _ in 0..=parts {
        read_string(&mut rest)?;
    }
    // Serial number and type.
    rest = rest.get(8 + 4..)?;
    // Key id and principals.
    read_string(&mut rest)?;
    read_string(&mut rest)?;
    // Start and end of validity.
    rest = rest.get(8 + 8..)?;
    // Critical options, extensions, and a reserved field.
    for _ in 0..3 {
        read_string(&mut rest)?;
    }
    read_string(&mut rest).map(<[u8]>::to_vec)
}

/// Reads a string in SSH's wire format (RFC 4251, section 5): its length, then its bytes.
fn read_string<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let (text, after) = after.split_at_checked(length)?;
    *rest = after;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_of_any_kind_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = find_signer(&bytes);
            let engine = base64::engine::general_purpose::STANDARD;
            let _ = find_key(&engine.encode(&bytes));
        }
    }
}
