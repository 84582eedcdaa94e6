//! What would be changed, in words: A, B, what is touched and how it is taken back.

use assay_model::Change;
use assay_model::change::{Arm, ImageArm, Setting};
use assay_render::text::clean;
use std::collections::BTreeMap;

/// A change for people.
pub(crate) struct Told {
    /// What: `ZFS property recordsize of tank/vm`, `a qcow2 image`.
    pub what: String,
    /// As it is; none when only the machine knows.
    pub now: Option<String>,
    /// With the change.
    pub changed: String,
    /// What is written to, one sentence.
    pub touches: String,
    /// How it is taken back, one sentence.
    pub undo: String,
}

/// A value, or that there is none.
fn value(value: Option<&str>, absent: &str) -> String {
    match value {
        None => absent.to_owned(),
        Some("") => "(empty)".to_owned(),
        Some(text) => clean(text),
    }
}

/// What `setting` calls having no value.
fn absent(setting: &Setting) -> &'static str {
    match setting {
        Setting::ZfsProperty { .. } => "inherited",
        Setting::Config { .. } | Setting::ConfigKeys { .. } => "no line for it",
        _ => "the default",
    }
}

/// What is set.
pub(crate) fn setting(setting: &Setting) -> String {
    match setting {
        Setting::ZfsProperty { dataset, property } => {
            format!("ZFS property {} of {}", clean(property), clean(dataset))
        }
        Setting::ModuleParameter { module, name } => {
            format!(
                "parameter {} of the kernel module {}",
                clean(name),
                clean(module)
            )
        }
        Setting::Sysctl { key } => format!("kernel parameter {}", clean(key)),
        Setting::Queue { device, attribute } => {
            format!("{} of the block device {}", clean(attribute), clean(device))
        }
        Setting::Sysfs { attribute } => format!("/sys/{}", clean(attribute)),
        Setting::MountOption { mountpoint, .. } => {
            format!("mount option of {}", clean(mountpoint))
        }
        Setting::Config {
            file, section, key, ..
        } => {
            let place: Vec<String> = section.iter().map(|name| clean(name)).collect();
            match place.is_empty() {
                true => format!("{} in {}", clean(key), clean(file)),
                false => format!("{} in {} ({})", clean(key), clean(file), place.join(" › ")),
            }
        }
        Setting::ConfigKeys { file, keys, .. } => {
            let names: Vec<String> = keys.iter().map(|one| clean(&one.key)).collect();
            format!("{} in {}", names.join(", "), clean(file))
        }
        Setting::Command { apply, .. } => format!("what `{}` sets", words(apply)),
    }
}

fn words(argv: &[String]) -> String {
    clean(&argv.join(" "))
}

fn touches(setting: &Setting) -> String {
    match setting {
        Setting::ZfsProperty { dataset, .. } => {
            format!("that property of {}; no data is rewritten", clean(dataset))
        }
        Setting::ModuleParameter { module, name } => format!(
            "/sys/module/{}/parameters/{}, until the next boot",
            clean(module),
            clean(name)
        ),
        Setting::Sysctl { key } => {
            format!(
                "/proc/sys/{}, until the next boot",
                clean(&key.replace('.', "/"))
            )
        }
        Setting::Queue { device, attribute } => {
            format!(
                "the queue setting {} of {}, until the next boot",
                clean(attribute),
                clean(device)
            )
        }
        Setting::Sysfs { attribute } => {
            format!("/sys/{}, until the next boot", clean(attribute))
        }
        Setting::MountOption { mountpoint, .. } => {
            format!(
                "{} is remounted with the option; no file is touched",
                clean(mountpoint)
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
                Setting::ConfigKeys { .. } => format!("those lines of {}", clean(file)),
                _ => format!("that one line of {}", clean(file)),
            };
            if !validate.is_empty() {
                text.push_str(&format!("; checked by `{}` first", words(validate)));
            }
            if !reload.is_empty() {
                text.push_str(&format!("; then `{}`", words(reload)));
            }
            text
        }
        Setting::Command { apply, undo, .. } => format!(
            "whatever `{}` and `{}` do; assay runs them and reads the value back",
            words(apply),
            words(undo)
        ),
    }
}

