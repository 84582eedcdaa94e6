//! Finds statically linked copies of OpenSSL in programs, because package updates do not replace such copies.
//!
//! A program with a copy contains texts of the library itself: `OPENSSLDIR: "` next to its version (`OpenSSL_version`,
//! crypto/cversion.c of 0.9.8 to 3.x), or `SHA1 part of OpenSSL 1.0.1f 6 Jan 2014` (all before 1.1.0). A dynamically
//! linked program contains at most the version.
//!
//! Searches the running programs. On the machine itself, or in a tree of its files, also searches /usr/local and /opt,
//! where packages install nothing. For programs in directories of users, only the kind of directory is reported.

use crate::collectors::services::mapped;
use crate::gather::{Gather, lossy};
use assay_host::{FileKind, HostError, REPEATED};
use assay_model::{FactKind, FactPlace};
use memchr::memmem;
use object::Endianness;
use object::elf::{FileHeader32, FileHeader64, PF_W, PF_X, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader as _};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

/// Directories that do not belong to a user.
const COMMON: [&str; 5] = ["/usr/", "/opt/", "/bin/", "/sbin/", "/lib/"];
/// Directories in which only the administrator installs files, not packages.
const BY_HAND: [&str; 4] = [
    "/usr/local/bin",
    "/usr/local/sbin",
    "/usr/local/lib",
    "/opt",
];
/// Subdirectories of /opt/PROGRAM that may contain programs and libraries.
const INSIDE: [&str; 4] = ["", "bin", "sbin", "lib"];
/// Maximum number of files that are searched.
const MOST_FILES: usize = 512;
/// Maximum number of bytes that are searched in all files together.
const MOST_BYTES: u64 = 4 << 30;

// Both lack their first letter, so that this program does not contain the texts.
const DIRECTORY: &[u8] = b"PENSSLDIR: \"";
const BANNER: &[u8] = b"penSSL ";

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut left = MOST_BYTES;
    // assay itself carries no copy, and a build with debug information is large.
    let mut seen: BTreeSet<(PathBuf, u64)> = this_program(g).into_iter().collect();
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    let running = list_programs(g);
    for program in running.into_iter().chain(by_hand(g)) {
        let Ok(stat) = g.host.stat(&program.open) else {
            continue;
        };
        let is_new = seen.insert((program.path.clone(), stat.size));
        if !is_new || stat.kind != FileKind::Regular {
            continue;
        }
        if seen.len() > MOST_FILES || stat.size > left {
            let why = "more programs than are looked at for copies of libraries";
            g.facts
                .unknown("openssl-copy", why, FactKind::Runtime, "/proc/PID/exe");
            return;
        }
        left -= stat.size;
        let Some(release) = release(g, &program.open) else {
            continue;
        };
        let path = program.path.to_string_lossy();
        let base = path.rsplit('/').next().unwrap_or_default();
        let common = COMMON.iter().any(|dir| path.starts_with(dir)) && is_common_path(&path);
        let (name, place) = match common {
            true => (base.to_owned(), FactPlace::from(path.as_ref())),
            false => (
                "a program of a user".to_owned(),
                FactPlace::from(program.open.to_string_lossy().as_ref()),
            ),
        };
        let count = names.entry(name.clone()).or_insert(0);
        *count += 1;
        let name = match *count {
            1 => name,
            count => format!("{name} ({count})"),
        };
        let key = format!("openssl-copy.{name}.release");
        g.facts.known(key, release, FactKind::Runtime, place);
        g.about(["openssl-copy", &name]);
    }
}

/// A file that may contain a copy of OpenSSL.
struct Program {
    /// Path that the fact contains.
    path: PathBuf,
    /// Path that is opened. It may differ from the reported path, because the file of a running process may be deleted
    /// or inside of a container.
    open: PathBuf,
}

/// Returns path and size of assay's own executable. `None` if assay does not collect from the machine on which it runs.
fn this_program(g: &Gather<'_>) -> Option<(PathBuf, u64)> {
    let own = Path::new("/proc/self/exe");
    let path = g.host.link(own).ok()?;
    Some((path, g.host.stat(own).ok()?.size))
}

