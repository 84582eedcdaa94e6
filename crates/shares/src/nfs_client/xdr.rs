//! External data representation (RFC 4506): numbers, strings and handles in calls and replies.

/// Arguments of a call.
#[derive(Clone, Debug, Default)]
pub(super) struct Arguments(pub(super) Vec<u8>);

impl Arguments {
    pub fn number(mut self, value: u32) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub fn long(mut self, value: u64) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    /// Adds bytes with their length, filled up to a multiple of four.
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.0.extend(length.to_be_bytes());
        self.0.extend(bytes);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }
}

/// Results in a reply, read from the start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Results<'a>(pub(super) &'a [u8]);

impl<'a> Results<'a> {
    pub fn number(&mut self) -> Option<u32> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_be_bytes(*first))
    }

    /// Reads bytes with their length; `None` if they are more than `most`.
    pub fn bytes(&mut self, most: usize) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        if length > most {
            return None;
        }
        let found = self.0.get(..length)?;
        self.skip(length.next_multiple_of(4))?;
        Some(found)
    }

    pub fn skip(&mut self, bytes: usize) -> Option<()> {
        self.0 = self.0.get(bytes..)?;
        Some(())
    }

    /// Skips a part that is there only if the number before it is not 0.
    pub fn skip_optional(&mut self, bytes: usize) -> Option<()> {
        match self.number()? {
            0 => Some(()),
            _ => self.skip(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_behind_the_end() {
        let all = Arguments::default()
            .number(7)
            .bytes(b"abcde")
            .number(0)
            .number(1);
        assert_eq!(all.0.len(), 4 + 4 + 8 + 8);
        let mut results = Results(&all.0);
        assert_eq!(results.number(), Some(7));
        assert_eq!(Results(results.0).bytes(4), None);
        assert_eq!(results.bytes(5), Some(&b"abcde"[..]));
        assert_eq!(results.skip_optional(99), Some(()));
        assert_eq!(results.skip_optional(99), None);
        for end in 0..all.0.len() {
            let mut cut = Results(&all.0[..end]);
            let _ = (cut.number(), cut.bytes(9), cut.number());
        }
    }
}
