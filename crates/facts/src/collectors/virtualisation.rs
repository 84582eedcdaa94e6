//! Collects whether assay runs on a physical machine, in a virtual machine or in a container, and the type of the
//! hypervisor or container.

use crate::gather::Gather;
use assay_host::HostError;
use assay_model::{FactKind, FactPlace};
use std::path::Path;

const DMI: &str = "/sys/class/dmi/id";

pub(crate) fn collect(g: &mut Gather<'_>, with_identity: bool) {
    note_detected(g, "virtualisation.vm", "--vm", by_hand_vm);
    note_detected(
        g,
        "virtualisation.container",
        "--container",
        by_hand_container,
    );
    let names = [
        ("machine.vendor", "sys_vendor"),
        ("machine.product", "product_name"),
        ("machine.board", "board_name"),
        ("machine.bios_version", "bios_version"),
        ("machine.bios_date", "bios_date"),
    ];
    for (key, file) in names {
        g.text(key, &format!("{DMI}/{file}"));
    }
    if with_identity {
        g.text("machine.serial", &format!("{DMI}/product_serial"));
        g.text("machine.uuid", &format!("{DMI}/product_uuid"));
    }
}

/// Notes the output of systemd-detect-virt(1), which detects the most types (`none` has exit status 1). If this program
/// is missing, calls `by_hand` instead.
fn note_detected(g: &mut Gather<'_>, key: &str, which: &str, by_hand: fn(&mut Gather<'_>, &str)) {
    let argv = ["systemd-detect-virt", which];
    match g.try_ask(&argv) {
        Ok(output) if !output.text().trim().is_empty() => {
            g.facts.known(
                key,
                output.text().trim(),
                FactKind::Runtime,
                FactPlace::command(argv),
            );
        }
        Ok(output) => g.facts.unknown(
            key,
            output.complaint(),
            FactKind::Runtime,
            FactPlace::command(argv),
        ),
        Err(error @ (HostError::NoCommand { .. } | HostError::NotCaptured { .. })) => {
            by_hand(g, key);
            if matches!(error, HostError::NotCaptured { .. }) && !g.facts.map.contains_key(key) {
                g.fault(key, &error, FactKind::Runtime, FactPlace::command(argv));
            }
        }
        Err(error) => g.fault(key, &error, FactKind::Runtime, FactPlace::command(argv)),
    }
}

/// Detects a hypervisor from files, beginning with the most reliable file.
fn by_hand_vm(g: &mut Gather<'_>, key: &str) {
    for path in [
        "/sys/hypervisor/type",
        "/proc/device-tree/hypervisor/compatible",
    ] {
        g.text(key, path);
        if g.facts.get(key).is_some() {
            return;
        }
    }
    if let Some(text) = g.read(key, "/proc/cpuinfo") {
        let flags = text.lines().find(|line| line.starts_with("flags"));
        let virtual_machine =
            flags.is_some_and(|line| line.split_whitespace().any(|word| word == "hypervisor"));
        // ARM and others have no such flag; then nothing is noted.
        if flags.is_some() {
            let value = if virtual_machine {
                "a hypervisor that does not say its name"
            } else {
                "none"
            };
            g.facts
                .known(key, value, FactKind::Runtime, "/proc/cpuinfo");
        }
    }
}

fn by_hand_container(g: &mut Gather<'_>, key: &str) {
    g.text(key, "/run/systemd/container");
    for (path, name) in [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")] {
        match g.host.exists(Path::new(path)) {
            Ok(true) => return g.facts.known(key, name, FactKind::Runtime, path),
            Ok(false) => {}
            Err(error) => g.fault(key, &error, FactKind::Runtime, path),
        }
    }
}
