//! `assay net compare`: compares two runs.

use crate::context::{print, style, write_file};
use crate::global::Global;
use crate::status::Status;
use anyhow::Context as _;
use assay_net::result::Run;
use assay_report::net::{NamedRun, compared, compared_json, compared_page};
use std::path::PathBuf;

/// Arguments of `assay net compare`.
#[derive(clap::Args)]
pub struct Args {
    /// Files that `assay net run --json` or `assay lab net --json` wrote
    #[arg(value_name = "FILE", num_args = 2, required = true)]
    files: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Also write an HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    let read = |at: usize| {
        let name = args.files.get(at).map_or("", String::as_str);
        let text = super::read(name)?;
        let value: serde_json::Value =
            serde_json::from_str(&text).with_context(|| format!("{name} is no JSON"))?;
        // Raw records, judged by the current rules.
        let run: Run = serde_json::from_value(value["run"].clone())
            .with_context(|| format!("{name} is no result of `assay net run --json`"))?;
        run.plan
            .check()
            .map_err(|why| anyhow::anyhow!("{name}: {why}"))?;
        anyhow::Ok(run)
    };
    let (one, two) = (read(0)?, read(1)?);
    let name = |at: usize| args.files.get(at).cloned().unwrap_or_default();
    let runs = [
        NamedRun {
            name: name(0),
            run: &one,
        },
        NamedRun {
            name: name(1),
            run: &two,
        },
    ];
    if let Some(path) = &args.html {
        write_file(path, &compared_page(&runs, &jiff::tz::TimeZone::system()))?;
    }
    match args.json {
        true => print(&compared_json(&runs))?,
        false => print(&compared(&runs, style(global)))?,
    }
    Ok(Status::Ok)
}
