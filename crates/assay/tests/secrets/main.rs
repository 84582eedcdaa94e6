//! Plants secrets in all inputs; no output may contain one.
#![allow(
    clippy::disallowed_methods,
    reason = "tests drive the real program and read what it wrote"
)]

#[path = "../common/mod.rs"]
mod common;
mod measured;
mod plant;

use assay_facts::{CollectOptions, Redacted, collect};
use assay_host::{Recording, Root};
use assay_testing::{attacked, skipped};
use common::{Home, Ran, fio, root};
use plant::Plant;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Searched data, and found secrets.
#[derive(Default)]
struct Search {
    tried: usize,
    leaks: Vec<String>,
}

impl Search {
    /// Each planted secret in one output is one attack.
    fn bytes(&mut self, plant: &Plant, what: &str, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        for (place, secret) in plant.secrets() {
            self.tried += 1;
            if text.contains(secret.as_str()) {
                let line = text.lines().find(|line| line.contains(secret.as_str()));
                let line: String = line.unwrap_or_default().chars().take(400).collect();
                self.leaks.push(format!("{place} in {what}: {line}"));
            }
        }
    }

    fn ran(&mut self, plant: &Plant, what: &str, ran: &Ran) {
        self.bytes(plant, &format!("{what}, stdout"), ran.stdout.as_bytes());
        self.bytes(plant, &format!("{what}, stderr"), ran.stderr.as_bytes());
    }

    /// Searches all files below a directory, and their names.
    fn tree(&mut self, plant: &Plant, what: &str, dir: &Path) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            self.bytes(plant, what, path.to_string_lossy().as_bytes());
            if path.is_symlink() {
                let target = std::fs::read_link(&path).unwrap();
                self.bytes(plant, what, target.to_string_lossy().as_bytes());
            } else if path.is_dir() {
                self.tree(plant, what, &path);
            } else if path.is_file() {
                let name = format!("{what}: {}", path.display());
                self.bytes(plant, &name, &std::fs::read(&path).unwrap());
            }
        }
    }

    /// Searches a file that must exist.
    fn file(&mut self, plant: &Plant, what: &str, path: &Path) {
        let bytes = std::fs::read(path).unwrap();
        self.bytes(plant, &format!("{what}: {}", path.display()), &bytes);
    }

    /// The records of a store are compressed, so each run is unpacked too.
    fn store(&mut self, plant: &Plant, home: &Home) {
        let path = home.dir.path().join("store.db");
        self.bytes(plant, "the store's bytes", &std::fs::read(&path).unwrap());
        let runs = home.assay(&["runs", "--json"]);
        self.ran(plant, "runs --json", &runs);
        let document: serde_json::Value = serde_json::from_str(&runs.stdout).unwrap();
        let rows = document["runs"].as_array().unwrap();
        assert!(!rows.is_empty());
        for row in rows {
            let id = row["id"].to_string();
            let page = home.dir.path().join(format!("{id}.html"));
            for args in [
                vec!["show", &id],
                vec!["show", &id, "--json"],
                vec!["export", &id],
                vec!["report", &id, "--html", page.to_str().unwrap()],
                vec!["report", &id, "--format", "md"],
            ] {
                self.ran(plant, &args.join(" "), &home.assay(&args));
            }
            let html = std::fs::read(&page).unwrap_or_default();
            assert!(!html.is_empty(), "no page of run {id}");
            self.bytes(plant, "a page", &html);
        }
    }

    fn end(self, name: &str) {
        for leak in &self.leaks {
            eprintln!("{leak}");
        }
        let held = self.tried - self.leaks.len();
        attacked(name, self.tried as u64, held as u64);
    }
}

/// A process named QEMU with secrets in its command line and environment.
struct Machine(Child);

