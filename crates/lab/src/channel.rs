//! Communicates with a guest's agent over a virtio-serial port.

use crate::error::LabError;
use assay_host::{lockfile, socket};
use assay_protocol::{AgentRequest, FrameDecoder, PORTS, Reply};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Interval at which a waiting caller checks whether the guest still runs and whether the user interrupted.
const SLICE: Duration = Duration::from_millis(200);
/// Interval after which a greeting is repeated, because the agent may have been restarted.
const AGAIN: Duration = Duration::from_secs(2);

/// Callback that is called regularly while waiting. If it returns an error, the wait ends.
pub(crate) type Watch<'a> = &'a dyn Fn() -> Result<(), LabError>;

/// A virtio-serial port. This process occupies the port until the channel is dropped.
#[derive(Debug)]
pub(crate) struct Channel {
    stream: UnixStream,
    decoder: FrameDecoder,
    request: u64,
    _lock: File,
}

impl Channel {
    /// Takes a free port. Returns `None` if processes use all ports.
    pub(crate) fn open(dir: &Path) -> Result<Option<Self>, LabError> {
        for port in 0..PORTS {
            let path = dir.join(format!("port.{port}.lock"));
            let Some(lock) = lockfile::attempt(&path).map_err(LabError::io(&path))? else {
                continue;
            };
            let socket = dir.join(format!("port.{port}"));
            let stream = socket::connect(&socket).map_err(LabError::io(&socket))?;
            return Self::new(stream, lock)
                .map(Some)
                .map_err(LabError::io(&path));
        }
        Ok(None)
    }

    fn new(stream: UnixStream, lock: File) -> io::Result<Self> {
        stream.set_read_timeout(Some(SLICE))?;
        stream.set_write_timeout(Some(SLICE))?;
        let mut random = [0; 8];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        Ok(Self {
            stream,
            decoder: FrameDecoder::default(),
            // Late answers to an earlier user of the port have other request numbers.
            request: u64::from_le_bytes(random),
            _lock: lock,
        })
    }

    /// Waits until the agent answers. Returns false if `limit` passes first.
    pub(crate) fn greet(&mut self, limit: Duration, watch: Watch<'_>) -> Result<bool, LabError> {
        let deadline = Instant::now() + limit;
        self.request = self.request.wrapping_add(1);
        while Instant::now() < deadline {
            self.send(&AgentRequest::Hello, watch)?;
            let again = deadline.min(Instant::now() + AGAIN);
            while let Some(reply) = self.receive(Some(again), watch)? {
                if reply == Reply::Hello {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Starts a request on the channel. Answers to earlier requests that arrive later are ignored.
    pub(crate) fn begin(
        &mut self,
        request: &AgentRequest,
        watch: Watch<'_>,
    ) -> Result<(), LabError> {
        self.request = self.request.wrapping_add(1);
        self.send(request, watch)
    }

    /// Sends another message that belongs to the current request.
    pub(crate) fn send(
        &mut self,
        request: &AgentRequest,
        watch: Watch<'_>,
    ) -> Result<(), LabError> {
        let bytes = request.frame(self.request).encode();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => watch()?,
                Err(error) => return Err(connection_lost(error, watch)),
            }
        }
        Ok(())
    }

    /// Returns the next answer to the current request; `None` if `deadline` passes first.
    pub(crate) fn receive(
        &mut self,
        deadline: Option<Instant>,
        watch: Watch<'_>,
    ) -> Result<Option<Reply>, LabError> {
        let mut buffer = [0; 64 << 10];
        loop {
            for frame in self.decoder.by_ref() {
                if frame.request == self.request
                    && let Some(reply) = Reply::read(&frame)
                {
                    return Ok(Some(reply));
                }
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(connection_lost(io::ErrorKind::UnexpectedEof.into(), watch)),
                Ok(count) => self.decoder.push(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => watch()?,
                Err(error) => return Err(connection_lost(error, watch)),
            }
            if deadline.is_some_and(|at| Instant::now() >= at) {
                return Ok(None);
            }
        }
    }

    /// Returns a second handle with which another thread can write to the port, and the number of the current request.
    pub(crate) fn writer(&self) -> io::Result<(UnixStream, u64)> {
        Ok((self.stream.try_clone()?, self.request))
    }
}

/// Explains why the socket broke. Usually the guest has ended; the reason of its end is then the better message.
fn connection_lost(error: io::Error, watch: Watch<'_>) -> LabError {
    let deadline = Instant::now() + Duration::from_secs(2);
    while Instant::now() < deadline {
        if let Err(better) = watch() {
            return better;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    LabError::io(Path::new("channel to the guest"))(error)
}
