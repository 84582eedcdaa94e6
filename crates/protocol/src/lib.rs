//! Protocol between assay and a remote program. This program is the agent inside a guest (over virtio-serial), or assay
//! on another machine (over standard input and output of ssh). Defines the frames and the messages in them.
//!
//! This file is also compiled into the agent, and uses only the standard library. Frames are independent: other bytes
//! between frames are skipped, and a damaged frame is lost without affecting the next one.
//!
//! ```text
//! magic 4 | request 8 | kind 1 | length 4 | CRC-32 of the 13 bytes before 4 | payload | CRC-32 of the payload 4
//! ```
//! Numbers are little-endian. The header has its own checksum. Without it, random bytes that look like a magic number
//! could make the reader wait for a payload that never arrives.

/// Bytes at the start of every frame. No text contains them.
const MAGIC: [u8; 4] = [0xA5, 0x1A, 0xB0, 0x0D];
const HEADER: usize = 4 + 8 + 1 + 4 + 4;
/// Maximum size of a frame's payload in bytes.
pub const MAX_PAYLOAD: usize = 1 << 20;
/// Maximum number of bytes of a file or pipe that one frame contains.
pub const CHUNK: usize = 32 << 10;
/// Number of channels between assay and a guest. Each channel carries one request at a time.
pub const PORTS: usize = 4;
/// Name of a channel's virtio-serial port, without its number.
pub const PORT_NAME: &str = "assay.";

/// A message in encoded form, with the number of its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Number of the request, which assay chooses. The agent repeats the number in all messages of the request.
    pub request: u64,
    /// Number that identifies the type of the message.
    pub kind: u8,
    /// Encoded fields of the message.
    pub payload: Vec<u8>,
}

impl Frame {
    /// Encodes the frame with its checksums.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER + self.payload.len() + 4);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&self.request.to_le_bytes());
        bytes.push(self.kind);
        let length = u32::try_from(self.payload.len()).unwrap_or(u32::MAX);
        bytes.extend_from_slice(&length.to_le_bytes());
        let sum = crc32(&bytes[4..]);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes.extend_from_slice(&self.payload);
        bytes.extend_from_slice(&crc32(&self.payload).to_le_bytes());
        bytes
    }
}

/// Extracts frames from a stream of bytes and skips other bytes.
#[derive(Debug, Default)]
pub struct FrameDecoder {
    buffer: Vec<u8>,
}

impl FrameDecoder {
    /// Adds received bytes to the buffer.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }
}

/// Returns the next complete frame. After `None`, more received bytes may complete a frame.
impl Iterator for FrameDecoder {
    type Item = Frame;

    fn next(&mut self) -> Option<Frame> {
        let mut at = 0;
        let found = loop {
            match find(&self.buffer[at..]) {
                None => {
                    // The last bytes may be the start of a magic number.
                    at = self.buffer.len().saturating_sub(MAGIC.len() - 1).max(at);
                    break None;
                }
                Some(skip) => at += skip,
            }
            match parse(&self.buffer[at..]) {
                Parsed::Frame(frame, length) => {
                    at += length;
                    break Some(frame);
                }
                Parsed::Partial => break None,
                Parsed::Garbage => at += 1,
            }
        };
        self.buffer.drain(..at);
        found
    }
}

fn find(bytes: &[u8]) -> Option<usize> {
    bytes.windows(MAGIC.len()).position(|four| four == MAGIC)
}

enum Parsed {
    Frame(Frame, usize),
    Partial,
    Garbage,
}

/// Parses bytes that start with the magic number of a frame.
fn parse(bytes: &[u8]) -> Parsed {
    if bytes.len() < HEADER {
        return Parsed::Partial;
    }
    let u32_at = |at: usize| {
        let mut four = [0; 4];
        four.copy_from_slice(&bytes[at..at + 4]);
        u32::from_le_bytes(four)
    };
    let length = u32_at(13) as usize;
    if length > MAX_PAYLOAD || u32_at(17) != crc32(&bytes[4..17]) {
        return Parsed::Garbage;
    }
    let end = HEADER + length;
    if bytes.len() < end + 4 {
        return Parsed::Partial;
    }
    let payload = &bytes[HEADER..end];
    if u32_at(end) != crc32(payload) {
        return Parsed::Garbage;
    }
    let mut request = [0; 8];
    request.copy_from_slice(&bytes[4..12]);
    let frame = Frame {
        request: u64::from_le_bytes(request),
        kind: bytes[12],
        payload: payload.to_vec(),
    };
    Parsed::Frame(frame, end + 4)
}

