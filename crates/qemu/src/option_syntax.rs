//! Builds options and block nodes for the programs of QEMU.

use assay_model::change::CacheMode;
use serde_json::{Value, json};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// Escapes a value in a comma-separated option, because QEMU ends a value at a single comma (qemu(1)).
#[must_use]
pub fn escape(value: &str) -> String {
    value.replace(',', ",,")
}

/// Escapes a path in a comma-separated option, like [`escape`].
#[must_use]
pub fn escape_path(path: impl AsRef<OsStr>) -> OsString {
    let path = path.as_ref().as_bytes();
    let mut bytes = Vec::with_capacity(path.len());
    for byte in path {
        bytes.push(*byte);
        if *byte == b',' {
            bytes.push(b',');
        }
    }
    OsString::from_vec(bytes)
}

/// Returns the value of the option `cache` of a block node (qemu(1), table at `-drive cache=`). Another option
/// determines whether each write is flushed at once: `write-cache` of a device, or `writethrough` of an export.
#[must_use]
pub fn cache_option(mode: CacheMode) -> Value {
    json!({ "direct": mode.direct(), "no-flush": mode.ignores_flushes() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_does_not_end_a_value() {
        assert_eq!(escape("/a,b,,c"), "/a,,b,,,,c");
        assert_eq!(escape_path("/a,b,,c"), "/a,,b,,,,c");
    }

    #[test]
    fn cache_modes_mean_what_the_manual_says() {
        // qemu(1), -drive cache=: cache.writeback, cache.direct, cache.no-flush.
        let table = [
            ("writeback", true, false, false),
            ("none", true, true, false),
            ("writethrough", false, false, false),
            ("directsync", false, true, false),
            ("unsafe", true, false, true),
        ];
        for (name, write_cache, direct, no_flush) in table {
            let mode: CacheMode = name.parse().unwrap();
            assert_eq!(mode.shows_write_cache(), write_cache, "{name}");
            assert_eq!(
                cache_option(mode),
                json!({ "direct": direct, "no-flush": no_flush }),
                "{name}"
            );
        }
    }
}
