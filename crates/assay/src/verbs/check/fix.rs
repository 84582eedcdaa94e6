//! `assay check --fix`, `--undo` and `--confirm`: applies the fix of a finding, or reverts a fix.

use crate::context::{self, print};
use crate::global::Global;
use crate::status::Status;
use crate::verbs::trial::told;
use anyhow::Context as _;
use assay_advice::Catalogue;
use assay_changes::fixes::{
    Confirmation, FixOutcome, FixPlan, OutsideUndo, StandBy, Unconfirmed, Wish, carry_out, plan,
    plan_document, render_plan,
};
use assay_changes::{ChangeSession, Foreign, Journal, KeptSession, RecoveryOutcome};
use assay_host::LiveHost;
use assay_loads::Cancel;
use assay_model::{Nanos, SCHEMA_VERSION};
use assay_render::text::escape_line;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Default time within which the user must confirm a fix, the same as that of `netplan try`.
const TO_CONFIRM: Duration = Duration::from_secs(120);

/// The fix to apply or to revert.
#[derive(clap::Args)]
pub(super) struct Mend {
    /// Fix a finding: show the lines, ask, write, check and read back
    #[arg(long, value_name = "ID", conflicts_with_all = ["explain", "only", "format", "accept", "undo", "confirm"])]
    fix: Option<String>,
    /// With --fix or --undo: show what would be done and stop
    #[arg(long)]
    dry_run: bool,
    /// With --fix or --undo: do not ask
    #[arg(long, short)]
    yes: bool,
    /// With --fix: roll back unless confirmed in time [default: 2m]
    #[arg(long, value_name = "TIME", requires = "fix")]
    confirm_within: Option<Nanos>,
    /// Confirm a pending fix, best from a new login
    #[arg(long, conflicts_with_all = ["explain", "only", "format", "accept", "undo"])]
    confirm: bool,
    /// Undo a kept fix: the newest, or one by its number or rule
    #[arg(long, value_name = "NUMBER", num_args = 0..=1, default_missing_value = "last", conflicts_with_all = ["explain", "only", "format", "accept"])]
    undo: Option<String>,
}

/// Executes the requested action. Returns `None` if the command line requests none.
pub(super) fn asked(
    args: &super::Args,
    catalogue: &Catalogue,
    global: &Global,
) -> anyhow::Result<Option<Status>> {
    let Mend { fix, undo, .. } = &args.fix;
    let changes = fix.is_some() || undo.is_some() || args.fix.confirm;
    if !changes {
        if args.fix.dry_run || args.fix.yes {
            anyhow::bail!(
                "--dry-run and --yes need --fix ID or --undo: a check alone changes nothing"
            );
        }
        return Ok(None);
    }
    let only_shown = fix.is_some() && args.fix.dry_run && args.elsewhere.has_accounts();
    if args.elsewhere.is_meant() && !only_shown {
        anyhow::bail!(
            "--fix, --undo and --confirm work on this machine only: the journal and the validating programs are \
             here. Run assay on the other machine. For a tree of files, --root with --dry-run shows the lines."
        );
    }
    let done = match (fix, undo) {
        (Some(id), _) => mend(id, args, catalogue, global)?,
        (_, Some(which)) => take_back(which, args)?,
        _ => confirm(args.forms.json)?,
    };
    Ok(Some(done))
}

fn mend(
    id: &str,
    args: &super::Args,
    catalogue: &Catalogue,
    global: &Global,
) -> anyhow::Result<Status> {
    let page = catalogue.get(id)?;
    let pages = catalogue.all();
    let other = args.elsewhere.open(&[])?;
    let planned = plan(other.as_deref().unwrap_or(&LiveHost), &pages, page);
    let plan = match planned {
        Err(error @ assay_changes::fixes::FixError::NotFound { .. }) => {
            let nothing = assay_changes::fixes::empty_document(id);
            print(&match args.forms.json {
                true => format!("{nothing:#}\n"),
                false => format!("{error}\n"),
            })?;
            return Ok(Status::Ok);
        }
        other => other?,
    };
    if !args.forms.json {
        print(&render_plan(&plan, context::style(global)))?;
    }
    let tell = |became: &str, change: Option<&str>, words: &str| match args.forms.json {
        true => print(&format!("{:#}\n", plan_document(&plan, became, change))),
        false => print(words),
    };
    let left = match plan.by_hand.is_empty() {
        true => Status::Ok,
        false => Status::Findings,
    };
    if !plan.does_something() {
        tell("by-hand", None, "")?;
        return Ok(Status::Findings);
    }
    if args.fix.dry_run {
        tell("planned", None, "\nNothing was changed.\n")?;
        return Ok(left);
    }
    if !args.fix.yes && !agreed("Change this?", args.forms.json)? {
        tell("declined", None, "Nothing was changed.\n")?;
        return Ok(Status::Findings);
    }
    match carry(&plan, args, &pages)? {
        FixOutcome::Kept(number) => {
            let words =
                format!("\nDone, and read back. `assay check --undo {number}` undoes it.\n");
            tell("kept", Some(&number), &words)?;
            Ok(left)
        }
        FixOutcome::NotConfirmed => {
            let words = "\nNot confirmed in time: everything is as it was.\n";
            tell("taken-back", None, words)?;
            Ok(Status::Findings)
        }
        FixOutcome::Interrupted => {
            tell("taken-back", None, "\nEverything is as it was.\n")?;
            Ok(Status::Interrupted)
        }
    }
}

