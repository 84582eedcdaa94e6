//! A host that passes calls to another host, and copies all answers into a directory that [`crate::Root`] can read.

use crate::capture::{CaptureError, Command, Fault, INDEX, Index, Node, SCHEMA, resolve};
use crate::error::HostError;
use crate::held::Directory;
use crate::{CommandOutput, FileKind, Host, Limits, Stat, StatFs};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Passes calls to another host, and stores the answers. A host that removes secrets must be the inner host, so that no
/// secret is stored.
pub struct Recording<'a> {
    inner: &'a dyn Host,
    /// Directory of the recording, as a path through a file descriptor. This path remains valid after a rename.
    dir: PathBuf,
    _held: Directory,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    index: Index,
    /// Error of the first file that could not be written.
    failed: Option<CaptureError>,
}

impl<'a> Recording<'a> {
    /// Creates a recording in a directory. The directory is created, or must be empty.
    ///
    /// # Errors
    /// The directory cannot be created, is not empty, or others can write to it.
    pub fn new(inner: &'a dyn Host, dir: &Path) -> Result<Self, CaptureError> {
        let io = |source| CaptureError::Io {
            path: dir.to_owned(),
            source,
        };
        let dir = std::path::absolute(dir).map_err(io)?;
        let held = crate::output::open_own_directory(&dir)?;
        if !held.list()?.is_empty() {
            return Err(CaptureError::NotEmpty { path: dir });
        }
        Ok(Self {
            inner,
            dir: held.through(),
            _held: held,
            state: Mutex::default(),
        })
    }

    /// Writes the index, which completes the recording. `withheld` contains the paths and command lines of which some
    /// or all content was dropped, each with the reason.
    ///
    /// # Errors
    /// The first file that could not be written.
    pub fn finish(self, withheld: BTreeMap<String, String>) -> Result<(), CaptureError> {
        let state = self
            .state
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = state.failed {
            return Err(error);
        }
        let mut index = state.index;
        index.schema = SCHEMA;
        index.withheld = withheld;
        index.commands.sort_by(|a, b| a.argv.cmp(&b.argv));
        let path = self.dir.join(INDEX);
        let text = serde_json::to_string_pretty(&index).map_err(|error| CaptureError::Index {
            path: path.clone(),
            source: error.into(),
        })?;
        std::fs::write(&path, text + "\n").map_err(|source| CaptureError::Io { path, source })
    }

    fn with(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn write(&self, path: &Path, action: impl FnOnce() -> std::io::Result<()>) {
        if let Err(source) = action() {
            let error = CaptureError::Io {
                path: path.to_owned(),
                source,
            };
            self.with(|state| {
                state.failed.get_or_insert(error);
            });
        }
    }

    /// Copies the links in `path` into the directory. Returns the path under which the content of `path` must be
    /// stored.
    fn mirror(&self, path: &Path, follow_last: bool) -> Result<PathBuf, HostError> {
        let inside = resolve(path, follow_last, |candidate| {
            let Ok(target) = self.inner.link(candidate) else {
                return Ok(Node::Here);
            };
            let copy = self.outside(candidate);
            self.write(&copy, || {
                std::fs::create_dir_all(copy.parent().unwrap_or(&self.dir))?;
                match copy.is_symlink() {
                    true => Ok(()),
                    false => match std::os::unix::fs::symlink(&target, &copy) {
                        // Another thread was faster.
                        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
                        other => other,
                    },
                }
            });
            Ok(Node::Link(target))
        })?;
        let copy = self.outside(&inside);
        self.write(&copy, || {
            std::fs::create_dir_all(copy.parent().unwrap_or(&self.dir))
        });
        Ok(copy)
    }

    fn outside(&self, inside: &Path) -> PathBuf {
        self.dir.join(inside.strip_prefix("/").unwrap_or(inside))
    }

    /// Stores the error of a path in the index. A missing path needs no entry.
    fn fault<T>(&self, path: &Path, answer: &Result<T, HostError>) {
        let Err(error) = answer else { return };
        if !error.is_absent() {
            let fault = Fault {
                errno: error.errno(),
                reason: error.reason(),
            };
            self.with(|state| {
                state
                    .index
                    .errors
                    .insert(path.to_string_lossy().into_owned(), fault);
            });
        }
    }
}

impl Host for Recording<'_> {
    fn read(&self, path: &Path) -> Result<Vec<u8>, HostError> {
        let answer = self.inner.read(path);
        self.fault(path, &answer);
        if let Ok(bytes) = &answer
            && let Ok(copy) = self.mirror(path, true)
        {
            self.write(&copy, || std::fs::write(&copy, bytes));
        }
        answer
    }

