//! The interface that every kind of setting implements, and the data about one setting.

pub(super) use super::setting_workspace::Work;
use crate::error::ChangeError;
use assay_host::{HostMut, Times};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::path::PathBuf;

/// State of a setting before assay changed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Original {
    /// Value; `None` if it was inherited, or the file had no line for it.
    pub value: Option<String>,
    /// The value in effect and its source, as shown in messages.
    pub shown: String,
    /// Where the value came from, such as a default.
    pub origin: ValueOrigin,
    /// Path at the time of reading, with symbolic links resolved; for a ZFS property the dataset.
    #[serde(with = "assay_host::path_json")]
    pub place: PathBuf,
    /// Related attributes, as (path, value). They change with the setting and are restored with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub along: Vec<(PathBuf, String)>,
    /// Data that identifies the original file; `None` except for a setting in a configuration file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<AsFound>,
}

/// Identifies the original state of a configuration file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AsFound {
    /// BLAKE3 hash of the file's bytes, in hex.
    pub blake3: String,
    /// Access and modification time of the file.
    #[serde(default)]
    pub times: Option<Times>,
}

/// Where the value of a setting comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ValueOrigin {
    /// The value was set on this object.
    Set,
    /// The value is a default, is inherited, or has no line in the file.
    Absent,
    /// The value came with a received ZFS stream.
    Received,
}

/// State that a setting has now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// The present value, see [`Original::value`].
    pub(crate) value: Option<String>,
    /// The present value for messages, see [`Original::shown`].
    pub(crate) shown: String,
}

/// One kind of setting, bound to its path.
pub(crate) trait SettingKind: Send + Sync {
    /// Returns the identity of the setting. Two settings with the same identity cannot be changed at the same time.
    fn identity(&self) -> String;

    /// Reads the original state. Fails for a setting that cannot be changed.
    fn find(&self, host: &dyn HostMut) -> Result<Found, ChangeError>;

    /// Checks a value before anything is changed. Fails for a value that cannot be set.
    fn check(&self, host: &dyn HostMut, value: Option<&str>) -> Result<(), ChangeError>;

    /// Reads the state that the setting has now.
    fn read(&self, host: &dyn HostMut) -> Result<Reading, ChangeError>;

    /// Does all steps that can fail, before anything is changed. Any object that remains is removed by
    /// [`SettingKind::tidy`].
    fn prepare(
        &self,
        _host: &dyn HostMut,
        _value: Option<&str>,
        _work: &Work,
    ) -> Result<(), ChangeError> {
        Ok(())
    }

    /// Removes the objects that [`SettingKind::prepare`] left.
    fn tidy(&self, _host: &dyn HostMut, _work: &Work) -> Result<(), ChangeError> {
        Ok(())
    }

    /// Sets the value, after [`SettingKind::prepare`].
    fn write(
        &self,
        host: &dyn HostMut,
        value: Option<&str>,
        work: &Work,
    ) -> Result<(), ChangeError>;

    /// Restores the original state, including related attributes.
    fn restore(
        &self,
        host: &dyn HostMut,
        original: &Original,
        work: &Work,
    ) -> Result<(), ChangeError>;

    /// Returns whether nothing is left to restore.
    fn settled(
        &self,
        host: &dyn HostMut,
        original: &Original,
        work: &Work,
    ) -> Result<bool, ChangeError>;

    /// Describes related state that differs from the original, although the setting itself has its original value.
    fn apart(
        &self,
        _host: &dyn HostMut,
        _original: &Original,
        _work: &Work,
    ) -> Result<Option<String>, ChangeError> {
        Ok(None)
    }

    /// Returns whether two values are equal, even if they are written differently.
    fn same(&self, one: Option<&str>, other: Option<&str>) -> bool {
        one == other
    }

    /// For several settings that change together, returns the value that restores those which assay set, and leaves the
    /// others as they are. `known` contains all values that assay set. Returns `None` if another program changed all of
    /// them, or for a single setting.
    fn restore_ours(
        &self,
        _known: &[Option<String>],
        _original: Option<&str>,
        _now: Option<&str>,
    ) -> Option<String> {
        None
    }

    /// Returns whether a value is always read back as it was written. If so, another value must come from another
    /// program. This is false for a kernel parameter, for example, because the kernel may round it.
    fn reads_as_written(&self) -> bool {
        false
    }

    /// Whether an unfinished attempt to set `wanted` can have led to `found`.
    fn may_become(&self, wanted: Option<&str>, found: Option<&str>) -> bool {
        self.same(wanted, found)
    }
}

/// Original state of a setting, with the contents of its file.
pub(crate) struct Found {
    pub(crate) original: Original,
    /// Contents of the configuration file, to be saved; `None` for other settings.
    pub(crate) contents: Option<Vec<u8>>,
}

/// Formats a command line for messages.
pub(crate) fn command_line(argv: &[&OsStr]) -> String {
    let words: Vec<_> = argv.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

/// Runs a command, returns its standard output, and fails if the command fails.
pub(super) fn run(
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
