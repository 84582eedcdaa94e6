//! The tour leaves nothing behind.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn a_tour_that_is_interrupted_removes_its_directory() {
    for signal in ["INT", "TERM"] {
        let dir = tempfile::tempdir().unwrap();
        let state = tempfile::tempdir().unwrap();
        let mut assay = Command::new(env!("CARGO_BIN_EXE_assay"));
        assay.arg("demo").arg(dir.path());
        assay.env("ASSAY_STATE", state.path().join("state"));
        let mut assay = assay
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Waits until the run of the tour has its scratch file.
        let end = Instant::now() + Duration::from_secs(60);
        let scratch = || {
            let inside = std::fs::read_dir(dir.path()).unwrap().flatten();
            let tour = inside.into_iter().next()?;
            let below = std::fs::read_dir(tour.path()).ok()?.flatten();
            below
                .into_iter()
                .find(|entry| entry.path().extension().is_some_and(|end| end == "scratch"))
        };
        while scratch().is_none() {
            assert!(Instant::now() < end && assay.try_wait().unwrap().is_none());
            std::thread::sleep(Duration::from_millis(20));
        }
        let pid = assay.id().to_string();
        Command::new("kill")
            .args(["-s", signal, &pid])
            .status()
            .unwrap();
        assert_eq!(assay.wait().unwrap().code(), Some(130), "{signal}");
        assert_eq!(
            std::fs::read_dir(dir.path()).unwrap().count(),
            0,
            "{signal}"
        );
    }
}
