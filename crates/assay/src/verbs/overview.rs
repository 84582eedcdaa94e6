//! `assay` alone: what it sees and what to do next.

use crate::context::{self, print};
use crate::global::Global;
use crate::status::Status;
use assay_facts::Options;
use assay_host::{Host as _, Live};
use assay_loads::fio::Fio;
use assay_model::run::RunState;
use assay_model::{Bytes, Facts};
use std::fmt::Write as _;

/// Runs without a verb. Nothing is made or changed: a store that is not there is not created.
pub fn run(global: &Global) -> anyhow::Result<Status> {
    let facts = assay_facts::collect(&Live, &Options::default());
    let mut out = format!(
        "assay {}: test server tuning advice on the server it is meant for\n\n",
        env!("CARGO_PKG_VERSION")
    );
    let mut line = |label: &str, text: String| {
        let _ = writeln!(out, "{label:<10} {text}");
    };
    line("Machine", machine(&facts));
    line("Here", here());
    line(
        "Load",
        Fio::find(&Live, None).map_or_else(|error| error.to_string(), |fio| fio.version),
    );
    line("Measured", measured(global)?);
    out.push_str(NEXT);
    print(&out)?;
    super::trial::name_left_elsewhere()?;
    Ok(Status::Ok)
}

const NEXT: &str = "
Next
  assay run quick .        what the storage here does, in a minute
  assay advice             what the blogs advise, what is true of it, does it apply here?
  assay trial ADVICE .     test a piece of it here, and set everything back
  assay facts              what is true of this machine, and where that was read
  assay lint 'fio …'       what a benchmark command from a blog really measures
  assay --help             everything else
";

fn machine(facts: &Facts) -> String {
    let mut parts = Vec::new();
    if let Some(model) = facts.str("cpu.model") {
        let threads = facts.u64("cpu.threads").unwrap_or(0);
        parts.push(format!("{model}, {threads} CPUs"));
    }
    parts.extend(
        facts
            .u64("memory.total")
            .map(|bytes| Bytes(bytes).to_string()),
    );
    parts.extend(
        facts
            .str("kernel.release")
            .map(|release| format!("Linux {release}")),
    );
    for (key, place) in [
        ("virtualisation.vm", "virtual machine"),
        ("virtualisation.container", "container"),
    ] {
        let kind = facts.str(key).filter(|kind| *kind != "none");
        parts.extend(kind.map(|kind| format!("in a {place} ({kind})")));
    }
    parts.join("; ")
}

fn here() -> String {
    let Ok(path) = std::env::current_dir() else {
        return "the current directory is gone".to_owned();
    };
    let shown = path.to_string_lossy().escape_debug().to_string();
    match assay_facts::target(&Live, &path) {
        Err(error) => error.to_string(),
        Ok(target) => {
            let fs = target
                .fs_type
                .unwrap_or_else(|| "an unknown file system".to_owned());
            let source = target
                .mount_source
                .map(|source| format!(" ({source})"))
                .unwrap_or_default();
            let free = Live
                .statfs(&path)
                .map(|fs| format!(", {} free", Bytes(fs.available)));
            format!("{shown} on {fs}{source}{}", free.unwrap_or_default())
        }
    }
}

fn measured(global: &Global) -> anyhow::Result<String> {
    const NOTHING: &str = "nothing yet";
    let Some(store) = context::existing_store(global)? else {
        return Ok(NOTHING.to_owned());
    };
    let runs = store.runs()?;
    let Some(last) = runs.first() else {
        return Ok(NOTHING.to_owned());
    };
    let hint = match last.state {
        RunState::Complete => format!("assay show {}", last.id),
        _ => format!("assay run --resume {}", last.id),
    };
    Ok(format!(
        "{} run{}, the last: {} of {} ({hint})",
        runs.len(),
        if runs.len() == 1 { "" } else { "s" },
        last.plan,
        last.started.strftime("%Y-%m-%d %H:%M UTC"),
    ))
}
