//! Installs assay in a guest, on a separate read-only disk.
//!
//! The host's assay may use another C library than the guest. Therefore its dynamic loader and libraries are copied as
//! well, and assay is started through this loader. The program and the guest's image stay unchanged. The disk is
//! created at every boot.

use crate::error::{Cause, LabError};
use crate::files::run_here;
use assay_host::{Host as _, Limits, LiveHost};
use object::read::elf::{ElfFile64, FileHeader as _, ProgramHeader as _};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Serial number of the disk.
pub(crate) const SERIAL: &str = "assay-tools";
/// Name of the disk's file in the guest's directory.
pub(crate) const FILE: &str = "tools.img";
/// Mount point of the disk in the guest.
const MOUNTED: &str = "/opt/assay";
/// Adds space for the metadata of the file system: 8 MiB and 1/32 of the size of the files. Inode tables use half of
/// this space (`inode_ratio`, mke2fs.conf(5)).
fn with_spare(bytes: u64) -> u64 {
    bytes + bytes / 32 + (8 << 20)
}

/// Commands in the guest that mount the disk and add assay to PATH.
pub(crate) const INSTALL: [&[&str]; 2] = [
    &[
        "mount",
        "-t",
        "ext4",
        "-o",
        "ro,X-mount.mkdir",
        "/dev/disk/by-id/virtio-assay-tools",
        MOUNTED,
    ],
    &["ln", "-sf", "/opt/assay/assay", "/usr/local/bin/assay"],
];

/// Files that a program needs to run on another system.
#[derive(Debug, Default, PartialEq, Eq)]
struct Needs {
    /// Path of the program's dynamic loader; `None` for a static program.
    loader: Option<PathBuf>,
    /// Libraries of the program, as (requested name, path).
    libraries: Vec<(OsString, PathBuf)>,
}

/// Creates the disk in the guest's directory.
///
/// # Errors
/// `program` is not an x86-64 ELF program, a library is missing, or there is no space.
pub(crate) fn make(program: &Path, dir: &Path) -> Result<(), LabError> {
    let needs = read_needs(program)?;
    let tree = dir.join("tools");
    let lib = tree.join("lib");
    fs::create_dir_all(&lib).map_err(LabError::io(&lib))?;
    let mut bytes = 0;
    let mut copy = |from: &Path, to: PathBuf| {
        bytes += fs::copy(from, &to).map_err(LabError::io(from))?;
        Ok::<_, LabError>(())
    };
    let start = tree.join("assay");
    match &needs.loader {
        None => copy(program, start)?,
        Some(loader) => {
            copy(program, lib.join("assay"))?;
            copy(loader, lib.join("ld.so"))?;
            for (name, path) in &needs.libraries {
                copy(path, lib.join(name))?;
            }
            // Only the loader uses this library path; programs that assay starts do not inherit it.
            let script = format!(
                "#!/bin/sh\nexec {MOUNTED}/lib/ld.so --library-path {MOUNTED}/lib {MOUNTED}/lib/assay \"$@\"\n"
            );
            File::options()
                .create_new(true)
                .write(true)
                .mode(0o755)
                .open(&start)
                .and_then(|mut file| file.write_all(script.as_bytes()))
                .map_err(LabError::io(&start))?;
        }
    }
    let made = make_file_system(&tree, &dir.join(FILE), with_spare(bytes));
    let removed = fs::remove_dir_all(&tree).map_err(LabError::io(&tree));
    made.and(removed)
}

fn make_file_system(tree: &Path, file: &Path, size: u64) -> Result<(), LabError> {
    let size = format!("{}k", size.div_ceil(1024));
    // Read-only: no journal, no reserve, and no room to grow, which would take megabytes from 128 MiB on.
    let mut argv: Vec<&OsStr> = [
        "mke2fs",
        "-q",
        "-t",
        "ext4",
        "-b",
        "4096",
        "-O",
        "^has_journal,^resize_inode",
        "-m",
        "0",
    ]
    .map(OsStr::new)
    .to_vec();
    argv.extend([OsStr::new("-d"), tree.as_os_str(), file.as_os_str()]);
    argv.push(OsStr::new(&size));
    let limits = Limits {
        timeout: Duration::from_secs(120),
    };
    run_here(&argv, limits, ("mke2fs", "e2fsprogs"), |reason| {
        LabError::io(file)(std::io::Error::other(reason))
    })
}

