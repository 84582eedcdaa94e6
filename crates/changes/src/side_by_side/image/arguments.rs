//! Arguments of QEMU's tools (qemu-img(1), qemu-nbd(8), qemu-storage-daemon(1)). All file names are relative to the
//! arm's directory.

use crate::side_by_side::ArmError;
use assay_model::Bytes;
use assay_model::change::{Aio, ImageArm, ImageFormat};
use assay_qemu::{cache_option, escape};
use serde_json::{Value, json};

/// Name of the NBD socket in the arm's directory.
pub(crate) const SOCKET: &str = "nbd.sock";
/// Name of the socket of QEMU's monitor (QMP).
pub(crate) const QMP: &str = "qmp.sock";
/// Name of the NBD export.
pub(crate) const EXPORT: &str = "arm";
/// Name of the image file in the arm's directory.
pub(crate) const IMAGE: &str = "image";
/// Name of the file with the encryption key, which is used only for this arm.
pub(crate) const KEY: &str = "key";

/// Options that refer to another file, or that assay sets itself. The user cannot set them.
const OWN: [&str; 9] = [
    "backing_file",
    "backing_fmt",
    "data_file",
    "data_file_raw",
    "encryption",
    "encrypt.format",
    "encrypt.key-secret",
    "key-secret",
    "size",
];

/// Returns QEMU's name for the format layer.
pub(super) fn format_driver(arm: &ImageArm) -> &'static str {
    match (arm.format, arm.luks) {
        (ImageFormat::Raw, false) => "raw",
        (ImageFormat::Raw, true) => "luks",
        (ImageFormat::Qcow2, _) => "qcow2",
    }
}

/// Refuses options that QEMU would refuse later, or that would affect files outside the arm.
pub(crate) fn check(arm: &ImageArm) -> Result<(), ArmError> {
    let refuse = |what: String, reason: &str| {
        Err(ArmError::Refused {
            what: what.escape_debug().to_string(),
            source: reason.into(),
        })
    };
    for name in arm.options.keys() {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || !name.chars().all(plain) {
            return refuse(name.clone(), "this is not the name of an image option");
        }
        if OWN.contains(&name.as_str()) {
            return refuse(
                name.clone(),
                "assay settles this option of an image itself; images with other files behind \
                 them cannot be tested",
            );
        }
    }
    if arm.aio == Aio::Native && !arm.cache.direct() {
        return refuse(
            format!("aio=native with cache={}", arm.cache.name()),
            "native I/O needs O_DIRECT: use cache=none or cache=directsync",
        );
    }
    Ok(())
}

/// Returns the arguments of `qemu-img create`.
pub(crate) fn create(arm: &ImageArm, size: Bytes) -> Vec<String> {
    let mut args = vec!["create".to_owned(), "-q".to_owned()];
    // The key needs no stretching: 10 ms instead of 2 s per image, and no other difference once the image is
    // open.
    let own: &[&str] = match (arm.format, arm.luks) {
        (_, false) => &[],
        (ImageFormat::Raw, true) => &["key-secret=key", "iter-time=10"],
        (ImageFormat::Qcow2, true) => &[
            "encrypt.format=luks",
            "encrypt.key-secret=key",
            "encrypt.iter-time=10",
        ],
    };
    if arm.luks {
        args.extend(secret_arguments());
    }
    args.extend(["-f", format_driver(arm)].map(str::to_owned));
    // QEMU uses the last of several equal options, so a user's iter-time takes precedence.
    let own = own.iter().map(|option| (*option).to_owned());
    let given = arm.options.iter();
    let given = given.map(|(name, value)| format!("{name}={}", escape(value)));
    for option in own.chain(given) {
        args.extend(["-o".to_owned(), option]);
    }
    args.extend([IMAGE.to_owned(), size.0.to_string()]);
    args
}

fn secret_arguments() -> [String; 2] {
    ["--object".to_owned(), format!("secret,id=key,file={KEY}")]
}

/// Returns the definition of the block node that contains the image's bytes.
pub(crate) fn file_node(arm: &ImageArm) -> Value {
    json!({
        "driver": "file",
        "node-name": "file",
        "filename": IMAGE,
        "aio": arm.aio.name(),
        "cache": cache_option(arm.cache),
    })
}

/// Returns the definition of the block node for the format, above the node `file`.
fn format_node(arm: &ImageArm) -> Value {
    let mut node = json!({
        "driver": format_driver(arm),
        "node-name": "image",
        "file": "file",
        "cache": cache_option(arm.cache),
    });
    match (arm.format, arm.luks) {
        (_, false) => {}
        (ImageFormat::Raw, true) => node["key-secret"] = json!("key"),
        (ImageFormat::Qcow2, true) => {
            node["encrypt"] = json!({ "format": "luks", "key-secret": "key" });
        }
    }
    node
}

/// Returns the arguments of `qemu-storage-daemon` that serve the arm from the block node `file`. `--nbd-server` must
/// precede `--export`.
pub(crate) fn daemon_arguments(arm: &ImageArm, file: &Value) -> Vec<String> {
    serve(arm, file, format_node(arm), true)
}

