//! Kept settings as files that an administrator can copy: sysctl.d, a udev rule, modprobe.d, and Ansible tasks.

use assay_model::change::Setting;
use assay_tune::{CandidateChange, TuneId};
use std::fmt::Write as _;

/// Describes how long a kept setting lasts.
pub(super) fn describe_lifetime(setting: &Setting) -> &'static str {
    match setting {
        Setting::Config { .. }
        | Setting::ConfigKeys { .. }
        | Setting::FileMode { .. }
        | Setting::NewFile { .. }
        | Setting::ZfsProperty { .. } => "until it is undone",
        Setting::Command { .. } => "as your command says",
        _ => "until the next boot",
    }
}

/// Writes files for the settings that are lost at boot, and Ansible tasks, each as (name, text).
pub(super) fn write_snippets<'a>(
    id: TuneId,
    kept: impl Iterator<Item = &'a CandidateChange>,
) -> Vec<(String, String)> {
    let (mut sysctl, mut udev, mut modprobe, mut tasks) =
        (String::new(), String::new(), String::new(), String::new());
    for change in kept {
        let Some(value) = &change.value else { continue };
        match &change.setting {
            Setting::Sysctl { key } => {
                let _ = writeln!(sysctl, "{key} = {value}");
                let lines = [
                    format!("- name: {key}"),
                    "  ansible.posix.sysctl:".to_owned(),
                    format!("    name: {}", quote(key)),
                    format!("    value: {}", quote(value)),
                    format!("    sysctl_file: /etc/sysctl.d/90-assay-{id}.conf"),
                ];
                let _ = writeln!(tasks, "{}", lines.join("\n"));
            }
            Setting::Queue { device, attribute } => {
                let name = device.rsplit('/').next().unwrap_or(device);
                let _ = write!(udev, "ACTION==\"add|change\", SUBSYSTEM==\"block\", ");
                let _ = writeln!(
                    udev,
                    "KERNEL==\"{name}\", ATTR{{queue/{attribute}}}=\"{value}\""
                );
            }
            Setting::ModuleParameter { module, name } => {
                let _ = writeln!(modprobe, "options {module} {name}={value}");
            }
            Setting::ZfsProperty { dataset, property } => {
                let lines = [
                    format!("- name: {property} of {dataset}"),
                    "  community.general.zfs:".to_owned(),
                    format!("    name: {}", quote(dataset)),
                    "    state: present".to_owned(),
                    "    extra_zfs_properties:".to_owned(),
                    format!("      {property}: {}", quote(value)),
                ];
                let _ = writeln!(tasks, "{}", lines.join("\n"));
            }
            _ => {}
        }
    }
    let head = format!("# From session {id} of `assay tune`.\n");
    let files = [
        (format!("/etc/sysctl.d/90-assay-{id}.conf"), sysctl),
        (format!("/etc/udev/rules.d/90-assay-{id}.rules"), udev),
        (format!("/etc/modprobe.d/assay-{id}.conf"), modprobe),
        ("tasks.yml".to_owned(), tasks),
    ];
    let written = files.into_iter().filter(|(_, text)| !text.is_empty());
    written
        .map(|(name, text)| (name, format!("{head}{text}")))
        .collect()
}

/// Quotes a string as YAML.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
