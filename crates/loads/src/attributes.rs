//! Load that creates small files with an extended attribute, as file servers, SELinux and POSIX ACLs do. fio has no
//! such load.

use crate::Cancel;
use crate::measured::{Done, LoadError, LoadResult, Tally, Timing, finish, rest, thread_cpu};
use assay_model::Bytes;
use assay_model::sample::Operation;
use rustix::fs::{CWD, Mode, OFlags, XattrFlags, fgetxattr, fsetxattr, openat, unlink};
use rustix::io::Errno;
use std::path::PathBuf;
use std::time::Instant;

/// Name of the extended attribute that the load sets.
const NAME: &str = "user.assay";
/// Maximum length of an attribute in Linux, in bytes (XATTR_SIZE_MAX of linux/limits.h).
const LONGEST: u64 = 64 << 10;

/// Parameters of the load with extended attributes.
#[derive(Clone, Debug)]
pub struct AttributesRequest {
    /// Scratch directory for the files. They remain there after the load.
    pub dir: PathBuf,
    /// Maximum number of files, at least 1.
    pub files: u32,
    /// Length of the attribute, from 1 byte to 64 KiB.
    pub size: Bytes,
    /// Duration of the load, and time limit of an operation.
    pub timing: Timing,
}

/// Creates files in turn. One operation removes the existing file with the same number, creates it again, sets an
/// attribute and reads the attribute back. Nothing is synced.
///
/// # Errors
/// A parameter is invalid, or no operation succeeded. If some operations succeeded, the failed operations are in
/// `LoadResult::errors`.
pub fn run(request: &AttributesRequest, cancel: &Cancel) -> Result<LoadResult, LoadError> {
    if request.files == 0 || !(1..=LONGEST).contains(&request.size.0) {
        return Err(LoadError::Request {
            what: format!("{} files, attribute of {}", request.files, request.size),
            why: format!(
                "at least one file and an attribute of 1 to {}",
                Bytes(LONGEST)
            ),
        });
    }
    let begin = Instant::now();
    let used = thread_cpu();
    let mut tally = Tally::new(&request.timing, begin);
    let mut value = vec![0x61; request.size.0 as usize];
    let mut found = vec![0; value.len()];
    for number in 0_u64.. {
        if !tally.goes_on(Instant::now()) || cancel.is_cancelled() {
            break;
        }
        // The value differs from that of the previous file.
        for (byte, digit) in value.iter_mut().zip(number.to_le_bytes()) {
            *byte = digit;
        }
        let path = request
            .dir
            .join(format!("a{}", number % u64::from(request.files)));
        let start = Instant::now();
        let done = time_operation(&path, &value, &mut found);
        let end = Instant::now();
        let failed = done.is_err();
        tally.record(start, end, done);
        if failed {
            rest(cancel);
        }
    }
    let cpu = thread_cpu().saturating_sub(used);
    finish(
        ("attributes", Operation::File),
        vec![tally],
        begin.elapsed(),
        cpu,
        cancel,
    )
}

fn time_operation(path: &std::path::Path, value: &[u8], found: &mut [u8]) -> Done {
    let fault = |what: &'static str| {
        move |errno: Errno| LoadError::Io {
            what: what.into(),
            source: errno.into(),
        }
    };
    match unlink(path) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(fault("removing a file")(errno)),
    }
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
    let file = openat(CWD, path, flags, Mode::RUSR | Mode::WUSR);
    let file = file.map_err(fault("making a file"))?;
    fsetxattr(&file, NAME, value, XattrFlags::CREATE).map_err(fault("setting an attribute"))?;
    let length = fgetxattr(&file, NAME, &mut *found).map_err(fault("reading an attribute"))?;
    match length == value.len() && found == value {
        true => Ok(length as u64),
        false => Err(LoadError::WrongAnswer {
            what: path.display().to_string(),
            why: "the attribute reads differently from what was written".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_model::Nanos;

    fn request(files: u32, size: u64) -> (tempfile::TempDir, AttributesRequest) {
        let dir = tempfile::tempdir().unwrap();
        let request = AttributesRequest {
            dir: dir.path().to_owned(),
            files,
            size: Bytes(size),
            timing: Timing {
                washout: Nanos(0),
                runtime: Nanos(50_000_000),
                limit: Nanos(1_000_000_000),
            },
        };
        (dir, request)
    }

    #[test]
    fn keeps_so_many_files_with_their_attribute() {
        let (dir, request) = request(3, 20);
        let measured = run(&request, &Cancel::default()).unwrap();
        let io = measured.worker.of(Operation::File).unwrap();
        assert!(io.count > 3 && io.bytes.0 == io.count * 20, "{io:?}");
        assert!(measured.errors.is_empty());
        let left = std::fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(left, 3);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (files, size) in [(0, 20), (3, 0), (3, LONGEST + 1)] {
            let (_dir, request) = request(files, size);
            let refused = run(&request, &Cancel::default());
            assert!(matches!(refused, Err(LoadError::Request { .. })));
        }
    }
}
