use super::*;

#[test]
fn versions_as_fio_prints_them() {
    assert_eq!(parse_version("fio-3.33"), Some((3, 33)));
    assert_eq!(parse_version("fio-3.41-12-gabcdef"), Some((3, 41)));
    assert_eq!(parse_version("fio 2.1.11"), None);
    assert_eq!(parse_version("nonsense"), None);
}

#[test]
fn a_missing_fio_says_how_to_install_it() {
    let error = Fio::find(&assay_host::LiveHost, Some(Path::new("/nonexistent/fio"))).unwrap_err();
    insta::assert_snapshot!(error, @"fio is not installed; it is the load generator: `apt install fio` (Debian, Ubuntu, Proxmox) or `dnf install fio` (Fedora, RHEL)");
}

#[test]
fn something_else_named_fio_is_refused() {
    let error = Fio::find(&assay_host::LiveHost, Some(Path::new("echo")))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("--version") && error.contains("3.23"),
        "{error}"
    );
}

#[test]
fn a_fio_that_does_not_answer_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let fio = script(dir.path(), "exec sleep 600");
    let error = Fio::find(&assay_host::LiveHost, Some(&fio.program))
        .unwrap_err()
        .to_string();
    assert!(error.contains("killed"), "{error}");
}

#[test]
fn the_complaint_is_the_line_that_says_what_went_wrong() {
    let stderr = "note: both iodepth >= 1 and synchronous I/O engine\nfio: pid=1, err=28/file:filesetup.c:228, func=write, error=No space left on device\n";
    insta::assert_snapshot!(find_complaint(stderr).unwrap(), @"fio: pid=1, err=28/file:filesetup.c:228, func=write, error=No space left on device");
    assert_eq!(find_complaint("\n"), None);
}

/// Creates a script in place of fio. Tests make the script misbehave; it must still be stopped and reaped.
fn script(dir: &Path, body: &str) -> Fio {
    use std::os::unix::fs::PermissionsExt as _;
    let program = dir.join("fio");
    fs::write(&program, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    Fio {
        program,
        version: "fio-3.33".to_owned(),
        remark: None,
    }
}

fn request(dir: &Path, limit: u64) -> FioRequest<'_> {
    FioRequest {
        job: "",
        work_dir: dir,
        log_every: Nanos(100_000_000),
        block: Bytes(4096),
        limit: Nanos(limit),
    }
}

#[test]
fn a_hung_fio_is_stopped_at_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    let fio = script(dir.path(), "exec sleep 60");
    let output = fio
        .run(&request(dir.path(), 300_000_000), &Cancel::default())
        .unwrap();
    assert_eq!(output.ended, FioEnd::TimedOut);
}

#[test]
fn an_interrupted_fio_is_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let fio = script(dir.path(), "exec sleep 60");
    let cancel = Cancel::default();
    cancel.cancel();
    let output = fio
        .run(&request(dir.path(), 60_000_000_000), &cancel)
        .unwrap();
    assert_eq!(output.ended, FioEnd::Cancelled);
}

#[test]
fn exit_status_and_complaint_come_through() {
    let dir = tempfile::tempdir().unwrap();
    let fio = script(dir.path(), "echo 'fio: io_u error on file' >&2; exit 1");
    let output = fio
        .run(&request(dir.path(), 60_000_000_000), &Cancel::default())
        .unwrap();
    assert_eq!(output.ended, FioEnd::Exited(1));
    assert_eq!(
        find_complaint(&output.stderr),
        Some("fio: io_u error on file")
    );
    assert!(output.json.is_empty());
}

#[test]
fn the_real_fio_runs_a_job_and_tells_its_rate_over_time() {
    let Ok(fio) = Fio::find(&assay_host::LiveHost, None) else {
        assay_testing::skipped("fio", "not installed");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let job = "[n]\nioengine=null\nthread=1\nsize=1073741824\nbs=4096\nrw=randread\ntime_based=1\nruntime=2s\nrate_iops=1000\n";
    let request = FioRequest {
        job,
        ..request(dir.path(), 60_000_000_000)
    };
    let output = fio.run(&request, &Cancel::default()).unwrap();
    assert_eq!(output.ended, FioEnd::Exited(0), "{}", output.stderr);
    assert!(output.json.starts_with(b"{"));
    assert!(output.cpu > Some(Nanos(0)));
    assert!(output.series.len() >= 3, "{:?}", output.series);
    // On a busy machine some intervals are late and the next ones catch up.
    let seen = output
        .series
        .iter()
        .map(assay_model::sample::RatePoint::per_s);
    let mean = seen.sum::<f64>() / output.series.len() as f64;
    assert!(
        (200.0..5000.0).contains(&mean),
        "1000 a second were asked for: {:?}",
        output.series
    );
}

#[test]
fn a_fio_without_an_engine_says_where_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let fio = script(
        dir.path(),
        "echo 'fio: engine nbd not loadable' >&2; echo 'IO engine nbd not found'; exit 1",
    );
    let error = fio
        .has_engine(&assay_host::LiveHost, Engine::Nbd)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("fio-engine-nbd") && error.contains("not loadable"),
        "{error}"
    );
    assert!(fio.has_engine(&assay_host::LiveHost, Engine::Auto).is_ok());
}
