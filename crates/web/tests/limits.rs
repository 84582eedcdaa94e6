//! Tests loads whose limiting component is known, and the consent of a server on another machine.
#![allow(clippy::disallowed_methods, reason = "a test drives real services")]

#[path = "limits/waits.rs"]
mod waits;

use assay_http::{Method, Trust, Url};
use assay_judge::web::limit;
use assay_model::web::result::Limited;
use assay_model::web::{Protocol, Step};
use assay_testing::servers::nginx::Nginx;
use assay_web::{
    ConsentRequest, Search, ServerProcesses, Settings, Target, TargetError, What, carry_out, find,
};
use rustix::thread::{CpuSet, LinkNameSpaceType};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

fn asked() -> ConsentRequest {
    ConsentRequest {
        method: Method::Get,
        headers: Vec::new(),
        body: Vec::new(),
        protocol: Protocol::Http1,
        streams: 1,
        keep_alive: true,
        status: 200,
        same_body: false,
        trust: Trust::System,
        resume: false,
        limit: Duration::from_secs(4),
        family: None,
        all_addresses: false,
        what: What::Own,
    }
}

/// Returns settings for one closed loop with this number of connections, or for one open loop at a rate.
fn settings(connections: u32, rate: Option<f64>) -> Settings {
    Settings {
        connections: Search::List(if rate.is_some() {
            vec![]
        } else {
            vec![connections]
        }),
        shares: Vec::new(),
        rates: rate.into_iter().collect(),
        poisson: false,
        rounds: 1,
        seconds: (1.0, 1.0),
        washout: 0.3,
        limit: 4.0,
        threads: Some(1),
        open_connections: Some(connections),
        requests_per_connection: None,
        shuffled: false,
        link: None,
        may_shorten: false,
        seed: 1,
    }
}

const TODAY: jiff::civil::Date = jiff::civil::date(2026, 11, 22);

fn target(url: &str, asked: &ConsentRequest) -> Target {
    find(url, asked, TODAY, &|| false).unwrap()
}

/// Waits until no other test measures, because simultaneous measurements on one machine disturb each other.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Measures the only step, and tries up to three times because other work on this machine may disturb a measurement.
fn measured(target: &Target, server: &ServerProcesses, settings: &Settings, want: Limited) -> Step {
    let mut last = None;
    for _ in 0..3 {
        let mut steps = Vec::new();
        let (targets, servers) = ([target.clone()], [server.clone()]);
        carry_out(
            &targets,
            &servers,
            settings,
            &mut steps,
            &|| false,
            &mut |_| {},
        )
        .unwrap();
        let step = steps.pop().unwrap();
        let limit = limit(&step);
        if limit.who == want {
            return step;
        }
        last = Some((limit, step));
    }
    let (limit, step) = last.unwrap();
    panic!(
        "{limit:?}, wanted {want:?}\n{:?} {:?} {:?}",
        step.measured.failures, step.server, step.machine
    );
}

/// Starts a server that needs `time` for each answer, with one thread per connection.
fn slow(time: Duration) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                while let Ok(1..) = stream.read(&mut [0; 4096]) {
                    thread::sleep(time);
                    if answer(&mut stream).is_err() {
                        return;
                    }
                }
            });
        }
    });
    url
}

fn answer(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
}

#[test]
fn a_slow_server() {
    let _alone = alone();
    let url = slow(Duration::from_millis(5));
    let target = target(&url, &asked());
    let server = ServerProcesses::listening(&target.addresses[0]);
    assert!(target.here && server.is_known());
    // The server sleeps: from outside, it waits for something unknown.
    let step = measured(&target, &server, &settings(4, None), Limited::NotKnown);
    // Four connections at 5 ms.
    assert!(step.measured.answers > 100 && step.measured.rate() < 800.0);
}

#[test]
fn a_late_schedule() {
    let _alone = alone();
    let url = slow(Duration::from_millis(20));
    let target = target(&url, &asked());
    let server = ServerProcesses::listening(&target.addresses[0]);
    measured(
        &target,
        &server,
        &settings(2, Some(1000.0)),
        Limited::Schedule,
    );
}