/// The change in words; `now` is the value that was read, when it was.
pub(crate) fn told(change: &Change, now: Option<&str>) -> Told {
    match change {
        Change::Set {
            setting: of,
            value: to,
        } => Told {
            what: setting(of),
            now: now.map(|text| value(Some(text), absent(of))),
            changed: value(to.as_deref(), absent(of)),
            touches: touches(of),
            undo: "set back before every measurement of A and at the end, and read back; after a \
                   crash `assay trial --recover` does it"
                .to_owned(),
        },
        Change::SideBySide { now, changed } => {
            let (a, b) = sides(now, changed);
            Told {
                what: kind(changed).to_owned(),
                now: Some(a),
                changed: b,
                touches: made(changed),
                undo: "both are removed at the end; after a crash `assay trial --recover` does it"
                    .to_owned(),
            }
        }
    }
}

fn kind(arm: &Arm) -> &'static str {
    match arm {
        Arm::Image(_) => "a disk image",
        Arm::FileSystem { .. } => "a file system",
        Arm::Dataset { .. } => "a ZFS file system",
        Arm::Zvol { .. } => "a ZFS volume",
        Arm::Sshd { .. } => "an SSH server",
    }
}

fn made(arm: &Arm) -> String {
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
            clean(parent)
        ),
        Arm::Zvol { parent, .. } => format!(
            "nothing of yours: two sparse volumes of assay's own, {0}/assay-…-now and \
             {0}/assay-…-changed",
            clean(parent)
        ),
        Arm::Sshd { config, .. } => format!(
            "nothing of yours: two servers with copies of {}, on loopback ports of their own",
            clean(config)
        ),
    }
}

/// Both sides in as few words as tell them apart, else in full.
fn sides(now: &Arm, changed: &Arm) -> (String, String) {
    let (a, b) = (traits(now), traits(changed));
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
                Some(value) if key.is_empty() => clean(value),
                Some(value) => format!("{} {}", clean(key), clean(value)),
                None => format!("{} {absent}", clean(key)),
            })
            .collect();
        parts.join(", ")
    };
    match keys.is_empty() {
        true => (full(now), full(changed)),
        false => (say(&a), say(&b)),
    }
}

/// What one arm is, by the names of its traits; the empty name is the arm's kind.
fn traits(arm: &Arm) -> BTreeMap<String, String> {
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
            traits.insert(String::new(), name(format));
            traits.insert("cache".to_owned(), name(cache));
            traits.insert("aio".to_owned(), name(aio));
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

/// A unit variant by the name it has in files: `qcow2`, `writeback`, `io_uring`.
fn name(of: &impl serde::Serialize) -> String {
    match serde_json::to_value(of) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}

/// An arm in full, for where both are the same.
pub(crate) fn full(arm: &Arm) -> String {
    let parts: Vec<String> = traits(arm)
        .iter()
        .map(|(key, value)| match key.is_empty() {
            true => clean(value),
            false => format!("{} {}", clean(key), clean(value)),
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
        assert_eq!(told(&set(None), None).changed, "inherited");
        assert_eq!(told(&set(None), None).now, None);
        let told = told(&set(Some("16K")), Some("128K"));
        assert_eq!(told.what, "ZFS property recordsize of tank/vm");
        assert_eq!((told.now.as_deref(), &*told.changed), (Some("128K"), "16K"));
    }

    #[test]
    fn copies_are_told_by_what_tells_them_apart() {
        let fs = |fstype: &str, mount: &[&str]| Arm::FileSystem {
            fstype: fstype.to_owned(),
            mkfs: vec![],
            mount: mount.iter().map(|word| (*word).to_owned()).collect(),
        };
        assert_eq!(
            sides(&fs("ext4", &["noatime"]), &fs("xfs", &["noatime"])),
            ("ext4".to_owned(), "xfs".to_owned())
        );
        let (a, b) = sides(&fs("ext4", &[]), &fs("ext4", &["data=journal"]));
        assert_eq!(a, "mount options none");
        assert_eq!(b, "mount options data=journal");
        let same = fs("ext4", &[]);
        assert_eq!(sides(&same, &same).0, full(&same));
    }
}
