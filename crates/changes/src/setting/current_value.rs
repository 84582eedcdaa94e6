//! Looks at a setting without entering anything in a journal: what it reads, and what it is in the way of.

use super::joined_settings;
use super::{open_knob, place, setting_name};
use crate::error::ChangeError;
use crate::never_kept::never_kept;
use assay_host::HostMut;
use assay_model::change::Setting;

/// A setting as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurrentValue {
    /// Its name for people: `scheduler of sda`.
    pub name: String,
    /// Equal for two settings that cannot be changed independently of each other.
    pub identity: String,
    /// Its value; none when it is inherited, or the file has no line for it.
    pub value: Option<String>,
    /// The value for people.
    pub shown: String,
    /// It has the wanted value already.
    pub is_wanted: bool,
    /// Why the wanted value is never kept.
    pub never_kept: Option<&'static str>,
}

/// Reads a setting, and checks that it can be changed to `wanted`.
///
/// # Errors
/// It is missing, it cannot be read or changed, or the value is none that it can have.
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

/// Splits the value of a [`Setting::ConfigKeys`] of so many keys; none when it has another form.
#[must_use]
pub fn split_values(value: Option<&str>, count: usize) -> Option<Vec<Option<String>>> {
    joined_settings::parse_values(value, count)
}
