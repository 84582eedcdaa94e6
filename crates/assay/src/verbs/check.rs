//! `assay check`: finds settings of a machine that violate advice.

mod fix;
pub(super) mod mail;
#[cfg(feature = "schemas")]
pub(super) use fix::{Confirmed, TakenBack};
mod verdicts;
mod wifi;

use super::advice::Own;
use super::fleet::follow::{Followed, SurveyMethod, follow_if_kept};
use crate::context::{self, print};
use crate::global::Global;
use crate::machine_source::MachineSource;
use crate::status::Status;
use anyhow::Context as _;
use assay_advice::{Catalogue, accept, chosen, fails, findings};
use assay_facts::{CollectOptions, Redacted};
use assay_host::{Host, LiveHost};
use assay_model::advice::Advice;
use assay_model::finding::{Checked, Severity};
use assay_report::check as report;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  assay check                        what is wrong here, and what to do first
  assay check --only ssh,zfs         only these domains or rules
  assay check --fail-on high         exit status 1 only for high and critical
  assay check --explain ssh-usedns   the page behind a finding
  assay check --coverage             every question with its source, and whether it applied here
  assay check --root box1            a captured machine, an unpacked tree of files, or a bundle
  assay check --host root@box1       another machine: nothing has to be installed there
  assay check --json                 for programs; --format sarif, junit, markdown, html,
                                     nagios or prometheus for others
  assay check --accept own.toml      what you have accepted, each with a reason
  assay check --fix nginx-sslv3 --dry-run
                                     which lines would change, and how they are checked
  assay check --fix nginx-sslv3      change them after asking; read back, and undo on error
  assay check --undo                 undo the newest kept fix (--undo NUMBER: another one)
  assay check diff old.json new.json what changed its verdict between two --json outputs, and why
  assay check wifi scan.txt          wireless networks: scans, exports of a controller, lists
  assay check mail sample.eml        the spam rules that match a stored mail

Without --fix and --undo, check changes nothing and sends nothing. A setting that could not be read
is reported as unknown, never as fine.

--fix changes configuration files through the journal. A change that may lock you out (sshd, PAM) is
reverted unless you confirm it: log in anew and run `assay check --confirm` there.
`assay trial --recover` reverts the changes of a killed assay, `assay check --undo` a kept fix.

Exit status: 0 nothing at or above --fail-on, 1 findings, 2 error, 3 nothing found, but
something could not be read. With --format nagios: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.
With --fix: 0 fixed (or nothing to fix), 1 something is left to do by hand, was declined or not
confirmed, 2 error: nothing was changed.";

/// Find what is wrong, obsolete or dangerous on this machine
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    elsewhere: MachineSource,
    #[command(flatten)]
    forms: Forms,
    /// Show the page behind a rule and check nothing
    #[arg(long, value_name = "ID")]
    explain: Option<String>,
    #[command(flatten)]
    fix: fix::Mend,
    #[command(flatten)]
    own: Own,
}

/// Options of a check and its report.
#[derive(clap::Args)]
struct Forms {
    /// Check only these domains or rules
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    only: Vec<String>,
    /// Print one JSON object
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Print text, json, sarif, junit, markdown, html, nagios or prometheus
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "FORM", hide_possible_values = true)]
    format: Format,
    /// List every question by service, with its source and whether it applied
    #[arg(long, conflicts_with = "format")]
    coverage: bool,
    /// Fail from this severity on: info, low, medium, high or critical
    #[arg(long, value_enum, default_value_t = Threshold::Low, value_name = "SEVERITY", hide_possible_values = true)]
    fail_on: Threshold,
    /// Read accepted findings [default: $XDG_CONFIG_HOME/assay/accept.toml]
    #[arg(long, value_name = "FILE")]
    accept: Option<PathBuf>,
}

const DIFF: &str = "\
Examples:
  assay check --json > before.json
  assay check --json > after.json
  assay check diff before.json after.json

A finding can disappear without a fix: its rule left the catalogue, the setting can no longer be
read, or somebody accepted the finding. The reason is printed for each.

Exit status: 0 no new finding, 1 new findings, 2 error.";

