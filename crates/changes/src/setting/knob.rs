//! What every kind of setting can do, and what is known of one.

pub(super) use super::setting_workspace::Work;
use crate::error::ChangeError;
use assay_host::{HostMut, Times};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::path::PathBuf;

/// A setting as it was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Original {
    /// Its value; nothing when it was inherited, or no line stood in the file.
    pub value: Option<String>,
    /// The value as a reader wants to see it: what is in effect, and why.
    pub shown: String,
    /// Where the value came from.
    pub origin: ValueOrigin,
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
pub enum ValueOrigin {
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

/// A command line as a reader would type it.
pub(crate) fn command_line(argv: &[&OsStr]) -> String {
    let words: Vec<_> = argv.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

/// Runs a command that has to succeed; returns its standard output.
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
