//! Collects the file systems that are mounted at boot (fstab(5)), line by line, and the options that the kernel
//! rejects.

use crate::gather::Gather;
use crate::mountinfo::{self, MOUNTINFO, unescape};
use crate::redact::{self, escape_blanks};
use assay_model::secrets::is_plain;
use assay_model::{FactKind, FactPlace, Span};
use serde_json::Value;
use std::path::Path;

pub(crate) const FSTAB: &str = "/etc/fstab";

/// Options of XFS that make a mount fail, with the first Linux version that rejects them
/// (Documentation/admin-guide/xfs.rst, "Removed Mount Options").
const XFS_REMOVED: [(&str, &str); 8] = [
    ("nobarrier", "4.19"),
    ("barrier", "4.19"),
    ("delaylog", "4.0"),
    ("nodelaylog", "4.0"),
    ("ihashsize", "4.0"),
    ("irixsgid", "4.0"),
    ("osyncisdsync", "4.0"),
    ("osyncisosync", "4.0"),
];

/// Tags that identify a device by an id or a label.
const TAGS: [&str; 5] = ["UUID", "LABEL", "PARTUUID", "PARTLABEL", "ID"];

pub(crate) fn collect(g: &mut Gather<'_>) {
    let Some(text) = g.read("fstab", FSTAB) else {
        return;
    };
    let mounted = match g.host.read(Path::new(MOUNTINFO)) {
        Ok(text) => mountinfo::parse(&text).map_err(|line| format!("line {line} is no mount")),
        Err(error) if error.is_absent() => Ok(Vec::new()),
        Err(error) => Err(error.reason()),
    };
    let entries = text
        .lines()
        .enumerate()
        .filter_map(|(at, line)| Some((at, line, parse(line)?)));
    for (number, (at, line, entry)) in entries.enumerate() {
        let number = number.to_string();
        let start = line.len() - line.trim_start().len();
        let place = FactPlace::File {
            path: FSTAB.to_owned(),
            line: Some(at + 1),
            span: Some(Span {
                column: line[..start].chars().count() + 1,
                length: line.trim().chars().count(),
            }),
        };
        let mut known = |name: &str, value: Value| {
            let key = format!("fstab.{number}.{name}");
            g.facts
                .known(key, value, FactKind::Configured, place.clone());
        };
        known("point", entry.point.as_str().into());
        known("fstype", entry.fstype.as_str().into());
        known("options", entry.options.as_str().into());
        known("line", place.to_string().into());
        // The last of several words counts.
        let barriers = entry.options.split(',').rfind(|option| {
            matches!(*option, "barrier" | "nobarrier") || option.starts_with("barrier=")
        });
        if let Some(barriers) = barriers {
            let off = matches!(barriers, "nobarrier" | "barrier=0");
            known("barriers_off", off.into());
        }
        if let Some((option, since)) = entry.refused() {
            known("refused", option.into());
            known("refused_since", since.into());
        }
        let key = |name: &str| format!("fstab.{number}.{name}");
        let at_point = |mount: &&mountinfo::Mount| mount.point == Path::new(&entry.point);
        match &mounted {
            Ok(mounted) => {
                if let Some(mount) = mounted.iter().rev().find(at_point) {
                    let options = redact::mount_options(&mount.all_options());
                    g.facts
                        .known(key("mounted"), options, FactKind::Runtime, MOUNTINFO);
                    super::mounts::volatile_cache(g, &key("volatile_cache"), mounted, mount);
                }
            }
            Err(why) => {
                let why = why.as_str();
                g.facts
                    .unknown(key("mounted"), why, FactKind::Runtime, MOUNTINFO);
            }
        }
        g.about(["fstab", &number]);
    }
}

/// A line of fstab that mounts a file system.
struct Entry {
    point: String,
    fstype: String,
    options: String,
}

