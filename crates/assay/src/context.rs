//! Resources that verbs get from the process: paths, clock, random numbers and the terminal.

use crate::global::{Color, Global};
use crate::shared_options::Destination;
use crate::status::{Status, Unreadable};
use anyhow::Context as _;
use assay_changes::Journal;
use assay_host::{HostError, LiveHost, OutputFile, is_same_file};
use assay_loads::Cancel;
use assay_loads::scratch::ScratchRegistry;
use assay_measure::engine::Environment;
use assay_model::Machine;
use assay_render::Style;
use assay_render::output_escaping::escape_output;
use assay_store::Store;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::io::{BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Returns `$XDG_…_HOME/assay`, or the default below the home directory.
fn xdg(variable: &str, below_home: &str) -> anyhow::Result<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute(variable)
        .or_else(|| Some(absolute("HOME")?.join(below_home)))
        .map(|base| base.join("assay"))
        .with_context(|| format!("cannot choose a directory for records: neither {variable} nor HOME is set. Set HOME, or give --store FILE and ASSAY_STATE."))
}

/// Returns the directory of scratch files and of the journal of changes: `$ASSAY_STATE`, else `$XDG_STATE_HOME/assay`.
/// Only this user may write to it or replace it, because assay removes, reverts and executes what the directory
/// contains.
pub fn state_dir() -> anyhow::Result<PathBuf> {
    let path = match std::env::var_os("ASSAY_STATE") {
        Some(path) => path.into(),
        None => xdg("XDG_STATE_HOME", ".local/state")?,
    };
    let path =
        std::path::absolute(&path).with_context(|| format!("{}: not a path", path.display()))?;
    assay_host::directory_owner::check(&path).map_err(|error| {
        anyhow::anyhow!(
            "cannot use the state directory {}: {error}. Set ASSAY_STATE to a directory that only you can write to, \
             such as {}.",
            path.display(),
            match rustix::process::geteuid().is_root() {
                true => "/var/lib/assay/state",
                false => "~/.local/state/assay",
            }
        )
    })?;
    Ok(path)
}

/// Returns the directory of the journal of changes.
pub fn journal_dir() -> anyhow::Result<PathBuf> {
    Ok(state_dir()?.join("journal"))
}

/// The scratch registry and the journal, in which a measurement records its scratch files and its changes.
pub struct MeasurementRegistries {
    state: ScratchRegistry,
    journal: Journal,
}

impl MeasurementRegistries {
    /// Opens the scratch registry and the journal; creates missing directories.
    pub fn open() -> anyhow::Result<Self> {
        Ok(Self {
            state: ScratchRegistry::open(&state_dir()?)?,
            journal: Journal::open(&journal_dir()?)?,
        })
    }

    /// Returns the environment of a measurement: fio, the cancel flag, and these registries.
    pub fn environment<'a>(&'a self, fio: Option<&'a Path>, cancel: &'a Cancel) -> Environment<'a> {
        Environment {
            host: &LiveHost,
            fio,
            state: &self.state,
            journal: &self.journal,
            cancel,
            now: &now,
            version: env!("CARGO_PKG_VERSION"),
            command_helper: Some(describe_command_helper),
        }
    }
}

/// Returns the command that starts this program as the helper process for loads that run commands.
#[allow(
    clippy::disallowed_methods,
    reason = "the helper process is this program itself"
)]
fn describe_command_helper() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args(["dev", "command-helper"]);
    command
}

/// Returns the directory of the user's own advice: `$XDG_CONFIG_HOME/assay/advice`. `None` if
/// neither this variable nor HOME is set.
pub fn own_advice() -> Option<PathBuf> {
    Some(xdg("XDG_CONFIG_HOME", ".config").ok()?.join("advice"))
}

/// Returns the data directory: `$XDG_DATA_HOME/assay`, else below the home directory.
pub fn data_dir() -> anyhow::Result<PathBuf> {
    xdg("XDG_DATA_HOME", ".local/share")
}

/// Returns the path of the store: `--store`, else the environment variable, else the default.
pub fn store_path(global: &Global) -> anyhow::Result<PathBuf> {
    match &global.store {
        Some(path) => Ok(path.clone()),
        None => Ok(data_dir()?.join("assay.db")),
    }
}

