//! Logins that wait or fail for uncommon reasons, beside what assay names. Prints a table:
//! `ASSAY_LAB_ALL=1 cargo test -p assay --test login uncommon -- --nocapture`.

use crate::causes::{self, ids, inside, measured, planted, script};
use crate::common::Home;
use crate::{ADDRESS, json, skipped, ssh, ssh_as};
use assay_host::process::{Dies, Running};
use assay_testing::servers::dns::SlowDns;
use assay_testing::servers::sshd::Sshd;
use serde_json::Value;
use std::time::Duration;

const PLAIN: &str = "UsePAM no\nUseDNS no";
const WITH_PAM: &str = "UsePAM yes\nUseDNS no";
const PAM: &str = "account required pam_permit.so\nsession required pam_permit.so\n";

/// A planted login: its description, the expected causes or kind of failure, and how to measure it.
type Planted = (&'static str, &'static [&'static str], fn() -> Value);

/// sshd with a hook of PAM. `{dir}/hook` in the line is the hook.
fn with_pam(line: &str, hook: &str) -> Sshd {
    let sshd = planted(WITH_PAM, Some(&format!("{PAM}{line}\n")));
    script(&sshd.dir().join("hook"), hook);
    sshd
}

/// Writes files of the user's home, and measures a login with a prompt.
fn at_prompt(shell: &str, files: &[(&str, &str)]) -> Value {
    let sshd = planted(PLAIN, None);
    sshd.dns.set_shell(shell).unwrap();
    for (name, text) in files {
        let file = sshd.dns.home().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    json(&ssh(&Home::new(), &sshd, &["--rounds", "1", "--json"]))
}

/// The same with bash, one file, and a limit for each login.
fn at_bash_prompt(file: &str, text: &str, limit: &str) -> Value {
    let sshd = planted(PLAIN, None);
    std::fs::write(sshd.dns.home().join(file), text).unwrap();
    json(&ssh(
        &Home::new(),
        &sshd,
        &["--rounds", "1", "--json", "--limit", limit],
    ))
}

/// Asserts that the place in the evidence of the first cause ends with `end`.
fn assert_place(value: &Value, end: &str) {
    let seen = value["causes"][0]["seen"].as_str().unwrap();
    assert!(seen.split(',').next().unwrap().ends_with(end), "{value:#}");
}

/// Logs in as anna with a password; `line` comes first in the stack of PAM.
fn by_password(line: &str, password: &str, more: &[&str]) -> Value {
    let pam = format!("{line}\nauth required pam_unix.so\n{PAM}");
    let settings =
        format!("{WITH_PAM}\nKbdInteractiveAuthentication yes\nPasswordAuthentication yes");
    let sshd = planted(&settings, Some(&pam));
    script(&sshd.dir().join("hook"), "sleep 2");
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

/// Measures a login through a module of one's own, with this name and line. `service` is the code of Python that makes
/// a listening socket `s`; its connections close after two seconds without an answer.
fn with_module(name: &str, line: &str, service: &str, more: &[&str]) -> Value {
    let sshd = planted(WITH_PAM, Some(&format!("{PAM}{line}\n")));
    let source = sshd.dir().join("slow.c");
    std::fs::write(&source, SLOW_MODULE).unwrap();
    let module = sshd.dir().join(name);
    let command = format!(
        "cc -shared -fPIC -w -o {} {}",
        module.display(),
        source.display()
    );
    inside(&sshd, &command);
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

const LOGINS: &[Planted] = &[
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
    (
        "healthy: a banner of 300 lines and a .bashrc of 2,000 lines",
        &[],
        || {
            let sshd = planted(&format!("{PLAIN}\nBanner /run/banner"), None);
            inside(&sshd, "seq 300 > /run/banner");
            let lines = (0..2000).map(|n| format!("alias a{n}='ls {n}'\n"));
            std::fs::write(sshd.dns.home().join(".bashrc"), lines.collect::<String>()).unwrap();
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
        "ForceCommand in a Match block runs a script for 2 s",
        &["force-command"],
        || {
            let sshd = planted(
                &format!("{PLAIN}\nMatch User root\nForceCommand {{dir}}/wrap\nMatch all"),
                None,
            );
            let run = "sleep 2\nexec sh -c \"$SSH_ORIGINAL_COMMAND\"";
            script(&sshd.dir().join("wrap"), run);
            measured(&sshd, &[])
        },
    ),
    (
        "`command=` of the key takes 2 s",
        &["force-command"],
        || {
            let sshd = planted(PLAIN, None);
            let file = sshd.dir().join("id.pub");
            let key = std::fs::read_to_string(&file).unwrap();
            let forced = "command=\"sleep 2; eval \\\"$SSH_ORIGINAL_COMMAND\\\"\"";
            std::fs::write(&file, format!("{forced} {key}")).unwrap();
            measured(&sshd, &[])
        },
    ),
    (
        "AuthorizedKeysCommand takes 1.2 s, twice, and `.bashrc` 2 s",
        &["authorized-keys-command", "start-up-line"],
        || {
            let settings = "AuthorizedKeysCommand /run/sshd/keys %u\n\
                            AuthorizedKeysCommandUser root\nAuthorizedKeysFile none";
            let sshd = planted(&format!("{PLAIN}\n{settings}"), None);
            let key = sshd.dir().join("id.pub").display().to_string();
            inside(
                &sshd,
                &format!(
                    "chmod 755 /run; printf '#!/bin/sh\\nsleep 1.2\\ncat {key}\\n' > /run/sshd/keys; \
                     chmod 755 /run/sshd/keys"
                ),
            );
            std::fs::write(sshd.dns.home().join(".bashrc"), "x=1\nsleep 2\n").unwrap();
            measured(&sshd, &[])
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
        "a function in a file that `.bash_profile` reads takes 2 s",
        &["start-up-line"],
        || {
            at_prompt(
                "/bin/bash",
                &[
                    (".bash_profile", "for f in ~/.lib/*.sh; do . \"$f\"; done\n"),
                    (".lib/10-quick.sh", "A=1\n"),
                    (
                        ".lib/20-slow.sh",
                        "find_version() {\n  local v\n  sleep 2\n}\nfind_version\n",
                    ),
                ],
            )
        },
    ),
    (
        "`.profile` of dash waits for a lock file for 2 s",
        &["start-up-line"],
        || {
            at_prompt(
                "/bin/dash",
                &[(
                    ".profile",
                    "n=0\nwhile [ $n -lt 10 ]; do n=$((n + 1)); sleep 0.2; done\n",
                )],
            )
        },
    ),
    (
        "the client's configuration runs a program for 2 s",
        &["match-exec"],
        || {
            let sshd = planted(PLAIN, None);
            let ssh = sshd.dns.home().join(".ssh");
            std::fs::create_dir_all(&ssh).unwrap();
            std::fs::write(
                ssh.join("config"),
                "Match exec \"sleep 2\"\nCompression no\n",
            )
            .unwrap();
            measured(&sshd, &[])
        },
    ),
    ("LocalCommand takes 2 s", &["client-program"], || {
        measured(
            &planted(PLAIN, None),
            &["PermitLocalCommand=yes", "LocalCommand=sleep 2"],
        )
    }),
    ("PROMPT_COMMAND takes 2 s", &["prompt-command"], || {
        let value = at_bash_prompt(".bash_profile", "A=1\nPROMPT_COMMAND='sleep 2'\n", "60s");
        assert_place(&value, "/.bash_profile:2");
        value
    }),
    (
        "a function in an array of PROMPT_COMMAND takes 2 s",
        &["prompt-command"],
        || {
            let text =
                "show_branch() {\n  local x\n  sleep 2\n}\nPROMPT_COMMAND+=(true show_branch)\n";
            let value = at_bash_prompt(".bash_profile", text, "60s");
            assert_place(&value, "/.bash_profile:3");
            value
        },
    ),
    (
        "a substitution in PS1 takes 2 s",
        &["prompt-string"],
        || {
            let value = at_bash_prompt(".bash_profile", "export PS1='\\u $(sleep 2)\\$ '\n", "60s");
            assert_place(&value, "/.bash_profile:1");
            value
        },
    ),
    ("precmd of zsh takes 2 s", &["prompt-command"], || {
        let text = "A=1\nshow_branch() {\n  sleep 2\n}\nprecmd_functions+=(show_branch)\n";
        let value = at_prompt("/usr/bin/zsh", &[(".zshrc", text)]);
        assert_place(&value, "/.zshrc:3");
        value
    }),
    ("trap DEBUG takes 1 s", &["debug-trap"], || {
        let value = at_bash_prompt(".bash_profile", "A=1\ntrap 'sleep 1' DEBUG\n", "60s");
        assert_place(&value, "/.bash_profile:2");
        value
    }),
    ("~/.bash_logout takes 2 s", &["logout-line"], || {
        let value = at_bash_prompt(".bash_logout", "clear\nsleep 2\n", "60s");
        assert_place(&value, "/.bash_logout:2");
        assert_eq!(value["waits"]["kind"], "logout", "{value:#}");
        value
    }),
    (
        "a function of /etc/profile.d, called at the end, takes 2 s",
        &["start-up-line"],
        || {
            let sshd = planted(PLAIN, None);
            let folder = sshd.dir().join("profile.d");
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("10-find.sh"), "find_proxy() {\n  sleep 2\n}\n").unwrap();
            std::fs::write(folder.join("90-end.sh"), "find_proxy\n").unwrap();
            sshd.dns.replace("/etc/profile.d", &folder).unwrap();
            let value = json(&ssh(&Home::new(), &sshd, &["--rounds", "1", "--json"]));
            assert_place(&value, "/etc/profile.d/10-find.sh:2");
            value
        },
    ),
    (
        "a start-up file replaces the shell",
        &["shell-replaced"],
        || at_bash_prompt(".bash_profile", "A=1\nexec dash -i\n", "8s"),
    ),
    (
        "eighty lines of a script of completions take 20 ms each",
        &["start-up-file"],
        || {
            let text = "sleep 0.02\n".repeat(80);
            at_bash_prompt(".bash_profile", &text, "60s")
        },
    ),
    (
        "`eval \"$(…)\"` as of lesspipe takes 2 s",
        &["start-up-line"],
        || at_bash_prompt(".bash_profile", "eval \"$(sleep 2; echo A=1)\"\n", "60s"),
    ),
    (
        "healthy: PROMPT_COMMAND, PS1 and trap DEBUG that take no time",
        &[],
        || {
            let text = "PROMPT_COMMAND='history -a'\nPS1='$(printf x)\\$ '\ntrap ':' DEBUG\n";
            at_bash_prompt(".bash_profile", text, "60s")
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

#[test]
fn uncommon_logins() {
    if std::env::var_os("ASSAY_LAB_ALL").is_none() {
        return assay_testing::skipped("long", "it takes minutes; ASSAY_LAB_ALL=1 runs it");
    }
    if skipped(&causes::NEEDS) || skipped(&["python3", "dash"]) {
        return;
    }
    println!("| planted | assay names |\n|---|---|");
    let mut wrong = Vec::new();
    let only = std::env::var("ASSAY_LOGINS").unwrap_or_default();
    let has_zsh = assay_testing::servers::find_missing(&["zsh"], true).is_none();
    for (what, expected, measure) in LOGINS.iter().filter(|(what, ..)| what.contains(&only)) {
        if what.contains("zsh") && !has_zsh {
            println!("| {what} | skipped: no zsh |");
            continue;
        }
        let value = measure();
        let mut seen = ids(&value);
        seen.extend(value["failure"]["kind"].as_str());
        println!("| {what} | {} |", seen.join(", "));
        if seen != *expected {
            println!("{value:#}");
            wrong.push(format!("{what}: {seen:?}, expected {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
