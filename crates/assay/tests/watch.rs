//! Tests `assay watch`: a machine that is checked repeatedly, a setting that becomes wrong and right again, and the
//! notifications.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use common::servers::{Servers, little_root};
use common::{Home, Ran, script};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// A small machine with a well-configured sshd.
struct Watched {
    root: PathBuf,
    config: String,
    home: Home,
    _servers: Servers,
}

const GOOD: &str = "PasswordAuthentication no\nPermitRootLogin no\n";
/// A setting that violates a page, on a separate line.
const BAD: &str = "PasswordAuthentication no\nPermitRootLogin no\nUseDNS yes\n";

impl Watched {
    fn new() -> Option<Self> {
        let mut servers = Servers::new()?;
        let files = [
            ("etc/os-release", "ID=debian\nVERSION_ID=\"12\"\n"),
            ("etc/ssh/sshd_config", GOOD),
        ];
        let root = little_root(&servers, "root", &files)?;
        let inside = format!(
            "ForceCommand exec chroot {} /bin/busybox sh",
            root.display()
        );
        servers.machine("box", &inside);
        Some(Self {
            root,
            config: servers.config(),
            home: Home::new(),
            _servers: servers,
        })
    }

    fn sshd(&self, text: &str) {
        std::fs::write(self.root.join("etc/ssh/sshd_config"), text).unwrap();
    }

    fn command(&self, name: &str, more: &[&str]) -> Command {
        let mut args = vec![
            "watch",
            "now",
            name,
            "--quiet",
            "--at-least",
            "low",
            "--json",
        ];
        args.extend(["--ssh-config", &self.config, "--deadline", "20"]);
        args.extend(more);
        let mut command = self.home.command(&args);
        command.env("XDG_CONFIG_HOME", self.home.dir.path().join("config"));
        command
    }

    fn now(&self, more: &[&str]) -> (Ran, Value) {
        let ran = common::ended(self.command("box", more));
        let document = serde_json::from_str(&ran.stdout).unwrap_or_default();
        (ran, document)
    }
}

fn rules(document: &Value, which: &str) -> Vec<String> {
    let all = document[which]
        .as_array()
        .unwrap_or_else(|| panic!("{document:#}"));
    let rule = |alarm: &Value| alarm["rule"].as_str().unwrap_or("none").to_owned();
    all.iter().map(rule).collect()
}

#[test]
fn an_alarm_is_told_once_with_its_line_and_when_it_is_over() {
    let Some(box1) = Watched::new() else { return };
    let dir = box1.home.dir.path();
    let told = dir.join("told");
    let teller = script(dir, "teller", &format!("cat >>{}", told.display()));
    let to = ["--", teller.to_str().unwrap()];
    let (ran, first) = box1.now(&to);
    assert_eq!(ran.code, Some(0), "{first:#} {}", ran.stderr);
    assert!(!told.exists());
    box1.sshd(BAD);
    let (ran, raised) = box1.now(&to);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let rules_raised = rules(&raised, "raised");
    assert_eq!(rules_raised.len(), 1, "{raised:#}");
    assert_eq!(raised["raised"][0]["evidence"][0], "/etc/ssh/sshd_config:3");
    common::schemas::holds("watch", &ran.stdout, &["/raised/0"]);
    // The command received the same document.
    let heard: Value = serde_json::from_str(&std::fs::read_to_string(&told).unwrap()).unwrap();
    assert_eq!(heard["raised"], raised["raised"]);
    // Nothing new: no notification, and the alarm is still in effect.
    std::fs::remove_file(&told).unwrap();
    let (ran, again) = box1.now(&to);
    assert_eq!(ran.code, Some(1));
    assert!(rules(&again, "raised").is_empty() && !told.exists());
    assert_eq!(rules(&again, "standing"), rules_raised);
    assert_eq!(again["standing"][0]["since"], raised["raised"][0]["since"]);
    let list = box1.home.assay(&["watch", "list", "--json"]);
    assert_eq!(list.code, Some(1));
    box1.sshd(GOOD);
    let (ran, over) = box1.now(&to);
    assert_eq!(ran.code, Some(0), "{over:#}");
    assert_eq!(rules(&over, "over"), rules_raised);
    assert!(told.exists());
    assert_eq!(box1.home.assay(&["watch", "list"]).code, Some(0));
}