#[test]
fn a_capped_generator() {
    let _alone = alone();
    if let Some(lacking) = assay_testing::servers::find_missing(&["nginx"], false) {
        return assay_testing::skipped(&lacking, "it is a part of the stage");
    }
    let nginx = Nginx::start("").unwrap();
    nginx.file("small", 1000).unwrap();
    let target = target(&nginx.url("/small"), &asked());
    let server = ServerProcesses::listening(&target.addresses[0]);
    let stop = AtomicBool::new(false);
    let pin = || {
        let mut cpus = CpuSet::new();
        cpus.set(0);
        rustix::thread::sched_setaffinity(None, &cpus).unwrap();
    };
    thread::scope(|scope| {
        let _stop = assay_testing::Stop(&stop);
        for _ in 0..2 {
            scope.spawn(|| {
                pin();
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let generator = scope.spawn(|| {
            // Threads of the generator inherit both settings.
            pin();
            rustix::process::setpriority_process(None, 19).unwrap();
            measured(&target, &server, &settings(64, None), Limited::Generator)
        });
        generator.join().unwrap();
        stop.store(true, Ordering::Relaxed);
    });
}

/// A network namespace, which is removed with its contents when the value is dropped.
struct Namespace(String);

impl Namespace {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::SeqCst);
        let own = Self(format!("assay-web-{}-{number}", std::process::id()));
        ip(&["netns", "add", &own.0]);
        ip(&["-n", &own.0, "link", "set", "lo", "up"]);
        own
    }

    /// Runs a function on a thread in the namespace. Threads that the function starts are in the namespace too.
    fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let file = fs::File::open(format!("/run/netns/{}", self.0)).unwrap();
        thread::scope(|scope| {
            let work = scope.spawn(move || {
                let kind = Some(LinkNameSpaceType::Network);
                rustix::thread::move_into_link_name_space(file.as_fd(), kind).unwrap();
                work()
            });
            work.join().unwrap()
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

fn ip(words: &[&str]) {
    run("ip", words);
}

fn run(program: &str, words: &[&str]) {
    let status = Command::new(program).args(words).status().unwrap();
    assert!(status.success(), "{program} {words:?}");
}

/// Returns whether namespaces can be created. If they cannot, prints the missing requirement.
fn namespaces() -> bool {
    let lacking = assay_testing::servers::find_missing(&["ip"], true);
    if let Some(lacking) = &lacking {
        assay_testing::skipped(lacking, "namespaces are made with it");
    }
    lacking.is_none()
}

#[test]
fn no_local_port_left() {
    let _alone = alone();
    if !namespaces() {
        return;
    }
    let namespace = Namespace::new();
    namespace.within(|| {
        fs::write("/proc/sys/net/ipv4/ip_local_port_range", "40000 40040").unwrap();
        let url = slow(Duration::from_millis(5));
        let target = target(&url, &asked());
        let server = ServerProcesses::listening(&target.addresses[0]);
        measured(&target, &server, &settings(80, None), Limited::Ports);
    });
}

#[test]
fn a_short_accept_queue() {
    let _alone = alone();
    if !namespaces() {
        return;
    }
    let namespace = Namespace::new();
    namespace.within(|| {
        let socket = rustix::net::socket(
            rustix::net::AddressFamily::INET,
            rustix::net::SocketType::STREAM,
            None,
        )
        .unwrap();
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        rustix::net::bind(&socket, &any).unwrap();
        rustix::net::listen(&socket, 1).unwrap();
        let listener = TcpListener::from(socket);
        let url = format!("http://{}/", listener.local_addr().unwrap());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 4096]);
                let _ = answer(&mut stream);
                thread::sleep(Duration::from_millis(10));
            }
        });
        let asked = ConsentRequest {
            keep_alive: false,
            ..asked()
        };
        let target = target(&url, &asked);
        let server = ServerProcesses::listening(&target.addresses[0]);
        let mut settings = settings(64, None);
        settings.seconds = (4.0, 1.0);
        measured(&target, &server, &settings, Limited::AcceptQueue);
    });
}

/// An nginx in a namespace, which is killed together with the namespace.
struct Server10 {
    nginx: Child,
    _dir: tempfile::TempDir,
}

impl Drop for Server10 {
    fn drop(&mut self) {
        let _ = self.nginx.kill();
        let _ = self.nginx.wait();
    }
}

