//! `assay fleet watch`: checks machines regularly and notifies the user about new and ended findings.

mod install;
mod notification;
mod units;

use super::advice::Own;
use super::check::{Threshold, accept_usual};
use super::fleet::follow::{Followed, SurveyMethod, follow};
use super::fleet::{Known, Which, ask};
use crate::context::{self, print};
use crate::global::Global;
use crate::machine_source::How;
use crate::status::Status;
use anyhow::Context as _;
use assay_facts::CollectOptions;
use assay_fleet::Outcome;
use assay_fleet::alarms::{Alarm, Alarms, MachineState, News, Over};
use assay_host::{LiveHost, lockfile};
use assay_model::SCHEMA_VERSION;
use assay_model::finding::{Checked, Severity};
use assay_render::Style;
use assay_render::text::{escape_line, wrap_indented};
use jiff::Timestamp;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  assay fleet watch now                        check this machine, and report what is new
  assay fleet watch now web db1                a group and a machine, over ssh
  assay fleet watch now all --mail ops@example.org
                                               and send a mail when there is news
  assay fleet watch now all -- /usr/local/bin/page-me
                                               or start a command with JSON on standard input
  assay fleet watch install --every 1h web -- /usr/local/bin/page-me
                                               do so every hour: a timer of systemd
  assay fleet watch list                       the alarms in effect, and since when
  assay fleet watch remove                     remove the timer

An alarm is told when it is raised, when it gets worse, and when it is over; not every hour. What cannot be read
is neither new nor over. A machine that is not reached twice in a row is an alarm of its own. What you
accept (accept.toml, see `assay check --help`) is none. When the message does not get out, it is
tried again the next time.

Exit status of `now` and `list`: 0 no alarm stands, 1 one does, 2 error, 3 a machine was not reached.";

/// Check machines regularly, and raise an alarm for new findings
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Check once and report what is new
    Now(Box<Now>),
    /// Check regularly: write a systemd service and timer
    Install(Box<install::Install>),
    /// Remove what `install` wrote
    Remove(install::Remove),
    /// List the alarms in effect
    List {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Delete the alarms of a machine that is no longer watched
    Forget {
        /// Name of the machine
        #[arg(value_name = "MACHINE")]
        machine: String,
    },
}

#[derive(clap::Args)]
struct Now {
    #[command(flatten)]
    what: What,
    /// Print one JSON object: new, ended and current alarms
    #[arg(long)]
    json: bool,
    /// No progress on standard error
    #[arg(long, short)]
    quiet: bool,
}

/// The watched machines, and the recipients.
#[derive(clap::Args)]
struct What {
    /// Groups, machines and patterns of names [default: this machine]
    #[arg(value_name = "GROUP|MACHINE")]
    names: Vec<String>,
    #[command(flatten)]
    known: Known,
    #[command(flatten)]
    how: How,
    #[command(flatten)]
    own: Own,
    /// Raise alarms from: info, low, medium, high or critical
    #[arg(long, value_enum, default_value_t = Threshold::Medium, value_name = "SEVERITY", hide_possible_values = true)]
    at_least: Threshold,
    /// Mail new and ended alarms to this address with sendmail
    #[arg(long, value_name = "ADDRESS", value_parser = notification::address)]
    mail: Option<String>,
    /// Command that reads new and ended alarms as JSON on standard input
    #[arg(value_name = "COMMAND", last = true)]
    command: Vec<OsString>,
}

/// Document of `assay fleet watch now`: alarms raised and ended since the last message, and all alarms in effect.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub(super) struct Document<'a> {
    schema: u32,
    /// Time when the machines were checked.
    at: Timestamp,
    /// Alarms raised since the last message.
    raised: &'a [Alarm],
    /// Alarms that ended since the last message.
    over: &'a [Over],
    /// All alarms that are in effect now.
    standing: &'a [Alarm],
}

/// Runs `assay fleet watch`, and returns the exit status.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    match &args.action {
        Action::Now(now) => self::now(now, global),
        Action::Install(args) => args.run(),
        Action::Remove(args) => args.run(),
        Action::List { json } => list(*json, global),
        Action::Forget { machine } => forget(machine),
    }
}