/// Computes the CRC-32 of IEEE 802.3 (reflected, polynomial 0xEDB88320).
#[must_use]
pub fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut index = 0;
        while index < 256 {
            let mut value = index as u32;
            let mut bit = 0;
            while bit < 8 {
                value = (value >> 1) ^ (0xEDB8_8320 & (value & 1).wrapping_neg());
                bit += 1;
            }
            table[index] = value;
            index += 1;
        }
        table
    };
    !bytes.iter().fold(!0, |sum, byte| {
        TABLE[(sum as u8 ^ byte) as usize] ^ (sum >> 8)
    })
}

/// A request that assay sends to the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentRequest {
    /// Greet the agent, and kill the programs of an earlier request.
    Hello,
    /// Run a command. `argv[0]` is searched in `PATH`.
    Run {
        /// Time limit in milliseconds, after which the command is killed; 0 means no limit.
        timeout_ms: u64,
        /// Whether standard input follows in [`Self::Input`] messages; otherwise it is empty.
        input: bool,
        /// Command and its arguments.
        argv: Vec<Vec<u8>>,
    },
    /// A piece of standard input for the running command. An empty piece ends the input.
    Input(Vec<u8>),
    /// Kill the running command.
    Kill,
    /// Send SIGINT to the running command. The exit status is still reported.
    Interrupt,
    /// Heartbeat from assay, for connections that can break unnoticed. It gets no answer.
    Alive,
    /// Examine the path in the way that [`PathLook`] says.
    Look(PathLook, Vec<u8>),
    /// Write a file, or replace an existing file. The content follows in [`Self::Data`] messages, the last of which is
    /// empty.
    Put {
        /// Permission bits of the file.
        mode: u32,
        /// Absolute path of the file.
        path: Vec<u8>,
    },
    /// A piece of the file that is being written. An empty piece ends the file.
    Data(Vec<u8>),
    /// Write numbered records in sequence. Each record is acknowledged when it is durable.
    Log {
        /// Method by which durability is requested.
        sync: Sync,
        /// Number of the first record.
        first: u64,
        /// Number of records to write.
        records: u64,
        /// Seed of the records' content.
        seed: u64,
        /// Path of the file or device, which must exist.
        path: Vec<u8>,
    },
}

/// What to return about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathLook {
    /// Return the content of a regular file, up to a size limit.
    Read,
    /// Return the content of a regular file, whatever its size.
    Get,
    /// List the names in a directory.
    List,
    /// Return the target of a symbolic link.
    Link,
    /// Return the path with all symbolic links resolved.
    RealPath,
    /// Return type, size and device numbers.
    Stat,
    /// Check whether a device can be opened exclusively.
    Exclusive,
    /// Return the path of the command with this name.
    Which,
}

/// Method by which durability of a write is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// `O_DSYNC`, with which each write is durable when it returns.
    Dsync,
    /// `fsync` after each write.
    Fsync,
    /// No request, as a control in which records may be lost.
    Never,
}

impl Sync {
    /// Returns the name of the method on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Dsync => "dsync",
            Self::Fsync => "fsync",
            Self::Never => "never",
        }
    }
}

/// A message that the agent sends back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Answer to [`AgentRequest::Hello`], which means that the agent runs.
    Hello,
    /// A piece of the command's standard output.
    Out(Vec<u8>),
    /// A piece of the command's standard error.
    Err(Vec<u8>),
    /// The command ended with this status; 128 + signal if a signal ended it.
    Exit(i32),
    /// The command exceeded its time limit and was killed.
    TimedOut,
    /// The command does not exist.
    NoCommand,
    /// A piece of the requested data, which is a part of a file, or a name in a directory.
    Piece(Vec<u8>),
    /// The request is complete. Contains the results as numbers, for example type, size and device numbers for
    /// [`PathLook::Stat`].
    Done(Vec<u64>),
    /// The request failed: the kernel returned an error, or the agent refused the request.
    Failed {
        /// Error number of the kernel; 0 if the agent itself refused the request.
        errno: u32,
        /// Description of the error.
        reason: Vec<u8>,
    },
    /// All records with a smaller number are durable.
    Logged(u64),
    /// The command has read its input, so that more input can be sent.
    Ready,
    /// The command is still running. Sent regularly, so that a slow command can be distinguished from a hanging guest.
    Alive,
}

/// Encoder and decoder of the fields of a message.
#[derive(Default)]
struct Fields(Vec<u8>);

impl Fields {
    fn number(mut self, value: u64) -> Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn bytes(mut self, value: &[u8]) -> Self {
        let length = u32::try_from(value.len()).unwrap_or(u32::MAX);
        self.0.extend_from_slice(&length.to_le_bytes());
        self.0.extend_from_slice(value);
        self
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn number(&mut self) -> Option<u64> {
        let (first, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*first))
    }

    fn small(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let (first, rest) = self.0.split_first_chunk::<4>()?;
        let (value, rest) = rest.split_at_checked(u32::from_le_bytes(*first) as usize)?;
        self.0 = rest;
        Some(value.to_vec())
    }

