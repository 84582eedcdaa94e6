//! Checks whether the swap area for resuming from hibernation exists: compares RESUME of initramfs-tools with the swap
//! areas in fstab(5). Names of devices and file systems are not reported.

use crate::collectors::services::setting_lines::place;
use crate::gather::Gather;
use assay_model::FactKind;
use std::collections::BTreeSet;
use std::path::Path;

/// Files of initramfs-tools that may set RESUME (initramfs.conf(5)).
const FILES: [&str; 2] = [
    "/etc/initramfs-tools/conf.d/resume",
    "/etc/initramfs-tools/initramfs.conf",
];
const FSTAB: &str = "/etc/fstab";

pub(super) fn collect(g: &mut Gather<'_>) {
    let read = |path: &str| g.host.read_text(Path::new(path)).ok();
    let Some(swaps) = read(FSTAB).and_then(|text| list_swaps(&text)) else {
        return;
    };
    for path in FILES {
        let Some(text) = read(path) else { continue };
        let said = text.lines().enumerate().filter_map(|(number, line)| {
            let value = line.trim().strip_prefix("RESUME=")?;
            Some((number, line, value.trim_matches('"')))
        });
        // A shell reads the file: the last line applies.
        let Some((number, line, value)) = said.last() else {
            continue;
        };
        let Some(uuid) = value.strip_prefix("UUID=") else {
            return;
        };
        let there = swaps.contains(&uuid.to_ascii_lowercase());
        let at = place(path, number, line);
        g.facts
            .known("swap.resume_is_there", there, FactKind::Configured, at);
        return;
    }
}

/// Returns the UUIDs of the swap areas in fstab. Returns `None` if an entry has another kind of name, which may refer
/// to the same device.
fn list_swaps(text: &str) -> Option<BTreeSet<String>> {
    let lines = text.lines().map(str::trim);
    let fields = lines
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    fields
        .filter(|fields| fields.get(2) == Some(&"swap"))
        .map(|fields| {
            let uuid = fields[0].strip_prefix("UUID=")?;
            Some(uuid.trim_matches('"').to_ascii_lowercase())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fstab_says() {
        let uuids = |text| list_swaps(text).map(|all| all.into_iter().collect::<Vec<_>>());
        let text = "# x\nUUID=AB none swap sw 0 0\nUUID=cd / ext4 defaults 0 1\n";
        assert_eq!(uuids(text), Some(vec!["ab".to_owned()]));
        assert_eq!(
            uuids("/dev/sda2 none swap sw 0 0\nUUID=ab none swap sw 0 0"),
            None
        );
        assert_eq!(uuids(""), Some(Vec::new()));
    }
}
