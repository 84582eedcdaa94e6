//! Compares the facts about mail with real programs: SpamAssassin for scores, a running Postfix for its queue, and
//! Dovecot for its configuration.
#![allow(
    clippy::disallowed_methods,
    reason = "tests run the programs, on directories of their own"
)]

use assay_facts::{CollectOptions, Redacted, collect};
use assay_host::{Host, LiveHost, Recorded, Root};
use assay_model::Facts;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

const OPTIONS: CollectOptions<'static> = CollectOptions {
    with_identity: false,
    services: true,
    accounts: false,
    targets: &[],
};

fn ask(argv: &[&str]) -> Option<Output> {
    match Command::new(argv[0]).args(&argv[1..]).output() {
        Ok(output) => Some(output),
        Err(error) => {
            assay_testing::skipped(argv[0], error);
            None
        }
    }
}

fn facts_of(dir: &Path) -> Facts {
    collect(&Root::open(dir).unwrap(), &OPTIONS)
}

/// Every score for a rule that SpamAssassin does not define is found, and no other score.
#[test]
fn scores_for_rules_that_do_not_exist() {
    let shipped = Path::new("/usr/share/spamassassin");
    if !shipped.join("50_scores.cf").exists() {
        return assay_testing::skipped("spamassassin", "not installed");
    }
    let dir = tempfile::tempdir().unwrap();
    let own = dir.path().join("etc/spamassassin");
    let rules = dir.path().join("usr/share/spamassassin");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::create_dir_all(&rules).unwrap();
    for entry in std::fs::read_dir(shipped).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "cf") {
            std::fs::copy(&path, rules.join(path.file_name().unwrap())).unwrap();
        }
    }
    for entry in std::fs::read_dir("/etc/spamassassin").unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "pre") {
            std::fs::copy(&path, own.join(path.file_name().unwrap())).unwrap();
        }
    }
    let text = "score BAYES_99 5\nscore RCVD_IN_GONE_LIST 3 3 3 3 # why\nscore OWN_ONE 0\nbody OWN_ONE /x/\n\
                \tscore   OWN_GONE 1\nscore FREEMAIL_FROM 0.5\nheader OWN_TWO Subject =~ /y/\nscore OWN_TWO 0.5\n\
                #score COMMENTED_OUT 1\nscore HTML_MESSAGE 0\nscore MISSPELT_HTML_MESSAGE 0\n";
    std::fs::write(own.join("local.cf"), text).unwrap();
    let argv = [
        "spamassassin",
        "-D",
        "config",
        "--lint",
        "-L",
        "--siteconfigpath",
        own.to_str().unwrap(),
        "--configpath",
        rules.to_str().unwrap(),
    ];
    let Some(output) = ask(&argv) else { return };
    let says = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{says}");
    let theirs: BTreeSet<&str> = says
        .lines()
        .filter_map(|line| line.split_once("score set for non-existent rule "))
        .map(|(_, name)| name.trim())
        // Rules of the package have such scores too.
        .filter(|name| text.contains(&format!("{name} ")))
        .collect();
    let facts = facts_of(dir.path());
    let subject = |key: &str, end: &str| -> Option<String> {
        let name = key.strip_prefix("spamassassin.score.")?;
        name.strip_suffix(end).map(str::to_owned)
    };
    let all = |end: &str, wanted: bool| -> BTreeSet<String> {
        let keys = facts.map.keys();
        keys.filter(|key| facts.get(key) == Some(&wanted.into()))
            .filter_map(|key| subject(key, end))
            .collect()
    };
    let ours = all(".defined", false);
    assert_eq!(
        ours.iter().map(String::as_str).collect::<BTreeSet<_>>(),
        theirs
    );
    assert_eq!(ours.len(), 3);
    assert_eq!(all(".defined", true).len(), 5);
    assert!(all(".off", true).contains("OWN_ONE"));
    assert!(!all(".off", true).contains("OWN_TWO"));
}

/// A separate Postfix instance that shares nothing with the machine's own.
struct Postfix {
    dir: tempfile::TempDir,
}

