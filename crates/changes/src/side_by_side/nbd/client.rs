//! An NBD client that can write, flush and read, with one request at a time.

use super::{
    CMD_DISCONNECT, CMD_FLUSH, CMD_READ, CMD_WRITE, INFO_EXPORT, MAGIC, OPT_GO, OPTION,
    OPTION_REPLY, REP_ACK, REP_INFO, REPLY, REQUEST, read_u32,
};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// A connection to one export.
pub(crate) struct Client<S: Read + Write = UnixStream> {
    stream: S,
    /// Size of the export in bytes.
    pub size: u64,
    cookie: u64,
}

impl Client {
    /// Connects and negotiates (newstyle, NBD_OPT_GO).
    pub fn connect(socket: &Path, export: &str) -> io::Result<Self> {
        let stream = assay_host::socket::connect(socket)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Self::negotiate(stream, export)
    }
}

impl<S: Read + Write> Client<S> {
    /// Negotiates on an open connection.
    pub fn negotiate(mut stream: S, export: &str) -> io::Result<Self> {
        let mut greeting = [0u8; 18];
        stream.read_exact(&mut greeting)?;
        if greeting[..8] != MAGIC.to_be_bytes() || greeting[8..16] != OPTION.to_be_bytes() {
            return Err(protocol_error("this is no NBD server of the new style"));
        }
        // NBD_FLAG_C_FIXED_NEWSTYLE | NBD_FLAG_C_NO_ZEROES
        stream.write_all(&3u32.to_be_bytes())?;
        let name = export.as_bytes();
        let length = u32::try_from(name.len()).map_err(io::Error::other)?;
        let mut option = Vec::new();
        option.extend(OPTION.to_be_bytes());
        option.extend(OPT_GO.to_be_bytes());
        option.extend((length + 6).to_be_bytes());
        option.extend(length.to_be_bytes());
        option.extend(name);
        option.extend(0u16.to_be_bytes());
        stream.write_all(&option)?;
        let mut size = None;
        loop {
            let mut head = [0u8; 20];
            stream.read_exact(&mut head)?;
            let [kind, length] = [12, 16].map(|at| read_u32(&head, at));
            if head[..8] != OPTION_REPLY.to_be_bytes() || length > 1 << 16 {
                return Err(protocol_error("a reply to an option begins otherwise"));
            }
            let mut payload = vec![0u8; length as usize];
            stream.read_exact(&mut payload)?;
            match kind {
                REP_ACK => break,
                REP_INFO if payload.len() >= 12 && payload[..2] == INFO_EXPORT.to_be_bytes() => {
                    let high = u64::from(read_u32(&payload, 2));
                    size = Some(high << 32 | u64::from(read_u32(&payload, 6)));
                }
                REP_INFO => {}
                refused => {
                    let text = String::from_utf8_lossy(&payload);
                    return Err(protocol_error(&format!(
                        "the export is refused ({refused:#x}): {text}"
                    )));
                }
            }
        }
        Ok(Self {
            stream,
            size: size.ok_or_else(|| protocol_error("the size of the export is missing"))?,
            cookie: 0,
        })
    }

    /// Writes data. `flags` are command flags of the protocol, such as FUA.
    pub fn write(&mut self, offset: u64, data: &[u8], flags: u16) -> io::Result<()> {
        let length = u32::try_from(data.len()).map_err(io::Error::other)?;
        self.request(flags, CMD_WRITE, offset, length)?;
        self.stream.write_all(data)?;
        self.reply()
    }

    /// Sends a flush, and returns when all acknowledged writes are durable.
    pub fn flush(&mut self) -> io::Result<()> {
        self.request(0, CMD_FLUSH, 0, 0)?;
        self.reply()
    }

    /// Fills `data` from `offset` of the export.
    pub fn read(&mut self, offset: u64, data: &mut [u8]) -> io::Result<()> {
        let length = u32::try_from(data.len()).map_err(io::Error::other)?;
        self.request(0, CMD_READ, offset, length)?;
        self.reply()?;
        self.stream.read_exact(data)
    }

    fn request(&mut self, flags: u16, command: u16, offset: u64, length: u32) -> io::Result<()> {
        self.cookie += 1;
        let mut head = [0u8; 28];
        head[..4].copy_from_slice(&REQUEST.to_be_bytes());
        head[4..6].copy_from_slice(&flags.to_be_bytes());
        head[6..8].copy_from_slice(&command.to_be_bytes());
        head[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        head[16..24].copy_from_slice(&offset.to_be_bytes());
        head[24..].copy_from_slice(&length.to_be_bytes());
        self.stream.write_all(&head)
    }

    fn reply(&mut self) -> io::Result<()> {
        let mut head = [0u8; 16];
        self.stream.read_exact(&mut head)?;
        if read_u32(&head, 0) != REPLY || head[8..] != self.cookie.to_be_bytes() {
            return Err(protocol_error("a reply does not fit its request"));
        }
        match read_u32(&head, 4) {
            0 => Ok(()),
            // Errors have the numbers of Linux.
            error => Err(io::Error::from_raw_os_error(error.cast_signed())),
        }
    }
}

impl<S: Read + Write> Drop for Client<S> {
    fn drop(&mut self) {
        let _ = self.request(0, CMD_DISCONNECT, 0, 0);
    }
}

fn protocol_error(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}
