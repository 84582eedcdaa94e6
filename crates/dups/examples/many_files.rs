//! Memory that a scan's tables take with very many files, without having to make the files: fills
//! the table as a walk would, then sorts, groups, saves, loads and prints as a scan and a report do.
//!
//! usage: many_files NUMBER FOLDER   (the index is made in FOLDER and removed)
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark reads its own memory"
)]

use assay_dups::memory::Memory;
use assay_dups::table::{FileSystem, NewFile};
use assay_dups::{Files, Identity, Index, folders, format, group, report};
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: many_files NUMBER FOLDER";
    let number: u64 = arguments.next().ok_or(usage)?.parse()?;
    let folder = PathBuf::from(arguments.next().ok_or(usage)?);
    let begun = std::time::Instant::now();
    let say = |stage: &str| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mib = |name: &str| -> u64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let digits = line.and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok());
            digits.unwrap_or(0_u64) / 1024
        };
        println!(
            "{stage:<8} {:>7.1} s   in memory {:>5} MiB, in files {:>6} MiB",
            begun.elapsed().as_secs_f64(),
            mib("RssAnon"),
            mib("RssFile") + mib("RssShmem"),
        );
    };
    let mut files = walked(number);
    say("walked");
    let sizes = group::by_size(&files, false);
    say("sorted");
    for group in sizes.open.iter() {
        // Pairs of neighbours are copies of each other.
        for pair in sizes.order[group.files()].chunks(2) {
            let hash = files.add_hash(*blake3::hash(&pair[0].to_le_bytes()).as_bytes());
            for id in pair {
                files.files[*id as usize].hash = hash;
            }
        }
    }
    drop(sizes);
    say("compared");
    let groups = group::by_hash(&files);
    say("grouped");
    let count = groups.len();
    format::document(&mut std::io::sink(), &files, &groups, None)?;
    say("printed");
    drop(groups);
    let path = folder.join("many_files.db");
    let roots = [PathBuf::from("/srv")];
    let mut index = Index::open(&path)?;
    index.save(&roots, &files, &Memory::default(), 1, false)?;
    drop(files);
    say("saved");
    let files = index.load(&[])?;
    say("loaded");
    let lone = report::uniques(&files).len();
    say("uniques");
    let related = folders::folders(&files);
    say("dirs");
    println!(
        "{number} files, {count} groups, {lone} without a copy, {} pairs of folders",
        related.overlapping.len()
    );
    drop(index);
    for name in ["many_files.db", "many_files.db-lock"] {
        std::fs::remove_file(folder.join(name))?;
    }
    Ok(())
}

/// Ten files a folder, with sizes as they are spread on file servers: most small, each many times.
fn walked(number: u64) -> Files {
    let mut files = Files::default();
    let fs = files.filesystem(FileSystem {
        machine: String::new(),
        fsid: 7,
    });
    let mut dir = 0;
    for at in 0..number {
        if at % 10 == 0 {
            let path = format!(
                "/srv/projects/year-{}/customer-{}/{at:09}",
                at % 17,
                at % 1009
            );
            dir = files.add_dir(path.as_bytes(), fs);
        }
        let spread = at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let new = NewFile {
            id: Identity {
                ino: at + 1,
                size: 1 + spread % 1_000_000,
                mtime: at as i64,
                ctime: at as i64,
            },
            fs,
            allocated: None,
            fresh: false,
            linked: false,
            known: None,
        };
        files.add_file(dir, format!("document {at:09}.pdf").as_bytes(), new);
    }
    files
}
