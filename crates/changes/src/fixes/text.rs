//! Writes a plan as text and as JSON.

use crate::fixes::line_diff::Hunk;
use crate::fixes::line_edits::ModeChange;
use crate::fixes::plan::{FileChange, FixPlan};
use crate::fixes::properties::PropertyChange;
use assay_model::SCHEMA_VERSION;
use assay_render::Style;
use assay_render::text::escape_line;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Number of columns by which the lines below a file name are indented.
const INDENT: usize = 2;
/// Text that replaces a tab.
const TAB: &str = "    ";

/// Writes the plan for a terminal: every removed and inserted line, the checks, and the risk.
#[must_use]
pub fn render_plan(plan: &FixPlan, style: Style) -> String {
    let mut out = String::new();
    let head = format!("{}: {}", plan.rule, escape_line(&plan.title));
    style.write_paragraph(&mut out, "", 0, &head);
    for file in &plan.files {
        write_file_change(&mut out, file, style);
    }
    for mode in &plan.modes {
        let _ = writeln!(out, "\n{}", escape_line(&mode.path));
        let mut line = |sign: &str, colour: &str, mode: u32| {
            let shown = style.paint(colour, &format!("{sign} mode {mode:04o}"));
            let _ = writeln!(out, "  {shown}");
        };
        line("-", "31", mode.before);
        line("+", "32", mode.after);
    }
    for one in &plan.properties {
        let _ = writeln!(out, "\n{}", escape_line(&one.dataset));
        let mut line = |sign: &str, colour: &str, value: &str| {
            let text = escape_line(&format!("{sign} {}={value}", one.property));
            let _ = writeln!(out, "  {}", style.paint(colour, &text));
        };
        line("-", "31", &one.before);
        line("+", "32", &one.after);
    }
    if !plan.by_hand.is_empty() {
        let _ = writeln!(out, "\n{}", style.bold("To do by hand"));
        for left in &plan.by_hand {
            let words = format!("{}: {}", escape_line(&left.what), escape_line(&left.why));
            style.write_paragraph(&mut out, "  - ", 4, &words);
        }
        for step in &plan.steps {
            style.write_paragraph(&mut out, "  Do: ", 6, &escape_line(step));
        }
    }
    if plan.does_something() {
        out.push('\n');
        style.write_paragraph(&mut out, "Risk: ", 6, &escape_line(&plan.risk));
        if plan.lockout {
            let words =
                "It may lock somebody out, so it is reverted automatically unless it is confirmed.";
            style.write_paragraph(&mut out, "      ", 6, words);
        }
    }
    out
}

fn write_file_change(out: &mut String, file: &FileChange, style: Style) {
    let real = file.real.to_string_lossy();
    let name = match *real == *file.path {
        true => escape_line(&file.path),
        false => format!(
            "{} (that is {})",
            escape_line(&file.path),
            escape_line(&real)
        ),
    };
    let name = match file.is_new() {
        true => format!("{name} (new file)"),
        false => name,
    };
    out.push('\n');
    style.write_paragraph(out, "", 0, &name);
    for hunk in shown_hunks(file) {
        let width = (hunk.line + hunk.before.len()).to_string().len().max(4);
        let mut line = |sign: &str, colour: &str, number: String, text: &str| {
            let room = style.columns().saturating_sub(INDENT + width + 3).max(8);
            let text: Vec<char> = escape_line(&text.replace('\t', TAB)).chars().collect();
            // The line is shown unchanged: it is broken at any column and continues without a marker.
            let rows = text
                .chunks(room)
                .map(|part| part.iter().collect::<String>());
            let rows: Vec<String> = match text.is_empty() {
                true => vec![String::new()],
                false => rows.collect(),
            };
            for (row, part) in rows.iter().enumerate() {
                let (sign, number) = match row {
                    0 => (sign, number.as_str()),
                    _ => (" ", ""),
                };
                let shown = style.paint(colour, format!("{sign} {part}").trim_end());
                let _ = writeln!(out, "  {number:>width$} {shown}");
            }
        };
        for (at, text) in hunk.before.iter().enumerate() {
            line("-", "31", (hunk.line + at).to_string(), text);
        }
        for text in &hunk.after {
            line("+", "32", String::new(), text);
        }
    }
    if !file.validate.is_empty() {
        let checked = format!("`{}`", escape_line(&file.validate.join(" ")));
        style.write_paragraph(out, "  checked by ", INDENT + 2, &checked);
    }
    let read = match (
        file.reload.is_empty(),
        crate::fixes::program::next_start(file),
    ) {
        (false, next) => {
            let reload = format!("then `{}`", escape_line(&file.reload.join(" ")));
            next.map_or(reload.clone(), |next| format!("{reload}; {next}"))
        }
        (true, Some(next)) => next,
        (true, None) => "no service that runs reads it".to_owned(),
    };
    style.write_paragraph(out, "  ", INDENT + 2, &read);
}