impl Entry {
    /// Returns the first option that the file system rejects, and the first Linux version that rejects it.
    fn refused(&self) -> Option<(&str, &'static str)> {
        self.options.split(',').find_map(|option| {
            let name = option.split('=').next().unwrap_or(option);
            let since = match self.fstype.as_str() {
                "xfs" => XFS_REMOVED.iter().find(|(known, _)| *known == name)?.1,
                // The option `barrier` of btrfs never had a value.
                "btrfs" if option.starts_with("barrier=") => "2.6.29",
                "btrfs" if matches!(name, "inode_cache" | "noinode_cache") => "6.8",
                _ => return None,
            };
            Some((option, since))
        })
    }
}

/// Parses a line; returns `None` for comments, swap and ignored entries. Fields are separated by spaces or tabs. The
/// field of options may be missing (getmntent(3)).
fn parse(line: &str) -> Option<Entry> {
    let line = line.trim();
    let mut fields = line.split_ascii_whitespace();
    let (source, point, fstype) = (fields.next()?, fields.next()?, fields.next()?);
    if source.starts_with('#') || fstype == "swap" || fstype == "ignore" {
        return None;
    }
    let text = |field: &str| String::from_utf8_lossy(&unescape(field.as_bytes())).into_owned();
    Some(Entry {
        point: text(point),
        fstype: fstype.to_owned(),
        options: redact::mount_options(&text(fields.next().unwrap_or("defaults"))),
    })
}

/// Redacts a line: keeps only the parts that facts use. Removes servers, UUIDs, and options that are not known to be
/// harmless.
pub(crate) fn redact(line: &str) -> String {
    let fields: Vec<&str> = line.trim().split_ascii_whitespace().collect();
    let [source, point, fstype, rest @ ..] = fields.as_slice() else {
        return String::new();
    };
    if source.starts_with('#') || !is_plain(fstype) {
        return String::new();
    }
    let source = match source.split_once('=') {
        Some((tag, _)) if TAGS.contains(&tag) => format!("{tag}=left-out"),
        _ => escape_blanks(&redact::mount_source(fstype, source)),
    };
    let options = redact::mount_options(rest.first().unwrap_or(&"defaults"));
    format!("{source} {point} {fstype} {}", escape_blanks(&options))
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    const TEXT: &str = "# <file system> <mount point>\nUUID=1 / xfs defaults,nobarrier 0 1\n\n\
        /dev/vg/a\t/srv/a\\040b\text4\tnoatime,data=writeback,barrier=0\t0 2\n\
        UUID=3 none swap sw 0 0\n//nas/x /mnt cifs username=u,password=hunter2,vers=1.0 0 0\n/dev/sdc1 /plain ext4\n";

    #[test]
    fn lines_with_their_numbers_and_no_secret() {
        let host = Recorded::new().file(FSTAB, TEXT);
        let mut g = Gather::new(&host);
        collect(&mut g);
        assert_eq!(g.facts.str("fstab.0.refused"), Some("nobarrier"));
        assert_eq!(g.facts.str("fstab.0.refused_since"), Some("4.19"));
        assert_eq!(g.facts.str("fstab.1.point"), Some("/srv/a b"));
        let place = g.facts.map["fstab.1.options"].place.to_string();
        assert!(place.starts_with("/etc/fstab:4"), "{place}");
        assert!(!g.facts.map.contains_key("fstab.1.refused"));
        assert_eq!(g.facts.str("fstab.3.options"), Some("defaults"));
        assert!(!g.facts.map.contains_key("fstab.4.point"));
        let kept: Vec<String> = TEXT.split('\n').map(redact).collect();
        let kept = kept.join("\n");
        assert!(!kept.contains("hunter2") && !kept.contains("nas"), "{kept}");
        let again: Vec<String> = kept.split('\n').map(redact).collect();
        assert_eq!(again.join("\n"), kept);
        let host = Recorded::new().file(FSTAB, kept);
        let mut other = Gather::new(&host);
        collect(&mut other);
        let places = |facts: &assay_model::Facts| -> Vec<(String, String)> {
            let all = facts.map.iter();
            all.map(|(key, fact)| (key.clone(), format!("{:?}", fact.value)))
                .collect()
        };
        let lines = |facts| {
            let mut all = places(facts);
            // Columns refer to the cleaned line.
            all.retain(|(key, _)| !key.ends_with(".line"));
            all
        };
        assert_eq!(lines(&g.facts), lines(&other.facts));
    }
}
