//! A server with its own store, and a client that sends HTTP as raw bytes.
#![allow(dead_code, reason = "each test file uses what it needs")]

use assay_advice::Catalogue;
use assay_dups::{Control, Index, ScanOptions, ScanProgress, scan};
use assay_model::Facts;
use assay_serve::demo_fleet::{self, DemoSize};
use assay_serve::{Server, SiteOptions};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;

/// A running server, which ends when the value is dropped.
pub struct TestServer {
    pub address: SocketAddr,
    pub dir: TempDir,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// An answer, as the client received it.
#[derive(Debug)]
pub struct HttpAnswer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl HttpAnswer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut found = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value)
    }
}

pub fn options(dir: &Path) -> SiteOptions {
    SiteOptions {
        store: dir.join("s.db"),
        history: dir.join("fleet"),
        accept: Some(dir.join("accept.toml")),
        duplicates: Some(dir.join("dups.db")),
        pool: Some(dir.join("s.db.pool")),
        catalogue: Catalogue::builtin().unwrap(),
        read_facts: Box::new(|| (Facts::default(), None)),
        token: None,
        names: vec!["box.example".to_owned()],
        version: "0.0.0",
        machine: None,
        actions: None,
        notice: None,
    }
}

/// Writes an index of the duplicates below `root`. There are several folders with hostile names, each of which contains
/// two equal files.
pub fn index_hostile_duplicates(index: &Path, root: &Path) {
    use std::os::unix::ffi::OsStrExt as _;
    let names: [&[u8]; 5] = [
        b"plain",
        b"new\nline",
        b"<script>alert(1)<",
        b"caf\xe9 100%25",
        b"a&b?c=d#e",
    ];
    for name in names {
        let folder = root.join(std::ffi::OsStr::from_bytes(name)).join("below");
        std::fs::create_dir_all(&folder).unwrap();
        for file in ["a", "b"] {
            std::fs::write(folder.join(file), name.repeat(1_000)).unwrap();
        }
    }
    let control = Control {
        stop: &AtomicBool::new(false),
        progress: &ScanProgress::default(),
        tick: &|| {},
        threads: Some(1),
    };
    let mut index = Index::open(index).unwrap();
    let options = ScanOptions::default();
    scan(&[root.to_owned()], &options, Some(&mut index), &control).unwrap();
}

impl TestServer {
    /// Fills a store with `fill`, and serves it. `fill` receives the path of the store and the path of the bundles.
    pub fn start(fill: impl FnOnce(&Path, &Path)) -> Self {
        Self::start_with(fill, |_| {})
    }

    pub fn start_with(
        fill: impl FnOnce(&Path, &Path),
        change: impl FnOnce(&mut SiteOptions),
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fill(&dir.path().join("s.db"), &dir.path().join("fleet"));
        let mut options = options(dir.path());
        change(&mut options);
        let server = Server::bind(([127, 0, 0, 1], 0).into(), options).unwrap();
        let address = server.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let asked = stop.clone();
        let thread =
            std::thread::spawn(move || server.run(move || asked.load(Ordering::SeqCst)).unwrap());
        Self {
            address,
            dir,
            stop,
            thread: Some(thread),
        }
    }

    /// Serves the demonstration fleet.
    pub fn start_demo() -> Self {
        Self::start(|store, history| {
            let now = jiff::Timestamp::now();
            let size = DemoSize {
                nights: 26,
                checks: 3,
            };
            demo_fleet::fill(store, history, &Catalogue::builtin().unwrap(), now, size).unwrap();
        })
    }

    pub fn store(&self) -> PathBuf {
        self.dir.path().join("s.db")
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        stream
    }

