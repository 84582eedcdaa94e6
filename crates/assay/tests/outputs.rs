//! Files that verbs write at the user's path: links, pipes, directories and files of others are refused, and the
//! previous content stays.
#![allow(
    clippy::disallowed_methods,
    reason = "tests drive the real program and plant files"
)]

mod common;

use assay_testing::attacked;
use common::{Home, Ran, ended, entries};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// User `nobody`.
const OTHER: u32 = 65534;
const RESULT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../fio/fixtures/fio-3.33-mix.json"
);

/// Command lines; `OUT` is the file that each writes. `RUN` is a run in the store.
const VERBS: [&[&str]; 17] = [
    &["report", "last", "--html", "OUT"],
    &["report", "last", "--format", "md", "-o", "OUT"],
    &["report", "last", "--json", "--output", "OUT"],
    &["export", "last", "-o", "OUT"],
    &["export", "last", "--format", "csv", "-oOUT"],
    &["stack", "DIR", "--html=OUT"],
    &["changed", "--html", "OUT"],
    &["plan", "layout", "4T", "4T", "--html", "OUT"],
    &["plan", "capacity", "1TiB", "--html", "OUT"],
    &[
        "plan",
        "durability",
        "--disks",
        "8",
        "--survives",
        "2",
        "--html",
        "OUT",
    ],
    &[
        "plan",
        "distribute",
        "512MiB",
        "2GiB",
        "--write",
        "512MiB",
        "--html",
        "OUT",
    ],
    &["plan", "cache", "--memory", "32GiB", "--html", "OUT"],
    &["dups", "--index", "INDEX", "offer", "OUT"],
    &["dups", "--index", "INDEX", "report", "--output", "OUT"],
    &[
        "dups", "--index", "INDEX", "scan", "DIR/data", "--json", "--output", "OUT",
    ],
    &[
        "run",
        "DIR",
        "--rw",
        "randread",
        "--size",
        "1MiB",
        "--runtime",
        "100ms",
        "--html",
        "OUT",
    ],
    &["web", "URL", "--html", "OUT"],
];

struct Scene {
    home: Home,
    dir: tempfile::TempDir,
}

impl Scene {
    /// Without verbs that need a program or a server.
    fn verbs() -> impl Iterator<Item = &'static [&'static str]> {
        VERBS
            .into_iter()
            .filter(|words| words[0] != "web" && words[0] != "run")
    }

    fn new() -> Self {
        let scene = Self {
            home: Home::new(),
            dir: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(scene.path("data")).unwrap();
        fs::write(scene.path("data/one"), "same").unwrap();
        fs::write(scene.path("data/two"), "same").unwrap();
        let imported = scene.home.assay(&["import", RESULT]);
        assert!(matches!(imported.code, Some(0 | 1)), "{}", imported.stderr);
        let scanned = scene.run(&["dups", "--index", "INDEX", "scan", "DIR/data"], "none");
        assert_eq!(scanned.code, Some(0), "{}", scanned.stderr);
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn words(&self, words: &[&str], out: &str) -> Vec<String> {
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        let out = match out.starts_with(['/', '-']) {
            true => out.to_owned(),
            false => text(self.path(out)),
        };
        let words = words.iter().map(|word| {
            word.replace("OUT", &out)
                .replace("DIR", &text(self.path("")))
                .replace("INDEX", &text(self.path("index.db")))
        });
        words.collect()
    }

    fn run(&self, words: &[&str], out: &str) -> Ran {
        self.home.assay(&self.words(words, out))
    }
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()
}

#[test]
fn every_verb_writes_a_file_of_its_own() {
    let scene = Scene::new();
    for words in Scene::verbs() {
        for round in 0..2 {
            let ran = scene.run(words, "out");
            assert!(
                matches!(ran.code, Some(0 | 1)),
                "{words:?} {round}: {}",
                ran.stderr
            );
            assert!(scene.path("out").metadata().unwrap().len() > 0, "{words:?}");
        }
        fs::remove_file(scene.path("out")).unwrap();
        let left: Vec<_> = entries(scene.dir.path());
        assert!(
            !left.iter().any(|name| name.starts_with('.')),
            "{words:?}: {left:?}"
        );
    }
}

#[test]
fn streams_are_written_to() {
    let scene = Scene::new();
    let words = ["export", "last", "-o", "OUT"];
    let plain = scene.run(&["export", "last"], "none").stdout;
    for out in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        let ran = scene.run(&words, out);
        assert_eq!(ran.code, Some(0), "{out}: {}", ran.stderr);
        assert_eq!(ran.stdout, plain, "{out}");
    }
    let ran = scene.run(&words, "/dev/null");
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), ""),
        "{}",
        ran.stderr
    );
    // Like `>(program)` of a shell.
    let mut command = std::process::Command::new("bash");
    let line = scene.words(&words, "/dev/fd/7").join(" ");
    let line = format!("{} {line} 7> >(cat); wait", env!("CARGO_BIN_EXE_assay"));
    let env = [
        ("ASSAY_STORE", scene.home.dir.path().join("store.db")),
        ("ASSAY_STATE", scene.home.state()),
    ];
    command.arg("-c").arg(line).envs(env);
    assert_eq!(ended(command).stdout, plain);
    // A descriptor that was not passed to it may be its own database.
    for number in 3..12 {
        let ran = scene.run(&words, &format!("/dev/fd/{number}"));
        assert_eq!(ran.code, Some(2), "{number}");
    }
    assert_eq!(scene.run(&["export", "last"], "none").stdout, plain);
}

