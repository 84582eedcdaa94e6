//! An archive in the guest, which has no network: a package of this machine, packed again.

use crate::common::pools::Pools;
use std::path::Path;
use std::process::Command;

/// The package that the archive has.
const PACKAGE: &str = "systemd-timesyncd";

/// Packs the files of an installed package. The guest may have another build of the same systemd.
const PACK: &str = r#"
dpkg --status "$PACKAGE" > status
dpkg --listfiles "$PACKAGE" | while read -r path; do [ -d "$path" ] || printf '%s\n' "$path"; done > files
mkdir -p tree/DEBIAN
tar -C / -c --no-recursion -T files 2> log | tar -x -C tree
sed -e '/^Status:/d' -e '/^Conffiles:/d' -e '/^ \//d' -e 's/libsystemd-shared ([^)]*)/libsystemd-shared/' status \
    > tree/DEBIAN/control
for name in preinst postinst prerm postrm; do
    [ ! -e "/var/lib/dpkg/info/$PACKAGE.$name" ] || cp "/var/lib/dpkg/info/$PACKAGE.$name" "tree/DEBIAN/$name"
done
dpkg-deb --build --root-owner-group tree own.deb
{
    dpkg-deb --field own.deb
    printf 'Filename: ./own.deb\nSize: %s\n' "$(stat -c %s own.deb)"
    printf 'SHA256: %s\n' "$(sha256sum own.deb | cut -d' ' -f1)"
} > Packages
"#;

/// Makes the archive the only source of apt in the guest; returns false if this machine does not have the package.
pub fn push_archive(guest: &Pools) -> bool {
    let dir = tempfile::tempdir().unwrap();
    let mut pack = Command::new("sh");
    pack.args(["-ec", PACK]).env("PACKAGE", PACKAGE);
    let packed = pack.current_dir(dir.path()).output().unwrap();
    if !packed.status.success() {
        assay_testing::skipped(PACKAGE, String::from_utf8_lossy(&packed.stderr));
        return false;
    }
    guest.sh("mkdir -p /srv/archive; rm -rf /etc/apt/sources.list /etc/apt/sources.list.d");
    for name in ["own.deb", "Packages"] {
        let bytes = std::fs::read(dir.path().join(name)).unwrap();
        let to = Path::new("/srv/archive").join(name);
        guest.guest.push_bytes(&bytes, &to, 0o644).unwrap();
    }
    guest.push(
        "deb [trusted=yes] file:/srv/archive ./\n",
        "/etc/apt/sources.list",
    );
    // The image was built without starting services.
    guest.sh("rm -f /usr/sbin/policy-rc.d; apt-get --quiet update");
    true
}
