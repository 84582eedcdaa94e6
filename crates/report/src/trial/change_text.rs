//! Describes a change: its sides A and B, what assay writes to, and how the change is reverted. Changes are applied and
//! reverted in `assay-changes`.

use assay_model::Change;
use assay_model::change::{Arm, ImageArm, Setting};
use assay_render::text::escape_line;
use std::collections::BTreeMap;

/// Description of a change for people.
pub(crate) struct ChangeText {
    /// What changes, such as `ZFS property recordsize of tank/vm` or `a qcow2 image`.
    pub what: String,
    /// Value in the baseline (A); `None` if the value has not been read.
    pub now: Option<String>,
    /// Value of the setting with the change (B).
    pub changed: String,
    /// Sentence that describes what the change writes to.
    pub touches: String,
    /// Sentence that describes how the change is reverted.
    pub undo: String,
}

/// Formats a value, or `absent` if there is no value.
fn format_setting_value(value: Option<&str>, absent: &str) -> String {
    match value {
        None => absent.to_owned(),
        Some("") => "(empty)".to_owned(),
        Some(text) => escape_line(text),
    }
}

/// Returns the word for a missing value, which depends on the kind of setting.
fn absent_word(setting: &Setting) -> &'static str {
    match setting {
        Setting::ZfsProperty { .. } => "inherited",
        Setting::Config { .. } | Setting::ConfigKeys { .. } => "no line for it",
        Setting::NewFile { .. } => "no file",
        _ => "the default",
    }
}

/// Returns the name of a setting for people.
pub(crate) fn describe_setting(setting: &Setting) -> String {
    match setting {
        Setting::ZfsProperty { dataset, property } => {
            format!(
                "ZFS property {} of {}",
                escape_line(property),
                escape_line(dataset)
            )
        }
        Setting::ModuleParameter { module, name } => {
            format!(
                "parameter {} of the kernel module {}",
                escape_line(name),
                escape_line(module)
            )
        }
        Setting::Sysctl { key } => format!("kernel parameter {}", escape_line(key)),
        Setting::Queue { device, attribute } => {
            format!(
                "{} of the block device {}",
                escape_line(attribute),
                escape_line(device)
            )
        }
        Setting::Sysfs { attribute } => format!("/sys/{}", escape_line(attribute)),
        Setting::MountOption { mountpoint, .. } => {
            format!("mount option of {}", escape_line(mountpoint))
        }
        Setting::Config {
            file, section, key, ..
        } => {
            let place: Vec<String> = section.iter().map(|name| escape_line(name)).collect();
            match place.is_empty() {
                true => format!("{} in {}", escape_line(key), escape_line(file)),
                false => format!(
                    "{} in {} ({})",
                    escape_line(key),
                    escape_line(file),
                    place.join(" › ")
                ),
            }
        }
        Setting::ConfigKeys { file, keys, .. } => {
            let names: Vec<String> = keys.iter().map(|one| escape_line(&one.key)).collect();
            format!("{} in {}", names.join(", "), escape_line(file))
        }
        Setting::FileMode { file, .. } => format!("permissions of {}", escape_line(file)),
        Setting::NewFile { file, .. } => format!("the new file {}", escape_line(file)),
        Setting::Command { apply, .. } => format!("what `{}` sets", join_arguments(apply)),
    }
}

fn join_arguments(argv: &[String]) -> String {
    escape_line(&argv.join(" "))
}