#[derive(clap::Subcommand)]
enum Action {
    /// Compare two checks and explain what changed
    #[command(after_help = DIFF)]
    Diff {
        /// File that `assay check --json` wrote before
        #[arg(value_name = "OLD")]
        old: PathBuf,
        /// Later file of `assay check --json`, or one with other advice
        #[arg(value_name = "NEW")]
        new: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    Wifi(wifi::Args),
    Mail(mail::Args),
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq)]
enum Format {
    Text,
    Json,
    Sarif,
    Junit,
    Markdown,
    Html,
    Nagios,
    Prometheus,
}

/// Least severity that fails a check.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq)]
pub enum Threshold {
    Info,
    Low,
    Medium,
    High,
    Critical,
}

impl From<Threshold> for Severity {
    fn from(threshold: Threshold) -> Self {
        match threshold {
            Threshold::Info => Self::Info,
            Threshold::Low => Self::Low,
            Threshold::Medium => Self::Medium,
            Threshold::High => Self::High,
            Threshold::Critical => Self::Critical,
        }
    }
}

/// Runs `assay check`, and returns the exit status.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    match &args.action {
        Some(Action::Diff { old, new, json }) => return difference(old, new, *json),
        Some(Action::Wifi(args)) => return wifi::run(args, global),
        Some(Action::Mail(args)) => return mail::run(args, global),
        None => {}
    }
    let catalogue = super::advice::catalogue(&args.own)?;
    if let Some(id) = &args.explain {
        print(&super::advice::explain(
            catalogue.get(id)?,
            context::style(global),
        ))?;
        return Ok(Status::Ok);
    }
    if let Some(done) = fix::asked(args, &catalogue, global)? {
        return Ok(done);
    }
    known(&catalogue, &args.forms.only)?;
    let captured = args.elsewhere.open(&[])?;
    let host: &dyn Host = captured.as_deref().unwrap_or(&LiveHost);
    let facts = assay_facts::collect(
        host,
        &CollectOptions {
            services: true,
            accounts: args.elsewhere.has_accounts(),
            ..CollectOptions::default()
        },
    );
    let mut pages = chosen(catalogue.all(), &args.forms.only);
    pages.retain(|page| !assay_wifi::judges(page));
    let mut checked = findings(pages, &facts);
    // Trials of this machine do not apply to another one.
    if captured.is_none() {
        if args.forms.only.is_empty() {
            let host = super::watch::here();
            let followed = Followed {
                host: &host,
                at: context::now(),
                way: SurveyMethod::Here,
                facts: &facts,
                checked: &checked,
            };
            follow_if_kept(global, &followed);
        }
        verdicts::fill_in(&mut checked, global);
    }
    accepted_in(
        &mut checked,
        args.forms.accept.as_deref(),
        args.elsewhere.host.as_deref(),
    )?;
    // The line as the collectors see it, without secrets.
    let redacted = Redacted::new(host, false);
    let line = |path: &str, number: usize| {
        let text = redacted.read_text(Path::new(path)).ok()?;
        text.lines().nth(number.checked_sub(1)?).map(str::to_owned)
    };
    show(&checked, &args.forms, global, &line)
}

fn show(
    checked: &Checked,
    forms: &Forms,
    global: &Global,
    line: &dyn Fn(&str, usize) -> Option<String>,
) -> anyhow::Result<Status> {
    let fail_on = forms.fail_on.into();
    let view = report::View {
        checked,
        fail_on,
        line,
    };
    let text = match forms.format() {
        Format::Text if forms.coverage => report::coverage(checked, context::style(global)),
        Format::Text => report::terminal(&view, context::style(global)),
        Format::Json => format!("{:#}\n", report::json(&view)),
        Format::Sarif => format!("{:#}\n", report::sarif(&view, env!("CARGO_PKG_VERSION"))),
        Format::Junit => report::junit(&view),
        Format::Markdown => report::markdown(&view),
        Format::Html => report::html(&view),
        Format::Prometheus => report::prometheus(&view),
        Format::Nagios => {
            let (line, status) = report::nagios(&view);
            print(&line)?;
            return Ok(match status {
                0 => Status::Ok,
                1 => Status::Findings,
                2 => Status::Error,
                _ => Status::Unreadable,
            });
        }
    };
    print(&text)?;
    Ok(match (fails(checked, fail_on), checked.has_unknown()) {
        (true, _) => Status::Findings,
        (false, true) => Status::Unreadable,
        (false, false) => Status::Ok,
    })
}

