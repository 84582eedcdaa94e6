//! Parses the processor of a Proxmox guest from `cpu`, `args` and `arch` of its configuration, and determines whether
//! it has AES instructions.

use super::Config;
use std::collections::BTreeMap;

/// QEMU processor models without AES instructions (pve-docs, qm.adoc, "QEMU CPU Types"; QEMU 9.0, target/i386/cpu.c).
pub(crate) const WITHOUT_AES: [&str; 24] = [
    "kvm64",
    "kvm32",
    "qemu64",
    "qemu32",
    "486",
    "pentium",
    "pentium2",
    "pentium3",
    "athlon",
    "coreduo",
    "core2duo",
    "phenom",
    "n270",
    "Conroe",
    "Penryn",
    "Nehalem",
    "Nehalem-IBRS",
    "Opteron_G1",
    "Opteron_G2",
    "Opteron_G3",
    "x86-64-v1",
    "x86-64-v2",
    "base",
    "qemu64-v1",
];

/// Returns the argument of the last `-cpu` in `args`. QEMU uses the last one, and Proxmox appends `args` to its own
/// arguments.
fn cpu_of_arguments(args: &str) -> Option<&str> {
    let words: Vec<&str> = args.split_ascii_whitespace().collect();
    let pairs = words.windows(2);
    let mut named = pairs.filter(|pair| matches!(pair[0], "-cpu" | "--cpu"));
    named.next_back().map(|pair| pair[1])
}

/// Splits a processor definition into its model and flags. Accepts `kvm64,flags=+aes;-x`, `cputype=host`, and QEMU's
/// own `host,+svm`.
fn model_and_flags(cpu: &str) -> (Option<&str>, Vec<&str>) {
    let mut model = None;
    let mut flags = Vec::new();
    for (at, part) in cpu.split(',').map(str::trim).enumerate() {
        match part.split_once('=') {
            Some(("cputype", name)) => model = Some(name),
            Some(("flags", list)) => flags.extend(list.split(';')),
            None if at == 0 => model = Some(part),
            Some(("aes", on)) => flags.push(if on == "on" { "+aes" } else { "-aes" }),
            _ => flags.push(part),
        }
    }
    (model, flags)
}

/// Adds `cpu`, `arch` and, if known, whether the guest has AES instructions to the settings of the guest.
pub(super) fn note(config: &mut Config, values: &BTreeMap<&str, &str>) {
    let arch = values.get("arch").copied().unwrap_or("x86_64");
    let args = values.get("args").and_then(|args| cpu_of_arguments(args));
    config.cpu_key = if args.is_some() { "args" } else { "cpu" };
    let default = (arch == "x86_64").then_some("kvm64");
    let (model, flags) = match args.or(values.get("cpu").copied()) {
        Some(cpu) => model_and_flags(cpu),
        None => (default, Vec::new()),
    };
    let mut set = |key: &str, value: &str| {
        config.settings.insert(key.to_owned(), value.to_owned());
    };
    if arch != "x86_64" {
        set("arch", arch);
    }
    // qm.conf(5): the default is on.
    if values
        .get("kvm")
        .is_some_and(|kvm| matches!(*kvm, "0" | "no" | "off" | "false"))
    {
        set("kvm", "0");
    }
    let Some(model) = model.or(default) else {
        return;
    };
    set("cpu", model);
    // The last flag of a name applies.
    let own = flags
        .iter()
        .rev()
        .find(|flag| matches!(**flag, "+aes" | "-aes"));
    match own {
        Some(flag) if *flag == "+aes" => set("aes", "yes"),
        Some(_) => set("aes", "no"),
        None if arch == "x86_64" && WITHOUT_AES.contains(&model) => set("aes", "no"),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::proxmox::{parse, redact};
    use std::collections::BTreeMap;

    /// Published configurations are evaluated: nested virtualisation by `args`, Proxmox on ARM, and flags next to the
    /// type.
    #[test]
    fn what_decides_on_aes() {
        let aes = |text: &str| {
            let kept: Vec<String> = text.lines().map(|line| redact(line, false)).collect();
            let config = parse(text, &BTreeMap::new());
            let again = parse(&kept.join("\n"), &BTreeMap::new());
            assert_eq!(config.settings, again.settings, "{text}");
            let found = |key: &str| config.settings.get(key).cloned().unwrap_or_default();
            (found("cpu"), found("aes"), config.cpu_key)
        };
        let of = |cpu: &str, aes: &str, key: &'static str| (cpu.to_owned(), aes.to_owned(), key);
        for (text, expected) in [
            ("memory: 1\n", of("kvm64", "no", "cpu")),
            (
                "cpu: kvm64,flags=+hv-evmcs;+aes\n",
                of("kvm64", "yes", "cpu"),
            ),
            ("args: -cpu host,+svm\ncpu: kvm64\n", of("host", "", "args")),
            (
                "args: -smbios x -cpu kvm64 -foo\ncpu: host\n",
                of("kvm64", "no", "args"),
            ),
            (
                "args: -cpu kvm64 -cpu kvm64,aes=on\n",
                of("kvm64", "yes", "args"),
            ),
            ("args: -device usb-host\ncpu: host\n", of("host", "", "cpu")),
            ("arch: aarch64\nmachine: virt\n", of("", "", "cpu")),
            (
                "arch: aarch64\ncpu: cortex-a57\n",
                of("cortex-a57", "", "cpu"),
            ),
            ("cpu: cputype=kvm64,flags=-aes\n", of("kvm64", "no", "cpu")),
            (
                "cpu: x86-64-v2-AES,flags=-aes\n",
                of("x86-64-v2-AES", "no", "cpu"),
            ),
            ("cpu: x86-64-v2-AES\n", of("x86-64-v2-AES", "", "cpu")),
            ("cpu: x86-64-v2\n", of("x86-64-v2", "no", "cpu")),
            ("cpu: custom-mine\n", of("custom-mine", "", "cpu")),
        ] {
            assert_eq!(aes(text), expected, "{text}");
        }
    }
}
