//! Planted login delays: the cause of each wait is known, and assay names exactly this cause. The delays are several
//! seconds, so that a busy machine does not matter.

use crate::common::Home;
use crate::{ADDRESS, json, skipped, ssh, ssh_as};
use assay_testing::servers::dns::SlowDns;
use assay_testing::servers::dovecot::{Dovecot, USER};
use assay_testing::servers::nginx::Nginx;
use assay_testing::servers::postfix::Postfix;
use assay_testing::servers::sshd::Sshd;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

pub const NEEDS: [&str; 7] = [
    "sshd",
    "ssh",
    "ssh-keygen",
    "unshare",
    "nsenter",
    "ip",
    "bash",
];
/// Causes that a busy machine adds.
const OF_LOAD: [&str; 5] = [
    "busy-machine",
    "client-cpu",
    "server-cpu",
    "key-exchange",
    "disk-wait",
];
const PLAIN: &str = "UsePAM no\nUseDNS no";
const WITH_PAM: &str = "UsePAM yes\nUseDNS no";
const PAM: &str = "account required pam_permit.so\nsession required pam_permit.so\n";

/// Checks that a login waits for this cause only.
fn assert_waits_for(sshd: &Sshd, options: &[&str], id: &str) {
    let value = measured(sshd, options);
    assert_eq!(ids(&value), [id], "{value}");
}

/// Returns the sorted ids of the causes without duplicates and without those of a busy machine.
pub fn ids(value: &Value) -> Vec<&str> {
    let causes = value["causes"].as_array().unwrap().iter();
    let ids = causes.map(|cause| cause["id"].as_str().unwrap_or_else(|| panic!("{value}")));
    let mut ids: Vec<&str> = ids.filter(|id| !OF_LOAD.contains(id)).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Starts an sshd in a namespace with fast name resolution.
pub fn planted(settings: &str, pam: Option<&str>) -> Sshd {
    let dns = SlowDns::start(Some(Duration::ZERO)).unwrap();
    dns.set_shell("/bin/bash").unwrap();
    Sshd::configured(dns, settings, pam).unwrap()
}

pub fn script(path: &Path, text: &str) {
    std::fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs a shell script in the namespace.
pub fn inside(sshd: &Sshd, text: &str) -> String {
    let argv = sshd.dns.inside(&["sh", "-c", text]);
    let out = Command::new(&argv[0]).args(&argv[1..]).output().unwrap();
    assert!(
        out.status.success(),
        "{text}: {}",
        String::from_utf8_lossy(&out.stderr)
    );
    format!(
        "{}{}",
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    )
}

/// Measures one login for a command.
pub fn measured(sshd: &Sshd, options: &[&str]) -> Value {
    let home = Home::new();
    let more = ["--rounds", "1", "--command-only", "--json"];
    let out = ssh_as(&home, sshd, &format!("root@{ADDRESS}"), options, &more);
    assert_eq!(out.code, Some(0), "{}{}", out.stdout, out.stderr);
    json(&out)
}

fn cause<'a>(value: &'a Value, id: &str) -> &'a Value {
    let mut causes = value["causes"].as_array().unwrap().iter();
    causes
        .find(|cause| cause["id"] == id)
        .unwrap_or_else(|| panic!("{id}: {value}"))
}

#[test]
fn a_healthy_login_is_healthy() {
    if skipped(&NEEDS) {
        return;
    }
    let sshd = planted(WITH_PAM, Some(PAM));
    let home = Home::new();
    let out = ssh(&home, &sshd, &["--rounds", "3", "--json"]);
    let value = json(&out);
    assert_eq!((out.code, ids(&value)), (Some(0), vec![]), "{value}");
    assert_eq!(value["failure"], Value::Null, "{value}");
    // On an idle machine it is one line.
    if value["healthy"] == true {
        assert_eq!(
            (value["waits"].clone(), value["unexplained"].clone()),
            (Value::Null, serde_json::json!([]))
        );
    }
}

