//! CPUs: times by kind, run queue, interrupts, thermal throttling, clock source and frequency.

use super::{MachineReader, parse_pressure};
use crate::machine_snapshot::MachineSnapshot;

/// Kinds of CPU time in the order of `/proc/stat`.
const KINDS: [&str; 8] = [
    "user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal",
];
/// Clock ticks per second of all times in `/proc` (USER_HZ, the same on all processors that Linux supports today).
pub(super) const TICKS: f64 = 100.0;

pub(super) fn read(reader: &mut MachineReader, look: &mut MachineSnapshot) {
    if let Some(text) = reader.text("/proc/stat") {
        parse_stat(&text, look);
    }
    if let Some(text) = reader.text("/proc/uptime")
        && let Some(Ok(seconds)) = text.split_ascii_whitespace().next().map(str::parse)
    {
        look.set("uptime", seconds);
    }
    for (file, name) in [
        ("cpu", "cpu"),
        ("io", "io"),
        ("memory", "memory"),
        ("irq", "irq"),
    ] {
        if let Some(text) = reader.text(&format!("/proc/pressure/{file}")) {
            for (kind, seconds) in parse_pressure(&text) {
                look.set(format!("psi.{name}.{kind}_total"), seconds);
            }
        }
    }
    if reader.is_thorough() {
        read_seldom(reader, look);
    }
}

fn parse_stat(text: &str, look: &mut MachineSnapshot) {
    let mut cpus = 0.0;
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(name) = words.next() else { continue };
        let mut first = || words.next().and_then(|word| word.parse::<f64>().ok());
        match name {
            "cpu" => {
                for (kind, ticks) in KINDS.iter().zip(words) {
                    let ticks: f64 = ticks.parse().unwrap_or(0.0);
                    look.set(format!("cpu.{kind}_total"), ticks / TICKS);
                }
            }
            "ctxt" => look.set("cpu.switches_total", first().unwrap_or(0.0)),
            "processes" => look.set("cpu.forks_total", first().unwrap_or(0.0)),
            "procs_running" => look.set("cpu.running", first().unwrap_or(0.0)),
            "procs_blocked" => look.set("cpu.blocked", first().unwrap_or(0.0)),
            name if name.starts_with("cpu") => {
                cpus += 1.0;
                let ticks: Vec<f64> = words.filter_map(|word| word.parse().ok()).collect();
                let number = &name[3..];
                if let [_, _, _, idle, iowait, irq, softirq, ..] = ticks[..] {
                    look.set(
                        format!("percpu.{number}.soft_total"),
                        (irq + softirq) / TICKS,
                    );
                    look.set(
                        format!("percpu.{number}.idle_total"),
                        (idle + iowait) / TICKS,
                    );
                }
            }
            _ => {}
        }
    }
    look.set("cpu.count", cpus);
}

fn read_seldom(reader: &mut MachineReader, look: &mut MachineSnapshot) {
    const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0";
    for (file, key) in [
        ("current_clocksource", "clocksource"),
        ("available_clocksource", "clocksources"),
    ] {
        if let Some(text) = reader.text(&format!("{CLOCK}/{file}")) {
            look.texts.insert(key.to_owned(), text.trim().to_owned());
        }
    }
    let (mut throttled, mut highest, mut lowest_share) = (None, 0.0_f64, None::<f64>);
    for cpu in reader.names("/sys/devices/system/cpu") {
        let is_cpu = cpu.strip_prefix("cpu").is_some_and(|number| {
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        });
        if !is_cpu {
            continue;
        }
        let dir = format!("/sys/devices/system/cpu/{cpu}");
        for kind in ["core", "package"] {
            let count = reader.number(&format!(
                "{dir}/thermal_throttle/{kind}_throttle_total_time_ms"
            ));
            if let Some(count) = count {
                *throttled.get_or_insert(0.0) += count / 1000.0;
            }
        }
        let now = reader.number(&format!("{dir}/cpufreq/scaling_cur_freq"));
        let most = reader.number(&format!("{dir}/cpufreq/cpuinfo_max_freq"));
        if let (Some(now), Some(most)) = (now, most) {
            highest = highest.max(now / most.max(1.0));
            let limit = reader.number(&format!("{dir}/cpufreq/scaling_max_freq"));
            let share = limit.unwrap_or(most) / most.max(1.0);
            lowest_share = Some(lowest_share.unwrap_or(1.0).min(share));
        }
    }
    if let Some(seconds) = throttled {
        look.set("cpu.thermal_total", seconds);
    }
    if let Some(share) = lowest_share {
        look.set("cpu.frequency_limit", share);
        look.set("cpu.frequency", highest);
    }
    if let Some(text) = reader.text("/proc/interrupts") {
        parse_interrupts(&text, look);
    }
}

/// Sums the device interrupts of each CPU. Interrupts that a CPU raises itself (timer, reschedule)
/// do not count.
fn parse_interrupts(text: &str, look: &mut MachineSnapshot) {
    let mut lines = text.lines();
    let cpus = lines
        .next()
        .map_or(0, |head| head.split_ascii_whitespace().count());
    let mut sums = vec![0.0; cpus];
    for line in lines {
        let Some((name, rest)) = line.split_once(':') else {
            continue;
        };
        if !name.trim().bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        for (sum, count) in sums.iter_mut().zip(rest.split_ascii_whitespace()) {
            *sum += count.parse::<f64>().unwrap_or(0.0);
        }
    }
    for (number, sum) in sums.iter().enumerate() {
        look.set(format!("percpu.{number}.interrupts_total"), *sum);
    }
}
