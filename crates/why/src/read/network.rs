//! Network: interfaces, counters of TCP, UDP and IP, and the table of connections.

use super::MachineReader;
use crate::machine_snapshot::{Entity, EntityKind, MachineSnapshot};

const PROTOCOLS: [(&str, &str, &str); 23] = [
    ("Tcp", "OutSegs", "tcp.sent_total"),
    ("Tcp", "InSegs", "tcp.received_total"),
    ("Tcp", "RetransSegs", "tcp.retransmitted_total"),
    ("Tcp", "AttemptFails", "tcp.failed_total"),
    ("Tcp", "ActiveOpens", "tcp.opened_total"),
    ("Tcp", "PassiveOpens", "tcp.accepted_total"),
    ("Tcp", "CurrEstab", "tcp.established"),
    ("Tcp", "OutRsts", "tcp.resets_total"),
    ("Udp", "InDatagrams", "udp.received_total"),
    ("Udp", "RcvbufErrors", "udp.full_total"),
    ("Udp", "SndbufErrors", "udp.unsent_total"),
    ("TcpExt", "ListenOverflows", "tcp.listen_overflows_total"),
    ("TcpExt", "ListenDrops", "tcp.listen_drops_total"),
    ("TcpExt", "TCPTimeouts", "tcp.timeouts_total"),
    ("TcpExt", "TCPSynRetrans", "tcp.syn_retransmitted_total"),
    ("TcpExt", "TCPLostRetransmit", "tcp.lost_again_total"),
    ("TcpExt", "TCPMemoryPressures", "tcp.memory_pressure_total"),
    ("TcpExt", "PruneCalled", "tcp.pruned_total"),
    ("TcpExt", "TCPToZeroWindowAdv", "tcp.zero_window_total"),
    ("TcpExt", "SyncookiesSent", "tcp.cookies_total"),
    ("TcpExt", "TCPReqQFullDrop", "tcp.request_drops_total"),
    ("TcpExt", "TCPBacklogDrop", "tcp.backlog_drops_total"),
    ("Ip", "ReasmFails", "ip.reassembly_failed_total"),
];

pub(super) fn read(reader: &mut MachineReader, look: &mut MachineSnapshot) {
    for path in ["/proc/net/snmp", "/proc/net/netstat"] {
        if let Some(text) = reader.text(path) {
            parse_protocols(&text, look);
        }
    }
    if let Some(text) = reader.text("/proc/net/dev") {
        for mut entity in parse_interfaces(&text) {
            if reader.is_thorough() {
                let dir = format!("/sys/class/net/{}", entity.name);
                let speed = reader.text(&format!("{dir}/speed"));
                let speed = speed.and_then(|text| text.trim().parse::<f64>().ok());
                // Virtual interfaces report -1.
                if let Some(speed) = speed.filter(|speed| *speed > 0.0) {
                    entity.set("speed_mbit", speed);
                }
                if let Some(duplex) = reader.text(&format!("{dir}/duplex")) {
                    entity
                        .texts
                        .insert("duplex".to_owned(), duplex.trim().to_owned());
                }
            }
            look.entities.push(entity);
        }
    }
    const CONNTRACK: &str = "/proc/sys/net/netfilter/nf_conntrack";
    for name in ["count", "max"] {
        if let Some(number) = reader.number(&format!("{CONNTRACK}_{name}")) {
            look.set(format!("conntrack.{name}"), number);
        }
    }
    if let Some(text) = reader.text("/proc/net/stat/nf_conntrack") {
        parse_conntrack(&text, look);
    }
    if let Some(text) = reader.text("/proc/net/softnet_stat") {
        let (mut dropped, mut squeezed) = (0.0, 0.0);
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace().skip(1);
            let mut next = || {
                words
                    .next()
                    .and_then(|word| u32::from_str_radix(word, 16).ok())
            };
            dropped += next().map_or(0.0, f64::from);
            squeezed += next().map_or(0.0, f64::from);
        }
        look.set("softnet.dropped_total", dropped);
        look.set("softnet.squeezed_total", squeezed);
    }
}

/// Parses pairs of lines: a line of names, then a line of their values.
fn parse_protocols(text: &str, look: &mut MachineSnapshot) {
    let mut lines = text.lines();
    while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        let (Some((protocol, names)), Some((_, values))) =
            (names.split_once(':'), values.split_once(':'))
        else {
            continue;
        };
        for (name, value) in names
            .split_ascii_whitespace()
            .zip(values.split_ascii_whitespace())
        {
            let known = PROTOCOLS
                .iter()
                .find(|(of, known, _)| *of == protocol && *known == name);
            if let (Some((_, _, key)), Ok(value)) = (known, value.parse()) {
                look.set(*key, value);
            }
        }
    }
}

fn parse_interfaces(text: &str) -> Vec<Entity> {
    const COLUMNS: [(usize, &str); 8] = [
        (0, "rx.bytes_total"),
        (1, "rx.packets_total"),
        (2, "rx.errors_total"),
        (3, "rx.drops_total"),
        (8, "tx.bytes_total"),
        (9, "tx.packets_total"),
        (10, "tx.errors_total"),
        (11, "tx.drops_total"),
    ];
    let mut found = Vec::new();
    for line in text.lines().skip(2) {
        let Some((name, rest)) = line.rsplit_once(": ").or_else(|| line.rsplit_once(':')) else {
            continue;
        };
        let numbers: Vec<f64> = rest
            .split_ascii_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        let name = name.trim();
        if numbers.len() < 12 || numbers[1] + numbers[9] == 0.0 || found.len() >= 64 {
            continue;
        }
        let mut entity = Entity::new(EntityKind::Interface, name, name);
        for (at, key) in COLUMNS {
            entity.set(key, numbers[at]);
        }
        found.push(entity);
    }
    found
}

/// Parses `/proc/net/stat/nf_conntrack` and sums its values over all CPUs. The file has one line for each CPU; its
/// numbers are hexadecimal.
fn parse_conntrack(text: &str, look: &mut MachineSnapshot) {
    let mut lines = text.lines();
    let names: Vec<&str> = lines
        .next()
        .unwrap_or_default()
        .split_ascii_whitespace()
        .collect();
    let mut sums = [("drop", 0.0), ("early_drop", 0.0), ("insert_failed", 0.0)];
    for line in lines {
        for (name, value) in names.iter().zip(line.split_ascii_whitespace()) {
            if let Some((_, sum)) = sums.iter_mut().find(|(known, _)| known == name) {
                *sum += u32::from_str_radix(value, 16).map_or(0.0, f64::from);
            }
        }
    }
    for (name, sum) in sums {
        look.set(format!("conntrack.{name}_total"), sum);
    }
}
