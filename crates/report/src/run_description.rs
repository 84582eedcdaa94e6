//! Describes a run in a few lines, which are the same in terminal, Markdown and HTML. The figures of a run are in
//! `terminal`, `markdown` and `html`.

use assay_model::run::{Origin, RunState};
use assay_model::target::TargetKind;
use assay_model::{Bytes, Facts, Nanos, Plan, Run, TargetInfo};
use assay_render::text::escape_line;
use assay_render::units::{format_count, format_timestamp};

/// Formats the title of a run, such as `quick: What does this storage do, in about a minute?`
pub(crate) fn format_title(run: &Run) -> String {
    let (name, title) = (escape_line(&run.plan.name), escape_line(&run.plan.title));
    match (name.is_empty(), title.is_empty()) {
        (true, true) => "run".to_owned(),
        (false, true) => name,
        (true, false) => title,
        (false, false) => format!("{name}: {title}"),
    }
}

/// Returns the heading of operations per second for a plan: `IOPS` for I/O, `requests/s`, `logins/s`, or `per s` if the
/// loads of the plan differ.
pub(crate) fn rate_heading(plan: &Plan) -> String {
    let mut operations: Vec<&str> = plan
        .workloads
        .iter()
        .map(|workload| workload.load.operation())
        .collect();
    operations.sort_unstable();
    operations.dedup();
    match operations[..] {
        [] | ["I/O"] => "IOPS".to_owned(),
        [one] => format!("{one}s/s"),
        _ => "per s".to_owned(),
    }
}

/// Returns the name of the run in messages: `run 3`, or the file that the run was imported from.
pub(crate) fn run_name(run: &Run) -> String {
    match (&run.origin, run.id.0) {
        (Origin::Imported { file }, 0) => escape_line(file),
        (_, 0) => "run, not stored".to_owned(),
        (_, id) => format!("run {id}"),
    }
}

/// Formats time, rounds, duration and progress: `2026-11-21 09:30 UTC, 5 rounds, 1 m 12 s,
/// complete`.
pub(crate) fn format_time_and_progress(run: &Run) -> String {
    let mut parts = vec![format_timestamp(run.started)];
    if run.plan.rounds > 0 {
        parts.push(format_count(run.plan.rounds as usize, "round"));
    }
    if let Some(ended) = run.ended {
        let seconds = ended.duration_since(run.started).as_secs_f64();
        parts.push(Nanos::from_secs_f64(seconds).to_string());
    }
    parts.push(
        match run.state {
            RunState::Running => "not finished: still going on, or cut off",
            RunState::Complete => "complete",
            RunState::Interrupted => "interrupted",
            RunState::Failed => "ended with an error",
        }
        .to_owned(),
    );
    if let Origin::Imported { file } = &run.origin {
        parts.push(format!("imported from {}", escape_line(file)));
    }
    parts.join(", ")
}

/// Describes the storage below a target: `ext4 on /dev/vda2; disk vda: QEMU HARDDISK`.
pub(crate) fn describe_storage(facts: &Facts, target: &TargetInfo) -> Option<String> {
    let mut parts = Vec::new();
    match (&target.fs_type, &target.mount_source) {
        (Some(fs), Some(source)) if source != fs => {
            parts.push(format!("{} on {}", escape_line(fs), escape_line(source)));
        }
        (Some(fs), _) => parts.push(escape_line(fs)),
        (None, _) if target.kind == TargetKind::BlockDevice => {
            parts.push("block device, no file system".to_owned());
        }
        (None, _) => {}
    }
    parts.extend(
        target
            .disks
            .iter()
            .map(|disk| self::describe_disk(facts, disk)),
    );
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Describes a disk from the known facts: `vda: QEMU HARDDISK, rotational`.
fn describe_disk(facts: &Facts, disk: &str) -> String {
    let fact = |name: &str| facts.get(&format!("disk.{disk}.{name}"));
    let mut parts = Vec::new();
    if let Some(model) = fact("model").and_then(|value| value.as_str()) {
        parts.push(escape_line(model.trim()));
    }
    if let Some(transport) = fact("transport").and_then(|value| value.as_str()) {
        parts.push(escape_line(transport));
    }
    if let Some(size) = fact("size").and_then(serde_json::Value::as_u64) {
        parts.push(Bytes(size).to_string());
    }
    match fact("rotational").and_then(|value| value.as_bool().or(Some(value.as_u64()? != 0))) {
        Some(true) => parts.push("said to be rotational".to_owned()),
        Some(false) => parts.push("said to be non-rotational".to_owned()),
        None => {}
    }
    match parts.is_empty() {
        true => format!("disk {}", escape_line(disk)),
        false => format!("disk {}: {}", escape_line(disk), parts.join(", ")),
    }
}

/// Describes file size and memory: `test file 1 GiB, memory 15.6 GiB`.
pub(crate) fn describe_sizes(facts: &Facts, target: &TargetInfo) -> Option<String> {
    let mut parts = Vec::new();
    if target.size.0 > 0 {
        let what = match target.kind {
            TargetKind::Directory => "test file",
            TargetKind::File => "file",
            TargetKind::BlockDevice => "device",
            TargetKind::Server => "server",
        };
        parts.push(format!("{what} {}", target.size));
    }
    if let Some(ram) = facts.u64("memory.total") {
        parts.push(format!("memory {}", Bytes(ram)));
    }
    if let Some(arc) = facts
        .u64("zfs.arc.c_max")
        .filter(|_| target.fs_type.as_deref() == Some("zfs"))
    {
        parts.push(format!("ARC at most {}", Bytes(arc)));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Describes the machine in one line: processor, kernel, and whether the machine is virtual.
pub(crate) fn describe_machine(facts: &Facts) -> Option<String> {
    let keys = [
        "cpu.model",
        "kernel.release",
        "virtualisation.vm",
        "virtualisation.container",
    ];
    let parts: Vec<String> = keys
        .into_iter()
        .filter_map(|key| Some((key, facts.str(key)?)))
        .filter(|(_, value)| !value.trim().is_empty() && *value != "none")
        .map(|(key, value)| match key {
            "kernel.release" => format!("Linux {}", escape_line(value)),
            "virtualisation.vm" => format!("virtual machine ({})", escape_line(value)),
            "virtualisation.container" => format!("container ({})", escape_line(value)),
            _ => escape_line(value),
        })
        .collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}
