//! Options of verbs that measure or change another machine. assay uploads itself and runs there.

use crate::context;
use crate::global::Global;
use crate::machine_source::How;
use crate::progress::{LOG_EVERY, Meter};
use crate::status::{Status, Unreadable};
use anyhow::Context as _;
use assay_fleet::remote::{Program, Records, RemoteLink, SILENCE, Talk, Wishes};
use assay_fleet::session::SessionFault;
use assay_fleet::{SessionError, SshSession};
use assay_loads::Cancel;
use assay_model::run::RunState;
use assay_model::trial::TrialState;
use assay_model::{Machine, Nanos};
use assay_render::text::escape_line;
use assay_store::Store;
use assay_tune::TuneState;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The machine that is measured or changed.
#[derive(clap::Args, Clone)]
pub struct Remote {
    /// Run on another machine over ssh; assay is uploaded for that time
    #[arg(id = "host", long = "host", value_name = "[USER@]HOST")]
    hosts: Vec<String>,
    #[command(flatten)]
    pub how: How,
    #[command(flatten)]
    pub going: Going,
}

/// How the program is uploaded.
#[derive(clap::Args, Clone)]
pub struct Going {
    /// Upload this static assay of the same version [default: this program]
    #[arg(long, value_name = "PROGRAM")]
    remote_assay: Option<PathBuf>,
    /// Roll back there after so many seconds without contact [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(10..=3600))]
    silence: Option<u64>,
}

/// Options that the local assay evaluates and does not pass to the other machine, with the kind of their value.
const OURS: [(&str, Value); 13] = [
    ("--host", Value::One),
    ("--from", Value::One),
    ("--inventory", Value::One),
    ("--ansible", Value::One),
    ("--proxmox", Value::One),
    ("--sudo", Value::None),
    ("--deadline", Value::One),
    ("--ssh-config", Value::One),
    ("--remote-assay", Value::One),
    ("--silence", Value::One),
    ("--store", Value::One),
    ("--output", Value::One),
    ("--format", Value::One),
];

/// Whether an option has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// No value.
    None,
    /// The next argument.
    One,
    /// The next argument, unless it begins with a hyphen.
    Optional,
}

/// A command to run on the other machine.
#[derive(Default)]
pub struct RemoteWork {
    /// Options that are evaluated locally, in addition to the options of [`Remote`].
    pub cut: Vec<(&'static str, Value)>,
    /// Arguments that replace those of this command line.
    pub line: Option<Vec<OsString>>,
    /// Additional arguments for the remote command.
    pub more: Vec<OsString>,
    /// Files to upload before the command runs.
    pub files: Vec<SentFile>,
    /// Record to continue, with the machine on which the record began. Empty for a new record.
    pub records: Records,
    /// Whether to show no progress.
    pub quiet: bool,
}

/// A file to upload to the other machine.
pub struct SentFile {
    /// How the remote command line refers to the file.
    pub named: NamedFile,
    /// Local path. Only its file name is used on the other machine, because the directories may be confidential.
    pub path: PathBuf,
    /// Content of the file.
    pub content: Vec<u8>,
}

/// How the command line refers to a file.
pub enum NamedFile {
    /// As an argument of its own.
    Word(OsString),
    /// As the value of an option, as (option, prefix of the value such as the `@` of `@FILE`).
    Option(&'static str, &'static str),
}

/// Result of the remote command.
pub struct Done {
    /// Exit status of the remote command.
    pub status: i32,
    /// Standard output of the remote command. The text is untrusted.
    pub stdout: Vec<u8>,
    /// Records of the measurement, which were stored locally.
    pub records: Records,
}

impl Done {
    /// Converts the remote exit status.
    pub fn status(&self) -> Status {
        match self.status {
            0 => Status::Ok,
            1 => Status::Findings,
            3 => Status::Unreadable,
            130 => Status::Interrupted,
            _ => Status::Error,
        }
    }

    /// Prints the remote output without control characters. With `json`, prints it only if it is valid JSON.
    pub fn pass_on(&self, json: bool) -> anyhow::Result<()> {
        if json && !self.stdout.is_empty() {
            let document: serde_json::Value = serde_json::from_slice(&self.stdout)
                .context("the report of the other machine is not JSON")?;
            return context::print(&format!("{document:#}\n"));
        }
        let text = String::from_utf8_lossy(&self.stdout);
        let mut text = assay_render::text::escape_lines(&text);
        if !text.is_empty() {
            text.push('\n');
        }
        context::print(&text)
    }
}

/// An open connection to a machine on which the uploaded assay runs.
pub struct RemoteConnection<'a> {
    host: String,
    link: RemoteLink<'a>,
    cancel: Cancel,
    /// Whether the connection was lost while a verb ran.
    is_lost: bool,
}

