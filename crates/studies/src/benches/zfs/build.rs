//! Layers on top of each other in a guest, made and taken away again.

use super::settings::{Base, Fs, Full, Image, Layers};
use crate::StudyError;
use crate::guest::command;
use assay_lab::Guest;
use assay_model::Bytes;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// The pool.
pub(super) const POOL: &str = "study";
/// What takes the pool's space when it is to run full.
pub(super) const FILLER: &str = "study/filler";
/// Above datasets that a quota is to stop.
pub(super) const FENCE: &str = "study/fence";
/// An emulated guest on a busy machine takes its time.
pub(super) const LIMIT: Duration = Duration::from_secs(180);
/// The passphrase of encrypted layers; they go with the guest.
const KEY: &str = "/run/study.key";

/// Layers that are there.
#[derive(Debug)]
pub(super) struct Built {
    /// Where fio works: a directory, or else a block device.
    pub directory: Option<String>,
    /// The topmost block device; none on a dataset that is worked on directly.
    pub device: Option<String>,
    /// The virtual disk or the image's device under LVM, LUKS and the file system.
    pub bottom: Option<String>,
    /// The zvol or dataset.
    pub dataset: Option<String>,
    /// What the image lies in: a block device or a file.
    pub image: Option<String>,
    /// Takes it away, last line first.
    undo: Vec<Vec<String>>,
}

/// Makes layers in a guest.
pub(super) struct Builder<'a> {
    /// The guest.
    pub guest: &'a Guest,
    /// Size of each disk.
    pub size: Bytes,
    /// Seconds of patience with each command.
    pub limit: Duration,
}

