//! Compiles the agent that runs inside guests. The result is embedded in assay: a static program without libraries,
//! which runs in any guest of this architecture.
#![allow(
    clippy::disallowed_methods,
    reason = "a build script starts the compiler"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=agent");
    println!("cargo::rerun-if-changed=../protocol/src/lib.rs");
    println!("cargo::rerun-if-changed=src/record.rs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join("agent");
    // Guests are machines of x86_64, whatever they run on.
    let architecture = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    if architecture != "x86_64" {
        println!("cargo::warning=no guest agent for {architecture}: `assay lab` will refuse");
        return empty(&out);
    }
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let target = std::env::var_os("TARGET").unwrap_or_default();
    let built = Command::new(rustc)
        .args([
            "--edition=2024",
            "--crate-name=assay_agent",
            "agent/main.rs",
        ])
        .args(["-Copt-level=2", "-Cpanic=abort", "-Cstrip=symbols"])
        .arg("-Ctarget-feature=+crt-static")
        .arg("--target")
        .arg(target)
        .arg("-o")
        .arg(&out)
        .output();
    let complaint = match built {
        Ok(output) if output.status.success() => return,
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    // Without a static C library (glibc-static on Fedora) the rest of assay still builds.
    for line in complaint.lines() {
        println!("cargo::warning=agent: {line}");
    }
    println!("cargo::warning=assay is built without the guest agent: `assay lab` will refuse");
    empty(&out);
}

fn empty(out: &Path) {
    if let Err(error) = std::fs::write(out, b"") {
        println!("cargo::error={}: {error}", out.display());
    }
}
