//! Kernel settings that decide how writes are cached: what is in force, and where it is configured.

use crate::gather::{Gather, lossy, scalar};
use assay_model::FactKind;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

const NAMES: [&str; 14] = [
    "vm.dirty_ratio",
    "vm.dirty_bytes",
    "vm.dirty_background_ratio",
    "vm.dirty_background_bytes",
    "vm.dirty_expire_centisecs",
    "vm.dirty_writeback_centisecs",
    "vm.swappiness",
    "vm.vfs_cache_pressure",
    "vm.min_free_kbytes",
    "vm.overcommit_memory",
    "vm.laptop_mode",
    "fs.aio-max-nr",
    "fs.aio-nr",
    "kernel.io_uring_disabled",
];

/// In the order of precedence of sysctl.d(5): a file hides those of the same name further down.
const DIRS: [&str; 5] = [
    "/etc/sysctl.d",
    "/run/sysctl.d",
    "/usr/local/lib/sysctl.d",
    "/usr/lib/sysctl.d",
    "/lib/sysctl.d",
];
/// `sysctl --system` reads it last; Debian links it as 99-sysctl.conf.
const LAST: &str = "/etc/sysctl.conf";

pub(crate) fn collect(g: &mut Gather<'_>) {
    for name in NAMES {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        g.value(&format!("sysctl.{name}"), &path, |text| Some(scalar(text)));
    }
    let mut files = crate::collectors::modprobe::config_files(g, "sysctl", &DIRS);
    files.push(LAST.to_owned());
    let mut configured: BTreeMap<String, (Value, String)> = BTreeMap::new();
    for file in files {
        // A link to /dev/null masks a file of the same name.
        if g.host
            .link(Path::new(&file))
            .is_ok_and(|target| target == Path::new("/dev/null"))
        {
            continue;
        }
        let Some(text) = g.read(&format!("sysctl.{}", lossy(file.as_ref())), &file) else {
            continue;
        };
        for (name, value, line) in parse(&text) {
            configured.insert(name, (scalar(&value), format!("{file}:{line}")));
        }
    }
    for name in NAMES {
        if let Some((value, source)) = configured.remove(name) {
            g.facts.known(
                format!("sysctl.{name}.configured"),
                value,
                FactKind::Configured,
                source,
            );
        }
    }
}

/// Of a line what the facts say: one of the settings above, a number.
pub(crate) fn redact(line: &str) -> String {
    let known = parse(line)
        .into_iter()
        .any(|(name, value, _)| NAMES.contains(&name.as_str()) && value.parse::<i64>().is_ok());
    if known { line } else { "" }.to_owned()
}

/// Whether this is the file of one of the settings.
pub(crate) fn is_setting(path: &str) -> bool {
    let inner = path.strip_prefix("/proc/sys/");
    inner.is_some_and(|inner| NAMES.contains(&inner.replace('/', ".").as_str()))
}

/// Settings of a file with their lines. Names may be written with slashes, and a hyphen in front
/// means that failure is to be ignored (sysctl.d(5)).
fn parse(text: &str) -> Vec<(String, String, usize)> {
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| !line.trim_start().starts_with(['#', ';']))
        .filter_map(|(at, line)| {
            let (name, value) = line.split_once('=')?;
            let name = name.trim().trim_start_matches('-').replace('/', ".");
            Some((name, value.trim().to_owned(), at + 1))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn the_last_file_wins_and_is_named_with_its_line() {
        let host = Recorded::new()
            .file("/proc/sys/vm/dirty_ratio", "20\n")
            .file("/usr/lib/sysctl.d/10-a.conf", "vm.dirty_ratio=5\n")
            .file(
                "/etc/sysctl.d/20-b.conf",
                "# comment\n-vm/dirty_ratio = 7\n;vm.dirty_ratio=9\n",
            )
            .file("/usr/lib/sysctl.d/20-b.conf", "vm.dirty_ratio=8\n")
            .denied("/etc/sysctl.d/90-secret.conf")
            .file("/etc/sysctl.d/90-secret.conf", "");
        let mut g = Gather::new(&host);
        collect(&mut g);
        assert_eq!(g.facts.u64("sysctl.vm.dirty_ratio"), Some(20));
        let fact = &g.facts.map["sysctl.vm.dirty_ratio.configured"];
        assert_eq!(fact.source, "/etc/sysctl.d/20-b.conf:2");
        assert_eq!(fact.kind, FactKind::Configured);
        assert_eq!(g.facts.u64("sysctl.vm.dirty_ratio.configured"), Some(7));
        // It might have said something else: that is not the same as nothing.
        let hidden = &g.facts.map["sysctl./etc/sysctl.d/90-secret.conf"];
        assert_eq!(
            hidden.value,
            assay_model::FactValue::Unknown("Permission denied".into())
        );
    }
}
