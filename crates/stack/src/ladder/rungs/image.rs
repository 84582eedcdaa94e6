//! The image of a measured layer: its settings for display, and the image without a guest.

use assay_lab::Disk;
use assay_lab::disk::DiskFormat;
use assay_model::change::{ImageArm, ImageFormat};

/// Returns the settings with which QEMU opens an image (cache mode and aio), for display.
pub(super) fn open_options(disk: &Disk) -> [(&'static str, String); 2] {
    [
        ("cache", disk.cache.name().to_owned()),
        ("aio", disk.aio.name().to_owned()),
    ]
}

/// Returns the options of a format, with the names that `qemu-img create -o` uses.
pub(super) fn format_options(format: DiskFormat) -> Vec<(&'static str, String)> {
    let DiskFormat::Qcow2 {
        cluster,
        preallocated,
        extended_l2,
        lazy_refcounts,
    } = format
    else {
        return Vec::new();
    };
    let mut options = vec![("cluster_size", cluster.to_string())];
    let on = |on: bool| if on { "on" } else { "off" }.to_owned();
    if preallocated {
        options.push(("preallocation", "metadata".to_owned()));
    }
    if extended_l2 {
        options.push(("extended_l2", on(extended_l2)));
    }
    if lazy_refcounts {
        options.push(("lazy_refcounts", on(lazy_refcounts)));
    }
    options
}

/// Returns the image of a guest's disk, for use without the guest.
pub(super) fn to_image_arm(disk: &Disk) -> ImageArm {
    let options = format_options(disk.format).into_iter();
    ImageArm {
        format: match disk.format {
            DiskFormat::Qcow2 { .. } => ImageFormat::Qcow2,
            DiskFormat::Raw | DiskFormat::Luks => ImageFormat::Raw,
        },
        options: options
            .map(|(key, value)| (key.to_owned(), value))
            .collect(),
        cache: disk.cache,
        aio: disk.aio,
        luks: disk.format == DiskFormat::Luks,
        filled: true,
    }
}
