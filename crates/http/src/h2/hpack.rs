//! HPACK header compression (RFC 7541). Requests are encoded without the dynamic table, so that their bytes are always
//! the same. Answers are decoded with the dynamic table.

use super::huffman;
use super::names::STATIC;
use std::collections::VecDeque;

/// Maximum size of the dynamic table in bytes, which is the default (RFC 9113, section 6.5.2).
const TABLE: usize = 4096;
/// Overhead per table entry in bytes (RFC 7541, section 4.1).
const ENTRY: usize = 32;
/// Maximum decoded size of a head in bytes. The limit is needed because a few encoded bytes can refer to a long table
/// entry repeatedly.
const LONGEST_LIST: usize = 256 << 10;

/// Appends an integer whose first byte is `first`, with a prefix of `bits` bits.
fn integer(out: &mut Vec<u8>, first: u8, bits: u32, value: usize) {
    let most = (1 << bits) - 1;
    if value < most {
        return out.push(first | value as u8);
    }
    out.push(first | most as u8);
    let mut rest = value - most;
    while rest >= 128 {
        out.push(rest as u8 | 128);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Appends a header. If the header is in the static table, appends its index; else its text.
pub fn write(out: &mut Vec<u8>, name: &str, value: &str) {
    let known = |entry: &(&str, &str)| *entry == (name, value);
    if let Some(at) = STATIC.iter().position(known) {
        return integer(out, 0x80, 7, at + 1);
    }
    match STATIC.iter().position(|(known, _)| *known == name) {
        Some(at) => integer(out, 0, 4, at + 1),
        None => {
            out.push(0);
            integer(out, 0, 7, name.len());
            out.extend_from_slice(name.as_bytes());
        }
    }
    integer(out, 0, 7, value.len());
    out.extend_from_slice(value.as_bytes());
}

/// Decodes all heads of one connection, in the order of their arrival.
#[derive(Debug)]
pub struct Decoder {
    /// Entries of the dynamic table, newest first.
    entries: VecDeque<(Vec<u8>, Vec<u8>)>,
    size: usize,
    most: usize,
    /// Number that changes whenever the dynamic table changes, because the same bytes may then have another meaning.
    version: u64,
    text: (Vec<u8>, Vec<u8>),
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            size: 0,
            most: TABLE,
            version: 0,
            text: Default::default(),
        }
    }
}

impl Decoder {
    /// Returns the version of the dynamic table. Equal bytes have equal meanings as long as the version is the same.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns the size of the dynamic table in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Decodes a complete head and passes each header to the caller.
    ///
    /// # Errors
    /// The bytes are invalid, refer to a missing entry, or decode to more than 256 KiB.
    pub fn read(
        &mut self,
        mut bytes: &[u8],
        tell: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), &'static str> {
        let (mut name, mut value) = std::mem::take(&mut self.text);
        let mut all = 0;
        let mut begun = false;
        while let Some(&first) = bytes.first() {
            if first & 0xe0 == 0x20 {
                if begun {
                    return Err("the size of the table changes within a head");
                }
                let most = take_integer(&mut bytes, 5)?;
                if most > TABLE {
                    return Err("a table for heads of more than 4096 bytes");
                }
                self.version += u64::from(most != self.most);
                self.most = most;
                self.shrink();
                continue;
            }
            begun = true;
            name.clear();
            value.clear();
            let mut kept = false;
            if first & 0x80 != 0 {
                let at = take_integer(&mut bytes, 7)?;
                let (of_name, of_value) = self.entry(at)?;
                name.extend_from_slice(of_name);
                value.extend_from_slice(of_value);
            } else {
                kept = first & 0x40 != 0;
                match take_integer(&mut bytes, if kept { 6 } else { 4 })? {
                    0 => take_text(&mut bytes, &mut name)?,
                    at => name.extend_from_slice(self.entry(at)?.0),
                }
                take_text(&mut bytes, &mut value)?;
            }
            all += name.len() + value.len() + ENTRY;
            if all > LONGEST_LIST {
                return Err("a head of more than 256 KiB when it is read");
            }
            tell(&name, &value);
            if kept {
                self.keep(&name, &value);
            }
        }
        self.text = (name, value);
        Ok(())
    }

    fn entry(&self, at: usize) -> Result<(&[u8], &[u8]), &'static str> {
        let none = "a head names an entry of the table that is not there";
        let before = at.checked_sub(1).ok_or(none)?;
        if let Some((name, value)) = STATIC.get(before) {
            return Ok((name.as_bytes(), value.as_bytes()));
        }
        let (name, value) = self.entries.get(before - STATIC.len()).ok_or(none)?;
        Ok((name, value))
    }

    fn keep(&mut self, name: &[u8], value: &[u8]) {
        let size = name.len() + value.len() + ENTRY;
        if size > self.most {
            // An oversized entry empties the table and is not added (RFC 7541, section 4.4).
            self.version += u64::from(!self.entries.is_empty());
            self.entries.clear();
            self.size = 0;
            return;
        }
        self.version += 1;
        self.entries.push_front((name.to_vec(), value.to_vec()));
        self.size += size;
        self.shrink();
    }

    fn shrink(&mut self) {
        while self.size > self.most
            && let Some((name, value)) = self.entries.pop_back()
        {
            self.version += 1;
            self.size -= name.len() + value.len() + ENTRY;
        }
    }
}

fn take_integer(bytes: &mut &[u8], bits: u32) -> Result<usize, &'static str> {
    let cut = "a head ends within a number";
    let (first, rest) = bytes.split_first().ok_or(cut)?;
    *bytes = rest;
    let most = (1 << bits) - 1;
    let mut value = usize::from(*first) & most;
    if value < most {
        return Ok(value);
    }
    for shift in [0, 7, 14, 21] {
        let (next, rest) = bytes.split_first().ok_or(cut)?;
        *bytes = rest;
        value += usize::from(next & 127) << shift;
        if next & 128 == 0 {
            return Ok(value);
        }
    }
    Err("a number in a head has more than 28 bits")
}

fn take_text(bytes: &mut &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
    let coded = bytes.first().is_some_and(|first| first & 0x80 != 0);
    let length = take_integer(bytes, 7)?;
    let (text, rest) = bytes
        .split_at_checked(length)
        .ok_or("a head ends within a text")?;
    *bytes = rest;
    match coded {
        true => huffman::decode(text, out),
        false => {
            out.extend_from_slice(text);
            Ok(())
        }
    }
}