/// Returns the lines that change, without other statements in them. The text of a new file comes from the page, so it
/// is shown completely.
fn shown_hunks(file: &FileChange) -> Vec<Hunk> {
    let mut hunks = file.hunks();
    for hunk in &mut hunks {
        match file.is_new() {
            true => {
                let lines = hunk.after.iter();
                hunk.after = lines
                    .map(|line| assay_model::secrets::withhold_in_text(line))
                    .collect();
            }
            false => *hunk = hunk.shown(),
        }
    }
    hunks
}

/// JSON document of a plan and its result.
#[derive(Serialize, schemars::JsonSchema)]
#[schemars(rename = "Document")]
pub struct FixDocument<'a> {
    schema: u32,
    rule: &'a str,
    /// Number of findings of the page's check.
    found: usize,
    /// Result: `planned`, `kept`, `taken-back`, `by-hand` or `nothing`.
    became: &'a str,
    /// Number of the kept change, with which it can be rolled back later.
    change: Option<&'a str>,
    may_lock_out: bool,
    files: Vec<File<'a>>,
    /// Files whose permissions change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    modes: Vec<FileMode<'a>>,
    /// Properties of ZFS datasets that change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    properties: Vec<Property<'a>>,
    by_hand: Vec<ByHand<'a>>,
}

#[derive(Serialize, schemars::JsonSchema)]
struct FileMode<'a> {
    path: &'a str,
    /// Path with symbolic links resolved.
    real: String,
    /// Permission bits before the change in octal, such as `0644`.
    before: String,
    /// Permission bits after the change in octal.
    after: String,
}

#[derive(Serialize, schemars::JsonSchema)]
struct Property<'a> {
    dataset: &'a str,
    property: &'a str,
    before: &'a str,
    after: &'a str,
}

#[derive(Serialize, schemars::JsonSchema)]
struct ByHand<'a> {
    what: &'a str,
    why: &'a str,
}

#[derive(Serialize, schemars::JsonSchema)]
struct File<'a> {
    path: &'a str,
    /// Path with symbolic links resolved.
    real: String,
    /// Whether the file is created.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    new: bool,
    lines: Vec<Lines>,
    /// Command that checks the configuration.
    validate: &'a [String],
    /// Command that makes the service read the file; empty if the service does not run.
    reload: &'a [String],
}

#[derive(Serialize, schemars::JsonSchema)]
struct Lines {
    /// Number of the first line, counted in the file before the change.
    line: usize,
    before: Vec<String>,
    after: Vec<String>,
}

/// Returns the plan as JSON with its result `became`: `planned`, `kept`, `taken-back`, `by-hand` or `nothing`.
#[must_use]
pub fn plan_document(plan: &FixPlan, became: &str, change: Option<&str>) -> Value {
    let by_hand = plan.by_hand.iter();
    json!(FixDocument {
        schema: SCHEMA_VERSION,
        rule: &plan.rule,
        found: plan.found,
        became,
        change,
        may_lock_out: plan.lockout,
        files: plan.files.iter().map(describe_file).collect(),
        modes: plan.modes.iter().map(describe_mode).collect(),
        properties: plan.properties.iter().map(describe_property).collect(),
        by_hand: by_hand
            .map(|one| ByHand {
                what: &one.what,
                why: &one.why,
            })
            .collect(),
    })
}

/// Returns the JSON document for a rule without findings.
#[must_use]
pub fn empty_document(rule: &str) -> Value {
    json!(FixDocument {
        schema: SCHEMA_VERSION,
        rule,
        found: 0,
        became: "nothing",
        change: None,
        may_lock_out: false,
        files: Vec::new(),
        modes: Vec::new(),
        properties: Vec::new(),
        by_hand: Vec::new(),
    })
}

fn describe_property(one: &PropertyChange) -> Property<'_> {
    Property {
        dataset: &one.dataset,
        property: &one.property,
        before: &one.before,
        after: &one.after,
    }
}

fn describe_mode(mode: &ModeChange) -> FileMode<'_> {
    FileMode {
        path: &mode.path,
        real: mode.real.to_string_lossy().into_owned(),
        before: format!("{:04o}", mode.before),
        after: format!("{:04o}", mode.after),
    }
}

fn describe_file(file: &FileChange) -> File<'_> {
    File {
        path: &file.path,
        real: file.real.to_string_lossy().into_owned(),
        new: file.is_new(),
        lines: shown_hunks(file)
            .into_iter()
            .map(|hunk| Lines {
                line: hunk.line,
                before: hunk.before,
                after: hunk.after,
            })
            .collect(),
        validate: &file.validate,
        reload: &file.reload,
    }
}
