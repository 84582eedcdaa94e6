//! Implements the kinds of settings, one module each. A setting can be read, set and rolled back.

mod command;
mod config;
mod current_value;
pub(crate) mod file_mode;
pub(crate) mod joined_settings;
mod kernel;
mod mount;
mod new_file;
mod setting_kind;
mod setting_workspace;
mod table;
mod zfs;

pub use current_value::{CurrentValue, inspect_setting, join_values, split_values};
pub use setting_kind::{AsFound, Original, ValueOrigin};
pub(crate) use setting_kind::{Reading, SettingKind, command_line};
pub(crate) use setting_workspace::Work;
pub(crate) use table::parse_mounts;

use crate::error::ChangeError;
use assay_host::HostMut;
use assay_model::change::{ConfigKey, ConfigLanguage, Setting};
use std::path::{Path, PathBuf};

/// Returns the resolved path of a setting; for a ZFS property, the name of the dataset.
pub(crate) fn place(host: &dyn HostMut, setting: &Setting) -> Result<PathBuf, ChangeError> {
    match setting {
        Setting::ModuleParameter { module, name } => kernel::module_parameter(module, name),
        Setting::Sysctl { key } => kernel::sysctl_path(key),
        Setting::Queue { device, attribute } => {
            kernel::queue_attribute_path(host, device, attribute)
        }
        Setting::Sysfs { attribute } => kernel::sysfs_path(host, attribute),
        Setting::MountOption { mountpoint, .. } => mount::place(host, mountpoint),
        Setting::Config { file, .. } | Setting::ConfigKeys { file, .. } => {
            config::place(host, file)
        }
        Setting::FileMode { file, .. } => file_mode::place(host, file),
        Setting::NewFile { file, .. } => new_file::place(host, file),
        Setting::ZfsProperty { dataset, .. } => Ok(PathBuf::from(dataset)),
        Setting::Command { .. } => Ok(PathBuf::new()),
    }
}

/// Returns the implementation of a setting's kind.
pub(crate) fn open_knob(setting: &Setting, place: &Path) -> Box<dyn SettingKind> {
    let (name, place) = (setting_name(setting), place.to_owned());
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
        Setting::FileMode { .. } => Box::new(file_mode::FileMode { name, file: place }),
        Setting::NewFile {
            validate, reload, ..
        } => Box::new(new_file::NewFile {
            name,
            file: place,
            validate: validate.clone(),
            reload: reload.clone(),
            seen: std::sync::Mutex::default(),
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
            keys: config::Keys::One(ConfigKey {
                section: section.clone(),
                key: key.clone(),
            }),
            validate: validate.clone(),
            reload: reload.clone(),
            seen: std::sync::Mutex::default(),
        }),
        Setting::ConfigKeys {
            language,
            keys,
            validate,
            reload,
            ..
        } => Box::new(config::InFile {
            name,
            file: place,
            language: *language,
            keys: config::Keys::Several(keys.clone()),
            validate: validate.clone(),
            reload: reload.clone(),
            seen: std::sync::Mutex::default(),
        }),
        Setting::ModuleParameter { .. }
        | Setting::Sysctl { .. }
        | Setting::Queue { .. }
        | Setting::Sysfs { .. } => Box::new(kernel::Attribute::new(name, place, setting)),
    }
}

/// Returns the name of a setting for messages, such as `recordsize of tank/db` or `scheduler of sda`.
#[must_use]
pub fn setting_name(setting: &Setting) -> String {
    match setting {
        Setting::ZfsProperty { dataset, property } => format!("{property} of {dataset}"),
        Setting::ModuleParameter { module, name } => format!("parameter {name} of {module}"),
        Setting::Sysctl { key } => key.clone(),
        Setting::Queue { device, attribute } => format!("{attribute} of {device}"),
        Setting::Sysfs { attribute } => format!("/sys/{attribute}"),
        Setting::MountOption {
            mountpoint,
            choices,
        } => {
            let named: Vec<_> = choices.iter().filter(|choice| !choice.is_empty()).collect();
            let named: Vec<_> = named.into_iter().map(String::as_str).collect();
            format!("{} of {mountpoint}", named.join("/"))
        }
        Setting::Config {
            file,
            key,
            language: ConfigLanguage::Lines,
            ..
        } => format!("a line in {file}, by `{}`", shown_line(key)),
        Setting::Config { file, key, .. } => format!("{key} in {file}"),
        Setting::ConfigKeys {
            file,
            keys,
            language: ConfigLanguage::Lines,
            ..
        } => format!("{} lines in {file}", keys.len()),
        Setting::ConfigKeys { file, keys, .. } => {
            let names: Vec<_> = keys.iter().map(|one| one.key.as_str()).collect();
            format!("{} in {file}", names.join(", "))
        }
        Setting::FileMode { file, .. } => format!("permissions of {file}"),
        Setting::NewFile { file, .. } => format!("the new file {file}"),
        Setting::Command { apply, .. } => apply.join(" "),
    }
}

/// Returns a line of a configuration file for messages, with secrets removed.
fn shown_line(line: &str) -> String {
    assay_model::secrets::withhold_in_text(line.trim())
}