fn now(args: &Now, global: &Global) -> anyhow::Result<Status> {
    let catalogue = super::advice::catalogue(&args.what.own)?;
    let least = args.what.at_least.into();
    let (seen, interrupted) = look(args, &catalogue, global)?;
    if interrupted {
        return Ok(Status::Interrupted);
    }
    let mut file = AlarmFile::open()?;
    let at = context::now();
    for (machine, seen) in &seen {
        let seen = match seen {
            Ok(checked) => MachineState::Checked(checked),
            Err(why) => MachineState::Failed(why),
        };
        file.alarms.look(machine, seen, least, at);
    }
    let news = file.alarms.news();
    let standing = file.alarms.standing();
    let document = Document {
        schema: SCHEMA_VERSION,
        at,
        raised: &news.raised,
        over: &news.over,
        standing: &standing,
    };
    // Saved before the notification, so that a new alarm is known even if the message fails.
    file.save()?;
    let style = context::style(global);
    print(&match args.json {
        true => format!("{:#}\n", serde_json::json!(document)),
        false => said(&news, &standing, at, style),
    })?;
    if !news.is_empty() {
        let text = said(
            &news,
            &standing,
            at,
            Style {
                color: false,
                width: 76,
            },
        );
        notification::all(&args.what, &serde_json::json!(document), &news, &text)?;
        file.alarms.told();
        file.save()?;
    }
    let missed = seen.iter().any(|(_, seen)| seen.is_err());
    Ok(match (standing.is_empty(), missed) {
        (false, _) => Status::Findings,
        (true, true) => Status::Unreadable,
        (true, false) => Status::Ok,
    })
}

/// For each machine, the result of its check, or the reason why the check failed.
type Looks = Vec<(String, Result<Checked, String>)>;

fn look(
    args: &Now,
    catalogue: &assay_advice::Catalogue,
    global: &Global,
) -> anyhow::Result<(Looks, bool)> {
    if args.what.names.is_empty() {
        let facts = assay_facts::collect(
            &LiveHost,
            &CollectOptions {
                services: true,
                accounts: true,
                ..CollectOptions::default()
            },
        );
        let mut pages = catalogue.all();
        pages.retain(|page| !assay_wifi::judges(page));
        let mut checked = assay_advice::findings(pages, &facts);
        let name = here();
        let followed = Followed {
            host: &name,
            at: context::now(),
            way: SurveyMethod::Here,
            facts: &facts,
            checked: &checked,
        };
        follow(global, std::iter::once(followed));
        accept_usual(&mut checked, None)?;
        return Ok((vec![(name, Ok(checked))], false));
    }
    let which = Which {
        names: args.what.names.clone(),
        known: args.what.known.clone(),
        how: args.what.how.clone(),
        quiet: args.quiet,
    };
    let asked = ask::ask(&which, catalogue, global)?;
    let mut looks = Vec::new();
    for (machine, outcome) in asked.machines.iter().zip(asked.outcomes) {
        let seen = match outcome {
            Outcome::Done(judged) => {
                let mut checked = judged.checked;
                accept_usual(&mut checked, Some(&machine.name))?;
                Ok(checked)
            }
            Outcome::Failed(error) => Err(error.to_string()),
            // The machine is checked under its other name.
            Outcome::Same(_) => continue,
        };
        looks.push((machine.name.clone(), seen));
    }
    Ok((looks, asked.interrupted))
}

/// Returns the name of this machine.
pub(super) fn here() -> String {
    let name = assay_facts::machine(&LiveHost).and_then(|machine| machine.name);
    name.unwrap_or_else(|| "this machine".to_owned())
}

/// The file with the alarms. It is locked, so that only one `assay fleet watch` uses it at a time.
struct AlarmFile {
    path: PathBuf,
    alarms: Alarms,
    _lock: File,
}

/// Maximum size of the file with the alarms in bytes.
const LONGEST: u64 = 64 << 20;

impl AlarmFile {
    fn open() -> anyhow::Result<Self> {
        let dir = dir()?;
        let lock = lockfile::wait(&dir.join("lock")).context("the lock of assay fleet watch")?;
        let path = dir.join("alarms.json");
        let alarms = match path.exists() {
            false => Alarms::default(),
            true => {
                let bytes = crate::input::bytes(&path, LONGEST, "the alarms that stand")?;
                serde_json::from_slice(&bytes).with_context(|| {
                    format!(
                        "{} is damaged. Remove it; all present findings are then reported again",
                        path.display()
                    )
                })?
            }
        };
        Ok(Self {
            path,
            alarms,
            _lock: lock,
        })
    }

