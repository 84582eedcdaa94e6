//! Figures of a machine that are shown beside the suspects: utilisation, saturation, and the largest users.

use crate::WatchSubject;
use crate::machine_snapshot::EntityKind;
use crate::window::{WatchWindow, WatchedEntity};
use assay_render::text::escape_line;
use std::collections::BTreeMap;

/// Lists the figures as pairs of name and text.
pub(crate) fn list_figures(window: &WatchWindow, thing: &WatchSubject) -> Vec<(String, String)> {
    let mut figures = match thing {
        WatchSubject::Path { disks, layers, .. } => describe_path(window, disks, layers),
        _ => Vec::new(),
    };
    figures.append(&mut list_machine(window));
    if matches!(
        thing,
        WatchSubject::Process(_) | WatchSubject::Group(_) | WatchSubject::Named(_)
    ) {
        figures.insert(0, ("Asked".to_owned(), describe_part(window)));
        if let Some(text) = describe_sleeps(window) {
            figures.insert(1, ("Asleep".to_owned(), text));
        }
    }
    figures
}

/// Lists the layers of the watched path, the processes that use it, and the load of its disks.
fn describe_path(
    window: &WatchWindow,
    disks: &[String],
    layers: &[String],
) -> Vec<(String, String)> {
    let mut figures = Vec::new();
    if !layers.is_empty() {
        let layers: Vec<_> = layers.iter().map(|layer| escape_line(layer)).collect();
        figures.push(("Layers".to_owned(), layers.join("; ")));
    }
    let mut users: Vec<&WatchedEntity> = window
        .of_kind(EntityKind::Process)
        .filter(|process| process.number("uses_path") > 0.0)
        .collect();
    users.sort_by(|a, b| b.number("io").total_cmp(&a.number("io")));
    let shown: Vec<String> = users
        .iter()
        .take(5)
        .map(|process| {
            let label = process.texts.get("label").map_or("?", String::as_str);
            let waits = process.number("waits").min(1.0) * 100.0;
            let megabytes = process.number("io") / 1e6;
            format!("{label} {megabytes:.1} MB/s, waits {waits:.0} % of the time")
        })
        .collect();
    let text = match users.len() {
        0 => "nobody has a file below it open".to_owned(),
        1..=5 => shown.join("; "),
        count => format!("{}; {} more", shown.join("; "), count - 5),
    };
    figures.push(("Users".to_owned(), text));
    let of_path = window.of_kind(EntityKind::Disk);
    let rates: Vec<String> = of_path
        .filter(|disk| disks.contains(&disk.name))
        .map(|disk| {
            format!(
                "{}: {:.1} MB/s read, {:.1} MB/s written, {:.0} requests/s of {:.1} ms",
                escape_line(&disk.name),
                disk.number("read.bytes") / 1e6,
                disk.number("write.bytes") / 1e6,
                disk.number("ops"),
                disk.number("await") * 1e3,
            )
        })
        .collect();
    if !rates.is_empty() {
        figures.push(("Its disks".to_owned(), rates.join("; ")));
    }
    figures
}

/// Describes what the sleeping threads of the watched processes wait for, including idleness.
fn describe_sleeps(window: &WatchWindow) -> Option<String> {
    let mut places: BTreeMap<&str, f64> = BTreeMap::new();
    for process in window.of_kind(EntityKind::Process) {
        for (key, threads) in &process.numbers {
            let place = key.strip_prefix("asleep_in.");
            let is_mean = |place: &&str| {
                ![".max", ".min", ".last"]
                    .iter()
                    .any(|end| place.ends_with(end))
            };
            if let Some(place) = place.filter(is_mean).filter(|_| process.is_asked) {
                *places.entry(place).or_default() += threads;
            }
        }
    }
    let mut places: Vec<_> = places.into_iter().collect();
    places.sort_by(|a, b| b.1.total_cmp(&a.1));
    let shown: Vec<String> = places
        .iter()
        .take(4)
        .filter(|(_, threads)| *threads >= 0.05)
        .map(|(place, threads)| format!("{threads:.1} threads wait for {}", escape_line(place)))
        .collect();
    (!shown.is_empty()).then(|| shown.join(", "))
}

