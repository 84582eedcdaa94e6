//! Compares all packages that dpkg, rpm or apk list. A package can be added, removed, or have another version.

use assay_facts::has_all_packages;
use assay_model::drift::{Change, Kind};
use std::collections::{BTreeMap, BTreeSet};

/// Versions by package name.
pub type Packages = BTreeMap<String, String>;

/// Maximum number of packages that a change lists by name. Further packages are only counted.
const NAMED: usize = 100;

/// Returns the changes of packages. Many changes become one entry with a count.
///
/// Omits packages whose version is also a fact, because the changed fact is already reported. Returns nothing if one of
/// the lists comes from an older version of assay, which stored only the packages that its checks use.
pub(super) fn changes(
    old: Option<&Packages>,
    new: Option<&Packages>,
    differ: &BTreeSet<String>,
) -> Vec<Change> {
    let (Some(old), Some(new)) = (old, new) else {
        return Vec::new();
    };
    if !has_all_packages(old) || !has_all_packages(new) {
        return Vec::new();
    }
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let changed: Vec<&String> = names
        .into_iter()
        .filter(|name| old.get(*name) != new.get(*name))
        .collect();
    let is_new = |name: &&&String| !old.contains_key(**name);
    let is_gone = |name: &&&String| !new.contains_key(**name);
    let (came, gone) = (
        changed.iter().filter(is_new).count(),
        changed.iter().filter(is_gone).count(),
    );
    let change = |what: String, before: Option<String>, after: Option<String>| Change {
        kind: Kind::Fact,
        what,
        severity: None,
        title: None,
        before,
        after,
        cause: Some("by the list of the package manager".to_owned()),
    };
    let mut all: Vec<Change> = changed
        .iter()
        .map(|name| (*name, format!("package.{name}.version")))
        .filter(|(_, key)| !differ.contains(key))
        .take(NAMED)
        .map(|(name, key)| change(key, old.get(name).cloned(), new.get(name).cloned()))
        .collect();
    if changed.len() > 1 {
        let other = changed.len() - came - gone;
        let mut text = format!(
            "{} changed: {other} in version, {came} new, {gone} gone; {} in all",
            changed.len(),
            new.len()
        );
        if changed.len() > NAMED {
            text += &format!("; {NAMED} are named");
        }
        all.push(change(
            "packages".to_owned(),
            Some(format!("{} in all", old.len())),
            Some(text),
        ));
    }
    all
}
