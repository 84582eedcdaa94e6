//! Defines the options of a scan as clap arguments, and converts options that the index contains back to arguments.

use super::age;
use assay_dups::filter::parse_user;
use assay_dups::hash::HashKind;
use assay_dups::{Filter, RootScanOptions, ScanOptions, WalkOptions};
use assay_model::Bytes;
use clap::Args;
use std::path::PathBuf;

/// How to scan, for the first time or again.
#[derive(Args)]
pub struct HowArgs {
    /// Read every file again, whatever the index contains
    #[arg(long)]
    rehash: bool,
    /// Compare every group byte by byte once more at the end
    #[arg(long)]
    paranoid: bool,
    /// Hash every file, so that indexes of several machines can be merged
    #[arg(long)]
    hash_all: bool,
    /// Also hash the files listed by `assay dups collide`; - is stdin
    #[arg(long, value_name = "FILE")]
    pub wanted: Option<PathBuf>,
    #[command(flatten)]
    filter: FilterArgs,
    /// Enter other file systems, btrfs subvolumes included
    #[arg(long)]
    other_filesystems: bool,
    /// Enter .zfs, .snapshot and .snapshots too
    #[arg(long)]
    snapshots: bool,
    /// Use N threads [default: chosen for the disks]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,
}

impl HowArgs {
    pub fn options(&self, hash: Option<HashKind>) -> ScanOptions {
        ScanOptions {
            walk: self.walk(),
            as_before: false,
            paranoid: self.paranoid,
            hash_all: self.hash_all,
            fresh: self.rehash,
            hash,
            checkpoint: None,
            wanted: None,
            rotates: None,
        }
    }

    fn walk(&self) -> WalkOptions {
        WalkOptions {
            filter: self.filter.filter(),
            other_filesystems: self.other_filesystems,
            snapshots: self.snapshots,
        }
    }

    /// Returns whether the user gave no option that affects which files are scanned or hashed.
    pub fn is_silent(&self) -> bool {
        self.walk() == WalkOptions::default() && !self.hash_all
    }
}

#[derive(clap::ValueEnum, Clone, Copy)]
pub enum HashArg {
    /// Safe against intentional collisions.
    Blake3,
    /// Faster
    #[value(name = "xxh3-128", alias = "xxh3")]
    Xxh3,
}

impl HashArg {
    pub fn kind(self) -> HashKind {
        match self {
            Self::Blake3 => HashKind::Blake3,
            Self::Xxh3 => HashKind::Xxh3,
        }
    }
}

#[derive(Args)]
struct FilterArgs {
    /// Skip smaller files, such as 4k (4096 bytes) or 4kB (4000)
    #[arg(long, short = 's', value_name = "SIZE")]
    min_size: Option<Bytes>,
    /// Skip larger files, such as 2G (2·2³⁰ bytes) or 2GB (2·10⁹)
    #[arg(long, value_name = "SIZE")]
    max_size: Option<Bytes>,
    /// Include matching paths; with ! exclude; the last match decides
    #[arg(long, short, value_name = "GLOB")]
    glob: Vec<String>,
    /// Respect .gitignore and .ignore files
    #[arg(long)]
    gitignore: bool,
    /// Include files changed within this time, such as 7d
    #[arg(long, value_name = "AGE", value_parser = age::parse)]
    newer_than: Option<i64>,
    /// Include files not changed within this time, such as 1y
    #[arg(long, value_name = "AGE", value_parser = age::parse)]
    older_than: Option<i64>,
    /// Include files of this user (name or number)
    #[arg(long, value_name = "USER", value_parser = parse_user)]
    owner: Option<u32>,
}

impl FilterArgs {
    fn filter(&self) -> Filter {
        Filter {
            min_size: self.min_size.map_or(1, |size| size.0.max(1)),
            max_size: self.max_size.map_or(u64::MAX, |size| size.0),
            globs: self.glob.clone(),
            ignore_files: self.gitignore,
            newer_than: self.newer_than,
            older_than: self.older_than,
            owner: self.owner,
        }
    }
}

/// Returns the command-line arguments for stored options; `None` if all options have their defaults.
pub fn flags(manner: &RootScanOptions) -> Option<String> {
    let walk = &manner.walk;
    let filter = &walk.filter;
    let usual = Filter::default();
    let mut words = Vec::new();
    if filter.min_size != usual.min_size {
        words.push(format!("--min-size {}", Bytes(filter.min_size).short()));
    }
    if filter.max_size != usual.max_size {
        words.push(format!("--max-size {}", Bytes(filter.max_size).short()));
    }
    for glob in &filter.globs {
        words.push(format!("--glob {}", shell_words::quote(glob)));
    }
    for (name, age) in [("newer", filter.newer_than), ("older", filter.older_than)] {
        words.extend(age.map(|age| format!("--{name}-than {}", age::exact(age))));
    }
    words.extend(filter.owner.map(|owner| format!("--owner {owner}")));
    for (set, flag) in [
        (filter.ignore_files, "--gitignore"),
        (walk.other_filesystems, "--other-filesystems"),
        (walk.snapshots, "--snapshots"),
        (manner.hash_all, "--hash-all"),
    ] {
        if set {
            words.push(flag.into());
        }
    }
    (!words.is_empty()).then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        how: HowArgs,
    }

    fn manner(words: &[String]) -> RootScanOptions {
        let line = Line::parse_from(std::iter::once("scan".to_owned()).chain(words.to_vec()));
        let options = line.how.options(None);
        RootScanOptions {
            walk: options.walk,
            hash_all: options.hash_all,
        }
    }

    #[test]
    fn what_is_remembered_reads_as_it_was_asked_for() {
        let all = "--min-size 1500k --max-size 7G --glob '*.jpg' --glob '!it'\\''s.tmp' --newer-than 1y \
                   --older-than 90s --owner 0 --gitignore --other-filesystems --snapshots --hash-all";
        let asked = manner(&shell_words::split(all).unwrap());
        let told = flags(&asked).unwrap();
        assert_eq!(manner(&shell_words::split(&told).unwrap()), asked);
        insta::assert_snapshot!(told, @r"--min-size 1500k --max-size 7G --glob '*.jpg' --glob '!it'\''s.tmp' --newer-than 365d --older-than 90s --owner 0 --gitignore --other-filesystems --snapshots --hash-all");
        assert_eq!(flags(&manner(&[])), None);
    }
}
