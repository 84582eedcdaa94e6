//! Directory of a web server study: the served files, and one writable directory per server.

use crate::{BenchContext, StudyError};
use assay_changes::OwnDirectory;
use assay_host::Host;
use assay_model::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// User `nobody` and group `nogroup` in Debian, also the kernel's overflow id
/// (`/proc/sys/kernel/overflowuid`).
pub(super) const NOBODY: u32 = 65_534;

/// Returns whether assay runs as root, so that servers must run as another user.
pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Directory of the study, which contains the served files.
pub(super) struct Ground {
    dir: OwnDirectory,
    paths: Vec<String>,
}

impl Ground {
    /// Creates the directory with files of random bytes.
    ///
    /// # Errors
    /// The directory cannot be created, or the user of the servers cannot enter it.
    pub fn make(place: &BenchContext<'_>, files: u32, size: Bytes) -> Result<Self, StudyError> {
        let dir = place.scratch_dir("web")?;
        plain(dir.shown())?;
        if is_root() {
            open_to_all(dir.shown())?;
        }
        let ground = Self {
            paths: Vec::new(),
            dir,
        };
        let www = ground.dir.through().join("www");
        // The file names are unique on this machine, so a server that serves them is ours.
        let tag = ground.dir.name().to_string_lossy().replace('.', "");
        let within = www.join(&tag);
        mode(ground.dir.through(), 0o755)?;
        for made in [&www, &within] {
            fs::create_dir(made).map_err(StudyError::io(made))?;
            mode(made, 0o755)?;
        }
        let mut random = ChaCha8Rng::seed_from_u64(place.seed);
        let length = usize::try_from(size.0).unwrap_or(usize::MAX);
        let mut bytes = vec![0; length];
        let mut paths = Vec::new();
        for number in 1..=files {
            if number % 256 == 0 {
                place.go_on()?;
            }
            random.fill_bytes(&mut bytes);
            let file = within.join(number.to_string());
            fs::write(&file, &bytes).map_err(StudyError::io(&file))?;
            mode(&file, 0o644)?;
            paths.push(format!("/{tag}/{number}"));
        }
        Ok(Self { paths, ..ground })
    }

    /// Returns the URL paths of the files.
    pub fn paths(&self) -> &[String] {
        &self.paths
    }

    /// Returns the served directory.
    pub fn www(&self) -> PathBuf {
        self.dir.shown().join("www")
    }

    /// Creates two directories for a server: a read-only directory for its configuration, and a writable directory.
    ///
    /// # Errors
    /// The directories cannot be created.
    pub fn rooms(&self, name: &str) -> Result<[Room; 2], StudyError> {
        let room = |kind: &str, access: u32| -> Result<Room, StudyError> {
            let name = format!("{kind}-{name}");
            let held = self.dir.through().join(&name);
            match fs::create_dir(&held) {
                // The server is started again on another port.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                made => {
                    made.map_err(StudyError::io(&held))?;
                    mode(&held, access)?;
                }
            }
            Ok(Room {
                held,
                shown: self.dir.shown().join(&name),
            })
        };
        let [given, own] = [room("given", 0o755)?, room("own", 0o700)?];
        if is_root() {
            // Root writes nothing there: another process of nobody could redirect the writes.
            std::os::unix::fs::lchown(&own.held, Some(NOBODY), Some(NOBODY))
                .map_err(StudyError::io(&own.held))?;
        }
        Ok([given, own])
    }
}

/// A directory of one server, inside the study's directory.
pub(super) struct Room {
    /// Path through the open descriptor, which assay uses.
    pub held: PathBuf,
    /// Plain path, which the server uses.
    pub shown: PathBuf,
}

fn mode(path: &Path, mode: u32) -> Result<(), StudyError> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(StudyError::io(path))
}

fn refused_directory(path: &Path, why: &str) -> StudyError {
    StudyError::measure(
        path.display().to_string().escape_debug().to_string(),
        format!("{why}: name another directory, such as /var/tmp"),
    )
}

/// Refuses a path with special characters, because the path is written into configuration files with six different
/// syntaxes.
fn plain(path: &Path) -> Result<(), StudyError> {
    let fine = |c: char| c.is_alphanumeric() || "/._-+@~".contains(c);
    match path.to_str().is_some_and(|text| text.chars().all(fine)) {
        true => Ok(()),
        false => Err(refused_directory(
            path,
            "the path has characters that mean something in the servers' configuration files",
        )),
    }
}

/// Checks that the user `nobody` can enter every parent directory. Servers run as `nobody` if assay runs as root.
fn open_to_all(path: &Path) -> Result<(), StudyError> {
    for above in path.ancestors().skip(1) {
        let found = fs::metadata(above).map_err(StudyError::io(above))?;
        if found.mode() & 0o001 == 0 {
            return Err(refused_directory(
                path,
                &format!(
                    "the servers run as the user nobody, who may not enter {}",
                    above.display().to_string().escape_debug()
                ),
            ));
        }
    }
    Ok(())
}

/// Returns the number of CPUs for which the kernel counts time.
pub(super) fn count_cpus(host: &dyn Host) -> u32 {
    let stat = host.read_text(Path::new("/proc/stat")).unwrap_or_default();
    let is_cpu = |line: &&str| {
        let rest = line.strip_prefix("cpu");
        rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    u32::try_from(stat.lines().filter(is_cpu).count()).unwrap_or(1)
}

/// Returns the load average of the last minute (proc_loadavg(5)).
pub(super) fn load_average(host: &dyn Host) -> f64 {
    let text = host.read_text(Path::new("/proc/loadavg"));
    let text = text.unwrap_or_default();
    let first = text.split_whitespace().next();
    first.and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_a_configuration_file_would_misread_is_refused() {
        for fine in ["/tmp/.assay-0123-web", "/srv/Bücher_1/x+y@z~"] {
            plain(Path::new(fine)).unwrap();
        }
        for wrong in [
            "/a b", "/a\"b", "/a;b", "/a{b", "/a$b", "/a\nb", "/a#b", "/a%b",
        ] {
            let told = plain(Path::new(wrong)).unwrap_err().to_string();
            assert!(told.contains("/var/tmp") && !told.contains('\n'), "{told}");
        }
    }

    #[test]
    fn a_directory_that_is_closed_to_others_is_refused_with_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let within = dir.path().join("a").join("b");
        fs::create_dir_all(&within).unwrap();
        for (above, found) in [(0o700, false), (0o711, true)] {
            fs::set_permissions(dir.path(), fs::Permissions::from_mode(above)).unwrap();
            assert_eq!(open_to_all(&within).is_ok(), found);
        }
    }
}
