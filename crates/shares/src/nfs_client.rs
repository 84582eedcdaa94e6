//! A client of NFS 3 (RFC 1813) that writes, reads and removes one file. It needs neither a mount nor the kernel's
//! client. Finds the server's ports by its port mapper (rpcbind).

mod rpc;
mod xdr;

use crate::share_client::{ShareClient, Transfer};
use crate::{Protection, ShareError, ShareUrl};
use rpc::{CallError, Caller, Procedure, RpcConnection};
use rustix::time::{ClockId, clock_gettime};
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Instant;
use xdr::{Arguments, Results};

const PORT_MAPPER: u16 = 111;
const GET_PORT: Procedure = (100_000, 2, 3);
const MOUNT: Procedure = (100_005, 3, 1);
const UNMOUNT: Procedure = (100_005, 3, 3);
const LOOKUP: Procedure = (NFS, 3, 3);
const READ: Procedure = (NFS, 3, 6);
const WRITE: Procedure = (NFS, 3, 7);
const CREATE: Procedure = (NFS, 3, 8);
const REMOVE: Procedure = (NFS, 3, 12);
const FSINFO: Procedure = (NFS, 3, 19);
const COMMIT: Procedure = (NFS, 3, 21);
const NFS: u32 = 100_003;
/// Port of mountd that distributions fix.
const MOUNT_PORT: u16 = 20_048;
/// Port of NFS.
pub(crate) const NFS_PORT: u16 = 2049;
/// Most bytes of one read or write; the kernel's client takes as many.
const BLOCK: u32 = 1 << 20;
/// Calls that are on their way at once.
const DEPTH: usize = 8;
/// Bytes of the attributes of a file.
const ATTRIBUTES: usize = 84;
/// Most bytes of a file handle.
const HANDLE: usize = 64;
const NO_ENTRY: u32 = 2;

/// A directory of an export.
pub(crate) struct NfsClient<'a> {
    url: &'a ShareUrl,
}

/// Connection to the server, and the handle of the directory.
struct Session {
    rpc: RpcConnection,
    directory: Vec<u8>,
    /// Bytes of one read and of one write.
    blocks: (u32, u32),
}

impl ShareClient for NfsClient<'_> {
    fn protections(&self) -> &'static [Protection] {
        &[Protection::Plain]
    }

    fn share_name(&self) -> String {
        self.url.share_name()
    }

    fn is_for(&self, share: &str, port: u16, directory: &str) -> bool {
        self.url.share_name() == share && self.url.port() == port && directory.is_empty()
    }

    fn describe(&self, _stop: &dyn Fn() -> bool) -> Result<String, ShareError> {
        Ok("assay's own NFS client, without a mount".to_owned())
    }

    fn connect(&self, stop: &dyn Fn() -> bool) -> Result<Option<String>, ShareError> {
        self.open(stop)?;
        Ok(Some("NFS 3".to_owned()))
    }

    fn transfer(
        &self,
        _protection: Protection,
        file: &Path,
        name: &str,
        stop: &dyn Fn() -> bool,
    ) -> Result<Transfer, ShareError> {
        let local = |source| ShareError::File {
            path: file.to_owned(),
            source,
        };
        let source = File::open(file).map_err(local)?;
        let bytes = source.metadata().map_err(local)?.len();
        let (begin, cpu) = (Instant::now(), cpu_seconds());
        let mut session = self.open(stop)?;
        let handle = self.create(&mut session, name, stop)?;
        let start = Instant::now();
        self.write(&mut session, &handle, (&source, bytes), stop)?;
        let write = bytes as f64 / start.elapsed().as_secs_f64();
        let start = Instant::now();
        self.read(&mut session, &handle, bytes, stop)?;
        let read = bytes as f64 / start.elapsed().as_secs_f64();
        self.remove(&mut session, name, stop)?;
        let client_cpu = (cpu_seconds() - cpu) / begin.elapsed().as_secs_f64();
        Ok(Transfer {
            write,
            read,
            client_cpu,
        })
    }

    fn delete(&self, name: &str, stop: &dyn Fn() -> bool) -> Result<(), ShareError> {
        let mut session = self.open(stop)?;
        self.remove(&mut session, name, stop)
    }
}