    fn save(&self) -> anyhow::Result<()> {
        save(&self.path, &serde_json::to_vec(&self.alarms)?)
    }
}

/// Returns the directory for the alarms. The directory also contains the record of the installation.
#[allow(
    clippy::disallowed_methods,
    reason = "a directory of assay's own in its state"
)]
fn dir() -> anyhow::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt as _;
    let dir = context::state_dir()?.join("watch");
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&dir)
        .with_context(|| {
            format!(
                "cannot make {}: set ASSAY_STATE to a directory that you may write",
                dir.display()
            )
        })?;
    Ok(dir)
}

/// Writes a file atomically, and waits until it is on disk.
fn save(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    assay_host::write_output(path, content).map_err(context::unwritten)
}

/// Formats new and ended alarms, and the number of alarms in effect, for the terminal.
fn said(news: &News, standing: &[Alarm], now: Timestamp, style: Style) -> String {
    let mut text = String::new();
    if !news.raised.is_empty() {
        let _ = writeln!(text, "New");
        for alarm in &news.raised {
            line(&mut text, alarm, None, style);
        }
    }
    if !news.over.is_empty() {
        let _ = writeln!(text, "Over");
        for over in &news.over {
            line(&mut text, &over.alarm, Some(over.until), style);
        }
    }
    let _ = match (news.is_empty(), standing.len()) {
        (true, 0) => writeln!(text, "Nothing is wrong that was looked for."),
        (true, 1) => writeln!(text, "Nothing new; 1 alarm stands: assay fleet watch list"),
        (true, more) => writeln!(
            text,
            "Nothing new; {more} alarms stand: assay fleet watch list"
        ),
        (false, 0) => writeln!(text, "No alarm stands at {now:.0}."),
        (false, 1) => writeln!(text, "1 alarm stands at {now:.0}."),
        (false, more) => writeln!(text, "{more} alarms stand at {now:.0}."),
    };
    text
}

fn line(text: &mut String, alarm: &Alarm, until: Option<Timestamp>, style: Style) {
    let head = format!(
        "  {:<8} {}: {}",
        alarm.severity.name(),
        escape_line(&alarm.machine),
        escape_line(&alarm.title)
    );
    let _ = writeln!(text, "{}", wrap_indented(head.trim_start(), 2, style.width));
    let mut seen: Vec<String> = alarm
        .evidence
        .iter()
        .take(3)
        .map(|place| escape_line(place))
        .collect();
    if alarm.evidence.len() > seen.len() {
        seen.push(format!("and {} more", alarm.evidence.len() - seen.len()));
    }
    let since = match until {
        Some(until) => format!("from {:.0} to {until:.0}", alarm.since),
        None => format!("since {:.0}", alarm.since),
    };
    seen.push(since);
    if let Some(rule) = &alarm.rule {
        seen.push(format!("assay check --explain {rule}"));
    }
    let _ = writeln!(text, "{}", wrap_indented(&seen.join("; "), 11, style.width));
}

fn list(json: bool, global: &Global) -> anyhow::Result<Status> {
    let file = AlarmFile::open()?;
    let standing = file.alarms.standing();
    let style = context::style(global);
    print(&match json {
        true => {
            let document = Document {
                schema: SCHEMA_VERSION,
                at: context::now(),
                raised: &[],
                over: &[],
                standing: &standing,
            };
            format!("{:#}\n", serde_json::json!(document))
        }
        false if standing.is_empty() => "No alarm stands.\n".to_owned(),
        false => {
            let mut text = String::new();
            for alarm in &standing {
                line(&mut text, alarm, None, style);
            }
            text
        }
    })?;
    Ok(match standing.is_empty() {
        true => Status::Ok,
        false => Status::Findings,
    })
}

fn forget(machine: &str) -> anyhow::Result<Status> {
    let mut file = AlarmFile::open()?;
    anyhow::ensure!(
        file.alarms.forget(machine),
        "{}: no alarm of a machine of that name is known; `assay fleet watch list` shows all",
        escape_line(machine)
    );
    file.save()?;
    Ok(Status::Ok)
}

/// Returns the name of the threshold as it is written on the command line.
fn name(threshold: Threshold) -> &'static str {
    Severity::from(threshold).name()
}
