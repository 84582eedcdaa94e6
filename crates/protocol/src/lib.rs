//! The language between assay and its other end: the agent inside a guest, over virtio-serial, or an assay
//! on another machine, over the standard input and output of ssh. Frames, and the messages in them.
//!
//! This file is compiled into the agent too and uses the standard library alone. A frame stands on its
//! own: whatever else appears on the line between frames is skipped, and a frame that was damaged
//! is lost without taking the next one with it.
//!
//! ```text
//! magic 4 | request 8 | kind 1 | length 4 | CRC-32 of the 13 bytes before 4 | payload | CRC-32 of the payload 4
//! ```
//! Numbers are little-endian. The header has a sum of its own, so that garbage that looks like a
//! magic number cannot make the reader wait for a payload that never comes.

/// Begins every frame: no text contains it.
const MAGIC: [u8; 4] = [0xA5, 0x1A, 0xB0, 0x0D];
const HEADER: usize = 4 + 8 + 1 + 4 + 4;
/// Most bytes in the payload of a frame.
pub const MAX_PAYLOAD: usize = 1 << 20;
/// Bytes of a file or pipe that travel in one frame.
pub const CHUNK: usize = 32 << 10;
/// Channels between assay and one guest; each carries one request at a time.
pub const PORTS: usize = 4;
/// Name of a channel's virtio-serial port, without its number.
pub const PORT_NAME: &str = "assay.";

/// A message with the number of the request it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Chosen by assay; the agent repeats it in all that belongs to the request.
    pub request: u64,
    /// Which message.
    pub kind: u8,
    /// Its fields.
    pub payload: Vec<u8>,
}

impl Frame {
    /// The bytes that go over the line.
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

/// Takes frames out of a stream of bytes and skips what is none.
#[derive(Debug, Default)]
pub struct FrameDecoder {
    buffer: Vec<u8>,
}

impl FrameDecoder {
    /// Takes in what was read from the line.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }
}

/// The next whole frame, when there is one; after none, more bytes may bring one.
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

/// Looks at bytes that begin with the magic number.
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

/// CRC-32 as in IEEE 802.3 (reflected, polynomial 0xEDB88320).
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

/// What assay asks of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentRequest {
    /// Who is there? What an earlier request left running is killed.
    Hello,
    /// Run a command; `argv[0]` is looked up in `PATH`.
    Run {
        /// Kill it after so many milliseconds; 0 for never.
        timeout_ms: u64,
        /// Whether standard input follows; else it is empty.
        input: bool,
        /// The command and its arguments.
        argv: Vec<Vec<u8>>,
    },
    /// Standard input of the running command; empty at its end.
    Input(Vec<u8>),
    /// Kill the running command.
    Kill,
    /// Ask the running command to end (SIGINT): it answers with its exit status all the same.
    Interrupt,
    /// assay is still there. For carriers that may be cut without anybody noticing; not answered.
    Alive,
    /// Look at a path.
    Look(PathLook, Vec<u8>),
    /// Write a file, replacing what is there; `Data` follows, empty at the end.
    Put {
        /// Permission bits.
        mode: u32,
        /// Absolute path.
        path: Vec<u8>,
    },
    /// Content of the file that is being put.
    Data(Vec<u8>),
    /// Write numbered records one after the other and acknowledge each when it is durable.
    Log {
        /// How durability is asked for.
        sync: Sync,
        /// Number of the first record.
        first: u64,
        /// How many records.
        records: u64,
        /// Chooses their content.
        seed: u64,
        /// The file or device, which must exist.
        path: Vec<u8>,
    },
}

/// Ways to look at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathLook {
    /// The content of a regular file.
    Read,
    /// The content of a regular file, however long.
    Get,
    /// The names in a directory.
    List,
    /// What a symbolic link says.
    Link,
    /// The path without symbolic links.
    RealPath,
    /// Kind, size, device numbers.
    Stat,
    /// Whether a device can be opened exclusively.
    Exclusive,
    /// Where a command of that name is installed.
    Which,
}

/// Ways to ask for durability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// `O_DSYNC`: each write is durable when it returns.
    Dsync,
    /// `fsync` after each write.
    Fsync,
    /// Not at all, as a control: records may be lost.
    Never,
}

impl Sync {
    /// As the command line names it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Dsync => "dsync",
            Self::Fsync => "fsync",
            Self::Never => "never",
        }
    }
}

/// What the agent answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The agent is there.
    Hello,
    /// The command wrote this to standard output.
    Out(Vec<u8>),
    /// The command wrote this to standard error.
    Err(Vec<u8>),
    /// The command ended: its status, 128 + signal when a signal ended it.
    Exit(i32),
    /// The command took too long and was killed.
    TimedOut,
    /// There is no such command.
    NoCommand,
    /// A piece of what was asked for: of a file, a name in a directory.
    Piece(Vec<u8>),
    /// Done; numbers that belong to the answer.
    Done(Vec<u64>),
    /// The kernel refused.
    Failed {
        /// Its number, 0 when the agent refused itself.
        errno: u32,
        /// In words.
        reason: Vec<u8>,
    },
    /// All records of a log below this number are durable now.
    Logged(u64),
    /// The command took its input: more may follow.
    Ready,
    /// The command runs on; sent now and then, so that a guest that hangs is told from a command
    /// that takes its time.
    Alive,
}

/// Writes and reads the fields of a message.
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
    /// The frame that carries it.
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

    /// Reads it from a frame; none when the frame holds something else.
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
    /// The frame that carries it.
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

    /// Reads it from a frame; none when the frame holds something else.
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
