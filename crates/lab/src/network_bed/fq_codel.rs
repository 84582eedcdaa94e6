//! FQ-CoDel (RFC 8290). Flows are served in turn, new flows first. Packets of a flow are dropped if they wait too long
//! (CoDel, RFC 8289). Units are nanoseconds and bytes.

use crate::network_bed::queue::Packet;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Number of queues to which flows are hashed (RFC 8290, section 5.2.3).
const FLOWS: usize = 1024;
/// Bytes that a flow may send per turn (section 5.2.4).
const QUANTUM: i64 = 1514;
/// Maximum number of packets in all queues together (section 5.2.3).
const LIMIT: usize = 10_240;
/// Acceptable waiting time in nanoseconds (RFC 8289, section 4.2).
const TARGET: u64 = 5_000_000;
/// Interval in nanoseconds. Packets are dropped when the waiting time has exceeded the target for this long (section
/// 4.3).
const INTERVAL: u64 = 100_000_000;
/// Maximum length in bytes of a queue from which no packet is dropped.
const MTU: usize = 1514;

/// An FQ-CoDel queue: one FIFO queue per flow.
pub struct FqCodel {
    flows: Vec<Flow>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    packets: usize,
}

#[derive(Default)]
struct Flow {
    packets: VecDeque<(u64, Packet)>,
    bytes: usize,
    deficit: i64,
    listed: bool,
    codel: Codel,
}

/// State of CoDel for one flow (RFC 8289, section 5.2).
#[derive(Default)]
struct Codel {
    first_above: Option<u64>,
    dropping: bool,
    drop_next: u64,
    count: u32,
    last_count: u32,
}

impl Default for FqCodel {
    fn default() -> Self {
        Self {
            flows: std::iter::repeat_with(Flow::default).take(FLOWS).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
        }
    }
}

impl FqCodel {
    /// Enqueues a packet. Returns the number of dropped packets.
    pub fn push(&mut self, packet: Packet, now: u64) -> u64 {
        let at = flow_of(&packet);
        let flow = &mut self.flows[at];
        flow.bytes += packet.len();
        flow.packets.push_back((now, packet));
        self.packets += 1;
        if !flow.listed {
            flow.listed = true;
            flow.deficit = QUANTUM;
            self.new.push_back(at);
        }
        match self.packets > LIMIT {
            true => self.shorten(),
            false => 0,
        }
    }

    /// Drops half of the packets of the longest queue, at most 64 (section 4.1).
    fn shorten(&mut self) -> u64 {
        let longest = self.flows.iter_mut().max_by_key(|flow| flow.bytes);
        let Some(flow) = longest else { return 0 };
        let count = (flow.packets.len() / 2).clamp(1, 64);
        for (_, packet) in flow.packets.drain(..count) {
            flow.bytes -= packet.len();
        }
        self.packets -= count;
        count as u64
    }

    /// Dequeues a packet. Also returns the number of packets that were dropped before it.
    pub fn pop(&mut self, now: u64) -> (Option<Packet>, u64) {
        let mut dropped = 0;
        loop {
            let (at, is_new) = match (self.new.front(), self.old.front()) {
                (Some(at), _) => (*at, true),
                (None, Some(at)) => (*at, false),
                (None, None) => return (None, dropped),
            };
            let list = if is_new { &mut self.new } else { &mut self.old };
            list.pop_front();
            let flow = &mut self.flows[at];
            if flow.deficit <= 0 {
                flow.deficit += QUANTUM;
                self.old.push_back(at);
                continue;
            }
            let before = flow.packets.len();
            let packet = flow.pop(now);
            self.packets -= before - flow.packets.len();
            dropped += (before - flow.packets.len()) as u64 - u64::from(packet.is_some());
            match packet {
                Some(packet) => {
                    flow.deficit -= packet.len() as i64;
                    let list = if is_new { &mut self.new } else { &mut self.old };
                    list.push_front(at);
                    return (Some(packet), dropped);
                }
                // An empty new flow becomes an old one, so that it cannot stay new for ever.
                None if is_new && !self.old.is_empty() => self.old.push_back(at),
                None => flow.listed = false,
            }
        }
    }

    /// Returns whether no packet waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets == 0
    }
}

impl Flow {
    /// Removes the oldest packet. Also returns whether packets have been waiting too long for a full interval.
    fn oldest(&mut self, now: u64) -> (Option<Packet>, bool) {
        let Some((since, packet)) = self.packets.pop_front() else {
            self.codel.first_above = None;
            return (None, false);
        };
        self.bytes -= packet.len();
        let waited = now.saturating_sub(since);
        let mut may_drop = false;
        if waited < TARGET || self.bytes <= MTU {
            self.codel.first_above = None;
        } else {
            match self.codel.first_above {
                None => self.codel.first_above = Some(now + INTERVAL),
                Some(time) => may_drop = now >= time,
            }
        }
        (Some(packet), may_drop)
    }

