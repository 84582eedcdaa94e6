//! Redacts error messages of tools (standard error): keeps the kind of an error, and the line number of a well-known
//! file. All other text is dropped, because tools quote their input, such as a password in main.cf or an address with a
//! user name.

use crate::collectors::tools;

/// Kinds of errors, each with lower-case phrases that identify it. The first match applies: if a phrase of one kind
/// contains a phrase of another, the kind with the longer phrase is listed first.
pub(crate) const KINDS: &[(&str, &[&str])] = &[
    ("permission denied", &["permission denied", "access denied"]),
    ("operation not permitted", &["operation not permitted"]),
    (
        "must be root",
        &[
            "must be root",
            "are you root",
            "root privileges",
            "superuser",
            "only root",
        ],
    ),
    ("no such device or address", &["no such device or address"]),
    ("no such device", &["no such device"]),
    ("no such process", &["no such process"]),
    (
        "too many levels of symbolic links",
        &["too many levels of symbolic links"],
    ),
    (
        "a shared library is missing",
        &[
            "a shared library is missing",
            "error while loading shared libraries",
            "cannot open shared object",
        ],
    ),
    (
        "the kernel module is not loaded",
        &[
            "the kernel module is not loaded",
            "modules are not loaded",
            "modules cannot be auto-loaded",
            "module not loaded",
            "modprobe:",
        ],
    ),
    (
        "no such pool or dataset",
        &["no such pool", "dataset does not exist"],
    ),
    ("no pools available", &["no pools available"]),
    ("no datasets available", &["no datasets available"]),
    ("mail system is down", &["mail system is down"]),
    ("no medium found", &["no medium found"]),
    ("bad magic number", &["bad magic number"]),
    (
        "not a valid device",
        &["not a valid device", "is not a valid luks device"],
    ),
    (
        "no such file or directory",
        &["no such file", "cannot find the path"],
    ),
    (
        "not found",
        &["not found", "does not exist", "doesn't exist"],
    ),
    ("not a directory", &["not a directory"]),
    ("is a directory", &["is a directory"]),
    ("input/output error", &["input/output error", "i/o error"]),
    ("invalid argument", &["invalid argument"]),
    ("file name too long", &["file name too long"]),
    ("no space left on device", &["no space left on device"]),
    ("read-only file system", &["read-only file system"]),
    (
        "device or resource busy",
        &["device or resource busy", "is busy"],
    ),
    ("too many open files", &["too many open files"]),
    (
        "out of memory",
        &["out of memory", "cannot allocate memory"],
    ),
    ("connection refused", &["connection refused"]),
    ("connection reset", &["connection reset"]),
    (
        "connection failed",
        &[
            "connection failed",
            "failed to connect",
            "could not connect",
            "cannot connect",
        ],
    ),
    (
        "name resolution failed",
        &[
            "name resolution failed",
            "name resolution",
            "name or service not known",
        ],
    ),
    (
        "network is unreachable",
        &["network is unreachable", "no route to host"],
    ),
    ("timed out", &["timed out", "timeout"]),
    (
        "unknown option",
        &[
            "unknown option",
            "unrecognized option",
            "unrecognised option",
            "invalid option",
            "illegal option",
            "bad configuration option",
        ],
    ),
    (
        "unknown command",
        &[
            "unknown command",
            "unrecognized command",
            "unknown subcommand",
        ],
    ),
    (
        "unused parameter",
        &["unused parameter", "undefined parameter"],
    ),
    ("deprecated", &["deprecated"]),
    (
        "syntax error",
        &[
            "syntax error",
            "missing '='",
            "parse error",
            "unexpected",
            "bad substitution",
            "unterminated",
        ],
    ),
    (
        "bad value",
        &[
            "bad value",
            "invalid value",
            "bad numerical",
            "bad boolean",
            "invalid number",
            "bad string",
        ],
    ),
    ("wrong usage", &["wrong usage", "usage:"]),
    (
        "not supported",
        &[
            "not supported",
            "unsupported",
            "not implemented",
            "unavailable",
        ],
    ),
    ("corrupted", &["corrupted", "checksum", "damaged"]),
    ("broken pipe", &["broken pipe"]),
    ("segmentation fault", &["segmentation fault"]),
    ("killed", &["killed", "terminated"]),
];

/// Files that exist on every machine, whose names are therefore not private.
pub(crate) const FILES: [&str; 12] = [
    "/etc/postfix/main.cf",
    "/etc/postfix/master.cf",
    "/etc/ssh/sshd_config",
    "/etc/ssh/ssh_config",
    "/etc/dovecot/dovecot.conf",
    "/etc/nginx/nginx.conf",
    "/etc/samba/smb.conf",
    "/etc/lvm/lvm.conf",
    "/etc/lvm/lvmlocal.conf",
    "/etc/mysql/my.cnf",
    "/etc/libvirt/libvirtd.conf",
    "/etc/multipath.conf",
];

