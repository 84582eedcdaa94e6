//! Collects the geometry and features of XFS file systems, as xfs_info(8) prints them.

use crate::gather::{Gather, scalar};
use assay_model::{FactKind, FactPlace};
use std::path::Path;

pub(crate) fn collect(g: &mut Gather<'_>, point: &Path) {
    let point = point.to_string_lossy().into_owned();
    let key = format!("xfs.{point}");
    let argv = ["xfs_info", &point];
    let Some(output) = g.ask(&key, &argv) else {
        return;
    };
    for (section, name, value) in parse(&output.text()) {
        g.facts.known(
            format!("{key}.{section}.{name}"),
            scalar(&value),
            FactKind::Configured,
            FactPlace::command(argv),
        );
    }
}

/// Parses `section =value  name=value, name=value unit` into triples (section, name, value). A line that begins with
/// `=` continues the section of the previous line.
fn parse(text: &str) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    let mut section = String::new();
    for line in text.lines() {
        let Some((head, rest)) = line.split_once('=') else {
            continue;
        };
        if !head.trim().is_empty() {
            head.trim().clone_into(&mut section);
        }
        // The first word is the value of the section itself: a device, or `internal log`.
        for word in rest.split([' ', ',']).filter(|word| !word.is_empty()) {
            if let Some((name, value)) = word.split_once('=')
                && !name.is_empty()
            {
                found.push((section.clone(), name.to_owned(), value.to_owned()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documented_geometry() {
        let found = parse(include_str!(
            "../../fixtures/xfs_info-from-documentation.txt"
        ));
        let get = |section: &str, name: &str| {
            let hit = found.iter().find(|(s, n, _)| s == section && n == name);
            hit.map(|(_, _, value)| value.as_str())
        };
        assert_eq!(get("meta-data", "reflink"), Some("1"));
        assert_eq!(get("data", "bsize"), Some("4096"));
        assert_eq!(get("data", "sunit"), Some("0"));
        assert_eq!(get("log", "version"), Some("2"));
        assert_eq!(get("realtime", "extsz"), Some("4096"));
    }
}