impl Machine {
    fn start(plant: &mut Plant, dir: &Path) -> Self {
        let program = common::script(dir, "qemu-system-x86_64", "read -r line");
        let secret = plant.secret("QEMU's -object");
        let password = plant.secret("QEMU's -drive password");
        let login = plant.secret("QEMU's -drive address");
        let word = plant.secret("a setting of a QEMU's -drive that is known");
        let image = dir.join("disk.raw");
        std::fs::write(&image, vec![0; 1 << 20]).unwrap();
        let child = Command::new(program)
            .args(["-name", "web", "-M", "q35", "-m", "64"])
            .args(["-object", &format!("secret,id=s,data={secret}")])
            .args([
                "-drive",
                &format!(
                    "file={},if=virtio,format=raw,password={password}",
                    image.display()
                ),
            ])
            .args([
                "-drive",
                &format!(
                    "file={},if=virtio,format=raw,cache=a {word} word",
                    image.display()
                ),
            ])
            .args([
                "-drive",
                &format!("file=https://u:{login}@h/i?t={login},if=virtio"),
            ])
            .env("PLANTED", plant.secret("QEMU's environment"))
            .stdin(Stdio::piped())
            .spawn();
        Self(child.unwrap())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A private mount namespace: nothing of the machine is changed.
struct Private<'a> {
    home: &'a Home,
    line: PathBuf,
    mounted: PathBuf,
    share: PathBuf,
    environment: Vec<(String, String)>,
}

impl<'a> Private<'a> {
    /// Creates it with secrets on the kernel's command line, in the source of a mount in `target`,
    /// and in the environment. `None` if not supported.
    fn new(home: &'a Home, plant: &mut Plant, target: &Path) -> Option<Self> {
        let share = target.join("share");
        std::fs::create_dir(&share).unwrap();
        let line = home.dir.path().join("cmdline");
        std::fs::write(&line, plant.cmdline()).unwrap();
        let private = Self {
            home,
            line,
            mounted: PathBuf::from(plant.mounted()),
            share,
            environment: plant.environment(),
        };
        let probe = private.ran(&["facts", "kernel.cmdline"]);
        if probe.code != Some(0) {
            skipped("mount-namespace", &probe.stderr);
            return None;
        }
        assert!(probe.stdout.contains("mitigations=off"), "{}", probe.stdout);
        Some(private)
    }

    fn command(&self, args: &[&str]) -> Command {
        let script = "mount --bind \"$1\" /proc/cmdline && mount -t tmpfs \"$2\" \"$3\" && shift 3 && exec \"$@\"";
        let inner = self.home.command(args);
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-c", script, "sh"])
            .args([&self.line, &self.mounted, &self.share])
            .arg(inner.get_program())
            .args(inner.get_args())
            .stdin(Stdio::null());
        for (name, value) in inner.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        for (name, value) in &self.environment {
            command.env(name, value);
        }
        command
    }