/// Like `daemon_arguments`, but read-only, to read an image after a power cut. The cache mode has no effect then.
pub(crate) fn daemon_read_only(arm: &ImageArm) -> Vec<String> {
    let file = json!({
        "driver": "file",
        "node-name": "file",
        "filename": IMAGE,
        "read-only": true,
    });
    let mut format = format_node(arm);
    format["read-only"] = json!(true);
    serve(arm, &file, format, false)
}

fn serve(arm: &ImageArm, file: &Value, format: Value, writable: bool) -> Vec<String> {
    let mut args = vec![
        "--chardev".to_owned(),
        format!("socket,id=qmp,path={QMP},server=on,wait=off"),
        "--monitor".to_owned(),
        "chardev=qmp".to_owned(),
        "--nbd-server".to_owned(),
        format!("addr.type=unix,addr.path={SOCKET}"),
    ];
    if arm.luks {
        args.extend(secret_arguments());
    }
    let export = json!({
        "type": "nbd",
        "id": "export",
        "node-name": "image",
        "name": EXPORT,
        "writable": writable,
        "writethrough": writable && !arm.cache.shows_write_cache(),
    });
    for node in [file, &format] {
        args.extend(["--blockdev".to_owned(), node.to_string()]);
    }
    args.extend(["--export".to_owned(), export.to_string()]);
    args
}

/// Returns the arguments of `qemu-nbd`, for machines without the storage daemon. qemu-nbd requires an absolute socket
/// path; the path through `/proc/self/cwd` is absolute and short.
pub(crate) fn qemu_nbd(arm: &ImageArm) -> Vec<String> {
    let mut args = vec![
        format!("--cache={}", arm.cache.name()),
        format!("--aio={}", arm.aio.name()),
    ];
    args.extend(image_options(arm));
    args
}

/// Like `qemu_nbd`, but read-only, to read an image after a power cut.
pub(crate) fn qemu_nbd_read_only(arm: &ImageArm) -> Vec<String> {
    let mut args = vec!["--read-only".to_owned()];
    args.extend(image_options(arm));
    args
}

fn image_options(arm: &ImageArm) -> Vec<String> {
    let mut args = vec![
        format!("--socket=/proc/self/cwd/{SOCKET}"),
        format!("--export-name={EXPORT}"),
        "--persistent".to_owned(),
        "--shared=128".to_owned(),
    ];
    let mut options = format!(
        "driver={},file.driver=file,file.filename={IMAGE}",
        format_driver(arm)
    );
    if arm.luks {
        args.extend(secret_arguments());
        options.push_str(match arm.format {
            ImageFormat::Raw => ",key-secret=key",
            ImageFormat::Qcow2 => ",encrypt.format=luks,encrypt.key-secret=key",
        });
    }
    args.extend(["--image-opts".to_owned(), options]);
    args
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_model::change::CacheMode;

    fn arm() -> ImageArm {
        ImageArm {
            format: ImageFormat::Qcow2,
            options: [("cluster_size", "8k"), ("x", "a,b")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            cache: CacheMode::None,
            aio: Aio::Native,
            luks: false,
            filled: false,
        }
    }

    #[test]
    fn a_comma_does_not_begin_another_option() {
        let args = create(&arm(), Bytes(1 << 20));
        assert_eq!(
            args.join(" "),
            "create -q -f qcow2 -o cluster_size=8k -o x=a,,b image 1048576"
        );
    }

    #[test]
    fn no_option_reaches_another_file() {
        for name in ["data_file", "backing_file", "key-secret", "size", "a=b", ""] {
            let mut arm = arm();
            arm.options
                .insert(name.to_owned(), "/etc/passwd".to_owned());
            assert!(
                matches!(check(&arm), Err(ArmError::Refused { .. })),
                "{name}"
            );
        }
        assert!(check(&arm()).is_ok());
    }

    #[test]
    fn native_io_needs_a_direct_mode() {
        for (mode, direct) in [
            (CacheMode::None, true),
            (CacheMode::Directsync, true),
            (CacheMode::Writeback, false),
            (CacheMode::Writethrough, false),
            (CacheMode::Unsafe, false),
        ] {
            let arm = ImageArm {
                cache: mode,
                ..arm()
            };
            assert_eq!(check(&arm).is_ok(), direct, "{mode:?}");
        }
    }

    #[test]
    fn the_key_is_named_and_never_told() {
        for format in [ImageFormat::Raw, ImageFormat::Qcow2] {
            let arm = ImageArm {
                format,
                luks: true,
                options: [].into(),
                ..arm()
            };
            let all = [
                create(&arm, Bytes(1)),
                daemon_arguments(&arm, &file_node(&arm)),
                qemu_nbd(&arm),
            ];
            for args in all {
                assert!(args.contains(&"secret,id=key,file=key".to_owned()));
            }
        }
    }
}
