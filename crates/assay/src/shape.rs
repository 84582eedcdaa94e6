//! Formats of a report: terminal text, JSON, Markdown and HTML page.

use crate::context::{print, write_report};
use std::path::PathBuf;

/// Requested format of a report.
#[derive(Clone, clap::Args)]
pub struct Shape {
    /// Print one JSON document on standard output
    #[arg(long)]
    pub json: bool,
    /// Print Markdown on standard output
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Write an HTML report
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

impl Shape {
    /// Writes the HTML report if requested, and prints its path.
    pub fn report(&self, html: impl FnOnce() -> String) -> anyhow::Result<()> {
        let Some(path) = &self.html else {
            return Ok(());
        };
        write_report(path, &html())
    }

    /// Prints the report in the requested format.
    pub fn print(
        &self,
        json: impl FnOnce() -> String,
        markdown: impl FnOnce() -> String,
        terminal: impl FnOnce() -> String,
    ) -> anyhow::Result<()> {
        print(&match (self.json, self.markdown) {
            (true, _) => json(),
            (_, true) => markdown(),
            _ => terminal(),
        })
    }
}
