//! Remedies for definitions of guests, edited with virsh as the pages describe.

use super::Act::{Do, PasteIn};
use super::Case;

/// Runs `virsh edit` on a libvirtd in this root directory. The editor is a command that makes the change.
macro_rules! edit {
    ($sed:literal) => {
        concat!(
            r#"
: "${COMMAND=virsh edit web}"
mkdir -p /run/libvirt /tmp/bin
libvirtd --timeout 60 > /tmp/log 2>&1 &
export LIBVIRT_DEFAULT_URI=qemu:///system
for _ in $(seq 100); do virsh dominfo web > /dev/null 2>&1 && break; sleep 0.1; done
cat > /tmp/bin/edit <<'SCRIPT'
#!/bin/sh
sed -i -E ""#,
            $sed,
            r#"" "$1"
SCRIPT
chmod +x /tmp/bin/edit
EDITOR=/tmp/bin/edit $COMMAND
virsh dumpxml web > /dev/null
"#
        )
    };
}

macro_rules! libvirt {
    ($page:literal, $trees:expr, $sed:literal) => {
        Case {
            page: $page,
            trees: $trees,
            needs: "libvirtd",
            furnish: "",
            acts: &[PasteIn("virsh edit", &[], edit!($sed))],
            // libvirtd has parsed and written it.
            accepted: "",
        }
    };
}

pub const CASES: &[&[Case]] = &[&[
    libvirt!(
        "cache-unsafe",
        &["libvirt-9"],
        "s/cache='unsafe'/cache='none'/"
    ),
    libvirt!(
        "cache-writethrough",
        &["libvirt-9"],
        "s/cache='writethrough'/cache='none'/"
    ),
    Case {
        page: "disk-on-ide",
        trees: &["libvirt-9"],
        needs: "libvirtd",
        furnish: "",
        acts: &[Do(
            "as scsi or virtio and set the boot order",
            edit!(
                "s/<target dev='hda' bus='ide'/<target dev='vda' bus='virtio'/;/<address type='drive'/d"
            ),
        )],
        accepted: "",
    },
    libvirt!("disk-limited", &["libvirt-9"], "/<iotune>/,/<.iotune>/d"),
    libvirt!(
        "discard-ignored",
        &["libvirt-9"],
        "s/cache='none'/& discard='unmap'/"
    ),
    libvirt!(
        "unsafe-above-sync",
        &["libvirt-9"],
        "s/cache='unsafe'/cache='none'/"
    ),
    libvirt!(
        "zvol-writeback-full",
        &["libvirt-9"],
        "s/cache='writeback'/cache='none'/"
    ),
]];