impl Forms {
    fn format(&self) -> Format {
        match self.json {
            true => Format::Json,
            false => self.format,
        }
    }
}

/// Document of `assay check diff`: differences between two checks.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub(super) struct Differences<'a> {
    schema: u32,
    #[serde(flatten)]
    found: &'a report::Difference,
}

fn difference(old: &Path, new: &Path, json: bool) -> anyhow::Result<Status> {
    let found = report::diff(&document(old)?, &document(new)?);
    let text = match json {
        true => {
            let document = Differences {
                schema: assay_model::SCHEMA_VERSION,
                found: &found,
            };
            format!("{:#}\n", serde_json::to_value(document)?)
        }
        false => report::diff_text(&found),
    };
    print(&text)?;
    Ok(match found.came.is_empty() {
        true => Status::Ok,
        false => Status::Findings,
    })
}

/// Reads a file that `assay check --json` wrote.
fn document(path: &Path) -> anyhow::Result<report::Document> {
    let name = path.display();
    let absolute = std::path::absolute(path)?;
    let text = match LiveHost.read_text(&absolute) {
        Ok(text) => text,
        Err(error) => anyhow::bail!("{name}: {}", error.reason()),
    };
    serde_json::from_str(&text).with_context(|| {
        format!("cannot read {name}: it is not the output of `assay check --json`. Write it again with that command.")
    })
}

/// Fails if `--only` contains an unknown name. Such a name would select nothing, and the result would look like a
/// machine without findings.
pub fn known(catalogue: &Catalogue, only: &[String]) -> anyhow::Result<()> {
    let all = catalogue.all();
    for name in only {
        let of_files = |page: &&&Advice| page.id == *name && assay_wifi::judges(page);
        if all.iter().any(|page| of_files(&page)) {
            anyhow::bail!(
                "--only {name}: this rule judges files about wireless networks. Use `assay check wifi FILE --only \
                 {name}`."
            );
        }
        let checks = || all.iter().filter(|page| page.check.is_some());
        if !checks().any(|page| page.domain == *name || page.id == *name) {
            let mut domains: Vec<&str> = checks().map(|page| page.domain.as_str()).collect();
            domains.dedup();
            anyhow::bail!(
                "--only {name}: unknown rule or domain; the domains are {}",
                domains.join(", ")
            );
        }
    }
    Ok(())
}

/// Returns the default path of the file with accepted findings. The file need not exist.
pub(super) fn usual_accept_file() -> Option<PathBuf> {
    context::own_advice().map(|dir| dir.with_file_name("accept.toml"))
}

/// Removes findings that the default file accepts. `machine` is the name of the checked machine, or `None` for this
/// machine.
pub(super) fn accept_usual(checked: &mut Checked, machine: Option<&str>) -> anyhow::Result<()> {
    accepted_in(checked, None, machine)
}

/// Removes the findings that a file accepts. A file on the command line must exist; the default file need not.
fn accepted_in(
    checked: &mut Checked,
    file: Option<&Path>,
    machine: Option<&str>,
) -> anyhow::Result<()> {
    let (path, named) = match (file, usual_accept_file()) {
        (Some(path), _) => (path.to_owned(), true),
        (None, Some(path)) => (path, false),
        (None, None) => return Ok(()),
    };
    let path = std::path::absolute(&path).context("--accept")?;
    let name = path.display().to_string();
    let today = context::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    match LiveHost.read_text(&path) {
        Ok(text) => accept(checked, &name, &text, today, machine),
        Err(error) if error.is_absent() && !named => {}
        Err(error) if named => anyhow::bail!("{name}: {}", error.reason()),
        Err(error) => {
            let why = error.reason();
            checked
                .remarks
                .push(format!("{name}: {why}; nothing of it is accepted"));
        }
    }
    Ok(())
}
