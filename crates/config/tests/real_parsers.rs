//! Checks edits and values with the programs themselves.
#![allow(clippy::disallowed_methods, reason = "a test asks real programs")]

use assay_config::{get, set};
use assay_model::change::ConfigLanguage::{self, Apache, Dovecot, Nginx, Postfix, Ssh};
use std::path::Path;
use std::process::{Command, Output};

/// Runs a program. If the program is not installed, prints a note and returns `None`.
fn ask(argv: &[&str]) -> Option<Output> {
    let path = format!(
        "{}:/usr/sbin:/sbin",
        std::env::var("PATH").unwrap_or_default()
    );
    match Command::new(argv[0])
        .args(&argv[1..])
        .env("PATH", path)
        .output()
    {
        Ok(output) => Some(output),
        Err(error) => {
            assay_testing::skipped("program", format_args!("{}: {error}", argv[0]));
            None
        }
    }
}

fn stdout(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn value(language: ConfigLanguage, text: &[u8], key: &str) -> String {
    get(language, text, &[], key).unwrap().unwrap().value
}

/// Returns the output of `sshd -T` for a keyword. sshd requires /run/sshd, which exists only after the service was
/// started. A mount namespace provides this directory.
fn sshd(file: &Path, keyword: &str) -> Option<String> {
    let script = "mount -t tmpfs tmpfs /run && mkdir /run/sshd && exec sshd_path -T -f \"$1\"";
    let script = script.replace("sshd_path", "/usr/sbin/sshd");
    if !Path::new("/usr/sbin/sshd").exists() {
        assay_testing::skipped("sshd", "no sshd");
        return None;
    }
    let output = ask(&[
        "unshare",
        "--mount",
        "sh",
        "-c",
        &script,
        "sh",
        file.to_str()?,
    ])?;
    if !output.status.success() && String::from_utf8_lossy(&output.stderr).contains("unshare") {
        assay_testing::skipped("mount", "no mount namespace");
        return None;
    }
    let text = stdout(&output);
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines
        .find(|(key, _)| *key == keyword)
        .map(|(_, value)| value.to_owned())
}

/// Apache loads the module of the edited line, and accepts the file that is difficult to parse.
#[test]
fn apache() {
    let modules = Path::new("/usr/lib/apache2/modules");
    if !modules.join("mod_mpm_worker.so").exists() {
        assay_testing::skipped("apache2", "not installed");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("httpd.conf");
    let hard = include_bytes!("../fixtures/hard.apache.conf");
    let ask = |text: &[u8]| {
        std::fs::write(&file, text).unwrap();
        let root = dir.path().display();
        let server = format!("ServerName localhost\nErrorLog {root}/log");
        let before = dir.path().join("before");
        std::fs::write(&before, server).unwrap();
        let include = format!("Include {}", before.display());
        ask(&[
            "apache2",
            "-M",
            "-C",
            &include,
            "-f",
            file.to_str().unwrap(),
        ])
    };
    for mpm in ["event", "worker", "prefork"] {
        let value = format!("mpm_{mpm}_module {}/mod_mpm_{mpm}.so", modules.display());
        // Of the difficult lines, only the module exists.
        let text = set(Apache, hard, &[], "LoadModule", &value).unwrap();
        let found = get(Apache, &text, &[], "LOADMODULE").unwrap().unwrap();
        assert_eq!(found.value, value);
        let kept = |line: &&str| {
            let line = line.trim_start().to_ascii_lowercase();
            ![
                "serverroot",
                "options",
                "includeoptional",
                "logformat",
                "<ifversion",
                "</ifversion",
                "documentroot",
                "<directory",
                "</directory",
                "<virtualhost",
                "</virtualhost",
            ]
            .iter()
            .any(|word| line.starts_with(word))
        };
        let text = String::from_utf8(text).unwrap();
        let text: Vec<&str> = text.lines().filter(kept).collect();
        let Some(output) = ask(text.join("\n").as_bytes()) else {
            return;
        };
        let loaded = stdout(&output);
        assert!(
            loaded.contains(&format!("mpm_{mpm}_module (shared)")),
            "{loaded}"
        );
    }
}

#[test]
fn openssh() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sshd_config");
    for text in [
        &include_bytes!("../fixtures/openssh-9.2p1-2+deb12u10-sshd_config")[..],
        include_bytes!("../fixtures/hard.sshd_config"),
        b"\"UseDNS\"  \"no\"\nMaxStartups=1:2:3\nBanner \"a\\\"b\\\\c\" # d\nPort 22",
    ] {
        for (key, new) in [
            ("UseDNS", "yes"),
            ("UseDNS", "no"),
            ("GSSAPIAuthentication", "yes"),
            ("MaxStartups", "7:30:60"),
            ("Banner", "/x#y"),
        ] {
            let text = set(Ssh, text, &[], key, new).unwrap();
            std::fs::write(&file, &text).unwrap();
            let Some(says) = sshd(&file, &key.to_lowercase()) else {
                return;
            };
            assert_eq!(says, new);
            assert_eq!(value(Ssh, &text, key), new);
        }
    }
    // A value with blanks and quotes is read back unchanged.
    let text = set(Ssh, b"", &[], "Banner", r#""/a b\"c\\d""#).unwrap();
    std::fs::write(&file, &text).unwrap();
    assert_eq!(sshd(&file, "banner").unwrap(), r#"/a b"c\d"#);
}

#[test]
fn dovecot() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("dovecot.conf");
    let doveconf = |text: &[u8], key: &str| {
        std::fs::write(&file, text).unwrap();
        ask(&["doveconf", "-h", "-c", file.to_str().unwrap(), key])
    };
    let hard = include_bytes!("../fixtures/hard.dovecot.conf");
    // Without the includes, whose files do not exist.
    let end = hard
        .windows(9)
        .position(|part| part == b"!include ")
        .unwrap();
    let hard = &hard[..end];
    for key in ["protocols", "mail_location", "auth_mechanisms"] {
        let Some(output) = doveconf(hard, key) else {
            return;
        };
        assert_eq!(stdout(&output).trim(), value(Dovecot, hard, key));
    }
    for new in [
        "maildir:~/Maildir",
        "a b",
        "a # b",
        "\"a\" b",
        "'",
        "it's \"x\"",
        "end\\",
        "a\\b",
        " blank ",
        "#",
    ] {
        for text in [hard, b"", b"mail_location = 'x'\n"] {
            let text = set(Dovecot, text, &[], "mail_location", new).unwrap();
            let says = stdout(&doveconf(&text, "mail_location").unwrap());
            assert_eq!(says.strip_suffix('\n').unwrap_or(&says), new);
        }
    }
    // A block that is switched off disappears, and a changed order is reported.
    let drivers = |text: &[u8]| {
        let says = stdout(&doveconf(text, "passdb").unwrap());
        let lines = says.lines().map(str::trim);
        let drivers = lines.filter_map(|line| line.strip_prefix("driver = "));
        drivers.map(ToOwned::to_owned).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(drivers(hard), "pam sql");
    for (key, new, expected) in [
        ("passdb[driver=pam]", "off", "sql"),
        ("passdb[driver=ldap]", "on", "pam sql ldap"),
        ("passdb[driver]", "sql pam", "sql pam"),
    ] {
        assert_eq!(
            drivers(&set(Dovecot, hard, &[], key, new).unwrap()),
            expected
        );
    }
}

/// Dovecot and this crate accept and reject the same texts.
#[test]
fn dovecot_refuses_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("dovecot.conf");
    for text in [
        "passdb{\n}\n",
        "passdb {\n",
        "}\n",
        "mail_location x\n",
        "passdb { driver = pam }\n",
        "passdb a b {\n}\n",
        "mail_location = a \\\n\n  b\n",
        "mail_location = a \\\n b\n",
        "mail_location=a\"b\n",
        "passdb { # c\n  driver = pam }\n}\n",
    ] {
        std::fs::write(&file, text).unwrap();
        let Some(output) = ask(&["doveconf", "-c", file.to_str().unwrap()]) else {
            return;
        };
        let ours = get(Dovecot, text.as_bytes(), &[], "x");
        assert_eq!(ours.is_ok(), output.status.success(), "{text}: {ours:?}");
    }
}

#[test]
fn postfix() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("master.cf"), "").unwrap();
    // One call for all texts, because postconf resolves the machine's name at each call.
    let agrees = |text: &[u8]| {
        std::fs::write(dir.path().join("main.cf"), text).unwrap();
        let keys = [
            "mydestination",
            "biff",
            "delay_warning_time",
            "relay_domains",
            "smtpd_banner",
        ];
        let argv = ["postconf", "-c", dir.path().to_str().unwrap()];
        let Some(output) = ask(&[&argv[..], &keys].concat()) else {
            return;
        };
        for line in stdout(&output).lines() {
            let (key, says) = line.split_once(" =").unwrap();
            if let Some(found) = get(Postfix, text, &[], key).unwrap() {
                assert_eq!(says.trim_start(), found.value, "{key}");
            }
        }
    };
    for text in [
        &include_bytes!("../fixtures/hard.main.cf")[..],
        include_bytes!("../fixtures/postfix-3.7.11-0+deb12u1-main.cf.dist"),
    ] {
        let text = set(Postfix, text, &[], "delay_warning_time", "1h").unwrap();
        agrees(&text);
        agrees(&set(Postfix, &text, &[], "mydestination", "a, b # c").unwrap());
    }
}

