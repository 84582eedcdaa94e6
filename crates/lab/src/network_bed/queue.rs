//! Packet queues: a FIFO queue, or FQ-CoDel. Performs no I/O: times are parameters in nanoseconds.

use crate::network_bed::fq_codel::FqCodel;
use std::collections::VecDeque;

/// How packets wait and are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// One FIFO queue with a limited buffer, as in most older routers.
    Fifo,
    /// One short queue per flow (RFC 8290).
    FqCodel,
}

/// An IP packet.
pub type Packet = Vec<u8>;

/// A queue with one of the two disciplines.
pub enum Queue {
    /// One FIFO queue.
    Fifo(Fifo),
    /// One queue per flow.
    FqCodel(Box<FqCodel>),
}

/// A FIFO queue with a limited number of bytes.
#[derive(Default)]
pub struct Fifo {
    packets: VecDeque<Packet>,
    bytes: usize,
    room: usize,
}

impl Queue {
    /// Creates an empty queue. `room` is the size of a FIFO queue in bytes. An FQ-CoDel queue always has room for
    /// 10,240 packets.
    #[must_use]
    pub fn new(discipline: Discipline, room: usize) -> Self {
        match discipline {
            Discipline::Fifo => Self::Fifo(Fifo {
                room,
                ..Fifo::default()
            }),
            Discipline::FqCodel => Self::FqCodel(Box::default()),
        }
    }

    /// Enqueues a packet. Returns the number of dropped packets.
    pub fn push(&mut self, packet: Packet, now: u64) -> u64 {
        match self {
            Self::Fifo(fifo) if fifo.bytes + packet.len() > fifo.room => 1,
            Self::Fifo(fifo) => {
                fifo.bytes += packet.len();
                fifo.packets.push_back(packet);
                0
            }
            Self::FqCodel(queue) => queue.push(packet, now),
        }
    }

    /// Dequeues a packet. Also returns the number of packets that were dropped before it.
    pub fn pop(&mut self, now: u64) -> (Option<Packet>, u64) {
        match self {
            Self::Fifo(fifo) => {
                let packet = fifo.packets.pop_front();
                fifo.bytes -= packet.as_ref().map_or(0, Vec::len);
                (packet, 0)
            }
            Self::FqCodel(queue) => queue.pop(now),
        }
    }

    /// Returns whether no packet waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Fifo(fifo) => fifo.packets.is_empty(),
            Self::FqCodel(queue) => queue.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_queue_keeps_the_order_and_drops_what_has_no_room() {
        let mut queue = Queue::new(Discipline::Fifo, 250);
        let dropped: Vec<u64> = (0..4).map(|i| queue.push(vec![i; 100], 0)).collect();
        assert_eq!(dropped, [0, 0, 1, 1]);
        assert_eq!(queue.pop(9).0, Some(vec![0; 100]));
        assert_eq!(queue.push(vec![7; 150], 9), 0);
        assert_eq!(queue.pop(9).0, Some(vec![1; 100]));
        assert_eq!(queue.pop(9).0, Some(vec![7; 150]));
        assert!(queue.is_empty() && queue.pop(9).0.is_none());
    }
}
