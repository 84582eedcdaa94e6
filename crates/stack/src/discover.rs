//! Finds the layers below a target. Each kind of layer has its own module.

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

/// Target below which layers are searched, as the user named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StackTarget {
    /// An absolute path of a directory, file, image or block device.
    Path(PathBuf),
    /// A virtual machine, by its libvirt name, Proxmox number, process id, or QEMU's `-name`.
    Guest(String),
}

/// Reason why no layers can be found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StackError {
    /// The path does not exist, is not storage, or cannot be read.
    #[error(transparent)]
    Path(#[from] assay_facts::TargetError),
    /// There is no virtual machine with this name.
    #[error(
        "no virtual machine {name:?} is running or defined here{}",
        describe_others(known)
    )]
    NoGuest {
        /// Name that the user requested.
        name: String,
        /// Names of the existing virtual machines.
        known: Vec<String>,
    },
    /// Several virtual machines have this name.
    #[error(
        "{name:?} is the name of several virtual machines: give the process number of one: {pids:?}"
    )]
    Ambiguous {
        /// Name that the user requested.
        name: String,
        /// Process ids of the matching virtual machines.
        pids: Vec<u32>,
    },
    /// The processes of this machine cannot be listed.
    #[error("virtual machines cannot be looked for: {0}")]
    Unreadable(#[source] HostError),
}

fn describe_others(known: &[String]) -> String {
    match known {
        [] => String::new(),
        known => format!("; there are {}", known.join(", ")),
    }
}

/// Finds the layers below a target. Properties that cannot be determined are listed in [`Layer::unknown`]. The machine
/// is read through [`Redacted`], so that layers contain no secrets.
///
/// # Errors
/// The target does not exist, or the machine cannot be read at all.
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

/// Maximum depth of the layers. A deeper stack counts as a cycle.
const DEPTH: usize = 48;
/// Maximum number of layers below one target.
const MANY: usize = 4096;

/// Time and output limits of the tools that are run. The time limit is long because some tools scan every device of the
/// machine.
const LIMITS: Limits = Limits {
    timeout: Duration::from_secs(20),
};

/// State of the search, with the layers found until now.
struct Finder<'a> {
    host: &'a dyn Host,
    /// Unredacted access to the machine, for reading image headers. Only numbers and a file name are taken from a
    /// header.
    headers: Option<&'a dyn Host>,
    stack: Stack,
    /// Index of each layer by its identity, so that no layer is added twice.
    seen: BTreeMap<String, usize>,
    /// Indices of the layers on the current path from the target downwards.
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

    /// Adds a layer unless it exists already. If it is new, calls `below` to find the layers below it.
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

    /// Connects a layer with the layer below it. A connection that would create a cycle is not added, but reported as
    /// unknown.
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

    /// Reads a one-line file of sysfs; `None` if it is missing or empty.
    fn line(&self, path: &Path) -> Option<String> {
        let text = self.host.read_text(path).ok()?;
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Runs a tool that only reads.
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

    /// Returns the mounts of the machine, which are read once.
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

    /// Finds the layers below the path that the user gave.
    fn target(&mut self, path: &Path) -> Result<(), StackError> {
        // Its error explains best why nothing is visible.
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

/// Shortens a number such as 65536 to `64k`. Returns other text unchanged.
fn shorten_size(number: &str) -> String {
    match number.parse() {
        Ok(bytes) => assay_model::Bytes(bytes).short(),
        Err(_) => number.to_owned(),
    }
}

fn yes_or_no(flag: bool) -> &'static str {
    if flag { "yes" } else { "no" }
}
