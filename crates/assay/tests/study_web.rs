//! Tests `assay study` with real web servers, few small files and short loads.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use common::{Home, Ran, entries};
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The complete built-in study with short times.
const ALL: &str = r#"
  { name = "nginx", server = "nginx", workers = 1, lines = ["add_header X-Study yes;"] },
  { name = "lighttpd", server = "lighttpd" },
  { name = "worker", server = "apache", mpm = "worker" },
  { name = "event", server = "apache", mpm = "event" },
  { name = "prefork", server = "apache", mpm = "prefork" },
  { name = "varnish", server = "varnish", before = "nginx" },
  { name = "h2o", server = "h2o", workers = 1 },
  { name = "caddy", server = "caddy" },
  { name = "node", server = "node" },
"#;

const PROGRAMS: [&str; 7] = [
    "nginx", "lighttpd", "apache2", "varnishd", "h2o", "caddy", "node",
];

fn text(name: &str, configurations: &str, rounds: u32, time: &str) -> String {
    format!(
        r#"name = "{name}"
title = "t"
question = "q"
bench = "web-servers"
source = {{ title = "s", machine = "m" }}
forms.quick = {{ rounds = {rounds}, time = "{time}", washout = "50ms", files = 20, file_size = "2k" }}
forms.full = {{ rounds = 2, time = "100ms", washout = "50ms", files = 20, file_size = "2k" }}
configuration = [{configurations}]
figure = [
  {{ name = "rate", unit = "req/s", better = "higher", ranked = true, together = "c2", curve = {{ of = "rate", over = "clients", at = 2 }}, connections = 2, of = "rate" }},
  {{ name = "cpu", unit = "%", better = "neither", together = "c2", connections = 2, of = "cpu" }},
  {{ name = "index", better = "higher", ranked = true, together = "c2", connections = 2, of = "per-cpu-second" }},
  {{ name = "percent", better = "higher", together = "c2", connections = 2, of = "per-percent" }},
  {{ name = "p50", unit = "ns", better = "lower", together = "c2", connections = 2, of = "p50" }},
  {{ name = "p90", unit = "ns", better = "lower", together = "c2", connections = 2, of = "p90" }},
  {{ name = "p99", unit = "ns", better = "lower", together = "c2", connections = 2, of = "p99" }},
]
published = []
conclusion = [{{ says = "x", claim = [{{ kind = "value", figure = "rate", of = "nginx", at_least = 1 }}] }}]
"#
    )
}

struct Bed {
    home: Home,
    /// Readable for everyone, because the servers run as another user.
    dir: TempDir,
}

impl Bed {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        Self {
            home: Home::new(),
            dir,
        }
    }

    fn study(&self, text: &str) -> PathBuf {
        let path = self.home.dir.path().join("mine.toml");
        std::fs::write(&path, text).unwrap();
        path
    }

    fn args<'a>(&'a self, study: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
        let mut all = vec!["study", study.to_str().unwrap()];
        all.push(self.dir.path().to_str().unwrap());
        all.extend(more);
        all
    }

    /// Checks that nothing is left: no file, and no process with one of them.
    fn is_clean(&self) {
        assert_eq!(entries(self.dir.path()), Vec::<String>::new());
        assert_eq!(self.servers(), Vec::<u32>::new());
    }

    /// Returns the processes whose command line contains the directory.
    fn servers(&self) -> Vec<u32> {
        let dir = self.dir.path().to_str().unwrap();
        let numbers = entries(Path::new("/proc"));
        let pids = numbers.iter().filter_map(|name| name.parse().ok());
        let ours = |pid: &u32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            line.contains(&format!("{dir}/.assay-"))
        };
        pids.filter(ours).collect()
    }

    fn spawn(&self, study: &Path, more: &[&str]) -> Child {
        let mut command = self.home.command(&self.args(study, more));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }
}

fn json(ran: &Ran) -> serde_json::Value {
    let text = &ran.stdout;
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}{}", ran.stderr))
}