#[test]
fn a_message_that_does_not_get_out_is_told_the_next_time() {
    let Some(box1) = Watched::new() else { return };
    let dir = box1.home.dir.path();
    box1.sshd(BAD);
    let broken = script(dir, "broken", "echo 'no line' >&2; exit 1");
    let (ran, _) = box1.now(&["--", broken.to_str().unwrap()]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("no line"), "{}", ran.stderr);
    let told = dir.join("told");
    let teller = script(dir, "teller", &format!("cat >{}", told.display()));
    let (ran, document) = box1.now(&["--", teller.to_str().unwrap()]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert_eq!(rules(&document, "raised").len(), 1);
    assert!(told.exists());
}

#[test]
fn what_is_accepted_is_no_alarm() {
    let Some(box1) = Watched::new() else { return };
    box1.sshd(BAD);
    let (_, document) = box1.now(&[]);
    let rule = rules(&document, "raised").remove(0);
    let config = box1.home.dir.path().join("config/assay");
    std::fs::create_dir_all(&config).unwrap();
    let text = format!("[[accept]]\nrule = \"{rule}\"\nreason = \"a test\"\nowner = \"me\"\n");
    std::fs::write(config.join("accept.toml"), text).unwrap();
    let (ran, document) = box1.now(&[]);
    assert_eq!(ran.code, Some(0), "{document:#} {}", ran.stderr);
    assert_eq!(rules(&document, "over"), [rule]);
}

#[test]
fn a_machine_that_is_not_reached_twice_is_an_alarm() {
    let Some(box1) = Watched::new() else { return };
    let now = || common::ended(box1.command("nobody.invalid", &[]));
    let first = now();
    assert_eq!(first.code, Some(3), "{}", first.stderr);
    let second = now();
    assert_eq!(second.code, Some(1), "{}", second.stderr);
    let document: Value = serde_json::from_str(&second.stdout).unwrap();
    assert_eq!(document["raised"][0]["key"], "not-reached");
    let forgotten = box1.home.assay(&["watch", "forget", "nobody.invalid"]);
    assert_eq!(forgotten.code, Some(0), "{}", forgotten.stderr);
    assert_eq!(box1.home.assay(&["watch", "list"]).code, Some(0));
}

#[test]
fn what_is_installed_is_taken_away_and_nothing_else() {
    let home = Home::new();
    let units = home.dir.path().join("units");
    let at = units.to_str().unwrap();
    let install = |every: &str| {
        home.assay(&[
            "watch",
            "install",
            "--dir",
            at,
            "--every",
            every,
            "--mail",
            "ops@example.org",
            "web",
            "--",
            "cat",
            "50% of $HOME",
            "a \"b\"",
        ])
    };
    let ran = install("1h");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    // With other options it is replaced; both are recorded.
    assert_eq!(install("30m").code, Some(0));
    let mut names = common::entries(&units);
    names.sort();
    assert_eq!(names, ["assay-watch.service", "assay-watch.timer"]);
    let verify = Command::new("systemd-analyze")
        .arg("verify")
        .arg(units.join("assay-watch.timer"))
        .output();
    match verify {
        Ok(output) => assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        ),
        Err(_) => assay_testing::skipped("systemd", "systemd-analyze is not installed"),
    }
    // Lines of the user are not lost.
    let timer = units.join("assay-watch.timer");
    let text = std::fs::read_to_string(&timer).unwrap() + "# mine\n";
    std::fs::write(&timer, &text).unwrap();
    let ran = home.assay(&["watch", "remove"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert_eq!(common::entries(&units), ["assay-watch.timer"]);
    let ran = home.assay(&["watch", "remove", "--force"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(common::entries(&units).is_empty());
    // A unit of the user is not overwritten.
    std::fs::write(&timer, "[Timer]\n").unwrap();
    assert_eq!(install("1h").code, Some(2));
    assert_eq!(std::fs::read_to_string(&timer).unwrap(), "[Timer]\n");
    for bad in ["10s", "0"] {
        assert_eq!(install(bad).code, Some(2), "{bad}");
    }
}

#[test]
fn damaged_alarms_are_said_and_not_lost() {
    let home = Home::new();
    let dir = home.state().join("watch");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("alarms.json"), "{").unwrap();
    let ran = home.assay(&["watch", "list"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("alarms.json"));
    assert_eq!(
        std::fs::read_to_string(dir.join("alarms.json")).unwrap(),
        "{"
    );
}
