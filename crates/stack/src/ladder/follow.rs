//! Reads the settings of an existing virtual disk, for a scratch disk with the same settings.

use crate::{RUNS, StackError, StackTarget, discover, find_users};
use assay_host::{FileKind, Host};
use assay_lab::disk::{Aio, Bus, CacheMode};
use assay_model::stack::{Layer, LayerKind, Stack};
use std::path::{Path, PathBuf};

/// A setting of a virtual disk, in the syntax of [`assay_lab::Disk::parse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowedSetting {
    /// Name of the setting, such as `cache`, `bus` or `cluster`.
    pub key: &'static str,
    /// Value of the setting.
    pub value: String,
    /// Where the value was found, such as `the command line of its QEMU`.
    pub from: String,
}

/// An existing virtual disk, and which of its settings a scratch disk copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Followed {
    /// Description of the disk, such as `disk hd0 of web` or `image /srv/x.qcow2`.
    pub name: String,
    /// Directory of the disk's image; `None` if the disk is a block device.
    pub dir: Option<PathBuf>,
    /// Settings that the scratch disk copies, in the order in which they are parsed.
    pub taken: Vec<FollowedSetting>,
    /// Settings that the scratch disk does not copy, as text.
    pub not: Vec<String>,
}

/// Reason why there is no virtual disk whose settings can be copied.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The machine or the stack below the guest cannot be read, or the guest does not exist.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// The guest has no writable disk.
    #[error("{0} has no disk that can be written")]
    NoDisk(String),
    /// The guest has no disk with this name.
    #[error("{guest} has no disk {asked:?}; there are {}", known.join(", "))]
    NoSuchDisk {
        /// Name of the guest.
        guest: String,
        /// Name that the user requested.
        asked: String,
        /// Names of the existing disks.
        known: Vec<String>,
    },
    /// The file is not recognised as an image.
    #[error(
        "{0} is no image that is known by its header, and no virtual machine here uses it: name a directory on the storage that is to be measured, or a virtual machine"
    )]
    NoImage(String),
}

/// Settings that are never copied to a scratch disk.
const NOT: [&str; 9] = [
    "throttled",
    "snapshot",
    "detect_zeroes",
    "queues",
    "queue_size",
    "logical_block_size",
    "physical_block_size",
    "werror",
    "iothread_asked",
];

/// Reads the settings of a guest's disk, or of an image and the guest that uses it. `disk` selects one of several
/// disks; the default is the first writable disk.
///
/// # Errors
/// The guest or disk does not exist, or the file is not an image.
pub fn follow(
    host: &dyn Host,
    target: &StackTarget,
    disk: Option<&str>,
) -> Result<Followed, FollowError> {
    match target {
        StackTarget::Guest(name) => of_guest(&discover(host, target)?, host, name, disk, None),
        StackTarget::Path(path) => of_image(host, path, disk),
    }
}

fn of_image(host: &dyn Host, path: &Path, disk: Option<&str>) -> Result<Followed, FollowError> {
    let target = StackTarget::Path(path.to_owned());
    let stack = discover(host, &target)?;
    let found = find_users(host, path).map_err(StackError::Unreadable)?;
    if let [pid] = found[..] {
        let name = pid.to_string();
        let guest = discover(host, &StackTarget::Guest(name.clone()))?;
        return of_guest(&guest, host, &name, disk, Some(path));
    }
    let top = &stack.layers[0];
    if top.kind != LayerKind::Image {
        let name = path.display().to_string().escape_debug().to_string();
        return Err(FollowError::NoImage(name));
    }
    let mut followed = Followed {
        name: format!("image {}", path.display()),
        dir: path.parent().map(Path::to_owned),
        taken: Vec::new(),
        not: Vec::new(),
    };
    followed.format(top);
    let whose = match found.len() {
        0 => "no virtual machine here uses it, so nothing tells its bus, cache and aio".to_owned(),
        many => format!("{many} virtual machines use it: name one of them for bus, cache and aio"),
    };
    followed.not.push(whose);
    Ok(followed)
}

