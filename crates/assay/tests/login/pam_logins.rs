//! Logins that wait in PAM, and logins that PAM, the account or sshd refuses. Module `uncommon_logins` runs them.

use crate::causes::{inside, measured, planted, script};
use crate::common::Home;
use crate::uncommon_logins::{PLAIN, Planted, assert_place};
use crate::{ADDRESS, json, ssh_as};
use assay_host::process::{Dies, Running};
use assay_testing::servers::dns::SlowDns;
use assay_testing::servers::sshd::Sshd;
use serde_json::Value;
use std::time::Duration;

const WITH_PAM: &str = "UsePAM yes\nUseDNS no";
const PAM: &str = "account required pam_permit.so\nsession required pam_permit.so\n";

/// sshd with a hook of PAM. `{dir}/hook` in the line is the hook.
fn with_pam(line: &str, hook: &str) -> Sshd {
    let sshd = planted(WITH_PAM, Some(&format!("{PAM}{line}\n")));
    script(&sshd.dir().join("hook"), hook);
    sshd
}

/// Logs in as anna with a password; `line` comes first in the stack of PAM.
fn by_password(line: &str, password: &str, more: &[&str]) -> Value {
    let pam = format!("{line}\nauth required pam_unix.so\n{PAM}");
    let settings =
        format!("{WITH_PAM}\nKbdInteractiveAuthentication yes\nPasswordAuthentication yes");
    let sshd = planted(&settings, Some(&pam));
    script(&sshd.dir().join("hook"), "sleep 2");
    if line.contains("/pam_own.so") {
        compile_module(&sshd, "pam_own.so");
    }
    // `openssl passwd -6 -salt abc secret-of-anna`
    let hash = inside(&sshd, "openssl passwd -6 -salt abc secret-of-anna");
    with_user(
        &sshd,
        "anna",
        "/bin/sh",
        &format!("{}:19000:0:99999:7:::", hash.trim()),
    );
    let file = sshd.dir().join("password");
    std::fs::write(&file, format!("{password}\n")).unwrap();
    let file = file.display().to_string();
    let own = [
        "--rounds",
        "1",
        "--command-only",
        "--json",
        "--limit",
        "30s",
        "--password-file",
        &file,
    ];
    let target = format!("anna@{ADDRESS}");
    let out = ssh_as(
        &Home::new(),
        &sshd,
        &target,
        &[],
        &[&own[..], more].concat(),
    );
    assert!(!out.stdout.contains("secret-of-anna"), "{}", out.stdout);
    json(&out)
}

/// Measures a login that may fail.
fn tried(sshd: &Sshd, user: &str, options: &[&str]) -> Value {
    let more = [
        "--rounds",
        "1",
        "--command-only",
        "--json",
        "--limit",
        "20s",
    ];
    json(&ssh_as(
        &Home::new(),
        sshd,
        &format!("{user}@{ADDRESS}"),
        options,
        &more,
    ))
}

/// Adds a user with this line of `shadow`, and lets it in by the key of the rig.
fn with_user(sshd: &Sshd, name: &str, shell: &str, shadow: &str) {
    let dir = sshd.dir();
    let home = dir.join("a home");
    std::fs::create_dir(&home).unwrap();
    for (file, line) in [
        (
            "passwd",
            format!("{name}:x:7001:7001::{}:{shell}", home.display()),
        ),
        ("shadow", format!("{name}:{shadow}")),
        ("group", format!("{name}:x:7001:")),
    ] {
        let old = inside(sshd, &format!("cat /etc/{file}"));
        let new = dir.join(format!("new-{file}"));
        std::fs::write(&new, format!("{old}{line}\n")).unwrap();
        sshd.dns.replace(&format!("/etc/{file}"), &new).unwrap();
    }
    let chown = format!(
        "chown 7001:7001 '{}'; chmod 755 {}",
        home.display(),
        dir.display()
    );
    inside(sshd, &chown);
}

/// A system bus that takes connections and closes each after some seconds without an answer, and the folder that shows
/// that logind runs.
fn start_bus(sshd: &Sshd, seconds: u32) -> Running {
    inside(sshd, "mkdir -p /run/dbus /run/systemd/seats");
    let code = format!(
        "import socket, threading, time\n\
         def hold(c):\n    time.sleep({seconds})\n    c.close()\n\
         s = socket.socket(socket.AF_UNIX)\ns.bind('/run/dbus/system_bus_socket')\ns.listen(9)\n\
         while True: threading.Thread(target=hold, args=(s.accept()[0],)).start()\n"
    );
    let argv = sshd.dns.inside(&["python3", "-c", &code]);
    let mut command = std::process::Command::new(&argv[0]);
    command.args(&argv[1..]);
    let bus = Running::start(command, Dies::WithThread).unwrap();
    inside(
        sshd,
        "until [ -S /run/dbus/system_bus_socket ]; do sleep 0.1; done",
    );
    bus
}

