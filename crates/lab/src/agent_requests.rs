//! Requests to a guest: run a command, copy files into or out of the guest, examine a path.

use crate::channel::Channel;
use crate::error::LabError;
use crate::guest::Guest;
use crate::plug::{GUEST_NOTICES_WITHIN, PAUSE};
use assay_host::held::{Access, Held};
use assay_host::{CommandOutput, Limits, MAX_BYTES, OutputFile};
use assay_loads::fio::{self, FioEnd};
use assay_model::Nanos;
use assay_protocol::{AgentRequest, CHUNK, PathLook, Reply, Sync};
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// Maximum time that fio needs for its start and end in an emulated guest, in addition to its jobs.
pub const FIO_START_AND_END: Duration = Duration::from_secs(120);

/// Time that the guest gets beyond the limit of a command, so that it can still report that it killed the command. Also
/// the time limit of all other requests, because an emulated guest on a busy machine is slow.
const GRACE: Duration = Duration::from_secs(60);

/// Time without any message after which a guest counts as hung. While a command runs, the agent sends a message every
/// five seconds.
const SILENCE: Duration = Duration::from_secs(120);

/// A piece of output of a running command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandOutputPart<'a> {
    /// A part of standard output.
    Out(&'a [u8]),
    /// A part of standard error.
    Err(&'a [u8]),
}

impl Guest {
    /// Runs a command to its end, without a shell and without standard input, and with `LC_ALL=C`. At the time limit,
    /// kills the command with its children. A nonzero exit status is not an error.
    ///
    /// # Errors
    /// The command does not exist, takes too long or prints too much, or the guest has ended.
    pub fn run(&self, argv: &[&OsStr], limits: Limits) -> Result<CommandOutput, LabError> {
        let mut found = CommandOutput::default();
        let mut much = false;
        found.status = self.stream(argv, Some(limits.timeout), None, &mut |output| {
            let (bytes, all) = match output {
                CommandOutputPart::Out(bytes) => (bytes, &mut found.stdout),
                CommandOutputPart::Err(bytes) => (bytes, &mut found.stderr),
            };
            much |= all.len() + bytes.len() > MAX_BYTES;
            if !much {
                all.extend_from_slice(bytes);
            }
        })?;
        match much {
            true => Err(LabError::TooMuch {
                what: join_arguments(argv),
                limit: MAX_BYTES,
            }),
            false => Ok(found),
        }
    }

    /// Runs a command and passes on its output immediately. `input` becomes its standard input. Returns the exit
    /// status.
    ///
    /// # Errors
    /// The command does not exist or takes too long, or the guest has ended.
    pub fn stream(
        &self,
        argv: &[&OsStr],
        limit: Option<Duration>,
        input: Option<Box<dyn Read + Send>>,
        output: &mut dyn FnMut(CommandOutputPart<'_>),
    ) -> Result<i32, LabError> {
        let watch = || self.watch();
        let mut channel = self.channel()?;
        let request = AgentRequest::Run {
            timeout_ms: limit.map_or(0, |limit| {
                u64::try_from(limit.as_millis()).unwrap_or(u64::MAX).max(1)
            }),
            input: input.is_some(),
            argv: argv.iter().map(|word| word.as_bytes().to_vec()).collect(),
        };
        channel.begin(&request, &watch)?;
        let feeder = input.map(|input| feed(&channel, input)).transpose()?;
        let deadline = limit.map(|limit| Instant::now() + limit + GRACE);
        let ended = loop {
            let silent = Instant::now() + SILENCE;
            let until = deadline.map_or(silent, |deadline| deadline.min(silent));
            let Some(reply) = channel.receive(Some(until), &watch)? else {
                let late = limit.filter(|_| until < silent);
                return Err(self.silent(late.map_or(SILENCE, |limit| limit + GRACE)));
            };
            match reply {
                Reply::Out(bytes) => output(CommandOutputPart::Out(&bytes)),
                Reply::Err(bytes) => output(CommandOutputPart::Err(&bytes)),
                Reply::Exit(status) => break Ok(status),
                Reply::TimedOut => {
                    break Err(LabError::Timeout {
                        argv: join_arguments(argv),
                        limit: limit.unwrap_or_default(),
                    });
                }
                Reply::NoCommand => {
                    let name = argv.first().copied().unwrap_or_default();
                    break Err(LabError::NoCommand(name.to_string_lossy().into_owned()));
                }
                Reply::Failed { errno, reason } => {
                    let name = argv.first().copied().unwrap_or_default();
                    break Err(refused_request(Path::new(name), errno, &reason));
                }
                Reply::Ready => {
                    if let Some(feeder) = &feeder {
                        let _ = feeder.send(());
                    }
                }
                _ => {}
            }
        };
        // A thread that still reads our standard input would write to the channel later.
        if feeder.is_none() {
            self.put_back(channel);
        }
        ended
    }

    /// Runs an fio job file and returns its JSON+ output.
    ///
    /// # Errors
    /// As [`Guest::push_bytes`] and [`Guest::run`].
    pub fn fio(&self, job: &str, timeout: Duration) -> Result<CommandOutput, LabError> {
        const JOB: &str = "/run/assay-job.fio";
        self.push_bytes(job.as_bytes(), Path::new(JOB), 0o600)?;
        let argv = ["fio", "--output-format=json+", "--eta=never", JOB];
        self.run(&argv.map(OsStr::new), Limits { timeout })
    }

    /// Like [`Guest::fio`], but returns the same type as the host's fio runner. If fio runs longer than `limit`, the
    /// returned output contains this fact. The caller measures the time.
    ///
    /// # Errors
    /// As [`Guest::fio`].
    pub fn load(&self, job: &str, limit: Duration) -> Result<fio::FioOutput, LabError> {
        let (json, stderr, ended) = match self.fio(job, limit) {
            Ok(output) => (
                output.stdout,
                String::from_utf8_lossy(&output.stderr).into_owned(),
                FioEnd::Exited(output.status),
            ),
            Err(LabError::Timeout { .. }) => (Vec::new(), String::new(), FioEnd::TimedOut),
            Err(error) => return Err(error),
        };
        Ok(fio::FioOutput {
            json,
            stderr,
            ended,
            wall: Nanos(0),
            cpu: None,
            series: Vec::new(),
        })
    }

    /// Writes a file in the guest and replaces an existing one.
    ///
    /// # Errors
    /// The guest's kernel returns an error, or the guest has ended.
    pub fn push_bytes(&self, mut bytes: &[u8], to: &Path, mode: u32) -> Result<(), LabError> {
        self.put(&mut bytes, to, mode)
    }

    /// Returns the device node of each disk, in the order of `names`. Finds disks by serial number, because the
    /// kernel's device numbers vary. Waits until the guest's own disks exist, because a kernel detects disks behind a
    /// controller one after the other while programs already run.
    ///
    /// # Errors
    /// A disk is missing, or the guest has ended.
    pub fn devices(&self, names: &[&str]) -> Result<Vec<PathBuf>, LabError> {
        let deadline = Instant::now() + GUEST_NOTICES_WITHIN;
        loop {
            let found = self.devices_now(names);
            let Err(LabError::Disk { name, .. }) = &found else {
                return found;
            };
            let entry = self.place.entered();
            let disks = &entry.as_ref().unwrap_or(&self.entry).disks;
            let given = disks.iter().any(|(given, _)| given == name);
            if !given || self.cancel.is_cancelled() || Instant::now() >= deadline {
                return found;
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn devices_now(&self, names: &[&str]) -> Result<Vec<PathBuf>, LabError> {
        let argv = [
            "lsblk",
            "--nodeps",
            "--noheadings",
            "--raw",
            "--output=NAME,SERIAL",
        ];
        let output = self.run(&argv.map(OsStr::new), Limits { timeout: GRACE })?;
        let text = output.text();
        let known: Vec<_> = text
            .lines()
            .filter_map(|line| line.split_once(' '))
            .collect();
        let find = |name: &&str| {
            let found = known.iter().find(|(_, serial)| serial.trim() == *name);
            found
                .map(|(device, _)| Path::new("/dev").join(device))
                .ok_or_else(|| LabError::Disk {
                    name: (*name).to_owned(),
                    source: format!("the guest does not see it; it sees\n{text}").into(),
                })
        };
        names.iter().map(find).collect()
    }

    /// Copies a file with its permissions into the guest and replaces an existing one.
    ///
    /// # Errors
    /// The file cannot be read, the guest's kernel returns an error, or the guest has ended.
    pub fn push(&self, from: &Path, to: &Path) -> Result<(), LabError> {
        let file = Held::follow(from, Access::Read)?;
        let mut file = file.file();
        let found = file.metadata().map_err(LabError::io(from))?;
        self.put(&mut file, to, found.permissions().mode())
    }

    fn put(&self, from: &mut dyn Read, to: &Path, mode: u32) -> Result<(), LabError> {
        let watch = || self.watch();
        let mut channel = self.channel()?;
        let path = to.as_os_str().as_bytes().to_vec();
        channel.begin(&AgentRequest::Put { mode, path }, &watch)?;
        let mut buffer = vec![0; CHUNK];
        loop {
            let count = from.read(&mut buffer).map_err(LabError::io(to))?;
            channel.send(&AgentRequest::Data(buffer[..count].to_vec()), &watch)?;
            if count == 0 {
                break;
            }
        }
        let answer = channel.receive(Some(Instant::now() + GRACE), &watch)?;
        self.put_back(channel);
        match answer {
            Some(Reply::Done(_)) => Ok(()),
            Some(Reply::Failed { errno, reason }) => Err(refused_request(to, errno, &reason)),
            _ => Err(self.silent(GRACE)),
        }
    }

    /// Copies a file with its permissions out of the guest. The file appears completely or not at all, and replaces an
    /// existing one.
    ///
    /// # Errors
    /// The guest's kernel returns an error, the file cannot be written, or the guest has ended.
    pub fn pull(&self, from: &Path, to: &Path) -> Result<(), LabError> {
        let output = OutputFile::create_private(to)?;
        let mut file = output.file();
        let mut failed = None;
        let numbers = self.look(PathLook::Get, from, &mut |piece| {
            if let Err(error) = file.write_all(piece) {
                failed.get_or_insert(error);
            }
        })?;
        if let Some(error) = failed {
            return Err(LabError::io(to)(error));
        }
        let mode = numbers.first().map_or(0o600, |mode| mode & 0o777);
        let mode = u32::try_from(mode).unwrap_or(0o600);
        output.set_mode(mode)?;
        Ok(output.publish()?)
    }

    /// Writes numbered records to a file or device in the guest. Calls `acknowledged` with the number of durable
    /// records, until the callback returns false.
    ///
    /// # Errors
    /// The guest's kernel returns an error, or the guest has ended.
    pub fn log(
        &self,
        path: &Path,
        sync: Sync,
        seed: u64,
        acknowledged: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(), LabError> {
        self.log_records(path, sync, seed, 0..u64::MAX, acknowledged)
    }

    /// Like [`Guest::log`], but writes only the records with the given numbers, each at its own position.
    ///
    /// # Errors
    /// The guest's kernel returns an error, or the guest has ended.
    pub fn log_records(
        &self,
        path: &Path,
        sync: Sync,
        seed: u64,
        records: Range<u64>,
        acknowledged: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(), LabError> {
        let watch = || self.watch();
        let mut channel = self.channel()?;
        let request = AgentRequest::Log {
            sync,
            first: records.start,
            records: records.end.saturating_sub(records.start),
            seed,
            path: path.as_os_str().as_bytes().to_vec(),
        };
        channel.begin(&request, &watch)?;
        let ended = loop {
            let Some(reply) = channel.receive(Some(Instant::now() + GRACE), &watch)? else {
                return Err(self.silent(GRACE));
            };
            match reply {
                Reply::Logged(count) if acknowledged(count) => {}
                Reply::Failed { errno, reason } => {
                    break Err(refused_request(path, errno, &reason));
                }
                _ => break Ok(()),
            }
        };
        channel.send(&AgentRequest::Kill, &watch)?;
        self.put_back(channel);
        ended
    }

    /// Examines a path in the guest. Passes on the received pieces as they arrive, and returns the numbers of the final
    /// reply.
    pub(crate) fn look(
        &self,
        look: PathLook,
        path: &Path,
        piece: &mut dyn FnMut(&[u8]),
    ) -> Result<Vec<u64>, LabError> {
        let watch = || self.watch();
        let mut channel = self.channel()?;
        let bytes = path.as_os_str().as_bytes().to_vec();
        channel.begin(&AgentRequest::Look(look, bytes), &watch)?;
        let answer = loop {
            let Some(reply) = channel.receive(Some(Instant::now() + GRACE), &watch)? else {
                return Err(self.silent(GRACE));
            };
            match reply {
                Reply::Piece(bytes) => piece(&bytes),
                Reply::Done(numbers) => break Ok(numbers),
                Reply::Failed { errno, reason } => {
                    break Err(refused_request(path, errno, &reason));
                }
                _ => {}
            }
        };
        self.put_back(channel);
        answer
    }
}

/// Sends `input` piece by piece. Each piece is sent after the guest has accepted the previous one.
fn feed(channel: &Channel, mut input: Box<dyn Read + Send>) -> Result<Sender<()>, LabError> {
    let fail = LabError::io(Path::new("channel to the guest"));
    let (mut line, request) = channel.writer().map_err(fail)?;
    let (sender, taken) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut buffer = vec![0; CHUNK];
        loop {
            let count = input.read(&mut buffer).unwrap_or(0);
            let frame = AgentRequest::Input(buffer[..count].to_vec()).frame(request);
            if line.write_all(&frame.encode()).is_err() || count == 0 || taken.recv().is_err() {
                return;
            }
        }
    });
    Ok(sender)
}

fn refused_request(path: &Path, errno: u32, reason: &[u8]) -> LabError {
    let reason = String::from_utf8_lossy(reason);
    LabError::Refused {
        path: PathBuf::from(path),
        errno: i32::try_from(errno).unwrap_or(0),
        reason: match reason.find(" (os error") {
            Some(end) => reason[..end].to_owned(),
            None => reason.into_owned(),
        },
    }
}

fn join_arguments(argv: &[&OsStr]) -> String {
    let words: Vec<_> = argv.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}
