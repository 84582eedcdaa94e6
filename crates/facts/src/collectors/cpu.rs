//! Collects the model, threads, microcode, frequency control and mitigations of the processor.

use crate::gather::{Gather, lossy};
use assay_model::FactKind;
use serde_json::Value;
use std::collections::BTreeSet;

const CPU: &str = "/sys/devices/system/cpu";
const CPUINFO: &str = "/proc/cpuinfo";

pub(crate) fn collect(g: &mut Gather<'_>) {
    if let Some(text) = g.read("cpu", CPUINFO) {
        let found = parse_cpuinfo(&text);
        let mut known =
            |key: &str, value: Value| g.facts.known(key, value, FactKind::Runtime, CPUINFO);
        known("cpu.threads", found.threads.into());
        if let Some(model) = found.model {
            known("cpu.model", model.into());
        }
        if let Some(aes) = found.aes {
            known("cpu.aes", aes.into());
        }
        if let Some(microcode) = found.microcode {
            known("cpu.microcode", microcode.into());
        }
        if found.cores > 0 {
            known("cpu.cores", found.cores.into());
            known("cpu.sockets", found.sockets.into());
        }
    }
    g.flag("cpu.smt", &format!("{CPU}/smt/active"));
    g.text("cpu.idle_driver", &format!("{CPU}/cpuidle/current_driver"));
    g.text("cpu.isolated", &format!("{CPU}/isolated"));
    note_frequency(g);
    for name in g.list("cpu.vulnerability", &format!("{CPU}/vulnerabilities")) {
        let name = lossy(&name);
        g.text(
            &format!("cpu.vulnerability.{name}"),
            &format!("{CPU}/vulnerabilities/{name}"),
        );
    }
    for name in [
        "boost",
        "intel_pstate/no_turbo",
        "amd_pstate/status",
        "intel_pstate/status",
    ] {
        let path = if name == "boost" {
            format!("{CPU}/cpufreq/boost")
        } else {
            format!("{CPU}/{name}")
        };
        g.text(&format!("cpu.{}", name.replace('/', ".")), &path);
    }
}

/// Notes the frequency control. The kernel has one directory for each policy, and most policies have equal values. Each
/// distinct value is noted once, with its first policy as the source.
fn note_frequency(g: &mut Gather<'_>) {
    let dir = format!("{CPU}/cpufreq");
    let policies: Vec<String> = g
        .list("cpu.frequency", &dir)
        .iter()
        .map(|name| lossy(name))
        .filter(|name| name.starts_with("policy"))
        .collect();
    let names = [
        ("cpu.governor", "scaling_governor", 0),
        ("cpu.frequency_driver", "scaling_driver", 0),
        ("cpu.energy_preference", "energy_performance_preference", 0),
        ("cpu.frequency_min", "scaling_min_freq", 1000),
        ("cpu.frequency_max", "scaling_max_freq", 1000),
    ];
    for (key, file, unit) in names {
        let mut values = BTreeSet::new();
        let mut source = String::new();
        for policy in &policies {
            let path = format!("{dir}/{policy}/{file}");
            if let Some(text) = g.read(key, &path) {
                values.insert(text.trim().to_owned());
                if source.is_empty() {
                    source = path;
                }
            }
        }
        let value = |text: &String| match text.parse::<u64>() {
            Ok(number) if unit > 0 => Value::from(number.saturating_mul(unit)),
            _ => text.as_str().into(),
        };
        let mut values: Vec<Value> = values.iter().map(value).collect();
        match values.len() {
            0 => {}
            1 => g
                .facts
                .known(key, values.remove(0), FactKind::Runtime, source),
            _ => g
                .facts
                .known(key, values, FactKind::Runtime, format!("{dir}/*/{file}")),
        }
    }
}

#[derive(Debug, Default, PartialEq)]
struct CpuInfo {
    model: Option<String>,
    microcode: Option<String>,
    /// Whether the processor has AES instructions; the CPU model of a guest may hide them.
    aes: Option<bool>,
    threads: u64,
    /// Number of cores; 0 if /proc/cpuinfo has no such line (ARM).
    cores: u64,
    sockets: u64,
}

fn parse_cpuinfo(text: &str) -> CpuInfo {
    let mut found = CpuInfo::default();
    let (mut cores, mut sockets) = (BTreeSet::new(), BTreeSet::new());
    let mut socket = "";
    for line in text.lines() {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let value = value.trim();
        match name.trim() {
            "processor" => found.threads += 1,
            "model name" => found.model = found.model.or_else(|| Some(value.to_owned())),
            "microcode" => found.microcode = found.microcode.or_else(|| Some(value.to_owned())),
            // x86; ARM.
            "flags" | "Features" => {
                let aes = value.split(' ').any(|flag| flag == "aes");
                found.aes = found.aes.or(Some(aes));
            }
            "physical id" => {
                socket = value;
                sockets.insert(value);
            }
            "core id" => drop(cores.insert((socket, value))),
            _ => {}
        }
    }
    found.cores = cores.len() as u64;
    found.sockets = sockets.len() as u64;
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_cores_sockets() {
        let text = "processor\t: 0\nmodel name\t: AMD EPYC\nmicrocode\t: 0x1\nphysical id\t: 0\ncore id\t: 0\n\nprocessor\t: 1\nphysical id\t: 0\ncore id\t: 0\n\nprocessor\t: 2\nphysical id\t: 1\ncore id\t: 0\n";
        let found = parse_cpuinfo(text);
        assert_eq!((found.threads, found.cores, found.sockets), (3, 2, 2));
        assert_eq!(found.model.as_deref(), Some("AMD EPYC"));
        assert_eq!(parse_cpuinfo("").threads, 0);
        assert_eq!(found.aes, None);
        assert_eq!(parse_cpuinfo("flags\t\t: fpu aes avx\n").aes, Some(true));
        assert_eq!(parse_cpuinfo("Features\t: fp aesx\n").aes, Some(false));
    }
}
