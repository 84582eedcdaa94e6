//! Formats one page of advice for the terminal, and whether the advice applies here.

use super::{Entry, colour, standing};
use assay_advice::{Applicability, Evidence, aim};
use assay_model::Bytes;
use assay_model::advice::{ActsOn, Advice, RiskLevel, TargetKind};
use assay_pool::Pooled;
use assay_render::Style;
use assay_render::text::{escape_line, measure_width, pad_right, wrap_lines};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Width of the labels in columns.
const LABEL: usize = 11;

/// Formats the page. `file` is the path of its source.
pub(super) fn page(
    entry: &Entry<'_>,
    file: &str,
    given: &BTreeMap<String, String>,
    style: Style,
) -> anyhow::Result<String> {
    let advice = entry.advice;
    let mut out = Out {
        text: String::new(),
        style,
        columns: style.width.clamp(40, 100),
    };
    let name = format!("{} ({}/{})", advice.title, advice.domain, advice.id);
    out.line("1", &escape_line(&name));
    out.paragraph(0, &advice.statement);
    out.gap();
    let said = standing(advice);
    let label = pad_right("Standing", LABEL);
    let (label, word) = (style.paint("1", &label), style.paint(colour(said), said));
    let _ = writeln!(out.text, "{label}{word}");
    out.paragraph(LABEL, &advice.literature.text);
    out.labelled("Claimed", &claimed(advice));
    out.labelled("Predicted", &advice.predicts);
    let risk = format!("{}. {}", risk(advice.risk.level), advice.risk.text);
    out.labelled("Risk", &risk);
    match (&advice.trial, &advice.check) {
        (None, Some(_)) => {
            let ask = format!("`assay check --only {}` says it.", advice.id);
            out.labelled("Here", &ask);
        }
        _ => here(&mut out, &entry.here),
    }
    for one in &entry.elsewhere {
        elsewhere(&mut out, one);
    }
    parameters(&mut out, advice);
    trial(&mut out, advice, given)?;
    for (label, text) in advice.acts.iter().flat_map(ActsOn::describe) {
        out.labelled(label, &text);
    }
    out.gap();
    out.markdown(&advice.page);
    out.gap();
    out.line("2", &format!("From {}", escape_line(file)));
    Ok(out.text)
}

/// Formats the page of a rule: the reason, the remedy and the references.
pub(super) fn explain(advice: &Advice, style: Style) -> String {
    let mut out = Out {
        text: String::new(),
        style,
        columns: style.width.clamp(40, 100),
    };
    let name = format!("{} ({}/{})", advice.title, advice.domain, advice.id);
    out.line("1", &escape_line(&name));
    out.paragraph(0, &advice.statement);
    out.gap();
    out.labelled("Standing", standing(advice));
    out.paragraph(LABEL, &advice.literature.text);
    out.labelled("Claimed", &claimed(advice));
    let risk = format!("{}. {}", risk(advice.risk.level), advice.risk.text);
    out.labelled("Risk", &risk);
    if let Some(check) = &advice.check {
        out.labelled("Severity", check.severity.name());
        out.labelled("Violated", &check.violated);
        for flip in &check.flips {
            out.item(LABEL, flip);
        }
    }
    out.gap();
    out.markdown(&advice.page);
    out.text
}

fn claimed(advice: &Advice) -> String {
    let source = &advice.source;
    let figure = source.figure.as_ref();
    let figure = figure.map_or_else(String::new, |figure| format!(" Figure: {figure}."));
    format!("{} ({}){figure}", source.claimed, source.who)
}

fn risk(level: RiskLevel) -> &'static str {
    match level {
        RiskLevel::None => "None",
        RiskLevel::Low => "Low",
        RiskLevel::Service => "A service may stop working until the change is reverted",
        RiskLevel::Lockout => "You may lock yourself out",
        RiskLevel::DataLoss => "Data may be lost",
    }
}

