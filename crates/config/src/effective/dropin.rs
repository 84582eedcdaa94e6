//! Directories of drop-ins: sysctl.d(5) with `sysctl --system` of procps 4.0, and the configuration files of systemd
//! 252 (systemd-system.conf(5), "Configuration Directories and Precedence").
//! Files are read in the order of their names, whatever their directory is. If several files have the same name, only
//! the file in the first directory is read. A file in /etc can therefore hide a file of a package. A symbolic link to
//! /dev/null hides a file without setting anything. Patterns in names (`net.ipv4.conf.*.rp_filter`) remain as written.

use super::builder::{Builder, SourceFile};
use super::files::FileFault;
use super::{ScopeId, SettingPlace, Trouble};
use crate::text::to_lossy_text;
use crate::tree::{Block, Item};
use assay_model::change::ConfigLanguage as Language;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Reads the files that `sysctl --system` reads: all drop-ins, then sysctl.conf.
pub fn sysctl(builder: &mut Builder<'_>, main: &Path) -> Result<(), FileFault> {
    let dirs = [
        "etc/sysctl.d",
        "run/sysctl.d",
        "usr/local/lib/sysctl.d",
        "usr/lib/sysctl.d",
        "lib/sysctl.d",
    ];
    drop_ins(builder, main, &dirs, Language::KeyValue);
    match builder.open(main) {
        Ok(source) => add(builder, &source, Language::KeyValue),
        // The file is optional: systemd-sysctl does not read it.
        Err(FileFault::Absent) => {}
        Err(fault) => return Err(fault),
    }
    Ok(())
}

/// Reads the main file of a systemd configuration, then its drop-ins.
pub fn systemd(builder: &mut Builder<'_>, main: &Path) -> Result<(), FileFault> {
    let source = builder.open(main)?;
    add(builder, &source, Language::Ini);
    let name = main.file_name().map(|name| to_lossy_text(name.as_bytes()));
    let name = name.unwrap_or_default();
    let dirs = ["etc", "run", "usr/local/lib", "usr/lib", "lib"]
        .map(|dir| format!("{dir}/systemd/{name}.d"));
    drop_ins(
        builder,
        main,
        &dirs.each_ref().map(|dir| &dir[..]),
        Language::Ini,
    );
    Ok(())
}

/// Reads a file that has no drop-ins.
pub fn alone(builder: &mut Builder<'_>, main: &Path) -> Result<(), FileFault> {
    let source = builder.open(main)?;
    add(builder, &source, Language::Nsswitch);
    Ok(())
}

/// Determines the root directory from `main`, which is in the `etc` of this root, and reads the drop-ins of `dirs`
/// below the root.
fn drop_ins(builder: &mut Builder<'_>, main: &Path, dirs: &[&str], language: Language) {
    let etc = main.ancestors().find(|dir| dir.ends_with("etc"));
    let root = etc.and_then(Path::parent).unwrap_or(Path::new("/"));
    let from = SourceFile::new(main, Vec::new()).place(&(0..0));
    let mut by_name: BTreeMap<OsString, PathBuf> = BTreeMap::new();
    for dir in dirs.iter().map(|dir| root.join(dir)) {
        match builder.files.list(&dir) {
            Ok(names) => {
                let ours = |name: &OsString| name.as_bytes().ends_with(b".conf");
                for name in names.into_iter().filter(ours) {
                    let path = dir.join(&name);
                    by_name.entry(name).or_insert(path);
                }
            }
            Err(FileFault::Absent) => {}
            Err(fault) => unread(builder, &dir, fault, from.clone()),
        }
    }
    for path in by_name.into_values() {
        match builder.open(&path) {
            Ok(source) => add(builder, &source, language),
            // A dangling symbolic link.
            Err(FileFault::Absent) => {}
            Err(fault) => unread(builder, &path, fault, from.clone()),
        }
    }
}

fn unread(builder: &mut Builder<'_>, path: &Path, fault: FileFault, place: SettingPlace) {
    let include = path.display().to_string();
    builder.problem(ScopeId::ROOT, place, Trouble::Unread { include, fault });
}

fn add(builder: &mut Builder<'_>, source: &SourceFile, language: Language) {
    let Some(root) = builder.parsed(language, ScopeId::ROOT, source) else {
        return;
    };
    items(builder, source, language, &root, ScopeId::ROOT);
}

fn items(
    builder: &mut Builder<'_>,
    source: &SourceFile,
    language: Language,
    block: &Block,
    scope: ScopeId,
) {
    for item in &block.items {
        let place = source.place(item.span());
        match item {
            Item::Directive(said) => {
                let key = match language {
                    Language::KeyValue => sysctl_name(&said.key),
                    _ => said.key.clone(),
                };
                if language == Language::Ini && said.value.ends_with(b"\\") {
                    let what = format!("`{key}` goes on in the next line, which is not understood");
                    builder.problem(scope, place.clone(), Trouble::Unknown(what));
                }
                builder.add(scope, key, said.value.clone(), place);
            }
            Item::Block(block) => {
                let scope = builder.same_scope(scope, block.head.clone(), place);
                items(builder, source, language, block, scope);
            }
            Item::Inclusion(_) => {}
        }
    }
}

/// Returns the name that a line sets. A leading hyphen, which means that failures are ignored (sysctl.d(5)), is
/// removed.
pub fn sysctl_name(written: &str) -> String {
    dotted_name(written.strip_prefix('-').unwrap_or(written).trim_start())
}

/// Converts a name so that dots separate its parts. If the first separator is a slash, slashes separate the parts and
/// dots belong to a part (sysctl.d(5)). A name that already has dots as separators is returned unchanged.
pub fn dotted_name(name: &str) -> String {
    match name.find(['.', '/']).map(|at| &name[at..=at]) {
        Some("/") => name
            .chars()
            .map(|letter| match letter {
                '/' => '.',
                '.' => '/',
                letter => letter,
            })
            .collect(),
        _ => name.to_owned(),
    }
}
