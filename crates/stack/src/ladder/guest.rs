//! The measured layers in a guest: a disk for each, the layers on this disk, and fio in the guest.

use super::MeasureError;
use super::layer_names::FileSystem;
use super::rungs::On;
use assay_host::Limits;
use assay_lab::Guest;
use assay_loads::fio::FioEnd;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time limit of a tool in a guest. It is long enough for an emulated guest on a busy machine.
const TOOL: Duration = Duration::from_secs(300);
/// Time limit for filling a disk. It is long enough for an emulated guest.
const LAYOUT: Duration = Duration::from_secs(1200);

/// LUKS key of scratch disks. The key needs no secrecy, because these disks are deleted.
const KEY: &[u8] = b"assay scratch key\n";
const KEY_FILE: &str = "/run/assay-key";

/// Creates the layers on a device of the guest, and returns the target of the load.
pub(super) fn build_layers(
    guest: &Guest,
    rung: &str,
    device: &Path,
    on: &[On],
) -> Result<PathBuf, MeasureError> {
    let mut top = device.to_owned();
    let tool = |argv: &[&str]| run(guest, rung, argv);
    for layer in on {
        let under = top.to_string_lossy().into_owned();
        top = match layer {
            On::Luks => {
                let path = Path::new(KEY_FILE);
                let pushed = guest.push_bytes(KEY, path, 0o600);
                pushed.map_err(MeasureError::guest(rung))?;
                // A short key derivation, because only reads and writes are measured, not
                // unlocking.
                tool(&[
                    "cryptsetup",
                    "luksFormat",
                    "--batch-mode",
                    "--type=luks2",
                    "--cipher=aes-xts-plain64",
                    "--key-size=512",
                    "--pbkdf=pbkdf2",
                    "--pbkdf-force-iterations=1000",
                    "--key-file",
                    KEY_FILE,
                    &under,
                ])?;
                let name = format!("{rung}-luks");
                tool(&["cryptsetup", "open", "--key-file", KEY_FILE, &under, &name])?;
                Path::new("/dev/mapper").join(name)
            }
            On::Lvm => {
                let group = format!("{rung}-vg");
                tool(&["pvcreate", "--quiet", "--yes", &under])?;
                tool(&["vgcreate", "--quiet", &group, &under])?;
                let all = ["--extents=100%FREE", "--name=scratch", &group];
                let quiet = ["lvcreate", "--quiet", "--yes", "--wipesignatures=n"];
                tool(&[&quiet[..], &all[..]].concat())?;
                Path::new("/dev").join(group).join("scratch")
            }
            On::FileSystem(system) => {
                let name = system.name();
                // No deferred work: neither inode tables that are written in the background, nor
                // discarded blocks that are allocated at the first write.
                let options = match system {
                    FileSystem::Ext4 => {
                        ["-F", "-Elazy_itable_init=0,lazy_journal_init=0,nodiscard"]
                    }
                    FileSystem::Xfs | FileSystem::Btrfs => ["-f", "-K"],
                };
                let mkfs = format!("mkfs.{name}");
                tool(&[&[mkfs.as_str(), "-q"][..], &options, &[&under]].concat())?;
                let dir = format!("/mnt/{rung}");
                tool(&["mkdir", "-p", &dir])?;
                tool(&["mount", "-t", name, &under, &dir])?;
                Path::new(&dir).join("file")
            }
        };
    }
    Ok(top)
}

fn run(guest: &Guest, rung: &str, argv: &[&str]) -> Result<(), MeasureError> {
    let words: Vec<&OsStr> = argv.iter().map(OsStr::new).collect();
    let output = guest.run(&words, Limits { timeout: TOOL });
    let output = output.map_err(MeasureError::guest(rung))?;
    match output.success() {
        true => Ok(()),
        false => Err(MeasureError::Layer {
            rung: rung.to_owned(),
            command: argv.join(" "),
            complaint: output.complaint(),
        }),
    }
}

/// Writes the file or device of a measured layer completely.
pub(super) fn lay_out(guest: &Guest, rung: &str, job: &str) -> Result<(), MeasureError> {
    let output = guest.load(job, LAYOUT);
    let output = output.map_err(MeasureError::guest(rung))?;
    match output.ended {
        FioEnd::Exited(0) => Ok(()),
        _ => Err(MeasureError::Layer {
            rung: rung.to_owned(),
            command: "fio".to_owned(),
            complaint: output.stderr,
        }),
    }
}

/// Flushes the guest's dirty pages.
pub(super) fn sync(guest: &Guest, rung: &str) -> Result<(), MeasureError> {
    run(guest, rung, &["sync"])
}
