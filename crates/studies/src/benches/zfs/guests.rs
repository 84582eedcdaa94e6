//! Runs a nested QEMU whose disks are the zvols and image files of the configurations. Each disk has the controller,
//! cache mode and threads of its configuration. One guest without a kernel (`serve.S`) has all disks, so that every
//! round can use each disk.
//!
//! The disks have no write cache (`write-cache=off`). QEMU makes each write durable before the write completes, as for
//! a guest that writes with `O_SYNC`. This costs one flush per write.

use super::build::LIMIT;
use super::built::Built;
use super::guest_or_dataset::Ground;
use super::serve::{ANSWER, Requests, Served, boot_disk};
use super::settings::{Image, Layers};
use crate::StudyError;
use assay_changes::Made;
use assay_host::{Host as _, Limits, LiveHost, ProcessId};
use assay_lab::Accel;
use assay_lab::disk::Bus;
use assay_model::Bytes;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::time::{Duration, Instant};

/// BIOS number of the first disk after the boot disk (0x80).
const FIRST: u8 = 0x81;
/// Maximum number of disks: SeaBIOS supports sixteen (BUILD_MAX_EXTDRIVE).
const MOST: usize = 15;
/// Time limit of the boot, which is long enough for an emulated guest in an emulated guest.
const BOOT: Duration = Duration::from_secs(150);
/// Maximum runtime of QEMU on this machine. Normally QEMU is killed when the study ends.
const LIFE: Duration = Duration::from_secs(48 * 3600);

/// A running QEMU, whose guest has the disks of the configurations.
pub(super) struct Guests {
    /// BIOS disk number of each configuration, by the name of the configuration.
    drives: BTreeMap<String, u8>,
    /// Accelerator that runs the guest's instructions.
    pub accel: Accel,
    /// Path of the serial line that leads to the program in the guest.
    line: String,
}

/// A disk that the guest shall have.
pub(super) struct Wanted<'a> {
    pub name: &'a str,
    pub layers: &'a Layers,
    pub built: &'a Built,
}

