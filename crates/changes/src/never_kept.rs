//! Decides which values assay never keeps permanently, however large their gain is. Also decides which settings do not
//! survive a reboot.

use crate::setting::joined_settings;
use assay_model::change::{ConfigLanguage, Setting};

/// Returns why a value of a setting is never kept permanently; `None` if it may be kept. With such a value,
/// acknowledged writes would not be durable, or damage would not be detected. Trials may still measure it.
#[must_use]
pub fn never_kept(setting: &Setting, value: Option<&str>) -> Option<&'static str> {
    const LIES: &str = "writes that were acknowledged as durable would be lost in a power cut";
    const TORN: &str = "a power cut could leave the file system damaged";
    const BLIND: &str = "damaged data would no longer be noticed";
    let value = value.map(|value| value.trim().to_ascii_lowercase());
    let value = value.as_deref();
    let off = matches!(value, Some("0" | "off" | "no" | "false" | "n" | "never"));
    let on = matches!(value, Some("1" | "on" | "yes" | "true" | "y"));
    match setting {
        Setting::ZfsProperty { property, .. } => match (property.as_str(), value) {
            ("sync", Some("disabled")) => Some(LIES),
            ("checksum", Some("off")) => Some(BLIND),
            _ => None,
        },
        Setting::ModuleParameter { module, name } => match (module.as_str(), name.as_str()) {
            // The last parameter omits logged writes after a crash (zfs(4)).
            ("zfs", "zfs_nocacheflush" | "zil_nocacheflush" | "zil_replay_disable") if on => {
                Some(LIES)
            }
            _ => None,
        },
        // The device keeps its volatile cache, but the kernel no longer flushes it
        // (Documentation/ABI/stable/sysfs-block).
        Setting::Queue { attribute, .. } => match (attribute.as_str(), value) {
            ("write_cache", Some("write through" | "none")) => Some(LIES),
            _ => None,
        },
        Setting::MountOption { .. } => match value {
            Some("nobarrier" | "barrier=0" | "barrier=none" | "nobarriers") => Some(LIES),
            Some("data=writeback") => Some(TORN),
            Some("nodatasum" | "nodatacow") => Some(BLIND),
            _ => None,
        },
        Setting::ConfigKeys {
            file,
            language,
            keys,
            ..
        } => joined_settings::parse_values(value, keys.len()).and_then(|values| {
            keys.iter().zip(values).find_map(|(one, value)| {
                let one = Setting::Config {
                    file: file.clone(),
                    language: *language,
                    section: one.section.clone(),
                    key: one.key.clone(),
                    validate: Vec::new(),
                    reload: Vec::new(),
                };
                never_kept(&one, value.as_deref())
            })
        }),
        Setting::Config { language, key, .. } => {
            // MariaDB treats dashes as underscores.
            let key = key.to_ascii_lowercase().replace('-', "_");
            let databases = matches!(
                language,
                ConfigLanguage::KeyValue
                    | ConfigLanguage::Ini
                    | ConfigLanguage::Postgresql
                    | ConfigLanguage::Mysql
            );
            match key.as_str() {
                "fsync" | "full_page_writes" | "synchronous_commit" | "innodb_doublewrite"
                    if databases && off =>
                {
                    Some(LIES)
                }
                "skip_innodb_doublewrite" if databases && on => Some(LIES),
                "innodb_flush_log_at_trx_commit"
                    if databases && matches!(value, Some("0" | "2")) =>
                {
                    Some(LIES)
                }
                "mail_fsync" if matches!(language, ConfigLanguage::Dovecot) && off => Some(LIES),
                _ => None,
            }
        }
        Setting::Sysctl { .. }
        | Setting::Sysfs { .. }
        | Setting::FileMode { .. }
        | Setting::NewFile { .. }
        | Setting::Command { .. } => None,
    }
}

/// Whether a setting survives a reboot. A setting in the kernel's memory is lost; sysctl.d, modprobe.d, udev rules or
/// fstab make it permanent.
#[must_use]
pub fn survives_reboot(setting: &Setting) -> bool {
    match setting {
        Setting::ZfsProperty { .. }
        | Setting::Config { .. }
        | Setting::ConfigKeys { .. }
        | Setting::FileMode { .. }
        | Setting::NewFile { .. }
        | Setting::Command { .. } => true,
        Setting::ModuleParameter { .. }
        | Setting::Sysctl { .. }
        | Setting::Sysfs { .. }
        | Setting::Queue { .. }
        | Setting::MountOption { .. } => false,
    }
}