impl<'a> NfsClient<'a> {
    pub(crate) fn new(url: &'a ShareUrl) -> Self {
        Self { url }
    }

    fn caller(&self) -> Caller {
        Caller {
            uid: self
                .url
                .uid()
                .unwrap_or(rustix::process::geteuid().as_raw()),
            gid: self
                .url
                .gid()
                .unwrap_or(rustix::process::getegid().as_raw()),
        }
    }

    /// Asks mountd for the handle of the export, and NFS for the sizes of its transfers.
    fn open(&self, stop: &dyn Fn() -> bool) -> Result<Session, ShareError> {
        let address = |port: u16| -> Result<SocketAddr, ShareError> {
            let found = (self.url.host(), port).to_socket_addrs();
            let mut found = found.map_err(|error| self.failed(CallError::Io(error)))?;
            let none = || self.refused("the server's name has no address");
            found.next().ok_or_else(none)
        };
        let caller = self.caller();
        let mapped = match self.url.mount_port() {
            Some(port) => Some(port),
            None => find_port(address(PORT_MAPPER)?, MOUNT.0, caller, stop),
        };
        let mut mount = RpcConnection::open(address(mapped.unwrap_or(MOUNT_PORT))?, caller)
            .map_err(|error| self.no_mount(error, mapped.is_some()))?;
        let path = Arguments::default().bytes(self.url.export().as_bytes());
        let reply = mount
            .call(MOUNT, &path, stop)
            .map_err(|error| self.no_mount(error, true))?;
        let mut results = Results(&reply);
        let status = results.number().ok_or_else(|| self.damaged())?;
        if status != 0 {
            return Err(self.mount_status(status));
        }
        let directory = results
            .bytes(HANDLE)
            .ok_or_else(|| self.damaged())?
            .to_vec();
        // Ends the entry in the server's list of mounts; nothing depends on it.
        let _ = mount.call(UNMOUNT, &path, stop);
        let rpc = RpcConnection::open(address(self.url.port())?, caller)
            .map_err(|error| self.failed(error))?;
        let mut session = Session {
            rpc,
            directory,
            blocks: (BLOCK, BLOCK),
        };
        let asked = Arguments::default().bytes(&session.directory);
        let reply = self.call(&mut session, FSINFO, &asked, stop)?;
        let mut results = Results(&reply);
        let sizes = (|| {
            results.skip_optional(ATTRIBUTES)?;
            let read = results.number()?;
            results.skip(8)?;
            Some((read, results.number()?))
        })();
        let (read, write) = sizes.ok_or_else(|| self.damaged())?;
        session.blocks = (read.clamp(512, BLOCK), write.clamp(512, BLOCK));
        Ok(session)
    }