    fn ran(&self, args: &[&str]) -> Ran {
        common::ended(self.command(args))
    }
}

#[test]
fn attack_secrets_of_a_captured_machine() {
    let home = Home::new();
    let mut plant = Plant::default();
    let dir = home.dir.path().join("root");
    plant.machine(&dir);
    let mut search = Search::default();
    let text = dir.to_str().unwrap();
    for args in [
        vec!["facts", "--root", text],
        vec!["facts", "--root", text, "--json"],
        vec!["facts", "--root", text, "--json", "--services"],
        vec!["facts", "--root", text, "--json", "--identity"],
        vec![
            "facts", "--root", text, "--target", "/srv", "--target", "/tank", "--json",
        ],
    ] {
        let ran = home.assay(&args);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        search.ran(&plant, &args.join(" "), &ran);
        // Harmless values are still reported.
        if args.contains(&"--json") {
            for known in plant.harmless() {
                assert!(ran.stdout.contains(known), "{known} is not told any more");
            }
        }
    }
    for form in [
        "text",
        "json",
        "sarif",
        "junit",
        "markdown",
        "html",
        "nagios",
        "prometheus",
    ] {
        let ran = home.assay(&["check", "--root", text, "--format", form]);
        assert!(!ran.stdout.is_empty(), "{form}: {}", ran.stderr);
        search.ran(&plant, form, &ran);
    }
    // A capture of a machine, and a capture of that capture.
    for identity in [false, true] {
        let captured = home.dir.path().join(format!("captured-{identity}"));
        let root = Root::open(&dir).unwrap();
        let redacted = Redacted::new(&root, identity);
        let recording = Recording::new(&redacted, &captured).unwrap();
        let targets = [PathBuf::from("/srv"), PathBuf::from("/tank")];
        let options = CollectOptions {
            with_identity: identity,
            services: true,
            accounts: false,
            targets: &targets,
        };
        let first = collect(&recording, &options);
        recording.finish(redacted.withheld()).unwrap();
        search.tree(&plant, "a capture", &captured);
        let again = collect(&Root::open(&captured).unwrap(), &options);
        search.bytes(
            &plant,
            "facts of a capture",
            format!("{again:?}").as_bytes(),
        );
        assert!(again.map.len() > 40 && first.map.len() > 40);
    }
    search.end("secrets of a captured machine");
}

#[test]
fn attack_secrets_of_this_machine() {
    if !root() || !fio() {
        return;
    }
    let home = Home::new();
    let mut plant = Plant::default();
    let bin = tempfile::tempdir().unwrap();
    let machine = Machine::start(&mut plant, bin.path());
    let target = home.target();
    let Some(private) = Private::new(&home, &mut plant, target.path()) else {
        return;
    };
    let share = private.share.clone();
    let mut search = Search::default();
    let captured = home.dir.path().join("captured");
    let pid = machine.0.id().to_string();
    let (dir, share) = (target.path().to_str().unwrap(), share.to_str().unwrap());
    let page = home.dir.path().join("stack.html");
    for args in [
        vec!["facts"],
        vec!["facts", "--json", "--identity"],
        vec![
            "facts",
            "--capture",
            captured.to_str().unwrap(),
            "--target",
            share,
        ],
        vec!["stack", share],
        vec!["stack", &pid],
        vec!["stack", &pid, "--json"],
        vec!["stack", &pid, "--html", page.to_str().unwrap()],
        vec![
            "run",
            "--rw",
            "randread",
            "--size",
            "4M",
            "--rounds",
            "1",
            "--runtime",
            "100ms",
            dir,
        ],
        vec!["run", "quick", dir, "--print-plan"],
        vec!["advice"],
        vec!["trial", "--list"],
        vec![],
    ] {
        let ran = private.ran(&args);
        search.ran(&plant, &args.join(" "), &ran);
        if args.first() == Some(&"run") {
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        }
    }
    search.tree(&plant, "a capture of this machine", &captured);
    search.bytes(
        &plant,
        "a page of a stack",
        &std::fs::read(&page).unwrap_or_default(),
    );
    search.store(&plant, &home);
    if home.state().is_dir() {
        search.tree(&plant, "the state directory", &home.state());
    }
    search.end("secrets of this machine");
}

#[test]
fn attack_secrets_of_files() {
    let home = Home::new();
    let mut plant = Plant::default();
    let files = plant.files(home.dir.path());
    let mut search = Search::default();
    for (verb, file, kept) in &files {
        let mut args: Vec<&str> = verb.split(' ').collect();
        args.push(file.to_str().unwrap());
        let ran = home.assay(&args);
        search.ran(&plant, verb, &ran);
        if *kept {
            assert!(matches!(ran.code, Some(0 | 1)), "{verb}: {}", ran.stderr);
            args.push("--json");
            search.ran(&plant, verb, &home.assay(&args));
        } else {
            assert!(
                !matches!(ran.code, Some(0)),
                "{verb} took {}",
                file.display()
            );
            assert!(
                !ran.stderr.is_empty() && !ran.stderr.contains("Usage:"),
                "{}",
                ran.stderr
            );
        }
    }
    search.store(&plant, &home);
    search.end("secrets of files");
}
