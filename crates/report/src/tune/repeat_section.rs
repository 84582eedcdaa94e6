//! The section of a notebook that describes how to repeat the session.

use super::TuneView;
use super::notebook::NotebookSection;

/// Writes the section with the command line of the session and its seed.
pub(super) fn write_repeat_section(view: &TuneView<'_>) -> NotebookSection {
    let record = view.record;
    let plan = &record.plan;
    let words = record.command.iter().map(|word| quote_word(word));
    let mut command: Vec<String> = ["assay".to_owned()].into_iter().chain(words).collect();
    if !record.command.iter().any(|word| word.starts_with("--seed")) {
        command.push(format!("--seed {}", plan.seed));
    }
    let command = command.join(" ");
    NotebookSection {
        heading: "How to repeat it".to_owned(),
        paragraphs: vec![format!(
            "Seed {}, slots of {} after {} of load. All that was seen: `assay tune --show {} --json`.",
            plan.seed, record.slot, record.washout, view.id
        )],
        files: vec![("command".to_owned(), format!("{command}\n"))],
        ..NotebookSection::default()
    }
}

/// Quotes a word for a POSIX shell.
fn quote_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}