/// Opens an existing store for reading; `None` if there is no file. Never creates a store.
pub fn existing_store(global: &Global) -> anyhow::Result<Option<Store>> {
    let path = store_path(global)?;
    Store::open_existing(&path).map_err(|error| Unreadable(error.to_string()).into())
}

/// Returns the message for a store without results.
pub fn nothing_measured(global: &Global) -> anyhow::Result<String> {
    let path = assay_store::shown(&store_path(global)?)
        .to_string_lossy()
        .escape_debug()
        .to_string();
    Ok(format!(
        "nothing has been measured yet ({path} holds no runs): `assay run quick .` does"
    ))
}

/// Opens the store; creates it if it is missing. New records get the identity of this machine.
pub fn open_store(global: &Global) -> anyhow::Result<Store> {
    let store = Store::open(&store_path(global)?)?;
    Ok(store.on(assay_facts::machine(&LiveHost)))
}

/// Fails if a record began on another machine than this one, because continuing it would mix results of both machines.
/// `what` describes the record.
pub fn begun_here(what: &str, on: Option<&Machine>) -> anyhow::Result<()> {
    let here = assay_facts::machine(&LiveHost);
    match (on, &here) {
        (Some(on), Some(here)) if on.id != here.id => anyhow::bail!(
            "cannot continue {what}: it was started on another machine, {}. Continue it there, or start a new one \
             here.",
            assay_render::text::escape_line(&on.shown_among([here].into_iter()))
        ),
        _ => Ok(()),
    }
}

/// Returns the current wall-clock time.
#[allow(
    clippy::disallowed_methods,
    reason = "the one place where the clock is read"
)]
pub fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// Returns 128 bits from the random generator of the kernel.
pub fn random() -> anyhow::Result<[u8; 16]> {
    let mut bytes = [0u8; 16];
    let flags = rustix::rand::GetRandomFlags::empty();
    rustix::rand::getrandom(&mut bytes, flags)
        .context("cannot read random numbers from the kernel")?;
    Ok(bytes)
}

/// Returns a new random id of a run: 128 bits in hexadecimal.
pub fn random_uid() -> anyhow::Result<String> {
    Ok(random()?.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns a random seed that is short enough to type.
pub fn random_seed() -> anyhow::Result<u64> {
    let [a, b, c, d, ..] = random()?;
    Ok(u64::from(u32::from_le_bytes([a, b, c, d])))
}

/// Returns colours and width for standard output, or for the file of `--output`.
pub fn style(global: &Global) -> Style {
    let mut style = style_of(global, &std::io::stdout());
    style.color &= output().destination.file.is_none() || global.color == Color::Always;
    style
}

/// Returns colours and width for standard error.
pub fn error_style(global: &Global) -> Style {
    style_of(global, &std::io::stderr())
}

fn style_of(global: &Global, to: &(impl IsTerminal + AsFd)) -> Style {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| value != OsStr::new(""));
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == OsStr::new("dumb"));
    let color = match global.color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => to.is_terminal() && !no_color && !dumb,
    };
    STYLED.fetch_or(color, Ordering::Relaxed);
    Style {
        color,
        width: width(to),
    }
}

/// Returns the width of the terminal in columns, or `$COLUMNS`, or 80. The result is at least 40.
fn width(to: &impl AsFd) -> usize {
    let terminal = rustix::termios::tcgetwinsize(to)
        .ok()
        .map(|size| usize::from(size.ws_col));
    let columns = || std::env::var("COLUMNS").ok()?.parse().ok();
    terminal
        .filter(|width| *width > 0)
        .or_else(columns)
        .unwrap_or(80)
        .max(40)
}

/// Returns the width for sentences on standard output: at most 80 columns, because longer lines are hard to read.
pub fn columns() -> usize {
    width(&std::io::stdout()).min(80)
}

/// Wraps a sentence into indented lines. The last line has no newline.
pub fn wrap(text: &str, indent: usize) -> String {
    assay_render::text::wrap_indented(text, indent, columns())
}

/// Wraps a sentence into indented lines. The last line ends with a newline.
pub fn paragraph(text: &str, indent: usize) -> String {
    assay_render::text::format_paragraph(text, indent, columns())
}

