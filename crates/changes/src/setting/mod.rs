//! Kinds of settings, one file each: how each is read, set and put back.

mod command;
mod config;
mod kernel;
mod mount;
mod table;
mod zfs;

pub(crate) use table::mounts;

use crate::error::ChangeError;
use assay_host::{HostMut, Times};
use assay_model::change::Setting;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// A setting as it was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Original {
    /// Its value; nothing when it was inherited, or no line stood in the file.
    pub value: Option<String>,
    /// The value as a reader wants to see it: what is in effect, and why.
    pub shown: String,
    /// Where the value came from.
    pub origin: Origin,
    /// The path that it was found at, links resolved; the dataset of a ZFS property.
    #[serde(with = "assay_host::path_json")]
    pub place: PathBuf,
    /// What else changes with it, and is put back with it: attribute and value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub along: Vec<(PathBuf, String)>,
    /// Of a configuration file: what tells whether it is the one that was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<AsFound>,
}

/// A configuration file as it was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AsFound {
    /// BLAKE3 hash of its bytes, in hex.
    pub blake3: String,
    /// When it was read and written last.
    #[serde(default)]
    pub times: Option<Times>,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// It was set there.
    Set,
    /// It was not: a default, inherited, or no line in the file.
    Absent,
    /// It came with a received ZFS stream.
    Received,
}

/// What a setting reads now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// See [`Original::value`].
    pub(crate) value: Option<String>,
    /// See [`Original::shown`].
    pub(crate) shown: String,
}

/// What a session lends to a setting.
pub(crate) struct Work {
    /// Where the contents of the file are kept that were found.
    pub(crate) saved: PathBuf,
    /// A name for a file in between, in the directory of the file.
    pub(crate) aside: OsString,
    /// The user wants it set back whatever is there.
    pub(crate) force: bool,
}

/// One kind of setting, at its place.
pub(crate) trait Knob: Send + Sync {
    /// Two settings with the same identity are in each other's way.
    fn identity(&self) -> String;

    /// Reads what there is to put back, and refuses what cannot be changed.
    fn find(&self, host: &dyn HostMut) -> Result<Found, ChangeError>;

    /// Refuses a value that cannot be set, before anything is touched.
    fn check(&self, host: &dyn HostMut, value: Option<&str>) -> Result<(), ChangeError>;

    /// What it reads now.
    fn read(&self, host: &dyn HostMut) -> Result<Reading, ChangeError>;

    /// Does what can fail before anything is changed. Leaves behind at most what
    /// [`Knob::tidy`] removes.
    fn prepare(
        &self,
        _host: &dyn HostMut,
        _value: Option<&str>,
        _work: &Work,
    ) -> Result<(), ChangeError> {
        Ok(())
    }

    /// Removes what a preparation left.
    fn tidy(&self, _host: &dyn HostMut, _work: &Work) -> Result<(), ChangeError> {
        Ok(())
    }

    /// Sets it, after [`Knob::prepare`].
    fn write(
        &self,
        host: &dyn HostMut,
        value: Option<&str>,
        work: &Work,
    ) -> Result<(), ChangeError>;

    /// Puts it back as it was found, with all that goes along.
    fn restore(
        &self,
        host: &dyn HostMut,
        original: &Original,
        work: &Work,
    ) -> Result<(), ChangeError>;

    /// Whether nothing is left to put back.
    fn settled(
        &self,
        host: &dyn HostMut,
        original: &Original,
        work: &Work,
    ) -> Result<bool, ChangeError>;

    /// What is not as it was found although the setting reads so, in words.
    fn apart(
        &self,
        _host: &dyn HostMut,
        _original: &Original,
        _work: &Work,
    ) -> Result<Option<String>, ChangeError> {
        Ok(None)
    }

    /// Whether two values are the same, however they are written.
    fn same(&self, one: Option<&str>, other: Option<&str>) -> bool {
        one == other
    }

