//! Fills a pool or quota while a guest runs on it, with QEMU's default error policy. The nested QEMU writes to the
//! image until no space is left, and pauses. It continues when space is available again.

use super::build::{FENCE, FILLER, LIMIT, POOL};
use super::built::Built;
use super::program::{Check, ProgramReport, REQUEST, boot_disk};
use super::settings::{Full, Image, Layers};
use crate::StudyError;
use crate::guest::run_command;
use assay_lab::{CommandOutputPart, Conversation, Guest, LabError, ProgramInput, ProgramOutput};
use assay_model::Bytes;
use assay_qemu::{Qmp, QmpError};
use serde_json::json;
use std::ffi::OsStr;
use std::io::BufReader;
use std::path::Path;
use std::time::Duration;

/// File with the output of the program in the nested guest.
const SAID: &str = "/run/study.said";
/// File with the boot disk of the nested guest.
const BOOT: &str = "/run/study.boot";
/// Interval at which the progress of the program is read.
const LOOK: Duration = Duration::from_millis(700);
/// Number of intervals after which a guest counts as hung if it is neither paused nor done.
const LOOKS: u32 = 300;
/// Time limit for an answer of the nested QEMU, which is slow if it is emulated.
const QEMU_ANSWERS_WITHIN: Duration = Duration::from_secs(120);
/// Time limit for the whole run of the nested QEMU.
const QEMU_RUN_LIMIT: Duration = Duration::from_secs(600);

/// What happened to the nested guest and its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Whether QEMU paused the guest because there was no space.
    pub paused: bool,
    /// Number of requests that failed in the guest.
    pub errors: u64,
    /// Number of requests that were reported as durable and are missing.
    pub lost: u64,
    /// Number of requests whose data exists.
    pub kept: u64,
}

/// Runs the test on the layers of a configuration.
///
/// # Errors
/// QEMU does not start, or the guest is gone.
pub(super) fn fill(
    guest: &Guest,
    built: &Built,
    layers: &Layers,
    left: Bytes,
) -> Result<Outcome, StudyError> {
    let (Some(image), Some(full), Some(format)) = (&built.image, layers.full, layers.image) else {
        return Err(StudyError::measure("full", "there is no image"));
    };
    // Twice the available space, so that half of the requests must wait.
    let requests = u32::try_from(2 * left.0 / REQUEST).unwrap_or(u32::MAX);
    guest.push_bytes(&boot_disk(requests), Path::new(BOOT), 0o600)?;
    guest.push_bytes(b"", Path::new(SAID), 0o600)?;
    take_space(guest, full, left)?;
    let went = run(guest, qemu_arguments(image, format, layers), &|| {
        give_back(guest, full)
    });
    // QEMU and its cached data are gone. Now free space for a guest that was not paused.
    give_back(guest, full)?;
    let paused = went?;
    let said = ProgramReport::read(&run_command(guest, &["cat", SAID], LIMIT)?);
    let there = requests_on_disk(guest, image, format, u64::from(requests))?;
    let count =
        |what: &dyn Fn(usize) -> bool| (0..there.len()).filter(|&at| what(at)).count() as u64;
    let told = |at: usize| said.done.get(at).copied();
    Ok(Outcome {
        paused,
        errors: count(&|at| told(at) == Some(false)),
        lost: count(&|at| told(at) == Some(true) && !there[at]),
        kept: count(&|at| there[at]),
    })
}

/// Fills the pool or quota until `left` bytes remain.
fn take_space(guest: &Guest, full: Full, left: Bytes) -> Result<(), StudyError> {
    run_command(guest, &["zpool", "sync", POOL], LIMIT)?;
    let number = |property: &str, dataset: &str| {
        let argv = ["zfs", "get", "-Hp", "-o", "value", property, dataset];
        let text = run_command(guest, &argv, LIMIT)?;
        let parsed: Result<u64, _> = text.trim().parse();
        parsed.map_err(|error| StudyError::measure(argv.join(" "), error))
    };
    let (set, dataset) = match full {
        Full::Pool => {
            let free = number("available", POOL)?.saturating_sub(left.0);
            (format!("reservation={free}"), FILLER)
        }
        Full::Quota => {
            let used = number("used", FENCE)?;
            (format!("quota={}", used + left.0), FENCE)
        }
    };
    run_command(guest, &["zfs", "set", &set, dataset], LIMIT)?;
    Ok(())
}

fn give_back(guest: &Guest, full: Full) -> Result<(), StudyError> {
    let (set, dataset) = match full {
        Full::Pool => ("reservation=none", FILLER),
        Full::Quota => ("quota=none", FENCE),
    };
    run_command(guest, &["zfs", "set", set, dataset], LIMIT)?;
    Ok(())
}

