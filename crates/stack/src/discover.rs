//! Finding the layers: one file per kind of thing.

mod crypt;
mod device;
mod disk;
mod file;
mod filesystem;
mod guest;
mod image;
mod lvm;
mod users;
mod zfs;

use assay_facts::Redacted;
use assay_facts::block::Device;
use assay_facts::lvm::Row;
use assay_facts::mountinfo::{self, Mount};
use assay_host::{CommandOutput, FileKind, Host, HostError, Limits};
use assay_model::stack::{Layer, LayerKind, Stack};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use guest::RUNS;
pub use users::find_users;

/// What the layers are wanted of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StackTarget {
    /// An absolute path: a directory, a file, an image, a block device.
    Path(PathBuf),
    /// A virtual machine: its libvirt name, its number on Proxmox, its process number, or what
    /// QEMU's `-name` says.
    Guest(String),
}

/// Why there is no stack.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StackError {
    /// Nothing is there, or it is no storage, or nothing can be read at all.
    #[error(transparent)]
    Path(#[from] assay_facts::TargetError),
    /// There is no such virtual machine.
    #[error(
        "no virtual machine {name:?} is running or defined here{}",
        describe_others(known)
    )]
    NoGuest {
        /// What was asked for.
        name: String,
        /// Those that are there.
        known: Vec<String>,
    },
    /// Several fit.
    #[error(
        "{name:?} is the name of several virtual machines: give the process number of one: {pids:?}"
    )]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// Their process numbers.
        pids: Vec<u32>,
    },
    /// Processes cannot be listed.
    #[error("virtual machines cannot be looked for: {0}")]
    Unreadable(#[source] HostError),
}

fn describe_others(known: &[String]) -> String {
    match known {
        [] => String::new(),
        known => format!("; there are {}", known.join(", ")),
    }
}

/// Finds the layers under a target. What cannot be found out is said in [`Layer::unknown`]. The machine
/// is seen through [`Redacted`], so no layer can say what is not known to be harmless.
///
/// # Errors
/// The target is not there, or the machine cannot be read at all.
pub fn discover(host: &dyn Host, target: &StackTarget) -> Result<Stack, StackError> {
    let redacted = Redacted::new(host, true);
    let mut finder = Finder::new(&redacted);
    finder.headers = Some(host);
    match target {
        StackTarget::Path(path) => {
            finder.stack.target = path.to_string_lossy().into_owned();
            finder.target(path)?;
        }
        StackTarget::Guest(name) => {
            finder.stack.target.clone_from(name);
            finder.guest(name)?;
        }
    }
    Ok(finder.stack)
}

/// Layers upon layers beyond this are taken for a circle.
const DEPTH: usize = 48;
/// More layers than any machine has under one target.
const MANY: usize = 4096;

/// Some tools look at every device of the machine first.
const LIMITS: Limits = Limits {
    timeout: Duration::from_secs(20),
};

/// Looks at a machine and remembers what it has seen.
struct Finder<'a> {
    host: &'a dyn Host,
    /// Where headers of images are read: they are bytes, of which numbers and a name are taken.
    headers: Option<&'a dyn Host>,
    stack: Stack,
    /// Layers by what they are, so that none is entered twice.
    seen: BTreeMap<String, usize>,
    /// Layers that are being followed down.
    above: Vec<usize>,
    mounts: Option<Result<Vec<Mount>, String>>,
    lvm: Option<Result<Vec<Row>, String>>,
    cpu_aes: Option<Option<bool>>,
}

impl<'a> Finder<'a> {
    fn new(host: &'a dyn Host) -> Self {
        Self {
            host,
            headers: None,
            stack: Stack::default(),
            seen: BTreeMap::new(),
            above: Vec::new(),
            mounts: None,
            lvm: None,
            cpu_aes: None,
        }
    }

