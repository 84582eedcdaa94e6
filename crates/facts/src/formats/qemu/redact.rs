//! Redacts QEMU's command line: drops secrets, and text that identifies the machine.

use super::nodes::protocol;
use super::options::{Map, options, settings};
use crate::harmless::LEFT_OUT;
use crate::limits::is_limit;
use assay_model::secrets::{WITHHELD, is_plain};
use serde_json::Value;

/// Options that describe the machine and its disks. All other options are dropped.
pub(crate) const OPTIONS: [(&str, &str); 18] = [
    ("id", ""),
    ("name", "guest"),
    ("M", "type"),
    ("machine", "type"),
    ("cpu", "model"),
    ("accel", "accel"),
    ("enable-kvm", ""),
    ("m", "size"),
    ("smp", "cpus"),
    ("blockdev", ""),
    ("drive", ""),
    ("device", "driver"),
    ("object", "qom-type"),
    ("hda", ""),
    ("hdb", ""),
    ("hdc", ""),
    ("hdd", ""),
    ("snapshot", ""),
];

/// Settings of drives and devices that affect performance. All other settings are dropped.
pub(crate) const KEYS: [&str; 40] = [
    "accel",
    "aio",
    "bus",
    "cache",
    "cpus",
    "cores",
    "direct",
    "discard",
    "discard_granularity",
    "detect-zeroes",
    "drive",
    "driver",
    "file",
    "filename",
    "format",
    "guest",
    "id",
    "if",
    "image",
    "index",
    "iothread",
    "logical_block_size",
    "media",
    "no-flush",
    "node-name",
    "num-queues",
    "physical_block_size",
    "qom-type",
    "queue-size",
    "read-only",
    "readonly",
    "rerror",
    "rotation_rate",
    "size",
    "snapshot",
    "throttle-group",
    "type",
    "werror",
    "write-cache",
    "writeback",
];

/// Redacts `/proc/PID/cmdline` to what becomes facts: the machine type, the disks with their settings, and the
/// directories of images without file names. With `identity`, keeps the names of the machine and of its images.
/// Applying the function twice changes nothing.
#[must_use]
pub fn redact(cmdline: &[u8], identity: bool) -> Vec<u8> {
    let argv = super::argv(cmdline);
    let program = super::pc_program(&argv).unwrap_or("qemu");
    let mut kept = vec![program.to_owned()];
    for (option, argument) in options(&argv) {
        let Some((_, implied)) = OPTIONS.iter().find(|(name, _)| *name == option) else {
            continue;
        };
        // Objects may be secrets, except those that limit a disk.
        if option == "object" && !super::is_throttle_group(&settings(&argument, implied)) {
            continue;
        }
        kept.push(format!("-{option}"));
        match option.as_str() {
            "enable-kvm" | "snapshot" => {}
            "id" | "cpu" => kept.push(clean_value(argument)),
            "hda" | "hdb" | "hdc" | "hdd" => kept.push(file(&argument, identity)),
            _ => kept.push(clean_object(settings(&argument, implied), identity)),
        }
    }
    let mut bytes = kept.join("\0").into_bytes();
    bytes.push(0);
    bytes
}

/// Keeps numbers, words and sizes. Replaces other text, which may be private.
fn clean_value(text: String) -> String {
    let plain = text.is_empty() || is_plain(&text.replace(['=', '#'], "-"));
    if plain { text } else { WITHHELD.to_owned() }
}

fn clean_object(map: Map, identity: bool) -> String {
    let mut clean = serde_json::Map::new();
    let mut map = map;
    if let Some(json) = map.get("file").and_then(|file| file.strip_prefix("json:")) {
        let inner = settings(json, "");
        map.remove("file");
        let inner = inner.into_iter();
        map.extend(inner.map(|(key, value)| (format!("file.{key}"), value)));
    }
    let is_drive = !map.contains_key("node-name");
    for (key, text) in map {
        let last = key.rsplit('.').next().unwrap_or(&key);
        if !is_plain(&key) {
            continue;
        }
        let text = match last {
            "guest" if identity => text,
            "guest" => LEFT_OUT.to_owned(),
            "filename" => file(&text, identity),
            // A node of -blockdev refers to the node below it.
            "file" if is_drive => file(&text, identity),
            _ if is_limit(&key) => clean_value(text),
            _ if KEYS.contains(&last) => clean_value(text),
            _ => continue,
        };
        clean.insert(key, Value::String(text));
    }
    Value::Object(clean).to_string()
}

/// Keeps a device name, or the directory of a file. With `identity`, keeps the whole path. For network storage, keeps
/// only the protocol.
pub(crate) fn file(name: &str, identity: bool) -> String {
    match protocol(name) {
        "file" => {}
        other if is_plain(other) => return format!("{other}:{LEFT_OUT}"),
        _ => return LEFT_OUT.to_owned(),
    }
    let known = |c: char| !c.is_control() && !"?&\"'`".contains(c);
    if name.contains("//") || !name.chars().all(known) {
        return LEFT_OUT.to_owned();
    }
    if identity {
        return name.to_owned();
    }
    let device = name.starts_with("/dev/") && !name.starts_with("/dev/disk/");
    match name.rsplit_once('/') {
        _ if device => name.to_owned(),
        Some((dir, _)) => format!("{dir}/{LEFT_OUT}"),
        None => LEFT_OUT.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_addresses_and_secrets_are_left_out() {
        let argv = [
            "/usr/bin/kvm",
            "-name",
            "mail.example.org,debug-threads=on",
            "-uuid",
            "12345678",
            "-object",
            "secret,id=s,data=hunter2",
            "-drive",
            "file=/srv/vm/mail.example.org.qcow2,format=qcow2,serial=S3RIAL,if=virtio,cache=none",
            "-drive",
            "file=nbd:files.example.org:10809,if=virtio",
            "-blockdev",
            r#"{"driver":"rbd","pool":"p","server":[{"host":"10.0.0.1"}],"node-name":"n","key-secret":"s"}"#,
            "-drive",
            r#"file=json:{"driver":"https",,"url":"https://u:pw@x.example.org/i"},if=virtio"#,
            "-device",
            "virtio-net-pci,mac=52:54:00:12:34:56",
            "-hda",
            "/dev/disk/by-id/ata-WDC_S3RIAL",
            "-vnc",
            ":0,password=on",
        ]
        .join("\0");
        let clean = redact(argv.as_bytes(), false);
        let text = String::from_utf8(clean.clone()).unwrap();
        for secret in [
            "example.org",
            "12345678",
            "hunter2",
            "S3RIAL",
            "10.0.0.1",
            "pw",
            "52:54",
        ] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
        assert_eq!(redact(&clean, false), clean);
        let machine = crate::qemu::parse(&crate::qemu::argv(&clean));
        assert_eq!(machine.disks.len(), 4);
        assert_eq!(machine.disks[0].settings["cache"], "none");
        let storage = crate::qemu::Storage::File("/srv/vm/(left out)".into());
        assert_eq!(machine.disks[0].storage, storage);
        let nbd = crate::qemu::Storage::Elsewhere("nbd".to_owned());
        assert_eq!(machine.disks[1].storage, nbd);
    }
}