#[test]
fn a_hook_of_pam_is_named_with_its_line() {
    if skipped(&NEEDS) {
        return;
    }
    let sshd = planted(
        WITH_PAM,
        Some(&format!(
            "{PAM}session optional pam_exec.so seteuid {{dir}}/hook\n"
        )),
    );
    script(&sshd.dir().join("hook"), "sleep 2");
    let value = measured(&sshd, &[]);
    assert_eq!(ids(&value), ["pam-exec"], "{value}");
    let cause = cause(&value, "pam-exec");
    assert!(
        cause["seen"]
            .as_str()
            .unwrap()
            .contains("/etc/pam.d/sshd:3"),
        "{value}"
    );
    assert_eq!(cause["parts"][0]["kind"], "session", "{value}");
}

#[test]
fn only_the_line_of_pam_motd_that_runs_programs_is_named_and_its_remedy_times_them() {
    if skipped(&NEEDS) {
        return;
    }
    let motd = "session optional pam_motd.so noupdate\nsession optional pam_motd.so motd=/run/motd.dynamic\n";
    let sshd = planted(WITH_PAM, Some(&format!("{PAM}{motd}")));
    let programs = sshd.dir().join("motd");
    std::fs::create_dir(&programs).unwrap();
    script(&programs.join("10-quick"), "echo quick");
    script(&programs.join("50-slow"), "sleep 2");
    sshd.dns.replace("/etc/update-motd.d", &programs).unwrap();
    let value = measured(&sshd, &[]);
    assert_eq!(ids(&value), ["pam-motd"], "{value}");
    let cause = cause(&value, "pam-motd");
    assert!(
        cause["what"]
            .as_str()
            .unwrap()
            .contains("/etc/update-motd.d/50-slow"),
        "{value}"
    );
    assert!(
        cause["seen"]
            .as_str()
            .unwrap()
            .contains("/etc/pam.d/sshd:4"),
        "{value}"
    );
    let remedy = cause["then"].as_str().unwrap();
    let command = remedy.split('`').nth(1).unwrap();
    let said = inside(&sshd, command);
    let real: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("real"))
        .collect();
    assert_eq!(real.len(), 2, "{command}: {said}");
    assert!(
        real[1].contains("0m2") && said.contains("50-slow"),
        "{said}"
    );
}

#[test]
fn files_that_sshd_runs_are_told_apart() {
    if skipped(&NEEDS) {
        return;
    }
    let sshd = planted(PLAIN, None);
    let home = sshd.dns.home();
    std::fs::create_dir_all(home.join(".ssh")).unwrap();
    std::fs::write(home.join(".ssh/rc"), "sleep 2\n").unwrap();
    assert_waits_for(&sshd, &[], "ssh-rc");
    std::fs::remove_file(home.join(".ssh/rc")).unwrap();
    let etc = sshd.dir().join("etc-ssh");
    std::fs::create_dir(&etc).unwrap();
    std::fs::write(etc.join("sshrc"), "sleep 2\n").unwrap();
    sshd.dns.replace("/etc/ssh", &etc).unwrap();
    assert_waits_for(&sshd, &[], "sshrc");
}

#[test]
fn a_command_that_the_server_forces_is_named() {
    if skipped(&NEEDS) {
        return;
    }
    let forced = "ForceCommand sleep 2; eval \"$SSH_ORIGINAL_COMMAND\"";
    let sshd = planted(&format!("{PLAIN}\n{forced}"), None);
    assert_waits_for(&sshd, &[], "force-command");
    // A login with other output is a login too.
    let sshd = planted(&format!("{PLAIN}\nForceCommand sleep 2; echo menu"), None);
    assert_waits_for(&sshd, &[], "force-command");
    // The key has a forced command.
    let sshd = planted(PLAIN, None);
    let keys = sshd.dir().join("id.pub");
    let key = std::fs::read_to_string(&keys).unwrap();
    std::fs::write(
        &keys,
        format!("command=\"sleep 2; eval $SSH_ORIGINAL_COMMAND\" {key}"),
    )
    .unwrap();
    assert_waits_for(&sshd, &[], "force-command");
}