/// Reads standard input completely. Fails if the input has more than `most` bytes.
pub fn read_bounded(most: usize) -> anyhow::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let mut input = std::io::stdin().lock().take(most as u64 + 1);
    input.read_to_end(&mut bytes).context("standard input")?;
    anyhow::ensure!(
        bytes.len() <= most,
        "cannot read standard input: it is longer than {} MiB",
        most >> 20
    );
    Ok(bytes)
}

/// Whether standard output and standard error use colours.
static STYLED: AtomicBool = AtomicBool::new(false);

/// Escapes control characters, and characters that could mislead the user of a terminal.
pub fn shown(text: &str) -> Cow<'_, str> {
    escape_output(text, STYLED.load(Ordering::Relaxed))
}

/// Writes to standard error. Ignores errors such as a closed pipe.
pub fn tell(words: std::fmt::Arguments<'_>) {
    let text = words.to_string();
    let _ = std::io::stderr().lock().write_all(shown(&text).as_bytes());
}

/// Text that was printed, and its destination.
struct Output {
    destination: Destination,
    /// Text for the file of `--output` that was printed so far.
    kept: String,
    /// The open file of `--output` if the report is long and therefore written in parts; see `report_writer`.
    stream: Option<(PathBuf, OutputFile)>,
}

static OUTPUT: Mutex<Output> = Mutex::new(Output {
    destination: Destination {
        page_only: false,
        file: None,
        form: None,
    },
    kept: String::new(),
    stream: None,
});

fn output() -> MutexGuard<'static, Output> {
    OUTPUT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends all printed text to the destination of the command line.
pub fn send_output_to(destination: Destination) {
    output().destination = destination;
}

/// Returns the report format: that of `--format`, else that of the file name of `--output`.
pub fn asked_form() -> Option<&'static str> {
    output().destination.form
}

/// Discards the unfinished file of `--output` after the verb failed. An existing file stays unchanged.
pub fn discard_output() {
    let stream = output().stream.take();
    drop(stream);
}

/// Publishes the file of `--output` atomically under its final name.
pub fn publish_output() -> anyhow::Result<()> {
    if let Some((path, file)) = output().stream.take() {
        file.publish().map_err(unwritten)?;
        eprintln!("report written to {}", path.display());
        return Ok(());
    }
    let (file, text) = {
        let mut output = output();
        (
            output.destination.file.take(),
            std::mem::take(&mut output.kept),
        )
    };
    match file {
        Some(path) => write_report(&path, &text),
        None => Ok(()),
    }
}

/// Prints a report. Prints nothing if only the HTML page is requested.
pub fn print(text: &str) -> anyhow::Result<()> {
    let page_only = output().destination.page_only;
    match page_only {
        true => Ok(()),
        false => emit(text),
    }
}

/// Writes to standard output, or to the buffer of `--output`. Fails if the pipe is closed; `main` ignores this error.
fn emit(text: &str) -> anyhow::Result<()> {
    let text = shown(text);
    {
        let mut output = output();
        if let Some((path, file)) = &mut output.stream {
            let written = file.write_all(text.as_bytes());
            return written.with_context(|| format!("cannot write {}", path.display()));
        }
        if output.destination.file.is_some() {
            output.kept.push_str(&text);
            return Ok(());
        }
    }
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .context("standard output")
}

/// Writer to standard output, or to the file of `--output`.
pub struct ReportSink(());

impl Write for ReportSink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match &mut output().stream {
            Some((_, file)) => file.write(bytes),
            None => std::io::stdout().lock().write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match &mut output().stream {
            Some((_, file)) => file.flush(),
            None => std::io::stdout().lock().flush(),
        }
    }
}

/// Returns a writer for a report that is too long for memory. `main` publishes the file after the verb has succeeded.
///
/// # Errors
/// The file of `--output` cannot be created.
pub fn report_writer() -> anyhow::Result<BufWriter<ReportSink>> {
    let file = output().destination.file.take();
    if let Some(path) = file {
        check_named_once(&path)?;
        let mut file = OutputFile::create(&path).map_err(unwritten)?;
        let mut output = output();
        file.write_bytes(std::mem::take(&mut output.kept).as_bytes())
            .map_err(unwritten)?;
        output.stream = Some((path, file));
    }
    Ok(BufWriter::with_capacity(256 * 1024, ReportSink(())))
}

