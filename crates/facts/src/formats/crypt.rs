//! Parses settings of dm-crypt and LUKS from `dmsetup table` (dm-crypt.rst of the kernel), `cryptsetup status` and
//! `cryptsetup luksDump`. Keys, salts and digests are dropped.

use std::collections::BTreeMap;

/// Settings of an encrypted device by name, such as the cipher.
pub type CryptSettings = BTreeMap<&'static str, String>;

/// Parses the parameters of a `crypt` target: `CIPHER KEY IV-OFFSET DEVICE OFFSET [#OPTIONS OPTION…]`. Of the key, only
/// the length is read.
#[must_use]
pub fn table(parameters: &[&str]) -> CryptSettings {
    let mut found = CryptSettings::new();
    let [cipher, key, _iv, _device, offset, rest @ ..] = parameters else {
        return found;
    };
    found.insert("cipher", (*cipher).to_owned());
    if let Some(bits) = key_bits(key) {
        found.insert("key_size", bits.to_string());
    }
    if let Ok(sectors) = offset.parse::<u64>() {
        found.insert("data_offset", sectors.saturating_mul(512).to_string());
    }
    let mut flags = Vec::new();
    for option in rest.iter().skip(1) {
        match option.split_once(':') {
            Some(("sector_size", size)) => drop(found.insert("sector_size", size.to_owned())),
            Some(("integrity", rest)) => {
                let kind = rest.split_once(':').map_or(rest, |(_, kind)| kind);
                found.insert("integrity", kind.to_owned());
            }
            _ => flags.push(*option),
        }
    }
    found
        .entry("sector_size")
        .or_insert_with(|| "512".to_owned());
    if !flags.is_empty() {
        found.insert("flags", flags.join(" "));
    }
    found
}

/// Returns the length of a key in bits. `key` is hexadecimal, or `:BYTES:TYPE:NAME` for a key in the kernel's keyring.
fn key_bits(key: &str) -> Option<u64> {
    match key.strip_prefix(':') {
        Some(rest) => rest.split(':').next()?.parse::<u64>().ok()?.checked_mul(8),
        None if key == "-" => Some(0),
        None => (key.len() as u64).checked_mul(4),
    }
}

/// Returns the format in the output of `cryptsetup status NAME`, such as `LUKS2`, `LUKS1` or `PLAIN`.
#[must_use]
pub fn kind(status: &str) -> Option<&str> {
    status.lines().find_map(|line| {
        let (name, value) = line.trim().split_once(':')?;
        (name == "type").then(|| value.trim())
    })
}

/// Returns the key derivation function (`pbkdf`) of each used key slot, from the output of `cryptsetup luksDump
/// DEVICE`. Key derivation costs time only when the device is opened, not for reads or writes.
#[must_use]
pub fn pbkdf(dump: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in dump.lines() {
        if let Some(name) = line.trim().strip_prefix("PBKDF:") {
            found.push(name.trim().to_owned());
        } else if line.starts_with("Key Slot") && line.trim_end().ends_with("ENABLED") {
            found.push("pbkdf2".to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parameters_of_the_target() {
        let line = "aes-xts-plain64 :64:logon:cryptsetup:aa-bb-d0 0 254:16 32768 3 \
            allow_discards no_read_workqueue sector_size:4096";
        let words: Vec<&str> = line.split_whitespace().collect();
        let found = table(&words);
        assert_eq!(found["key_size"], "512");
        assert_eq!(found["sector_size"], "4096");
        assert_eq!(found["flags"], "allow_discards no_read_workqueue");
        assert!(!format!("{found:?}").contains("aa-bb"));
        assert!(table(&["aes"]).is_empty());
    }

    proptest! {
        #[test]
        fn never_panics(text in ".{0,80}") {
            let words: Vec<&str> = text.split(' ').collect();
            let _ = table(&words);
            let _ = (kind(&text), pbkdf(&text));
        }
    }
}