impl Builder<'_> {
    fn run(&self, argv: &[&str]) -> Result<String, StudyError> {
        command(self.guest, argv, self.limit)
    }

    /// Makes the layers of the configuration that has this number.
    ///
    /// # Errors
    /// Something cannot be made; what was made of it is taken away.
    pub fn build(&self, number: usize, layers: &Layers) -> Result<Built, StudyError> {
        let mut built = Built {
            directory: None,
            device: None,
            bottom: None,
            dataset: None,
            image: None,
            undo: Vec::new(),
        };
        match self.add(number, layers, &mut built) {
            Ok(()) => Ok(built),
            Err(error) => {
                self.take_away(built);
                Err(error)
            }
        }
    }

    /// Takes layers away; what refuses stays until the guest ends.
    pub fn take_away(&self, built: Built) {
        for line in built.undo.iter().rev() {
            let words: Vec<&str> = line.iter().map(String::as_str).collect();
            // udev may still look at what was just let go.
            for _ in 0..10 {
                match self.run(&words) {
                    Err(StudyError::Measure { .. }) => sleep(Duration::from_millis(300)),
                    _ => break,
                }
            }
        }
    }

    fn add(&self, number: usize, layers: &Layers, built: &mut Built) -> Result<(), StudyError> {
        let name = format!("c{number}");
        self.base(&name, layers, built)?;
        if let Some(format) = layers.image {
            self.image(number, format, layers, built)?;
        }
        if layers.lvm {
            self.lvm(&name, built)?;
        }
        if layers.luks {
            self.luks(&name, built)?;
        }
        match layers.fs {
            Some(fs) => self.file_system(&name, fs, built),
            None => Ok(()),
        }
    }

    fn base(&self, name: &str, layers: &Layers, built: &mut Built) -> Result<(), StudyError> {
        if layers.on == Base::Disk {
            let found = self.guest.devices(&[name])?;
            built.device = found.first().map(|path| path.display().to_string());
            built.bottom.clone_from(&built.device);
            return Ok(());
        }
        let above = match layers.full {
            Some(Full::Quota) => FENCE,
            _ => POOL,
        };
        let dataset = format!("{above}/{name}");
        let mut argv = vec!["zfs".to_owned(), "create".to_owned()];
        for (key, value) in &layers.properties {
            argv.extend(["-o".to_owned(), format!("{key}={value}")]);
        }
        if layers.on == Base::Zvol {
            if !layers.reserved {
                argv.push("-s".to_owned());
            }
            argv.extend(["-V".to_owned(), self.size.0.to_string()]);
        }
        argv.push(dataset.clone());
        let words: Vec<&str> = argv.iter().map(String::as_str).collect();
        self.run(&words)?;
        built.undo.push(line(&["zfs", "destroy", "-r", &dataset]));
        if layers.on == Base::Zvol {
            self.run(&["udevadm", "settle"])?;
            built.device = Some(format!("/dev/zvol/{dataset}"));
        } else {
            built.directory = Some(format!("/{dataset}"));
        }
        built.dataset = Some(dataset);
        Ok(())
    }

    /// An image of QEMU in the zvol or in a file of the dataset, as a block device of the guest's
    /// kernel over NBD: the layers of QEMU below a virtual disk, without a guest of the guest. One
    /// that is to run full is given to such a guest instead.
    fn image(
        &self,
        number: usize,
        format: Image,
        layers: &Layers,
        built: &mut Built,
    ) -> Result<(), StudyError> {
        let file = match (&built.directory, &built.device) {
            (Some(dir), _) => format!("{dir}/disk.img"),
            (None, Some(device)) => device.clone(),
            (None, None) => return Ok(()),
        };
        built.image = Some(file.clone());
        let (size, cluster) = (
            self.size.0.to_string(),
            layers.cluster.unwrap_or(Bytes(65536)),
        );
        let options = format!("cluster_size={}", cluster.0);
        match format {
            Image::Qcow2 => {
                let argv = ["qemu-img", "create", "-q", "-f", "qcow2", "-o"];
                self.run(&[&argv[..], &[&options, &file, &size]].concat())?;
            }
            Image::Raw if layers.on == Base::Dataset => {
                self.run(&["qemu-img", "create", "-q", "-f", "raw", &file, &size])?;
            }
            Image::Raw => {}
        }
        if layers.full.is_some() {
            return Ok(());
        }
        let device = format!("/dev/nbd{number}");
        let (cache, aio) = (
            format!("--cache={}", layers.cache.name()),
            format!("--aio={}", layers.aio.name()),
        );
        let format = format!("--format={}", format.name());
        let connect = format!("--connect={device}");
        self.run(&["qemu-nbd", "--fork", &cache, &aio, &format, &connect, &file])?;
        built
            .undo
            .push(line(&["qemu-nbd", "--disconnect", &device]));
        self.wait_for(&device)?;
        built.bottom = Some(device.clone());
        built.device = Some(device);
        built.directory = None;
        Ok(())
    }

    /// Waits until a device has a size: the kernel learns it a moment after the server is there.
    fn wait_for(&self, device: &str) -> Result<(), StudyError> {
        for _ in 0..100 {
            let size = self.run(&["blockdev", "--getsize64", device])?;
            if size.trim() != "0" {
                return Ok(());
            }
            sleep(Duration::from_millis(100));
        }
        Err(StudyError::measure(
            device,
            "the kernel does not connect it",
        ))
    }

    fn lvm(&self, name: &str, built: &mut Built) -> Result<(), StudyError> {
        let Some(device) = built.device.clone() else {
            return Ok(());
        };
        let group = format!("vg{name}");
        // LVM would find its label on the zvol under the image as well.
        let only = ["--quiet", "--yes", "--devices", &device];
        self.run(&[&["vgcreate"], &only[..], &[&group, &device]].concat())?;
        let remove = [&["vgremove", "--force"], &only[..], &[&group]].concat();
        built.undo.push(line(&remove));
        let size = ["--name=lv", "--extents=100%FREE", &group];
        self.run(&[&["lvcreate"], &only[..], &size].concat())?;
        built.device = Some(format!("/dev/{group}/lv"));
        Ok(())
    }

    fn luks(&self, name: &str, built: &mut Built) -> Result<(), StudyError> {
        let Some(device) = built.device.clone() else {
            return Ok(());
        };
        self.guest.push_bytes(b"study", Path::new(KEY), 0o600)?;
        let opened = format!("luks-{name}");
        // A short key derivation: this is about reading and writing, not about unlocking.
        let argv = [
            "cryptsetup",
            "luksFormat",
            "--batch-mode",
            "--type=luks2",
            "--pbkdf=pbkdf2",
            "--pbkdf-force-iterations=1000",
        ];
        self.run(&[&argv[..], &["--key-file", KEY, &device]].concat())?;
        self.run(&["cryptsetup", "open", "--key-file", KEY, &device, &opened])?;
        built.undo.push(line(&["cryptsetup", "close", &opened]));
        built.device = Some(format!("/dev/mapper/{opened}"));
        Ok(())
    }

    fn file_system(&self, name: &str, fs: Fs, built: &mut Built) -> Result<(), StudyError> {
        let Some(device) = built.device.clone() else {
            return Ok(());
        };
        let (make, force) = (
            format!("mkfs.{}", fs.name()),
            if fs == Fs::Xfs { "-f" } else { "-F" },
        );
        self.run(&[&make, "-q", force, &device])?;
        let dir = format!("/run/study-{name}");
        self.run(&["mkdir", "-p", &dir])?;
        self.run(&["mount", "-t", fs.name(), &device, &dir])?;
        built.undo.push(line(&["umount", &dir]));
        built.directory = Some(dir);
        Ok(())
    }
}

fn line(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}
