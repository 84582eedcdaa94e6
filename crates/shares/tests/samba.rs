//! Measures a share of a real Samba server on the loopback interface.
#![allow(
    clippy::disallowed_methods,
    reason = "the test starts smbd and looks at its files"
)]

use assay_host::process::{Dies, Running};
use assay_shares::{LimitedBy, Protection, ShareError, ShareRequest, ShareUrl, measure_share};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// A Samba server with the share `data`, to which a guest may write.
struct Samba {
    dir: tempfile::TempDir,
    port: u16,
    _smbd: Running,
}

impl Samba {
    fn start(more: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let root = dir.path().display();
        std::fs::create_dir(dir.path().join("share")).unwrap();
        let user = Command::new("id").arg("-un").output().unwrap().stdout;
        let user = String::from_utf8(user).unwrap();
        let config = format!(
            "[global]\nsmb ports = {port}\ninterfaces = 127.0.0.1\nbind interfaces only = yes\nprivate dir = {root}\n\
             lock directory = {root}\nstate directory = {root}\ncache directory = {root}\npid directory = {root}\n\
             ncalrpc dir = {root}/ncalrpc\nlog file = {root}/log\ndisable netbios = yes\nload printers = no\n\
             map to guest = Bad User\nguest account = {user}\n{more}\n\
             [data]\npath = {root}/share\nread only = no\nguest ok = yes\n"
        );
        let path = dir.path().join("smb.conf");
        std::fs::write(&path, config).unwrap();
        let mut command = Command::new(assay_testing::servers::find("smbd").unwrap());
        command
            .args(["-F", "--no-process-group", "--debug-stdout", "-s"])
            .arg(&path);
        command
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null());
        let smbd = Running::start(command, Dies::Asked).unwrap();
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(
                begin.elapsed() < Duration::from_secs(20),
                "smbd does not listen"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        Self {
            dir,
            port,
            _smbd: smbd,
        }
    }

    fn url(&self, share: &str) -> ShareUrl {
        ShareUrl::parse(&format!("smb://127.0.0.1:{}/{share}", self.port)).unwrap()
    }

    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.path().join("share")).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn request<'a>(url: &'a ShareUrl, records: &'a Path) -> ShareRequest<'a> {
    ShareRequest {
        url,
        auth_file: None,
        file_bytes: 3 << 20,
        rounds: 2,
        records,
        file_name: "assay-share-0test",
        seed: 7,
    }
}

#[test]
fn a_share_is_measured_and_left_as_it_was() {
    if assay_testing::servers::skip(&["smbd", "smbclient"], false) {
        return;
    }
    let samba = Samba::start("");
    let (url, records) = (samba.url("data"), tempfile::tempdir().unwrap());
    // A measurement that was killed left a file and its record.
    std::fs::write(samba.dir.path().join("share/assay-share-old"), "x").unwrap();
    std::fs::write(samba.dir.path().join("share/of the user"), "x").unwrap();
    let record = |file: &str| {
        format!(
            r#"{{"share":"{}","port":{},"directory":"","file":"{file}"}}"#,
            url.share_name(),
            url.port()
        )
    };
    std::fs::write(records.path().join("a.json"), record("assay-share-old")).unwrap();
    std::fs::write(records.path().join("b.json"), record("of the user")).unwrap();
    // A damaged record, and the file of a measurement that still runs.
    let order = r#"assay-share-\"; del \"of the user"#;
    std::fs::write(records.path().join("c.json"), record(order)).unwrap();
    std::fs::write(samba.dir.path().join("share/assay-share-live"), "x").unwrap();
    let live = records.path().join("d.json");
    std::fs::write(&live, record("assay-share-live")).unwrap();
    let running = std::fs::File::open(&live).unwrap();
    running.lock().unwrap();
    let result = measure_share(&request(&url, records.path()), &|| false, &mut |_, _| {}).unwrap();
    assert_eq!(
        samba.files(),
        ["assay-share-live", "of the user"],
        "nothing of this and of killed measurements is left"
    );
    assert_eq!(result.swept, ["assay-share-old"]);
    assert_eq!(result.dialect.as_deref(), Some("SMB3_11"));
    assert_eq!(result.link.interface.as_deref(), Some("lo"));
    // A guest has no key to sign or encrypt with.
    let plain = &result.transfers[0];
    assert_eq!(
        (plain.protection, plain.writes.len(), plain.reads.len()),
        (Protection::Plain, 2, 2)
    );
    assert!(
        plain
            .writes
            .iter()
            .chain(&plain.reads)
            .all(|rate| *rate > 0.0)
    );
    assert!(
        result.transfers[2].refused.is_some(),
        "{:?}",
        result.transfers[2]
    );
    assert_ne!(result.limit.by, LimitedBy::Link);
    let left: Vec<_> = std::fs::read_dir(records.path()).unwrap().collect();
    assert_eq!(left.len(), 3, "no other record is obeyed");
}

#[test]
fn a_missing_share_and_an_interrupted_measurement() {
    if assay_testing::servers::skip(&["smbd", "smbclient"], false) {
        return;
    }
    let samba = Samba::start("");
    let records = tempfile::tempdir().unwrap();
    let url = samba.url("nothing");
    let error =
        measure_share(&request(&url, records.path()), &|| false, &mut |_, _| {}).unwrap_err();
    assert!(matches!(error, ShareError::Refused { .. }), "{error}");
    let url = samba.url("data");
    let stopped = std::cell::Cell::new(false);
    let measured = measure_share(
        &request(&url, records.path()),
        &|| stopped.get(),
        &mut |_, round| {
            stopped.set(round == 2);
        },
    );
    assert!(matches!(measured, Err(ShareError::Stopped)), "{measured:?}");
    assert!(samba.files().is_empty(), "{:?}", samba.files());
    assert_eq!(std::fs::read_dir(records.path()).unwrap().count(), 0);
}

#[test]
fn a_server_that_goes_away_leaves_a_record() {
    if assay_testing::servers::skip(&["smbd", "smbclient"], false) {
        return;
    }
    let samba = Samba::start("");
    let (url, records) = (samba.url("data"), tempfile::tempdir().unwrap());
    let mut running = Some(samba);
    let error = measure_share(
        &request(&url, records.path()),
        &|| false,
        &mut |_, round| {
            if round == 2 {
                running = None;
            }
        },
    )
    .unwrap_err();
    let ShareError::FileLeft { cause, file } = &error else {
        panic!("{error}");
    };
    assert!(matches!(**cause, ShareError::Refused { .. }), "{error}");
    assert_eq!(file, "assay-share-0test");
    assert_eq!(std::fs::read_dir(records.path()).unwrap().count(), 1);
}