fn describe_scope(setting: &Setting) -> String {
    match setting {
        Setting::ZfsProperty { dataset, .. } => {
            format!(
                "that property of {}; no data is rewritten",
                escape_line(dataset)
            )
        }
        Setting::ModuleParameter { module, name } => format!(
            "/sys/module/{}/parameters/{}, until the next boot",
            escape_line(module),
            escape_line(name)
        ),
        Setting::Sysctl { key } => {
            format!(
                "/proc/sys/{}, until the next boot",
                escape_line(&key.replace('.', "/"))
            )
        }
        Setting::Queue { device, attribute } => {
            format!(
                "the queue setting {} of {}, until the next boot",
                escape_line(attribute),
                escape_line(device)
            )
        }
        Setting::Sysfs { attribute } => {
            format!("/sys/{}, until the next boot", escape_line(attribute))
        }
        Setting::MountOption { mountpoint, .. } => {
            format!(
                "{} is remounted with the option; no file is touched",
                escape_line(mountpoint)
            )
        }
        Setting::Config {
            file,
            validate,
            reload,
            ..
        }
        | Setting::ConfigKeys {
            file,
            validate,
            reload,
            ..
        } => {
            let mut text = match setting {
                Setting::ConfigKeys { .. } => format!("those lines of {}", escape_line(file)),
                _ => format!("that one line of {}", escape_line(file)),
            };
            if !validate.is_empty() {
                text.push_str(&format!(
                    "; checked by `{}` first",
                    join_arguments(validate)
                ));
            }
            if !reload.is_empty() {
                text.push_str(&format!("; then `{}`", join_arguments(reload)));
            }
            text
        }
        Setting::FileMode { file, .. } => {
            format!("the permissions of {}; not its content", escape_line(file))
        }
        Setting::NewFile { file, .. } => format!("the file {}; no other file", escape_line(file)),
        Setting::Command { apply, undo, .. } => format!(
            "whatever `{}` and `{}` do; assay runs them and reads the value back",
            join_arguments(apply),
            join_arguments(undo)
        ),
    }
}

/// Describes a change. `now` is the current value of the setting, if it was read.
pub(crate) fn describe_change(change: &Change, now: Option<&str>) -> ChangeText {
    match change {
        Change::Set {
            setting: of,
            value: to,
        } => ChangeText {
            what: describe_setting(of),
            now: now.map(|text| format_setting_value(Some(text), absent_word(of))),
            changed: format_setting_value(to.as_deref(), absent_word(of)),
            touches: describe_scope(of),
            undo: "reverted before every measurement of A and at the end, and read back; after a \
                   crash `assay trial --recover` does it"
                .to_owned(),
        },
        Change::SideBySide { now, changed } => {
            let (a, b) = describe_sides(now, changed);
            ChangeText {
                what: arm_kind(changed).to_owned(),
                now: Some(a),
                changed: b,
                touches: describe_creation(changed),
                undo: "both are removed at the end; after a crash `assay trial --recover` does it"
                    .to_owned(),
            }
        }
    }
}

fn arm_kind(arm: &Arm) -> &'static str {
    match arm {
        Arm::Image(_) => "a disk image",
        Arm::FileSystem { .. } => "a file system",
        Arm::Dataset { .. } => "a ZFS file system",
        Arm::Zvol { .. } => "a ZFS volume",
        Arm::Sshd { .. } => "an SSH server",
    }
}

fn describe_creation(arm: &Arm) -> String {
    match arm {
        Arm::Image(_) => "nothing of yours: two images of assay's own in the target directory, \
                          served by QEMU to this machine alone"
            .to_owned(),
        Arm::FileSystem { .. } => "nothing of yours: two file systems of assay's own on loop \
                                   devices, in files in the target directory"
            .to_owned(),
        Arm::Dataset { parent, .. } => format!(
            "nothing of yours: two file systems of assay's own, {0}/assay-…-now and \
             {0}/assay-…-changed",
            escape_line(parent)
        ),
        Arm::Zvol { parent, .. } => format!(
            "nothing of yours: two sparse volumes of assay's own, {0}/assay-…-now and \
             {0}/assay-…-changed",
            escape_line(parent)
        ),
        Arm::Sshd { config, .. } => format!(
            "nothing of yours: two servers with copies of {}, on loopback ports of their own",
            escape_line(config)
        ),
    }
}

/// Describes both sides by their differences, or in full if there are none.
fn describe_sides(now: &Arm, changed: &Arm) -> (String, String) {
    let (a, b) = (arm_traits(now), arm_traits(changed));
    let keys: Vec<&String> = b
        .iter()
        .chain(&a)
        .filter(|(key, _)| a.get(*key) != b.get(*key))
        .map(|(key, _)| key)
        .collect();
    let mut keys = keys;
    keys.sort();
    keys.dedup();
    let absent = match now {
        Arm::Dataset { .. } | Arm::Zvol { .. } => "as inherited or by default",
        _ => "as by default",
    };
    let say = |traits: &BTreeMap<String, String>| {
        let parts: Vec<String> = keys
            .iter()
            .map(|key| match traits.get(*key) {
                Some(value) if key.is_empty() => escape_line(value),
                Some(value) => format!("{} {}", escape_line(key), escape_line(value)),
                None => format!("{} {absent}", escape_line(key)),
            })
            .collect();
        parts.join(", ")
    };
    match keys.is_empty() {
        true => (describe_arm(now), describe_arm(changed)),
        false => (say(&a), say(&b)),
    }
}