    /// Whether setting `wanted` without seeing the end of it can have led to `found`.
    fn may_become(&self, wanted: Option<&str>, found: Option<&str>) -> bool {
        self.same(wanted, found)
    }
}

/// What was found.
pub(crate) struct Found {
    pub(crate) original: Original,
    /// Contents of a file to keep.
    pub(crate) contents: Option<Vec<u8>>,
}

/// Where a setting lies.
pub(crate) fn place(host: &dyn HostMut, setting: &Setting) -> Result<PathBuf, ChangeError> {
    match setting {
        Setting::ModuleParameter { module, name } => kernel::module_parameter(module, name),
        Setting::Sysctl { key } => kernel::sysctl(key),
        Setting::Queue { device, attribute } => kernel::queue(host, device, attribute),
        Setting::MountOption { mountpoint, .. } => mount::place(host, mountpoint),
        Setting::Config { file, .. } => config::place(host, file),
        Setting::ZfsProperty { dataset, .. } => Ok(PathBuf::from(dataset)),
        Setting::Command { .. } => Ok(PathBuf::new()),
    }
}

/// The setting of that kind at a place.
pub(crate) fn knob(setting: &Setting, place: &Path) -> Box<dyn Knob> {
    let (name, place) = (name(setting), place.to_owned());
    match setting {
        Setting::Command { read, apply, undo } => Box::new(command::Commands {
            name,
            read: read.clone(),
            apply: apply.clone(),
            undo: undo.clone(),
        }),
        Setting::ZfsProperty { dataset, property } => Box::new(zfs::Property {
            name,
            dataset: dataset.clone(),
            property: property.clone(),
        }),
        Setting::MountOption { choices, .. } => Box::new(mount::OneOf {
            name,
            mountpoint: place,
            choices: choices.clone(),
        }),
        Setting::Config {
            language,
            section,
            key,
            validate,
            reload,
            ..
        } => Box::new(config::InFile {
            name,
            file: place,
            language: *language,
            section: section.clone(),
            key: key.clone(),
            validate: validate.clone(),
            reload: reload.clone(),
            seen: std::sync::Mutex::default(),
        }),
        Setting::ModuleParameter { .. } | Setting::Sysctl { .. } | Setting::Queue { .. } => {
            Box::new(kernel::Attribute::new(name, place, setting))
        }
    }
}

/// A setting in the words of its own world.
pub(crate) fn name(setting: &Setting) -> String {
    match setting {
        Setting::ZfsProperty { dataset, property } => format!("{property} of {dataset}"),
        Setting::ModuleParameter { module, name } => format!("parameter {name} of {module}"),
        Setting::Sysctl { key } => key.clone(),
        Setting::Queue { device, attribute } => format!("{attribute} of {device}"),
        Setting::MountOption {
            mountpoint,
            choices,
        } => {
            let named: Vec<_> = choices.iter().filter(|choice| !choice.is_empty()).collect();
            let named: Vec<_> = named.into_iter().map(String::as_str).collect();
            format!("{} of {mountpoint}", named.join("/"))
        }
        Setting::Config { file, key, .. } => format!("{key} in {file}"),
        Setting::Command { apply, .. } => apply.join(" "),
    }
}

/// A command line as a reader would type it.
pub(crate) fn command_line(argv: &[&OsStr]) -> String {
    let words: Vec<_> = argv.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

/// Runs a command that has to succeed; returns its standard output.
fn run(
    host: &dyn HostMut,
    what: &str,
    argv: &[&OsStr],
    timeout: std::time::Duration,
) -> Result<String, ChangeError> {
    let output = host.run(argv, assay_host::Limits { timeout })?;
    match output.success() {
        true => Ok(output.text()),
        false => Err(ChangeError::Command {
            what: what.to_owned(),
            command: command_line(argv),
            reason: output.complaint(),
        }),
    }
}