    /// Sends the bytes of a whole request, and reads until the end of the connection.
    pub fn send(&self, request: &str) -> HttpAnswer {
        let mut stream = self.connect();
        // A server that refuses may close before it has read everything.
        let _ = stream.write_all(request.as_bytes());
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        HttpAnswer {
            status: status.unwrap_or(0),
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    pub fn get_with(&self, path: &str, headers: &str) -> HttpAnswer {
        self.send(&format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{headers}\r\n",
            self.address
        ))
    }

    pub fn get(&self, path: &str) -> HttpAnswer {
        self.get_with(path, "")
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Returns the addresses of this site to which a page links.
pub fn links(page: &str) -> Vec<String> {
    let links = page
        .split("href=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next());
    let decode = |link: &str| {
        link.replace("&amp;", "&")
            .replace("&#x2f;", "/")
            .replace("&#x27;", "'")
    };
    links
        .map(decode)
        .filter(|link| link.starts_with('/'))
        .collect()
}

/// Returns names that contain markup, direction marks or escapes, or that are too long.
pub fn hostile_names() -> Vec<String> {
    let long = "x".repeat(1_000_000);
    vec![
        "<script>window.hacked=1</script>".to_owned(),
        "\"><img src=x onerror=window.hacked=1>".to_owned(),
        "\u{202e}evil\u{1b}[2J\u{0}".replace('\0', "\u{1}"),
        "{{ 7 * 7 }}{% raw %}'&amp;".to_owned(),
        "../../etc/passwd?a=b#c%2F".to_owned(),
        long,
    ]
}

/// Returns an observation in which all texts are `name`.
fn hostile_observation(
    by: assay_store::Observer,
    name: &str,
    number: usize,
    at: jiff::Timestamp,
) -> assay_store::Observation {
    let document = match by {
        assay_store::Observer::Why => serde_json::json!({
            "subject": { "named": name }, "machine": name, "started_ms": 0, "seconds": 60.0, "looks": 30,
            "waiting": 1.0, "unexplained": 0.2, "classes": [{ "class": name, "tasks": 1.0, "explained": 0.8 }],
            "suspects": [{
                "id": name, "title": name, "layer": name, "kind": "group", "name": name, "share": 0.8,
                "evidence": [name], "against": [name], "why": name, "next": [name],
            }],
            "figures": [[name, name]], "missing": [name], "curves": { name: [[0.0, 1.0], [60.0, 2.0]] },
            "own_cpu": null,
        }),
        assay_store::Observer::Net => serde_json::json!({
            "plan": { "name": name, "seconds": 30, "person": [{ "name": name, "roles": ["call"] }] },
            "began": at, "aborted": false,
            "people": [{ "person": name, "client": name, "record": null, "missing": name }],
        }),
        assay_store::Observer::Wifi => serde_json::json!({
            "findings": [{
                "rule": name, "domain": name, "subject": [name, name], "severity": "high", "certainty": "violated",
                "title": name, "text": name, "places": [{ "file": { "path": name } }], "evidence": [],
                "fix": { "steps": { "steps": [name], "undo": [name] } }, "trial": name,
            }, {
                "rule": name, "domain": name, "subject": [], "severity": "low", "certainty": "unknown",
                "title": name, "text": name, "places": [], "evidence": [], "fix": "after-reading", "trial": null,
            }],
            "accepted": [], "remarks": [name],
            "rules": [{
                "rule": name, "domain": name, "statement": name, "severity": "low", "applied": 1, "service": name,
                "sources": [name], "why": name,
            }],
            "services": [{ "service": name, "asked": 1, "found": 1, "unknown": 0, "not_asked": 0 }],
            "not_asked": [{ "rule": name, "why": name }],
            "without_rules": [{ "program": name, "what": name }],
        }),
    };
    assay_store::Observation {
        uid: format!("{}{number:028x}", by.name()),
        by,
        started: at,
        ended: at,
        subject: name.to_owned(),
        summary: name.to_owned(),
        document,
    }
}

/// Fills a store with machines, plans, targets and findings that have hostile names.
pub fn fill_hostile(store: &Path, _: &Path) {
    use assay_store::{About, Observer, SpanSurvey, SpanValue, Store};
    let mut store = Store::open(store).unwrap();
    let now = jiff::Timestamp::now();
    for (number, name) in hostile_names().into_iter().enumerate() {
        let mut run =
            demo_fleet::sample_run(now - jiff::SignedDuration::from_hours(number as i64 + 1));
        run.0.plan.name.clone_from(&name);
        run.0.plan.title.clone_from(&name);
        run.0.remarks.push(name.chars().take(1000).collect());
        run.0.targets[0].name.clone_from(&name);
        run.0.plan.targets = vec![name.clone()];
        run.0.uid = format!("{number:032x}");
        for sample in &mut run.1 {
            sample.target.clone_from(&name);
        }
        let machine = assay_model::Machine {
            id: format!("{number:032x}"),
            name: Some(name.clone()),
        };
        store.import_run(&run.0, &run.1, Some(&machine)).unwrap();
        for (hours, severity) in [(9, "low"), (1, "high")] {
            let key = (About::Finding, format!("{name}@{name}"));
            let fact = (About::Fact, format!("os.{name}"));
            let look = SpanSurvey {
                host: &name,
                at: now - jiff::SignedDuration::from_hours(hours),
                scope: "test",
                seen: [
                    (key, SpanValue::Value(format!("\"{severity}\""))),
                    (
                        fact,
                        SpanValue::Value(serde_json::json!(format!("{name}{hours}")).to_string()),
                    ),
                ]
                .into(),
                lost: Vec::new(),
            };
            store.look(&look).unwrap();
        }
        for by in [Observer::Why, Observer::Net, Observer::Wifi] {
            let one = hostile_observation(by, &name, number, now);
            store.import_observation(&one, Some(&machine)).unwrap();
        }
    }
}