#[test]
fn a_program_that_finds_keys_is_named() {
    if skipped(&NEEDS) {
        return;
    }
    let sshd = planted(
        &format!(
            "{PLAIN}\nAuthorizedKeysCommand /run/sshd/keys %u\nAuthorizedKeysCommandUser root\nAuthorizedKeysFile none"
        ),
        None,
    );
    let key = sshd.dir().join("id.pub").display().to_string();
    let make = format!(
        "chmod 755 /run; printf '#!/bin/sh\\nsleep 2\\ncat {key}\\n' > /run/sshd/keys; chmod 755 /run/sshd/keys"
    );
    inside(&sshd, &make);
    assert_waits_for(&sshd, &[], "authorized-keys-command");
}

#[test]
fn what_the_client_itself_starts_is_named() {
    if skipped(&NEEDS) {
        return;
    }
    let sshd = planted(PLAIN, None);
    let program = sshd.dir().join("program");
    script(&program, "sleep 2");
    let option = format!("KnownHostsCommand={} %H", program.display());
    assert_waits_for(&sshd, &[&option], "known-hosts-command");
    if assay_testing::servers::find("busybox").is_none() {
        assay_testing::skipped("busybox", "busybox is missing");
        return;
    }
    script(&program, "sleep 2\nexec busybox nc \"$1\" \"$2\"");
    let option = format!("ProxyCommand={} %h %p", program.display());
    assert_waits_for(&sshd, &[&option], "proxy-command");
}

#[test]
fn an_agent_that_is_slow_is_named() {
    use std::io::Read as _;
    if skipped(&NEEDS) || skipped(&["ss"]) {
        return;
    }
    let sshd = planted(PLAIN, None);
    let socket = sshd.dir().join("agent");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    // It does not respond: after two seconds it closes, and ssh continues with its file.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut stream = stream;
                let _ = stream.read(&mut [0; 64]);
                std::thread::sleep(Duration::from_secs(2));
            });
        }
    });
    let option = format!("IdentityAgent={}", socket.display());
    assert_waits_for(&sshd, &[&option], "agent");
}

#[test]
fn an_address_that_does_not_answer_is_named() {
    if skipped(&NEEDS) {
        return;
    }
    let sshd = planted(PLAIN, None);
    if let Err(error) = sshd.dns.add_dead_address("host.invalid") {
        assay_testing::skipped("IPv6", format_args!("no IPv6 here: {error}"));
        return;
    }
    let home = Home::new();
    let more = ["--rounds", "1", "--command-only", "--json"];
    let out = ssh_as(
        &home,
        &sshd,
        "root@host.invalid",
        &["ConnectTimeout=2"],
        &more,
    );
    let value = json(&out);
    assert_eq!(
        (out.code, ids(&value)),
        (Some(0), vec!["address-unanswered"]),
        "{value}"
    );
}

#[test]
fn each_of_several_causes_is_named() {
    if skipped(&NEEDS) {
        return;
    }
    let sshd = planted(
        WITH_PAM,
        Some(&format!("{PAM}session optional pam_exec.so {{dir}}/hook\n")),
    );
    script(&sshd.dir().join("hook"), "sleep 1.5");
    let home = sshd.dns.home();
    std::fs::create_dir_all(home.join(".ssh")).unwrap();
    std::fs::write(home.join(".ssh/rc"), "sleep 1.5\n").unwrap();
    std::fs::write(
        home.join(".bashrc"),
        "case $- in *i*) ;; *) sleep 0; esac\n\nsleep 1.5\n",
    )
    .unwrap();
    let value = measured(&sshd, &[]);
    assert_eq!(
        ids(&value),
        ["pam-exec", "ssh-rc", "start-up-line"],
        "{value}"
    );
    let line = cause(&value, "start-up-line");
    assert!(
        line["what"].as_str().unwrap().contains(".bashrc:3"),
        "{value}"
    );
}

