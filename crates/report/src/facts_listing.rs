//! Lists facts for a terminal, in groups. A fact takes one line if it fits. The facts are collected in `assay-facts`.

use assay_model::{Bytes, Fact, FactKind, FactValue, Facts};
use assay_render::Style;
use assay_render::text::{escape_line, measure_width, pad_right, wrap_lines};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Maximum width of the key column. Values of longer keys are not aligned with the other values.
const WIDEST_KEY: usize = 22;

/// Formats all facts, grouped by the first part of their keys.
#[must_use]
pub fn format_listing(facts: &Facts, style: Style) -> String {
    // Widest name of each group.
    let mut widest: BTreeMap<&str, usize> = BTreeMap::new();
    for key in facts.map.keys() {
        let (group, name) = split_key(key);
        let room = widest.entry(group).or_default();
        *room = (*room).max(measure_width(&escape_line(name)));
    }
    let mut out = String::new();
    let mut before = None;
    let mut unknown = 0usize;
    for (key, fact) in &facts.map {
        let (group, name) = split_key(key);
        if before != Some(group) {
            let gap = if before.is_none() { "" } else { "\n" };
            let _ = writeln!(out, "{gap}{}", style.paint("1", &escape_line(group)));
            before = Some(group);
        }
        let column = widest[group].min(WIDEST_KEY) + 4;
        unknown += usize::from(matches!(fact.value, FactValue::Unknown(_)));
        write_fact(&mut out, style, &escape_line(name), column, fact);
    }
    if facts.map.is_empty() {
        out.push_str("no facts: nothing of what was asked for exists here\n");
    }
    if unknown > 0 {
        let _ = writeln!(
            out,
            "\n{unknown} unknown: they exist, or may, but could not be read"
        );
    }
    out
}

/// Splits a key into group and name: `disk.vda.scheduler` into `disk.vda` and `scheduler`, `memory.total` into `memory`
/// and `total`.
fn split_key(key: &str) -> (&str, &str) {
    let grouped = [
        "disk.",
        "mount.",
        "sysctl.vm",
        "sysctl.fs",
        "zfs.arc",
        "zfs.param",
        "btrfs.",
        "ext4.",
        "dm.",
    ];
    let first = key.find('.');
    let deep = grouped.iter().any(|start| key.starts_with(start));
    let second = first
        .and_then(|at| Some(at + 1 + key[at + 1..].find('.')?))
        .filter(|_| deep);
    match second.or(first) {
        Some(at) => (&key[..at], &key[at + 1..]),
        None => (key, ""),
    }
}

fn write_fact(out: &mut String, style: Style, name: &str, column: usize, fact: &Fact) {
    let columns = style.columns();
    let (sgr, value) = match &fact.value {
        FactValue::Known(value) => ("", format_fact_value(name, value)),
        FactValue::Unknown(reason) => ("33", format!("unknown: {}", escape_line(reason))),
    };
    let kind = match fact.kind {
        FactKind::Default => " (default)",
        FactKind::Configured => " (configured)",
        FactKind::Runtime => "",
    };
    let source = format!("{}{kind}", escape_line(&fact.place.to_string()));
    let mut lead = format!("  {}", pad_right(name, column.saturating_sub(2)));
    // A long key gets a separate line.
    if measure_width(&lead) > column || !lead.ends_with("  ") {
        let _ = writeln!(out, "{}", lead.trim_end());
        lead = " ".repeat(column);
    }
    let lines = wrap_lines(&value, columns.saturating_sub(column));
    let last = lines.len() - 1;
    for (at, line) in lines.iter().enumerate() {
        let pad = if at == 0 {
            lead.clone()
        } else {
            " ".repeat(column)
        };
        let _ = write!(out, "{pad}{}", style.paint(sgr, line));
        if at < last {
            out.push('\n');
        }
    }
    if column + measure_width(&lines[last]) + 2 + measure_width(&source) <= columns {
        let _ = writeln!(out, "  {}", style.paint("2", &source));
    } else {
        out.push('\n');
        for line in wrap_path(&source, columns.saturating_sub(column + 2)) {
            let _ = writeln!(out, "{}{}", " ".repeat(column + 2), style.paint("2", &line));
        }
    }
}

/// Wraps text like [`wrap_lines`], but also breaks a path after a slash.
fn wrap_path(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for part in text.split_inclusive(['/', ' ']) {
        let line = lines.last().map_or(0, |line| measure_width(line));
        if line > 0 && line + measure_width(part.trim_end()) > columns {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(part);
        }
    }
    lines
        .iter()
        .flat_map(|line| wrap_lines(line, columns))
        .collect()
}

/// Formats a value. A large size in bytes is also printed with a unit.
fn format_fact_value(name: &str, value: &Value) -> String {
    match value {
        Value::String(text) => escape_line(text),
        Value::Array(items) => items
            .iter()
            .map(|item| format_fact_value("", item))
            .collect::<Vec<_>>()
            .join(", "),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => match number
            .as_u64()
            .filter(|bytes| is_size(name) && *bytes >= 1 << 20)
        {
            Some(bytes) => format!("{number} ({})", Bytes(bytes)),
            None => number.to_string(),
        },
        other => escape_line(&other.to_string()),
    }
}

fn is_size(name: &str) -> bool {
    let ends = [
        "size",
        "total",
        "free",
        "available",
        "dirty",
        "memory",
        "c_max",
        "c_min",
        "start",
        "read_ahead",
    ];
    ends.iter().any(|end| name.ends_with(end)) && !name.ends_with("hugepages_total")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups() {
        assert_eq!(split_key("memory.total"), ("memory", "total"));
        assert_eq!(
            split_key("disk.vda.partition.vda1.start"),
            ("disk.vda", "partition.vda1.start")
        );
        assert_eq!(
            split_key("sysctl.vm.dirty_ratio"),
            ("sysctl.vm", "dirty_ratio")
        );
        assert_eq!(split_key("mount"), ("mount", ""));
    }

    #[test]
    fn unknown_is_marked_and_hostile_text_is_escaped() {
        let mut facts = Facts::default();
        facts.known(
            "disk.vda.model",
            "evil\u{1b}[2J",
            FactKind::Runtime,
            "/sys/x",
        );
        facts.unknown(
            "disk.vda.size",
            "Permission denied",
            FactKind::Runtime,
            "/sys/y",
        );
        let text = format_listing(
            &facts,
            Style {
                color: false,
                width: 80,
            },
        );
        insta::assert_snapshot!(text, @r"
        disk.vda
          model  evil\u{1b}[2J  /sys/x
          size   unknown: Permission denied  /sys/y

        1 unknown: they exist, or may, but could not be read
        ");
        assert!(text.lines().all(|line| measure_width(line) <= 80));
    }
}
