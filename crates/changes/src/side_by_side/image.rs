//! A disk image, created with qemu-img and served over NBD by QEMU's block layer, without a guest and without
//! root.

pub(crate) mod arguments;
mod power_cut_proof;
mod read_back;

use crate::side_by_side::ArmError;
use crate::side_by_side::child::{Program, Running};
use crate::side_by_side::nbd::Client;
use crate::side_by_side::teardown::Things;
use crate::side_by_side::tool::{Package, find, storage_daemon};
use arguments::{EXPORT, IMAGE, KEY, SOCKET};
use assay_host::HostMut;
use assay_loads::{Cancel, layout};
use assay_model::Bytes;
use assay_model::change::ImageArm;
use assay_model::trial::{DurabilityProof, Side};
use rustix::fs::{Mode, OFlags};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Number of bytes per write over NBD.
const CHUNK: usize = 1 << 20;

/// An image that QEMU serves over NBD.
pub(crate) struct Image {
    server: Running,
    tool: Tool,
    arm: ImageArm,
    /// Allocated bytes of the image directly after its creation.
    on_disk: Bytes,
}

/// Which program serves the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    Daemon,
    QemuNbd,
}

/// Creates the image and serves it.
pub(crate) fn build(
    things: &mut Things<'_>,
    arm: &ImageArm,
    size: Bytes,
    cancel: &Cancel,
) -> Result<Image, ArmError> {
    arguments::check(arm)?;
    // The load may write every byte. Tables need at most 8 bytes per cluster of 512, and reference counts the
    // same.
    things.room(Bytes(size.0.saturating_add(size.0 / 32 + (4 << 20))))?;
    if arm.luks {
        make_key(&things.path(KEY))?;
    }
    create(things.host, things.dir(), arm, size, cancel)?;
    let (program, tool) = find_server(things.host)?;
    let args = match tool {
        Tool::Daemon => arguments::daemon_arguments(arm, &arguments::file_node(arm)),
        Tool::QemuNbd => arguments::qemu_nbd(arm),
    };
    let dir = things.dir().to_owned();
    let server = serve(things, &dir, &program, &args, cancel)?;
    let export = connect_client(things)?.size;
    if export < size.0 {
        return Err(ArmError::Server {
            program: program.display().to_string(),
            source: format!("it exports {} instead of {size}", Bytes(export)).into(),
        });
    }
    if arm.luks {
        // The server has read the key; the file is no longer needed.
        let key = things.path(KEY);
        fs::remove_file(&key).map_err(ArmError::io(&key))?;
    }
    if arm.filled {
        fill(things, size, cancel)?;
    }
    let image = things.path(IMAGE);
    let found = image.metadata().map_err(ArmError::io(&image))?;
    Ok(Image {
        server,
        tool,
        arm: arm.clone(),
        on_disk: Bytes(found.blocks() * 512),
    })
}

