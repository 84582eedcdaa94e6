//! Reads a setting without recording it in a journal: its value, and whether it can be changed.

use super::joined_settings;
use super::{open_knob, place, setting_name};
use crate::error::ChangeError;
use crate::never_kept::never_kept;
use assay_host::HostMut;
use assay_model::change::Setting;

/// Value that a setting has now, and what is known about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurrentValue {
    /// Name of the setting for messages, such as `scheduler of sda`.
    pub name: String,
    /// Identity of the setting. Two settings with the same identity cannot be changed independently of each other.
    pub identity: String,
    /// Value that the setting has now; `None` if the value is inherited, or if the file has no line for it.
    pub value: Option<String>,
    /// The value as shown in messages.
    pub shown: String,
    /// Whether the setting already has the wanted value.
    pub is_wanted: bool,
    /// Why the wanted value is never kept permanently; `None` if it may be kept.
    pub never_kept: Option<&'static str>,
}

/// Reads a setting, and checks that it can be changed to `wanted`.
///
/// # Errors
/// The setting does not exist, or cannot be read or changed, or `wanted` is not a valid value.
pub fn inspect_setting(
    host: &dyn HostMut,
    setting: &Setting,
    wanted: Option<&str>,
) -> Result<CurrentValue, ChangeError> {
    let knob = open_knob(setting, &place(host, setting)?);
    let found = knob.find(host)?.original;
    let is_wanted = knob.same(found.value.as_deref(), wanted);
    if !is_wanted {
        knob.check(host, wanted)?;
    }
    Ok(CurrentValue {
        name: setting_name(setting),
        identity: knob.identity(),
        is_wanted,
        value: found.value,
        shown: found.shown,
        never_kept: never_kept(setting, wanted),
    })
}

/// Joins the values of a [`Setting::ConfigKeys`], in the order of its keys.
#[must_use]
pub fn join_values(values: &[Option<String>]) -> String {
    joined_settings::join_values(values)
}

/// Splits the value of a [`Setting::ConfigKeys`] with `count` keys; `None` if the value has another form.
#[must_use]
pub fn split_values(value: Option<&str>, count: usize) -> Option<Vec<Option<String>>> {
    joined_settings::parse_values(value, count)
}
