//! Splits a stream of PostgreSQL's protocol into messages. Reads only the types and lengths of the messages.

/// Splits a stream of bytes into messages. A message has a type and a length of four bytes; the length includes its own
/// four bytes. The client's first message has no type.
#[derive(Debug)]
pub(super) struct Messages {
    header: Vec<u8>,
    /// Number of header bytes that are still missing.
    wanted: usize,
    /// Number of message bytes that are still missing.
    rest: u64,
}

impl Messages {
    pub(super) fn of_server() -> Self {
        Self::beginning_with(5)
    }

    pub(super) fn of_client() -> Self {
        Self::beginning_with(4)
    }

    fn beginning_with(wanted: usize) -> Self {
        Self {
            header: Vec::new(),
            wanted,
            rest: 0,
        }
    }

    /// Processes bytes. Calls `seen` with the type and the length of each new message; the type is 0 for a message
    /// without a type.
    pub(super) fn feed(&mut self, mut bytes: &[u8], seen: &mut dyn FnMut(u8, u64)) {
        while !bytes.is_empty() {
            if self.rest > 0 {
                let skipped = self.rest.min(bytes.len() as u64);
                self.rest -= skipped;
                bytes = &bytes[usize::try_from(skipped).unwrap_or(bytes.len())..];
                continue;
            }
            let more = (self.wanted - self.header.len()).min(bytes.len());
            self.header.extend_from_slice(&bytes[..more]);
            bytes = &bytes[more..];
            if self.header.len() < self.wanted {
                return;
            }
            let (kind, length) = match self.header.as_slice() {
                [kind, a, b, c, d] => (*kind, [*a, *b, *c, *d]),
                [a, b, c, d] => (0, [*a, *b, *c, *d]),
                _ => return,
            };
            let length = u64::from(u32::from_be_bytes(length));
            self.rest = length.saturating_sub(4);
            self.header.clear();
            self.wanted = 5;
            seen(kind, length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_seen_however_they_are_cut() {
        let stream = [
            &b"\0\0\0\x08abcd"[..],
            b"Q\0\0\0\x06x\0",
            b"S\0\0\0\x04",
            b"X\0\0\0\x04",
        ]
        .concat();
        for at_once in 1..=stream.len() {
            let mut messages = Messages::of_client();
            let mut all = Vec::new();
            for piece in stream.chunks(at_once) {
                messages.feed(piece, &mut |kind, length| all.push((kind, length)));
            }
            assert_eq!(all, [(0, 8), (b'Q', 6), (b'S', 4), (b'X', 4)]);
        }
    }
}