/// Creates a random key for this image. It is never shown and not needed later.
fn make_key(path: &Path) -> Result<(), ArmError> {
    let make = || -> std::io::Result<()> {
        let mut random = [0u8; 32];
        let filled = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        if filled != random.len() {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let text: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?;
        File::from(file).write_all(text.as_bytes())
    };
    make().map_err(ArmError::io(path))
}

/// Runs `qemu-img create` in `dir`. Errors contain the version, because the supported options depend on it.
fn create(
    host: &dyn HostMut,
    dir: &Path,
    arm: &ImageArm,
    size: Bytes,
    cancel: &Cancel,
) -> Result<(), ArmError> {
    let program = Program {
        path: &qemu_img(host)?,
        dir,
        log: "create.log",
    };
    let args = arguments::create(arm, size);
    let mut made = program.run(&args, cancel);
    // QEMU measures its key stretching with getrusage. It fails if a kernel that counts CPU time in ticks
    // reports 0 (crypto/pbkdf.c, qcrypto_pbkdf2_count_iters), so it is retried.
    for _ in 0..20 {
        match &made {
            Err(ArmError::Tool { complaint, .. }) if complaint.contains("accurate CPU usage") => {
                let image = dir.join(IMAGE);
                let _ = fs::remove_file(&image);
                made = program.run(&args, cancel);
            }
            _ => break,
        }
    }
    match made {
        Ok(_) => Ok(()),
        Err(ArmError::Tool { complaint, .. }) => Err(ArmError::Tool {
            program: read_version(&program, cancel),
            complaint,
        }),
        Err(error) => Err(error),
    }
}

/// Returns the version, such as `qemu-img 7.2.22`.
fn read_version(program: &Program<'_>, cancel: &Cancel) -> String {
    let text = program.run(&["--version"], cancel).unwrap_or_default();
    let number = text
        .split_whitespace()
        .skip_while(|word| *word != "version")
        .nth(1);
    format!("qemu-img {}", number.unwrap_or_default())
        .trim_end()
        .to_owned()
}

fn qemu_img(host: &dyn HostMut) -> Result<PathBuf, ArmError> {
    let package = Package {
        debian: "qemu-utils",
        fedora: "qemu-img",
    };
    find(host, "qemu-img", package)
}

/// Finds the server: the storage daemon, which has a monitor, otherwise qemu-nbd.
fn find_server(host: &dyn HostMut) -> Result<(PathBuf, Tool), ArmError> {
    let daemon = storage_daemon(host).ok();
    let nbd = || host.which(OsStr::new("qemu-nbd"));
    daemon
        .map(|path| (path, Tool::Daemon))
        .or_else(|| nbd().map(|path| (path, Tool::QemuNbd)))
        .ok_or(ArmError::Missing {
            program: "neither qemu-storage-daemon nor qemu-nbd".to_owned(),
            debian: "qemu-utils",
            fedora: "qemu-storage-daemon",
        })
}

/// Starts a server in `dir`, and waits until its export accepts connections.
fn serve(
    things: &mut Things<'_>,
    dir: &Path,
    program: &Path,
    args: &[String],
    cancel: &Cancel,
) -> Result<Running, ArmError> {
    let program = Program {
        path: program,
        dir,
        log: "server.log",
    };
    let mut server = things.start(&program, args)?;
    let socket = dir.join(SOCKET);
    server.wait_until(cancel, || Client::connect(&socket, EXPORT).is_ok())?;
    Ok(server)
}

fn connect_client(things: &Things<'_>) -> Result<Client, ArmError> {
    let socket = things.path(SOCKET);
    Client::connect(&socket, EXPORT).map_err(ArmError::io(&socket))
}

/// Writes the whole virtual disk once, with data that can be neither compressed nor deduplicated.
fn fill(things: &Things<'_>, size: Bytes, cancel: &Cancel) -> Result<(), ArmError> {
    let fail = |at: u64| {
        let path = things.path(IMAGE);
        move |source| ArmError::Fill {
            path,
            written: Bytes(at),
            size,
            source,
        }
    };
    let mut client = connect_client(things)?;
    // The arms have different data, because a file system might store equal data once.
    let mut data = layout::Data::new(things.seed());
    let mut at = 0;
    while at < size.0 {
        if cancel.is_cancelled() {
            return Err(ArmError::Cancelled);
        }
        let length = (size.0 - at).min(CHUNK as u64);
        let chunk = data.next(at, usize::try_from(length).unwrap_or(CHUNK));
        client.write(at, chunk, 0).map_err(fail(at))?;
        at += length;
        if at.is_multiple_of(layout::CHUNK.0) {
            client.flush().map_err(fail(at))?;
        }
    }
    client.flush().map_err(fail(at))
}

impl Image {
    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    pub fn prove_durability(
        &self,
        things: &mut Things<'_>,
        side: Side,
        cancel: &Cancel,
    ) -> Result<DurabilityProof, ArmError> {
        power_cut_proof::prove_durability(
            things,
            &self.arm,
            side,
            power_cut_proof::promised_guarantees(&self.arm),
            cancel,
        )
    }

    pub fn read_back(&self, things: &Things<'_>) -> Result<String, ArmError> {
        read_back::read_back(self, things)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Host as _;
    use assay_model::change::{Aio, CacheMode, ImageFormat};

    /// Tests qemu-nbd, which only machines without the storage daemon use.
    #[test]
    fn qemu_nbd_serves_the_same_arms() {
        let state = tempfile::tempdir().unwrap();
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let journal = crate::Journal::open(state.path()).unwrap();
        let session = journal.begin("a test", "here").unwrap();
        let host = &assay_host::LiveHost;
        let qemu_nbd = host.which(OsStr::new("qemu-nbd")).unwrap();
        let size = Bytes(8 << 20);
        for (format, luks, cache, direct) in [
            (
                ImageFormat::Raw,
                false,
                CacheMode::None,
                "open with O_DIRECT",
            ),
            (
                ImageFormat::Qcow2,
                true,
                CacheMode::Unsafe,
                "open without O_DIRECT",
            ),
        ] {
            let arm = ImageArm {
                format,
                options: [].into(),
                cache,
                aio: Aio::Threads,
                luks,
                filled: true,
            };
            let place = crate::side_by_side::ArmSite {
                dir: dir.path().to_owned(),
                name: format!("luks-{luks}"),
                size,
            };
            let cancel = Cancel::default();
            let mut things = Things::new(host, &session, &place).unwrap();
            make_key(&things.path(KEY)).unwrap();
            let dir = things.dir().to_owned();
            create(host, &dir, &arm, size, &cancel).unwrap();
            let args = arguments::qemu_nbd(&arm);
            let server = serve(&mut things, &dir, &qemu_nbd, &args, &cancel).unwrap();
            fill(&things, size, &cancel).unwrap();
            let image = Image {
                server,
                tool: Tool::QemuNbd,
                arm,
                on_disk: size,
            };
            let read = image.read_back(&things).unwrap();
            let mode = cache.name();
            assert!(
                read.ends_with(&format!("{direct}, cache={mode} aio=threads")),
                "{read}"
            );
        }
    }
}
