//! Runs the collector on hostile machines: names of any kind, endless lists, tools that do not end, a lost connection.
//! The collector always ends, leaves no process behind, and never reports a partial result as complete.
#![allow(clippy::disallowed_methods, reason = "tests run the script")]

use assay_facts::script;
use assay_host::{Bundle, Host as _, HostError, LiveHost};
use assay_testing::servers::shells::{self, Pair};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A root directory with a shell. Dropping the value deletes the files.
struct Machine {
    dir: tempfile::TempDir,
}

impl Machine {
    fn new() -> Option<Self> {
        if LiveHost.exists(Path::new("/root/.")).is_err() {
            assay_testing::skipped("chroot", "needs root");
            return None;
        }
        let Some(busybox) = assay_testing::servers::busybox::is_static() else {
            assay_testing::skipped("busybox", "a static busybox is not installed");
            return None;
        };
        let dir = tempfile::tempdir().unwrap();
        assay_testing::servers::busybox::furnish(dir.path(), &busybox).unwrap();
        Some(Self { dir })
    }

    fn make_dir(&self, path: &str) -> PathBuf {
        let dir = self.dir.path().join(path);
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    /// Runs a script in the root directory.
    fn run(&self, pair: &Pair, script: &str) -> Output {
        let mut shell = pair.furnish(self.dir.path()).unwrap();
        let script = pair.before(Path::new("/bin")) + script;
        let mut child = shell
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || stdin.write_all(script.as_bytes()));
        let output = child.wait_with_output().unwrap();
        // A shell that was killed reads no more input.
        let _ = writer.join().unwrap();
        output
    }

    /// Returns the processes that still run in the root directory after a short wait.
    fn left(&self) -> Vec<String> {
        left_with(|at| fs::read_link(at.join("root")).is_ok_and(|root| root == self.dir.path()))
    }
}

/// Returns the processes that still satisfy a condition after ten seconds.
fn left_with(is: impl Fn(&Path) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for _ in 0..100 {
        found = fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| is(path))
            .map(|path| fs::read_to_string(path.join("cmdline")).unwrap_or_default())
            .map(|line| line.chars().take(60).collect())
            .collect();
        if found.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    found
}

const TEXT: &str = "sendfile on;\n";

/// Returns names on one line that are difficult for shells, patterns and records.
fn odd_names() -> Vec<OsString> {
    let mut names: Vec<OsString> = [
        "-n.conf",
        "--help.conf",
        "*.conf",
        "?.conf",
        "[a-z].conf",
        "[.conf",
        "b\\n\\c.conf",
        "'.conf",
        "\".conf",
        "a b  c.conf",
        " .conf",
        "$(touch HERE).conf",
        "`touch HERE`.conf",
        "${PATH}.conf",
        "%s%n.conf",
        "a&b;c|d.conf",
        "Müller.conf",
        "~.conf",
        "#.conf",
        "=.conf",
        "O",
        "Z",
        "!",
        "W",
        "C word",
        "F x.conf",
        "B nginx x",
        "..conf",
        ".hidden.conf",
        "...",
        ".",
    ]
    .iter()
    .filter(|name| **name != ".")
    .map(OsString::from)
    .collect();
    names.push(OsStr::from_bytes(b"\xff\xfe\x80.conf").to_owned());
    names.push(OsString::from("n".repeat(250) + ".conf"));
    names
}

/// Names that do not fit on one line, or that the archive would misinterpret.
const CONTROL: [&str; 10] = [
    "a\nb.conf",
    "x.conf\n",
    "\n",
    "a\n.\nL \tb.conf",
    "a\n/etc/shadow.conf",
    "a\tb.conf",
    "\u{2}.conf",
    "\u{1}\u{1b}[31m.conf",
    "a\r.conf",
    "\u{7f}.conf",
];

/// Directories of which the collector reads all files, or the files that match a pattern.
const DIRS: [&str; 6] = [
    "etc/nginx/conf.d",
    "etc/ssh/sshd_config.d",
    "etc/sysctl.d",
    "etc/modprobe.d",
    "etc/cron.d",
    "etc/apache2/sites-enabled",
];