fn carry(
    plan: &FixPlan,
    args: &super::Args,
    pages: &[&assay_model::advice::Advice],
) -> anyhow::Result<FixOutcome> {
    let cancel = context::on_signals()?;
    let journal = Journal::open(&context::journal_dir()?)?;
    let within = args.fix.confirm_within;
    let within = within.map_or(TO_CONFIRM, |time| Duration::from_nanos(time.0));
    let stand_by = |session: &str| start(session, within);
    let dir = context::journal_dir()?;
    let files: Vec<String> = plan
        .files
        .iter()
        .map(|file| &file.real)
        .chain(plan.modes.iter().map(|mode| &mode.real))
        .map(|real| real.to_string_lossy().into_owned())
        .collect();
    let label = assay_changes::fixes::session_label(&plan.rule);
    let outside = |session: &ChangeSession| {
        let what = Unconfirmed {
            session: session.uid(),
            label: &label,
            journal: &dir,
            within,
            files: &files,
        };
        OutsideUndo::arm(what, &LiveHost)
    };
    let mut confirm = |session: &ChangeSession, outside: Option<&OutsideUndo>| {
        wait(session, outside, within, &cancel, args.forms.json)
    };
    let mut wish = Wish {
        host: &LiveHost,
        journal: &journal,
        pages,
        stand_by: &stand_by,
        outside: &outside,
        confirm: &mut confirm,
        cancelled: &|| cancel.is_cancelled(),
    };
    Ok(carry_out(plan, &mut wish)?)
}

/// Starts this program as the stand-by process. It reverts the fix unless the user confirms the fix within `within`.
#[allow(
    clippy::disallowed_methods,
    reason = "the process that outlives this one is this program itself"
)]
fn start(session: &str, within: Duration) -> std::io::Result<StandBy> {
    let mut command = Command::new(std::env::current_exe()?);
    let journal = context::journal_dir().map_err(std::io::Error::other)?;
    command
        .args(["dev", "stand-by", "--session", session, "--within"])
        .arg(within.as_secs().max(1).to_string())
        .arg("--journal")
        .arg(journal);
    StandBy::start(command)
}

/// Waits for the confirmation: `assay check --confirm` in another terminal, or `yes` in this terminal.
fn wait(
    session: &ChangeSession,
    outside: Option<&OutsideUndo>,
    within: Duration,
    cancel: &Cancel,
    quiet: bool,
) -> Confirmation {
    let typed = typed();
    let here = match typed.is_some() {
        true => ", or type yes here",
        false => "",
    };
    eprintln!(
        "\nMade, and read back. Now log in anew. If that works, say there within {} s: assay check --confirm{here}. \
         Otherwise everything is reverted{}.",
        within.as_secs(),
        outside.map_or_else(String::new, |outside| format!(
            ", also when assay is killed or the machine starts again: {} looks after it",
            outside.describe()
        ))
    );
    let begun = crate::progress::now();
    while begun.elapsed() < within {
        if session.is_confirmed() {
            return Confirmation::Given;
        }
        if cancel.is_cancelled() {
            return Confirmation::Refused;
        }
        if let Some(Ok(line)) = typed.as_ref().map(Receiver::try_recv) {
            match line.trim() {
                "yes" | "y" => return Confirmation::Given,
                "no" | "n" => return Confirmation::Refused,
                _ if quiet => {}
                _ => eprintln!("yes keeps it, no reverts it"),
            }
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Confirmation::Late
}

/// Returns a channel with the lines that the user types; `None` without a terminal.
fn typed() -> Option<Receiver<String>> {
    if !std::io::stdin().is_terminal() {
        return None;
    }
    let (send, lines) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if send.send(line).is_err() {
                return;
            }
        }
    });
    Some(lines)
}

/// Asks a yes-or-no question on the terminal.
///
/// # Errors
/// There is no terminal, or `json` is set.
fn agreed(question: &str, json: bool) -> anyhow::Result<bool> {
    let stdin = std::io::stdin();
    if json || !stdin.is_terminal() {
        anyhow::bail!(
            "cannot ask: there is no terminal. Look at the change with --dry-run, then use --yes."
        );
    }
    eprint!("\n{question} [y/N] ");
    std::io::stderr().flush()?;
    let mut line = String::new();
    stdin
        .lock()
        .read_line(&mut line)
        .context("standard input")?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

/// Document of `assay check --confirm`: the confirmed changes.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub(in crate::verbs) struct Confirmed<'a> {
    schema: u32,
    /// Labels of the confirmed change sessions.
    confirmed: &'a [&'a str],
}

