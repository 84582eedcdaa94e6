//! Options of the verbs that measure or change: on another machine, by this program, which goes there.

use crate::context;
use crate::elsewhere::How;
use crate::global::Global;
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
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Which machine is measured or changed.
#[derive(clap::Args)]
pub struct Remote {
    /// Run on another machine over ssh; assay is uploaded for that time
    #[arg(long, value_name = "[USER@]HOST")]
    pub host: Option<String>,
    #[command(flatten)]
    pub how: How,
    #[command(flatten)]
    pub going: Going,
}

/// How the program goes there.
#[derive(clap::Args)]
pub struct Going {
    /// Upload this static assay of the same version [default: this program]
    #[arg(long, value_name = "PROGRAM")]
    remote_assay: Option<PathBuf>,
    /// Roll back there after so many seconds without contact [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(10..=3600))]
    silence: Option<u64>,
}

/// Options that are for this side, and whether they have a value.
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

/// What follows an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Nothing.
    None,
    /// One word.
    One,
    /// A word that does not begin with a hyphen, or nothing.
    Optional,
}

/// What is to be done there.
#[derive(Default)]
pub struct RemoteWork {
    /// Options that stay here, beside those of [`Remote`].
    pub cut: Vec<(&'static str, Value)>,
    /// What is said there in addition.
    pub more: Vec<OsString>,
    /// Files that go there.
    pub files: Vec<SentFile>,
    /// What is to be gone on with, and the machine that it was begun on.
    pub records: Records,
    /// No progress.
    pub quiet: bool,
}

/// A file that goes there.
pub struct SentFile {
    /// How it is named.
    pub named: NamedFile,
    /// Its name here, which may mean something.
    pub path: PathBuf,
    /// What is in it.
    pub content: Vec<u8>,
}

/// How the command line names a file.
pub enum NamedFile {
    /// By a word of its own.
    Word(OsString),
    /// By an option, whose value has this before the path, as the `@` of `@FILE`.
    Option(&'static str, &'static str),
}

/// What became of it.
pub struct Done {
    /// Exit status there.
    pub status: i32,
    /// Standard output there: text from another machine.
    pub stdout: Vec<u8>,
    /// What was measured, stored here.
    pub records: Records,
}

impl Done {
    /// The status as ours.
    pub fn status(&self) -> Status {
        match self.status {
            0 => Status::Ok,
            1 => Status::Findings,
            3 => Status::Unreadable,
            130 => Status::Interrupted,
            _ => Status::Error,
        }
    }

    /// Prints what it printed there, without control characters; JSON only when it is JSON.
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

/// An open way to a machine.
pub struct Way<'a> {
    host: String,
    link: RemoteLink<'a>,
    cancel: Cancel,
    /// Whether the link was lost while a verb was carried out.
    is_lost: bool,
}

impl Remote {
    /// Whether another machine is meant. Options that are about it alone are refused without it.
    pub fn is_meant(&self) -> anyhow::Result<bool> {
        if self.host.is_none() && (self.how.is_said() || self.going.is_said()) {
            anyhow::bail!(
                "--sudo, --deadline, --ssh-config, --remote-assay and --silence need another machine: name it with \
                 --host"
            );
        }
        Ok(self.host.is_some())
    }

    /// A session with a machine to which this program does not go. Options about that are refused.
    pub fn session(&self, host: &str) -> anyhow::Result<SshSession> {
        anyhow::ensure!(
            !self.going.is_said(),
            "--remote-assay and --silence need another machine that assay is uploaded to: name it with --host"
        );
        Ok(self.how.session(host))
    }

    /// The machine, as it was named.
    pub fn host(&self) -> &str {
        self.host.as_deref().unwrap_or_default()
    }

    /// Goes to the machine, calls `work` with the way there, and comes back.
    pub fn go<T>(
        &self,
        quiet: bool,
        work: impl FnOnce(&mut Way<'_>) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let host = self.host.as_deref().unwrap_or_default();
        go(host, &self.how, &self.going, quiet, work)
    }
}

impl Going {
    fn is_said(&self) -> bool {
        self.remote_assay.is_some() || self.silence.is_some()
    }

    /// How long nothing may be heard from the machine.
    pub fn silence(&self) -> Duration {
        self.silence.map_or(SILENCE, Duration::from_secs)
    }

