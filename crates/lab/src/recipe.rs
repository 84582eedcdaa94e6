//! Defines the content of the guest image. A hash of this recipe is the name of the image.

/// The Debian release of the guest.
pub const RELEASE: &str = "bookworm";
/// Mirror that is used if the machine's own apt uses no Debian mirror.
pub const DEFAULT_MIRROR: &str = "http://deb.debian.org/debian";

/// Packages of the guest. `zfs-dkms` and the headers are removed after the module has been built.
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
    // Partitions, md and TLS ciphers, for stacks and the comparison of CPUs.
    "fdisk",
    "mdadm",
    "openssl",
    // Images on ZFS: served over NBD in the guest, or used by a nested guest.
    "qemu-utils",
    "qemu-system-common",
    "qemu-system-x86",
];

/// Files for the build, as (name, content, executable).
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

/// Variable of Linux' Kbuild that leaves debug information out of the ZFS modules, which makes them faster to compile.
pub const MODULE_FLAGS: (&str, &str) = ("KCFLAGS", "-g0");

/// Source of the OpenZFS in a guest. Advice may depend on the version, so two versions permit tests on both sides of a
/// version limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Zfs {
    /// OpenZFS of the Debian release: 2.1.
    #[default]
    Stable,
    /// OpenZFS of Debian backports: 2.3.
    Backports,
}

impl Zfs {
    /// Both versions.
    pub const ALL: [Self; 2] = [Self::Stable, Self::Backports];

    /// Returns the name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Stable => "stable",
            Self::Backports => "backports",
        }
    }

    /// Returns the OpenZFS of an image by the image's hash; `None` for an image of another recipe.
    #[must_use]
    pub fn of(image: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|zfs| hash(*zfs) == image)
    }
}

/// Debian suite with the newer OpenZFS.
const BACKPORTS: &str = "bookworm-backports";
const COMPONENTS: &str = "main,contrib";
/// Build script that makes apt prefer the ZFS packages from backports.
pub const PREFER: (&str, &str, bool) = (
    "prefer-backports",
    include_str!("../image/prefer-backports"),
    true,
);

/// Returns the files that a build needs, as (name, content, executable).
pub fn build_files(zfs: Zfs) -> impl Iterator<Item = (&'static str, &'static str, bool)> {
    let more = (zfs == Zfs::Backports).then_some(PREFER);
    FILES.into_iter().chain(more)
}

/// Returns the additional lines of sources.list for this OpenZFS, if any.
#[must_use]
pub fn more_sources(zfs: Zfs, mirror: &str) -> Option<String> {
    let components = COMPONENTS.replace(',', " ");
    (zfs == Zfs::Backports).then(|| format!("deb {mirror} {BACKPORTS} {components}"))
}

/// Returns the arguments of mmdebstrap except mirror and hooks.
#[must_use]
pub fn mmdebstrap_arguments() -> Vec<String> {
    vec![
        "--variant=minbase".to_owned(),
        format!("--components={COMPONENTS}"),
        // The module is built for the image's kernel; recommended packages are not installed.
        "--aptopt=APT::Install-Recommends \"false\"".to_owned(),
        "--dpkgopt=path-exclude=/usr/share/man/*".to_owned(),
        "--dpkgopt=path-exclude=/usr/share/locale/*".to_owned(),
        "--dpkgopt=path-exclude=/usr/share/doc/*".to_owned(),
        // Shows when dkms starts, which is most of the work.
        "--verbose".to_owned(),
        format!("--include={}", PACKAGES.join(",")),
        "--format=null".to_owned(),
    ]
}

/// Computes the name of the image: a hash of the recipe, 16 hexadecimal digits. The mirror does not change the hash.
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
    add(MODULE_FLAGS.1);
    for (name, content, executable) in build_files(zfs) {
        add(name);
        add(content);
        add(if executable { "x" } else { "-" });
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

/// Finds the Debian mirror in the output of `apt-get indextargets` (`REPO_URI` and `RELEASE` per line). Considers only
/// the main archive of Debian, not security updates, backports or other distributions.
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
