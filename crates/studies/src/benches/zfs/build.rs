//! Creates and removes the layers of configurations.

use super::built::{Built, Undo};
use super::guest_or_dataset::{Ground, Here};
use super::settings::{Base, Fs, Full, Image, Layers};
use crate::StudyError;
use assay_changes::Made;
use assay_model::Bytes;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

/// Name of the pool in a guest.
pub(super) const POOL: &str = "study";
/// Dataset whose data fills the pool, for configurations with a full pool.
pub(super) const FILLER: &str = "study/filler";
/// Parent of the datasets whose space is limited by a quota.
pub(super) const FENCE: &str = "study/fence";
/// Time limit of a command in an emulated guest on a busy machine.
pub(super) const LIMIT: Duration = Duration::from_secs(180);

/// Creates the layers of a study's configurations.
pub(super) struct Builder<'a> {
    /// Where the layers are created: in a guest, or below a dataset on this machine.
    pub ground: &'a Ground<'a>,
    /// Size of each disk.
    pub size: Bytes,
}

impl Builder<'_> {
    fn run(&self, argv: &[&str]) -> Result<String, StudyError> {
        self.ground.command(argv)
    }

    /// Creates the layers of the configuration with this number.
    ///
    /// # Errors
    /// A layer cannot be created. The layers that were created before it are removed.
    pub fn build(&self, number: usize, layers: &Layers) -> Result<Built, StudyError> {
        let mut built = Built {
            directory: None,
            device: None,
            bottom: None,
            dataset: None,
            image: None,
            format: None,
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

    /// Removes layers. A layer that cannot be removed stays until the guest ends or the session closes.
    pub fn take_away(&self, built: Built) {
        for undo in built.undo.iter().rev() {
            let line = match undo {
                Undo::Run(line) => line,
                Undo::Made(id) => {
                    // Failures are retried when the session closes.
                    let _ = self.ground.remove(*id);
                    continue;
                }
            };
            let words: Vec<&str> = line.iter().map(String::as_str).collect();
            // udev may still read the closed device.
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
        match self.ground.here() {
            None => self.base(&name, layers, built)?,
            Some(here) => self.base_here(here, &name, layers, built)?,
        }
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
            built.device = self.ground.disk(name)?;
            built.bottom.clone_from(&built.device);
            return Ok(());
        }
        let above = match layers.full {
            Some(Full::Quota) => FENCE,
            _ => POOL,
        };
        let dataset = format!("{above}/{name}");
        self.create(&dataset, layers, &[])?;
        let destroy = ["zfs", "destroy", "-r", &dataset];
        built.undo.push(Undo::Run(to_line(&destroy)));
        if layers.on == Base::Dataset {
            built.directory = Some(format!("/{dataset}"));
        }
        built.dataset = Some(dataset);
        self.found(layers, built)
    }

    /// Creates the lowest layer below the user's dataset. The layer is first recorded in the journal, and carries
    /// assay's mark.
    fn base_here(
        &self,
        here: &Here<'_>,
        name: &str,
        layers: &Layers,
        built: &mut Built,
    ) -> Result<(), StudyError> {
        if let Some(reason) = layers.not_here() {
            return Err(StudyError::measure("not on storage of your own", reason));
        }
        let needed = self.size.0 + self.size.0 / 8;
        if here.available()? < needed {
            let reason = format!("there is no room for {} on it", Bytes(needed));
            return Err(StudyError::measure(self.ground.parent(), reason));
        }
        let (dataset, mark) = here.dataset(name);
        let mount = self.ground.path(name);
        let own = match layers.on {
            // As a bare device, so that nobody searches it for partitions.
            Base::Zvol => vec![mark, "volmode=dev".to_owned()],
            // Not mounted at boot, which may come before recovery.
            _ => vec![
                mark,
                format!("mountpoint={mount}"),
                "canmount=noauto".to_owned(),
            ],
        };
        let thing = Made::Dataset {
            name: dataset.clone(),
        };
        built.undo.push(Undo::Made(here.enter(&thing)?));
        self.create(&dataset, layers, &own)?;
        if layers.on == Base::Dataset {
            self.run(&["zfs", "mount", &dataset])?;
            built.directory = Some(mount);
        }
        built.dataset = Some(dataset);
        self.found(layers, built)
    }

    fn create(&self, dataset: &str, layers: &Layers, own: &[String]) -> Result<(), StudyError> {
        let properties = layers.properties.iter();
        let properties = properties.map(|(key, value)| format!("{key}={value}"));
        let mut argv = to_line(&["zfs", "create"]);
        for property in properties.chain(own.iter().cloned()) {
            argv.extend(["-o".to_owned(), property]);
        }
        if layers.on == Base::Zvol {
            if !layers.reserved {
                argv.push("-s".to_owned());
            }
            argv.extend(["-V".to_owned(), self.size.0.to_string()]);
        }
        argv.push(dataset.to_owned());
        let words: Vec<&str> = argv.iter().map(String::as_str).collect();
        self.run(&words).map(drop)
    }

    /// Waits for udev, and finds the device of a zvol.
    fn found(&self, layers: &Layers, built: &mut Built) -> Result<(), StudyError> {
        if let (Base::Zvol, Some(dataset)) = (layers.on, &built.dataset) {
            let device = format!("/dev/zvol/{dataset}");
            self.ground.node(&device)?;
            built.device = Some(device);
        }
        Ok(())
    }

    /// Creates a QEMU image in the zvol or in a file on the dataset, and attaches it to the guest's kernel over NBD.
    /// This path also creates the QEMU layers of a virtual disk without a nested guest. For a full pool, a nested guest
    /// uses the image instead.
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
        (built.image, built.format) = (Some(file.clone()), Some(format));
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
        if layers.full.is_some() || layers.guest.is_some() {
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
        let disconnect = ["qemu-nbd", "--disconnect", &device];
        built.undo.push(Undo::Run(to_line(&disconnect)));
        self.wait_for(&device)?;
        built.bottom = Some(device.clone());
        built.device = Some(device);
        built.directory = None;
        Ok(())
    }

    /// Waits until a device has a size. The size appears shortly after the NBD server starts.
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
        // LVM would also find its label on the zvol under the image.
        let only = ["--quiet", "--yes", "--devices", &device];
        self.run(&[&["vgcreate"], &only[..], &[&group, &device]].concat())?;
        let remove = [&["vgremove", "--force"], &only[..], &[&group]].concat();
        built.undo.push(Undo::Run(to_line(&remove)));
        let size = ["--name=lv", "--extents=100%FREE", &group];
        self.run(&[&["lvcreate"], &only[..], &size].concat())?;
        built.device = Some(format!("/dev/{group}/lv"));
        Ok(())
    }

    fn luks(&self, name: &str, built: &mut Built) -> Result<(), StudyError> {
        let Some(device) = built.device.clone() else {
            return Ok(());
        };
        let key = self.ground.path("key");
        self.ground.write(&key, b"study")?;
        let opened = format!("luks-{name}");
        // Short key derivation, because only reading and writing are measured.
        let argv = [
            "cryptsetup",
            "luksFormat",
            "--batch-mode",
            "--type=luks2",
            "--pbkdf=pbkdf2",
            "--pbkdf-force-iterations=1000",
        ];
        self.run(&[&argv[..], &["--key-file", &key, &device]].concat())?;
        self.run(&["cryptsetup", "open", "--key-file", &key, &device, &opened])?;
        let close = ["cryptsetup", "close", &opened];
        built.undo.push(Undo::Run(to_line(&close)));
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
        let dir = self.ground.path(&format!("{name}-fs"));
        self.run(&["mkdir", "-p", &dir])?;
        if let Some(here) = self.ground.here() {
            let mountpoint = PathBuf::from(&dir);
            let id = here.enter(&Made::Mount { mountpoint })?;
            built.undo.push(Undo::Made(id));
            self.run(&["mount", "-t", fs.name(), &device, &dir])?;
        } else {
            self.run(&["mount", "-t", fs.name(), &device, &dir])?;
            built.undo.push(Undo::Run(to_line(&["umount", &dir])));
        }
        built.directory = Some(dir);
        Ok(())
    }
}

fn to_line(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}
