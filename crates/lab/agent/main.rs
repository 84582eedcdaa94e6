//! The agent inside a guest: executes assay's requests, which arrive over virtio-serial ports.
//!
//! Each port has its own thread, and one request at a time. If assay disconnects, everything that still runs for its
//! port is killed. The agent is linked statically and uses only the standard library, so that it runs in any guest.

mod files;
mod log;
mod process;
#[path = "../src/record.rs"]
#[allow(dead_code, reason = "shared with assay")]
mod record;
#[path = "../../protocol/src/lib.rs"]
#[allow(dead_code, reason = "shared with assay")]
mod protocol;

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use protocol::{FrameDecoder, Frame, Reply, AgentRequest};

/// Sends the replies to one request.
#[derive(Clone)]
pub struct Answer {
    line: Arc<Mutex<File>>,
    request: u64,
}

impl Answer {
    /// Sends a reply. Errors are ignored, because without a connection nobody could receive them.
    pub fn send(&self, reply: &Reply) {
        let bytes = reply.frame(self.request).encode();
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = line.write_all(&bytes);
    }

    /// Sends the error that the kernel returned.
    pub fn refuse(&self, error: &std::io::Error) {
        self.send(&Reply::Failed {
            errno: error.raw_os_error().map_or(0, i32::unsigned_abs),
            reason: error.to_string().into_bytes(),
        });
    }
}

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    // `agent SOCKET` serves one connection and ends: how it is tested outside a guest.
    if let Some(path) = arguments.next() {
        match UnixStream::connect(Path::new(&path)) {
            Ok(stream) => serve(File::from(OwnedFd::from(stream)), true),
            Err(error) => eprintln!("{}: {error}", path.display()),
        }
        return;
    }
    leave_the_service();
    stay_in_memory();
    let ports: Vec<_> = (0..protocol::PORTS)
        .map(|number| {
            std::thread::spawn(move || {
                serve(open(&format!("{}{number}", protocol::PORT_NAME)), false);
            })
        })
        .collect();
    for port in ports {
        let _ = port.join();
    }
}

/// Moves the agent to a control group that systemd does not manage. Its commands run in this group too. Otherwise
/// systemd would stop the whole service when the kernel kills one of its processes for lack of memory
/// (`OOMPolicy=stop`, systemd.service(5)).
fn leave_the_service() {
    let group = Path::new("/sys/fs/cgroup/assay");
    let _ = std::fs::create_dir(group);
    let _ = std::fs::write(group.join("cgroup.procs"), std::process::id().to_string());
}

/// Locks the agent's memory, so that it still answers in a guest that is short of memory. Such a guest evicts the pages
/// of programs again and again. Pages are locked when they are first used.
fn stay_in_memory() {
    const CURRENT: i32 = 1;
    const FUTURE: i32 = 2;
    const ON_FAULT: i32 = 4;
    unsafe extern "C" {
        fn mlockall(flags: i32) -> i32;
    }
    // SAFETY: mlockall(2) takes a number and touches no memory of ours.
    unsafe { mlockall(CURRENT | FUTURE | ON_FAULT) };
}

/// Opens the port with this name. Waits until the kernel has created it.
fn open(name: &str) -> File {
    loop {
        let opened = find(name).and_then(|path| File::options().read(true).write(true).open(path).ok());
        match opened {
            Some(port) => return port,
            None => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

/// Returns the device node (`/dev/vportNpM`) of a port by the name that QEMU gave it. Works without udev's links.
fn find(name: &str) -> Option<PathBuf> {
    let ports = std::fs::read_dir("/sys/class/virtio-ports").ok()?;
    ports.flatten().find_map(|port| {
        let found = std::fs::read_to_string(port.path().join("name")).ok()?;
        (found.trim_end() == name).then(|| Path::new("/dev").join(port.file_name()))
    })
}

/// Executes requests from a port. A port in a guest has no end: an empty read means that assay is not connected.
fn serve(mut port: File, once: bool) {
    let Ok(writer) = port.try_clone() else { return };
    let line = Arc::new(Mutex::new(writer));
    let mut state = State::default();
    let mut decoder = FrameDecoder::default();
    let mut buffer = vec![0; 2 * protocol::CHUNK];
    loop {
        match port.read(&mut buffer) {
            Ok(0) => {
                state.stop();
                decoder = FrameDecoder::default();
                if once {
                    return;
                }
                std::thread::sleep(Duration::from_millis(200));
            }
            Ok(count) => {
                decoder.push(&buffer[..count]);
                while let Some(frame) = decoder.next() {
                    state.handle(&frame, &line);
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) if once => return,
            Err(_) => std::thread::sleep(Duration::from_millis(200)),
        }
    }
}

/// What runs on a port.
#[derive(Default)]
struct State {
    running: Option<process::Running>,
    log: Option<log::Stop>,
    put: Option<File>,
}

impl State {
    fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.kill();
        }
        // Dropping the handle asks the log to stop.
        self.log = None;
        self.put = None;
    }

    fn handle(&mut self, frame: &Frame, line: &Arc<Mutex<File>>) {
        let Some(request) = AgentRequest::read(frame) else {
            return;
        };
        let answer = Answer {
            line: Arc::clone(line),
            request: frame.request,
        };
        match request {
            AgentRequest::Hello => {
                self.stop();
                answer.send(&Reply::Hello);
            }
            AgentRequest::Run {
                timeout_ms,
                input,
                argv,
            } => {
                self.stop();
                let limit = (timeout_ms > 0).then(|| Duration::from_millis(timeout_ms));
                self.running = process::start(argv, limit, input, answer);
            }
            AgentRequest::Input(bytes) => {
                if let Some(running) = &self.running {
                    running.input(bytes);
                }
            }
            AgentRequest::Kill => self.stop(),
            AgentRequest::Interrupt => {
                if let Some(running) = &self.running {
                    running.interrupt();
                }
            }
            // A port of a guest tells by itself when nobody is connected.
            AgentRequest::Alive => {}
            AgentRequest::Look(look, path) => files::look(look, &path, &answer),
            AgentRequest::Put { mode, path } => match files::create(&path, mode) {
                Ok(file) => self.put = Some(file),
                Err(error) => answer.refuse(&error),
            },
            AgentRequest::Data(bytes) => self.data(&bytes, &answer),
            AgentRequest::Log {
                sync,
                first,
                records,
                seed,
                path,
            } => {
                self.stop();
                let numbers = first..first.saturating_add(records);
                self.log = Some(log::start(sync, numbers, seed, &path, answer));
            }
        }
    }

    /// Writes a piece of the file that is being copied into the guest. After an error, the remaining pieces are
    /// ignored.
    fn data(&mut self, bytes: &[u8], answer: &Answer) {
        let Some(file) = &mut self.put else { return };
        if bytes.is_empty() {
            self.put = None;
            answer.send(&Reply::Done(Vec::new()));
        } else if let Err(error) = file.write_all(bytes) {
            self.put = None;
            answer.refuse(&error);
        }
    }
}
