//! Logins that wait for uncommon reasons in sshd, in the client and in start-up files, beside what assay names. Module
//! `pam_logins` has those of PAM. Prints a table:
//! `ASSAY_LAB_ALL=1 cargo test -p assay --test login uncommon -- --nocapture`.

use crate::causes::{self, ids, inside, measured, planted, script};
use crate::common::Home;
use crate::pam_logins;
use crate::{json, skipped, ssh};
use serde_json::Value;

pub const PLAIN: &str = "UsePAM no\nUseDNS no";

/// A planted login: its description, the expected causes or kind of failure, and how to measure it.
pub type Planted = (&'static str, &'static [&'static str], fn() -> Value);

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
pub fn assert_place(value: &Value, end: &str) {
    let seen = value["causes"][0]["seen"].as_str().unwrap();
    assert!(seen.split(',').next().unwrap().ends_with(end), "{value:#}");
}

const LOGINS: &[Planted] = &[
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
    let all = LOGINS.iter().chain(pam_logins::LOGINS);
    for (what, expected, measure) in all.filter(|(what, ..)| what.contains(&only)) {
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
