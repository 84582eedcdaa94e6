//! `assay stack TARGET`: shows the layers under a path, a device or a virtual machine.

use crate::context;
use crate::global::Global;
use crate::machine_source::MachineSource;
use crate::shape::Shape;
use crate::status::{Status, Unreadable};
use anyhow::Context as _;
use assay_host::{Host, LiveHost};
use assay_model::stack::{Layer, LayerKind, Stack};
use assay_report::stack::{
    StackView, render_stack_markdown, render_stack_page, render_stack_text, stack_to_json,
};
use assay_stack::{StackError, StackTarget, collect_hints, discover};
use std::path::{Path, PathBuf};

pub(super) const EXAMPLES: &str = "\
Examples:
  assay stack                       what lies under the current directory
  assay stack /var/lib/mysql        under a path, down to the disks
  assay stack /dev/mapper/vg-data   under a block device
  assay stack web                   under the disks of a virtual machine, by its name
  assay stack 100 --html web.html   the same by its number on Proxmox, as a page with a picture
  assay stack vm.qcow2 --json       under an image, and what it is based on
  assay stack --host root@box1 /srv under a path of another machine

Nothing is changed or written. Root sees more; what could not be read is named.";

/// Finds the layers and prints them.
pub(super) fn run(
    target: Option<&Path>,
    elsewhere: &MachineSource,
    shape: &Shape,
    global: &Global,
) -> anyhow::Result<Status> {
    let (captured, target) = match (elsewhere.is_meant(), target) {
        (false, target) => (None, understand(target.unwrap_or(Path::new(".")))?),
        (true, Some(target)) => {
            let captured = elsewhere.open(&[target.to_owned()])?;
            let target = match (target.is_absolute(), target.to_str()) {
                (false, Some(name)) if target.components().count() == 1 => {
                    StackTarget::Guest(name.to_owned())
                }
                (false, _) => {
                    anyhow::bail!(
                        "{}: give the absolute path on that machine",
                        target.display()
                    )
                }
                (true, _) => StackTarget::Path(target.to_owned()),
            };
            (captured, target)
        }
        (true, None) => anyhow::bail!("name a path on that machine: assay stack --host HOST /srv"),
    };
    let host: &dyn Host = captured.as_deref().unwrap_or(&LiveHost);
    let stack = discover(host, &target).map_err(|error| match error {
        StackError::Unreadable(_) => Unreadable(error.to_string()).into(),
        error => anyhow::Error::new(error),
    })?;
    let hints = collect_hints(&stack);
    // The next commands apply to the other machine.
    let next = match captured.is_some() {
        true => Vec::new(),
        false => next(&stack, &target),
    };
    let view = StackView {
        stack: &stack,
        hints: &hints,
        next: &next,
    };
    if let Some(file) = &shape.html {
        context::write_file(file, &render_stack_page(&view))?;
    }
    shape.print(
        || stack_to_json(&view),
        || render_stack_markdown(&view),
        || render_stack_text(&view, context::style(global)),
    )?;
    Ok(Status::Ok)
}

/// Interprets the target. It is a path if it exists or looks like a path, else the name of a virtual machine.
pub(super) fn understand(target: &Path) -> anyhow::Result<StackTarget> {
    let there = target.symlink_metadata().is_ok();
    let path = there || target.components().count() != 1 || target.is_absolute();
    match (path, target.to_str()) {
        (false, Some(name)) => Ok(StackTarget::Guest(name.to_owned())),
        _ => {
            let absolute = std::path::absolute(target);
            let path: PathBuf = absolute.with_context(|| target.display().to_string())?;
            Ok(StackTarget::Path(path))
        }
    }
}

/// Returns commands that the user may run next. For each kind of layer, they are about the first layer to which advice
/// applies.
fn next(stack: &Stack, target: &StackTarget) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let place = |kind: LayerKind| {
        let mut layers = stack.layers.iter().filter(|layer| layer.kind == kind);
        let place = layers.find_map(|layer| layer.place.as_ref()?.to_str());
        place.map(|place| shell_words::quote(place).into_owned())
    };
    let mut trial = |advice: &str, place: Option<String>, what: &str| {
        if let Some(place) = place {
            lines.push((format!("assay trial {advice} {place}"), what.to_owned()));
        }
    };
    if let StackTarget::Guest(_) = target {
        let dir = |file: &Path| Some(shell_words::quote(file.parent()?.to_str()?).into_owned());
        let mut files = stack
            .layers
            .iter()
            .rev()
            .filter(|layer| layer.kind == LayerKind::File);
        let dir = files.find_map(|layer| dir(layer.place.as_deref()?));
        trial(
            "cache-none",
            dir,
            "whether another cache mode is better where its image lies",
        );
    }
    trial(
        "zfs-recordsize",
        place(LayerKind::Dataset),
        "whether another recordsize suits a database here",
    );
    trial(
        "noatime",
        place(LayerKind::FileSystem),
        "whether access times cost anything here",
    );
    lines.truncate(2);
    let disk = |layer: &&Layer| layer.kind == LayerKind::VirtualDisk;
    let measured = match target {
        StackTarget::Path(path) => path.to_str().filter(|_| path.is_dir()),
        StackTarget::Guest(name) => stack.layers.iter().find(disk).and(Some(name.as_str())),
    };
    if let Some(name) = measured {
        let command = format!("assay stack {} --measure", shell_words::quote(name));
        let what = "what each layer costs, measured on scratch things there";
        lines.insert(0, (command, what.to_owned()));
    }
    lines.push((
        "assay advice".to_owned(),
        "what else is said about such layers, and can be tried".to_owned(),
    ));
    lines
}
