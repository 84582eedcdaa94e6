//! `assay` without a verb: prints an overview of this machine, and the most useful next commands.

mod next;

use crate::context::{self, print};
use crate::global::Global;
use crate::status::Status;
use assay_changes::Journal;
use assay_facts::CollectOptions;
use assay_host::{Host as _, LiveHost};
use assay_loads::fio::Fio;
use assay_model::target::TargetInfo;
use assay_model::{Bytes, Facts};
use assay_store::RunRow;

/// Runs assay without a verb. Changes nothing, and does not create a store.
pub fn run(global: &Global) -> anyhow::Result<Status> {
    let facts = assay_facts::collect(&LiveHost, &CollectOptions::default());
    let mut out = format!(
        "assay {}: test server tuning advice on the server it is meant for\n\n",
        env!("CARGO_PKG_VERSION")
    );
    let style = context::style(global);
    let mut line = |label: &str, text: String| {
        style.write_paragraph(&mut out, label, 11, &text);
    };
    line("Machine", machine(&facts));
    let current = std::env::current_dir();
    let target = match &current {
        Ok(path) => assay_facts::target(&LiveHost, path).map_err(|error| error.to_string()),
        Err(_) => Err("the current directory is gone".to_owned()),
    };
    line("Here", here(target.as_ref()));
    line(
        "Load",
        Fio::find(&LiveHost, None).map_or_else(|error| error.to_string(), |fio| fio.version),
    );
    let store_rows = match context::existing_store(global)? {
        Some(store) => Some(store.runs()?),
        None => None,
    };
    line(
        "Measured",
        measured(store_rows.as_deref().unwrap_or_default()),
    );
    let runs = store_rows.as_deref().unwrap_or_default();
    let journal = context::journal_dir().and_then(|dir| Ok(Journal::look_at(&dir)?));
    let proposals = next::propose(&next::Seen {
        facts: &facts,
        target: target.as_ref().ok(),
        runs,
        journal: journal.ok().as_ref(),
    });
    let width = proposals.iter().map(|one| one.command.len()).max();
    let indent = width.unwrap_or_default() + 4;
    out.push_str("\nNext\n");
    for one in &proposals {
        let command = format!("  {}  ", one.command);
        style.write_paragraph(&mut out, &command, indent, &one.reason);
    }
    out.push_str("\nAll commands: assay --help\n");
    print(&out)?;
    super::trial::name_left_elsewhere()?;
    Ok(Status::Ok)
}

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

fn here(target: Result<&TargetInfo, &String>) -> String {
    let target = match target {
        Ok(target) => target,
        Err(error) => return error.clone(),
    };
    let Ok(path) = std::env::current_dir() else {
        return String::new();
    };
    let shown = path.to_string_lossy().escape_debug().to_string();
    let fs = target
        .fs_type
        .as_deref()
        .unwrap_or("an unknown file system");
    let source = match &target.mount_source {
        Some(source) => format!(" ({source})"),
        None => String::new(),
    };
    let free = LiveHost
        .statfs(&path)
        .map(|fs| format!(", {} free", Bytes(fs.available)));
    format!("{shown} on {fs}{source}{}", free.unwrap_or_default())
}

fn measured(runs: &[RunRow]) -> String {
    let Some(last) = runs.first() else {
        return "nothing yet".to_owned();
    };
    format!(
        "{} run{}, the last: {} of {} (assay report {})",
        runs.len(),
        if runs.len() == 1 { "" } else { "s" },
        last.plan,
        last.started.strftime("%Y-%m-%d %H:%M UTC"),
        last.id,
    )
}
