//! `assay dev`: writes man pages, completions and schemas for packages and the book. The binary writes them, so that
//! they always match its commands.

#[cfg(feature = "schemas")]
pub(super) mod form;
mod remote;
#[cfg(feature = "schemas")]
pub(super) mod schemas;

use crate::cli;
use crate::complete;
use crate::context::{self, print, write_file};
use crate::status::Status;
use anyhow::Context as _;
use assay_loads::scratch::ScratchRegistry;
use clap::Command;
use clap::builder::StyledStr;
use clap_complete::env::Shells;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Write man pages, completions and schemas for packages and the book
#[derive(clap::Args)]
#[command(hide = true)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Write the man pages, one file each
    Man {
        /// An existing directory
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
    /// Print the completions of a shell
    Completions {
        /// bash, zsh, fish, elvish or powershell
        #[arg(value_name = "SHELL")]
        shell: String,
    },
    /// Revert changes when their assay process ends: started by `assay check --fix` and `assay tune`
    #[command(hide = true)]
    StandBy {
        /// Journal of the change
        #[arg(long, value_name = "DIR")]
        journal: PathBuf,
        /// Number of the session
        #[arg(long, value_name = "NUMBER")]
        session: String,
        /// Time to confirm, in seconds; without it, as long as the caller lives
        #[arg(long, value_name = "SECONDS")]
        within: Option<u64>,
    },
    /// Run the commands of a load: started by measurements
    #[command(hide = true)]
    CommandHelper,
    /// Undo an unconfirmed change: started by systemd, cron or atd
    #[command(hide = true)]
    UndoUnconfirmed {
        /// Directory of the change, from `assay check --fix`
        #[arg(long, value_name = "DIR")]
        dir: PathBuf,
    },
    /// Serve `--host` on the other machine: started over ssh
    #[command(hide = true)]
    Remote {
        /// Temporary directory, removed at the end
        #[arg(long, value_name = "DIR")]
        dir: PathBuf,
        /// Longest time without contact, in seconds
        #[arg(long, value_name = "SECONDS")]
        silence: u64,
    },
    /// Revert everything when the server of `--host` has ended
    #[command(hide = true)]
    RemoteGuard {
        /// Directory of the server
        #[arg(long, value_name = "DIR")]
        dir: PathBuf,
        /// Longest time without contact, in seconds
        #[arg(long, value_name = "SECONDS")]
        silence: u64,
        /// Sessions that already existed and are not reverted
        #[arg(value_name = "SESSION")]
        others: Vec<String>,
    },
    /// Write the JSON schemas of `--json`, one file each
    Schemas {
        /// An existing directory
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
    /// List every help string: command, option, text
    HelpStrings,
    /// Write the book's pages of the command line, one for each verb
    Book {
        /// An existing directory
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
}

/// Runs `assay dev`, and returns the exit status.
pub fn run(args: &Args) -> anyhow::Result<Status> {
    match &args.what {
        What::Man { dir } => man(dir)?,
        What::Completions { shell } => completions(shell)?,
        What::Book { dir } => book(dir)?,
        What::HelpStrings => print(&help_strings())?,
        #[cfg(feature = "schemas")]
        What::Schemas { dir } => schemas::write(dir)?,
        #[cfg(not(feature = "schemas"))]
        What::Schemas { dir: _ } => {
            return Err(crate::features::missing("schemas", "JSON schemas"));
        }
        What::Remote { dir, silence } => remote::serve(dir, *silence)?,
        What::RemoteGuard {
            dir,
            silence,
            others,
        } => remote::guard(dir, *silence, others),
        What::StandBy {
            journal,
            session,
            within,
        } => stand_by(journal, session, *within)?,
        What::UndoUnconfirmed { dir } => undo_unconfirmed(dir)?,
        What::CommandHelper => run_command_helper()?,
    }
    Ok(Status::Ok)
}

fn undo_unconfirmed(dir: &Path) -> anyhow::Result<()> {
    for one in assay_changes::fixes::undo_unconfirmed(dir, &assay_host::LiveHost)? {
        print(&format!(
            "{} was not confirmed: {}",
            assay_render::text::escape_line(&one.label),
            super::trial::told(&one)
        ))?;
    }
    Ok(())
}

/// Runs the commands of a load until the assay process that measures ends or is interrupted.
fn run_command_helper() -> anyhow::Result<()> {
    let cancel = context::on_signals()?;
    let requests = std::io::stdin().lock();
    assay_loads::command_helper::serve(requests, std::io::stdout(), &cancel)?;
    Ok(())
}

fn stand_by(journal: &Path, session: &str, within: Option<u64>) -> anyhow::Result<()> {
    let watch = assay_changes::fixes::StandByOrder {
        session,
        within: within.map(std::time::Duration::from_secs),
    };
    let journal = assay_changes::Journal::open(journal)?;
    assay_changes::fixes::watch(watch, std::io::stdin(), &journal, &assay_host::LiveHost)?;
    // Removes a scratch file of the killed assay; files of a running assay are left alone.
    if let Some(state) = ScratchRegistry::existing(&crate::context::state_dir()?) {
        let _ = state.sweep();
    }
    Ok(())
}

/// Returns the complete command. Each subcommand has its full name, such as `assay dups scan`.
fn built() -> Command {
    let mut command = cli::command().disable_help_subcommand(true);
    command.build();
    command
}

fn man(dir: &Path) -> anyhow::Result<()> {
    pages(&built(), &mut Vec::new(), &mut |path, command| {
        let name = path.join("-");
        let mut text = Vec::new();
        clap_mangen::Man::new(command.clone())
            .source(concat!("assay ", env!("CARGO_PKG_VERSION")))
            .manual("assay")
            .render(&mut text)?;
        let text = String::from_utf8(text).context("a man page is not UTF-8")?;
        write_file(&dir.join(format!("{name}.1")), &text)
    })
}

/// Returns one line for each visible command, option and argument. A line has the command, the name and the first line
/// of the help, separated by tabs.
fn help_strings() -> String {
    let mut text = String::new();
    let whole = built();
    let _: anyhow::Result<()> = pages(&whole, &mut Vec::new(), &mut |path, command| {
        let path = path.join(" ");
        let mut line = |name: &str, help: Option<&StyledStr>| {
            let help = help.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(
                text,
                "{path}\t{name}\t{}",
                help.lines().next().unwrap_or_default()
            );
        };
        line("", command.get_about());
        for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
            let name = match arg.get_long() {
                Some(long) => format!("--{long}"),
                None => arg.get_id().to_string(),
            };
            line(&name, arg.get_help());
        }
        Ok(())
    });
    text
}

/// Calls `page` for a command and for each visible subcommand. The second argument of `page` is the full name of the
/// command as a list, such as `assay`, `dups`, `scan`.
fn pages<'a>(
    command: &'a Command,
    path: &mut Vec<&'a str>,
    page: &mut dyn FnMut(&[&str], &Command) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    path.push(command.get_name());
    page(path, command)?;
    for below in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        pages(below, path, page)?;
    }
    path.pop();
    Ok(())
}