#[test]
fn nginx() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("nginx.conf");
    let log = dir.path().join("log");
    let accepts = |text: &[u8]| {
        // Names that nginx would resolve or write elsewhere are put into the directory.
        let pid = format!("pid {}/pid;\n", dir.path().display());
        std::fs::write(&file, [pid.as_bytes(), text].concat()).unwrap();
        let [file, log] = [&file, &log].map(|path| path.to_str().unwrap());
        ask(&["nginx", "-t", "-q", "-e", log, "-c", file]).map(|output| output.status.success())
    };
    let hard = include_bytes!("../fixtures/hard.nginx.conf");
    let http = ["http".to_owned()];
    let in_b = [
        "http".to_owned(),
        "server[server_name=b.example]".to_owned(),
    ];
    for (section, key, new) in [
        (&[][..], "worker_processes", "auto"),
        (&http, "sendfile", "off"),
        (&http, "keepalive_requests", "10"),
        (&in_b, "root", "\"/a b\""),
        (&http, "log_format other", "'$uri {' \"}\""),
    ] {
        let new = set(Nginx, hard, section, key, new).unwrap();
        let Some(accepted) = accepts(&new) else {
            return;
        };
        assert!(
            accepted,
            "{key}: {}",
            std::fs::read_to_string(&log).unwrap()
        );
    }
    for text in [
        "events {",
        "events {} }",
        "events {} ;",
        "events {} {}",
        "events {} worker_priority \"1\"x;",
        "events {} worker_priority \"1;",
        "events {} worker_priority 1",
        "events{}worker_priority \"1\";",
        "events { } http { log_format a 'b' \"c\"; }",
        "events { } http { log_format a \\;{; }",
        "events { } http { log_format a ${uri}y; }",
        "events { } http { log_format a b} ; }",
    ] {
        let ours = get(Nginx, text.as_bytes(), &[], "x");
        let Some(accepted) = accepts(text.as_bytes()) else {
            return;
        };
        assert_eq!(ours.is_ok(), accepted, "{text}: {ours:?}");
    }
}
