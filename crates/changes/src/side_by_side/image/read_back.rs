//! Reads the present configuration of a served image.

use super::{Image, Tool, arguments, qemu_img};
use crate::side_by_side::ArmError;
use crate::side_by_side::child::Program;
use crate::side_by_side::teardown::Things;
use arguments::{IMAGE, QMP};
use assay_host::{HostMut, held};
use assay_loads::Cancel;
use assay_qemu::{Qmp, QmpError};
use rustix::fs::OFlags;
use serde_json::{Value, json};
use std::path::Path;

/// Returns the image's header (`qemu-img info`), the open block node (QMP `query-named-block-nodes`), and the flags
/// with which the server has the file open.
pub(super) fn read_back(image: &Image, things: &Things<'_>) -> Result<String, ArmError> {
    let program = Program {
        path: &qemu_img(things.host)?,
        dir: things.dir(),
        log: "info.log",
    };
    // -U: the image is open in the server. The format is given, so qemu-img does not guess it from the contents.
    let format = arguments::format_driver(&image.arm);
    let args = ["info", "-U", "-f", format, "--output=json", IMAGE];
    let info = program.run(&args, &Cancel::default())?;
    let info: Value = serde_json::from_str(&info).map_err(|error| ArmError::Tool {
        program: "qemu-img info".to_owned(),
        complaint: format!("the answer cannot be understood: {error}"),
    })?;
    let mut parts = read_header(&info);
    parts.push(format!("{} on disk when made", image.on_disk));
    match image.tool {
        Tool::Daemon => {
            let gone = |error: QmpError| ArmError::Server {
                program: "qemu-storage-daemon".to_owned(),
                source: error.into(),
            };
            let mut monitor = Qmp::connect(&things.path(QMP)).map_err(gone)?;
            let nodes = monitor.execute("query-named-block-nodes", json!({}));
            parts.extend(read_cache_switches(&nodes.map_err(gone)?));
        }
        Tool::QemuNbd => {}
    }
    parts.push(open_flags(things.host, image.pid(), &things.path(IMAGE))?);
    parts.push(command_line(things.host, image.pid())?);
    Ok(parts.join(", "))
}

/// Returns the format and the options in the header.
fn read_header(info: &Value) -> Vec<String> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "on".to_owned(),
        Value::Bool(false) => "off".to_owned(),
        other => other.to_string(),
    };
    let mut parts = vec![info.get("format").map(text).unwrap_or_default()];
    if let Some(size) = info.get("cluster-size") {
        parts.push(format!("cluster_size={size}"));
    }
    let data = &info["format-specific"]["data"];
    for name in [
        "compat",
        "extended-l2",
        "lazy-refcounts",
        "refcount-bits",
        "compression-type",
        "cipher-alg",
        "cipher-mode",
    ] {
        if let Some(value) = data.get(name) {
            parts.push(format!("{}={}", name.replace('-', "_"), text(value)));
        }
    }
    if let Some(encrypt) = data.get("encrypt") {
        for name in ["format", "cipher-alg", "cipher-mode"] {
            if let Some(value) = encrypt.get(name) {
                parts.push(format!(
                    "encrypt.{}={}",
                    name.replace('-', "_"),
                    text(value)
                ));
            }
        }
    }
    parts
}

/// Returns the cache options of the node that contains the file.
fn read_cache_switches(nodes: &Value) -> Option<String> {
    let nodes = nodes.as_array()?;
    let file = nodes.iter().find(|node| node["node-name"] == "file")?;
    let switch = |name: &str| match file["cache"][name].as_bool() {
        Some(true) => "on",
        Some(false) => "off",
        None => "unknown",
    };
    Some(format!(
        "cache.direct={} cache.no-flush={}",
        switch("direct"),
        switch("no-flush")
    ))
}

/// Describes whether the server has the file open with O_DIRECT (proc_pid_fdinfo(5)).
fn open_flags(host: &dyn HostMut, pid: u32, image: &Path) -> Result<String, ArmError> {
    let proc = Path::new("/proc").join(pid.to_string());
    // The file is identified by inode, because its name may have changed.
    let wanted = held::read_identity(image)?;
    for name in host.list(&proc.join("fd"))? {
        if held::read_identity(&proc.join("fd").join(&name)).ok() != Some(wanted) {
            continue;
        }
        let info = host.read_text(&proc.join("fdinfo").join(&name))?;
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|text| u32::from_str_radix(text.trim(), 8).ok());
        if let Some(flags) = flags {
            return Ok(match flags & OFlags::DIRECT.bits() {
                0 => "open without O_DIRECT",
                _ => "open with O_DIRECT",
            }
            .to_owned());
        }
    }
    Err(ArmError::Server {
        program: "the image's server".to_owned(),
        source: format!("it no longer has {} open", image.display()).into(),
    })
}

/// Returns the options that cannot be queried, from the server's command line. A running server has accepted
/// them.
fn command_line(host: &dyn HostMut, pid: u32) -> Result<String, ArmError> {
    let path = Path::new("/proc").join(pid.to_string()).join("cmdline");
    let text = host.read_text(&path)?;
    let mut parts = Vec::new();
    for word in text.split('\0') {
        if let Ok(value) = serde_json::from_str::<Value>(word) {
            if let Some(aio) = value["aio"].as_str() {
                parts.push(format!("aio={aio}"));
            }
            if let Some(writethrough) = value["writethrough"].as_bool() {
                parts.push(format!(
                    "writethrough={}",
                    ["off", "on"][usize::from(writethrough)]
                ));
            }
        } else if let Some(option) = word.strip_prefix("--")
            && (option.starts_with("cache=") || option.starts_with("aio="))
        {
            parts.push(option.to_owned());
        }
    }
    Ok(parts.join(" "))
}