/// Writes a report to the file on the command line, and prints the file's path on standard error.
pub fn write_report(path: &Path, text: &str) -> anyhow::Result<()> {
    write_file(path, text)?;
    if path != Path::new("-") {
        eprintln!("report written to {}", path.display());
    }
    Ok(())
}

/// Writes a user's file atomically; `-` means standard output. Does not follow symbolic links.
pub fn write_file(path: &Path, text: &str) -> anyhow::Result<()> {
    if path == Path::new("-") {
        return emit(text);
    }
    check_named_once(path)?;
    let text = escape_output(text, false);
    let mut output = OutputFile::create(path).map_err(unwritten)?;
    match output.write_all(text.as_bytes()) {
        // A closed reader is an error that `main` ignores.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Err(error.into()),
        written => written.with_context(|| format!("cannot write {}", path.display()))?,
    }
    output.publish().map_err(unwritten)
}

/// Writes a secret to a new file that only this user can read.
pub fn write_secret(path: &Path, text: &str) -> anyhow::Result<()> {
    let written = OutputFile::create_secret(path).and_then(|mut output| {
        output.write_bytes(text.as_bytes())?;
        output.publish()
    });
    written.map_err(unwritten)
}

/// Converts a write error to an error that contains the path.
pub fn unwritten(error: HostError) -> anyhow::Error {
    anyhow::anyhow!("cannot write {error}")
}

/// Fails if a file to write is the store, or if another argument of the command line refers to the same file.
pub fn check_named_once(path: &Path) -> anyhow::Result<()> {
    if !path.is_file() {
        return Ok(());
    }
    let store = match std::env::var_os("ASSAY_STORE") {
        Some(store) => Some(PathBuf::from(store)),
        None => data_dir().ok().map(|dir| dir.join("assay.db")),
    };
    anyhow::ensure!(
        !store.is_some_and(|store| is_same_file(&store, path)),
        "cannot write to {}: it is the store of runs. Write to another file.",
        path.display()
    );
    let named = std::env::args_os()
        .skip(1)
        .filter(|word| names_file(word, path));
    anyhow::ensure!(
        named.count() < 2,
        "cannot write to {}: the command also reads this file. Write to another file.",
        path.display()
    );
    Ok(())
}

/// Returns whether an argument of the command line refers to the file: `FILE`, `--option=FILE` or `-oFILE`.
fn names_file(word: &OsStr, path: &Path) -> bool {
    let bytes = word.as_bytes();
    let value = match bytes.iter().position(|byte| *byte == b'=') {
        Some(equals) if bytes.starts_with(b"--") => &bytes[equals + 1..],
        _ if bytes.starts_with(b"-") => bytes.get(2..).unwrap_or_default(),
        _ => bytes,
    };
    is_same_file(Path::new(OsStr::from_bytes(value)), path)
}

/// Two signals within this time count as one request to stop, because timeout(1) sends its signal twice.
const ONE_WISH: Duration = Duration::from_secs(1);

/// Time limit for reverting changes after a signal. After this time assay exits, even if an operation blocks.
const LONGEST_END: Duration = Duration::from_secs(600);

/// Handles signals. The first Ctrl-C (or TERM, HUP) requests a clean stop. A second one ends assay at once; the next
/// start of assay then reverts the remaining changes.
pub fn on_signals() -> anyhow::Result<Cancel> {
    on_signals_within(LONGEST_END)
}

/// Handles signals like [`on_signals`], but exits at the latest `longest` after the first signal.
pub fn on_signals_within(longest: Duration) -> anyhow::Result<Cancel> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let flag = Arc::new(AtomicBool::new(false));
    let asked = flag.clone();
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    std::thread::spawn(move || {
        let mut first = None;
        for _ in signals.forever() {
            asked.store(true, Ordering::SeqCst);
            if first.is_none() {
                std::thread::spawn(move || end_after(longest));
            }
            if first.get_or_insert_with(crate::progress::now).elapsed() > ONE_WISH {
                signal_hook::low_level::exit(Status::Interrupted as i32);
            }
        }
    });
    Ok(Cancel::from_flag(flag))
}

fn end_after(longest: Duration) {
    std::thread::sleep(longest);
    eprintln!(
        "assay did not come to an end within {} s of the signal and ends now; the next start removes what is left",
        longest.as_secs()
    );
    signal_hook::low_level::exit(Status::Interrupted as i32);
}