    /// Implements `dequeue` of RFC 8289, section 5.4.
    fn pop(&mut self, now: u64) -> Option<Packet> {
        let (mut packet, mut may_drop) = self.oldest(now);
        if self.codel.dropping {
            if !may_drop {
                self.codel.dropping = false;
            }
            while self.codel.dropping && now >= self.codel.drop_next {
                self.codel.count += 1;
                (packet, may_drop) = self.oldest(now);
                match may_drop {
                    true => {
                        self.codel.drop_next = control_law(self.codel.drop_next, self.codel.count)
                    }
                    false => self.codel.dropping = false,
                }
            }
        } else if may_drop {
            (packet, _) = self.oldest(now);
            let codel = &mut self.codel;
            codel.dropping = true;
            // Continue with the former drop rate if the last dropping state was recent.
            let delta = codel.count.saturating_sub(codel.last_count);
            let lately = now.saturating_sub(codel.drop_next) < 16 * INTERVAL;
            codel.count = if delta > 1 && lately { delta } else { 1 };
            codel.drop_next = control_law(now, codel.count);
            codel.last_count = codel.count;
        }
        packet
    }
}

/// Returns the time of the next drop. The more packets were dropped, the shorter is the interval.
fn control_law(time: u64, count: u32) -> u64 {
    time + (INTERVAL as f64 / f64::from(count.max(1)).sqrt()) as u64
}

/// Returns the number of the queue for a packet. It is a hash of addresses, protocol and ports for IPv4, of addresses
/// for IPv6.
fn flow_of(packet: &[u8]) -> usize {
    let mut hasher = DefaultHasher::new();
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= 20 => {
            let head = usize::from(packet[0] & 15) * 4;
            packet[9].hash(&mut hasher);
            packet[12..20].hash(&mut hasher);
            // Only TCP and UDP have ports at this position, and only in the first fragment.
            let first = u16::from_be_bytes([packet[6], packet[7]]) & 0x1fff == 0;
            if matches!(packet[9], 6 | 17) && first {
                packet.get(head..head + 4).hash(&mut hasher);
            }
        }
        Some(6) if packet.len() >= 40 => {
            packet[6].hash(&mut hasher);
            packet[8..40].hash(&mut hasher);
            if matches!(packet[6], 6 | 17) {
                packet.get(40..44).hash(&mut hasher);
            }
        }
        _ => {}
    }
    (hasher.finish() % FLOWS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A UDP packet with this source port and length.
    fn packet(port: u16, length: usize) -> Packet {
        let mut packet = vec![0; length.max(28)];
        packet[0] = 0x45;
        packet[9] = 17;
        packet[20..22].copy_from_slice(&port.to_be_bytes());
        packet
    }

    fn port(packet: &Packet) -> u16 {
        u16::from_be_bytes([packet[20], packet[21]])
    }

    #[test]
    fn a_small_flow_does_not_wait_behind_a_large_one() {
        let mut queue = FqCodel::default();
        for _ in 0..500 {
            queue.push(packet(1, 1500), 0);
        }
        queue.pop(1000);
        queue.push(packet(2, 100), 2000);
        let next: Vec<u16> = (0..3)
            .filter_map(|_| queue.pop(3000).0)
            .map(|p| port(&p))
            .collect();
        assert!(next.contains(&2), "{next:?}");
    }

    #[test]
    fn what_waits_too_long_for_too_long_loses_packets() {
        let mut queue = FqCodel::default();
        let mut dropped = 0;
        // 10 packets arrive and 9 leave every 10 ms, for ten seconds.
        for tick in 0..1000u64 {
            let now = tick * 10_000_000;
            for _ in 0..10 {
                dropped += queue.push(packet(1, 1500), now);
            }
            for _ in 0..9 {
                dropped += queue.pop(now).1;
            }
        }
        assert!(dropped > 100, "{dropped}");
        // A flow within its share loses nothing.
        let mut queue = FqCodel::default();
        for tick in 0..1000u64 {
            let now = tick * 10_000_000;
            queue.push(packet(1, 1500), now);
            assert_eq!(queue.pop(now + 1_000_000).1, 0);
        }
    }

    #[test]
    fn there_is_an_end_of_room() {
        let mut queue = FqCodel::default();
        let dropped: u64 = (0..3 * LIMIT as u64)
            .map(|i| queue.push(packet(1, 100), i))
            .sum();
        assert!(queue.packets <= LIMIT && dropped as usize == 3 * LIMIT - queue.packets);
    }

    proptest! {
        #[test]
        fn every_packet_leaves_once_or_is_dropped(steps in prop::collection::vec((0u16..20, 28usize..1500, 0u64..20_000_000, any::<bool>()), 1..500)) {
            let mut queue = FqCodel::default();
            let (mut now, mut came, mut left, mut dropped) = (0, 0u64, 0u64, 0u64);
            for (port, length, wait, pops) in steps {
                now += wait;
                came += 1;
                dropped += queue.push(packet(port, length), now);
                if pops {
                    let (packet, lost) = queue.pop(now);
                    left += u64::from(packet.is_some());
                    dropped += lost;
                }
            }
            while !queue.is_empty() {
                now += 1_000_000;
                let (packet, lost) = queue.pop(now);
                left += u64::from(packet.is_some());
                dropped += lost;
            }
            prop_assert_eq!(came, left + dropped);
            prop_assert!(queue.pop(now).0.is_none());
        }
    }
}
