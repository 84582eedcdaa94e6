//! Names that would change the display of a terminal, from every source of names: no raw byte is printed, and JSON
//! keeps the values.
#![allow(
    clippy::disallowed_methods,
    reason = "tests drive the real program and plant files"
)]

mod common;

use common::{Home, Ran};
use std::path::PathBuf;

/// ESC, BEL, DEL, CSI as one character, bidirectional marks, overrides and isolates.
const HOSTILE: &str = "a\u{1b}[31m\u{7}\u{7f}\u{9b}31m\u{202e}\u{2066}\u{200f}\u{61c}\u{2069}z";
/// For names that must not contain ASCII control characters.
const SOFT: &str = "a\u{9b}31m\u{202e}\u{2066}\u{200f}\u{61c}\u{2069}z";

fn is_raw(c: char) -> bool {
    let marks = matches!(c, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    marks || c.is_control() && c != '\n' && c != '\t'
}

/// Checks that the output contains no raw bytes, and that JSON output is valid.
fn check(words: &[String], ran: &Ran) {
    for (stream, text) in [("stdout", &ran.stdout), ("stderr", &ran.stderr)] {
        let raw = text.chars().find(|c| is_raw(*c));
        assert!(raw.is_none(), "{words:?}: {stream} has {raw:?}: {text:?}");
    }
    if words.iter().any(|word| word == "--json" || word == "sarif")
        && ran.stdout.starts_with(['{', '['])
    {
        serde_json::from_str::<serde_json::Value>(&ran.stdout).unwrap();
    }
}

struct Scene {
    home: Home,
    dir: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        Self {
            home: Home::new(),
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn run(&self, words: &[&str]) -> Ran {
        let path = |name: &str| self.path(name).to_str().unwrap().to_owned();
        let words: Vec<String> = words
            .iter()
            .map(|word| match word.strip_prefix("DIR/") {
                Some(name) => path(name),
                None => (*word).to_owned(),
            })
            .collect();
        let ran = self.home.assay(&words);
        check(&words, &ran);
        ran
    }
}

/// Arguments of the user, for every option that accepts any.
#[test]
fn attack_arguments_are_shown_as_text() {
    let scene = Scene::new();
    let option = format!("--{HOSTILE}");
    let missing = format!("DIR/nowhere/{HOSTILE}");
    let captured = format!("DIR/captured/{HOSTILE}");
    let target = format!("DIR/{HOSTILE}");
    let url = format!("http://{SOFT}/");
    let set = format!("x={HOSTILE}");
    let store = format!("postgresql://{SOFT}@127.0.0.1:1/x");
    let (h, m, t) = (HOSTILE, missing.as_str(), target.as_str());
    let all: [&[&str]; 48] = [
        &[h],
        &[&option],
        &["run", h],
        &["run", m],
        &["run", t],
        &["run", "--plan-file", m],
        &["run", &url],
        &["run", "--resume", h],
        &["run", ".", "--rw", h],
        &["run", ".", "--host", h],
        &["show", h],
        &["compare", h, h],
        &["report", h, "--html", m],
        &["export", h, "-o", m],
        &["import", m],
        &["lint", h],
        &["lint", m],
        &["facts", m],
        &["facts", "--root", m],
        &["facts", "--host", h],
        &["facts", "--capture", &captured, "cpu"],
        &["check", "--root", m],
        &["check", "--explain", h],
        &["check", "wifi", m],
        &["advice", h],
        &["advice", "--advice-dir", m],
        &["trial", h],
        &["trial", "noatime", m],
        &["trial", "noatime", ".", "--set", &set],
        &["trial", "--show", h],
        &["stack", m],
        &["stack", m, "--json"],
        &["study", h],
        &["study", "--resume", h],
        &["web", &url],
        &["web", h],
        &["probe", h],
        &["pins", h],
        &["pins", m],
        &["plan", "layout", h],
        &["plan", "clones", "--from", m],
        &["pool", "add", m],
        &["pool", "forget", h],
        &["fleet", "check", h],
        &["watch", "forget", h],
        &["lab", "stop", h],
        &["dups", "scan", m],
        &["runs", "--store", &store],
    ];
    for words in &all {
        let ran = scene.run(words);
        assert!(ran.code.is_some(), "{words:?}");
    }
    assay_testing::attacked("hostile arguments", all.len() as u64, all.len() as u64);
}

/// A newline in a name cannot forge a message of assay.
#[test]
fn attack_newlines_in_errors_forge_no_line() {
    let scene = Scene::new();
    let forged = "x\nremoved everything\nassay: done";
    let missing = format!("DIR/{forged}");
    let (f, m) = (forged, missing.as_str());
    let all: [&[&str]; 10] = [
        &["run", f],
        &["show", f],
        &["facts", "--root", m],
        &["check", "--root", m],
        &["stack", m],
        &["import", m],
        &["lint", m],
        &["advice", f],
        &["trial", f],
        &["pins", m],
    ];
    for words in &all {
        let ran = scene.run(words);
        let forged = |line: &str| line.starts_with("removed") || line == "assay: done";
        assert!(!ran.stderr.lines().any(forged), "{words:?}: {}", ran.stderr);
    }
    assay_testing::attacked("newlines in errors", all.len() as u64, all.len() as u64);
}

/// Names of files and directories.
#[test]
fn attack_names_of_files_are_shown_as_text() {
    let scene = Scene::new();
    let dir = scene.path(HOSTILE);
    std::fs::create_dir(&dir).unwrap();
    for name in ["one", HOSTILE] {
        std::fs::write(dir.join(name), "the same content").unwrap();
    }
    std::fs::write(
        scene.path("plan.toml"),
        format!("name = \"{SOFT}\"\nwrong = 1\n"),
    )
    .unwrap();
    std::fs::write(scene.path("list.json"), format!("{{\"{SOFT}\": 1}}")).unwrap();
    let page = format!("+++\ntitle = \"{SOFT}\"\nid = \"{SOFT}\"\n+++\n{SOFT}");
    std::fs::write(dir.join("page.md"), page).unwrap();
    let target = format!("DIR/{HOSTILE}");
    let index = format!("DIR/{HOSTILE}/index.db");
    let (t, i) = (target.as_str(), index.as_str());
    let all: [&[&str]; 20] = [
        &["stack", t],
        &["stack", t, "--json"],
        &["stack", t, "--markdown"],
        &["facts", "--json", t],
        &["facts", t],
        &["dups", "--index", i, "scan", t],
        &["dups", "--index", i, "--json", "report"],
        &["dups", "--index", i, "report"],
        &["dups", "--index", i, "ls", t],
        &["dups", "--index", i, "dirs"],
        &["dups", "--index", i, "--json", "act", "--hardlink", t],
        &["dups", "--index", i, "act", "--hardlink", t],
        &["run", "--plan-file", "DIR/plan.toml", t],
        &["import", "DIR/list.json"],
        &["advice", "--advice-dir", t],
        &["trial", "noatime", t, "--dry-run"],
        &["run", "quick", t, "--print-plan"],
        &["check", "--root", t],
        &["check", "--root", t, "--json"],
        &["facts", "--root", t, "--json"],
    ];
    for words in &all {
        scene.run(words);
    }
    assay_testing::attacked("hostile names of files", all.len() as u64, all.len() as u64);
}

/// Text of another machine in a tree of its files: host name, users, options, comments of keys.
#[test]
fn attack_what_a_machine_says_is_shown_as_text() {
    let scene = Scene::new();
    let put = |path: &str, text: String| {
        let path = scene.path("root").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put("etc/hostname", format!("{SOFT}\n"));
    put("proc/sys/kernel/hostname", format!("{SOFT}\n"));
    put(
        "etc/os-release",
        format!("PRETTY_NAME=\"{SOFT}\"\nID={SOFT}\n"),
    );
    put(
        "etc/ssh/sshd_config",
        format!(
            "PermitRootLogin yes\nPasswordAuthentication {SOFT}\nMatch User {SOFT}\n  X11Forwarding yes\n{SOFT} yes\n"
        ),
    );
    put(
        &format!("etc/ssh/sshd_config.d/{SOFT}.conf"),
        "PermitEmptyPasswords yes\n".to_owned(),
    );
    put(
        "etc/nginx/nginx.conf",
        format!("http {{ server {{ server_name {SOFT}; ssl_protocols SSLv3; {SOFT} on; }} }}\n"),
    );
    put(
        "etc/samba/smb.conf",
        format!("[{SOFT}]\npath = /{SOFT}\nguest ok = yes\nserver min protocol = NT1\n"),
    );
    put(
        "etc/sysctl.d/99.conf",
        format!("net.ipv4.ip_forward = {SOFT}\n{SOFT} = 1\n"),
    );
    put(
        "etc/fstab",
        format!("/dev/{SOFT} /mnt/{SOFT} ext4 {SOFT} 0 0\n"),
    );
    put("proc/mounts", format!("/dev/{SOFT} / ext4 rw,{SOFT} 0 0\n"));
    put(
        "proc/mdstat",
        format!("Personalities : [raid1]\n{SOFT} : active raid1 sdb1[1](F) sda1[0]\n"),
    );
    put("etc/wpa.conf", format!("network={{\nssid=\"{SOFT}\"\n}}\n"));
    let wifi = format!(
        "interface=wlan0\nssid={SOFT}\nwpa=1\nwpa_key_mgmt=WPA-PSK\nwpa_pairwise=TKIP\nchannel=1\nhw_mode=g\n"
    );
    std::fs::write(scene.path("hostapd.conf"), wifi).unwrap();
    let all: [&[&str]; 11] = [
        &["check", "--root", "DIR/root"],
        &["check", "--root", "DIR/root", "--json"],
        &["check", "--root", "DIR/root", "--format", "sarif"],
        &["check", "--root", "DIR/root", "--format", "junit"],
        &["check", "--root", "DIR/root", "--format", "markdown"],
        &["check", "--root", "DIR/root", "--format", "html"],
        &["facts", "--root", "DIR/root"],
        &["facts", "--root", "DIR/root", "--services", "--json"],
        &["check", "wifi", "DIR/hostapd.conf"],
        &["check", "wifi", "DIR/hostapd.conf", "--json"],
        &["stack", "--root", "DIR/root", "/"],
    ];
    for words in &all {
        scene.run(words);
    }
    // JSON contains the same value.
    let facts = scene.run(&["facts", "--root", "DIR/root", "--services", "--json"]);
    let read: serde_json::Value = serde_json::from_str(&facts.stdout).unwrap();
    assert!(facts.stdout.contains("\\u202e"), "{}", facts.stdout);
    assert!(read.to_string().contains('\u{202e}'));
    assay_testing::attacked("hostile machines", all.len() as u64, all.len() as u64);
}
