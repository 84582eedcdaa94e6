//! Files that are read in each look: they stay open, since opening and closing costs more than reading.

use assay_host::Host;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Most files that stay open. The usual limit of a process is 1024.
const MOST: usize = 400;
/// A read of fewer bytes than this is the whole file: the kernel fills a page with lines before it returns.
const SHORT: usize = 1024;
/// Bytes of the first read.
const ROOM: usize = 8192;

/// A file that was read.
#[derive(Default)]
struct KeptFile {
    /// Open from the second read on.
    file: Option<File>,
    /// Look of the last read.
    used: u64,
}

/// Files by path.
#[derive(Default)]
pub(super) struct KeptFiles {
    all: HashMap<OsString, KeptFile>,
    open: usize,
}

impl KeptFiles {
    /// Reads a file that is open; `None` if it is not, or can no longer be read.
    pub(super) fn read(&mut self, host: &dyn Host, path: &Path, look: u64) -> Option<String> {
        let kept = self.find(host, path.as_os_str(), look)?;
        let text = kept.file.as_ref().and_then(read_from_start);
        // Its process or control group has ended.
        if text.is_none() && kept.file.take().is_some() {
            self.open -= 1;
        }
        text
    }

    fn find(&mut self, host: &dyn Host, path: &OsStr, look: u64) -> Option<&mut KeptFile> {
        if !self.all.contains_key(path) {
            let used = KeptFile {
                file: None,
                used: look,
            };
            self.all.insert(path.to_owned(), used);
            return None;
        }
        let kept = self.all.get_mut(path)?;
        kept.used = look;
        if kept.file.is_none() && self.open < MOST {
            kept.file = host.open_to_read_again(Path::new(path));
            self.open += usize::from(kept.file.is_some());
        }
        kept.file.is_some().then_some(kept)
    }

    /// Closes the files that were not read since this look.
    pub(super) fn close_unused(&mut self, since: u64) {
        self.all.retain(|_, kept| kept.used >= since);
        self.open = self.all.values().filter(|kept| kept.file.is_some()).count();
    }
}

/// Reads the whole of a file; `None` if it cannot be read.
fn read_from_start(file: &File) -> Option<String> {
    let mut bytes = vec![0; ROOM];
    let mut length = 0;
    loop {
        let got = file.read_at(&mut bytes[length..], length as u64).ok()?;
        length += got;
        if got == 0 || length == got && got < SHORT {
            break;
        }
        if bytes.len() - length < SHORT {
            bytes.resize(2 * bytes.len(), 0);
        }
        if length > assay_host::MAX_BYTES {
            return None;
        }
    }
    let text = String::from_utf8_lossy(&bytes[..length]);
    Some(text.into_owned())
}

#[cfg(test)]
#[allow(
    clippy::disallowed_methods,
    reason = "the test lets time pass, and starts a program that ends"
)]
mod tests {
    use super::*;
    use assay_host::LiveHost;

    #[test]
    fn a_file_that_is_read_again_stays_open_and_is_read_anew() {
        let mut kept = KeptFiles::default();
        let path = Path::new("/proc/self/stat");
        assert_eq!(kept.read(&LiveHost, path, 0), None);
        let first = kept.read(&LiveHost, path, 0).unwrap();
        assert_eq!(kept.open, 1);
        let spent = std::time::Instant::now();
        while spent.elapsed() < std::time::Duration::from_millis(50) {}
        assert_ne!(kept.read(&LiveHost, path, 1).unwrap(), first);
        // Longer than one read.
        let long = Path::new("/proc/kallsyms");
        let _ = kept.read(&LiveHost, long, 1);
        let text = kept.read(&LiveHost, long, 1).unwrap();
        assert_eq!(text.len(), std::fs::read(long).unwrap().len());
        kept.close_unused(2);
        assert_eq!((kept.open, kept.all.len()), (0, 0));
    }

    #[test]
    fn a_file_of_a_process_that_has_ended_is_closed() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let path = format!("/proc/{}/stat", child.id());
        let path = Path::new(&path);
        let mut kept = KeptFiles::default();
        let _ = kept.read(&LiveHost, path, 0);
        assert!(kept.read(&LiveHost, path, 0).is_some());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(kept.read(&LiveHost, path, 1), None);
        assert_eq!(kept.open, 0);
    }
}