fn names<'a>(all: &'a serde_json::Value, key: &str) -> Vec<&'a str> {
    let mut names: Vec<&str> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one[key].as_str().unwrap())
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn until(what: &str, done: &mut dyn FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(120);
    while !done() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn every_server_serves_the_same_files_and_is_ranked() {
    if assay_testing::servers::skip(&PROGRAMS, false) {
        return;
    }
    let bed = Bed::new();
    let study = bed.study(&text("all", ALL, 2, "1s"));
    let page = bed.home.dir.path().join("page.html");
    let more = ["--json", "--seed", "3", "--html", page.to_str().unwrap()];
    let ran = bed.home.assay(&bed.args(&study, &more));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let told = json(&ran);
    let run = &told["run"];
    assert_eq!(run["not_tried"], serde_json::json!([]));
    let observations = run["observations"].as_array().unwrap();
    assert_eq!(names(&run["observations"], "configuration").len(), 9);
    for one in observations {
        assert!(one["value"].as_f64().unwrap() > 0.0, "{one}");
    }
    // All except latencies with too few requests.
    assert!(observations.len() >= 9 * 2 * 5, "{}", observations.len());
    // The two indices are one figure in two units.
    let of = |figure: &str| {
        let found = observations.iter().find(|one| {
            one["configuration"] == "nginx" && one["figure"] == figure && one["round"] == 1
        });
        found.unwrap()["value"].as_f64().unwrap()
    };
    assert!((of("rate") / of("cpu") / of("percent") - 1.0).abs() < 1e-6);
    let rankings = told["result"]["rankings"].as_array().unwrap();
    let index = rankings
        .iter()
        .find(|one| one["figure"] == "index")
        .unwrap();
    assert!(index["places"].as_array().unwrap().len() >= 2);
    let machine = run["machine"].as_object().unwrap();
    assert!(machine["nginx"].as_str().unwrap().contains("nginx"));
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(page.contains("id=\"ranking\"") && page.contains("id=\"curve-0-here-t\""));
    let text = bed.home.assay(&["study", "show"]).stdout;
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    bed.is_clean();
}

#[test]
fn a_server_that_is_not_there_or_does_not_start_is_left_out_with_the_reason() {
    if assay_testing::servers::skip(&["nginx", "lighttpd", "unshare", "mount"], true) {
        return;
    }
    let bed = Bed::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let configurations = format!(
        r#"
  {{ name = "nginx", server = "nginx" }},
  {{ name = "lighttpd", server = "lighttpd" }},
  {{ name = "behind-none", server = "varnish", before = "lighttpd" }},
  {{ name = "refused", server = "nginx", lines = ["no_such_directive on;"] }},
  {{ name = "taken", server = "nginx", port = {port} }},
"#
    );
    let study = bed.study(&text("some", &configurations, 1, "100ms"));
    // lighttpd is hidden from this process and its children only.
    let inner = bed.home.command(&bed.args(&study, &["--json"]));
    let script = "for f in /usr/sbin/lighttpd /usr/bin/lighttpd; do \
                  [ ! -e $f ] || mount --bind /dev/null $f; done; exec \"$@\"";
    let mut command = std::process::Command::new("unshare");
    command.args([
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        script,
        "sh",
    ]);
    command.arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let ran = common::ended(command);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let told = json(&ran);
    assert_eq!(
        names(&told["run"]["observations"], "configuration"),
        ["nginx"]
    );
    let not_tried = told["run"]["not_tried"].as_array().unwrap();
    let why = |name: &str| {
        let found = not_tried.iter().find(|one| one["configuration"] == name);
        found.unwrap()["why"].as_str().unwrap().to_owned()
    };
    assert!(
        why("lighttpd").contains("package lighttpd"),
        "{not_tried:?}"
    );
    assert!(why("behind-none").contains("lighttpd") || why("behind-none").contains("varnish"));
    // The error message of the server, with file and line.
    assert!(why("refused").contains("nginx.conf:"), "{not_tried:?}");
    assert!(why("taken").contains(&port.to_string()), "{not_tried:?}");
    bed.is_clean();

    // Without any server there is nothing to measure.
    let study = bed.study(&text(
        "none",
        r#"{ name = "nginx", server = "nginx", lines = ["no_such_directive on;"] }"#,
        1,
        "100ms",
    ));
    let ran = bed.home.assay(&bed.args(&study, &[]));
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("no_such_directive"), "{}", ran.stderr);
    bed.is_clean();
}