impl Remote {
    /// Returns whether another machine is selected. Fails if options for another machine are given without `--host`.
    pub fn is_meant(&self) -> anyhow::Result<bool> {
        if self.hosts.is_empty() && (self.how.is_said() || self.going.is_said()) {
            anyhow::bail!(
                "--sudo, --deadline, --ssh-config, --remote-assay and --silence need another machine: name it with \
                 --host"
            );
        }
        anyhow::ensure!(
            self.hosts.len() < 2,
            "--host names one machine; only `assay tune --apply` goes to several"
        );
        Ok(!self.hosts.is_empty())
    }

    /// Returns all machines as written on the command line.
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// Creates a session without uploading the program. Fails if options for the upload are given.
    pub fn session(&self, host: &str) -> anyhow::Result<SshSession> {
        anyhow::ensure!(
            !self.going.is_said(),
            "--remote-assay and --silence need another machine that assay is uploaded to: name it with --host"
        );
        Ok(self.how.session(host))
    }

    /// Returns the machine as written on the command line.
    pub fn host(&self) -> &str {
        self.hosts.first().map_or("", String::as_str)
    }

    /// Connects to the machine, uploads the program, calls `work`, and disconnects.
    pub fn go<T>(
        &self,
        quiet: bool,
        work: impl FnOnce(&mut RemoteConnection<'_>) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        go(self.host(), &self.how, &self.going, quiet, work)
    }
}

impl Going {
    fn is_said(&self) -> bool {
        self.remote_assay.is_some() || self.silence.is_some()
    }

    /// Returns the time without contact after which the remote side rolls back.
    pub fn silence(&self) -> Duration {
        self.silence.map_or(SILENCE, Duration::from_secs)
    }

    /// Returns the program to upload.
    pub fn program(&self) -> anyhow::Result<Program> {
        let path = match &self.remote_assay {
            Some(path) => path.as_path(),
            None => Path::new("/proc/self/exe"),
        };
        Program::open(path)
            .with_context(|| format!("cannot upload {} as a program", path.display()))
    }
}

/// Connects to a machine, uploads the program, calls `work`, and disconnects.
pub fn go<T>(
    host: &str,
    how: &How,
    going: &Going,
    quiet: bool,
    work: impl FnOnce(&mut RemoteConnection<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let session = how.session(host);
    let cancel = context::on_signals()?;
    let stopped = cancel.clone();
    let journey = ConnectionParameters {
        session: &session,
        silence: going.silence(),
        quiet,
        stop: &|| stopped.is_cancelled(),
    };
    journey.go(&mut going.program()?, cancel, work)
}

/// Parameters with which the other machine is reached and left.
pub struct ConnectionParameters<'a> {
    /// ssh session with the machine.
    pub session: &'a SshSession,
    /// Time without contact after which the remote side rolls back.
    pub silence: Duration,
    /// Whether to show no progress.
    pub quiet: bool,
    /// Returns true to give up. Called repeatedly until the connection is ready.
    pub stop: &'a dyn Fn() -> bool,
}

impl ConnectionParameters<'_> {
    /// Uploads the program, calls `work`, and disconnects.
    pub fn go<T>(
        &self,
        program: &mut Program,
        cancel: Cancel,
        work: impl FnOnce(&mut RemoteConnection<'_>) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let host = &self.session.host;
        let mut meter = Meter::new(self.quiet, Nanos::from(self.session.deadline));
        let opened = RemoteLink::open(
            self.session,
            program,
            env!("CARGO_PKG_VERSION"),
            self.silence,
            &mut |passed, share| {
                if passed >= Duration::from_secs(2)
                    && (passed < LOG_EVERY || passed.as_secs() % 10 == 0)
                {
                    if share > 0.05 {
                        meter.expect(Nanos::from(passed.mul_f64(1.0 / share - 1.0)));
                    }
                    let share = (share * 100.0).floor();
                    meter.say(format!(
                        "assay goes to {}: {share:.0} % there",
                        escape_line(host)
                    ));
                }
                (self.stop)()
            },
        );
        meter.end();
        let mut way = RemoteConnection {
            host: host.clone(),
            link: opened.map_err(unreached)?,
            cancel,
            is_lost: false,
        };
        let done = work(&mut way);
        way.link.close();
        done
    }
}

impl RemoteConnection<'_> {
    /// Returns this command line as the other machine must run it: without local options, and with the remote paths of
    /// uploaded files. Uploads these files.
    pub fn words(&mut self, asked: &RemoteWork) -> anyhow::Result<Vec<OsString>> {
        let mut cut = asked.cut.clone();
        cut.extend(asked.files.iter().filter_map(|file| match file.named {
            NamedFile::Option(option, _) => Some((option, Value::One)),
            NamedFile::Word(_) => None,
        }));
        let mut words = match &asked.line {
            Some(line) => without_options(line.iter().cloned(), &cut),
            None => without_options(std::env::args_os().skip(1), &cut),
        };
        for (number, file) in asked.files.iter().enumerate() {
            let name = name_there(number, &file.path);
            self.link.put(&name, &file.content).map_err(unreached)?;
            let place = self.link.place(&name);
            match &file.named {
                NamedFile::Option(option, before) => {
                    words.push(format!("{option}={before}{place}").into())
                }
                NamedFile::Word(named) => {
                    for word in words.iter_mut().filter(|word| *word == named) {
                        *word = place.clone().into();
                    }
                }
            }
        }
        words.extend(asked.more.iter().cloned());
        // `--format json` and `--output r.json` are local; the remote report has the same format.
        if let Some(form @ ("json" | "markdown")) = context::asked_form() {
            let option = format!("--{form}");
            if !cut.iter().any(|(name, _)| *name == option) {
                let end = words.iter().position(|word| word == "--");
                words.insert(end.unwrap_or(words.len()), option.into());
            }
        }
        Ok(words)
    }