fn of_guest(
    stack: &Stack,
    host: &dyn Host,
    name: &str,
    asked: Option<&str>,
    image: Option<&Path>,
) -> Result<Followed, FollowError> {
    let guest = &stack.layers[0];
    let disks = guest.below.iter().filter_map(|at| {
        let layer = stack.layers.get(*at)?;
        let writable = layer.kind == LayerKind::VirtualDisk && layer.get("read_only").is_none();
        (writable && !layer.below.is_empty()).then_some((*at, layer))
    });
    let disks: Vec<(usize, &Layer)> = disks.collect();
    let real = image.and_then(|image| host.realpath(image).ok());
    let wanted = |(at, layer): &&(usize, &Layer)| match (asked, &real) {
        (Some(asked), _) => layer.name == asked,
        (None, Some(real)) => {
            let mut under = stack.under(*at).into_iter();
            under.any(|at| stack.layers[at].place.as_ref() == Some(real))
        }
        (None, None) => true,
    };
    let Some(&(at, disk)) = disks.iter().find(wanted) else {
        return Err(match (asked, &disks[..]) {
            (Some(asked), [_, ..]) => FollowError::NoSuchDisk {
                guest: guest.name.clone(),
                asked: asked.to_owned(),
                known: disks.iter().map(|(_, disk)| disk.name.clone()).collect(),
            },
            _ => FollowError::NoDisk(guest.name.clone()),
        });
    };
    let runs = guest.get(RUNS) != Some("no");
    let from = match runs {
        true => format!("the command line of its QEMU ({name})"),
        false => "its configuration; it does not run".to_owned(),
    };
    let under = stack.under(at).into_iter();
    let under: Vec<&Layer> = under.filter_map(|at| stack.layers.get(at)).collect();
    let image = under
        .iter()
        .find(|layer| layer.kind == LayerKind::Image && layer.place.is_some())
        .or(under.first())
        .copied();
    let file = image.and_then(|image| image.place.as_deref());
    let regular = |path: &&Path| {
        host.stat(path)
            .is_ok_and(|stat| stat.kind == FileKind::Regular)
    };
    let mut followed = Followed {
        name: format!("disk {} of {}", disk.name, guest.name),
        dir: file
            .filter(regular)
            .and_then(Path::parent)
            .map(Path::to_owned),
        taken: Vec::new(),
        not: Vec::new(),
    };
    if let Some(image) = image {
        followed.format(image);
    }
    followed.opened(disk, &from);
    let others = disks.iter().filter(|(other, _)| *other != at);
    let others: Vec<&str> = others.map(|(_, disk)| disk.name.as_str()).collect();
    if !others.is_empty() && asked.is_none() && real.is_none() {
        followed.not.push(format!(
            "its other disks: {} (--vm-disk names another one)",
            others.join(", ")
        ));
    }
    Ok(followed)
}

impl Followed {
    /// Adds the format of the image to the settings.
    fn format(&mut self, image: &Layer) {
        let from = match &image.place {
            Some(place) => format!("the header of {}", place.display()),
            None => "the image".to_owned(),
        };
        let mut take = |key: &'static str, value: &str| {
            self.taken.push(FollowedSetting {
                key,
                value: value.to_owned(),
                from: from.clone(),
            });
        };
        match image.name.as_str() {
            "qcow2" => {
                take("format", "qcow2");
                if let Some(size) = image.get("cluster_size") {
                    take("cluster", size);
                }
                for key in ["extended_l2", "lazy_refcounts"] {
                    if image.get(key) == Some("on") {
                        take(key, "on");
                    }
                }
            }
            known @ ("raw" | "luks") => take("format", known),
            // A device without a format.
            _ if image.kind != LayerKind::Image => take("format", "raw"),
            other => {
                take("format", "raw");
                self.not.push(format!(
                    "its format {other}: assay makes raw, qcow2 and luks"
                ));
            }
        }
        if image.get("backing_file").is_some() {
            self.not.push("the image that it is based on".to_owned());
        }
    }

    /// Adds the settings with which QEMU opens the disk and presents it to the guest.
    fn opened(&mut self, disk: &Layer, from: &str) {
        let mut take = |key: &'static str, value: &str, fits: bool| match fits {
            true => self.taken.push(FollowedSetting {
                key,
                value: value.to_owned(),
                from: from.to_owned(),
            }),
            false => self
                .not
                .push(format!("{key}={value}, which assay has no disks with")),
        };
        if let Some(bus) = disk.get("bus") {
            take("bus", bus, bus.parse::<Bus>().is_ok());
        }
        if let Some(cache) = disk.get("cache") {
            take("cache", cache, cache.parse::<CacheMode>().is_ok());
        }
        if let Some(aio) = disk.get("aio") {
            take("aio", aio, aio.parse::<Aio>().is_ok());
        }
        let on = |on: bool| if on { "on" } else { "off" };
        if let Some(thread) = disk.get("iothread") {
            take("iothread", on(thread == "yes"), true);
        }
        if let Some(discard) = disk.get("discard") {
            take("discard", on(discard == "unmap"), true);
        }
        for key in NOT {
            if let Some(value) = disk.get(key) {
                self.not.push(format!("{key} {value}"));
            }
        }
    }
}