impl Postfix {
    fn start() -> Option<Self> {
        if !is_root() || !Path::new("/usr/share/postfix/master.cf.dist").exists() {
            assay_testing::skipped("postfix", "not installed, or not root");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let (etc, queue, data) = (
            dir.path().join("etc"),
            dir.path().join("queue"),
            dir.path().join("data"),
        );
        for one in [&etc, &queue, &data] {
            std::fs::create_dir(one).unwrap();
        }
        ask(&["chmod", "755", dir.path().to_str()?])?;
        ask(&["chown", "postfix", data.to_str()?])?;
        for name in [
            "postfix-files",
            "postfix-script",
            "post-install",
            "dynamicmaps.cf",
        ] {
            let from = Path::new("/etc/postfix").join(name);
            if from.exists() {
                std::fs::copy(from, etc.join(name)).unwrap();
            }
        }
        let main = format!(
            "compatibility_level = 3.6\nqueue_directory = {}\ndata_directory = {}\nmyhostname = mail.example.org\n\
             mydestination = localhost\ninet_interfaces = loopback-only\nmaillog_file = {}/log\n\
             maillog_file_prefixes = {}\nalias_maps =\n\
             transport_maps = inline:{{ refused.test=smtp:[127.0.0.1]:1, filter.test=lmtp:unix:private/nothing, gone.test=nosuch:x }}\n",
            queue.display(),
            data.display(),
            queue.display(),
            queue.display(),
        );
        std::fs::write(etc.join("main.cf"), main).unwrap();
        // No service listens, and none runs in a chroot.
        let master = std::fs::read_to_string("/usr/share/postfix/master.cf.dist").unwrap();
        let services: Vec<String> = master
            .lines()
            .filter(|line| {
                let kind = line.split_whitespace().nth(1);
                !line.starts_with(['#', ' ']) && kind.is_some_and(|kind| kind != "inet")
            })
            .map(|line| {
                let mut words: Vec<&str> = line.split_whitespace().collect();
                words[4] = "n";
                words.join(" ")
            })
            .filter(|line| !line.contains(" pipe"))
            .collect();
        let log = "postlog unix-dgram n - n - 1 postlogd\n";
        let mut text = services.join("\n") + "\n";
        if !text.contains("postlogd") {
            text.push_str(log);
        }
        std::fs::write(etc.join("master.cf"), text).unwrap();
        let started = ask(&["postfix", "-c", etc.to_str()?, "start"])?;
        let says = String::from_utf8_lossy(&started.stderr).into_owned();
        let postfix = Self { dir };
        if !started.status.success() {
            // In a container without the necessary rights.
            assay_testing::skipped("postfix", says);
            return None;
        }
        Some(postfix)
    }

    fn etc(&self) -> String {
        self.dir.path().join("etc").display().to_string()
    }

    fn send(&self, to: &str) {
        use std::io::Write as _;
        let mut child = Command::new("/usr/sbin/sendmail")
            .env("MAIL_CONFIG", self.etc())
            .args(["-f", "alice.hidden-word@example.org", to])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"Subject: x\n\nhidden-word\n").unwrap();
        drop(stdin);
        assert!(child.wait().unwrap().success());
    }

    fn queue(&self) -> String {
        let output = ask(&["postqueue", "-c", &self.etc(), "-j"]).unwrap();
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Postfix {
    fn drop(&mut self) {
        let _ = ask(&["postfix", "-c", &self.etc(), "stop"]);
    }
}

fn is_root() -> bool {
    ask(&["id", "-u"]).is_some_and(|output| output.stdout == b"0\n")
}

/// The facts contain the reasons from a real queue, but no sender or recipient.
#[test]
fn a_queue_of_a_postfix_that_runs() {
    let Some(postfix) = Postfix::start() else {
        return;
    };
    for to in [
        "a@refused.test",
        "b@filter.test",
        "c@gone.test",
        "d@gone.test",
    ] {
        postfix.send(to);
    }
    let begun = Instant::now();
    let list = loop {
        let list = postfix.queue();
        // Mail that is being delivered is in another queue, but has a reason already.
        if list.matches("\"queue_name\": \"deferred\"").count() == 4 {
            break list;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{list}");
        std::thread::sleep(Duration::from_millis(200));
    };
    let live = |path: &str| LiveHost.read_text(Path::new(path)).unwrap();
    let host = Recorded::new()
        .file("/etc/postfix/main.cf", "")
        .file("/proc/stat", live("/proc/stat"))
        .file("/proc/uptime", live("/proc/uptime"))
        .command(&["postqueue", "-j"], &list);
    let facts = collect(&host, &OPTIONS);
    let value = |key: &str| facts.get(&format!("postfix.waiting.{key}")).cloned();
    assert_eq!(value("local-service.messages"), Some(2.into()), "{list}");
    assert_eq!(value("transport.messages"), Some(2.into()), "{list}");
    assert_eq!(value("transport.oldest_hours"), Some(0.into()));
    assert_eq!(value("transport.here"), Some(true.into()));
    let told = serde_json::to_string(&facts).unwrap();
    let kept = Redacted::new(&host, false)
        .run(
            &["postqueue".as_ref(), "-j".as_ref()],
            assay_host::Limits::default(),
        )
        .unwrap();
    for secret in ["hidden-word", ".test", "example.org"] {
        assert!(list.contains(secret) || secret == "hidden-word");
        assert!(!told.contains(secret), "{secret}");
        assert!(!kept.text().contains(secret), "{secret}");
    }
}

/// The facts about clear-text logins agree with Dovecot's effective settings.
#[test]
fn what_dovecot_says_of_cleartext() {
    for (line, open) in [
        ("", None),
        ("disable_plaintext_auth = no\n", Some(true)),
        ("disable_plaintext_auth=yes\n", Some(false)),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let etc = dir.path().join("etc/dovecot");
        std::fs::create_dir_all(etc.join("conf.d")).unwrap();
        std::fs::write(
            etc.join("dovecot.conf"),
            "ssl = no\nprotocols =\n!include conf.d/*.conf\n",
        )
        .unwrap();
        std::fs::write(etc.join("conf.d/10-auth.conf"), line).unwrap();
        let file = etc.join("dovecot.conf");
        let argv = [
            "doveconf",
            "-c",
            file.to_str().unwrap(),
            "-h",
            "disable_plaintext_auth",
        ];
        let Some(output) = ask(&argv) else { return };
        let says = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let facts = facts_of(dir.path());
        let ours = facts.get("dovecot.cleartext").cloned();
        assert_eq!(ours, open.map(Into::into), "{line}");
        assert_eq!(says == "no", open == Some(true), "{line} {says}");
        assert_eq!(facts.str("dovecot.language"), Some("2.3"));
    }
}