/// Returns the executables of the running programs.
fn list_programs(g: &mut Gather<'_>) -> Vec<Program> {
    let mut found = Vec::new();
    let mut closed: Vec<HostError> = Vec::new();
    for name in g.host.list(Path::new("/proc")).unwrap_or_default() {
        let pid = lossy(&name);
        if pid.is_empty() || !pid.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let open = PathBuf::from(format!("/proc/{pid}/exe"));
        match g.host.link(&open) {
            Ok(path) => found.push(Program { path, open }),
            // Kernel threads and ended processes have no file.
            Err(error) => closed.extend(mapped::error_unless_ended(error)),
        }
    }
    if let Some(first) = closed.first() {
        let why = mapped::describe_unreadable(closed.len(), first);
        g.facts
            .unknown("openssl-copy", why, FactKind::Runtime, "/proc/PID/exe");
    }
    found
}

/// Returns the files in directories in which packages install nothing.
fn by_hand(g: &Gather<'_>) -> Vec<Program> {
    let list = |dir: &Path| {
        let names = g.host.list(dir).unwrap_or_default();
        names.into_iter().map(|name| dir.join(name)).collect()
    };
    let mut files: Vec<PathBuf> = Vec::new();
    for dir in BY_HAND {
        let entries: Vec<PathBuf> = list(Path::new(dir));
        if dir == "/opt" {
            for entry in &entries {
                files.extend(INSIDE.iter().flat_map(|inside| list(&entry.join(inside))));
            }
        }
        files.extend(entries);
    }
    files
        .into_iter()
        .map(|path| Program {
            open: path.clone(),
            path,
        })
        .collect()
}

