//! Finds unmet dependencies of installed packages: names that no installed package has or provides (deb-control(5),
//! Depends and Pre-Depends). The names are not reported. Versions are not compared, because apt already does this.

use crate::collectors::services::packages::STATUS;
use crate::gather::Gather;
use assay_model::{FactKind, FactPlace};
use std::collections::BTreeSet;
use std::path::Path;

/// A package in dpkg's status file, with the fields that decide dependencies.
#[derive(Default)]
struct Package<'a> {
    name: &'a str,
    here: bool,
    provides: &'a str,
    /// Depends and Pre-Depends, each with its line number. dpkg writes each field on one line.
    depends: Vec<(usize, &'a str)>,
}

pub(super) fn collect(g: &mut Gather<'_>) {
    let Ok(text) = g.host.read_text(Path::new(STATUS)) else {
        return;
    };
    let packages: Vec<Package<'_>> = list_packages(&text);
    // A list that was cleaned for a capture has no dependencies.
    if packages.iter().all(|package| package.depends.is_empty()) {
        return;
    }
    let there: BTreeSet<&str> = packages
        .iter()
        .flat_map(|package| names(package.provides).chain([package.name]))
        .collect();
    let all = packages.iter().flat_map(|package| &package.depends);
    let unmet: Vec<usize> = all
        .flat_map(|(line, depends)| depends.split(',').map(move |group| (*line, group)))
        .filter(|(_, group)| !is_met(group, &there))
        .map(|(line, _)| line)
        .collect();
    let place = match unmet.first() {
        Some(line) => FactPlace::from(format!("{STATUS}:{line}")),
        None => FactPlace::from(STATUS),
    };
    g.facts.known(
        "packages.unmet_dependencies",
        unmet.len(),
        FactKind::Runtime,
        place,
    );
}

/// Returns the packages that are installed or being installed.
fn list_packages(text: &str) -> Vec<Package<'_>> {
    let mut found = Vec::new();
    let mut package = Package::default();
    for (at, line) in text.lines().enumerate() {
        match line.split_once(": ") {
            _ if line.is_empty() => found.push(std::mem::take(&mut package)),
            Some(("Package", value)) => package.name = value.trim(),
            Some(("Status", value)) => package.here = is_here(value),
            Some(("Provides", value)) => package.provides = value,
            Some(("Depends" | "Pre-Depends", value)) => package.depends.push((at + 1, value)),
            _ => {}
        }
    }
    found.push(package);
    found.retain(|package| package.here && !package.name.is_empty());
    found
}

/// Returns whether the files of a package are installed. This is so if the package is at least unpacked (dpkg(1),
/// PACKAGE STATES).
fn is_here(status: &str) -> bool {
    const STATES: [&str; 5] = [
        "installed",
        "unpacked",
        "half-configured",
        "triggers-awaited",
        "triggers-pending",
    ];
    let state = status.split_whitespace().last();
    state.is_some_and(|state| STATES.contains(&state))
}

/// Returns whether at least one of the alternatives in a group is installed.
fn is_met(group: &str, there: &BTreeSet<&str>) -> bool {
    group.trim().is_empty() || group.split('|').any(|one| there.contains(name(one)))
}

fn names(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(name).filter(|name| !name.is_empty())
}

/// Returns the package name in a dependency such as `NAME:any (>= 1.0) [amd64]`.
fn name(one: &str) -> &str {
    let name = one.trim().split([' ', '(', '[', ':']).next();
    name.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    fn unmet(text: &str) -> Option<i64> {
        let host = Recorded::new().file(STATUS, text);
        let mut g = Gather::new(&host);
        collect(&mut g);
        let fact = g.facts.map.get("packages.unmet_dependencies")?;
        match &fact.value {
            assay_model::FactValue::Known(value) => value.as_i64(),
            assay_model::FactValue::Unknown(_) => None,
        }
    }

    const AWK: &str = "Package: base-files\nStatus: install ok installed\nPre-Depends: awk\n\n";

    #[test]
    fn what_nobody_is_or_provides() {
        assert_eq!(unmet(AWK), Some(1));
        let provided = "Package: mawk\nStatus: install ok installed\nProvides: awk (= 1), x\n";
        assert_eq!(unmet(&format!("{AWK}{provided}")), Some(0));
        let removed = provided.replace("install ok installed", "deinstall ok config-files");
        assert_eq!(unmet(&format!("{AWK}{removed}")), Some(1));
        // A removed package has no dependencies, and one alternative suffices.
        let gone = AWK.replace("install ok installed", "deinstall ok config-files");
        assert_eq!(unmet(&gone), None);
        let either = "Package: a\nStatus: hold ok installed\nDepends: b:any (>= 1) | a, \n\n";
        assert_eq!(unmet(either), Some(0));
    }

    #[test]
    fn what_is_no_status_says_nothing() {
        for text in ["", "\n\n\n", "Depends: x", "Package: \nDepends: x", ":::: "] {
            assert_eq!(unmet(text), None, "{text:?}");
        }
    }
}