#[test]
fn attack_names_of_every_kind_arrive_or_are_told() {
    let mut tried = 0;
    for pair in shells::shell_awk_pairs() {
        let Some(machine) = Machine::new() else {
            return;
        };
        for dir in DIRS {
            let dir = machine.make_dir(dir);
            for name in odd_names() {
                fs::write(dir.join(name), TEXT).unwrap();
            }
        }
        let conf = machine.dir.path().join("etc/nginx/conf.d");
        symlink("loop.conf", conf.join("loop.conf")).unwrap();
        symlink("/nowhere/x.conf", conf.join("dangling.conf")).unwrap();
        symlink("..", conf.join("above")).unwrap();
        let fifo = Command::new("mkfifo").arg(conf.join("fifo.conf")).status();
        assert!(fifo.unwrap().success());
        let output = machine.run(&pair, &ends_after(300));
        let bundle = whole(&pair, &output);
        for dir in DIRS {
            let dir = Path::new("/").join(dir);
            let names = bundle
                .list(&dir)
                .unwrap_or_else(|error| panic!("{}: {error}", pair.name));
            for name in odd_names() {
                let path = dir.join(&name);
                let is_conf =
                    name.as_bytes().ends_with(b".conf") && !name.as_bytes().starts_with(b".");
                let all = ["/etc/nginx/conf.d", "/etc/ssh/sshd_config.d"];
                if !is_conf && !all.iter().any(|one| dir == Path::new(one)) {
                    continue;
                }
                let read = bundle.read(&path);
                assert!(read.is_ok(), "{}: {path:?}: {read:?}", pair.name);
                assert!(names.contains(&name), "{}: {path:?}", pair.name);
                tried += 1;
            }
        }
        let text = bundle
            .read(Path::new("/etc/nginx/conf.d/b\\n\\c.conf"))
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&text), TEXT, "{}", pair.name);
        let fault = |name: &str| {
            bundle
                .read(&Path::new("/etc/nginx/conf.d").join(name))
                .unwrap_err()
        };
        assert_eq!(
            fault("loop.conf").errno(),
            Some(40),
            "{}: {}",
            pair.name,
            fault("loop.conf")
        );
        assert!(fault("dangling.conf").is_absent());
        assert!(matches!(fault("fifo.conf"), HostError::Path { .. }));
        assert!(!machine.dir.path().join("HERE").exists(), "{}", pair.name);
        assert_eq!(machine.left(), [""; 0], "{}", pair.name);
    }
    assay_testing::attacked("odd names and the collector", tried, tried);
}

/// One name that cannot be transferred makes its directory unknown as a whole, with every shell. All other sources are
/// still collected.
#[test]
fn attack_names_that_cannot_travel_are_not_taken_for_absent() {
    let mut tried = 0;
    for (number, pair) in shells::shell_awk_pairs().iter().enumerate() {
        // Each pair of shell and awk tries its share of the names, and all pairs try the first one.
        for name in [CONTROL[0], CONTROL[1 + number % (CONTROL.len() - 1)]] {
            let Some(machine) = Machine::new() else {
                return;
            };
            for dir in DIRS {
                let dir = machine.make_dir(dir);
                fs::write(dir.join("good.conf"), TEXT).unwrap();
                if name.contains('/') {
                    fs::create_dir_all(dir.join(name).parent().unwrap()).unwrap();
                }
                fs::write(dir.join(name), TEXT).unwrap();
            }
            let (deep, live) = (
                machine.make_dir(&format!("etc/nginx/{name}/deep")),
                machine.make_dir(&format!("etc/letsencrypt/live/{name}")),
            );
            fs::write(deep.join("x.conf"), TEXT).unwrap();
            fs::write(live.join("fullchain.pem"), TEXT).unwrap();
            symlink(name, machine.dir.path().join("etc/ssh/ssh_config")).unwrap();
            let output = machine.run(pair, &ends_after(300));
            let bundle = whole(pair, &output);
            for dir in DIRS.iter().chain(&["etc/nginx", "etc/letsencrypt/live"]) {
                let dir = Path::new("/").join(dir);
                // The collector ignores directories there.
                if name.contains('/') && dir.ends_with("cron.d") {
                    continue;
                }
                // A name is read only if it matches a pattern.
                let meant = name
                    .split('/')
                    .next()
                    .is_some_and(|first| first.ends_with(".conf"))
                    || ["nginx", "ssh", "cron", "letsencrypt"]
                        .iter()
                        .any(|part| dir.to_string_lossy().contains(part));
                let listed = bundle.list(&dir);
                assert_eq!(
                    listed.is_err(),
                    meant,
                    "{} {name:?} {}: {listed:?}",
                    pair.name,
                    dir.display()
                );
                assert!(listed.err().is_none_or(|error| !error.is_absent()));
                tried += 1;
            }
            for dir in DIRS {
                let good = bundle.read(&Path::new("/").join(dir).join("good.conf"));
                assert!(good.is_ok(), "{} {name:?} {dir}: {good:?}", pair.name);
            }
            assert_eq!(machine.left(), [""; 0], "{} {name:?}", pair.name);
        }
    }
    assay_testing::attacked("names that cannot travel", tried, tried);
}