/// Returns the version of the OpenSSL copy in a file; `None` if the file contains no copy. Searches only the parts that
/// are loaded as data when the program starts, because code and debug information are most of a file but contain no
/// texts.
fn release(g: &Gather<'_>, path: &Path) -> Option<String> {
    let mut found = Found::default();
    let mut parts = None;
    let mut position = 0;
    let scanned = g.host.scan(path, &mut |piece| {
        let parts: &Vec<Range<u64>> = parts.get_or_insert_with(|| parts_with_text(piece));
        let end = position + piece.len() as u64;
        let is_text = parts
            .iter()
            .any(|part| part.start < end && position < part.end);
        let is_last = parts.iter().all(|part| part.end <= end);
        // The next piece repeats the end of this one.
        position = end - REPEATED.min(piece.len()) as u64;
        match is_text && found.look(piece) || is_last {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    scanned.ok().and_then(|()| found.release())
}

/// Returns the byte ranges of a program file that may contain texts. `start` is the start of the file. A file that is
/// not a program has no ranges. If the header cannot be parsed, the range is the whole file.
fn parts_with_text(start: &[u8]) -> Vec<Range<u64>> {
    if !start.starts_with(&object::elf::ELFMAG) {
        return Vec::new();
    }
    let everything = 0..u64::MAX;
    let parts = loaded_parts::<FileHeader64<Endianness>>(start);
    parts
        .or_else(|| loaded_parts::<FileHeader32<Endianness>>(start))
        .unwrap_or_else(|| vec![everything])
}

fn loaded_parts<H: FileHeader<Endian = Endianness>>(start: &[u8]) -> Option<Vec<Range<u64>>> {
    let header = H::parse(start).ok()?;
    let endian = header.endian().ok()?;
    let all = header.program_headers(endian, start).ok()?;
    let is_loaded = |part: &&H::ProgramHeader| part.p_type(endian) == PT_LOAD;
    let may = |part: &H::ProgramHeader, flag| part.p_flags(endian).contains(flag);
    // Linkers put constants into a part of their own, or all into that of the code.
    let is_apart = |part: &H::ProgramHeader| !may(part, PF_W) && !may(part, PF_X);
    let has_constants = all.iter().filter(is_loaded).any(is_apart);
    let parts = all.iter().filter(is_loaded);
    let parts = parts.filter(|part| !has_constants || !may(part, PF_X));
    let range = |part: &H::ProgramHeader| {
        let (offset, size) = part.file_range(endian);
        offset..offset.saturating_add(size)
    };
    Some(parts.map(range).collect())
}

/// Versions from texts of OpenSSL that were found in a file so far.
#[derive(Default)]
struct Found {
    /// Version from a text that only the library itself contains.
    part: Option<String>,
    /// Version from a text that a dynamically linked program may contain too.
    banner: Option<String>,
    directory: bool,
}

impl Found {
    /// Searches a chunk of a file. Returns whether the search is complete.
    fn look(&mut self, piece: &[u8]) -> bool {
        let begins = |at: usize, letter: u8| at > 0 && piece[at - 1] == letter;
        self.directory =
            self.directory || memmem::find_iter(piece, DIRECTORY).any(|at| begins(at, b'O'));
        for at in memmem::find_iter(piece, BANNER).filter(|at| begins(*at, b'O')) {
            let Some(release) = parse_dated_version(&piece[at + BANNER.len()..]) else {
                continue;
            };
            match piece[..at - 1].ends_with(b" part of ") {
                true => self.part = Some(release),
                false => self.banner = Some(release),
            }
        }
        self.part.is_some() || self.directory && self.banner.is_some()
    }

    fn release(self) -> Option<String> {
        let linked_in = self.banner.filter(|_| self.directory);
        self.part.or(linked_in)
    }
}

/// Parses the version in a text such as `1.0.1f 6 Jan 2014`, the format of the library's header (OPENSSL_VERSION_TEXT).
fn parse_dated_version(text: &[u8]) -> Option<String> {
    let text = &text[..text.len().min(64)];
    let text = text.split(|byte| *byte == 0).next()?;
    let text = std::str::from_utf8(text).ok()?;
    let mut words = text.split_ascii_whitespace();
    let release = words.next()?;
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b".+-".contains(&byte);
    let version = release.starts_with(|c: char| c.is_ascii_digit())
        && release.matches('.').count() == 2
        && release.bytes().all(known);
    let day: u8 = words.next()?.parse().ok()?;
    let month = words.next()?;
    let year: String = words
        .next()?
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    let date = (1..=31).contains(&day) && month.len() == 3 && year.len() == 4;
    (version && date).then(|| release.to_owned())
}

fn is_common_path(path: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"/._+-".contains(&byte);
    path.len() <= 200 && path.bytes().all(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release_in(pieces: &[&[u8]]) -> Option<String> {
        let mut found = Found::default();
        pieces.iter().any(|piece| found.look(piece));
        found.release()
    }

    #[test]
    fn only_what_the_library_itself_has_counts() {
        let dir = b"\0OPENSSLDIR: \"/usr/lib/ssl\"\0";
        let banner = b"\0OpenSSL 3.0.15+quic 3 Sep 2024\0";
        assert_eq!(release_in(&[banner]), None);
        assert_eq!(release_in(&[dir]), None);
        assert_eq!(release_in(&[banner, dir]).as_deref(), Some("3.0.15+quic"));
        let part = b"x SHA1 part of OpenSSL 1.0.1f 6 Jan 2014\0";
        assert_eq!(release_in(&[part]).as_deref(), Some("1.0.1f"));
        for other in [
            &b"built with OpenSSL 1.1.1n  15 Mar 2022 (running with"[..],
            b"AES part of OpenSSL or something",
            b"AES part of OpenSSL 1.0 6 Jan 2014",
            b" part of LibreSSL 2.0.0 6 Jan 2014",
        ] {
            assert_eq!(
                release_in(&[other]),
                None,
                "{}",
                String::from_utf8_lossy(other)
            );
        }
    }

    #[test]
    #[allow(
        clippy::disallowed_methods,
        reason = "the test reads its own program, which is longer than a host reads at once"
    )]
    fn the_text_of_a_program_is_in_a_part_of_it() {
        const TEXT: &str = "the text of this test program in the part of its constants";
        let program = std::fs::read("/proc/self/exe").unwrap();
        let parts = parts_with_text(&program[..program.len().min(1 << 20)]);
        let at = memmem::find(&program, TEXT.as_bytes()).unwrap() as u64;
        assert!(parts.iter().any(|part| part.contains(&at)), "{parts:?}");
        let searched: u64 = parts.iter().map(|part| part.end - part.start).sum();
        assert!(searched < program.len() as u64 / 2, "{parts:?}");
        assert_eq!(parts_with_text(b"#!/bin/sh"), []);
        let everything = 0..u64::MAX;
        assert_eq!(parts_with_text(b"\x7fELF"), [everything]);
    }

    #[test]
    fn any_bytes_are_survived() {
        for end in 0..40 {
            let text = b"OpenSSL 1.0.1f 6 Jan 2014 OPENSSLDIR: \"";
            let _ = release_in(&[&text[end.min(text.len())..], &text[..end.min(text.len())]]);
        }
        assert_eq!(
            release_in(&[b"penSSL 1.0.1f 6 Jan 2014", b"PENSSLDIR: \""]),
            None
        );
    }
}
