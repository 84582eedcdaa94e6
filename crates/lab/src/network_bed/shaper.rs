//! One direction of a bottleneck. Packets are read from a TUN device, queued for the rate of the link, delayed, and
//! written to another TUN device.

use crate::network_bed::pace::LinkPace;
use crate::network_bed::queue::{Discipline, Packet, Queue};
use crate::network_bed::trace::Trace;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::fs::File;
use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Properties of one direction of the bottleneck.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkShape {
    /// Rate at which the link sends.
    pub rate: Rate,
    /// Queueing discipline of the link.
    pub discipline: Discipline,
    /// Size of a FIFO queue, as the time in which the link sends a full queue.
    pub buffer: Duration,
    /// Propagation delay of the link.
    pub delay: Duration,
    /// Fraction of packets that are lost at random, 0 to 1.
    pub loss: f64,
}

/// How fast a link sends.
#[derive(Clone, Debug, PartialEq)]
pub enum Rate {
    /// Constant rate in bits of IP packets per second.
    BitPerS(f64),
    /// Rate that varies as in a recording.
    Recorded(Arc<Trace>),
}

impl Rate {
    /// Returns the mean rate in bits of IP packets per second.
    #[must_use]
    pub fn bit_per_s(&self) -> f64 {
        match self {
            Self::BitPerS(rate) => *rate,
            Self::Recorded(trace) => trace.bit_per_s(),
        }
    }
}

/// Counters of one direction of the bottleneck.
#[derive(Debug, Default)]
pub struct LinkCounters {
    bytes: AtomicU64,
    packets: AtomicU64,
    dropped: AtomicU64,
}

impl LinkCounters {
    /// Returns the transmitted bytes of IP packets, transmitted packets, and dropped packets.
    #[must_use]
    pub fn read(&self) -> (u64, u64, u64) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (read(&self.bytes), read(&self.packets), read(&self.dropped))
    }
}

/// Maximum number of packets that are read before the queue is served again.
const BURST: usize = 64;
/// Maximum time of one wait in nanoseconds, so that a request to stop is noticed.
const SLICE: u64 = 50_000_000;

/// Forwards packets according to `shape` until `stop` is set. Errors of single packets are ignored.
pub fn shape(
    shape: &LinkShape,
    mut from: &File,
    to: &File,
    counters: &LinkCounters,
    seed: u64,
    stop: &AtomicBool,
) {
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let begin = Instant::now();
    let clock = || u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let room = shape.rate.bit_per_s() / 8.0 * shape.buffer.as_secs_f64();
    // A buffer of less than two packets would pass nothing.
    let mut queue = Queue::new(shape.discipline, (room as usize).max(3000));
    let mut pace = match &shape.rate {
        Rate::BitPerS(rate) => LinkPace::even(*rate),
        Rate::Recorded(trace) => LinkPace::recorded(trace.clone()),
    };
    let delay = u64::try_from(shape.delay.as_nanos()).unwrap_or(0);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut travelling: VecDeque<(u64, Packet)> = VecDeque::new();
    let mut buffer = vec![0; 65_536];
    let add = |counter: &AtomicU64, n: u64| {
        counter.fetch_add(n, Ordering::Relaxed);
    };
    while !stop.load(Ordering::Relaxed) {
        let mut now = clock();
        if queue.is_empty() {
            pace.idle(now);
        }
        for _ in 0..BURST {
            let Ok(length) = from.read(&mut buffer) else {
                break;
            };
            // 53 random bits as a fraction.
            let chance = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            let lost = match chance < shape.loss {
                true => 1,
                false => queue.push(buffer[..length].to_vec(), now),
            };
            add(&counters.dropped, lost);
        }
        now = clock();
        while pace.ready() <= now {
            let (packet, dropped) = queue.pop(now);
            add(&counters.dropped, dropped);
            let Some(packet) = packet else { break };
            let sent = pace.send(packet.len(), now);
            travelling.push_back((sent.max(now) + delay, packet));
        }
        while travelling.front().is_some_and(|(time, _)| *time <= now) {
            let Some((_, packet)) = travelling.pop_front() else {
                break;
            };
            // One write is one complete packet.
            match rustix::io::write(to, &packet) {
                Ok(_) => {
                    add(&counters.bytes, packet.len() as u64);
                    add(&counters.packets, 1);
                }
                Err(_) => add(&counters.dropped, 1),
            }
        }
        let mut next = now + SLICE;
        if let Some((time, _)) = travelling.front() {
            next = next.min(*time);
        }
        if !queue.is_empty() {
            next = next.min(pace.ready());
        }
        let wait = next.saturating_sub(clock());
        let time = Timespec {
            tv_sec: 0,
            tv_nsec: i64::try_from(wait).unwrap_or(0).min(999_999_999),
        };
        let _ = poll(&mut [PollFd::new(&from, PollFlags::IN)], Some(&time));
    }
}