/// Source of a module of PAM that waits in open_session: a sleep, or an answer of a service that does not come.
const SLOW_MODULE: &str = r#"
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
static void ask(int s, void *to, socklen_t length) {
    char answer;
    if (connect(s, to, length) == 0 && write(s, "?", 1) == 1) read(s, &answer, 1);
    close(s);
}
int pam_sm_open_session(void *h, int flags, int argc, const char **argv) {
    struct sockaddr_in inet = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    if (argc < 2) return 0;
    if (!strcmp(argv[0], "sleep")) sleep(atoi(argv[1]));
    if (!strcmp(argv[0], "port")) {
        inet.sin_port = htons(atoi(argv[1]));
        ask(socket(AF_INET, SOCK_STREAM, 0), &inet, sizeof inet);
    }
    if (!strcmp(argv[0], "socket")) {
        strncpy(local.sun_path, argv[1], sizeof local.sun_path - 1);
        ask(socket(AF_UNIX, SOCK_STREAM, 0), &local, sizeof local);
    }
    return 0;
}
int pam_sm_close_session(void *h, int flags, int argc, const char **argv) { return 0; }
int pam_sm_acct_mgmt(void *h, int flags, int argc, const char **argv) {
    return pam_sm_open_session(h, flags, argc, argv);
}
"#;

/// Compiles [`SLOW_MODULE`] to a module with this name, in the directory of the server.
fn compile_module(sshd: &Sshd, name: &str) {
    let source = sshd.dir().join("slow.c");
    std::fs::write(&source, SLOW_MODULE).unwrap();
    let module = sshd.dir().join(name);
    let command = format!(
        "cc -shared -fPIC -w -o {} {}",
        module.display(),
        source.display()
    );
    inside(sshd, &command);
}

/// Measures a login through a module of one's own, with this name and line. `service` is the code of Python that makes
/// a listening socket `s`; its connections close after two seconds without an answer.
fn with_module(name: &str, line: &str, service: &str, more: &[&str]) -> Value {
    let sshd = planted(WITH_PAM, Some(&format!("{PAM}{line}\n")));
    compile_module(&sshd, name);
    let _service = (!service.is_empty()).then(|| {
        let code = format!(
            "import os, socket, threading, time\n{service}\ns.listen(9)\nopen('/run/ready', 'w')\n\
             def hold(c):\n    time.sleep(2)\n    c.close()\n\
             while True: threading.Thread(target=hold, args=(s.accept()[0],)).start()\n"
        );
        let argv = sshd.dns.inside(&["python3", "-c", &code]);
        let mut command = std::process::Command::new(&argv[0]);
        command.args(&argv[1..]);
        let running = Running::start(command, Dies::WithThread).unwrap();
        inside(&sshd, "until [ -e /run/ready ]; do sleep 0.1; done");
        running
    });
    let own = [
        "--rounds",
        "1",
        "--command-only",
        "--json",
        "--limit",
        "30s",
    ];
    let target = format!("root@{ADDRESS}");
    json(&ssh_as(
        &Home::new(),
        &sshd,
        &target,
        &[],
        &[&own[..], more].concat(),
    ))
}