    /// Creates the file; returns its handle.
    fn create(
        &self,
        session: &mut Session,
        name: &str,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<u8>, ShareError> {
        const GUARDED: u32 = 1;
        let place = Arguments::default()
            .bytes(&session.directory)
            .bytes(name.as_bytes());
        // Only the mode is set.
        let how = [GUARDED, 1, 0o600, 0, 0, 0, 0, 0];
        let asked = how
            .iter()
            .fold(place.clone(), |all, number| all.number(*number));
        let reply = self.call(session, CREATE, &asked, stop)?;
        let mut results = Results(&reply);
        if results.number() == Some(1) {
            let handle = results.bytes(HANDLE).ok_or_else(|| self.damaged())?;
            return Ok(handle.to_vec());
        }
        let reply = self.call(session, LOOKUP, &place, stop)?;
        let handle = Results(&reply).bytes(HANDLE).map(<[u8]>::to_vec);
        handle.ok_or_else(|| self.damaged())
    }

    /// Writes the file, and asks the server to put it on stable storage.
    fn write(
        &self,
        session: &mut Session,
        handle: &[u8],
        (file, bytes): (&File, u64),
        stop: &dyn Fn() -> bool,
    ) -> Result<(), ShareError> {
        let mut data = vec![0; session.blocks.1 as usize];
        let block = session.blocks.1;
        let send = |rpc: &mut RpcConnection, (offset, length): Piece| {
            let part = &mut data[..length as usize];
            file.read_exact_at(part, offset).map_err(CallError::Io)?;
            let asked = Arguments::default()
                .bytes(handle)
                .long(offset)
                .number(length)
                .number(0)
                .bytes(part);
            rpc.send(WRITE, &asked, stop)
        };
        let take = |results: &mut Results| {
            skip_changes(results)?;
            results.number()
        };
        self.transfer_pieces(session, (bytes, block), send, take, stop)?;
        let asked = Arguments::default().bytes(handle).long(0).number(0);
        self.call(session, COMMIT, &asked, stop)?;
        Ok(())
    }

    fn read(
        &self,
        session: &mut Session,
        handle: &[u8],
        bytes: u64,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), ShareError> {
        let block = session.blocks.0;
        let send = |rpc: &mut RpcConnection, (offset, length): Piece| {
            let asked = Arguments::default()
                .bytes(handle)
                .long(offset)
                .number(length);
            rpc.send(READ, &asked, stop)
        };
        let take = |results: &mut Results| {
            results.skip_optional(ATTRIBUTES)?;
            results.number()
        };
        self.transfer_pieces(session, (bytes, block), send, take, stop)
    }

    /// Transfers the pieces of a file, several at once. `send` sends the call for a piece, `take` returns how many
    /// bytes were transferred.
    fn transfer_pieces(
        &self,
        session: &mut Session,
        (bytes, block): (u64, u32),
        mut send: impl FnMut(&mut RpcConnection, Piece) -> Result<u32, CallError>,
        take: impl Fn(&mut Results) -> Option<u32>,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), ShareError> {
        let mut left: VecDeque<Piece> = (0..bytes.div_ceil(u64::from(block)))
            .map(|number| {
                let offset = number * u64::from(block);
                let length = u32::try_from(bytes - offset).unwrap_or(block).min(block);
                (offset, length)
            })
            .collect();
        let mut sent: HashMap<u32, Piece> = HashMap::new();
        while !(left.is_empty() && sent.is_empty()) {
            if stop() {
                return Err(ShareError::Stopped);
            }
            while sent.len() < DEPTH
                && let Some(piece) = left.pop_front()
            {
                let number = send(&mut session.rpc, piece).map_err(|error| self.failed(error))?;
                sent.insert(number, piece);
            }
            let answer = session.rpc.receive(stop);
            let (number, reply) = answer.map_err(|error| self.failed(error))?;
            let Some((offset, length)) = sent.remove(&number) else {
                continue;
            };
            let mut results = Results(&reply);
            match results.number() {
                Some(0) => {}
                Some(status) => return Err(self.status(status)),
                None => return Err(self.damaged()),
            }
            match take(&mut results) {
                Some(done) if done >= length => {}
                Some(done) if done > 0 => {
                    left.push_front((offset + u64::from(done), length - done));
                }
                _ => return Err(self.damaged()),
            }
        }
        Ok(())
    }

    /// Removes the file. Succeeds if the file does not exist.
    fn remove(
        &self,
        session: &mut Session,
        name: &str,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), ShareError> {
        let asked = Arguments::default()
            .bytes(&session.directory)
            .bytes(name.as_bytes());
        let reply = session.rpc.call(REMOVE, &asked, stop);
        let reply = reply.map_err(|error| self.failed(error))?;
        match Results(&reply).number() {
            Some(0 | NO_ENTRY) => Ok(()),
            Some(status) => Err(self.status(status)),
            None => Err(self.damaged()),
        }
    }

    /// Calls a procedure of NFS; returns the results behind its status.
    fn call(
        &self,
        session: &mut Session,
        procedure: Procedure,
        arguments: &Arguments,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<u8>, ShareError> {
        let reply = session.rpc.call(procedure, arguments, stop);
        let mut reply = reply.map_err(|error| self.failed(error))?;
        match Results(&reply).number() {
            Some(0) => Ok(reply.split_off(4)),
            Some(status) => Err(self.status(status)),
            None => Err(self.damaged()),
        }
    }

    fn refused(&self, why: &str) -> ShareError {
        ShareError::Refused {
            share: self.share_name(),
            why: why.to_owned(),
        }
    }

    fn damaged(&self) -> ShareError {
        self.refused("the server's answer is damaged, or not of NFS 3")
    }

    /// Describes why mountd gives no handle. Servers of NFS 4 alone run no mountd.
    fn no_mount(&self, error: CallError, is_mapped: bool) -> ShareError {
        match error {
            CallError::Stopped => ShareError::Stopped,
            CallError::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused && !is_mapped => {
                self.refused(&format!(
                    "neither its port mapper nor mountd answers, as of a server of NFS 4 alone; assay speaks NFS 3. {}",
                    self.mount_by_hand()
                ))
            }
            CallError::NoProgram => self.refused(&format!(
                "the server does not offer NFS 3, which assay speaks. {}",
                self.mount_by_hand()
            )),
            error => self.failed(error),
        }
    }

    /// Returns how to measure the export through the kernel's client.
    fn mount_by_hand(&self) -> String {
        let export = format!("{}:{}", self.url.host(), self.url.export());
        format!(
            "Mount it where only this command sees it: `unshare --mount sh -c 'mount -t nfs {export} /mnt && assay run \
             throughput /mnt'`"
        )
    }

    fn failed(&self, error: CallError) -> ShareError {
        match error {
            CallError::Stopped => ShareError::Stopped,
            CallError::Io(error) => self.refused(&format!(
                "{error}. Check the server's name, that NFS runs there (`rpcinfo {}`), and the firewall.",
                self.url.host()
            )),
            CallError::NoProgram => self.refused(&format!(
                "the server does not offer NFS 3, which assay speaks. {}",
                self.mount_by_hand()
            )),
            CallError::Auth(reason) => self.refused(&format!(
                "the server does not accept this user or port (reason {reason} of RPC). Run as root; an export with \
                 sec=krb5 needs a mount."
            )),
            CallError::Damaged => self.damaged(),
        }
    }

    /// Describes the status of a reply of mountd. Servers answer "permission denied" for a path that they do not export
    /// as well.
    fn mount_status(&self, status: u32) -> ShareError {
        match status {
            1 | 13 | NO_ENTRY => self.refused(&format!(
                "the server has no such export or directory, or does not offer it to this machine. `showmount -e {}` \
                 lists its exports. Run as root: most exports require a low port.",
                self.url.host()
            )),
            other => self.status(other),
        }
    }

    /// Describes the status of a reply of NFS or mountd, which have the same numbers.
    fn status(&self, status: u32) -> ShareError {
        let caller = self.caller();
        let why = match status {
            1 | 13 => format!(
                "permission denied for user {} and group {}. An export maps root to nobody unless it has \
                 no_root_squash: give a user who may write there with ?uid=UID&gid=GID.",
                caller.uid, caller.gid
            ),
            NO_ENTRY => "the directory was removed on the server.".to_owned(),
            20 => "the path is not a directory.".to_owned(),
            28 => "the file system is full. Take a smaller file with --size.".to_owned(),
            30 => "the export is read-only.".to_owned(),
            69 => "the quota of the user is used up. Take a smaller file with --size.".to_owned(),
            70 => "the directory is no longer the one that was opened: it was removed or its export changed."
                .to_owned(),
            10_006 => "the server failed; its log shows why.".to_owned(),
            other => format!("the server answers with the error {other} of NFS 3."),
        };
        self.refused(&why)
    }
}

/// Offset and length of a part of a file.
type Piece = (u64, u32);

/// Skips the attributes of a file before and after a change.
fn skip_changes(results: &mut Results) -> Option<()> {
    results.skip_optional(24)?;
    results.skip_optional(ATTRIBUTES)
}

/// Asks the port mapper for the TCP port of a program; `None` if it does not answer or does not know the program.
fn find_port(
    address: SocketAddr,
    program: u32,
    caller: Caller,
    stop: &dyn Fn() -> bool,
) -> Option<u16> {
    const TCP: u32 = 6;
    let mut mapper = RpcConnection::open(address, caller).ok()?;
    let asked = [program, 3, TCP, 0];
    let asked = asked
        .iter()
        .fold(Arguments::default(), |all, number| all.number(*number));
    let reply = mapper.call(GET_PORT, &asked, stop).ok()?;
    let port = u16::try_from(Results(&reply).number()?).ok()?;
    (port != 0).then_some(port)
}

/// Returns the CPU time of this process in seconds.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
