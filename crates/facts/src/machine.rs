//! Determines the identity of the machine: an id that does not change, and the host name.

use assay_host::Host;
use assay_model::Machine;
use std::path::Path;

/// Key of the hash from which the id is derived. A program that uses another key derives another id from the same
/// machine id.
const PURPOSE: &str = "assay 2026-11 machine id";

/// Returns the identity of the machine. Returns `None` if there is no machine id, as in a container or before the first
/// boot is complete.
///
/// `/etc/machine-id` must stay secret (machine-id(5)). Only a keyed hash of it is reported, as in
/// sd_id128_get_machine_app_specific(3).
#[must_use]
pub fn machine(host: &dyn Host) -> Option<Machine> {
    let text = |path: &str| {
        let bytes = host.read(Path::new(path)).ok()?;
        Some(String::from_utf8(bytes).ok()?.trim().to_owned())
    };
    let id = text("/etc/machine-id").filter(|id| is_machine_id(id))?;
    let key = blake3::derive_key(PURPOSE, id.as_bytes());
    let name = text("/proc/sys/kernel/hostname").filter(|name| !name.is_empty());
    Some(Machine {
        id: key[..16].iter().map(|byte| format!("{byte:02x}")).collect(),
        name,
    })
}

/// Returns whether the text has 32 lower-case hexadecimal digits that are not all zero (machine-id(5)).
fn is_machine_id(text: &str) -> bool {
    Machine::is_id(text) && text.bytes().any(|digit| digit != b'0')
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make a captured machine")]
mod tests {
    use super::*;
    use assay_host::Root;

    fn build_machine(machine_id: Option<&str>, name: &str) -> Option<Machine> {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/sys/kernel/hostname", name);
        if let Some(id) = machine_id {
            write("etc/machine-id", id);
        }
        machine(&Root::open(dir.path()).unwrap())
    }

    #[test]
    fn the_id_is_the_same_each_time_and_does_not_tell_the_machine_id() {
        const ID: &str = "0123456789abcdef0123456789abcdef";
        let one = build_machine(Some(&format!("{ID}\n")), "box\n").unwrap();
        assert_eq!(one.name.as_deref(), Some("box"));
        assert_eq!(one.id, "ffd352ed0f83376a2482d56ea5ea12e2");
        assert_eq!(build_machine(Some(ID), "other").unwrap().id, one.id);
        assert_ne!(
            build_machine(Some(&"1".repeat(32)), "box").unwrap().id,
            one.id
        );
        assert!(Machine::is_id(&one.id) && !one.id.contains(&ID[..8]));
    }

    #[test]
    fn without_a_machine_id_the_machine_is_not_known() {
        for id in [
            None,
            Some(""),
            Some("uninitialized\n"),
            Some(&"0".repeat(32)[..]),
        ] {
            assert_eq!(build_machine(id, "box"), None, "{id:?}");
        }
    }
}