/// Replaces an error of unknown kind.
pub(crate) const OTHER: &str = "a complaint that is not repeated here";

/// Limits: maximum number of lines that are read (`LINES`), and maximum number of bytes of a line (`BYTES`).
const LINES: usize = 100;
const BYTES: usize = 4096;

/// Words without digits that occur in the output of version commands and are kept.
pub(crate) const VERSION_WORDS: &str = "
fio qemu-img qemu-storage-daemon version btrfs-progs zfs zfs-kmod mke2fs mkfs.xfs mkfs.btrfs mkfs.ext4 part of nginx
OpenSSH OpenSSL LibreSSL Debian Ubuntu pgbench PostgreSQL mariadbd mysqld Ver Distrib for on Linux debian-linux-gnu
x86_64 aarch64 amd64 arm64 source revision release built with and using Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec
FreeBSD-openssh-portable Fedora Alpine Arch RHEL";

/// Redacts the error messages of a tool: returns one line per message, which contains only the kind of the error. For a
/// version command, returns the version.
pub(super) fn complaint(argv: &[&str], stderr: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(stderr);
    if tools::is_version(argv) {
        return version(&text).into_bytes();
    }
    let mut kinds: Vec<String> = Vec::new();
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let mut any = false;
    for line in lines.take(LINES) {
        any = true;
        if let Some(kind) = find_kind(line)
            && !kinds.contains(&kind)
        {
            kinds.push(kind);
        }
    }
    if any && kinds.is_empty() {
        kinds.push(OTHER.to_owned());
    }
    kinds
        .iter()
        .map(|kind| format!("{kind}\n"))
        .collect::<String>()
        .into_bytes()
}

/// Returns the kind of one error, with the file and line that the message contains.
fn find_kind(line: &str) -> Option<String> {
    let end = (0..=BYTES.min(line.len()))
        .rev()
        .find(|at| line.is_char_boundary(*at));
    let line = &line[..end.unwrap_or_default()];
    let small = line.to_ascii_lowercase();
    let has = |needles: &[&str]| needles.iter().any(|needle| small.contains(needle));
    let (kind, _) = KINDS.iter().find(|(_, needles)| has(needles))?;
    Some(format!("{kind}{}", find_place(line)))
}

/// Returns ` in FILE line NUMBER` for the first file in the line that is in [`FILES`].
fn find_place(line: &str) -> String {
    let named = FILES.iter().find_map(|file| {
        let (_, rest) = line.split_once(file)?;
        let more = rest.starts_with(|c: char| c.is_ascii_alphanumeric() || "_.-/".contains(c));
        (!more).then_some((file, rest))
    });
    let Some((file, rest)) = named else {
        return String::new();
    };
    let behind = [" line ", ": line ", ", line ", ":"];
    let number = behind.iter().find_map(|word| {
        let rest = rest.strip_prefix(word)?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        (1..=6).contains(&digits).then(|| &rest[..digits])
    });
    match number {
        Some(number) => format!(" in {file} line {number}"),
        None => format!(" in {file}"),
    }
}

/// Keeps the words of the first line that belong to a version.
pub(super) fn version(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty());
    let words = line.unwrap_or_default().split_whitespace().take(20);
    let words: Vec<&str> = words.filter_map(of_version).collect();
    match words.is_empty() {
        true => String::new(),
        false => words.join(" ") + "\n",
    }
}

/// Returns the word if it may be part of a version. Of a path, as mariadbd prints it, returns the last component.
fn of_version(word: &str) -> Option<&str> {
    let last = || word.rsplit('/').next().unwrap_or_default();
    let word = if word.starts_with('/') { last() } else { word };
    is_of_version(word).then_some(word)
}

fn is_of_version(word: &str) -> bool {
    let core = word.trim_matches(['(', ')', ',', ';', ':']);
    let known = |word: &str| {
        VERSION_WORDS
            .split_ascii_whitespace()
            .any(|one| one == word)
    };
    if known(core) {
        return true;
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || ".+:~-".contains(c);
    if core.is_empty() || core.len() > 40 {
        return false;
    }
    let hash = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    if word == format!("({core})") && (6..=12).contains(&core.len()) && core.chars().all(hash) {
        return true;
    }
    // A number, alone or after the name of a program: `nginx/1.22.1`, `OpenSSH_9.2p1`,
    // `Debian-2+deb12u3`.
    let numbers = core
        .split_once(['/', '_', '-'])
        .filter(|(name, _)| known(name));
    let number = numbers.map_or(core, |(_, number)| number);
    let number = number.strip_prefix('v').unwrap_or(number);
    let digits = number.bytes().take_while(u8::is_ascii_digit).count();
    (1..=4).contains(&digits) && number.chars().all(plain) && {
        let rest = &number[digits..];
        rest.is_empty()
            || rest.starts_with(['.', ':', '+', '-']) && (numbers.is_some() || rest.len() > 1)
    }
}