fn here(out: &mut Out, here: &Applicability) {
    match here {
        Applicability::Applies { .. } => out.labelled("Here", "it applies."),
        Applicability::Not { reasons, .. } => {
            out.labelled("Here", "it does not apply:");
            for reason in reasons {
                out.item(LABEL, &reason.otherwise);
                for key in &reason.absent {
                    out.item(LABEL + 2, &format!("{key}: there is no such fact here"));
                }
            }
        }
        Applicability::Unknown { missing, .. } => {
            out.labelled("Here", "it cannot be said whether it applies:");
            for missing in missing {
                out.item(LABEL, &format!("{}: {}", missing.key, missing.why));
            }
        }
    }
    evidence(out, here.evidence());
}

/// Adds the results of trials on other machines.
fn elsewhere(out: &mut Out, one: &Pooled) {
    let set = one.parameters.iter();
    let set: String = set
        .map(|(name, value)| format!("{name}={value}, "))
        .collect();
    for (number, line) in assay_report::pool::format_effect_lines(one)
        .iter()
        .enumerate()
    {
        match number {
            0 => out.labelled("Elsewhere", &format!("{set}{}: {line}", one.metric)),
            _ => out.item(LABEL, line),
        }
    }
}

fn evidence(out: &mut Out, evidence: &[Evidence]) {
    if evidence.is_empty() {
        return;
    }
    out.labelled("Rests on", "");
    let widest = evidence.iter().map(|item| measure_width(&item.key)).max();
    let key_width = widest.unwrap_or(0).min(34) + 2;
    for item in evidence {
        let text = format!("{}  [{}]", readable(item), item.place);
        let key = escape_line(&item.key);
        if measure_width(&key) + 2 > key_width {
            out.paragraph(4, &key);
            out.hanging("      ", &text);
        } else {
            out.hanging(&format!("    {}", pad_right(&key, key_width)), &text);
        }
    }
}

/// Formats an item of evidence. Numbers of bytes get a unit, because they are hard to read without one.
fn readable(item: &Evidence) -> String {
    let sizes = ["free", "size", "read_ahead", "arc_max"];
    let is_size = sizes.iter().any(|end| item.key.ends_with(end));
    match &item.value {
        serde_json::Value::String(text) => text.clone(),
        value => match value.as_u64().filter(|_| is_size) {
            Some(bytes) => Bytes(bytes).to_string(),
            None => value.to_string(),
        },
    }
}

fn parameters(out: &mut Out, advice: &Advice) {
    if advice.parameters.is_empty() {
        return;
    }
    out.labelled("Settings", "");
    for (name, parameter) in &advice.parameters {
        let default = match &parameter.default {
            Some(default) => format!(" [{default}]"),
            None => " (must be given)".to_owned(),
        };
        let choices = match parameter.choices.is_empty() {
            true => String::new(),
            false => format!("; one of {}", parameter.choices.join(", ")),
        };
        out.item(
            4,
            &format!("--set {name}=…  {}{default}{choices}", parameter.about),
        );
    }
}

/// Returns the command that tests the advice by a trial.
fn trial(
    out: &mut Out,
    advice: &Advice,
    given: &BTreeMap<String, String>,
) -> Result<(), assay_advice::ResolveError> {
    if advice.trial.is_none() {
        out.labelled("Test", "it cannot be tried in place; the page says why.");
        return Ok(());
    }
    // An invalid parameter is an error of the user; a missing one is not.
    let mut whole = given.clone();
    for (name, parameter) in &advice.parameters {
        if parameter.default.is_none() {
            let stand_in = parameter.choices.first().map_or("1", String::as_str);
            whole
                .entry(name.clone())
                .or_insert_with(|| stand_in.to_owned());
        }
    }
    let kind = aim(advice, &whole, Some("x"))?.kind;
    let mut command = format!("assay trial {}", advice.id);
    if aim(advice, &whole, None).is_err() {
        command.push(' ');
        command.push_str(match kind {
            TargetKind::Directory | TargetKind::Mount => "DIRECTORY",
            TargetKind::Device => "DEVICE",
            TargetKind::Dataset => "POOL/DATASET",
            TargetKind::Address => "ADDRESS",
        });
    }
    for (name, parameter) in &advice.parameters {
        match given.get(name) {
            Some(value) => {
                let _ = write!(command, " --set {name}={value}");
            }
            None if parameter.default.is_none() => {
                let _ = write!(command, " --set {name}=…");
            }
            None => {}
        }
    }
    out.labelled("Test", &command);
    Ok(())
}

