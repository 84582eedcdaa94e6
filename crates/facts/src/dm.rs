//! Derives the kind of a device-mapper device from its UUID. By a convention of libdevmapper, the prefix identifies the
//! program that created the device.

/// Describes the kind of a device without the part that is unique for each device, such as `LVM` or `dm-crypt, LUKS2`.
pub(crate) fn describe(uuid: &str) -> String {
    let owner = kind(uuid);
    match (owner, uuid.split('-').nth(1)) {
        ("crypt", Some(format @ ("LUKS1" | "LUKS2" | "PLAIN" | "BITLK" | "TCRYPT"))) => {
            format!("dm-crypt, {format}")
        }
        ("lvm", _) => "LVM".to_owned(),
        ("crypt", _) => "dm-crypt".to_owned(),
        ("multipath", _) => "multipath".to_owned(),
        _ => "device mapper".to_owned(),
    }
}

/// Returns which program created a device, according to its UUID: `lvm`, `crypt`, `multipath`, `partition` or `other`.
#[must_use]
pub fn kind(uuid: &str) -> &'static str {
    let owner = uuid.split('-').next().unwrap_or_default();
    match owner {
        "LVM" => "lvm",
        "CRYPT" => "crypt",
        "mpath" => "multipath",
        _ if owner.starts_with("part") => "partition",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuid_prefixes() {
        assert_eq!(
            describe("CRYPT-LUKS2-0123456789abcdef-home"),
            "dm-crypt, LUKS2"
        );
        assert_eq!(describe("LVM-abcdef"), "LVM");
        assert_eq!(describe("mpath-36001"), "multipath");
        assert_eq!(describe("part1-mpath-36001"), "device mapper");
        assert_eq!(kind("part1-mpath-36001"), "partition");
        assert_eq!(describe(""), "device mapper");
    }
}
