//! The service: units that are written and removed, and a socket of systemd.

use crate::common::{Home, entries};
use crate::started_server::{status, until};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};

#[test]
fn units_are_written_and_only_those_are_removed() {
    let home = Home::new();
    let dir = tempfile::tempdir().unwrap();
    let units = dir.path().to_str().unwrap();
    let install = ["serve", "install", "--dir", units];
    let shown = home.assay(&[&install[..], &["--dry-run"]].concat());
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    let open = home.assay(&[&install[..], &["--listen", "0.0.0.0:7878"]].concat());
    assert_eq!(open.code, Some(2), "{}", open.stderr);
    // Every user can read a unit.
    let secret = ["--store", "postgresql://u:secret@db.example/a"];
    let refused = home.assay(&[&install[..], &secret].concat());
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(!refused.stderr.contains("secret"), "{}", refused.stderr);
    assert!(entries(dir.path()).is_empty());
    let done = home.assay(&install);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let names = entries(dir.path());
    assert_eq!(names, ["assay-serve.service", "assay-serve.socket"]);
    let service = fs::read_to_string(dir.path().join("assay-serve.service")).unwrap();
    assert!(service.contains("NoNewPrivileges=yes") && service.contains("ASSAY_STORE="));
    // A file that somebody changed is theirs.
    let socket = dir.path().join("assay-serve.socket");
    fs::write(&socket, "# mine\n").unwrap();
    let again = home.assay(&install);
    assert_eq!(again.code, Some(2), "{}", again.stderr);
    let removed = home.assay(&["serve", "remove"]);
    assert_eq!(removed.code, Some(1), "{}", removed.stderr);
    assert_eq!(entries(dir.path()), ["assay-serve.socket"]);
    fs::remove_file(&socket).unwrap();
    assert_eq!(home.assay(&["serve", "remove"]).code, Some(0));
}

#[test]
fn a_socket_of_systemd_is_taken_over() {
    let tool = Command::new("systemd-socket-activate")
        .arg("--version")
        .output();
    if tool.is_err() {
        return eprintln!("skipped: there is no systemd-socket-activate");
    }
    let (home, free) = (
        Home::new(),
        std::net::TcpListener::bind("127.0.0.1:0").unwrap(),
    );
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let serve = home.command(&["serve"]);
    let mut command = Command::new("systemd-socket-activate");
    command
        .args(["-l", &address])
        .arg(serve.get_program())
        .arg("serve");
    // That program passes only what is named.
    for (name, value) in serve.get_envs() {
        if let (Some(name), Some(value)) = (name.to_str(), value.and_then(|value| value.to_str())) {
            command.arg(format!("--setenv={name}={value}"));
        }
    }
    // Options stand before the program.
    let mut words: Vec<String> = command
        .get_args()
        .map(|word| word.to_str().unwrap().to_owned())
        .collect();
    words.sort_by_key(|word| !word.starts_with("--setenv"));
    let mut child = Command::new("systemd-socket-activate")
        .args(words)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut answer = String::new();
    until("the socket", || TcpStream::connect(&address).is_ok());
    let mut stream = TcpStream::connect(&address).unwrap();
    let request = format!("GET /about HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    stream.read_to_string(&mut answer).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(status(&answer), 200, "{answer}");
}
