//! Shells and awk implementations that other machines may have. Scripts that assay runs on other machines are tested
//! with every shell and every awk, because each implementation rejects something that the others accept.

use crate::servers::{copy_executable, find};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// The shells of Debian, of Red Hat, and of small systems.
const SHELLS: [&str; 3] = ["dash", "bash", "busybox"];

/// The awk implementations of Debian, Red Hat, small systems, and the BSDs.
const AWKS: [&str; 4] = ["mawk", "gawk", "busybox", "original-awk"];

/// A shell, with the awk that its scripts use.
#[derive(Clone, Debug)]
pub struct Pair {
    /// Names of the shell and the awk, for messages.
    pub name: String,
    shell: PathBuf,
    awk: PathBuf,
}

/// Returns all installed pairs of shell and awk. Reports missing programs as skipped.
#[must_use]
pub fn shell_awk_pairs() -> Vec<Pair> {
    let (shells, awks) = find_programs();
    let each = shells.iter();
    each.flat_map(|shell| awks.iter().map(move |awk| to_pair(shell, awk)))
        .collect()
}

/// Returns the smallest list of pairs that contains every installed shell and every installed awk. Intended for tests
/// whose runs take seconds.
#[must_use]
pub fn each_shell_and_awk() -> Vec<Pair> {
    let (shells, awks) = find_programs();
    let most = match shells.is_empty() || awks.is_empty() {
        true => 0,
        false => shells.len().max(awks.len()),
    };
    (0..most)
        .map(|number| to_pair(&shells[number % shells.len()], &awks[number % awks.len()]))
        .collect()
}

type Program = (String, PathBuf);

/// Returns the installed shells and the installed awk implementations.
fn find_programs() -> (Vec<Program>, Vec<Program>) {
    let installed = |names: &[&str]| -> Vec<Program> {
        let path = |name: &&str| {
            let found = find(name);
            if found.is_none() {
                crate::skipped(name, "not installed");
            }
            Some(((*name).to_owned(), found?))
        };
        names.iter().filter_map(path).collect()
    };
    (installed(&SHELLS), installed(&AWKS))
}

fn to_pair((shell, shell_path): &Program, (awk, awk_path): &Program) -> Pair {
    Pair {
        name: format!("{shell} and {awk}"),
        shell: shell_path.clone(),
        awk: awk_path.clone(),
    }
}

impl Pair {
    /// Returns a command for the shell. PATH starts with a directory in which `sh` is this shell and `awk` is this awk.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub fn command(&self, links: &Path) -> io::Result<Command> {
        fs::create_dir_all(links)?;
        for (program, link) in [(&self.awk, "awk"), (&self.shell, "sh")] {
            let link = links.join(link);
            let _ = fs::remove_file(&link);
            symlink(program, link)?;
        }
        let mut path = OsString::from(links);
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut command = Command::new(&self.shell);
        command.args(self.arguments()).env("PATH", path);
        Ok(command)
    }

    fn arguments(&self) -> Option<&'static str> {
        (self.shell.file_name()? == "busybox").then_some("sh")
    }

    /// Returns a prefix for scripts that selects the awk. It is a shell function, because busybox's shell prefers its
    /// built-in awk to the awk in PATH, but not to a function.
    #[must_use]
    pub fn before(&self, links: &Path) -> String {
        match self.arguments() {
            Some(_) => format!("awk() {{ '{}/awk' \"$@\"; }}\n", links.display()),
            None => String::new(),
        }
    }

    /// Installs the shell and the awk with their libraries in a root directory, as `/bin/sh` and `/bin/awk`. Returns
    /// the command that starts the shell in that root.
    ///
    /// # Errors
    /// A file cannot be copied.
    pub fn furnish(&self, root: &Path) -> io::Result<Command> {
        for (program, link) in [(&self.awk, "awk"), (&self.shell, "sh")] {
            let at = copy_program(program, root)?;
            let link = root.join("bin").join(link);
            let _ = fs::remove_file(&link);
            symlink(at, link)?;
        }
        let mut command = Command::new("chroot");
        command
            .arg(root)
            .arg("/bin/sh")
            .args(self.arguments().map(|_| "-s"));
        Ok(command)
    }
}

/// Copies a program with its libraries into the `/bin` of a root, and returns its path there.
///
/// # Errors
/// A file cannot be copied.
pub fn copy_program(program: &Path, root: &Path) -> io::Result<PathBuf> {
    let at = Path::new("/bin").join(program.file_name().unwrap_or_default());
    let to = root.join(at.strip_prefix("/").unwrap_or(&at));
    if !to.exists() {
        copy_executable(program, &to)?;
    }
    for library in list_libraries(program)? {
        let to = root.join(library.strip_prefix("/").unwrap_or(&library));
        if !to.exists() {
            fs::create_dir_all(to.parent().unwrap_or(root))?;
            copy_executable(&library, &to)?;
        }
    }
    Ok(at)
}

/// Returns the library paths of a program, as its loader prints them; empty for a static program. `ldd` starts several
/// processes, so it runs once per program: tests furnish hundreds of roots.
fn list_libraries(program: &Path) -> io::Result<Vec<PathBuf>> {
    static LISTED: Mutex<BTreeMap<PathBuf, Vec<PathBuf>>> = Mutex::new(BTreeMap::new());
    let mut listed = LISTED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = listed.get(program) {
        return Ok(known.clone());
    }
    let output = Command::new("ldd").arg(program).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let words = text.split_whitespace();
    let found: Vec<PathBuf> = words
        .filter(|word| word.starts_with('/'))
        .map(PathBuf::from)
        .collect();
    listed.insert(program.to_owned(), found.clone());
    Ok(found)
}