pub const LOGINS: &[Planted] = &[
    (
        "healthy: name `a.b-c_9`, a home with a blank, dash",
        &[],
        || {
            let sshd = planted(
                WITH_PAM,
                Some("account required pam_unix.so\nsession required pam_unix.so\n"),
            );
            with_user(&sshd, "a.b-c_9", "/bin/dash", "*:19000:0:99999:7:::");
            tried(&sshd, "a.b-c_9", &[])
        },
    ),
    (
        "healthy: ForceCommand, a key command and pam_exec that end at once",
        &[],
        || {
            let force = "ForceCommand eval \"$SSH_ORIGINAL_COMMAND\"";
            let sshd = planted(
                &format!("{WITH_PAM}\n{force}"),
                Some(&format!("{PAM}session optional pam_exec.so {{dir}}/hook\n")),
            );
            script(&sshd.dir().join("hook"), "true");
            measured(&sshd, &[])
        },
    ),
    ("pam_exec of `account` takes 2 s", &["pam-exec"], || {
        measured(
            &with_pam("account optional pam_exec.so seteuid {dir}/hook", "sleep 2"),
            &[],
        )
    }),
    (
        "pam_exec runs a Python script for 2 s",
        &["pam-exec"],
        || {
            let line = "session optional pam_exec.so quiet /usr/bin/python3 {dir}/hook";
            let sshd = with_pam(line, "");
            std::fs::write(sshd.dir().join("hook"), "import time\ntime.sleep(2)\n").unwrap();
            measured(&sshd, &[])
        },
    ),
    (
        "pam_systemd asks a bus that hangs",
        &["pam-systemd", "timed-out"],
        || {
            let sshd = with_pam("session optional pam_systemd.so", "");
            let _bus = start_bus(&sshd, 999);
            tried(&sshd, "root", &[])
        },
    ),
    (
        "pam_systemd asks a bus that closes the connection after 2 s; each module is timed",
        &["pam-systemd"],
        || {
            let sshd = with_pam("session optional pam_systemd.so", "");
            let _bus = start_bus(&sshd, 2);
            let more = [
                "--rounds",
                "1",
                "--command-only",
                "--json",
                "--each-module",
                "--yes",
            ];
            let value = json(&ssh_as(
                &Home::new(),
                &sshd,
                &format!("root@{ADDRESS}"),
                &[],
                &more,
            ));
            let modules = value["each_module"]["modules"].as_array().unwrap().iter();
            let took = |module: &Value| module["took"].as_u64().unwrap();
            let longest = modules.max_by_key(|module| took(module)).unwrap();
            assert_eq!(longest["module"], "pam_systemd", "{value}");
            assert!(took(longest) >= 1_900_000_000, "{value}");
            value
        },
    ),
    (
        "a bus hangs, and pam_exec takes 2 s; no pam_systemd",
        &["pam-exec"],
        || {
            let sshd = with_pam("session optional pam_exec.so {dir}/hook", "sleep 2");
            let _bus = start_bus(&sshd, 999);
            tried(&sshd, "root", &[])
        },
    ),
    (
        "UseDNS asks for 2 s, and pam_exec takes 2 s",
        &["pam-exec", "usedns"],
        || {
            let dns = SlowDns::start(Some(Duration::from_secs(2))).unwrap();
            dns.set_shell("/bin/bash").unwrap();
            let pam = format!("{PAM}session optional pam_exec.so {{dir}}/hook\n");
            let sshd = Sshd::configured(dns, "UsePAM yes\nUseDNS yes", Some(&pam)).unwrap();
            script(&sshd.dir().join("hook"), "sleep 2");
            measured(&sshd, &[])
        },
    ),
    (
        "pam_exec of `auth` takes 2 s in a login with a password",
        &["pam-exec"],
        || {
            let value = by_password(
                "auth optional pam_exec.so {dir}/hook",
                "secret-of-anna",
                &[],
            );
            assert_place(&value, "/etc/pam.d/sshd:1; process sleep below hook");
            value
        },
    ),
    ("the same, and each module is timed", &["pam-exec"], || {
        let line = "auth optional pam_exec.so {dir}/hook";
        let value = by_password(line, "secret-of-anna", &["--each-module", "--yes"]);
        let modules = value["each_module"]["modules"].as_array().unwrap();
        let first = modules
            .iter()
            .find(|one| one["module"] == "pam_exec")
            .unwrap();
        assert_eq!(first["kind"], "auth", "{value:#}");
        assert!(
            first["took"].as_u64().unwrap() >= 1_900_000_000,
            "{value:#}"
        );
        value
    }),
    ("pam_mkhomedir copies for 2 s", &["pam-mkhomedir"], || {
        let pam = "account required pam_permit.so\nsession required pam_mkhomedir.so\n";
        let sshd = planted(WITH_PAM, Some(pam));
        let helper = sshd.dir().join("helper");
        script(&helper, "sleep 2");
        let real = inside(&sshd, "realpath $(command -v mkhomedir_helper)");
        sshd.dns.replace(real.trim(), &helper).unwrap();
        with_user(&sshd, "anna", "/bin/sh", "*:19000:0:99999:7:::");
        // Its home does not exist.
        inside(&sshd, &format!("rmdir '{}/a home'", sshd.dir().display()));
        let value = tried(&sshd, "anna", &[]);
        let seen = value["causes"][0]["seen"].as_str().unwrap();
        assert!(seen.starts_with("/etc/pam.d/sshd:2;"), "{value:#}");
        value
    }),
    (
        "pam_ldap waits for an LDAP server for 2 s",
        &["server-network"],
        || {
            let service = "s = socket.socket(); s.bind(('127.0.0.1', 389))";
            let line = "session optional {dir}/pam_ldap.so port 389";
            let value = with_module("pam_ldap.so", line, service, &[]);
            let seen = value["causes"][0]["seen"].as_str().unwrap();
            assert!(seen.starts_with("/etc/pam.d/sshd:3;"), "{value:#}");
            value
        },
    ),
    ("pam_sss waits for sssd for 2 s", &["user-lookup"], || {
        let service = "os.makedirs('/run/sss/pipes')\ns = socket.socket(socket.AF_UNIX); s.bind('/run/sss/pipes/pam')";
        let line = "account required {dir}/pam_sss.so socket /run/sss/pipes/pam";
        let value = with_module("pam_sss.so", line, service, &[]);
        let seen = value["causes"][0]["seen"].as_str().unwrap();
        assert!(seen.starts_with("/etc/pam.d/sshd:3;"), "{value:#}");
        value
    }),
    (
        "a module of one's own sleeps for 2 s",
        &["server-sleeps"],
        || {
            let line = "session optional {dir}/pam_own.so sleep 2";
            let value = with_module("pam_own.so", line, "", &[]);
            let then = value["causes"][0]["then"].as_str().unwrap();
            assert!(then.contains("--each-module"), "{value:#}");
            value
        },
    ),
    (
        "the same, and each module is timed",
        &["pam-module"],
        || {
            let line = "session optional {dir}/pam_own.so sleep 2";
            let more = ["--each-module", "--yes"];
            let value = with_module("pam_own.so", line, "", &more);
            let seen = value["causes"][0]["seen"].as_str().unwrap();
            assert!(seen.starts_with("/etc/pam.d/sshd:3;"), "{value:#}");
            value
        },
    ),
    (
        "a module of one's own sleeps for 2 s in a login with a password that PAM accepts",
        &["server-sleeps"],
        || {
            by_password(
                "account required {dir}/pam_own.so sleep 2",
                "secret-of-anna",
                &[],
            )
        },
    ),
    (
        "pam_exec of `auth` takes 2 s, and a wrong password is refused after a delay",
        &["pam-exec", "pam-fail-delay", "authentication-refused"],
        || by_password("auth optional pam_exec.so {dir}/hook", "wrong", &[]),
    ),
    (
        "a wrong password, and pam_faildelay waits 3 s",
        &["pam-fail-delay", "authentication-refused"],
        || by_password("auth optional pam_faildelay.so delay=3000000", "wrong", &[]),
    ),
    ("the account is locked", &["account-locked"], || {
        let sshd = planted(PLAIN, None);
        with_user(&sshd, "anna", "/bin/sh", "!x:19000:0:99999:7:::");
        tried(&sshd, "anna", &[])
    }),
    ("the password has expired", &["password-expired"], || {
        let sshd = planted(
            WITH_PAM,
            Some("account required pam_unix.so\nsession required pam_unix.so\n"),
        );
        with_user(&sshd, "anna", "/bin/sh", "x:0:0:99999:7:::");
        tried(&sshd, "anna", &[])
    }),
    ("the account has expired", &["account-expired"], || {
        let sshd = planted(
            WITH_PAM,
            Some("account required pam_unix.so\nsession required pam_unix.so\n"),
        );
        with_user(&sshd, "anna", "/bin/sh", "*:19000:0:99999:7::18000:");
        tried(&sshd, "anna", &[])
    }),
    ("/run/nologin", &["logins-disabled"], || {
        let sshd = planted(
            WITH_PAM,
            Some(&format!("account required pam_nologin.so\n{PAM}")),
        );
        with_user(&sshd, "anna", "/bin/sh", "*:19000:0:99999:7:::");
        inside(&sshd, "echo 'Maintenance until noon' > /run/nologin");
        tried(&sshd, "anna", &[])
    }),
    (
        "AllowUsers leaves the user out",
        &["user-not-allowed"],
        || {
            let sshd = planted(&format!("{PLAIN}\nAllowUsers berta"), None);
            tried(&sshd, "root", &[])
        },
    ),
    ("the shell does not exist", &["shell-missing"], || {
        let sshd = planted(PLAIN, None);
        sshd.dns.set_shell("/bin/nosuchshell").unwrap();
        tried(&sshd, "root", &[])
    }),
    ("MaxSessions 0", &["session-ended"], || {
        tried(
            &planted(&format!("{PLAIN}\nMaxSessions 0"), None),
            "root",
            &[],
        )
    }),
    (
        "pam_limits lets nobody in (maxlogins 0)",
        &["session-ended"],
        || {
            let pam = "account required pam_permit.so\nsession required pam_limits.so conf={dir}/limits\n";
            let sshd = planted(WITH_PAM, Some(pam));
            with_user(&sshd, "anna", "/bin/sh", "*:19000:0:99999:7:::");
            std::fs::write(sshd.dir().join("limits"), "* hard maxlogins 0\n").unwrap();
            tried(&sshd, "anna", &[])
        },
    ),
];
