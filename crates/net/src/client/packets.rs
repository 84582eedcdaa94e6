//! Sends UDP packets at regular times and receives their echoes, in one thread.

use super::task::Task;
use super::timer::{self, micros};
use crate::record::{MOST_EVENTS, RecordEvent, RoleRecord};
use crate::role::Workload;
use crate::wire::KEY;
use data_encoding::HEXLOWER;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Time after the end of the run in which echoes may still arrive.
const GRACE: Duration = Duration::from_secs(2);
/// Longest wait between two checks of `stop`.
const SLICE: Duration = Duration::from_millis(50);

/// Sends packets and records which echoes arrive, and when.
pub fn packets(task: &Task<'_>) -> RoleRecord {
    let mut record = RoleRecord::default();
    let carried =
        socket(task.link.address()).and_then(|socket| exchange(task, &socket, &mut record));
    if let Err(error) = carried {
        record.fail(&format!("no UDP: {}", error.kind()));
    }
    for event in &record.events {
        if event.took.is_none() {
            *record.failures.entry("lost".to_owned()).or_default() += 1;
        }
    }
    record
}

fn socket(server: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    // The socket accepts packets only from the server.
    socket.connect(server)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn exchange(task: &Task<'_>, socket: &UdpSocket, record: &mut RoleRecord) -> io::Result<()> {
    let Workload::Packets { bytes, every_ms } = task.role.workload else {
        return Ok(());
    };
    timer::exact();
    let every = every_ms * 1e3;
    let mut packet = vec![0; bytes as usize];
    let key = HEXLOWER
        .decode(task.joined.key.as_bytes())
        .unwrap_or_default();
    if key.len() != KEY {
        return Err(io::ErrorKind::InvalidData.into());
    }
    packet[..KEY].copy_from_slice(&key);
    let mut number = 0u64;
    let mut missing = 0usize;
    let last = task.end + GRACE;
    loop {
        let now = Instant::now();
        let due = task.due(number, every);
        let sending = due < task.end && record.events.len() < MOST_EVENTS;
        if task.stopped() || now >= last || (!sending && missing == 0) {
            return Ok(());
        }
        if sending && now >= due {
            packet[KEY..KEY + 8].copy_from_slice(&number.to_be_bytes());
            // A packet that the kernel cannot queue counts as lost.
            let _ = socket.send(&packet);
            record.events.push(RecordEvent {
                due: task.at(due),
                late: micros(due, now),
                took: None,
            });
            number += 1;
            missing += 1;
            continue;
        }
        let until = if sending { due } else { last };
        let time = until.saturating_duration_since(now).min(SLICE);
        let time = Timespec {
            tv_sec: 0,
            tv_nsec: time.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&time)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        missing -= receive(task, socket, record, every);
    }
}

/// Receives all waiting packets. Returns how many packets were echoed for the first time; repeated echoes do not count.
fn receive(task: &Task<'_>, socket: &UdpSocket, record: &mut RoleRecord, every: f64) -> usize {
    let mut buffer = [0; 2048];
    let mut found = 0;
    // An error here reports that an earlier packet was refused. That packet is lost.
    while let Ok(length) = socket.recv(&mut buffer) {
        let now = Instant::now();
        let Some(number) = buffer[..length].get(KEY..KEY + 8) else {
            continue;
        };
        let number = number.try_into().map_or(u64::MAX, u64::from_be_bytes);
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        let Some(event) = record
            .events
            .get_mut(at)
            .filter(|event| event.took.is_none())
        else {
            continue;
        };
        event.took = Some(micros(task.due(number, every), now));
        found += 1;
        let event = *event;
        task.show(&event);
        if now < task.end {
            record.count(task.at(now), length as u64);
        }
    }
    found
}