/// Starts a long study and waits until its servers respond.
fn under_way(bed: &Bed, more: &[&str]) -> Child {
    let two = r#"{ name = "nginx", server = "nginx" }, { name = "lighttpd", server = "lighttpd" }"#;
    let study = bed.study(&text("long", two, 500, "200ms"));
    let child = bed.spawn(&study, more);
    until("no figure was stored", &mut || {
        let shown = bed.home.assay(&["study", "show", "--json"]);
        shown.code == Some(0)
            && json(&shown)["run"]["observations"]
                .as_array()
                .is_some_and(|all| names(&all.clone().into(), "configuration").len() == 2)
    });
    child
}

fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

#[test]
fn a_server_that_dies_is_named_and_what_was_measured_is_kept() {
    if assay_testing::servers::skip(&["nginx", "lighttpd"], false) {
        return;
    }
    for keep_going in [false, true] {
        let bed = Bed::new();
        let more: &[&str] = if keep_going { &["--keep-going"] } else { &[] };
        let child = under_way(&bed, more);
        let lighttpd = bed.servers().into_iter().find(|pid| {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
            name.is_ok_and(|name| name.trim() == "lighttpd")
        });
        signal(lighttpd.unwrap(), Signal::KILL);
        if keep_going {
            // The other server continues; then the user interrupts.
            until("nothing failed", &mut || {
                let shown = json(&bed.home.assay(&["study", "show", "--json"]));
                !shown["run"]["not_tried"].as_array().unwrap().is_empty()
            });
            signal(child.id(), Signal::INT);
        }
        let ran = common::ran(child.wait_with_output().unwrap());
        assert_eq!(
            ran.code,
            Some(if keep_going { 130 } else { 2 }),
            "{}",
            ran.stderr
        );
        assert!(
            ran.stderr.contains("lighttpd") && ran.stderr.contains("ended"),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains("--resume"), "{}", ran.stderr);
        bed.is_clean();
    }
}