    /// Runs a command on the other machine and exchanges messages with it. Returns its exit status.
    pub fn talk(&mut self, words: &[OsString], talk: &mut Talk<'_>) -> anyhow::Result<i32> {
        self.link.talk(words, talk).map_err(unreached)
    }

    /// Returns whether the connection was lost while a verb ran.
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Runs a read-only command on the other machine. Returns its output as JSON.
    pub fn read_json(&mut self, words: &[&str]) -> anyhow::Result<serde_json::Value> {
        let cancel = self.cancel.clone();
        let mut wishes = Wishes {
            stop: &|| cancel.is_cancelled(),
            say: &mut |_| {},
            measured: &mut |_| {},
        };
        let ran = self.link.run(words, &mut wishes).map_err(unreached)?;
        serde_json::from_slice(&ran.stdout)
            .with_context(|| format!("{}: its answer is not JSON", escape_line(&self.host)))
    }

    /// Runs this command line on the other machine, and stores the results locally.
    pub fn carry(&mut self, asked: &RemoteWork, global: &Global) -> anyhow::Result<Done> {
        let words = self.words(asked)?;
        let uids = asked.records.runs.iter().map(|(run, _)| &run.uid);
        let uids = uids.chain(asked.records.trials.iter().map(|(trial, _)| &trial.uid));
        let uids = uids.chain(asked.records.tunes.iter().map(|(_, tune)| &tune.uid));
        let ours: Vec<String> = uids.cloned().collect();
        if !asked.records.is_empty() {
            let there = self.link.records().map_err(unreached)?.machine;
            same_machine(asked.records.machine.as_ref(), there.as_ref())?;
            self.link.put_records(&asked.records).map_err(unreached)?;
        }
        let mut last = Records::default();
        let (cancel, host) = (self.cancel.clone(), escape_line(&self.host));
        let ran = self.link.run(
            &words,
            &mut Wishes {
                stop: &|| cancel.is_cancelled(),
                say: &mut |line| match line.strip_prefix("assay: ") {
                    // A remote error must be distinguishable from a local one.
                    Some(error) => eprintln!("assay: {host}: {error}"),
                    None if asked.quiet => {}
                    None => eprintln!("{line}"),
                },
                measured: &mut |records| last = records,
            },
        );
        let fetched = match ran.is_ok() {
            true => self.link.records(),
            false => Ok(std::mem::take(&mut last)),
        };
        let mut records = fetched.map_err(unreached)?;
        let machine = self.machine(records.machine.take());
        if !records.is_empty() {
            if ran.is_err() {
                cut_off(&mut records);
            }
            let path = context::store_path(global)?;
            let mut store = Store::open(&path)?.on(machine.clone());
            records
                .keep(&mut store, &ours)
                .with_context(|| escape_line(&self.host))?;
        }
        records.machine = machine;
        let ran = match ran {
            Ok(ran) => ran,
            Err(error) => {
                self.is_lost = matches!(
                    error.kind,
                    SessionFault::Unreachable | SessionFault::Deadline
                );
                for (run, samples) in &records.runs {
                    eprintln!(
                        "run {} is kept as far as it was seen: {} samples",
                        run.id,
                        samples.len()
                    );
                }
                for (trial, slots) in &records.trials {
                    eprintln!(
                        "trial {} is kept as far as it was seen: {} slots",
                        trial.id,
                        slots.len()
                    );
                }
                for (id, tune) in &records.tunes {
                    eprintln!(
                        "session {id} is kept as far as it was seen: {} steps",
                        tune.seen.len()
                    );
                }
                return Err(unreached(error));
            }
        };
        Ok(Done {
            status: ran.status,
            stdout: ran.stdout,
            records,
        })
    }

