//! Writes archives for an initramfs: format "newc" of cpio(5). The kernel unpacks several archives in sequence
//! (Documentation/driver-api/early-userspace/buffer-format.rst).

/// Returns an archive with one executable file. The archive can be appended to an initramfs.
#[must_use]
pub(crate) fn one_file(name: &str, content: &[u8]) -> Vec<u8> {
    let mut archive = Vec::new();
    entry(&mut archive, name, 0o100_755, content);
    entry(&mut archive, "TRAILER!!!", 0, &[]);
    archive
}

fn entry(archive: &mut Vec<u8>, name: &str, mode: u32, content: &[u8]) {
    // Inode, mode, owner, group, links, time, size, device and represented device (two numbers each), length
    // of the name with its zero, checksum (none in this format).
    let size = content.len();
    let fields = [
        1,
        mode as usize,
        0,
        0,
        1,
        0,
        size,
        0,
        0,
        0,
        0,
        name.len() + 1,
        0,
    ];
    let start = archive.len();
    archive.extend_from_slice(b"070701");
    for field in fields {
        archive.extend_from_slice(format!("{field:08X}").as_bytes());
    }
    archive.extend_from_slice(name.as_bytes());
    archive.push(0);
    pad(archive, start);
    let start = archive.len();
    archive.extend_from_slice(content);
    pad(archive, start);
}

/// Pads the archive to four bytes. The format requires this after each header with its name, and after each content.
fn pad(archive: &mut Vec<u8>, start: usize) {
    let length = archive.len() - start;
    archive.resize(start + length.next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    /// GNU cpio or busybox's cpio must be able to read the archive.
    #[test]
    fn cpio_unpacks_it() {
        let dir = tempfile::tempdir().unwrap();
        let cpio = Command::new("cpio")
            .args(["--extract", "--quiet"])
            .current_dir(dir.path())
            .stdin(Stdio::piped())
            .spawn();
        let Ok(mut cpio) = cpio else {
            assay_testing::skipped("cpio", "not installed");
            return;
        };
        let archive = one_file("agent", b"content");
        cpio.stdin.take().unwrap().write_all(&archive).unwrap();
        assert!(cpio.wait().unwrap().success());
        let unpacked = dir.path().join("agent");
        assert_eq!(std::fs::read(&unpacked).unwrap(), b"content");
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&unpacked).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
    }
}
