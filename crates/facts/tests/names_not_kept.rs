//! Tests keys and certificates whose paths are removed because the paths contain blanks or quotation marks. The facts
//! are unknown, never missing, both on the machine itself and through the collector.
#![allow(clippy::disallowed_methods, reason = "tests run the script")]

use assay_facts::{CollectOptions, collect, script};
use assay_host::{Bundle, Host as _, LiveHost, Root};
use assay_model::{FactPlace, FactValue, Facts};
use assay_testing::servers::{busybox, shells};
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

const OPTIONS: CollectOptions<'static> = CollectOptions {
    with_identity: false,
    services: true,
    accounts: false,
    targets: &[],
};

/// Configurations that refer to a key with a blank or quotation mark in its path, with the number of the line.
const NAMED: [(&str, &str, usize); 6] = [
    (
        "etc/nginx/nginx.conf",
        "http {\nssl_certificate_key \"/etc/nginx/site key.pem\";\n}\n",
        2,
    ),
    (
        "etc/nginx/nginx.conf",
        "http {\nssl_certificate_key \"/etc/nginx/o'brien.pem\";\n}\n",
        2,
    ),
    (
        "etc/apache2/apache2.conf",
        "# own\nSSLCertificateKeyFile \"/etc/ssl/site key.pem\"\n",
        2,
    ),
    (
        "etc/postfix/main.cf",
        "smtpd_tls_key_file = /etc/ssl/site key.pem\n",
        1,
    ),
    (
        "etc/dovecot/dovecot.conf",
        "protocols = imap\nssl_key = </etc/ssl/site key.pem\n",
        2,
    ),
    (
        "etc/dovecot/dovecot.conf",
        "ssl_key = \"</etc/ssl/site key.pem\"\n",
        1,
    ),
];

fn tree(file: &str, text: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    dir
}

/// Returns the file and line at which keys are unknown.
fn unknown_at(facts: &Facts) -> Option<(String, usize)> {
    let fact = facts.map.get("key_file")?;
    match (&fact.value, &fact.place) {
        (FactValue::Unknown(_), FactPlace::File { path, line, .. }) => {
            Some((path.clone(), line.unwrap_or(0)))
        }
        _ => None,
    }
}

#[test]
fn keys_with_blanks_and_quotes_are_unknown_on_the_machine() {
    for (file, text, line) in NAMED {
        let dir = tree(file, text);
        let facts = collect(&Root::open(dir.path()).unwrap(), &OPTIONS);
        assert_eq!(
            unknown_at(&facts),
            Some((format!("/{file}"), line)),
            "{text}"
        );
    }
    // A harmless path stays known, also in quotation marks.
    for text in [
        "ssl_key = </etc/ssl/a.pem\n",
        "ssl_key = \"</etc/ssl/a.pem\"\n",
        "ssl_key = text\n",
    ] {
        let dir = tree("etc/dovecot/dovecot.conf", text);
        let facts = collect(&Root::open(dir.path()).unwrap(), &OPTIONS);
        assert_eq!(unknown_at(&facts), None, "{text}");
    }
}

#[test]
fn keys_with_blanks_and_quotes_are_unknown_through_the_collector() {
    let Some(box_of_tools) = busybox::is_static() else {
        return assay_testing::skipped("busybox", "a static busybox is not installed");
    };
    if LiveHost.exists(Path::new("/root/.")).is_err() {
        return assay_testing::skipped("chroot", "needs root");
    }
    let pairs = shells::shell_awk_pairs();
    for (number, (file, text, line)) in NAMED.into_iter().enumerate() {
        let dir = tree(file, text);
        let here = collect(&Root::open(dir.path()).unwrap(), &OPTIONS);
        busybox::furnish(dir.path(), &box_of_tools).unwrap();
        // The cases are distributed over all pairs of shell and awk.
        let pair = &pairs[number % pairs.len()];
        let mut shell = pair.furnish(dir.path()).unwrap();
        let mut child = shell
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let script = pair.before(Path::new("/bin")) + &script("test");
        let mut stdin = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || stdin.write_all(script.as_bytes()));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        assert!(!String::from_utf8_lossy(&output.stdout).contains("site key"));
        let bundle = Bundle::read(&output.stdout[..], "the bundle").unwrap();
        let there = collect(&bundle, &OPTIONS);
        assert_eq!(
            unknown_at(&there),
            Some((format!("/{file}"), line)),
            "{}: {text}",
            pair.name
        );
        assert_eq!(unknown_at(&here), unknown_at(&there), "{text}");
    }
}
