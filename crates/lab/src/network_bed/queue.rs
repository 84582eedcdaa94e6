//! Where packets wait. Pure: times are passed in, in nanoseconds.

use crate::network_bed::fq_codel::FqCodel;
use std::collections::VecDeque;

/// How packets wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// In one row, until the buffer is full: what most routers did, and many do.
    Fifo,
    /// In a row for each flow, each kept short (RFC 8290).
    FqCodel,
}

/// A packet of IP.
pub type Packet = Vec<u8>;

/// A queue of either kind.
pub enum Queue {
    /// One row.
    Fifo(Fifo),
    /// Many.
    FqCodel(Box<FqCodel>),
}

/// One row with so many bytes of room.
#[derive(Default)]
pub struct Fifo {
    packets: VecDeque<Packet>,
    bytes: usize,
    room: usize,
}

impl Queue {
    /// An empty one; `room` in bytes is a plain queue's. fq_codel has room for 10,240 packets.
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

    /// Takes a packet in; how many were dropped for it.
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

    /// The next packet, and how many were dropped on the way to it.
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

    /// Whether nothing waits.
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