fn nginx_at(address: &str, consent: &str) -> Server10 {
    let dir = tempfile::Builder::new()
        .prefix("assay-rig-")
        .tempdir()
        .unwrap();
    let path = dir.path().display();
    let www = dir.path().join("www/.well-known");
    fs::create_dir_all(&www).unwrap();
    fs::write(www.join("assay-consent"), consent).unwrap();
    fs::write(dir.path().join("www/big"), vec![b'x'; 200_000]).unwrap();
    // One process, so that killing it suffices and root's files are readable.
    let config = format!(
        "master_process off; daemon off; user root; pid {path}/pid; error_log {path}/log;
         events {{ }}
         http {{ access_log off; client_body_temp_path {path}/b; proxy_temp_path {path}/p;
                 fastcgi_temp_path {path}/f; uwsgi_temp_path {path}/u; scgi_temp_path {path}/s;
                 server {{ listen {address}:8080; root {path}/www; }} }}"
    );
    let file = dir.path().join("nginx.conf");
    fs::write(&file, config).unwrap();
    let program = assay_testing::servers::find("nginx").unwrap();
    let child = Command::new(program)
        .arg("-c")
        .arg(&file)
        .arg("-e")
        .arg(dir.path().join("log"))
        .spawn()
        .unwrap();
    Server10 {
        nginx: child,
        _dir: dir,
    }
}

/// Creates two namespaces and a link between them. The link has this rate in the direction from the second namespace,
/// 10.77.0.2, to the first.
fn linked(rate: &str) -> (Namespace, Namespace) {
    let (near, far) = (Namespace::new(), Namespace::new());
    ip(&[
        "link", "add", "near0", "netns", &near.0, "type", "veth", "peer", "name", "far0", "netns",
        &far.0,
    ]);
    for (namespace, device, address) in [
        (&near, "near0", "10.77.0.1/24"),
        (&far, "far0", "10.77.0.2/24"),
    ] {
        ip(&["-n", &namespace.0, "addr", "add", address, "dev", device]);
        ip(&["-n", &namespace.0, "link", "set", device, "up"]);
    }
    run(
        "tc",
        &[
            "-n", &far.0, "qdisc", "add", "dev", "far0", "root", "tbf", "rate", rate, "burst",
            "32k", "limit", "200000",
        ],
    );
    (near, far)
}

/// Waits until the server at this URL listens, and returns the target.
fn find_at(url: &str, asked: &ConsentRequest) -> Result<Target, TargetError> {
    for _ in 0..100 {
        match find(url, asked, TODAY, &|| false) {
            Err(TargetError::NoConsent { why, .. }) if why.contains("refused") => {
                thread::sleep(Duration::from_millis(50));
            }
            found => return found,
        }
    }
    panic!("nginx does not listen");
}

#[test]
fn a_shaped_link_and_consent() {
    let _alone = alone();
    if !namespaces() {
        return;
    }
    if let Some(lacking) = assay_testing::servers::find_missing(&["nginx", "tc"], true) {
        return assay_testing::skipped(&lacking, "it is a part of the stage");
    }
    let (near, far) = linked("20mbit");
    let url = "http://10.77.0.2:8080/big";
    let find = |asked: &ConsentRequest| find_at(url, asked);
    {
        let _server = far.within(|| nginx_at("10.77.0.2", "assay-consent 1\nuntil 2026-01-01\n"));
        let refused = near.within(|| find(&asked()));
        assert!(
            matches!(refused, Err(TargetError::NoConsent { .. })),
            "{refused:?}"
        );
    }
    let consent = "assay-consent 1\nuntil 2026-12-31\nmost-connections 20\n";
    let server = far.within(|| nginx_at("10.77.0.2", consent));
    let step = near.within(|| {
        let target = find(&asked()).unwrap();
        assert!(!target.here && target.consent.is_some());
        let mut settings = settings(64, None);
        settings.link = Some(20e6);
        let server = ServerProcesses::process(server.nginx.id()).unwrap();
        measured(&target, &server, &settings, Limited::Network)
    });
    assert_eq!(step.connections, 20);
    let link = step.link.unwrap();
    assert_eq!(link.interface, "near0");
    assert!(link.received > 10e6 && link.received < 30e6, "{link:?}");
}

#[test]
fn a_server_on_another_machine_is_not_asked_for_anything_else() {
    // No host answers at this address (RFC 5737); only the consent may be requested from it.
    let asked = ConsentRequest {
        limit: Duration::from_millis(300),
        ..asked()
    };
    let refused = find("http://192.0.2.1/", &asked, TODAY, &|| false);
    assert!(
        matches!(refused, Err(TargetError::NoConsent { .. })),
        "{refused:?}"
    );
    assert!(Url::parse("http://192.0.2.1/").is_ok());
}