struct Out {
    text: String,
    style: Style,
    columns: usize,
}

impl Out {
    fn gap(&mut self) {
        self.text.push('\n');
    }

    fn line(&mut self, sgr: &str, text: &str) {
        for line in wrap_lines(text, self.columns) {
            let _ = writeln!(self.text, "{}", self.style.paint(sgr, &line));
        }
    }

    fn paragraph(&mut self, indent: usize, text: &str) {
        self.hanging(&" ".repeat(indent), text);
    }

    fn item(&mut self, indent: usize, text: &str) {
        self.hanging(&format!("{}- ", " ".repeat(indent)), text);
    }

    /// Writes text after the prefix `lead`. Continuation lines are indented to the column after the prefix.
    fn hanging(&mut self, lead: &str, text: &str) {
        let indent = measure_width(lead);
        let columns = self.columns.saturating_sub(indent).max(20);
        let lines = wrap_lines(&escape_line(&text.replace('\n', " ")), columns);
        for (number, line) in lines.iter().enumerate() {
            let _ = match number {
                0 => writeln!(self.text, "{lead}{line}"),
                _ => writeln!(self.text, "{}{line}", " ".repeat(indent)),
            };
        }
    }

    /// Writes a label and its text.
    fn labelled(&mut self, label: &str, text: &str) {
        let columns = self.columns.saturating_sub(LABEL).max(20);
        let label = self.style.paint("1", &pad_right(label, LABEL));
        let lines = wrap_lines(&escape_line(&text.replace('\n', " ")), columns);
        for (number, line) in lines.iter().enumerate() {
            let lead = if number == 0 {
                label.clone()
            } else {
                " ".repeat(LABEL)
            };
            let _ = writeln!(self.text, "{}", format!("{lead}{line}").trim_end());
        }
    }

    /// Renders the Markdown of pages: headings, paragraphs, lists and code.
    fn markdown(&mut self, text: &str) {
        let mut paragraph = String::new();
        let mut in_code = false;
        for line in text.lines().chain([""]) {
            if line.trim_start().starts_with("```") {
                self.flush(&mut paragraph);
                in_code = !in_code;
            } else if in_code {
                let _ = writeln!(self.text, "    {}", escape_line(line));
            } else if let Some(heading) = line.strip_prefix("## ") {
                self.flush(&mut paragraph);
                self.line("1", &escape_line(heading));
            } else if line.trim().is_empty() {
                self.flush(&mut paragraph);
                self.one_gap();
            } else {
                if line.starts_with("- ") {
                    self.flush(&mut paragraph);
                }
                paragraph.push_str(if paragraph.is_empty() { "" } else { " " });
                paragraph.push_str(line.trim_end());
            }
        }
        self.flush(&mut paragraph);
    }

    fn flush(&mut self, paragraph: &mut String) {
        match paragraph.strip_prefix("- ") {
            Some(item) => self.hanging("  - ", item),
            None if paragraph.is_empty() => {}
            None => self.hanging("  ", paragraph),
        }
        paragraph.clear();
    }

    /// Writes an empty line, unless the last line is already empty.
    fn one_gap(&mut self) {
        if !self.text.ends_with("\n\n") {
            self.gap();
        }
    }
}
