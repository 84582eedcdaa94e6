//! What the guest image consists of, and the hash that names it.

/// The Debian release of the guest.
pub const RELEASE: &str = "bookworm";
/// Where the release comes from when the machine's own apt knows no Debian mirror.
pub const DEFAULT_MIRROR: &str = "http://deb.debian.org/debian";

/// Packages of the guest. `zfs-dkms` and the headers go again once the module is built.
const PACKAGES: [&str; 22] = [
    "systemd-sysv",
    "udev",
    "kmod",
    "linux-image-amd64",
    "linux-headers-amd64",
    "initramfs-tools",
    "zfs-dkms",
    "zfsutils-linux",
    "fio",
    "cryptsetup-bin",
    "lvm2",
    "xfsprogs",
    "btrfs-progs",
    "e2fsprogs",
    "iproute2",
    "procps",
    // Partitions, md and TLS's ciphers, for stacks and the comparison of processors.
    "fdisk",
    "mdadm",
    "openssl",
    // Images on ZFS: served over NBD in the guest, or under a guest of the guest.
    "qemu-utils",
    "qemu-system-common",
    "qemu-system-x86",
];

/// Files that take part in the build, as (name, content, executable).
const FILES: [(&str, &str, bool); 5] = [
    ("customize", include_str!("../image/customize"), true),
    (
        "assay-agent.service",
        include_str!("../image/assay-agent.service"),
        false,
    ),
    ("take-agent", include_str!("../image/take-agent"), true),
    ("lab.target", include_str!("../image/lab.target"), false),
    (
        "initramfs.conf",
        include_str!("../image/initramfs.conf"),
        false,
    ),
];

/// Which OpenZFS a guest has. What is advised may depend on the version: both sides of a boundary
/// can be tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Zfs {
    /// That of the Debian release: 2.1.
    #[default]
    Stable,
    /// That of its backports: 2.3.
    Backports,
}

impl Zfs {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Stable, Self::Backports];

    /// As the command line names it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Stable => "stable",
            Self::Backports => "backports",
        }
    }

    /// The one that an image with this hash has; none when it is of another recipe.
    #[must_use]
    pub fn of(image: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|zfs| hash(*zfs) == image)
    }
}

/// The suite that has the newer OpenZFS.
const BACKPORTS: &str = "bookworm-backports";
const COMPONENTS: &str = "main,contrib";
/// Makes apt prefer it.
pub const PREFER: (&str, &str, bool) = (
    "prefer-backports",
    include_str!("../image/prefer-backports"),
    true,
);

/// The files that take part in a build.
pub fn build_files(zfs: Zfs) -> impl Iterator<Item = (&'static str, &'static str, bool)> {
    let more = (zfs == Zfs::Backports).then_some(PREFER);
    FILES.into_iter().chain(more)
}

/// The lines of sources.list besides the release itself.
#[must_use]
pub fn more_sources(zfs: Zfs, mirror: &str) -> Option<String> {
    let components = COMPONENTS.replace(',', " ");
    (zfs == Zfs::Backports).then(|| format!("deb {mirror} {BACKPORTS} {components}"))
}

/// Arguments of mmdebstrap, without mirror and hooks.
#[must_use]
pub fn mmdebstrap_arguments() -> Vec<String> {
    vec![
        "--variant=minbase".to_owned(),
        format!("--components={COMPONENTS}"),
        // The module is built for the kernel of the image; recommended packages are not wanted.
        "--aptopt=APT::Install-Recommends \"false\"".to_owned(),
        "--dpkgopt=path-exclude=/usr/share/man/*".to_owned(),
        "--dpkgopt=path-exclude=/usr/share/locale/*".to_owned(),
        "--dpkgopt=path-exclude=/usr/share/doc/*".to_owned(),
        // Says when dkms begins, which is most of the work.
        "--verbose".to_owned(),
        format!("--include={}", PACKAGES.join(",")),
        "--format=null".to_owned(),
    ]
}

/// Names the image: the same recipe has the same hash, 16 hexadecimal digits. Where the packages
/// come from is no part of it.
#[must_use]
pub fn hash(zfs: Zfs) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut add = |part: &str| {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    };
    add(RELEASE);
    add(std::env::consts::ARCH);
    for argument in mmdebstrap_arguments() {
        add(&argument);
    }
    for (name, content, executable) in build_files(zfs) {
        add(name);
        add(content);
        add(if executable { "x" } else { "-" });
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

/// The Debian mirror in what `apt-get indextargets` says (`REPO_URI` and `RELEASE` of each line):
/// the archive itself, not its security or backports part, nor that of another distribution.
#[must_use]
pub fn parse_mirror(targets: &str) -> Option<&str> {
    targets.lines().find_map(|line| {
        let (uri, release) = line.trim().split_once(' ')?;
        let path = uri.trim_end_matches('/');
        let plain = path.rsplit('/').next() == Some("debian");
        let known = ["http://", "https://", "file:", "copy:"];
        let fetchable = known.iter().any(|scheme| path.starts_with(scheme));
        (plain && fetchable && !release.contains('/')).then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_a_short_name_that_stays_the_same_and_tells_the_flavour() {
        for zfs in Zfs::ALL {
            let name = hash(zfs);
            assert_eq!(name.len(), 16);
            assert!(name.bytes().all(|byte| byte.is_ascii_hexdigit()));
            assert_eq!(Zfs::of(&name), Some(zfs));
        }
        assert_eq!(Zfs::of("0000000000000000"), None);
    }

    /// apt 2.6.1 on Debian 12: `apt-get indextargets --format '$(REPO_URI) $(RELEASE)'`.
    #[test]
    fn the_machines_own_mirror_is_taken() {
        let targets = "https://packages.cloud.google.com/apt/ cloud-sdk-bookworm\n\
            http://deb.debian.org/debian-security/ bookworm-security\n\
            http://mirror.example/debian/ bookworm\n\
            http://deb.debian.org/debian/ bookworm-updates\n";
        assert_eq!(parse_mirror(targets), Some("http://mirror.example/debian"));
        assert_eq!(
            parse_mirror("http://archive.ubuntu.com/ubuntu/ noble\n"),
            None
        );
        assert_eq!(parse_mirror("cdrom:[Debian]/debian/ bookworm\n"), None);
        assert_eq!(parse_mirror(""), None);
    }
}