fn completions(shell: &str) -> anyhow::Result<()> {
    let shells = Shells::builtins();
    let Some(writer) = shells.completer(shell) else {
        let known: Vec<_> = shells.names().collect();
        anyhow::bail!(
            "no completions for the shell {shell:?}; use one of {}",
            known.join(", ")
        );
    };
    let mut text = Vec::new();
    writer.write_registration(complete::ASKED_BY, "assay", "assay", "assay", &mut text)?;
    print(&String::from_utf8(text).context("the completions are not UTF-8")?)
}

/// Writes one page for each verb: its help and the help of its subcommands at 100 columns.
fn book(dir: &Path) -> anyhow::Result<()> {
    let whole = built();
    let mut contents =
        String::from("# The command line\n\nWhat `assay --help` says, for each verb.\n\n");
    let verbs = whole.get_subcommands().filter(|one| !one.is_hide_set());
    for verb in verbs {
        let name = verb.get_name();
        let mut text = format!("# assay {name}\n");
        pages(verb, &mut vec!["assay"], &mut |path, command| {
            if path.len() > 2 {
                let _ = write!(text, "\n## {}\n", path.join(" "));
            }
            let help = command.clone().term_width(100).render_long_help();
            let help: Vec<_> = help
                .to_string()
                .lines()
                .map(|line| line.trim_end().to_owned())
                .collect();
            let _ = write!(text, "\n```text\n{}\n```\n", help.join("\n").trim_end());
            Ok(())
        })?;
        write_file(&dir.join(format!("{name}.md")), &text)?;
        let about = verb
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default();
        let _ = writeln!(contents, "- [assay {name}]({name}.md): {about}");
    }
    write_file(&dir.join("README.md"), &contents)
}
