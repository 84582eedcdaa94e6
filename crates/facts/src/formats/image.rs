//! Parses the first bytes of a disk image: the format, and the header of qcow2 (docs/interop/qcow2.txt of QEMU 7.2).

use std::collections::BTreeMap;

/// Number of bytes from the start of a file that suffice to parse a [`Header`]. The name of the backing file may be
/// stored after these bytes; [`Header::backing_at`] is its position.
pub const HEADER: usize = 4096;

/// Parsed header of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Format: `qcow2`, `vmdk`, `vdi`, `vhdx`, `vpc`, `luks` or `qed`; `raw` if the format is unknown.
    pub format: &'static str,
    /// Settings of qcow2: `cluster_size`, `extended_l2`, `lazy_refcounts`, `compression_type`,
    /// `compat`, `encryption`, `data_file`, `size`. Sizes are in bytes.
    pub settings: BTreeMap<&'static str, String>,
    /// Position of the name of the backing file: offset and length in bytes.
    pub backing_at: Option<(u64, usize)>,
}

/// Maximum length of the name of a backing file in bytes (qcow2.txt).
const LONGEST_NAME: u32 = 1023;

/// Recognises the format of an image by its first bytes. An unknown format counts as raw.
#[must_use]
pub fn header(bytes: &[u8]) -> Header {
    let magic: [(&[u8], usize, &str); 7] = [
        (b"KDMV", 0, "vmdk"),
        (b"COWD", 0, "vmdk"),
        (b"\x7f\x10\xda\xbe", 64, "vdi"),
        (b"vhdxfile", 0, "vhdx"),
        (b"conectix", 0, "vpc"),
        (b"LUKS\xba\xbe", 0, "luks"),
        (b"QED\0", 0, "qed"),
    ];
    let starts = |at: usize, magic: &[u8]| bytes.get(at..).is_some_and(|b| b.starts_with(magic));
    if starts(0, b"QFI\xfb") {
        return qcow2(bytes);
    }
    let known = magic.iter().find(|(magic, at, _)| starts(*at, magic));
    Header {
        format: known.map_or("raw", |(_, _, name)| name),
        ..Header::default()
    }
}

fn qcow2(bytes: &[u8]) -> Header {
    let u32_at = |at: usize| {
        let four = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_be_bytes(four))
    };
    let u64_at = |at: usize| {
        let eight = bytes.get(at..at + 8)?.try_into().ok()?;
        Some(u64::from_be_bytes(eight))
    };
    let mut header = Header {
        format: "qcow2",
        ..Header::default()
    };
    let version = u32_at(4).unwrap_or(0);
    let mut set = |key: &'static str, value: String| header.settings.insert(key, value);
    if let Some(bits) = u32_at(20).filter(|bits| (9..=21).contains(bits)) {
        set("cluster_size", (1u64 << bits).to_string());
    }
    if let Some(size) = u64_at(24) {
        set("size", size.to_string());
    }
    match u32_at(32) {
        Some(1) => drop(set("encryption", "aes".to_owned())),
        Some(2) => drop(set("encryption", "luks".to_owned())),
        _ => {}
    }
    let flag = |on: bool| if on { "on" } else { "off" }.to_owned();
    // The header of version 2 ends after 72 bytes and has no feature bits.
    if version >= 3 {
        let (incompatible, compatible) = (u64_at(72).unwrap_or(0), u64_at(80).unwrap_or(0));
        set("compat", "1.1".to_owned());
        set("lazy_refcounts", flag(compatible & 1 != 0));
        set("extended_l2", flag(incompatible & 0x10 != 0));
        if incompatible & 4 != 0 {
            set("data_file", "external".to_owned());
        }
        if incompatible & 2 != 0 {
            set("corrupt", "yes".to_owned());
        }
        let long = u32_at(100).is_some_and(|length| length > 104);
        let zstd = incompatible & 8 != 0 && long && bytes.get(104) == Some(&1);
        set(
            "compression_type",
            if zstd { "zstd" } else { "zlib" }.to_owned(),
        );
    } else {
        set("compat", "0.10".to_owned());
    }
    header.backing_at = match (u64_at(8), u32_at(16)) {
        (Some(at), Some(length)) if at > 0 && (1..=LONGEST_NAME).contains(&length) => {
            Some((at, length as usize))
        }
        _ => None,
    };
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The first 528 bytes of an image of `qemu-img create -f qcow2 -b base.qcow2 -F qcow2 -o
    /// cluster_size=128k,extended_l2=on` of QEMU 7.2.
    const OVERLAY: &[u8] = include_bytes!("../../fixtures/qcow2-overlay-7.2.bin");
    /// Like `OVERLAY`, created with `-o compat=0.10`.
    const VERSION_2: &[u8] = include_bytes!("../../fixtures/qcow2-v2-7.2.bin");
    /// Like `OVERLAY`, created with `-o lazy_refcounts=on,compression_type=zstd`.
    const ZSTD: &[u8] = include_bytes!("../../fixtures/qcow2-zstd-7.2.bin");

    #[test]
    fn headers_that_qemu_img_wrote() {
        let found = header(OVERLAY);
        assert_eq!(found.settings["cluster_size"], "131072");
        assert_eq!(found.settings["extended_l2"], "on");
        let (at, length) = found.backing_at.unwrap();
        let at = usize::try_from(at).unwrap();
        assert_eq!(&OVERLAY[at..at + length], b"base.qcow2");

        let found = header(VERSION_2);
        assert_eq!(found.settings["compat"], "0.10");
        assert_eq!(found.settings["size"], (10u64 << 30).to_string());
        assert!(!found.settings.contains_key("extended_l2"));

        let found = header(ZSTD);
        assert_eq!(found.settings["lazy_refcounts"], "on");
        assert_eq!(found.settings["compression_type"], "zstd");
        assert_eq!(found.backing_at, None);
    }

    #[test]
    fn other_formats() {
        assert_eq!(header(b"LUKS\xba\xbe\x00\x01").format, "luks");
        assert_eq!(header(b"KDMV\x01").format, "vmdk");
        assert_eq!(header(b"").format, "raw");
    }

    proptest! {
        #[test]
        fn never_panics(mut bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = header(&bytes);
            for (at, byte) in b"QFI\xfb\0\0\0\x03".iter().enumerate() {
                if let Some(place) = bytes.get_mut(at) {
                    *place = *byte;
                }
            }
            let _ = header(&bytes);
        }
    }
}