#[test]
fn a_file_without_a_test_for_a_terminal_counts_by_its_lines() {
    if skipped(&NEEDS) {
        return;
    }
    let sshd = planted(PLAIN, None);
    let home = sshd.dns.home();
    std::fs::write(
        home.join(".bashrc"),
        "TOKEN=hunter2\nsleep 1.6\nsleep 0.9\n",
    )
    .unwrap();
    std::fs::write(home.join(".profile"), ". ~/.bashrc\n").unwrap();
    let own = Home::new();
    let out = ssh(&own, &sshd, &["--rounds", "1", "--json"]);
    let value = json(&out);
    assert_eq!(ids(&value), ["start-up-line"], "{value}");
    let lines: Vec<&str> = value["causes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|cause| cause["id"] == "start-up-line")
        .map(|cause| cause["what"].as_str().unwrap())
        .collect();
    assert!(
        lines[0].contains(".bashrc:2") && lines[1].contains(".bashrc:3"),
        "{value}"
    );
    assert!(!out.stdout.contains("hunter2"));
}

#[test]
fn another_shell_is_seen_by_its_processes() {
    if skipped(&NEEDS) {
        return;
    }
    let sshd = planted(PLAIN, None);
    // An unknown shell: it reads its own file.
    let shell = sshd.dir().join("fish");
    script(&shell, "sleep 2\nexec /bin/sh \"$@\"");
    sshd.dns.set_shell(&shell.display().to_string()).unwrap();
    assert_waits_for(&sshd, &[], "shell-start-up");
}

#[test]
fn a_server_behind_a_proxy_is_not_taken_for_one_of_this_machine() {
    if skipped(&NEEDS) || skipped(&["busybox"]) {
        return;
    }
    let sshd = planted(PLAIN, None);
    let relay = sshd.dir().join("relay");
    script(&relay, &format!("sleep 2\nexec busybox nc {ADDRESS} 22"));
    let option = format!("ProxyCommand={}", relay.display());
    let home = Home::new();
    let more = ["--rounds", "1", "--command-only", "--json"];
    let out = ssh_as(&home, &sshd, "root@localhost", &[&option], &more);
    let value = json(&out);
    assert_eq!(ids(&value), ["proxy-command"], "{value}");
    assert!(!value["causes"].to_string().contains("sshd -T"), "{value}");
}

#[test]
fn mail_that_greets_late_is_told_from_mail_that_asks_pam() {
    if skipped(&["dovecot", "doveconf", "postfix", "smtp-sink"]) {
        return;
    }
    let home = Home::new();
    let login = |service: &str, address: &str, more: &[&str]| {
        let words = [
            "run", "login", service, address, "-q", "--rounds", "1", "--json",
        ];
        let out = home.assay(&[&words[..], more].concat());
        assert_eq!(out.code, Some(0), "{}{}", out.stdout, out.stderr);
        json(&out)
    };
    let dovecot = Dovecot::start().unwrap();
    let file = dovecot.password_file();
    let user = ["--user", USER, "--password-file", file.to_str().unwrap()];
    assert_eq!(
        ids(&login("imap", &dovecot.address(), &user)),
        ["dovecot-pam-order"]
    );
    let dovecot = Dovecot::without_pam().unwrap();
    let file = dovecot.password_file();
    let user = ["--user", USER, "--password-file", file.to_str().unwrap()];
    assert_eq!(
        ids(&login("imap", &dovecot.address(), &user)),
        Vec::<&str>::new()
    );
    let quick = Postfix::start().unwrap();
    assert_eq!(
        ids(&login("smtp", &quick.address(), &[])),
        Vec::<&str>::new()
    );
    let settings = "smtpd_delay_reject = no\nsmtpd_client_restrictions = sleep 3\n";
    let late = Postfix::configured(settings).unwrap();
    let value = login("smtp", &late.address(), &[]);
    assert_eq!(ids(&value), ["greeting-delayed"], "{value}");
    assert!(
        cause(&value, "greeting-delayed")["seen"]
            .as_str()
            .unwrap()
            .contains("sleep 3"),
        "{value}"
    );
}

#[test]
fn a_page_that_comes_at_once_is_healthy() {
    let home = Home::new();
    let Some(nginx) = Nginx::with_files("") else {
        return;
    };
    let out = home.assay(&["run", "login", "http", &nginx.url("/small"), "-q", "--json"]);
    let value = json(&out);
    assert_eq!((out.code, ids(&value)), (Some(0), vec![]), "{value}");
}

#[test]
fn each_module_of_pam_and_each_program_of_motd_has_its_time() {
    if skipped(&NEEDS) {
        return;
    }
    // The jump over the slow module must reach as far as in the original.
    let stack = "account [success=1 default=ignore] pam_permit.so\naccount optional pam_exec.so {dir}/slow\n\
                 account required pam_permit.so\nsession optional pam_exec.so {dir}/hook\n\
                 session required pam_permit.so\n\
                 session optional pam_motd.so motd=/run/motd.dynamic\n";
    let sshd = planted(WITH_PAM, Some(stack));
    script(&sshd.dir().join("slow"), "sleep 5");
    script(&sshd.dir().join("hook"), "sleep 2");
    let programs = sshd.dir().join("motd");
    std::fs::create_dir(&programs).unwrap();
    script(&programs.join("10-quick"), "echo quick");
    script(&programs.join("50-slow"), "sleep 1");
    sshd.dns.replace("/etc/update-motd.d", &programs).unwrap();
    let before = std::fs::read_to_string(sshd.dir().join("pam")).unwrap();
    let home = Home::new();
    let target = format!("root@{ADDRESS}");
    let more = ["--rounds", "1", "--command-only", "--json", "--each-module"];
    let refused = ssh_as(&home, &sshd, &target, &[], &more);
    assert_eq!(
        refused.code,
        Some(2),
        "nobody was asked: {}",
        refused.stdout
    );
    let out = ssh_as(
        &home,
        &sshd,
        &target,
        &[],
        &[&more[..], &["--yes"]].concat(),
    );
    assert_eq!(out.code, Some(0), "{}{}", out.stdout, out.stderr);
    let value = json(&out);
    let times = &value["each_module"];
    let modules = times["modules"].as_array().unwrap();
    let seconds = |one: &Value| one["took"].as_u64().unwrap() as f64 / 1e9;
    let slow: Vec<&Value> = modules.iter().filter(|one| seconds(one) >= 1.9).collect();
    let places: Vec<&str> = slow
        .iter()
        .map(|one| one["place"].as_str().unwrap())
        .collect();
    assert!(places.contains(&"/etc/pam.d/sshd:4"), "{value}");
    let hook = slow
        .iter()
        .find(|one| one["place"] == "/etc/pam.d/sshd:4")
        .unwrap();
    assert_eq!(
        (&hook["module"], &hook["kind"]),
        (&"pam_exec".into(), &"session".into())
    );
    let is_there = |place: &str| modules.iter().any(|one| one["place"] == place);
    assert!(
        !is_there("/etc/pam.d/sshd:2") && is_there("/etc/pam.d/sshd:3"),
        "{value}"
    );
    let motd = times["motd"].as_array().unwrap();
    assert_eq!(motd.len(), 2, "{value}");
    assert!(
        seconds(&motd[1]) >= 1.0 && motd[1]["program"] == "/etc/update-motd.d/50-slow",
        "{value}"
    );
    let after = std::fs::read_to_string(sshd.dir().join("pam")).unwrap();
    assert_eq!(before, after);
}
