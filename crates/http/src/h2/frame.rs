//! Encodes and decodes frames (RFC 9113, section 4.1). A frame consists of length, type, flags, stream and payload.

/// Length of a frame's header in bytes.
pub const HEAD: usize = 9;
/// Maximum length of a payload in bytes, unless SETTINGS changes it.
pub const LONGEST: usize = 16 << 10;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PUSH_PROMISE: u8 = 5;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const ACK: u8 = 1;
pub const END_HEADERS: u8 = 4;
pub const PADDED: u8 = 8;
pub const PRIORITISED: u8 = 0x20;

/// Header of a frame.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    pub length: usize,
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
}

impl Head {
    pub fn read(bytes: &[u8; HEAD]) -> Self {
        let [a, b, c, kind, flags, rest @ ..] = *bytes;
        Self {
            length: u32::from_be_bytes([0, a, b, c]) as usize,
            kind,
            flags,
            stream: u32::from_be_bytes(rest) & (u32::MAX >> 1),
        }
    }

    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Appends the header of a frame. `length` is the length of the payload, at most 2^24 - 1.
pub fn begin(out: &mut Vec<u8>, length: usize, kind: u8, flags: u8, stream: u32) {
    out.extend_from_slice(&(length as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
}

/// Appends a complete frame.
pub fn write(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    begin(out, payload.len(), kind, flags, stream);
    out.extend_from_slice(payload);
}

/// Appends a frame whose payload is a number: a WINDOW_UPDATE or RST_STREAM.
pub fn number(out: &mut Vec<u8>, kind: u8, stream: u32, number: u32) {
    write(out, kind, 0, stream, &number.to_be_bytes());
}

/// Removes the padding and priority fields from a payload; `None` if they are invalid.
pub fn content<'a>(head: &Head, mut payload: &'a [u8]) -> Option<&'a [u8]> {
    if head.has(PADDED) {
        let (padding, rest) = payload.split_first()?;
        let length = rest.len().checked_sub(usize::from(*padding))?;
        payload = &rest[..length];
    }
    if head.kind == HEADERS && head.has(PRIORITISED) {
        payload = payload.get(5..)?;
    }
    Some(payload)
}

/// Returns the name of an error code (RFC 9113, section 7).
#[must_use]
pub fn code(code: u32) -> String {
    let known = [
        "NO_ERROR",
        "PROTOCOL_ERROR",
        "INTERNAL_ERROR",
        "FLOW_CONTROL_ERROR",
        "SETTINGS_TIMEOUT",
        "STREAM_CLOSED",
        "FRAME_SIZE_ERROR",
        "REFUSED_STREAM",
        "CANCEL",
        "COMPRESSION_ERROR",
        "CONNECT_ERROR",
        "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY",
        "HTTP_1_1_REQUIRED",
    ];
    match known.get(code as usize) {
        Some(name) => (*name).to_owned(),
        None => format!("error code {code}"),
    }
}
