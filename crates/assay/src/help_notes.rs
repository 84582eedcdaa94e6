//! Wraps the notes below the options of a help page for narrow terminals. clap itself would break long lines at any
//! position, also within the columns of examples.

use assay_render::text::wrap_lines;
use clap::Command;
use std::io::IsTerminal as _;

/// Width of the notes in the source code, in columns.
const WRITTEN_FOR: usize = 100;

/// Minimum width in columns for the description of an example. If less remains next to the command, the description
/// moves below it.
const LEAST_ROOM: usize = 24;

/// Wraps the notes of a command and its subcommands.
pub fn fit_to_terminal(command: Command) -> Command {
    match columns() {
        columns if columns < WRITTEN_FOR => fit(command, columns),
        _ => command,
    }
}

/// Returns the width of the terminal in columns, or `$COLUMNS`, or 100, which is the default of clap.
fn columns() -> usize {
    let stdout = std::io::stdout();
    let terminal = match stdout.is_terminal() {
        true => rustix::termios::tcgetwinsize(&stdout).ok(),
        false => None,
    };
    terminal
        .map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns > 0)
        .or_else(|| std::env::var("COLUMNS").ok()?.parse().ok())
        .unwrap_or(WRITTEN_FOR)
        .max(40)
}

fn fit(mut command: Command, columns: usize) -> Command {
    let names: Vec<String> = command
        .get_subcommands()
        .map(|below| below.get_name().to_owned())
        .collect();
    for name in names {
        command = command.mut_subcommand(name, |below| fit(below, columns));
    }
    match command.get_after_help().map(ToString::to_string) {
        Some(notes) => command.after_help(fit_notes(&notes, columns)),
        None => command,
    }
}

fn fit_notes(notes: &str, columns: usize) -> String {
    let mut fitted: Vec<String> = Vec::new();
    let mut prose = String::new();
    for line in notes.lines() {
        let is_prose = line.starts_with(|c: char| !c.is_whitespace()) && !line.ends_with(':');
        if !is_prose {
            end_prose(&mut fitted, &mut prose, columns);
            fit_line(&mut fitted, line, columns);
            continue;
        }
        if !prose.is_empty() {
            prose.push(' ');
        }
        prose.push_str(line.trim_end());
    }
    end_prose(&mut fitted, &mut prose, columns);
    fitted.join("\n")
}

fn end_prose(fitted: &mut Vec<String>, prose: &mut String, columns: usize) {
    if !prose.is_empty() {
        fitted.extend(wrap_lines(prose, columns));
        prose.clear();
    }
}

/// Wraps a line that consists of a command or name, at least two spaces, and a description.
fn fit_line(fitted: &mut Vec<String>, line: &str, columns: usize) {
    if line.chars().count() <= columns {
        fitted.push(line.to_owned());
        return;
    }
    let indent = line.chars().take_while(|c| *c == ' ').count();
    let body = line.get(indent..).unwrap_or_default();
    let (lead, description) = match body.find("  ") {
        Some(end) => (&line[..indent + end], body[end..].trim_start()),
        // A description below its command.
        None if indent > 6 => ("", body),
        // A command cannot be wrapped.
        None => {
            fitted.push(line.to_owned());
            return;
        }
    };
    let at = line.chars().count() - description.chars().count();
    let beside = at + LEAST_ROOM <= columns;
    let at = if beside { at } else { 8 };
    let mut lines = wrap_lines(description, columns - at).into_iter();
    let mut first = lead.to_owned();
    if beside && let Some(line) = lines.next() {
        first.push_str(&" ".repeat(at - lead.chars().count()));
        first.push_str(&line);
    }
    if !first.is_empty() {
        fitted.push(first);
    }
    fitted.extend(lines.map(|line| format!("{}{line}", " ".repeat(at))));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_keep_their_columns_in_a_narrow_terminal() {
        let notes = "Examples:\n  assay x     what this does on a machine that has a narrow terminal\n\nOne two three \
                     four\nfive six seven eight nine ten.";
        let fitted = fit_notes(notes, 40);
        insta::assert_snapshot!(fitted, @r"
        Examples:
          assay x     what this does on a
                      machine that has a narrow
                      terminal

        One two three four five six seven eight
        nine ten.
        ");
    }
}