    /// What goes there.
    pub fn program(&self) -> anyhow::Result<Program> {
        let path = match &self.remote_assay {
            Some(path) => path.as_path(),
            None => Path::new("/proc/self/exe"),
        };
        Program::open(path)
            .with_context(|| format!("cannot upload {} as a program", path.display()))
    }
}

/// Goes to a machine, calls `work` with the way there, and comes back.
pub fn go<T>(
    host: &str,
    how: &How,
    going: &Going,
    quiet: bool,
    work: impl FnOnce(&mut Way<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let session = how.session(host);
    let cancel = context::on_signals()?;
    let stopped = cancel.clone();
    let journey = Journey {
        session: &session,
        silence: going.silence(),
        quiet,
        stop: &|| stopped.is_cancelled(),
    };
    journey.go(&mut going.program()?, cancel, work)
}

/// What is known before the way to a machine is opened.
pub struct Journey<'a> {
    /// How to reach it.
    pub session: &'a SshSession,
    /// How long nothing may be heard from it.
    pub silence: Duration,
    /// No progress.
    pub quiet: bool,
    /// Whether to give up before it is there.
    pub stop: &'a dyn Fn() -> bool,
}

impl Journey<'_> {
    /// Brings a program to the machine, calls `work` with the way there, and comes back.
    pub fn go<T>(
        &self,
        program: &mut Program,
        cancel: Cancel,
        work: impl FnOnce(&mut Way<'_>) -> anyhow::Result<T>,
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
        let mut way = Way {
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

impl Way<'_> {
    /// This command line as it is carried out there, without what is for this side, and with the files that it names.
    pub fn words(&mut self, asked: &RemoteWork) -> anyhow::Result<Vec<OsString>> {
        let mut cut = asked.cut.clone();
        cut.extend(asked.files.iter().filter_map(|file| match file.named {
            NamedFile::Option(option, _) => Some((option, Value::One)),
            NamedFile::Word(_) => None,
        }));
        let mut words = words(std::env::args_os().skip(1), &cut);
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
        // `--format json` and `--output r.json` are for this side; the report there has the same form.
        if let Some(form @ ("json" | "markdown")) = context::asked_form() {
            let option = format!("--{form}");
            if !cut.iter().any(|(name, _)| *name == option) {
                let end = words.iter().position(|word| word == "--");
                words.insert(end.unwrap_or(words.len()), option.into());
            }
        }
        Ok(words)
    }

    /// Has a command line carried out there and speaks with it. Its exit status.
    pub fn talk(&mut self, words: &[OsString], talk: &mut Talk<'_>) -> anyhow::Result<i32> {
        self.link.talk(words, talk).map_err(unreached)
    }

    /// Whether the link was lost while a verb was carried out.
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Has words carried out there that change nothing in the store here. Returns what is printed, as JSON.
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

    /// Has this command line carried out there, and stores here what was measured there.
    pub fn carry(&mut self, asked: &RemoteWork, global: &Global) -> anyhow::Result<Done> {
        let words = self.words(asked)?;
        let uids = asked.records.runs.iter().map(|(run, _)| &run.uid);
        let uids = uids.chain(asked.records.trials.iter().map(|(trial, _)| &trial.uid));
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
                    // An error there must not read as one of here.
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
                return Err(unreached(error));
            }
        };
        Ok(Done {
            status: ran.status,
            stdout: ran.stdout,
            records,
        })
    }

    /// The machine, under the name that it was reached by: what it says of its name is its own business.
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

/// Refuses to go on with what was begun on another machine.
fn same_machine(begun: Option<&Machine>, there: Option<&Machine>) -> anyhow::Result<()> {
    match (begun, there) {
        (Some(begun), Some(there)) if begun.id != there.id => anyhow::bail!(
            "cannot continue it here: it was started on another machine, {}. Continue it there.",
            escape_line(begun.shown())
        ),
        _ => Ok(()),
    }
}

/// What was going on when the link was lost goes on no longer.
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
}

/// An error of the way to a machine: what is there could not be read, or the user did not want to wait.
pub fn unreached(error: SessionError) -> anyhow::Error {
    match error.kind {
        SessionFault::Interrupted => error.into(),
        _ => Unreadable(error.to_string()).into(),
    }
}

/// The same name, as far as it is plain; a name of its own for each.
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

/// A command line without the options of this side.
fn words(all: impl Iterator<Item = OsString>, cut: &[(&'static str, Value)]) -> Vec<OsString> {
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
        let left = words(all.into_iter().map(OsString::from), &more);
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