#[test]
fn attack_more_names_than_anybody_has() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let dirs = ["etc/nginx/conf.d", "etc/cron.d", "etc/sysctl.d"];
    for dir in dirs {
        let dir = machine.make_dir(dir);
        for number in 0..100_000 {
            fs::File::create(dir.join(format!("{number}.conf"))).unwrap();
        }
    }
    let mut shells = Vec::new();
    for pair in shells::shell_awk_pairs() {
        let shell = pair.name.split(' ').next().unwrap().to_owned();
        if shells.contains(&shell) {
            continue;
        }
        shells.push(shell);
        let output = machine.run(&pair, &ends_after(300));
        let bundle = whole(&pair, &output);
        for dir in dirs {
            let listed = bundle.list(&Path::new("/").join(dir));
            let told = listed.as_ref().is_err_and(|error| !error.is_absent());
            assert!(
                told,
                "{}: {dir}: {:?}",
                pair.name,
                listed.map(|names| names.len())
            );
        }
    }
    assay_testing::attacked("very many names", 3, 3);
}

/// Environment variable that marks the test's process and all its children.
const MARK: &str = "ASSAY_TEST_OF_COLLECTOR";

fn is_marked(process: &Path, dir: &Path) -> bool {
    let text = fs::read(process.join("environ")).unwrap_or_default();
    let mark = format!("{MARK}={}", dir.display());
    text.windows(mark.len()).any(|part| part == mark.as_bytes())
}

/// Returns a script that runs the command `endless` before it collects.
fn instead(seconds: u64, endless: &str) -> String {
    let whole = ends_after(seconds);
    let begin = "\ncollect() {\n";
    assert_eq!(whole.matches(begin).count(), 1);
    whole.replace(begin, &format!("{begin}{endless}\n"))
}

/// An endless command is ended, whichever part of the script runs it.
#[test]
fn attack_what_never_ends_is_ended() {
    let endless = [
        // An endless loop of the shell, as after a wrong split of a list.
        "while :; do :; done",
        // A tool that hangs, and one that has children.
        "sleep 1000",
        "(sleep 1000 & sleep 1000) | sleep 1000",
        // An awk that computes endlessly.
        "awk 'BEGIN { while (1) x++ }'",
        // An endless list.
        "while :; do printf 'F /x\\n'; done",
    ];
    let guard = "guard </dev/null >/dev/null 2>&1 &\n";
    let pairs = shells::shell_awk_pairs();
    for (number, pair) in pairs.iter().enumerate() {
        let endless = endless[number % endless.len()];
        let said = ended(pair, &instead(3, endless));
        assert!(
            said.contains("assay-collector: ended"),
            "{}, {endless}: {said}",
            pair.name
        );
        // Without a watchdog the CPU limit ends a busy process.
        let script = instead(2, "while :; do :; done");
        assert_eq!(script.matches(guard).count(), 1);
        ended(pair, &script.replace(guard, ": &\n"));
    }
    let tried = 2 * pairs.len() as u64;
    assay_testing::attacked("a collector without an end", tried, tried);
}

