//! Tests sign-ins to a real Dovecot.
#![allow(clippy::disallowed_methods, reason = "a test drives real services")]

use assay_loads::imap::{ImapRequest, Secret, run};
use assay_loads::{Cancel, LoadError, Timing};
use assay_model::Nanos;
use assay_model::sample::Operation;
use assay_testing::servers::dovecot::{Dovecot, PASSWORD, USER};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

const MS: u64 = 1_000_000;

fn request(address: String, password: &str, washout: u64, runtime: u64) -> ImapRequest {
    ImapRequest {
        address,
        user: USER.to_owned(),
        password: Secret::new(password),
        sessions: 2,
        timing: Timing {
            washout: Nanos(washout * MS),
            runtime: Nanos(runtime * MS),
            limit: Nanos(20_000 * MS),
        },
    }
}

/// Starts Dovecot. If this is not possible, prints the reason and returns `None`.
fn dovecot() -> Option<Dovecot> {
    if assay_testing::servers::skip(&["dovecot", "doveconf"], true) {
        return None;
    }
    Some(Dovecot::start().unwrap())
}

fn set(dovecot: &Dovecot, value: &str) {
    let config = dovecot.config();
    let text = std::fs::read_to_string(&config).unwrap();
    let pam = "passdb {\n  driver = pam\n  args = dovecot\n}\n";
    assert!(text.contains(pam));
    std::fs::write(&config, text.replace(pam, value)).unwrap();
    let reload = dovecot.reload();
    let status = std::process::Command::new(&reload[0])
        .args(&reload[1..])
        .status();
    assert!(status.unwrap().success());
}

#[test]
fn logs_in_and_tells_a_refusal() {
    let Some(dovecot) = dovecot() else { return };
    // Without PAM, which delays failures deliberately.
    set(&dovecot, "");
    let measured = run(
        &request(dovecot.address(), PASSWORD, 300, 400),
        &Cancel::default(),
    );
    let measured = measured.unwrap_or_else(|error| panic!("{error}\n{}", dovecot.log()));
    let io = measured.worker.of(Operation::Login).unwrap();
    assert!(io.count > 0 && io.lat.histogram.count() == io.count && io.bytes.0 > 0);
    assert!(measured.errors.is_empty() && measured.cpu.0 > 0);
    assert_eq!(measured.worker.name, "imap");

    // Dovecot delays the answer to a refused login by 2 s.
    let error = run(
        &request(dovecot.address(), "wrong", 0, 1),
        &Cancel::default(),
    )
    .unwrap_err();
    assert!(matches!(error, LoadError::LoginRefused { .. }), "{error}");
    assert!(
        error.to_string().contains("AUTHENTICATIONFAILED"),
        "{error}"
    );

    let mut late = request(dovecot.address(), "wrong", 0, 1);
    late.timing.limit = Nanos(100 * MS);
    assert!(matches!(
        run(&late, &Cancel::default()),
        Err(LoadError::TimedOut { .. })
    ));
}

#[test]
fn nobody_there() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let gone = request(format!("127.0.0.1:{port}"), PASSWORD, 0, 1);
    let error = run(&gone, &Cancel::default()).unwrap_err();
    assert!(matches!(error, LoadError::NotListening { .. }), "{error}");
    for bad in ["nonsense", "127.0.0.1", ":", "127.0.0.1:99999"] {
        let error = run(&request(bad.to_owned(), "", 0, 1), &Cancel::default()).unwrap_err();
        assert!(matches!(error, LoadError::Request { .. }), "{error}");
    }
}

/// Starts a server that sends one text and then nothing more.
fn silent(says: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let _ = stream.write_all(says);
                let _ = stream.read_to_end(&mut Vec::new());
            });
        }
    });
    address
}

#[test]
fn what_is_not_imap_is_told() {
    let ssh = request(silent(b"SSH-2.0-OpenSSH_9.2p1\r\n"), PASSWORD, 0, 1);
    let error = run(&ssh, &Cancel::default()).unwrap_err();
    assert!(error.to_string().contains("SSH-2.0-OpenSSH"), "{error}");
    let endless = request(silent(&[b'x'; 100_000]), PASSWORD, 0, 1);
    let error = run(&endless, &Cancel::default()).unwrap_err();
    assert!(matches!(error, LoadError::WrongAnswer { .. }), "{error}");
}

#[test]
fn cancelling_does_not_wait_for_the_server() {
    let request = request(silent(b"* OK hello\r\n"), PASSWORD, 0, 60_000);
    let cancel = Cancel::default();
    let later = cancel.clone();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        later.cancel();
    });
    let start = Instant::now();
    let measured = run(&request, &cancel).unwrap();
    assert!(measured.cancelled && measured.worker.of(Operation::Login).unwrap().count == 0);
    // The time limit of one login is 20 s; the bound only has to be clearly shorter.
    assert!(start.elapsed() < Duration::from_secs(10));
}