impl Guests {
    /// Boots QEMU with these disks.
    ///
    /// # Errors
    /// QEMU is missing or fails, or the program does not start.
    pub fn boot(
        ground: &Ground<'_>,
        disks: &[Wanted<'_>],
        accel: Option<Accel>,
    ) -> Result<Self, StudyError> {
        if disks.len() > MOST {
            let reason = format!(
                "{} disks: the BIOS knows {MOST} besides its own",
                disks.len()
            );
            return Err(StudyError::measure("a guest on zvols", reason));
        }
        let boot = ground.path("boot");
        ground.write(&boot, &boot_disk())?;
        let line = ground.path("line");
        for end in ["in", "out"] {
            let path = format!("{line}.{end}");
            ground.command(&["rm", "-f", &path])?;
            ground.command(&["mkfifo", "-m", "600", &path])?;
        }
        let kvm = ground.run(&["test", "-w", "/dev/kvm"], LIMIT)?.success();
        let candidates = match accel {
            Some(accel) => vec![accel],
            None if kvm => vec![Accel::Kvm, Accel::Tcg],
            None => vec![Accel::Tcg],
        };
        let mut refused = StudyError::measure("QEMU", "there is nothing to run it with");
        for accel in candidates {
            match start(ground, disks, accel, &boot, &line) {
                Ok(()) => {
                    let drives = (FIRST..).zip(disks);
                    let drives = drives.map(|(drive, disk)| (disk.name.to_owned(), drive));
                    return Ok(Self {
                        drives: drives.collect(),
                        accel,
                        line,
                    });
                }
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    /// Makes the program send requests to the disk of a configuration.
    ///
    /// # Errors
    /// The program does not answer, or requests failed.
    pub fn serve(
        &self,
        ground: &Ground<'_>,
        name: &str,
        requests: Requests,
        (size, time, seed): (Bytes, Duration, u64),
    ) -> Result<Served, StudyError> {
        let fail = |reason: &str| StudyError::measure(format!("the guest of {name}"), reason);
        let drive = *self
            .drives
            .get(name)
            .ok_or_else(|| fail("it has no disk"))?;
        let told = ground.path("told");
        ground.write(
            &told,
            &requests.command(drive, size, time.as_secs_f64(), seed),
        )?;
        let text = exchange(ground, Some(&told), &self.line, ANSWER, time + LIMIT)?;
        let served = Served::read(&text).ok_or_else(|| fail("its answer is not understood"))?;
        match served {
            Served {
                failed: 0, done, ..
            } if done > 0 => Ok(served),
            Served { failed, done, .. } => {
                Err(fail(&format!("{failed} of {done} requests failed")))
            }
        }
    }
}

/// Sends the content of a file over the serial line, and returns the given number of answer bytes.
fn exchange(
    ground: &Ground<'_>,
    say: Option<&str>,
    line: &str,
    answer: usize,
    limit: Duration,
) -> Result<String, StudyError> {
    let hear = format!("{line}.out");
    let count = answer.to_string();
    let argv = match say {
        None => vec!["head", "-c", &count, &hear],
        Some(say) => {
            // Paths are arguments and not part of the script.
            let script = "cat \"$1\" > \"$2.in\" && exec head -c \"$3\" \"$2.out\"";
            vec!["sh", "-c", script, "sh", say, line, &count]
        }
    };
    let output = ground.run(&argv, limit)?;
    match output.success() {
        true => Ok(output.text()),
        false => Err(StudyError::measure("the guest's line", output.complaint())),
    }
}

/// Starts QEMU and waits for the program in the guest. QEMU ends together with its guest or with assay.
fn start(
    ground: &Ground<'_>,
    disks: &[Wanted<'_>],
    accel: Accel,
    boot: &str,
    line: &str,
) -> Result<(), StudyError> {
    let pid_file = ground.path("pid");
    let mut argv = qemu_arguments(disks, accel, boot, line)?;
    argv.extend(["-pidfile".to_owned(), pid_file.clone()]);
    let Some(here) = ground.here() else {
        argv.push("-daemonize".to_owned());
        let words: Vec<&str> = argv.iter().map(String::as_str).collect();
        ground.command(&words)?;
        return ready(ground, line, BOOT);
    };
    let (ended, end) = std::sync::mpsc::channel();
    // The kernel kills QEMU when this thread ends for any reason.
    std::thread::spawn(move || {
        let words: Vec<&OsStr> = argv.iter().map(OsStr::new).collect();
        let _ = ended.send(LiveHost.run(&words, Limits { timeout: LIFE }));
    });
    let begun = Instant::now();
    let process = loop {
        if let Ok(ended) = end.try_recv() {
            return Err(StudyError::measure("QEMU", ended?.complaint()));
        }
        let text = LiveHost.read_text(pid_file.as_ref()).unwrap_or_default();
        let process = text.trim().parse().ok().and_then(ProcessId::of);
        match process {
            Some(process) => break process,
            None if begun.elapsed() > BOOT => {
                return Err(StudyError::measure("QEMU", "it does not start"));
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let id = here.enter(&Made::from(process))?;
    ready(ground, line, Duration::from_secs(30)).or_else(|error| {
        ground.remove(id)?;
        match end.recv_timeout(Duration::from_secs(5)) {
            Ok(Ok(output)) => Err(StudyError::measure("QEMU", output.complaint())),
            _ => Err(error),
        }
    })
}

fn ready(ground: &Ground<'_>, line: &str, limit: Duration) -> Result<(), StudyError> {
    match exchange(ground, None, line, 1, limit)?.as_str() {
        "R" => Ok(()),
        other => Err(StudyError::measure(
            "the guest's program",
            format!("it says {other:?}"),
        )),
    }
}

fn qemu_arguments(
    disks: &[Wanted<'_>],
    accel: Accel,
    boot: &str,
    line: &str,
) -> Result<Vec<String>, StudyError> {
    let accel = match accel {
        Accel::Kvm => "kvm",
        Accel::Tcg => "tcg",
    };
    let mut argv = vec!["qemu-system-x86_64"];
    argv.extend([
        "-nodefaults",
        "-no-user-config",
        "-no-reboot",
        "-display",
        "none",
    ]);
    argv.extend(["-machine", "pc", "-m", "32", "-accel", accel]);
    let mut argv: Vec<String> = argv.into_iter().map(str::to_owned).collect();
    let mut add = |key: &str, value: String| argv.extend([key.to_owned(), value]);
    add(
        "-chardev",
        format!("pipe,id=line,path={}", assay_qemu::escape(line)),
    );
    add("-serial", "chardev:line".to_owned());
    add(
        "-drive",
        format!(
            "if=none,id=boot,format=raw,file={}",
            assay_qemu::escape(boot)
        ),
    );
    add(
        "-device",
        "virtio-blk-pci,drive=boot,bootindex=0".to_owned(),
    );
    let mut parallel = 0;
    for (number, disk) in (1..).zip(disks) {
        let layers = disk.layers;
        let (Some(bus), Some(image)) = (layers.guest, &disk.built.image) else {
            return Err(StudyError::measure(
                disk.name,
                "there is no image for a guest",
            ));
        };
        let format = layers.image.map_or("raw", Image::name);
        let (cache, aio) = (layers.cache.name(), layers.aio.name());
        add(
            "-drive",
            format!(
                "if=none,id=d{number},format={format},cache={cache},aio={aio},file={}",
                assay_qemu::escape(image)
            ),
        );
        let thread = match layers.iothread {
            true => {
                add("-object", format!("iothread,id=t{number}"));
                format!(",iothread=t{number}")
            }
            false => String::new(),
        };
        let own = format!("drive=d{number},bootindex={number},write-cache=off");
        let device = match bus {
            Bus::VirtioBlk => format!("virtio-blk-pci,{own}{thread}"),
            Bus::VirtioScsi => {
                add("-device", format!("virtio-scsi-pci,id=s{number}{thread}"));
                format!("scsi-hd,bus=s{number}.0,{own}")
            }
            Bus::Sata => {
                add("-device", format!("ahci,id=a{number}"));
                format!("ide-hd,bus=a{number}.0,{own}")
            }
            Bus::Ide => {
                let at = format!("bus=ide.{},unit={}", parallel / 2, parallel % 2);
                parallel += 1;
                format!("ide-hd,{at},{own}")
            }
            Bus::Nvme => return Err(StudyError::measure(disk.name, "nvme has no such switch")),
        };
        add("-device", device);
    }
    Ok(argv)
}
