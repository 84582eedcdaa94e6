//! A guest with assay and disks for pools.

use super::guests;
use assay_host::Limits;
use assay_lab::{Disk, Guest, GuestOptions, GuestRegistry, Image, Zfs};
use assay_loads::Cancel;
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

/// Time limit of a command in an emulated guest on a busy machine.
const GUEST_LIMIT: Duration = Duration::from_secs(900);

/// Output of a command in the guest.
pub struct Said {
    pub status: i32,
    pub out: String,
    pub err: String,
}

/// An image, and the directory of its guests during a test.
pub struct Lab {
    image: Image,
    dir: tempfile::TempDir,
    _one: MutexGuard<'static, ()>,
}

impl Lab {
    /// Opens it; `None` with a message without an image with that OpenZFS, or if long tests are
    /// disabled.
    pub fn new(zfs: Zfs) -> Option<Self> {
        let (image, one) = guests::image_for_long_with(zfs)?;
        Some(Self {
            image,
            dir: tempfile::tempdir().unwrap(),
            _one: one,
        })
    }

    pub fn boot(&self, name: &str, disks: Vec<Disk>) -> Pools {
        self.boot_with(name, |options| options.disks = disks)
    }

    pub fn boot_with(&self, name: &str, change: impl FnOnce(&mut GuestOptions)) -> Pools {
        let state = GuestRegistry::open(self.dir.path()).unwrap();
        let mut options = GuestOptions {
            assay: Some(env!("CARGO_BIN_EXE_assay").into()),
            boot_limit: GUEST_LIMIT,
            ..GuestOptions::new(name)
        };
        change(&mut options);
        let guest = Guest::boot(&self.image, &options, &state, &Cancel::default()).unwrap();
        Pools { guest }
    }
}

fn command(state: &str, arguments: &str) -> String {
    format!("cd /root; exec env ASSAY_STATE={state} ASSAY_STORE={state}/db assay {arguments}")
}

/// Returns disks `d1`, `d2` and so on.
pub fn disks(count: u32, size: u64) -> Vec<Disk> {
    (1..=count)
        .map(|number| Disk::scratch(&format!("d{number}"), size))
        .collect()
}

pub struct Pools {
    pub guest: Guest,
}

impl Pools {
    /// Returns the device nodes of the first disks of [`disks`].
    pub fn devices(&self, count: u32) -> Vec<String> {
        let names: Vec<String> = (1..=count).map(|number| format!("d{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let paths = self.guest.devices(&names).unwrap();
        paths
            .iter()
            .map(|path| path.display().to_string())
            .collect()
    }

    pub fn run(&self, argv: &[&str]) -> Said {
        let words: Vec<&OsStr> = argv.iter().map(OsStr::new).collect();
        let limits = Limits {
            timeout: GUEST_LIMIT,
        };
        let output = self.guest.run(&words, limits);
        let output = output.unwrap_or_else(|error| panic!("{argv:?}: {error}"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Said {
            status: output.status,
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }

    /// Runs a script that must succeed.
    pub fn sh(&self, script: &str) -> String {
        let said = self.run(&["sh", "-euc", script]);
        assert_eq!(said.status, 0, "{script}: {}{}", said.out, said.err);
        said.out
    }

    pub fn wait_for(&self, script: &str) {
        let deadline = Instant::now() + GUEST_LIMIT;
        while self.run(&["sh", "-c", script]).status != 0 {
            assert!(Instant::now() < deadline, "{script}");
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    /// Runs `zpool create -f …`. zpool waits 30 s for udev to show its partitions, which may be too
    /// short here.
    pub fn create(&self, words: &str) {
        self.sh(&format!(
            "for try in 1 2 3; do zpool create -f {words} && break; done"
        ));
    }

    /// Runs assay in the guest with the state directory `state`.
    pub fn assay(&self, state: &str, arguments: &str) -> Said {
        let script = command(state, arguments);
        let said = self.run(&["sh", "-c", &script]);
        assert!(!said.err.contains("panicked"), "{arguments}: {}", said.err);
        said
    }

    /// Starts assay in the background.
    pub fn start(&self, state: &str, arguments: &str) {
        let command = command(state, arguments);
        self.sh(&format!(
            "{command} >/dev/null 2>&1 </dev/null & echo $! > /root/pid"
        ));
    }

    /// Kills the last started assay, so that it cannot clean up.
    pub fn kill(&self) {
        self.sh("kill -9 $(cat /root/pid); sleep 1");
    }

    /// Returns the JSON output of assay, which must succeed.
    pub fn json(&self, state: &str, arguments: &str) -> Value {
        let said = self.assay(state, arguments);
        assert_eq!(said.status, 0, "{arguments}: {}{}", said.out, said.err);
        let found = serde_json::from_str(&said.out);
        found.unwrap_or_else(|error| panic!("{arguments}: {error}: {}", said.out))
    }

    /// Like `json`, for facts from other programs, which on a busy machine may exceed their time
    /// limit: repeated then.
    pub fn found(&self, state: &str, arguments: &str) -> Value {
        let deadline = Instant::now() + GUEST_LIMIT;
        loop {
            let found = self.json(state, arguments);
            let slow = found.to_string().contains("no end after");
            if !slow || Instant::now() > deadline {
                return found;
            }
        }
    }

    pub fn push(&self, text: &str, to: &str) {
        let to = PathBuf::from(to);
        self.guest
            .push_bytes(text.as_bytes(), Path::new(&to), 0o644)
            .unwrap();
    }
}

/// Returns the first value of a key anywhere in a document.
pub fn find<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    match value {
        Value::Object(map) => map
            .get(key)
            .or_else(|| map.values().find_map(|value| find(value, key))),
        Value::Array(items) => items.iter().find_map(|value| find(value, key)),
        _ => None,
    }
}
