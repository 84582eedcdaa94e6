//! Determines the layout of the help of a command: the headings of options, and the options that `-h` omits.

use clap::{Arg, Command};
use std::ffi::OsString;

/// How much of the help is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// `-h`: the most common options, and the first examples.
    Short,
    /// `--help`, man pages and the book: all options and examples.
    Full,
}

impl Layout {
    /// Returns the layout that the command line requests: short with `-h`, else full.
    pub fn asked_for(words: &[OsString]) -> Self {
        let options = words.iter().take_while(|word| *word != "--");
        match options.into_iter().any(|word| word == "-h") {
            true => Self::Short,
            false => Self::Full,
        }
    }
}

/// Headings of the help for options that several commands have. Each heading has a list of option ids.
const HEADINGS: [(&str, &[&str]); 4] = [
    (
        "Output",
        &[
            "format", "output", "json", "markdown", "html", "quiet", "color",
        ],
    ),
    (
        "Another machine",
        &[
            "host",
            "sudo",
            "deadline",
            "ssh_config",
            "remote_assay",
            "silence",
            "root",
        ],
    ),
    ("Machines", &["inventory", "ansible", "proxmox", "from"]),
    ("Records", &["store", "advice_dir"]),
];

/// First display order of the options that are last in the help.
const AFTER_ALL: usize = 800;

/// Shared options that `-h` omits.
const RARE: [&str; 21] = [
    "accel",
    "advice_dir",
    "ansible",
    "color",
    "deadline",
    "despite_open_change",
    "destroy_unknown_data",
    "fio",
    "inventory",
    "markdown",
    "proxmox",
    "ramp",
    "remote_assay",
    "root",
    "seed",
    "silence",
    "ssh_config",
    "store",
    "sudo",
    "up_trace",
    "washout",
];

/// Options that `-h` shows for commands with many options. For other commands, `-h` shows all options except [`RARE`].
const COMMON: [(&str, &[&str]); 11] = [
    (
        "assay run",
        &[
            "plan_file",
            "resume",
            "want",
            "rounds",
            "runtime",
            "size",
            "rw",
            "bs",
            "iodepth",
            "destroy_data",
        ],
    ),
    (
        "assay web",
        &[
            "concurrency",
            "at",
            "rate",
            "rounds",
            "seconds",
            "limit",
            "headers",
            "http2",
            "insecure",
            "log",
        ],
    ),
    (
        "assay trial",
        &[
            "set", "dry_run", "yes", "keep", "budget", "resume", "recover", "list", "show",
        ],
    ),
    (
        "assay tune",
        &[
            "want", "load", "budget", "may", "while_ok", "only", "dry_run", "yes", "list", "show",
            "resume", "undo",
        ],
    ),
    (
        "assay stack",
        &["measure", "show", "layers", "budget", "dry_run", "yes"],
    ),
    (
        "assay check",
        &[
            "only", "fail_on", "accept", "explain", "fix", "dry_run", "yes", "undo", "confirm",
        ],
    ),
    ("assay study", &["on", "full", "dry_run", "resume", "list"]),
    (
        "assay plan layout",
        &[
            "here", "only", "want", "survive", "io", "limit", "best", "years",
        ],
    ),
    (
        "assay dups scan",
        &[
            "hash_all",
            "min_size",
            "glob",
            "gitignore",
            "newer_than",
            "older_than",
            "index",
        ],
    ),
    (
        "assay dups refresh",
        &[
            "hash_all",
            "min_size",
            "glob",
            "gitignore",
            "newer_than",
            "older_than",
            "index",
        ],
    ),
    (
        "assay dups act",
        &[
            "hardlink", "reflink", "delete", "move", "apply", "keep_in", "protect",
        ],
    ),
];

/// Maximum number of lines of notes and examples in `-h`.
const SHORT_NOTES: usize = 12;

/// Sets the layout of the whole help.
pub fn arrange(command: Command, layout: Layout) -> Command {
    arrange_below(command, layout, "")
}

/// Sets the layout of a command and its subcommands. `above` are the parent commands of the command.
fn arrange_below(command: Command, layout: Layout, above: &str) -> Command {
    let path = format!("{above} {}", command.get_name()).trim().to_owned();
    let names: Vec<String> = command
        .get_subcommands()
        .map(|below| below.get_name().to_owned())
        .collect();
    let mut command = command;
    for name in names {
        command = command.mut_subcommand(name, |below| arrange_below(below, layout, &path));
    }
    let common = COMMON
        .iter()
        .find(|(name, _)| *name == path)
        .map(|(_, ids)| *ids);
    let has_ssh = command
        .get_arguments()
        .any(|arg| arg.get_id() == "ssh_config");
    command = command.mut_args(|arg| arrange_option(arg, common, has_ssh, layout));
    match layout {
        Layout::Short => shorten_notes(command),
        Layout::Full => command,
    }
}

fn arrange_option(arg: Arg, common: Option<&[&str]>, has_ssh: bool, layout: Layout) -> Arg {
    if arg.is_positional() {
        return arg;
    }
    let id = arg
        .get_id()
        .as_str()
        .trim_start_matches("short-")
        .to_owned();
    let heading = HEADINGS
        .into_iter()
        .find(|(title, ids)| ids.contains(&id.as_str()) && (has_ssh || *title != "Another machine"))
        .map(|(title, _)| title);
    let is_shared = matches!(
        id.as_str(),
        "format" | "output" | "report-file" | "json" | "html" | "quiet" | "host"
    );
    let is_short = match common {
        Some(ids) => is_shared || ids.contains(&id.as_str()),
        None => !RARE.contains(&id.as_str()),
    };
    let help = match id.as_str() {
        "json" => Some("Print JSON"),
        "markdown" => Some("Print Markdown"),
        "html" => Some("Also write the report as an HTML page to FILE"),
        "quiet" => Some("Show no progress on standard error"),
        _ => None,
    };
    let arg = match help {
        Some(help) => arg.help(help).long_help(None::<&str>),
        None => arg,
    };
    let arg = match heading {
        Some(heading) => arg.help_heading(heading),
        None => arg,
    };
    let order = HEADINGS[0].1.iter().position(|other| *other == id);
    let arg = match order {
        Some(order) => arg.display_order(AFTER_ALL + order),
        None => arg,
    };
    match layout {
        Layout::Short if !is_short => arg.hide(true),
        _ => arg,
    }
}

/// Shortens the notes of a command to the first examples.
fn shorten_notes(command: Command) -> Command {
    let Some(notes) = command.get_after_help().map(ToString::to_string) else {
        return command;
    };
    let first: Vec<&str> = notes
        .lines()
        .take_while(|line| !line.is_empty())
        .take(SHORT_NOTES)
        .collect();
    if first.len() == notes.lines().count() {
        return command;
    }
    let short = format!("{}\n\nAll options and notes: --help", first.join("\n"));
    command.after_help(short)
}