    fn all<T>(&mut self, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut found = Vec::new();
        while !self.0.is_empty() {
            found.push(one(self)?);
        }
        Some(found)
    }
}

const LOOKS: [PathLook; 8] = [
    PathLook::Read,
    PathLook::Get,
    PathLook::List,
    PathLook::Link,
    PathLook::RealPath,
    PathLook::Stat,
    PathLook::Exclusive,
    PathLook::Which,
];
const SYNCS: [Sync; 3] = [Sync::Dsync, Sync::Fsync, Sync::Never];

impl AgentRequest {
    /// Encodes the message as a frame of this request.
    #[must_use]
    pub fn frame(&self, request: u64) -> Frame {
        let fields = Fields::default();
        let (kind, fields) = match self {
            Self::Hello => (1, fields),
            Self::Run {
                timeout_ms,
                input,
                argv,
            } => {
                let head = fields.number(*timeout_ms).number((*input).into());
                let words = argv.iter().fold(head, |fields, word| fields.bytes(word));
                (2, words)
            }
            Self::Input(bytes) => (3, fields.bytes(bytes)),
            Self::Kill => (4, fields),
            Self::Look(look, path) => (5, fields.number(*look as u64).bytes(path)),
            Self::Put { mode, path } => (6, fields.number((*mode).into()).bytes(path)),
            Self::Data(bytes) => (7, fields.bytes(bytes)),
            Self::Log {
                sync,
                first,
                records,
                seed,
                path,
            } => {
                let numbers = fields.number(*sync as u64).number(*first);
                (8, numbers.number(*records).number(*seed).bytes(path))
            }
            Self::Interrupt => (9, fields),
            Self::Alive => (10, fields),
        };
        Frame {
            request,
            kind,
            payload: fields.0,
        }
    }

    /// Decodes a message. Returns `None` if the frame contains a message of another type.
    #[must_use]
    pub fn read(frame: &Frame) -> Option<Self> {
        let mut fields = Reader(&frame.payload);
        let found = match frame.kind {
            1 => Self::Hello,
            2 => Self::Run {
                timeout_ms: fields.number()?,
                input: fields.number()? != 0,
                argv: fields.all(Reader::bytes)?,
            },
            3 => Self::Input(fields.bytes()?),
            4 => Self::Kill,
            5 => Self::Look(*LOOKS.get(fields.small()? as usize)?, fields.bytes()?),
            6 => Self::Put {
                mode: fields.small()?,
                path: fields.bytes()?,
            },
            7 => Self::Data(fields.bytes()?),
            8 => Self::Log {
                sync: *SYNCS.get(fields.small()? as usize)?,
                first: fields.number()?,
                records: fields.number()?,
                seed: fields.number()?,
                path: fields.bytes()?,
            },
            9 => Self::Interrupt,
            10 => Self::Alive,
            _ => return None,
        };
        fields.0.is_empty().then_some(found)
    }
}

impl Reply {
    /// Encodes the message as a frame of this request.
    #[must_use]
    pub fn frame(&self, request: u64) -> Frame {
        let fields = Fields::default();
        let (kind, fields) = match self {
            Self::Hello => (129, fields),
            Self::Out(bytes) => (130, fields.bytes(bytes)),
            Self::Err(bytes) => (131, fields.bytes(bytes)),
            Self::Exit(status) => (132, fields.number(u64::from(status.cast_unsigned()))),
            Self::TimedOut => (133, fields),
            Self::NoCommand => (134, fields),
            Self::Piece(bytes) => (135, fields.bytes(bytes)),
            Self::Done(numbers) => (
                136,
                numbers.iter().fold(fields, |all, one| all.number(*one)),
            ),
            Self::Failed { errno, reason } => (137, fields.number((*errno).into()).bytes(reason)),
            Self::Logged(count) => (138, fields.number(*count)),
            Self::Ready => (139, fields),
            Self::Alive => (140, fields),
        };
        Frame {
            request,
            kind,
            payload: fields.0,
        }
    }

    /// Decodes a message. Returns `None` if the frame contains a message of another type.
    #[must_use]
    pub fn read(frame: &Frame) -> Option<Self> {
        let mut fields = Reader(&frame.payload);
        let found = match frame.kind {
            129 => Self::Hello,
            130 => Self::Out(fields.bytes()?),
            131 => Self::Err(fields.bytes()?),
            132 => Self::Exit(fields.small()?.cast_signed()),
            133 => Self::TimedOut,
            134 => Self::NoCommand,
            135 => Self::Piece(fields.bytes()?),
            136 => Self::Done(fields.all(Reader::number)?),
            137 => Self::Failed {
                errno: fields.small()?,
                reason: fields.bytes()?,
            },
            138 => Self::Logged(fields.number()?),
            139 => Self::Ready,
            140 => Self::Alive,
            _ => return None,
        };
        fields.0.is_empty().then_some(found)
    }
}