/// Describes how the watched processes spent their time.
fn describe_part(window: &WatchWindow) -> String {
    let asked = || {
        let all = window.of_kind(EntityKind::Process);
        all.filter(|process| process.is_asked)
    };
    // The sum of nothing is -0.0.
    let sum = |key: &str| asked().map(|process| process.number(key)).sum::<f64>() + 0.0;
    let count = asked().count();
    format!(
        "{count} {} looked at; {:.2} CPUs used, {:.2} tasks wait for a CPU, {:.2} wait otherwise, \
         {:.2} sleep in timers",
        if count == 1 { "process" } else { "processes" },
        sum("cpu"),
        sum("queue"),
        sum("waits"),
        sum("asleep.timer"),
    )
}

fn list_machine(window: &WatchWindow) -> Vec<(String, String)> {
    let machine = &window.machine;
    let percent = |key: &str| format!("{:.0} %", machine.number(key) * 100.0);
    let text = |key: &str| machine.texts.get(key).cloned().unwrap_or_default();
    let mut figures = vec![(
        "CPU".to_owned(),
        format!(
            "{} of {} CPUs busy, {} stolen, {:.1} tasks queue; {}",
            percent("cpu.busy"),
            machine.number("cpu.count"),
            percent("cpu.steal_share"),
            machine.number("waiting.cpu-queue"),
            text("top.cpu"),
        ),
    )];
    let mut disks: Vec<_> = window.of_kind(EntityKind::Disk).collect();
    disks.sort_by(|a, b| b.number("own_wait").total_cmp(&a.number("own_wait")));
    if let Some(disk) = disks
        .first()
        .filter(|disk| disk.number("ops") + disk.number("flush.ops") > 0.0)
    {
        let flush = match disk.number("flush.ops") > 0.0 {
            true => format!(", flushes {:.1} ms", disk.number("flush.await") * 1e3),
            false => String::new(),
        };
        figures.push((
            "Disk".to_owned(),
            format!(
                "{} {:.0} % busy, {:.0} requests/s, reads {:.1} ms, writes {:.1} ms{flush}; {}",
                text("busiest_disk"),
                disk.number("busy") * 100.0,
                disk.number("ops"),
                disk.number("read.await") * 1e3,
                disk.number("write.await") * 1e3,
                text("top.io"),
            ),
        ));
    }
    if machine.numbers.contains_key("mem.available_share") {
        figures.push((
            "Memory".to_owned(),
            format!(
                "{} available, {:.0} pages/s swapped, {:.0} stalls/s; {}",
                percent("mem.available_share"),
                machine.number("swap.in") + machine.number("swap.out"),
                machine.number("mem.stalls"),
                text("top.memory"),
            ),
        ));
    }
    figures.push((
        "Network".to_owned(),
        format!(
            "{:.0} segments/s, {:.1} % sent again, {:.0} open, {:.1} accept-queue overflows/s",
            machine.number("tcp.sent") + machine.number("tcp.received"),
            machine.number("tcp.retransmitted_share") * 100.0,
            machine.number("tcp.established"),
            machine.number("tcp.listen_overflows"),
        ),
    ));
    let pressure = ["cpu", "io", "memory"].map(|name| {
        let share = machine.numbers.get(&format!("psi.{name}.some"));
        share.map(|share| format!("{name} {:.0} %", share * 100.0))
    });
    let pressure: Vec<String> = pressure.into_iter().flatten().collect();
    let pressure = match pressure.is_empty() {
        true => "not known: this kernel has no pressure figures (PSI)".to_owned(),
        false => pressure.join(", "),
    };
    figures.push(("Pressure".to_owned(), pressure));
    figures
}