fn read_needs(program: &Path) -> Result<Needs, LabError> {
    let refuse = |source: Cause| LabError::Tool {
        path: program.to_owned(),
        source,
    };
    let bytes = fs::read(program).map_err(LabError::io(program))?;
    let Some(loader) = find_loader(&bytes).map_err(|reason| refuse(reason.into()))? else {
        return Ok(Needs::default());
    };
    // The loader itself lists its libraries: it knows its configuration and cache, and runs nothing of the
    // program (ld.so(8), --list).
    let argv = [
        loader.as_os_str(),
        OsStr::new("--list"),
        program.as_os_str(),
    ];
    let output = LiveHost
        .run(&argv, Limits::default())
        .map_err(|error| refuse(error.into()))?;
    if !output.success() {
        return Err(refuse(output.complaint().into()));
    }
    let libraries = parse_libraries(&output.stdout).map_err(|reason| refuse(reason.into()))?;
    Ok(Needs {
        libraries,
        loader: Some(loader),
    })
}

/// Returns the loader that an ELF program requests; `None` for a static program.
fn find_loader(program: &[u8]) -> Result<Option<PathBuf>, String> {
    let fail = |error: object::Error| format!("not a program for x86-64: {error}");
    let file = ElfFile64::<object::Endianness>::parse(program).map_err(fail)?;
    let (header, endian) = (file.elf_header(), file.endian());
    if header.e_machine(endian) != object::elf::EM_X86_64 {
        return Err("not a program for x86-64".to_owned());
    }
    for segment in file.elf_program_headers() {
        if let Some(name) = segment.interpreter(endian, program).map_err(fail)? {
            return Ok(Some(PathBuf::from(OsStr::from_bytes(name))));
        }
    }
    Ok(None)
}

/// Parses lines such as `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f…)`. Other lines contain the kernel's
/// vDSO or the loader.
fn parse_libraries(list: &[u8]) -> Result<Vec<(OsString, PathBuf)>, String> {
    let mut found = Vec::new();
    for line in String::from_utf8_lossy(list).lines() {
        let Some((name, place)) = line.trim().split_once(" => ") else {
            continue;
        };
        let path = place.rsplit_once(" (").map_or(place, |(path, _)| path);
        if !path.starts_with('/') {
            return Err(format!("its library {name}: {place}"));
        }
        let name = Path::new(name).file_name().unwrap_or_default();
        found.push((name.to_owned(), PathBuf::from(path)));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ld.so --list` of glibc 2.36.
    #[test]
    fn the_loaders_list_is_read() {
        let list = b"\tlinux-vdso.so.1 (0x00007ffe)\n\
            \tlibgcc_s.so.1 => /lib/x86_64-linux-gnu/libgcc_s.so.1 (0x00007f01)\n\
            \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f00)\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x00007f02)\n";
        let found = parse_libraries(list).unwrap();
        let names: Vec<_> = found
            .iter()
            .map(|(name, _)| name.to_str().unwrap())
            .collect();
        assert_eq!(names, ["libgcc_s.so.1", "libc.so.6"]);
        assert_eq!(found[1].1, Path::new("/lib/x86_64-linux-gnu/libc.so.6"));
        let error = parse_libraries(b"\tlibssl.so.9 => not found\n").unwrap_err();
        assert!(error.contains("libssl.so.9"), "{error}");
    }

    #[test]
    fn this_very_test_could_come_along() {
        let us = std::env::current_exe().unwrap();
        let found = read_needs(&us).unwrap();
        assert!(found.loader.is_some_and(|loader| loader.exists()));
        assert!(found.libraries.iter().all(|(_, path)| path.exists()));
        assert!(!found.libraries.is_empty());
    }

    /// Sizes just below and above the size at which the file system gets a second block group.
    #[test]
    fn a_program_of_any_size_has_room() {
        for mib in [1, 110, 127, 140] {
            let dir = tempfile::tempdir().unwrap();
            let tree = dir.path().join("tree");
            fs::create_dir(&tree).unwrap();
            // Zeros would use no space.
            let bytes = vec![0x5a; mib << 20];
            fs::write(tree.join("program"), &bytes).unwrap();
            let size = with_spare(bytes.len() as u64);
            make_file_system(&tree, &dir.path().join(FILE), size).unwrap();
        }
    }

    #[test]
    fn the_static_agent_needs_nothing_and_a_script_is_refused() {
        if !crate::boot::AGENT.is_empty() {
            assert_eq!(find_loader(crate::boot::AGENT).unwrap(), None);
        }
        let error = find_loader(b"#!/bin/sh\n").unwrap_err();
        assert!(error.contains("x86-64"), "{error}");
    }
}
