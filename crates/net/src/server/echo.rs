//! Echoes UDP packets of known clients. Echoes have the length of the packet, go only to the address of the
//! client's TCP connections, and are limited in rate.

use super::Shared;
use crate::role::LEAST_PACKET;
use crate::wire::KEY;
use std::collections::HashMap;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

/// Maximum rate at which packets of one client are echoed, in packets per second.
const MOST_PER_S: f64 = 2000.0;
/// Bytes of a packet into which the server writes its time.
pub const THERE: std::ops::Range<usize> = 32..40;

/// Token bucket that limits the rate of one client.
struct Bucket {
    left: f64,
    at: Instant,
}

impl Bucket {
    fn take(&mut self, now: Instant) -> bool {
        let since = now.saturating_duration_since(self.at).as_secs_f64();
        self.left = (self.left + since * MOST_PER_S).min(MOST_PER_S);
        self.at = now;
        let may = self.left >= 1.0;
        if may {
            self.left -= 1.0;
        }
        may
    }
}

/// Echoes packets until the server ends.
pub fn echo(shared: &Shared, socket: &UdpSocket) {
    let _ = socket.set_read_timeout(Some(Duration::from_millis(200)));
    let mut buckets: HashMap<[u8; KEY], Bucket> = HashMap::new();
    let mut buffer = [0u8; 2048];
    while !shared.stopped() {
        let Ok((length, from)) = socket.recv_from(&mut buffer) else {
            continue;
        };
        let packet = &mut buffer[..length];
        if length < LEAST_PACKET as usize {
            continue;
        }
        let mut key = [0; KEY];
        key.copy_from_slice(&packet[..KEY]);
        let home = shared.hub().by_key(&key);
        if home != Some(from.ip().to_canonical()) {
            continue;
        }
        let now = Instant::now();
        if buckets.len() > 2 * super::hub::MOST_CLIENTS {
            buckets.clear();
        }
        let bucket = buckets.entry(key).or_insert(Bucket {
            left: MOST_PER_S,
            at: now,
        });
        if bucket.take(now) {
            packet[THERE].copy_from_slice(&shared.now_us().to_be_bytes());
            let _ = socket.send_to(packet, from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_empty_after_its_share_and_fills_again() {
        let now = Instant::now();
        let mut bucket = Bucket {
            left: MOST_PER_S,
            at: now,
        };
        let taken = (0..5000).filter(|_| bucket.take(now)).count();
        assert_eq!(taken, MOST_PER_S as usize);
        let later = now + Duration::from_millis(100);
        let taken = (0..5000).filter(|_| bucket.take(later)).count();
        assert!((199..=200).contains(&taken), "{taken}");
    }
}
