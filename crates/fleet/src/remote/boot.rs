//! Bootstrap on the remote machine. A script for any POSIX shell finds a directory from which programs can be executed,
//! receives the program, compares its SHA-256, and executes it.
//!
//! A shell may read its input ahead. Therefore the script is one compound command, which the shell reads completely
//! before running it. The client sends nothing more until the script has printed a line.

use crate::remote::program::{Program, family};
use assay_render::text::escape_line;

/// Prefix of every line that the script prints. A login shell may print other lines before the script's first line.
const MARK: &str = "assay-remote 1 ";

/// Directories that the script tries for the program, in order of preference: first on disk, then in memory.
const PLACES: &str = "/tmp /var/tmp \"${HOME:-/}\" \"${XDG_RUNTIME_DIR:-/}\" /run";

/// Returns the bootstrap script for a program. `silence` is the maximum time without contact in seconds.
#[must_use]
pub fn script(program: &Program, silence: u64) -> String {
    let (size, sum) = (program.size, &program.sha256);
    // Twice the size of the program, for further files: plans and the store.
    let need = (size >> 10) + (64 << 10);
    format!(
        r#"{{
set -u
umask 077
say() {{ printf '{MARK}%s\n' "$*"; }}
d=
# Who asked may be gone at any time.
trap '[ -z "$d" ] || rm -rf "$d"; exit 1' HUP INT TERM PIPE
for base in {PLACES}; do
  [ "$base" != / ] && [ -d "$base" ] && [ -w "$base" ] || continue
  d=$(mktemp -d "$base/assay-remote.XXXXXXXXXX" 2>/dev/null) || {{ d=; continue; }}
  if printf '#!/bin/sh\nexit 0\n' 2>/dev/null >"$d/try" && chmod 700 "$d/try" && "$d/try" 2>/dev/null; then
    free=$(df -Pk "$d" 2>/dev/null | awk 'NR == 2 {{ print $4 }}')
    case $free in
      '' | *[!0-9]*) free=0 ;;
    esac
    [ "$free" -ge {need} ] && break
  fi
  rm -rf "$d"
  d=
done
[ -n "$d" ] || {{ say "no-place $(uname -m)"; exit 1; }}
rm -f "$d/try"
say "place $(uname -m) $d"
head -c {size} >"$d/assay"
sum=$(sha256sum <"$d/assay") || {{ rm -rf "$d"; say no-sha256sum; exit 1; }}
case $sum in
  "{sum} "*) ;;
  *) rm -rf "$d"; say bad-sum; exit 1 ;;
esac
chmod 700 "$d/assay"
say starts
"$d/assay" dev remote --dir "$d" --silence {silence}
status=$?
rm -rf "$d"
exit $status
}}
"#
    )
}

/// A line that the bootstrap script or the started program prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// The script found a directory that has room for the program and permits execution.
    Place {
        /// Processor architecture, as `uname -m` prints it.
        machine: String,
        /// Absolute path of the directory.
        dir: String,
    },
    /// No directory has enough room and permits execution.
    NoPlace,
    /// The machine has no tool to compute SHA-256.
    NoSum,
    /// The SHA-256 of the received program differs from the SHA-256 of the sent program.
    BadSum,
    /// The program is about to start.
    Starts,
    /// The started program is running. Contains its version.
    Ready(String),
}

/// Returns the line that the program prints before its first frame.
#[must_use]
pub fn ready(version: &str) -> String {
    format!("{MARK}ready {version}\n")
}

/// Parses a line; returns `None` for other output.
#[must_use]
pub fn read(line: &str) -> Option<Said> {
    // Shell output without a line end may precede the mark.
    let (_, words) = line.trim_end().rsplit_once(MARK)?;
    let (word, rest) = words.split_once(' ').unwrap_or((words, ""));
    match word {
        "place" => {
            let (machine, dir) = rest.split_once(' ')?;
            let plain = |text: &str| !text.contains(char::is_control);
            let good = dir.starts_with('/') && dir.contains("/assay-remote.") && plain(dir);
            good.then(|| Said::Place {
                machine: escape_line(machine),
                dir: dir.to_owned(),
            })
        }
        "no-place" => Some(Said::NoPlace),
        "no-sha256sum" => Some(Said::NoSum),
        "bad-sum" => Some(Said::BadSum),
        "starts" => Some(Said::Starts),
        "ready" => Some(Said::Ready(escape_line(rest))),
        _ => None,
    }
}

/// Returns whether a program can run on a machine with this output of `uname -m`. An unknown architecture is accepted.
#[must_use]
pub fn fits(program: &Program, uname: &str) -> bool {
    match (program.machine, family(uname)) {
        (Some(program), Some(there)) => program == there,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::process::Stdio;

    #[test]
    fn its_lines_are_found_behind_what_shells_print() {
        let place = Said::Place {
            machine: "x86_64".to_owned(),
            dir: "/tmp/assay-remote.abc".to_owned(),
        };
        assert_eq!(
            read("Welcome! assay-remote 1 place x86_64 /tmp/assay-remote.abc\r\n"),
            Some(place)
        );
        assert_eq!(read("assay-remote 1 starts\n"), Some(Said::Starts));
        assert_eq!(read(&ready("0.2.0")), Some(Said::Ready("0.2.0".to_owned())));
        for odd in [
            "",
            "starts",
            "assay-remote 1 place",
            "assay-remote 1 place x86_64 relative/assay-remote.x",
            "assay-remote 1 place x86_64 /etc",
            "assay-remote 2 starts",
        ] {
            assert_eq!(read(odd), None, "{odd:?}");
        }
    }

    #[test]
    fn the_script_is_one_command() {
        let program = Program::open(std::path::Path::new("/proc/self/exe")).unwrap();
        let script = script(&program, 60);
        assert!(script.starts_with("{\n") && script.ends_with("\n}\n"));
    }

    /// Runs the script with each shell and each awk. It must find a directory, receive the program, execute it and
    /// leave no file.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "the test runs the script")]
    fn each_shell_and_awk_starts_the_program() {
        let program = Program::open(std::path::Path::new("/bin/true")).unwrap();
        let bytes = std::fs::read("/bin/true").unwrap();
        let links = tempfile::tempdir().unwrap();
        for pair in assay_testing::servers::shells::shell_awk_pairs() {
            let mut shell = pair.command(links.path()).unwrap();
            shell
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            let mut child = shell.spawn().unwrap();
            let mut to = child.stdin.take().unwrap();
            let mut from = BufReader::new(child.stdout.take().unwrap());
            let script = pair.before(links.path()) + &script(&program, 60);
            to.write_all(script.as_bytes()).unwrap();
            let mut line = String::new();
            from.read_line(&mut line).unwrap();
            let name = &pair.name;
            let Some(Said::Place { dir, .. }) = read(&line) else {
                panic!("{name}: {line}");
            };
            to.write_all(&bytes).unwrap();
            let mut rest = String::new();
            from.read_to_string(&mut rest).unwrap();
            assert_eq!(read(&rest), Some(Said::Starts), "{name}: {rest}");
            let output = child.wait_with_output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{name}");
            assert!(output.status.success(), "{name}");
            assert!(!std::path::Path::new(&dir).exists(), "{name}");
        }
    }
}
