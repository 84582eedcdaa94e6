//! Trials of a device, a mount, nginx, Dovecot and sshd.

use super::common::{Home, entries, ran};
use super::{SHORT, args, json, skip, text};
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// An ext4 of 160 MiB on a loop device, unmounted on drop.
struct Loop {
    dir: tempfile::TempDir,
}

impl Loop {
    fn new() -> Self {
        let one = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        let image = one.dir.path().join("image");
        fs::File::create(&image)
            .unwrap()
            .set_len(160 << 20)
            .unwrap();
        fs::create_dir(one.mountpoint()).unwrap();
        one.tool(&["mkfs.ext4", "-q", text(&image)]);
        one.tool(&[
            "mount",
            "-o",
            "loop,relatime",
            text(&image),
            text(&one.mountpoint()),
        ]);
        one
    }
    fn mountpoint(&self) -> PathBuf {
        self.dir.path().join("mnt")
    }
    fn tool(&self, argv: &[&str]) {
        let done = Command::new(argv[0]).args(&argv[1..]).status().unwrap();
        assert!(done.success(), "{argv:?}");
    }
    /// Returns device and options from /proc/self/mounts.
    fn mount(&self) -> (String, String) {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let at = self.mountpoint();
        let mut fields = mounts
            .lines()
            .find(|line| line.contains(text(&at)))
            .unwrap()
            .split(' ');
        let device = fields
            .next()
            .unwrap()
            .trim_start_matches("/dev/")
            .to_owned();
        (device, fields.nth(2).unwrap().to_owned())
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.mountpoint()).status();
    }
}

#[test]
fn settings_of_a_device_and_a_mount_are_toggled_and_come_back() {
    if skip(&["fio", "mkfs.ext4", "losetup"], true) {
        return;
    }
    let (home, disk) = (Home::new(), Loop::new());
    let at = disk.mountpoint();
    let (device, options) = disk.mount();
    let attribute = format!("/sys/block/{device}/queue/read_ahead_kb");
    fs::write(&attribute, "128").unwrap();
    for advice in ["read-ahead", "noatime"] {
        let words = [
            "trial",
            advice,
            text(&at),
            "--pairs",
            "2",
            "--yes",
            "--json",
        ];
        let ran = home.assay(&args(&words, &SHORT));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let pairs = &json(&ran)["pairs"];
        assert_eq!(pairs.as_array().map(Vec::len), Some(2), "{}", ran.stdout);
    }
    assert_eq!(fs::read_to_string(&attribute).unwrap(), "128\n");
    assert_eq!(disk.mount(), (device, options));
    assert_eq!(entries(&at), ["lost+found"]);
}

#[test]
fn nginx_is_reloaded_for_each_side_and_its_file_comes_back() {
    if skip(&["nginx"], false) {
        return;
    }
    let home = Home::new();
    let nginx = assay_testing::servers::nginx::Nginx::start("").unwrap();
    nginx.file("big.bin", 1 << 20).unwrap();
    let (config, url) = (nginx.config(), nginx.url("/big.bin"));
    let before = fs::read(&config).unwrap();
    let set = [
        format!("config={}", text(&config)),
        format!("validate={}", nginx.validate().join(" ")),
        format!("reload={}", nginx.reload().join(" ")),
    ];
    let mut words = args(
        &[
            "trial",
            "nginx-sendfile",
            &url,
            "--yes",
            "--json",
            "--set",
            "sendfile=off",
            "--pairs",
            "3",
        ],
        &SHORT,
    );
    for set in &set {
        words.extend(["--set".into(), set.into()]);
    }
    let ran = home.assay(&words);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(
        json(&ran)["pairs"].as_array().map(Vec::len),
        Some(3),
        "{}",
        ran.stdout
    );
    assert_eq!(fs::read(&config).unwrap(), before);
}

#[test]
fn pam_before_sql_costs_every_login() {
    if skip(&["dovecot", "doveconf", "doveadm"], true) {
        return;
    }
    let home = Home::new();
    let dovecot = assay_testing::servers::dovecot::Dovecot::start().unwrap();
    let before = fs::read(dovecot.config()).unwrap();
    let (config, password) = (dovecot.config(), dovecot.password_file());
    let sets = [
        format!("config={}", text(&config)),
        format!("user={}", assay_testing::servers::dovecot::USER),
        format!("password_file={}", text(&password)),
        format!("validate={}", dovecot.validate().join(" ")),
        format!("reload={}", dovecot.reload().join(" ")),
        "key=passdb[driver=pam]".to_owned(),
    ];
    let address = dovecot.address();
    let mut words = args(
        &["trial", "dovecot-pam-order", &address, "--yes", "--json"],
        &SHORT,
    );
    for set in &sets {
        words.extend(["--set".into(), set.into()]);
    }
    let ran = home.assay(&words);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(json(&ran)["verdict"], "better", "{}", ran.stdout);
    assert_eq!(fs::read(dovecot.config()).unwrap(), before);
    assert!(
        !ran.stdout.contains("c\\\\ake"),
        "the password is in no report"
    );
}

#[test]
fn a_slow_resolver_is_seen_in_the_time_of_a_login() {
    if skip(&["sshd", "ssh", "ssh-keygen", "ip"], true) {
        return;
    }
    let home = Home::new();
    let dns =
        assay_testing::servers::dns::SlowDns::start(Some(Duration::from_millis(300))).unwrap();
    let sshd = assay_testing::servers::sshd::Sshd::start(dns).unwrap();
    let config = sshd.config();
    let key = config.with_file_name("id");
    let words = [
        "trial".to_owned(),
        "ssh-usedns".to_owned(),
        assay_testing::servers::dns::ADDRESS.to_string(),
        "--set".to_owned(),
        format!("config={}", text(&config)),
        "--set".to_owned(),
        format!("keyfile={}", text(&key)),
        "--json".to_owned(),
    ];
    let command = home.command(&args(&[], &SHORT));
    let mut inside: Vec<OsString> = vec![command.get_program().to_owned()];
    inside.extend(words.iter().map(OsString::from));
    inside.extend(SHORT.map(OsString::from));
    let argv = sshd.dns.inside(&inside);
    let mut entered = Command::new(&argv[0]);
    entered.args(&argv[1..]);
    for (name, value) in command.get_envs() {
        entered.env(name, value.unwrap_or_default());
    }
    let ran = ran(entered.output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(json(&ran)["verdict"], "better", "{}", ran.stdout);
}