    fn list(&self, dir: &Path) -> Result<Vec<OsString>, HostError> {
        let answer = self.inner.list(dir);
        self.fault(dir, &answer);
        if let Ok(names) = &answer
            && let Ok(copy) = self.mirror(dir, true)
        {
            self.write(&copy, || std::fs::create_dir_all(&copy));
            // Links and directories are copied; a file is empty until it is read.
            for path in names.iter().map(|name| dir.join(name)) {
                let Ok(place) = self.mirror(&path, false) else {
                    continue;
                };
                if place.is_symlink() {
                    continue;
                }
                let stat = self.inner.stat(&path);
                // A process that has ended: an earlier copy stays.
                if stat.as_ref().is_err_and(HostError::is_absent) {
                    continue;
                }
                match stat.is_ok_and(|stat| stat.kind == FileKind::Directory) {
                    true => self.write(&place, || std::fs::create_dir_all(&place)),
                    false => self.write(&place, || {
                        std::fs::OpenOptions::new()
                            .append(true)
                            .create(true)
                            .open(&place)
                            .map(drop)
                    }),
                }
            }
        }
        answer
    }

    fn link(&self, path: &Path) -> Result<PathBuf, HostError> {
        // The copy shows that an object is not a link; as an error it would hide the content.
        let answer = self.inner.link(path);
        if answer.is_ok() {
            let _ = self.mirror(path, true);
        }
        answer
    }

    fn realpath(&self, path: &Path) -> Result<PathBuf, HostError> {
        let answer = self.inner.realpath(path);
        self.fault(path, &answer);
        if let Ok(real) = &answer {
            let copy = self.mirror(path, true);
            match (self.inner.stat(real), copy) {
                (Ok(stat), Ok(copy)) if stat.kind == FileKind::Directory => {
                    self.write(&copy, || std::fs::create_dir_all(&copy));
                }
                (Ok(stat), _) => {
                    let key = real.to_string_lossy().into_owned();
                    self.with(|state| {
                        state.index.stat.insert(key, stat);
                    });
                }
                (Err(_), _) => {}
            }
        }
        answer
    }

    fn stat(&self, path: &Path) -> Result<Stat, HostError> {
        let answer = self.inner.stat(path);
        self.fault(path, &answer);
        if let Ok(stat) = &answer {
            let _ = self.mirror(path, true);
            self.with(|state| {
                state
                    .index
                    .stat
                    .insert(path.to_string_lossy().into_owned(), *stat);
            });
        }
        answer
    }

    fn statfs(&self, path: &Path) -> Result<StatFs, HostError> {
        let answer = self.inner.statfs(path);
        if let Ok(statfs) = &answer {
            self.with(|state| {
                state
                    .index
                    .statfs
                    .insert(path.to_string_lossy().into_owned(), *statfs);
            });
        }
        answer
    }

    fn open_exclusive(&self, path: &Path) -> Result<(), HostError> {
        self.inner.open_exclusive(path)
    }

    fn run(&self, argv: &[&OsStr], limits: Limits) -> Result<CommandOutput, HostError> {
        let answer = self.inner.run(argv, limits);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut command = Command {
            argv: argv
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            status: None,
            stdout: String::new(),
            stderr: String::new(),
            error: String::new(),
            lines: Vec::new(),
        };
        match &answer {
            Ok(output) => {
                command.status = Some(output.status);
                command.stdout = text(&output.stdout);
                command.stderr = text(&output.stderr);
            }
            Err(error) if error.is_absent() => return answer,
            Err(error) => command.error = error.reason(),
        }
        self.with(|state| state.index.commands.push(command));
        answer
    }

    fn which(&self, name: &OsStr) -> Option<PathBuf> {
        self.inner.which(name)
    }
}