#[test]
fn an_interrupted_study_ends_its_servers_and_a_killed_one_is_swept_up_by_the_next() {
    if assay_testing::servers::skip(&["nginx", "lighttpd"], false) {
        return;
    }
    let bed = Bed::new();
    let child = under_way(&bed, &[]);
    signal(child.id(), Signal::INT);
    let ran = common::ran(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    bed.is_clean();

    let bed = Bed::new();
    let mut child = under_way(&bed, &[]);
    assert!(bed.servers().len() >= 2);
    child.kill().unwrap();
    child.wait().unwrap();
    // The kernel terminates them.
    until("a server outlived assay", &mut || bed.servers().is_empty());
    assert_eq!(entries(bed.dir.path()).len(), 1);
    let study = bed.study(&text(
        "next",
        r#"{ name = "nginx", server = "nginx" }"#,
        1,
        "100ms",
    ));
    let ran = bed.home.assay(&bed.args(&study, &[]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    bed.is_clean();
}

#[test]
fn mistakes_are_told_before_anything_is_made() {
    let bed = Bed::new();
    let mut said = String::new();
    for configuration in [
        r#"{ name = "nginx", server = "iis" }"#,
        r#"{ name = "nginx", server = "apache" }"#,
        r#"{ name = "nginx", server = "nginx", mpm = "event" }"#,
        r#"{ name = "nginx", server = "varnish", before = "x" }"#,
        r#"{ name = "nginx", server = "varnish" }"#,
        r#"{ name = "nginx", server = "caddy", workers = 2 }"#,
        r#"{ name = "nginx", server = "nginx", port = 70000 }"#,
        r#"{ name = "nginx", server = "node", lines = ["x"] }"#,
        r#"{ name = "nginx", server = "nginx", wrokers = 2 }"#,
    ] {
        let study = bed.study(&text("wrong", configuration, 1, "100ms"));
        let ran = bed.home.assay(&bed.args(&study, &[]));
        assert_eq!(ran.code, Some(2), "{configuration}: {}", ran.stderr);
        said += &format!("{configuration}: {}", bed.home.told(&ran.stderr));
        assert!(
            ran.stderr.contains("`nginx`"),
            "{configuration}: {}",
            ran.stderr
        );
    }
    insta::assert_snapshot!(said, @r#"
    { name = "nginx", server = "iis" }: assay: configuration `nginx`: unknown variant `iis`, expected one of `nginx`, `lighttpd`, `apache`, `varnish`, `h2o`, `caddy`, `node`
    { name = "nginx", server = "apache" }: assay: configuration `nginx`: mpm = "event", "worker" or "prefork" goes with server = "apache"
    { name = "nginx", server = "nginx", mpm = "event" }: assay: configuration `nginx`: mpm = "event", "worker" or "prefork" goes with server = "apache"
    { name = "nginx", server = "varnish", before = "x" }: assay: configuration `nginx`: before = "x": name a configuration of the same form that serves files itself
    { name = "nginx", server = "varnish" }: assay: configuration `nginx`: before, the configuration behind it, goes with server = "varnish"
    { name = "nginx", server = "caddy", workers = 2 }: assay: configuration `nginx`: workers goes with nginx, lighttpd and h2o
    { name = "nginx", server = "nginx", port = 70000 }: assay: configuration `nginx`: invalid value: integer `70000`, expected u16
    { name = "nginx", server = "node", lines = ["x"] }: assay: configuration `nginx`: node has no configuration file for lines
    { name = "nginx", server = "nginx", wrokers = 2 }: assay: configuration `nginx`: unknown field `wrokers`, expected one of `server`, `mpm`, `workers`, `before`, `port`, `lines`
    "#);
    let nginx = r#"{ name = "nginx", server = "nginx" }"#;
    let mut said = String::new();
    for (from, to) in [
        ("files = 20", "files = 0"),
        ("time = \"100ms\"", "time = \"1ms\""),
        (
            "connections = 2, of = \"cpu\"",
            "connections = 3, of = \"cpu\"",
        ),
        ("of = \"cpu\"", "of = \"cup\""),
    ] {
        let study = bed.study(&text("wrong", nginx, 1, "100ms").replacen(from, to, 1));
        let ran = bed.home.assay(&bed.args(&study, &[]));
        assert_eq!(ran.code, Some(2), "{to}: {}", ran.stderr);
        said += &format!("{to}: {}", bed.home.told(&ran.stderr));
    }
    insta::assert_snapshot!(said, @r#"
    files = 0: assay: the form: files is from 1 to 10000
    time = "1ms": assay: the form: time is at least 100ms
    connections = 3, of = "cpu": assay: figure `cpu`: the figures of "c2" differ in their connections
    of = "cup": assay: figure `cpu`: unknown variant `cup`, expected one of `rate`, `cpu`, `per-cpu-second`, `per-percent`, `p50`, `p90`, `p99`
    "#);
    bed.is_clean();
}

#[test]
fn attack_a_directory_that_leads_elsewhere_or_is_closed_is_refused() {
    if assay_testing::servers::skip(&["nginx"], true) {
        return;
    }
    let bed = Bed::new();
    let study = bed.study(&text(
        "x",
        r#"{ name = "nginx", server = "nginx" }"#,
        1,
        "100ms",
    ));
    // Configuration files would misinterpret it.
    let odd = bed.dir.path().join("a; } include \"x\"");
    std::fs::create_dir(&odd).unwrap();
    let closed = bed.dir.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).unwrap();
    for dir in [&odd, &closed] {
        let args = ["study", study.to_str().unwrap(), dir.to_str().unwrap()];
        let ran = bed.home.assay(&args);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains("/var/tmp"), "{}", ran.stderr);
        assert_eq!(entries(dir), Vec::<String>::new());
        std::fs::remove_dir(dir).unwrap();
    }
    bed.is_clean();
}
