//! A disk with a volatile write cache, as an NBD server. The server logs every write and every flush, so that the
//! contents after a power cut at any moment can be computed later. The kernel's dm-log-writes uses the same method.

use super::{
    CMD_DISCONNECT, CMD_FLUSH, CMD_READ, CMD_WRITE, FLAG_FUA, INFO_EXPORT, MAGIC, OPT_GO, OPTION,
    OPTION_REPLY, REP_ACK, REP_INFO, REPLY, REQUEST, read_u32,
};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// NBD_FLAG_HAS_FLAGS, SEND_FLUSH and SEND_FUA: the disk supports durable writes. SEND_TRIM and SEND_WRITE_ZEROES: the
/// disk writes zeroes for both requests. QEMU 7.2 converts a hole punched into its file to a trim, and the program that
/// punched the hole relies on zeroes.
const FLAGS: u16 = 1 | 1 << 2 | 1 << 3 | 1 << 5 | 1 << 6;
const CMD_TRIM: u16 = 4;
const CMD_WRITE_ZEROES: u16 = 6;
const OPT_ABORT: u32 = 2;
const OPT_INFO: u32 = 6;
const REP_ERR_UNSUPPORTED: u32 = 1 << 31 | 1;
const EINVAL: u32 = 22;
const EIO: u32 = 5;
/// Maximum bytes of a request or option; QEMU sends at most 32 MiB.
const LONGEST: u32 = 64 << 20;

/// What happened to the disk, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// A write of `length` bytes at `offset`; the data is at `at` in the log.
    Write {
        offset: u64,
        length: usize,
        at: u64,
        fua: bool,
    },
    /// A write of `length` zeroes at `offset`.
    Zeroes {
        offset: u64,
        length: u64,
        fua: bool,
    },
    Flush,
}

/// Present contents of the disk, and its log.
struct State {
    now: File,
    log: File,
    end: u64,
    events: Vec<Event>,
}

/// The server's side of a disk: the contents and the log.
#[derive(Clone)]
pub(crate) struct Disk {
    state: Arc<Mutex<State>>,
    size: u64,
}

impl Disk {
    /// Serves `now`, a file of the disk's size, on a new socket. `log` must be an empty file. The disk accepts one
    /// client, and ends when this client disconnects.
    pub fn serve(socket: &Path, now: File, log: File) -> io::Result<Self> {
        let disk = Self::new(now, log)?;
        let listener = assay_host::socket::listen_at(socket)?;
        let served = disk.clone();
        std::thread::spawn(move || {
            // One client, one connection.
            if let Ok((stream, _)) = listener.accept() {
                // An error ends the connection, which the client notices.
                let _ = served.talk(stream);
            }
        });
        Ok(disk)
    }

    /// Creates a disk that is not served yet.
    pub fn new(now: File, log: File) -> io::Result<Self> {
        let size = now.metadata()?.len();
        let state = State {
            now,
            log,
            end: 0,
            events: Vec::new(),
        };
        Ok(Self {
            state: Arc::new(Mutex::new(state)),
            size,
        })
    }

    /// Returns the number of events so far, which identifies a moment for a power cut.
    pub fn moment(&self) -> usize {
        self.lock().events.len()
    }