    /// Enters a layer once and finds those below it.
    fn enter(&mut self, key: String, layer: Layer, below: impl FnOnce(&mut Self, usize)) -> usize {
        if let Some(&at) = self.seen.get(&key) {
            return at;
        }
        let at = self.stack.layers.len();
        self.stack.layers.push(layer);
        self.seen.insert(key, at);
        if self.above.len() >= DEPTH || at >= MANY {
            self.unknown(at, "what lies below: too many layers");
            return at;
        }
        self.above.push(at);
        below(self, at);
        self.above.pop();
        at
    }

    /// Puts one layer on another. A layer that would stand on itself is said and left out.
    fn stand(&mut self, at: usize, below: usize) {
        if self.above.contains(&below) {
            let name = self.stack.layers[below].name.clone();
            return self.unknown(at, format!("what lies below: it leads back to {name}"));
        }
        let list = &mut self.stack.layers[at].below;
        if !list.contains(&below) {
            list.push(below);
        }
    }

    fn unknown(&mut self, at: usize, what: impl Into<String>) {
        self.stack.layers[at].unknown.push(what.into());
    }

    fn set(&mut self, at: usize, key: &str, value: impl Into<String>) {
        let value = value.into();
        self.stack.layers[at].settings.insert(key.to_owned(), value);
    }

    /// A one-line file of sysfs; none when it is not there or says nothing.
    fn line(&self, path: &Path) -> Option<String> {
        let text = self.host.read_text(path).ok()?;
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Runs a tool that asks for something.
    fn ask(&self, argv: &[&OsStr]) -> Result<CommandOutput, String> {
        self.ask_within(argv, LIMITS)
    }

    fn ask_within(&self, argv: &[&OsStr], limits: Limits) -> Result<CommandOutput, String> {
        Self::ask_of(self.host, argv, limits)
    }

    fn ask_of(host: &dyn Host, argv: &[&OsStr], limits: Limits) -> Result<CommandOutput, String> {
        let name = argv.first().copied().unwrap_or_default();
        if host.which(name).is_none() {
            return Err(format!("{} is not installed", name.to_string_lossy()));
        }
        match host.run(argv, limits) {
            Ok(output) if output.success() => Ok(output),
            Ok(output) => Err(format!(
                "{}: {}",
                name.to_string_lossy(),
                output.complaint()
            )),
            Err(error) => Err(error.to_string()),
        }
    }

    fn ask_text(&self, argv: &[&str]) -> Result<String, String> {
        let argv: Vec<&OsStr> = argv.iter().map(OsStr::new).collect();
        self.ask(&argv).map(|output| output.text())
    }

    /// What is mounted.
    fn mounts(&mut self) -> Result<Vec<Mount>, String> {
        const FILE: &str = "/proc/self/mountinfo";
        let host = self.host;
        let read = || {
            let text = host
                .read(Path::new(FILE))
                .map_err(|error| error.to_string())?;
            mountinfo::parse(&text).map_err(|line| format!("{FILE}:{line}: not understood"))
        };
        self.mounts.get_or_insert_with(read).clone()
    }

    /// The path the user named.
    fn target(&mut self, path: &Path) -> Result<(), StackError> {
        // It says best why there is nothing to be seen.
        assay_facts::target(self.host, path)?;
        let stat = self.host.stat(path).map_err(StackError::Unreadable)?;
        match stat.kind {
            FileKind::BlockDevice => {
                let device = Device::of_number(self.host, stat.rdev);
                let device = device.map_err(StackError::Unreadable)?;
                self.device(&device);
            }
            FileKind::Regular => {
                self.image_file(path, None);
            }
            _ => {
                let mut layer = Layer::new(LayerKind::Path, path.to_string_lossy());
                layer.place = Some(path.to_owned());
                self.enter(format!("path:{}", path.display()), layer, |finder, at| {
                    finder.file_system_of(at, path);
                });
            }
        }
        Ok(())
    }
}

/// `64k` for 65536; what is no number stays.
fn shorten_size(number: &str) -> String {
    match number.parse() {
        Ok(bytes) => assay_model::Bytes(bytes).short(),
        Err(_) => number.to_owned(),
    }
}

fn yes_or_no(flag: bool) -> &'static str {
    if flag { "yes" } else { "no" }
}
