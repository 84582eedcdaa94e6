//! Figures of a machine that are shown beside the suspects: utilisation, saturation, and the largest users.

use crate::machine_look::EntityKind;
use crate::window::WatchWindow;

/// Lists the figures as pairs of name and text.
pub(crate) fn list_figures(window: &WatchWindow) -> Vec<(String, String)> {
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
    if !pressure.is_empty() {
        figures.push(("Pressure".to_owned(), pressure.join(", ")));
    }
    figures
}
