//! Adds the shared options of all commands with a report: `--format FORM` and `--output FILE`, with the short forms
//! `--json`, `--markdown` and `--html FILE`. They are added in one place, so that no verb can omit them.

use clap::builder::PossibleValuesParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};
use std::path::{Path, PathBuf};

/// Destination of the report.
#[derive(Default, Debug, PartialEq, Eq)]
pub struct Destination {
    /// Whether only the HTML page is requested. All other output is then dropped.
    pub page_only: bool,
    /// File that replaces standard output.
    pub file: Option<PathBuf>,
    /// Format from `--format` or from the file name.
    pub form: Option<&'static str>,
}

/// Formats with a short option, as (id of the short option, its id in a verb that has its own `--format`, name of the
/// format in such a verb).
const SHORT: [(&str, &str, &str); 3] = [
    ("json", "short-json", "json"),
    ("markdown", "short-markdown", "md"),
    ("html", "short-html", "html"),
];

/// Id of the shared `--output`. A verb that writes a file itself has an argument of its own with the id `output`.
const FILE: &str = "report-file";

/// Adds the options to each command with a report. `form` is the requested format, whose short option is then set.
pub fn add(command: Command, form: Option<&str>) -> Command {
    add_below(command, form, false)
}

/// Adds the options to a command and its subcommands. `inherits` is true if a parent command has a global `--json`.
fn add_below(command: Command, form: Option<&str>, inherits: bool) -> Command {
    let global = (command.get_arguments()).any(|arg| arg.get_id() == "json" && arg.is_global_set());
    let names: Vec<String> = command
        .get_subcommands()
        .map(|below| below.get_name().to_owned())
        .collect();
    let mut command = command;
    for name in names {
        command = command.mut_subcommand(name, |below| add_below(below, form, inherits || global));
    }
    match has(&command, "format") {
        true => complete_own_forms(command, form, inherits),
        false if has(&command, "json") => add_forms(command, form, global),
        false => command,
    }
}

fn has(command: &Command, id: &str) -> bool {
    command.get_arguments().any(|arg| arg.get_id() == id)
}

/// Adds `--format` to a command that has `--json`, and possibly `--markdown` and `--html`.
fn add_forms(mut command: Command, form: Option<&str>, global: bool) -> Command {
    let mut forms = vec!["text"];
    for (id, ..) in SHORT {
        if !has(&command, id) {
            continue;
        }
        forms.push(id);
        if form == Some(id) {
            command = command.mut_arg(id, |arg| match id {
                "html" => arg.default_value("-").hide_default_value(true),
                _ => arg.default_value("true"),
            });
        }
    }
    let others: Vec<&str> = forms[1..].to_vec();
    let help = format!("Print the report as {}", listed(&forms));
    command
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("FORM")
                .value_parser(PossibleValuesParser::new(forms))
                .hide_possible_values(true)
                .conflicts_with_all(others)
                .global(global)
                .help(help),
        )
        .arg(output().global(global))
}

/// Adds the missing short options to a command with its own `--format`.
fn complete_own_forms(mut command: Command, form: Option<&str>, inherits: bool) -> Command {
    let values: Vec<_> = command
        .get_arguments()
        .filter(|arg| arg.get_id() == "format")
        .flat_map(Arg::get_possible_values)
        .collect();
    let file = match has(&command, "output") {
        true => "output",
        false => FILE,
    };
    for (id, own_id, other) in SHORT {
        let is_form = |name: &str| values.iter().any(|value| value.matches(name, true));
        let Some(value) = [id, other].into_iter().find(|name| is_form(name)) else {
            continue;
        };
        let is_inherited = inherits && id == "json";
        if !is_inherited && !has(&command, id) {
            let arg = Arg::new(own_id).long(id).conflicts_with("format");
            command = command.arg(match id {
                "html" => arg
                    .value_name("FILE")
                    .value_parser(clap::value_parser!(PathBuf))
                    .conflicts_with(file),
                _ => arg.action(ArgAction::SetTrue),
            });
        }
        if form == Some(id) {
            command = command.mut_arg("format", |arg| {
                arg.default_value(value).hide_default_value(true)
            });
        }
    }
    match has(&command, "output") {
        true => command,
        false => command.arg(output()),
    }
}

fn output() -> Arg {
    Arg::new(FILE)
        .long("output")
        .value_name("FILE")
        .value_hint(ValueHint::FilePath)
        .value_parser(clap::value_parser!(PathBuf))
        .help("Write the report to FILE instead of standard output")
}

/// Joins formats for a sentence of the help: "text, json or html".
fn listed(forms: &[&str]) -> String {
    match forms.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => forms.concat(),
    }
}

/// Returns the arguments of the innermost subcommand.
fn deepest(matches: &ArgMatches) -> &ArgMatches {
    match matches.subcommand() {
        Some((_, below)) => deepest(below),
        None => matches,
    }
}

fn named(matches: &ArgMatches, id: &str) -> Option<PathBuf> {
    if !is_given(matches, id) {
        return None;
    }
    let mut values = matches.get_raw(id)?;
    values.next().map(PathBuf::from)
}

/// Returns the format of `--format`, else the format for the file name ending of `--output FILE`. `None` if this format
/// has no short option.
pub fn form(matches: &ArgMatches) -> Option<&'static str> {
    let matches = deepest(matches);
    for (id, own_id, _) in SHORT {
        if is_given(matches, own_id) {
            return Some(id);
        }
    }
    let word = match named(matches, "format") {
        Some(form) => form,
        None if SHORT.iter().any(|(id, ..)| is_given(matches, id)) => return None,
        None => (named(matches, "output").or_else(|| named(matches, FILE)))?
            .extension()?
            .into(),
    };
    let word = word.to_str()?.to_lowercase();
    SHORT
        .into_iter()
        .find(|(id, _, other)| *id == word || *other == word)
        .map(|(id, ..)| id)
}

/// Returns whether the command line has an option. Returns false for an option that the command does not define.
fn is_given(matches: &ArgMatches, id: &str) -> bool {
    // Without debug assertions, clap does not know the ids of a command from its matches, only those with a value.
    let has_value = matches.ids().any(|known| known == id);
    has_value && matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// Returns the innermost subcommand of the matches.
fn deepest_command<'a>(command: &'a Command, matches: &ArgMatches) -> &'a Command {
    let below = matches
        .subcommand()
        .and_then(|(name, below)| Some((command.find_subcommand(name)?, below)));
    match below {
        Some((command, matches)) => deepest_command(command, matches),
        None => command,
    }
}

/// Returns the destination of the report. Returns the default if the verb has an `--output` of its own. `command` is
/// the command that parsed the command line.
pub fn destination(command: &Command, matches: &ArgMatches) -> Destination {
    let verb = deepest(matches);
    let defined = deepest_command(command, matches);
    if has(defined, "output") {
        return Destination::default();
    }
    let dash = |path: &Path| path == Path::new("-");
    let html = named(verb, "html");
    let page = has(defined, "html")
        && (form(matches) == Some("html") || html.as_deref().is_some_and(dash));
    Destination {
        form: form(matches),
        page_only: page,
        file: named(verb, FILE)
            .or_else(|| named(verb, "short-html"))
            .filter(|path| !dash(path)),
    }
}