/// Document of `assay check --undo`: the reverted fix.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub(in crate::verbs) struct TakenBack<'a> {
    schema: u32,
    /// Number of the fix that was undone.
    change: &'a str,
    session: &'a str,
    /// Whether all parts of the fix could be reverted.
    taken_back: bool,
    /// Result of each part of the fix as text.
    told: Vec<&'a str>,
}

fn confirm(json: bool) -> anyhow::Result<Status> {
    let journal = Journal::open(&context::journal_dir()?)?;
    let waiting = journal.waiting()?;
    for one in &waiting {
        journal.confirm(&one.uid)?;
    }
    let all: Vec<_> = waiting.iter().map(|one| one.label.as_str()).collect();
    let document = serde_json::json!(Confirmed {
        schema: SCHEMA_VERSION,
        confirmed: &all,
    });
    print(&match (json, all.is_empty()) {
        (true, _) => format!("{document:#}\n"),
        (false, true) => "Nothing waits for a confirmation.\n".to_owned(),
        (false, false) => format!("Confirmed: {}\n", escape_line(&all.join(", "))),
    })?;
    Ok(match all.is_empty() {
        true => Status::Findings,
        false => Status::Ok,
    })
}

fn take_back(which: &str, args: &super::Args) -> anyhow::Result<Status> {
    let journal = Journal::open(&context::journal_dir()?)?;
    let kept = journal.kept()?;
    let found = chosen(&kept, which);
    if found.len() > 1 {
        let all: Vec<String> = found.into_iter().map(line).collect();
        anyhow::bail!(
            "{} matches several fixes; give more digits of one:\n{}",
            which.escape_debug(),
            all.join("\n")
        );
    }
    let Some(one) = found.first() else {
        let all: Vec<String> = kept.iter().map(line).collect();
        match (kept.is_empty(), which) {
            (true, _) => anyhow::bail!("nothing to undo: no fix is kept"),
            _ => anyhow::bail!(
                "no kept fix has the number or rule {}; kept fixes:\n{}",
                which.escape_debug(),
                all.join("\n")
            ),
        }
    };
    if !args.forms.json {
        print(&format!("{}\n", line(one)))?;
    }
    if args.fix.dry_run {
        return Ok(Status::Ok);
    }
    if !args.fix.yes && !agreed("Take this back?", args.forms.json)? {
        return Ok(Status::Findings);
    }
    let recovered = journal.take_back_kept(&one.uid, &LiveHost, Foreign::Leave)?;
    let restored = |outcome: &RecoveryOutcome| matches!(outcome, RecoveryOutcome::Restored(_));
    let whole = recovered.iter().all(|one| restored(&one.outcome));
    let lines: Vec<String> = recovered.iter().map(told).collect();
    let document = serde_json::json!(TakenBack {
        schema: SCHEMA_VERSION,
        change: &one.uid,
        session: &one.label,
        taken_back: whole,
        told: lines.iter().map(|line| line.trim_end()).collect(),
    });
    print(&match args.forms.json {
        true => format!("{document:#}\n"),
        false => lines.concat(),
    })?;
    match whole {
        true => Ok(Status::Ok),
        false => {
            eprintln!(
                "what is left: `assay trial --recover --force` reverts it, --accept forgets it"
            );
            Ok(Status::Findings)
        }
    }
}

/// Returns the fixes that `which` selects: `last` (the newest fix), a number, a rule (its newest fix), or the prefix of
/// a number. Several fixes are returned if a prefix is ambiguous.
fn chosen<'a>(kept: &'a [KeptSession], which: &str) -> Vec<&'a KeptSession> {
    let label = assay_changes::fixes::session_label(which);
    let of = |wanted: &dyn Fn(&&KeptSession) -> bool| -> Vec<&'a KeptSession> {
        kept.iter().filter(|one| wanted(one)).collect()
    };
    let newest = |all: Vec<&'a KeptSession>| all.into_iter().take(1).collect();
    match which {
        "last" => newest(kept.iter().collect()),
        "" => Vec::new(),
        which => {
            let exact = of(&|one| one.uid == which);
            let named = of(&|one| one.label == label);
            match (exact.is_empty(), named.is_empty()) {
                (false, _) => exact,
                (true, false) => newest(named),
                (true, true) => of(&|one| one.uid.starts_with(which)),
            }
        }
    }
}

fn line(one: &KeptSession) -> String {
    let when = i64::try_from(one.begun).ok();
    let when = when.and_then(|begun| jiff::Timestamp::from_second(begun).ok());
    let when = when.map_or_else(String::new, |when| format!("{when:.0}"));
    format!(
        "{}  {when}  {}: {}",
        one.uid,
        escape_line(&one.label),
        escape_line(&one.what.join("; "))
    )
}
