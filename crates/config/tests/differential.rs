//! Random texts are parsed by the programs and by this crate. If the program accepts a text, this crate must read the
//! same value, or refuse to edit for one of the reasons that are listed here (texts of which the program silently
//! ignores a line). If the program reports a syntax error, this crate must report one, too.
#![allow(clippy::disallowed_methods, reason = "a test asks real programs")]

use assay_config::{ConfError, FoundSetting, get};
use assay_model::change::ConfigLanguage::{Dovecot, Nginx, Ssh};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::path::Path;
use std::process::{Command, Output};

fn ask(program: &str, arguments: &[&str], file: &Path, text: &str) -> Option<Output> {
    std::fs::write(file, text).unwrap();
    let path = format!(
        "{}:/usr/sbin:/sbin",
        std::env::var("PATH").unwrap_or_default()
    );
    let file = file.to_str().unwrap();
    let arguments = arguments.iter().map(|part| part.replace("{file}", file));
    let output = Command::new(program)
        .args(arguments)
        .env("PATH", path)
        .output();
    if output.is_err() {
        assay_testing::skipped("program", format_args!("no {program}"));
    }
    output.ok()
}

/// Generates texts that consist of these parts.
fn texts(parts: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(parts), 1..16).prop_map(|parts| parts.concat())
}

/// Returns the value. Rejects the test case if this crate is stricter than the program for one of these reasons.
fn value<'a>(
    ours: &'a Result<Option<FoundSetting>, ConfError>,
    stricter: &[&str],
) -> Result<Option<&'a str>, TestCaseError> {
    match ours {
        Ok(found) => Ok(found.as_ref().map(|found| &found.value[..])),
        Err(error) if stricter.iter().any(|why| error.to_string().contains(why)) => {
            Err(TestCaseError::reject("refused"))
        }
        Err(error) => Err(TestCaseError::fail(error.to_string())),
    }
}

const SSH: &[&str] = &[
    "User", "user ", "User ", "User=", " ", "=", "\t", "\"", "'", "\\", "#", "x", "y", "\n", "\n",
    "\r\n", "Port 7\n",
];
const DOVECOT: &[&str] = &[
    "mail_location",
    "mail_location = ",
    "mail_location=",
    " ",
    "=",
    "\t",
    "\"",
    "'",
    "\\",
    "#",
    " # c",
    "x",
    "y",
    "\n",
    "\n",
    "\\\n",
    "passdb {\n",
    "}\n",
    "driver = pam\n",
    "<",
    "{",
];
const NGINX: &[&str] = &[
    "env ", "env", "events {", "events{}", "http{", "}", "}", "{", ";", ";", " ", "\n", "\"", "'",
    "\\", "#", "x", "$", "${", "A=b",
];

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: 40,
        // The same texts every time; PROPTEST_CASES=1000 tests more of them.
        rng_seed: RngSeed::Fixed(20),
        ..ProptestConfig::default()
    })]

    #[test]
    fn ssh(text in texts(SSH)) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config");
        let arguments = ["-G", "-F", "{file}", "example.org"];
        let Some(output) = ask("ssh", &arguments, &file, &text) else { return Ok(()) };
        if !output.status.success() {
            return Ok(());
        }
        let says = String::from_utf8_lossy(&output.stdout);
        let user = says.lines().find_map(|line| line.strip_prefix("user "));
        let ours = get(Ssh, text.as_bytes(), &[], "User");
        let plain = |text: &str| text.replace(['"', '\'', '\\'], "");
        match value(&ours, &["a quote"])? {
            Some(value) => prop_assert_eq!(plain(value), plain(user.unwrap_or_default())),
            // For any user that runs the program.
            None => prop_assert!(!user.unwrap_or_default().starts_with(['x', 'y'])),
        }
    }

    #[test]
    fn dovecot(text in texts(DOVECOT)) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config");
        let arguments = ["-h", "-c", "{file}", "mail_location"];
        let Some(output) = ask("doveconf", &arguments, &file, &text) else { return Ok(()) };
        let ours = get(Dovecot, text.as_bytes(), &[], "mail_location");
        if output.status.success() {
            let says = String::from_utf8_lossy(&output.stdout);
            let says = says.strip_suffix('\n').unwrap_or(&says);
            let value = value(&ours, &["backslash", "not closed"])?;
            prop_assert_eq!(value.unwrap_or_default(), says);
        } else {
            let says = String::from_utf8_lossy(&output.stderr);
            let syntax = ["Expecting", "Garbage", "Missing", "Unexpected"];
            let syntax = syntax.iter().any(|word| says.contains(word));
            prop_assert!(!syntax || ours.is_err(), "{}", says);
        }
    }

    #[test]
    fn nginx(text in texts(NGINX)) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config");
        let log = dir.path().join("log");
        let pid = format!("pid {};", dir.path().join("pid").display());
        let arguments = ["-t", "-e", log.to_str().unwrap(), "-g", &pid, "-c", "{file}"];
        let Some(output) = ask("nginx", &arguments, &file, &text) else { return Ok(()) };
        let ours = get(Nginx, text.as_bytes(), &["events".to_owned()], "x");
        let syntax_error = matches!(ours, Err(ConfError::Syntax { .. }));
        if output.status.success() {
            prop_assert!(!syntax_error, "{:?}", ours);
        } else {
            let says = String::from_utf8_lossy(&output.stderr);
            let at_end = says.contains("unexpected end of file");
            prop_assert!(!at_end || syntax_error, "{}", says);
        }
    }
}