/// Returns the properties of an arm by name. The empty name stands for the kind of the arm.
fn arm_traits(arm: &Arm) -> BTreeMap<String, String> {
    let mut traits = BTreeMap::new();
    match arm {
        Arm::Image(image) => {
            let ImageArm {
                format,
                options,
                cache,
                aio,
                luks,
                filled,
            } = image;
            traits.extend(options.clone());
            traits.insert(String::new(), variant_name(format));
            traits.insert("cache".to_owned(), variant_name(cache));
            traits.insert("aio".to_owned(), variant_name(aio));
            traits.insert(
                "LUKS".to_owned(),
                if *luks { "on" } else { "off" }.to_owned(),
            );
            let state = if *filled {
                "written once before"
            } else {
                "empty before"
            };
            traits.insert("image".to_owned(), state.to_owned());
        }
        Arm::FileSystem {
            fstype,
            mkfs,
            mount,
        } => {
            traits.insert(String::new(), fstype.clone());
            let list = |words: &[String]| match words.is_empty() {
                true => "none".to_owned(),
                false => words.join(" "),
            };
            traits.insert("mkfs options".to_owned(), list(mkfs));
            traits.insert("mount options".to_owned(), list(mount));
        }
        Arm::Dataset { parent, properties } | Arm::Zvol { parent, properties } => {
            traits.insert("below".to_owned(), parent.clone());
            traits.extend(properties.clone());
        }
        Arm::Sshd { config, set } => {
            traits.insert("configuration".to_owned(), config.clone());
            traits.extend(set.clone());
        }
    }
    traits
}

/// Returns the serialised name of a unit variant, such as `qcow2`, `writeback` or `io_uring`.
fn variant_name(of: &impl serde::Serialize) -> String {
    match serde_json::to_value(of) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}

/// Describes an arm in full, for a trial of two equal arms.
pub(crate) fn describe_arm(arm: &Arm) -> String {
    let parts: Vec<String> = arm_traits(arm)
        .iter()
        .map(|(key, value)| match key.is_empty() {
            true => escape_line(value),
            false => format!("{} {}", escape_line(key), escape_line(value)),
        })
        .collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_is_told_as_what_it_means() {
        let setting = Setting::ZfsProperty {
            dataset: "tank/vm".to_owned(),
            property: "recordsize".to_owned(),
        };
        let set = |value: Option<&str>| Change::Set {
            setting: setting.clone(),
            value: value.map(str::to_owned),
        };
        assert_eq!(describe_change(&set(None), None).changed, "inherited");
        assert_eq!(describe_change(&set(None), None).now, None);
        let described = describe_change(&set(Some("16K")), Some("128K"));
        assert_eq!(described.what, "ZFS property recordsize of tank/vm");
        assert_eq!(
            (described.now.as_deref(), &*described.changed),
            (Some("128K"), "16K")
        );
    }

    #[test]
    fn copies_are_told_by_what_tells_them_apart() {
        let fs = |fstype: &str, mount: &[&str]| Arm::FileSystem {
            fstype: fstype.to_owned(),
            mkfs: vec![],
            mount: mount.iter().map(|word| (*word).to_owned()).collect(),
        };
        assert_eq!(
            describe_sides(&fs("ext4", &["noatime"]), &fs("xfs", &["noatime"])),
            ("ext4".to_owned(), "xfs".to_owned())
        );
        let (a, b) = describe_sides(&fs("ext4", &[]), &fs("ext4", &["data=journal"]));
        assert_eq!(a, "mount options none");
        assert_eq!(b, "mount options data=journal");
        let same = fs("ext4", &[]);
        assert_eq!(describe_sides(&same, &same).0, describe_arm(&same));
    }
}