#[test]
fn attack_what_stands_at_the_place_is_refused() {
    let scene = Scene::new();
    let path = |name: &str| scene.path(name);
    fs::write(path("victim"), "precious").unwrap();
    symlink(path("victim"), path("link")).unwrap();
    symlink(path("nowhere"), path("dangling")).unwrap();
    symlink(path("data"), path("folder")).unwrap();
    fs::create_dir(path("directory")).unwrap();
    let fifo = path("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let (mut tried, mut held) = (0, 0);
    for words in Scene::verbs() {
        for out in [
            "link",
            "dangling",
            "folder",
            "directory",
            "fifo",
            "missing/out",
        ] {
            let ran = scene.run(words, out);
            assert_eq!(ran.code, Some(2), "{words:?} {out}: {}", ran.stdout);
            tried += 1;
            let untouched = read(&path("victim")) == "precious" && !path("nowhere").exists();
            held += u64::from(untouched && path("link").is_symlink());
        }
        fs::hard_link(path("victim"), path("name")).unwrap();
        let ran = scene.run(words, "name");
        assert!(matches!(ran.code, Some(0 | 1)), "{words:?}: {}", ran.stderr);
        tried += 1;
        held += u64::from(read(&path("victim")) == "precious");
        fs::remove_file(path("name")).unwrap();
    }
    attacked(
        "links, pipes and directories where verbs write",
        tried,
        held,
    );
}

#[test]
fn attack_links_of_the_owner_of_a_directory_are_not_followed() {
    if !common::root() {
        return;
    }
    let scene = Scene::new();
    let path = |name: &str| scene.path(name);
    fs::create_dir(path("roots")).unwrap();
    fs::create_dir(path("theirs")).unwrap();
    fs::write(path("roots/out"), "precious").unwrap();
    for (at, name) in [("way", "roots"), ("out", "roots/out")] {
        let link = path("theirs").join(at);
        symlink(path(name), &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(OTHER), Some(OTHER)).unwrap();
    }
    chown(path("theirs"), Some(OTHER), Some(OTHER)).unwrap();
    let (mut tried, mut held) = (0, 0);
    let folders: [&[&str]; 4] = [
        &["export", "--format", "parquet", "-o", "OUT"],
        &["facts", "--capture", "OUT", "cpu"],
        &["dups", "--index", "INDEX", "export", "OUT"],
        &["watch", "install", "--dir", "OUT"],
    ];
    for words in Scene::verbs().chain(folders) {
        for out in ["theirs/way/out", "theirs/out", "theirs/way/../roots/new"] {
            let ran = scene.run(words, out);
            tried += 1;
            let refused = matches!(ran.code, Some(2 | 3));
            let kept = read(&path("roots/out")) == "precious";
            assert!(refused, "{words:?} {out}: {}{}", ran.stdout, ran.stderr);
            held += u64::from(kept && entries(&path("roots")) == ["out"]);
        }
    }
    attacked(
        "links of others on the way to what verbs write",
        tried,
        held,
    );
}

#[test]
fn attack_a_directory_that_others_fill_is_no_place_for_many_files() {
    if !common::root() {
        return;
    }
    let scene = Scene::new();
    fs::create_dir(scene.path("theirs")).unwrap();
    chown(scene.path("theirs"), Some(OTHER), Some(OTHER)).unwrap();
    let open = scene.path("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let folders: [&[&str]; 2] = [
        &["facts", "--capture", "OUT", "cpu"],
        &["dups", "--index", "INDEX", "export", "OUT"],
    ];
    let (mut tried, mut held) = (0, 0);
    for words in folders {
        for out in ["theirs", "open"] {
            let ran = scene.run(words, out);
            tried += 1;
            held += u64::from(ran.code == Some(2) && entries(&scene.path(out)).is_empty());
        }
        // A new file in it is readable for this user only.
        let ran = scene.run(words, "theirs/new");
        assert_eq!(ran.code, Some(0), "{words:?}: {}", ran.stderr);
        fs::remove_dir_all(scene.path("theirs/new")).unwrap();
    }
    attacked("directories that others may fill", tried, held);
}

#[test]
fn attack_an_output_never_replaces_what_is_read() {
    let scene = Scene::new();
    let text = |path: PathBuf| path.to_str().unwrap().to_owned();
    let store = text(scene.home.dir.path().join("store.db"));
    let before = fs::read(&store).unwrap();
    fs::write(
        scene.path("used.txt"),
        "2026-01-01 100\n2026-02-01 200\n2026-03-01 300\n",
    )
    .unwrap();
    let used = text(scene.path("used.txt"));
    let option = format!("--html={used}");
    let attempts: [&[&str]; 5] = [
        &["report", "last", "--html", &store],
        &["export", "last", "-o", &store],
        &[
            "plan",
            "capacity",
            "--history",
            &used,
            "--size",
            "8TiB",
            "--html",
            &used,
        ],
        &[
            "plan",
            "capacity",
            "--history",
            &used,
            "--size",
            "8TiB",
            &option,
        ],
        &["report", "last", "--store", &store, "--html", &store],
    ];
    let mut held = 0;
    for words in attempts {
        let ran = scene.home.assay(words);
        assert_eq!(ran.code, Some(2), "{words:?}: {}", ran.stdout);
        held += u64::from(
            fs::read(&store).unwrap() == before && read(Path::new(&used)).ends_with("300\n"),
        );
    }
    attacked("outputs that are inputs", attempts.len() as u64, held);
}

#[test]
fn attack_a_full_disk_keeps_the_old_report() {
    if !common::root() {
        return;
    }
    let scene = Scene::new();
    let full = scene.path("full");
    fs::create_dir(&full).unwrap();
    let mount = |words: &[&str]| {
        let mut command = std::process::Command::new(words[0]);
        let ended = command
            .args(&words[1..])
            .arg(&full)
            .stderr(Stdio::null())
            .status();
        ended.is_ok_and(|status| status.success())
    };
    if !mount(&["mount", "-t", "tmpfs", "-o", "size=8k", "none"]) {
        assay_testing::skipped("mount", "nothing can be mounted here");
        return;
    }
    fs::write(full.join("out"), "old").unwrap();
    let (mut tried, mut held) = (0, 0);
    for words in Scene::verbs().filter(|words| words.contains(&"--html")) {
        let ran = scene.run(words, "full/out");
        tried += 1;
        let kept = read(&full.join("out")) == "old" && entries(&full) == ["out"];
        held += u64::from(ran.code == Some(2) && kept);
    }
    assert!(mount(&["umount"]));
    attacked("reports on a full disk", tried, held);
}