    /// Replaces the name of the machine by the name under which it was reached. The machine's own report of its name is
    /// untrusted.
    fn machine(&self, told: Option<Machine>) -> Option<Machine> {
        let id = told.filter(|machine| Machine::is_id(&machine.id))?.id;
        let name = self.host.rsplit('@').next().unwrap_or(&self.host);
        Some(Machine {
            id,
            name: Some(escape_line(name)),
        })
    }
}

impl How {
    fn is_said(&self) -> bool {
        self.sudo || self.deadline.is_some() || self.ssh_config.is_some()
    }
}

/// Fails if a record that is to be continued began on another machine.
fn same_machine(begun: Option<&Machine>, there: Option<&Machine>) -> anyhow::Result<()> {
    match (begun, there) {
        (Some(begun), Some(there)) if begun.id != there.id => anyhow::bail!(
            "cannot continue it here: it was started on another machine, {}. Continue it there.",
            escape_line(begun.shown())
        ),
        _ => Ok(()),
    }
}

/// Marks records as stopped that were still running when the connection was lost.
fn cut_off(records: &mut Records) {
    for (run, _) in &mut records.runs {
        if run.state == RunState::Running {
            run.state = RunState::Interrupted;
        }
    }
    for (trial, _) in &mut records.trials {
        if trial.state == TrialState::Running {
            trial.state = TrialState::Stopped;
        }
    }
    for (_, tune) in &mut records.tunes {
        if tune.state == TuneState::Running {
            tune.state = TuneState::Stopped;
        }
    }
}

/// Converts a connection error to `Unreadable`, or to an interruption if the user stopped the connection.
pub fn unreached(error: SessionError) -> anyhow::Error {
    match error.kind {
        SessionFault::Interrupted => error.into(),
        _ => Unreadable(error.to_string()).into(),
    }
}

/// Returns the remote name of an uploaded file: the local file name, with the number in front except for the first
/// file. If the local name has unusual characters, returns only the number.
fn name_there(number: usize, path: &Path) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let plain = name.len() < 200
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(plain);
    match (plain, number) {
        (true, 0) => name.to_owned(),
        (true, _) => format!("{number}-{name}"),
        (false, _) => number.to_string(),
    }
}

/// Returns a command line without the options of `cut`.
pub fn without_options(
    all: impl Iterator<Item = OsString>,
    cut: &[(&'static str, Value)],
) -> Vec<OsString> {
    let mut left = Vec::new();
    let mut all = all.peekable();
    while let Some(word) = all.next() {
        if word == "--" {
            left.push(word);
            left.extend(all);
            break;
        }
        let bytes = word.as_encoded_bytes();
        let name = bytes.split(|byte| *byte == b'=').next().unwrap_or(bytes);
        let known = OURS.iter().chain(cut);
        let found = known.clone().find(|(option, _)| option.as_bytes() == name);
        let Some((_, value)) = found else {
            left.push(word);
            continue;
        };
        let inside = name.len() < bytes.len();
        let hyphen = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
        match value {
            Value::One if !inside => drop(all.next()),
            Value::Optional if !inside && !all.peek().is_some_and(hyphen) => drop(all.next()),
            _ => {}
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(line: &str) -> String {
        let all = shell_words::split(line).unwrap();
        let more = [("--html", Value::One), ("--resume", Value::Optional)];
        let left = without_options(all.into_iter().map(OsString::from), &more);
        let left: Vec<_> = left.iter().map(|word| word.to_str().unwrap()).collect();
        left.join(" ")
    }

    #[test]
    fn what_is_for_this_side_does_not_go_there() {
        for (line, there) in [
            ("run quick /srv --host root@box", "run quick /srv"),
            (
                "run --host=box --sudo quick /srv --runtime 2s",
                "run quick /srv --runtime 2s",
            ),
            (
                "run /srv --html r.html --json --silence 20",
                "run /srv --json",
            ),
            ("run --host box --resume", "run"),
            ("run --resume --host box", "run"),
            ("run --resume 3 --host box --quiet", "run --quiet"),
            ("run --host box -- --host", "run -- --host"),
            (
                "--store x.db trial noatime /srv --yes --host b",
                "trial noatime /srv --yes",
            ),
        ] {
            assert_eq!(cut(line), there);
        }
    }
}
