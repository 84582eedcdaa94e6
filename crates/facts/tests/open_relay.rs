//! Compares assay's decision whether Postfix is an open relay with the responses of a running smtpd.
#![allow(clippy::disallowed_methods, reason = "a test drives a real Postfix")]

use assay_facts::{CollectOptions, collect};
use assay_host::Recorded;
use assay_testing::servers::postfix::Postfix;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// Response of smtpd to mail that an unknown client sends to another domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Takes,
    Refuses,
    /// smtpd does not accept mail with this configuration.
    Misconfigured,
}

fn ask(port: u16) -> Option<Answer> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(3))).ok()?;
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut writer = stream;
    let mut reply = || {
        let mut line = String::new();
        loop {
            line.clear();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if line.as_bytes().get(3) != Some(&b'-') {
                return Some(line.clone());
            }
        }
    };
    let Some(_) = reply() else {
        return Some(Answer::Misconfigured);
    };
    let mut last = String::new();
    for line in [
        "EHLO client.example.org",
        "MAIL FROM:<a@example.org>",
        "RCPT TO:<b@example.net>",
    ] {
        writer.write_all(format!("{line}\r\n").as_bytes()).ok()?;
        match reply() {
            Some(answer) => last = answer,
            None => return Some(Answer::Misconfigured),
        }
        if !last.starts_with("250") {
            break;
        }
    }
    Some(match last {
        _ if last.starts_with("250") => Answer::Takes,
        _ if last.contains("onfiguration error") || last.starts_with("421") => {
            Answer::Misconfigured
        }
        _ => Answer::Refuses,
    })
}

/// Returns assay's decision for the same lines, for a service that unknown clients can reach.
fn ours(lines: &str) -> Option<bool> {
    let host = Recorded::new()
        .file(
            "/etc/postfix/main.cf",
            format!(
                "compatibility_level = 3.6\nmydestination =\nmynetworks = 192.0.2.0/24\n{lines}"
            ),
        )
        .file("/etc/postfix/master.cf", "smtp inet n - n - - smtpd\n");
    let options = CollectOptions {
        services: true,
        ..CollectOptions::default()
    };
    let facts = collect(&host, &options);
    facts.get("postfix.service.smtp/inet.open_relay")?.as_bool()
}

const RESTRICTIONS: [&str; 14] = [
    "permit",
    "reject",
    "permit_mynetworks",
    "reject_unauth_destination",
    "defer_unauth_destination",
    "permit_sasl_authenticated",
    "permit_auth_destination",
    "warn_if_reject reject",
    "warn_if_reject reject_unauth_destination",
    "lax",
    "strict",
    "reject_unauth_pipelining",
    "$both",
    "${flag?{permit}:{reject}}",
];

/// Pseudo-random numbers from a fixed seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn list(&mut self) -> String {
        let count = self.below(4);
        let words: Vec<&str> = (0..count)
            .map(|_| RESTRICTIONS[self.below(RESTRICTIONS.len())])
            .collect();
        words.join(if self.below(2) == 0 { ", " } else { "\n  " })
    }
}

#[test]
fn attack_smtpd_answers_strangers_as_we_read_it() {
    let postfix = match Postfix::start() {
        Ok(postfix) => postfix,
        Err(error) => return assay_testing::skipped("postfix", error),
    };
    let main = std::fs::read_to_string(postfix.config()).unwrap();
    let main = main.replace("mynetworks = 127.0.0.0/8\n", "mynetworks = 192.0.2.0/24\n");
    let main = format!("{main}max_use = 1\nsmtpd_error_sleep_time = 0\n");
    std::fs::write(postfix.config(), &main).unwrap();
    // Ends the smtpd process with the previous configuration.
    ask(postfix.port());
    let mut counted = [0_usize; 3];
    let tried = 12 * assay_testing::attack_factor();
    for seed in 0..tried {
        let mut dice = Dice(seed);
        let networks = [
            "",
            "mynetworks = 0.0.0.0/0\n",
            "mynetworks = 192.0.2.0/24 !0.0.0.0/0 0.0.0.0/0\n",
        ];
        let mut lines = String::from(
            "smtpd_restriction_classes = lax, strict\nlax = permit_mynetworks, permit\n\
             strict = permit_mynetworks reject_unauth_destination\nboth = lax, strict\n",
        );
        lines.push_str(networks[dice.below(5).min(2)]);
        lines.push_str(["flag = yes\n", "flag =\n", "flag = 1\n"][dice.below(3)]);
        for key in [
            "smtpd_relay_restrictions",
            "smtpd_recipient_restrictions",
            "smtpd_client_restrictions",
        ] {
            if dice.below(3) > 0 {
                lines.push_str(&format!("{key} = {}\n", dice.list()));
            }
        }
        std::fs::write(postfix.config(), format!("{main}{lines}")).unwrap();
        // Each smtpd process serves one client, so the next one reads the new lines.
        let theirs = ask(postfix.port());
        let mine = ours(&lines);
        match theirs.unwrap_or(Answer::Misconfigured) {
            Answer::Takes => assert_eq!(mine, Some(true), "{lines}"),
            Answer::Refuses => assert_eq!(mine, Some(false), "{lines}"),
            Answer::Misconfigured => {}
        }
        counted[theirs.map_or(2, |answer| answer as usize)] += 1;
    }
    println!("taken, refused, misconfigured: {counted:?}");
    assert!(counted[0] > 0 && counted[1] > 0, "{counted:?}");
    assay_testing::attacked("lists of restrictions of a running smtpd", tried, tried);
}