/// Builds QEMU's command line. The write error policy stays QEMU's default.
fn qemu_arguments(image: &str, format: Image, layers: &Layers) -> Vec<String> {
    let boot = json!({ "driver": "file", "node-name": "boot", "filename": BOOT });
    // -drive, because `cache=` is documented for it; commas separate options.
    let drive = format!(
        "if=none,id=disk,format={},cache={},aio={},file={}",
        format.name(),
        layers.cache.name(),
        layers.aio.name(),
        assay_qemu::escape(image),
    );
    let console = format!("file,id=said,path={SAID}");
    [
        "qemu-system-x86_64",
        "-nodefaults",
        "-no-user-config",
        "-no-reboot",
        "-display",
        "none",
        "-accel",
        "tcg,thread=single",
        "-cpu",
        "qemu64",
        "-m",
        "16",
        "-qmp",
        "stdio",
        "-chardev",
        &console,
        "-device",
        "isa-debugcon,chardev=said,iobase=0xe9",
        "-blockdev",
        &boot.to_string(),
        "-device",
        "virtio-blk-pci,drive=boot,bootindex=0",
        "-drive",
        &drive,
        // Each write is durable before it is reported as done. (SeaBIOS sends no flush, for which QEMU would
        // do this.)
        "-device",
        "virtio-blk-pci,drive=disk,write-cache=off",
    ]
    .map(str::to_owned)
    .into()
}

/// Runs QEMU until its program is done, and returns whether it was paused. When paused, calls `free` to
/// release space and resumes it.
fn run(
    guest: &Guest,
    argv: Vec<String>,
    free: &dyn Fn() -> Result<(), StudyError>,
) -> Result<bool, StudyError> {
    std::thread::scope(|scope| {
        let Conversation { says, hears, end } = guest.converse(scope, argv, QEMU_RUN_LIMIT);
        let went = attend(guest, says, hears, free);
        let ended = end.wait()?;
        match (ended.status, went) {
            (0, went) => went,
            _ => Err(StudyError::measure("QEMU in the guest", ended.complaint)),
        }
    })
}

/// Handles QEMU's events until the program in the guest is done, then ends QEMU.
fn attend(
    guest: &Guest,
    says: ProgramOutput,
    hears: ProgramInput,
    free: &dyn Fn() -> Result<(), StudyError>,
) -> Result<bool, StudyError> {
    let reader = Box::new(BufReader::new(says));
    let mut qmp = Qmp::over(reader, Box::new(hears), QEMU_ANSWERS_WITHIN).map_err(monitor_error)?;
    let went = watch(guest, &mut qmp, free);
    // Closing its input does not end QEMU. An error means that it has already ended.
    let _ = qmp.execute("quit", json!({}));
    went
}

fn watch(
    guest: &Guest,
    qmp: &mut Qmp,
    free: &dyn Fn() -> Result<(), StudyError>,
) -> Result<bool, StudyError> {
    let (mut looks, mut paused) = (0, false);
    while looks < LOOKS {
        let events = match qmp.wait_for_events(LOOK) {
            // QEMU ended by itself; its exit status contains the reason.
            Err(error) if error.is_gone() => return Ok(paused),
            events => events.map_err(monitor_error)?,
        };
        if events.is_empty() {
            looks += 1;
            if ProgramReport::read(&run_command(guest, &["cat", SAID], LIMIT)?).ended {
                return Ok(paused);
            }
        }
        for event in events {
            if event["event"] == "BLOCK_IO_ERROR" && event["data"]["action"] == "stop" && !paused {
                paused = true;
                free()?;
            } else if event["event"] == "STOP" {
                qmp.execute("cont", json!({})).map_err(monitor_error)?;
            }
        }
    }
    Ok(paused)
}

fn monitor_error(error: QmpError) -> StudyError {
    LabError::from(error).into()
}

/// Returns for each request whether its data is on the disk. The data is read without caches.
fn requests_on_disk(
    guest: &Guest,
    image: &str,
    format: Image,
    requests: u64,
) -> Result<Vec<bool>, StudyError> {
    const PLAIN: &str = "/run/study.plain";
    let plain = match format {
        Image::Raw => image,
        Image::Qcow2 => {
            let argv = [
                "qemu-img", "convert", "-f", "qcow2", "-O", "raw", image, PLAIN,
            ];
            run_command(guest, &argv, LIMIT)?;
            PLAIN
        }
    };
    if image.starts_with("/dev/") {
        run_command(guest, &["blockdev", "--flushbufs", image], LIMIT)?;
    }
    let (size, count) = (format!("bs={REQUEST}"), format!("count={requests}"));
    let from = format!("if={plain}");
    let argv = ["dd", "status=none", &from, &size, &count].map(OsStr::new);
    let mut check = Check::default();
    let status = guest.stream(&argv, Some(LIMIT), None, &mut |output| {
        if let CommandOutputPart::Out(piece) = output {
            check.add(piece);
        }
    })?;
    if plain == PLAIN {
        run_command(guest, &["rm", "-f", PLAIN], LIMIT)?;
    }
    match status {
        0 => Ok(check.end()),
        _ => Err(StudyError::measure(argv_text(&argv), "it cannot be read")),
    }
}

fn argv_text(argv: &[&OsStr]) -> String {
    let words: Vec<_> = argv.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}
