//! Bundles of invented machines. Each bundle contains a few realistic configuration files, which are checked by the
//! real catalogue.

use std::collections::BTreeMap;
use tar::{Builder, EntryType, Header};

/// Index of a bundle in which nothing is missing.
const INDEX: &str = r#"{"schema":1,"commands":[]}"#;

/// Contents of a bundle by path: regular files, and symbolic links of sysfs.
#[derive(Debug, Default)]
pub(crate) struct Files {
    texts: BTreeMap<&'static str, String>,
    /// Symbolic links of sysfs, each as path and target.
    links: Vec<(&'static str, &'static str)>,
}

impl Files {
    /// Sets the content of a file.
    pub(crate) fn insert(&mut self, path: &'static str, text: String) {
        self.texts.insert(path, text);
    }
}

/// Packs files into a bundle in the form that `assay fleet check` receives.
pub(crate) fn pack_bundle(files: &Files) -> std::io::Result<Vec<u8>> {
    let mut builder = Builder::new(Vec::new());
    let index = [("assay-capture.json", INDEX.to_owned())];
    let all = files.texts.iter().map(|(path, text)| (*path, text.clone()));
    for (path, text) in all.chain(index) {
        let mut header = Header::new_ustar();
        header.set_entry_type(EntryType::Regular);
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, path, text.as_bytes())?;
    }
    for (path, target) in &files.links {
        let mut header = Header::new_ustar();
        header.set_entry_type(EntryType::Symlink);
        header.set_size(0);
        builder.append_link(&mut header, path, target)?;
    }
    builder.into_inner()
}

/// Returns the files that the bundle of every machine contains.
pub(crate) fn base_files(
    name: &str,
    kernel: &str,
    cpu: &str,
    threads: u32,
    memory_gib: u64,
) -> Files {
    let processor = |number: u32| {
        format!("processor\t: {number}\nmodel name\t: {cpu}\ncpu MHz\t\t: 2400.000\n\n")
    };
    let mut files = Files::default();
    let mut add = |path, text: String| {
        files.insert(path, text);
    };
    add("proc/sys/kernel/hostname", format!("{name}\n"));
    add("proc/sys/kernel/osrelease", format!("{kernel}\n"));
    add("proc/cpuinfo", (0..threads).map(processor).collect());
    add(
        "sys/devices/system/cpu/online",
        format!("0-{}\n", threads - 1),
    );
    add(
        "proc/meminfo",
        format!("MemTotal:       {} kB\n", memory_gib * 1024 * 1024),
    );
    add(
        "etc/os-release",
        "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nNAME=\"Debian GNU/Linux\"\nVERSION_ID=\"12\"\nID=debian\n"
            .to_owned(),
    );
    add(
        "etc/ssh/sshd_config",
        "PermitRootLogin prohibit-password\nPasswordAuthentication no\nUsePAM yes\nX11Forwarding no\n".to_owned(),
    );
    files
}

/// Adds the configuration of nginx with one site.
pub(crate) fn add_nginx(files: &mut Files, protocols: &str, autoindex: bool) {
    files.insert(
        "etc/nginx/nginx.conf",
        "user www-data;\nworker_processes auto;\nevents { worker_connections 768; }\nhttp {\n  \
         include /etc/nginx/mime.types;\n  include /etc/nginx/sites-enabled/*;\n}\n"
            .to_owned(),
    );
    files.insert(
        "etc/nginx/mime.types",
        "types { text/html html; }\n".to_owned(),
    );
    let listing = if autoindex {
        "  location /files/ { autoindex on; root /srv; }\n"
    } else {
        ""
    };
    files.insert(
        "etc/nginx/sites-enabled/shop",
        format!(
            "server {{\n  listen 443 ssl;\n  server_name shop.example.org;\n  ssl_protocols {protocols};\n  \
             ssl_certificate /etc/ssl/certs/shop.pem;\n  ssl_certificate_key /etc/ssl/private/shop.key;\n  \
             root /srv/shop;\n{listing}}}\n"
        ),
    );
}

/// Adds the layers below `/`: a RAID 1 of two disks. If `is_whole` is false, one disk has failed.
pub(crate) fn add_mirror(files: &mut Files, is_whole: bool) {
    let state = if is_whole {
        "sda1[0] sdb1[1]"
    } else {
        "sda1[0] sdb1[1](F)"
    };
    let disks = if is_whole { "[2/2] [UU]" } else { "[2/1] [U_]" };
    files.insert(
        "proc/mdstat",
        format!(
            "Personalities : [raid1]\nmd0 : active raid1 {state}\n      976630464 blocks super 1.2 {disks}\n\n\
             unused devices: <none>\n"
        ),
    );
    for (path, text) in MIRROR {
        files.insert(path, format!("{text}\n"));
    }
    files.insert(
        "sys/devices/virtual/block/md0/md/degraded",
        format!("{}\n", u8::from(!is_whole)),
    );
    files.links.extend(MIRROR_LINKS);
}

