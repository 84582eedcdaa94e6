//! What was measured, in a few lines: the same words in the terminal, in Markdown and in HTML.

use assay_model::run::{Origin, RunState};
use assay_model::target::TargetKind;
use assay_model::{Bytes, Facts, Nanos, Plan, Run, TargetInfo};
use assay_render::text::clean;
use assay_render::units::{count, time};

/// `quick: What does this storage do, in about a minute?`
pub(crate) fn title(run: &Run) -> String {
    let (name, title) = (clean(&run.plan.name), clean(&run.plan.title));
    match (name.is_empty(), title.is_empty()) {
        (true, true) => "run".to_owned(),
        (false, true) => name,
        (true, false) => title,
        (false, false) => format!("{name}: {title}"),
    }
}

/// What operations per second are called in the tables of a plan: `IOPS` for I/O, `requests/s`, `logins/s`;
/// `per s` where its loads do different things.
pub(crate) fn rates(plan: &Plan) -> String {
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

/// How the run is named to the user: `run 3`, or by its file when it was imported.
pub(crate) fn name(run: &Run) -> String {
    match (&run.origin, run.id.0) {
        (Origin::Imported { file }, 0) => clean(file),
        (_, 0) => "run, not stored".to_owned(),
        (_, id) => format!("run {id}"),
    }
}

/// When, how long, how far: `2026-11-21 09:30 UTC, 5 rounds, 1 m 12 s, complete`.
pub(crate) fn when(run: &Run) -> String {
    let mut parts = vec![time(run.started)];
    if run.plan.rounds > 0 {
        parts.push(count(run.plan.rounds as usize, "round"));
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
        parts.push(format!("imported from {}", clean(file)));
    }
    parts.join(", ")
}

/// What lies below a target: `ext4 on /dev/vda2; disk vda: QEMU HARDDISK`.
pub(crate) fn storage(facts: &Facts, target: &TargetInfo) -> Option<String> {
    let mut parts = Vec::new();
    match (&target.fs_type, &target.mount_source) {
        (Some(fs), Some(source)) if source != fs => {
            parts.push(format!("{} on {}", clean(fs), clean(source)));
        }
        (Some(fs), _) => parts.push(clean(fs)),
        (None, _) if target.kind == TargetKind::BlockDevice => {
            parts.push("block device, no file system".to_owned());
        }
        (None, _) => {}
    }
    parts.extend(target.disks.iter().map(|disk| self::disk(facts, disk)));
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// `vda: QEMU HARDDISK, rotational`, as far as the facts say.
fn disk(facts: &Facts, disk: &str) -> String {
    let fact = |name: &str| facts.get(&format!("disk.{disk}.{name}"));
    let mut said = Vec::new();
    if let Some(model) = fact("model").and_then(|value| value.as_str()) {
        said.push(clean(model.trim()));
    }
    if let Some(transport) = fact("transport").and_then(|value| value.as_str()) {
        said.push(clean(transport));
    }
    if let Some(size) = fact("size").and_then(serde_json::Value::as_u64) {
        said.push(Bytes(size).to_string());
    }
    match fact("rotational").and_then(|value| value.as_bool().or(Some(value.as_u64()? != 0))) {
        Some(true) => said.push("said to be rotational".to_owned()),
        Some(false) => said.push("said to be non-rotational".to_owned()),
        None => {}
    }
    match said.is_empty() {
        true => format!("disk {}", clean(disk)),
        false => format!("disk {}: {}", clean(disk), said.join(", ")),
    }
}

/// File size against memory: `test file 1 GiB, memory 15.6 GiB`.
pub(crate) fn sizes(facts: &Facts, target: &TargetInfo) -> Option<String> {
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

/// The machine in one line: processor, kernel, whether it is virtual.
pub(crate) fn machine(facts: &Facts) -> Option<String> {
    let keys = [
        "cpu.model",
        "kernel.release",
        "virtualisation.vm",
        "virtualisation.container",
    ];
    let said: Vec<String> = keys
        .into_iter()
        .filter_map(|key| Some((key, facts.str(key)?)))
        .filter(|(_, value)| !value.trim().is_empty() && *value != "none")
        .map(|(key, value)| match key {
            "kernel.release" => format!("Linux {}", clean(value)),
            "virtualisation.vm" => format!("virtual machine ({})", clean(value)),
            "virtualisation.container" => format!("container ({})", clean(value)),
            _ => clean(value),
        })
        .collect();
    (!said.is_empty()).then(|| said.join("; "))
}