    /// Computes the contents after a power cut at `moment` and writes them to `disk`. `disk` must contain the initial
    /// contents, or the contents after an earlier cut. Of the events since `from`, all writes before the last flush
    /// remain; of the later writes, only those with the FUA flag. Returns the value of `from` for the next cut.
    pub fn cut(&self, disk: &File, from: usize, moment: usize) -> io::Result<usize> {
        let state = self.lock();
        let events = state.events.get(from..moment).unwrap_or_default();
        let flushed = events.iter().rposition(|event| *event == Event::Flush);
        let flushed = flushed.map_or(0, |index| index + 1);
        for (index, event) in events.iter().enumerate() {
            match *event {
                Event::Write {
                    offset,
                    length,
                    at,
                    fua,
                } if fua || index < flushed => {
                    let mut data = vec![0; length];
                    state.log.read_exact_at(&mut data, at)?;
                    disk.write_all_at(&data, offset)?;
                }
                Event::Zeroes {
                    offset,
                    length,
                    fua,
                } if fua || index < flushed => zero(disk, offset, length)?,
                _ => {}
            }
        }
        Ok(from + flushed)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Negotiates (newstyle), then answers requests until the connection ends.
    pub fn talk<S: Read + Write>(&self, mut stream: S) -> io::Result<()> {
        // NBD_FLAG_FIXED_NEWSTYLE | NBD_FLAG_NO_ZEROES
        let mut greeting = [MAGIC.to_be_bytes(), OPTION.to_be_bytes()].concat();
        greeting.extend(3u16.to_be_bytes());
        stream.write_all(&greeting)?;
        let mut flags = [0; 4];
        stream.read_exact(&mut flags)?;
        loop {
            let mut head = [0; 16];
            stream.read_exact(&mut head)?;
            let (option, length) = (read_u32(&head, 8), read_u32(&head, 12));
            if head[..8] != OPTION.to_be_bytes() || length > LONGEST {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let mut data = vec![0; length as usize];
            stream.read_exact(&mut data)?;
            match option {
                OPT_GO | OPT_INFO => {
                    let mut info = INFO_EXPORT.to_be_bytes().to_vec();
                    info.extend(self.size.to_be_bytes());
                    info.extend(FLAGS.to_be_bytes());
                    answer(&mut stream, option, REP_INFO, &info)?;
                    answer(&mut stream, option, REP_ACK, &[])?;
                    if option == OPT_GO {
                        break;
                    }
                }
                OPT_ABORT => return answer(&mut stream, option, REP_ACK, &[]),
                _ => answer(&mut stream, option, REP_ERR_UNSUPPORTED, &[])?,
            }
        }
        loop {
            let mut head = [0; 28];
            stream.read_exact(&mut head)?;
            let length = read_u32(&head, 24);
            let command = u16::from_be_bytes([head[6], head[7]]);
            let carries = matches!(command, CMD_READ | CMD_WRITE);
            if read_u32(&head, 0) != REQUEST || carries && length > LONGEST {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let offset = u64::from(read_u32(&head, 16)) << 32 | u64::from(read_u32(&head, 20));
            let flags = u16::from_be_bytes([head[4], head[5]]);
            let fua = flags & FLAG_FUA != 0;
            let length = length as usize;
            let mut data = vec![0; if command == CMD_WRITE { length } else { 0 }];
            stream.read_exact(&mut data)?;
            let mut read = vec![0; if command == CMD_READ { length } else { 0 }];
            let inside = offset
                .checked_add(length as u64)
                .is_some_and(|end| end <= self.size);
            let done = match command {
                CMD_DISCONNECT => return Ok(()),
                CMD_FLUSH => {
                    self.lock().events.push(Event::Flush);
                    Ok(())
                }
                CMD_READ if inside => self.lock().now.read_exact_at(&mut read, offset),
                CMD_WRITE if inside => self.lock().write(offset, &data, fua),
                CMD_TRIM | CMD_WRITE_ZEROES if inside => {
                    self.lock().zero(offset, length as u64, fua)
                }
                _ => Err(io::ErrorKind::InvalidInput.into()),
            };
            let error = match done {
                Ok(()) => 0,
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => EINVAL,
                Err(_) => EIO,
            };
            let mut reply = REPLY.to_be_bytes().to_vec();
            reply.extend(error.to_be_bytes());
            reply.extend(&head[8..16]);
            if error == 0 {
                reply.extend(read);
            }
            stream.write_all(&reply)?;
        }
    }
}

impl State {
    fn write(&mut self, offset: u64, data: &[u8], fua: bool) -> io::Result<()> {
        self.now.write_all_at(data, offset)?;
        self.log.write_all_at(data, self.end)?;
        self.events.push(Event::Write {
            offset,
            length: data.len(),
            at: self.end,
            fua,
        });
        self.end += data.len() as u64;
        Ok(())
    }

    fn zero(&mut self, offset: u64, length: u64, fua: bool) -> io::Result<()> {
        zero(&self.now, offset, length)?;
        self.events.push(Event::Zeroes {
            offset,
            length,
            fua,
        });
        Ok(())
    }
}

/// Writes zeroes, as a hole if the file system supports holes.
fn zero(file: &File, offset: u64, length: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    if length == 0 || fallocate(file, hole, offset, length).is_ok() {
        return Ok(());
    }
    let zeroes = vec![0; 1 << 20];
    let mut done = 0;
    while done < length {
        let some = (length - done).min(zeroes.len() as u64);
        file.write_all_at(&zeroes[..usize::try_from(some).unwrap_or(0)], offset + done)?;
        done += some;
    }
    Ok(())
}

fn answer(stream: &mut impl Write, option: u32, kind: u32, data: &[u8]) -> io::Result<()> {
    let length = u32::try_from(data.len()).map_err(io::Error::other)?;
    let mut reply = OPTION_REPLY.to_be_bytes().to_vec();
    for number in [option, kind, length] {
        reply.extend(number.to_be_bytes());
    }
    reply.extend(data);
    stream.write_all(&reply)
}

#[cfg(test)]
mod tests {
    use super::super::Client;
    use super::*;

    const SIZE: u64 = 1 << 20;

    /// Runs the steps one after the other, and returns the contents after a power cut at each point in time.
    fn after(steps: &[fn(&mut Client)]) -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let [now, log, left] = ["now", "log", "left"].map(|name| {
            let mut options = File::options();
            options.read(true).write(true).create_new(true);
            options.open(dir.path().join(name)).unwrap()
        });
        now.set_len(SIZE).unwrap();
        left.set_len(SIZE).unwrap();
        let socket = dir.path().join("disk.sock");
        let disk = Disk::serve(&socket, now, log).unwrap();
        let mut client = Client::connect(&socket, "disk").unwrap();
        assert_eq!(client.size, SIZE);
        let mut from = 0;
        let mut first = Vec::new();
        for step in steps {
            step(&mut client);
            from = disk.cut(&left, from, disk.moment()).unwrap();
            let mut byte = [0];
            left.read_exact_at(&mut byte, 4096).unwrap();
            first.push(byte[0]);
        }
        first
    }

    #[test]
    fn only_what_was_flushed_survives() {
        let write: fn(&mut Client) = |client| client.write(4096, &[1; 512], 0).unwrap();
        let other: fn(&mut Client) = |client| client.write(4096, &[2; 512], 0).unwrap();
        let fua: fn(&mut Client) = |client| client.write(4096, &[3; 512], FLAG_FUA).unwrap();
        let flush: fn(&mut Client) = |client| client.flush().unwrap();
        assert_eq!(after(&[write, flush]), [0, 1]);
        assert_eq!(after(&[write, flush, other, flush]), [0, 1, 1, 2]);
        assert_eq!(after(&[write, fua, flush]), [0, 3, 3]);
        assert_eq!(after(&[fua, other, flush]), [3, 3, 2]);
    }

    #[test]
    fn what_is_read_is_what_was_written_last() {
        after(&[|client| {
            client.write(4096, b"abc", 0).unwrap();
            let mut data = [0; 4];
            client.read(4096, &mut data).unwrap();
            assert_eq!(&data, b"abc\0");
            assert_eq!(
                client.read(SIZE, &mut data).unwrap_err().raw_os_error(),
                Some(22)
            );
        }]);
    }
}