/// Files of /proc and /sys that describe the file system and the block devices of the RAID 1.
const MIRROR: [(&str, &str); 26] = [
    (
        "proc/self/mountinfo",
        "24 1 9:0 / / rw,relatime shared:1 - ext4 /dev/md0 rw,errors=remount-ro",
    ),
    ("sys/devices/virtual/block/md0/dev", "9:0"),
    ("sys/devices/virtual/block/md0/size", "1953260928"),
    ("sys/devices/virtual/block/md0/md/level", "raid1"),
    ("sys/devices/virtual/block/md0/md/raid_disks", "2"),
    ("sys/devices/virtual/block/md0/md/array_state", "clean"),
    ("sys/devices/virtual/block/md0/md/sync_action", "idle"),
    ("sys/devices/virtual/block/md0/md/bitmap/location", "+8"),
    (
        "sys/devices/pci0000:00/0000:00:17.0/ata1/host0/block/sda/dev",
        "8:0",
    ),
    (
        "sys/devices/pci0000:00/0000:00:17.0/ata1/host0/block/sda/size",
        "1953525168",
    ),
    (
        "sys/devices/pci0000:00/0000:00:17.0/ata1/host0/block/sda/sda1/dev",
        "8:1",
    ),
    (
        "sys/devices/pci0000:00/0000:00:17.0/ata1/host0/block/sda/sda1/size",
        "1953523120",
    ),
    (
        "sys/devices/pci0000:00/0000:00:17.0/ata1/host0/block/sda/sda1/partition",
        "1",
    ),
    (
        "sys/devices/pci0000:00/0000:00:17.0/ata1/host0/block/sda/queue/rotational",
        "0",
    ),
    (
        "sys/devices/pci0000:00/0000:00:17.0/ata1/host0/block/sda/queue/scheduler",
        "[mq-deadline] none",
    ),
    (
        "sys/devices/pci0000:00/0000:00:17.0/ata1/host0/block/sda/queue/logical_block_size",
        "512",
    ),
    (
        "sys/devices/pci0000:00/0000:00:17.0/ata1/host0/block/sda/queue/physical_block_size",
        "4096",
    ),
    (
        "sys/devices/pci0000:00/0000:00:17.0/ata2/host1/block/sdb/dev",
        "8:16",
    ),
    (
        "sys/devices/pci0000:00/0000:00:17.0/ata2/host1/block/sdb/size",
        "1953525168",
    ),
    (
        "sys/devices/pci0000:00/0000:00:17.0/ata2/host1/block/sdb/sdb1/dev",
        "8:17",
    ),
    (
        "sys/devices/pci0000:00/0000:00:17.0/ata2/host1/block/sdb/sdb1/size",
        "1953523120",
    ),
    (
        "sys/devices/pci0000:00/0000:00:17.0/ata2/host1/block/sdb/sdb1/partition",
        "1",
    ),
    (
        "sys/devices/pci0000:00/0000:00:17.0/ata2/host1/block/sdb/queue/rotational",
        "0",
    ),
    (
        "sys/devices/pci0000:00/0000:00:17.0/ata2/host1/block/sdb/queue/scheduler",
        "[mq-deadline] none",
    ),
    (
        "sys/devices/pci0000:00/0000:00:17.0/ata2/host1/block/sdb/queue/logical_block_size",
        "512",
    ),
    (
        "sys/devices/pci0000:00/0000:00:17.0/ata2/host1/block/sdb/queue/physical_block_size",
        "4096",
    ),
];

/// Symbolic links in sysfs for the block devices of the RAID 1, each as path and target.
const MIRROR_LINKS: [(&str, &str); 13] = [
    ("sys/block/md0", "../devices/virtual/block/md0"),
    (
        "sys/block/sda",
        "../devices/pci0000:00/0000:00:17.0/ata1/host0/block/sda",
    ),
    (
        "sys/block/sdb",
        "../devices/pci0000:00/0000:00:17.0/ata2/host1/block/sdb",
    ),
    ("sys/class/block/md0", "../../devices/virtual/block/md0"),
    (
        "sys/class/block/sda1",
        "../../devices/pci0000:00/0000:00:17.0/ata1/host0/block/sda/sda1",
    ),
    (
        "sys/class/block/sdb1",
        "../../devices/pci0000:00/0000:00:17.0/ata2/host1/block/sdb/sdb1",
    ),
    ("sys/dev/block/9:0", "../../devices/virtual/block/md0"),
    (
        "sys/dev/block/8:0",
        "../../devices/pci0000:00/0000:00:17.0/ata1/host0/block/sda",
    ),
    (
        "sys/dev/block/8:16",
        "../../devices/pci0000:00/0000:00:17.0/ata2/host1/block/sdb",
    ),
    (
        "sys/dev/block/8:1",
        "../../devices/pci0000:00/0000:00:17.0/ata1/host0/block/sda/sda1",
    ),
    (
        "sys/dev/block/8:17",
        "../../devices/pci0000:00/0000:00:17.0/ata2/host1/block/sdb/sdb1",
    ),
    (
        "sys/devices/virtual/block/md0/slaves/sda1",
        "../../../../pci0000:00/0000:00:17.0/ata1/host0/block/sda/sda1",
    ),
    (
        "sys/devices/virtual/block/md0/slaves/sdb1",
        "../../../../pci0000:00/0000:00:17.0/ata2/host1/block/sdb/sdb1",
    ),
];