/// Runs a script that would not end on its own, and returns its error messages. The script writes no bundle.
fn ended(pair: &Pair, script: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let links = dir.path().join("links");
    let file = dir.path().join("script");
    fs::write(&file, pair.before(&links) + script).unwrap();
    let mut shell = pair.command(&links).unwrap();
    shell
        .env(MARK, dir.path())
        .stdin(fs::File::open(&file).unwrap());
    let output = shell.output().unwrap();
    assert!(
        Bundle::read(&output.stdout[..], "it").is_err(),
        "{}",
        pair.name
    );
    assert_eq!(
        left_with(|path| is_marked(path, dir.path())),
        [""; 0],
        "{}",
        pair.name
    );
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// If the ssh server that started the script is gone, or if the script receives a signal to end, the script ends
/// together with all its children.
#[test]
fn attack_a_link_that_dies_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let Some(dash) = assay_testing::servers::find("dash") else {
        return assay_testing::skipped("dash", "not installed");
    };
    let server = dir.path().join("sshd");
    fs::copy(dash, &server).unwrap();
    let links = dir.path().join("links");
    let file = dir.path().join("script");
    let is_ours = |path: &Path| is_marked(path, dir.path());
    let sleeps = || {
        let all = fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| Some(entry.ok()?.path()));
        let is_sleep = |path: &PathBuf| {
            fs::read(path.join("cmdline")).is_ok_and(|line| line.ends_with(b"sleep\x001000\0"))
        };
        all.filter(|path| is_ours(path)).any(|path| is_sleep(&path))
    };
    let pairs = shells::shell_awk_pairs();
    for pair in &pairs {
        let script = instead(300, "(while :; do :; done) & sleep 1000");
        fs::write(&file, pair.before(&links) + &script).unwrap();
        for how in ["-9", "-TERM", "-HUP"] {
            let shell = pair.command(&links).unwrap();
            let words = std::iter::once(shell.get_program()).chain(shell.get_args());
            let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
            let (links, words) = (links.display(), words.join(" "));
            let line = format!(
                "PATH={links}:$PATH {words} <{} >/dev/null 2>&1 & echo $!; wait",
                file.display()
            );
            // Below nohup a shell cannot trap SIGHUP; sshd starts its commands with the default.
            let mut command = Command::new("env");
            command.arg("--default-signal=HUP").arg(&server);
            command.args(["-c", &line]).env(MARK, dir.path());
            let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
            let mut first = String::new();
            let out = child.stdout.take().unwrap();
            std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut first).unwrap();
            // Waits until the process hangs.
            let begin = Instant::now();
            while !sleeps() && begin.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(Duration::from_millis(50));
            }
            assert!(sleeps(), "{}: it does not come so far", pair.name);
            let whom = if how == "-9" {
                child.id().to_string()
            } else {
                first.trim().to_owned()
            };
            assert!(
                Command::new("kill")
                    .args([how, &whom])
                    .status()
                    .unwrap()
                    .success()
            );
            // Before the deadline of the script, which would hide a lost signal.
            let begin = Instant::now();
            while child.try_wait().unwrap().is_none() {
                assert!(
                    begin.elapsed() < Duration::from_secs(120),
                    "{} {how}: still there: {:?}",
                    pair.name,
                    left_with(is_ours)
                );
                std::thread::sleep(Duration::from_millis(20));
            }
            assert_eq!(left_with(is_ours), [""; 0], "{} {how}", pair.name);
        }
    }
    let tried = 3 * pairs.len() as u64;
    assay_testing::attacked("a link that dies", tried, tried);
}

/// Returns the script with another timeout.
fn ends_after(seconds: u64) -> String {
    format!("assay_deadline={seconds}\n{}", script("test"))
}

fn whole(pair: &Pair, output: &Output) -> Bundle {
    let said = String::from_utf8_lossy(&output.stderr);
    let bundle = Bundle::read(&output.stdout[..], "the bundle");
    let bundle = bundle.unwrap_or_else(|error| panic!("{}: {error}: {said}", pair.name));
    assert_eq!(said, "", "{}", pair.name);
    bundle
}
