//! File systems: the mount of a path and its devices.

use super::{Finder, yes_or_no};
use assay_facts::block::Device;
use assay_facts::mountinfo::{self, Mount};
use assay_facts::redact;
use assay_model::stack::{Layer, LayerKind};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// Mount options that are not shown, because they cost nothing or every mount has them.
const USUAL: [&str; 12] = [
    "rw",
    "seclabel",
    "attr2",
    "inode64",
    "noquota",
    "logbufs=8",
    "logbsize=32k",
    "nosuid",
    "nodev",
    "noexec",
    "space_cache=v2",
    "subvol=/",
];

/// Names of file systems that store data in memory.
const MEMORY: [&str; 4] = ["tmpfs", "ramfs", "devtmpfs", "rootfs"];

/// Names of file systems that store data on another machine.
const REMOTE: [&str; 9] = [
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "ceph",
    "9p",
    "virtiofs",
    "fuse.sshfs",
    "fuse.glusterfs",
];

impl Finder<'_> {
    /// Connects a layer with the file system that contains a path.
    pub(super) fn file_system_of(&mut self, at: usize, path: &Path) {
        let real = match self.host.realpath(path) {
            Ok(real) => real,
            Err(error) => return self.unknown(at, format!("its file system: {error}")),
        };
        let mounts = match self.mounts() {
            Ok(mounts) => mounts,
            Err(reason) => return self.unknown(at, format!("its file system: {reason}")),
        };
        match mountinfo::of(&mounts, &real) {
            Some(mount) => {
                let below = self.mount(mount);
                self.stand(at, below);
            }
            None => self.unknown(at, "its file system: no mount covers it"),
        }
    }

    fn mount(&mut self, mount: &Mount) -> usize {
        let source = mount.source.to_string_lossy().into_owned();
        if mount.fs_type == "zfs" {
            return self.dataset(&source, Some(&mount.point));
        }
        let mut layer = Layer::new(LayerKind::FileSystem, mount.point.to_string_lossy());
        layer.place = Some(mount.point.clone());
        let mut set = |key: &str, value: String| layer.settings.insert(key.to_owned(), value);
        set("type", mount.fs_type.clone());
        let options = redact::mount_options(&mount.all_options());
        let told: Vec<&str> = options
            .split(',')
            .filter(|option| !USUAL.contains(option) && !option.starts_with("subvolid="))
            .collect();
        if !told.is_empty() {
            set("options", told.join(","));
        }
        let key = format!("mount:{}", mount.id);
        self.enter(key, layer, |finder, at| finder.under_mount(at, mount))
    }

    fn under_mount(&mut self, at: usize, mount: &Mount) {
        let kind = mount.fs_type.as_str();
        if MEMORY.contains(&kind) {
            return self.set(at, "data", "in memory");
        }
        if REMOTE.contains(&kind) {
            let source = redact::mount_source(kind, &mount.source.to_string_lossy());
            let mut layer = Layer::new(LayerKind::Network, source.clone());
            layer
                .settings
                .insert("protocol".to_owned(), kind.to_owned());
            layer
                .unknown
                .push("what lies below is on another machine".to_owned());
            let below = self.enter(format!("network:{source}"), layer, |_, _| ());
            return self.stand(at, below);
        }
        self.block_size(at, &mount.point);
        match kind {
            "overlay" => return self.overlay(at, mount),
            "btrfs" => return self.btrfs(at, mount),
            _ => {}
        }
        if mount.dev.major != 0 {
            return match Device::of_number(self.host, mount.dev) {
                Ok(device) => {
                    let below = self.device(&device);
                    self.stand(at, below);
                }
                Err(error) => self.unknown(at, format!("its device: {error}")),
            };
        }
        // The source of bcachefs is a list of members: `/dev/sda:/dev/sdb`.
        let sources = mount.source.as_bytes().split(|&byte| byte == b':');
        let nodes: Vec<PathBuf> = sources
            .filter(|source| source.starts_with(b"/dev/"))
            .map(|source| OsStr::from_bytes(source).into())
            .collect();
        if nodes.is_empty() {
            self.unknown(at, format!("what lies below: {kind} does not say"));
        }
        for node in nodes {
            self.stand_on_node(at, &node);
        }
    }

    /// Adds the smallest unit of space that a file can allocate (the block size) to a layer.
    fn block_size(&mut self, at: usize, point: &Path) {
        let argv = ["stat", "--file-system", "--format=%S", "--"].map(OsStr::new);
        let argv: Vec<&OsStr> = argv.into_iter().chain([point.as_os_str()]).collect();
        if let Ok(output) = self.ask(&argv) {
            self.set(at, "block_size", super::shorten_size(output.text().trim()));
        }
    }

    fn overlay(&mut self, at: usize, mount: &Mount) {
        let Some(upper) = mount.super_option("upperdir") else {
            return self.unknown(at, "what lies below: it has no upperdir");
        };
        let upper = PathBuf::from(OsString::from_vec(mountinfo::unescape(upper.as_bytes())));
        match self.host.exists(&upper) {
            Ok(true) => self.file_system_of(at, &upper),
            _ => self.unknown(
                at,
                "what lies below: its upper directory is out of sight, as in a container",
            ),
        }
    }

    fn btrfs(&mut self, at: usize, mount: &Mount) {
        let source = PathBuf::from(&mount.source);
        let Ok(Some(device)) = Device::of_node(self.host, &source) else {
            let source = source.display();
            return self.unknown(at, format!("its devices: {source} is not to be seen"));
        };
        let base = Path::new("/sys/fs/btrfs");
        let listed = self.host.list(base).unwrap_or_default();
        let dirs = listed.into_iter().map(|uuid| base.join(uuid));
        let mine = dirs.into_iter().find_map(|dir| {
            let members = self.host.list(&dir.join("devices")).ok()?;
            let mine = members.iter().any(|name| name == device.name.as_str());
            mine.then_some((dir, members))
        });
        let Some((dir, members)) = mine else {
            let below = self.device(&device);
            return self.stand(at, below);
        };
        for class in ["data", "metadata"] {
            let names = self.host.list(&dir.join("allocation").join(class));
            let profiles: Vec<String> = names
                .unwrap_or_default()
                .into_iter()
                .map(|name| name.to_string_lossy().into_owned())
                .filter(|name| {
                    let known = ["single", "dup", "raid"];
                    known.iter().any(|start| name.starts_with(start))
                })
                .collect();
            if !profiles.is_empty() {
                self.set(at, &format!("{class}_profile"), profiles.join(" "));
            }
        }
        if let Some(checksum) = self.line(&dir.join("checksum")) {
            self.set(at, "checksum", checksum);
        }
        let cow = !mount
            .all_options()
            .split(',')
            .any(|option| option == "nodatacow");
        self.set(at, "cow", yes_or_no(cow));
        for member in members {
            match Device::of_name(self.host, &member) {
                Ok(device) => {
                    let below = self.device(&device);
                    self.stand(at, below);
                }
                Err(error) => self.unknown(at, format!("a device of it: {error}")),
            }
        }
    }
}
