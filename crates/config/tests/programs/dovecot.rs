//! Compares this crate with `doveconf -n`, whose output is itself a configuration without includes.

use super::{Dice, ask, read, refused};
use assay_config::effective::{Effective, Program, ScopeId, Setting};
use std::collections::BTreeMap;
use std::path::Path;

/// Returns the output of `doveconf -n`. Variables are expanded where doveconf expands them. `None` if doveconf rejects
/// the file.
#[expect(clippy::option_option, reason = "refused is not the same as not there")]
fn dump(main: &Path) -> Option<Option<Effective>> {
    let output = ask(&["doveconf", "-n", "-x", "-c", main.to_str()?])?;
    if !output.status.success() {
        return Some(None);
    }
    let file = main.with_file_name("dump");
    std::fs::write(&file, &output.stdout).unwrap();
    let says = read(Program::Dovecot, &file);
    assert!(says.problems.is_empty(), "{:?}", says.problems);
    Some(Some(says))
}

/// Returns a scope as text. Blocks without a name have their number among the blocks of the same kind.
fn name(all: &Effective, id: ScopeId) -> String {
    let mut out = Vec::new();
    let mut at = Some(id);
    while let Some(now) = at.filter(|now| *now != ScopeId::ROOT) {
        let scope = all.scope(now);
        let alike = all.scopes().filter(|(other, there)| {
            *other <= now && there.parent == scope.parent && there.head == scope.head
        });
        out.push(format!("{} {}", scope.head.join(" "), alike.count()));
        at = scope.parent;
    }
    out.reverse();
    out.join(" / ")
}

/// Returns the settings that take effect in their own scope.
fn values(all: &Effective) -> BTreeMap<(String, String), &Setting> {
    let mut out = BTreeMap::new();
    for said in all.settings() {
        if let Some(counts) = all.value(said.scope, &said.key) {
            out.insert((name(all, said.scope), said.key.clone()), counts);
        }
    }
    out
}

/// Replaces variables that no file sets by Dovecot's defaults.
fn with_defaults(value: &str) -> String {
    let defaults = [("$log_path", "syslog")];
    let empty = [
        "$info_log_path",
        "$auth_realms",
        "$login_trusted_networks",
        "$mail_plugins",
        "$protocols",
    ];
    let words = value.split(' ').map(|word| {
        let default = defaults.iter().find(|(name, _)| *name == word);
        match default {
            Some((_, default)) => default,
            None if empty.contains(&word) => "",
            None => word,
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Checks that both results contain all settings of the files that differ from the defaults, and that the values are
/// equal. Returns the number of compared settings.
fn agree(ours: &Effective, theirs: &Effective, context: &str) -> usize {
    let (mine, told) = (values(ours), values(theirs));
    for ((scope, key), said) in &told {
        // Settings that every block of this kind has, set or not.
        let silent = ["location", "prefix"].contains(&&key[..]) && said.value.is_empty();
        match mine.get(&(scope.clone(), key.clone())) {
            Some(our) => assert_eq!(
                with_defaults(&our.text()),
                said.text(),
                "{scope} {key}\n{context}"
            ),
            None => assert!(silent, "{scope} {key} = {}\n{context}", said.text()),
        }
    }
    for ((scope, key), said) in &mine {
        let there = told.get(&(scope.clone(), key.clone()));
        let default = with_defaults(&said.text()).is_empty();
        assert!(
            there.is_some() || default,
            "{scope} {key} = {}\n{context}",
            said.text()
        );
    }
    mine.len()
}

/// Generates lines with settings whose values Dovecot does not check and whose default is empty.
fn lines(dice: &mut Dice, filter: bool) -> String {
    const KEYS: [&str; 5] = [
        "log_path",
        "info_log_path",
        "auth_realms",
        "login_trusted_networks",
        "mail_plugins",
    ];
    const VALUES: [&str; 15] = [
        "a",
        "b c",
        "\"a # b\"",
        "'x'",
        "\"q\\\"q\"",
        "a \\\n  b",
        "x # comment",
        "it's",
        "$",
        "\"$none x\"",
        "a$b",
        "\\",
        "\" blank \"",
        "=",
        "{",
    ];
    let mut out = String::new();
    for _ in 0..dice.below(4) {
        let key = dice.one(&KEYS);
        let value = match dice.below(4) {
            0 => format!("${key} more"),
            1 if filter => (*dice.one(&VALUES)).to_owned(),
            1 => format!("a  ${} z", dice.one(&KEYS)),
            _ => (*dice.one(&VALUES)).to_owned(),
        };
        let equals = dice.one(&[" = ", "=", " =", "\t= "]);
        let end = dice.one(&["\n", "\n", "\r\n", "\n# { note\n", "   # it\n"]);
        let end = if value.ends_with('\\') { "x\n" } else { end };
        out.push_str(&format!("{key}{equals}{value}{end}"));
    }
    out
}

fn file(dice: &mut Dice, depth: usize) -> String {
    const PATTERNS: [&str; 7] = [
        "conf.d/*.conf",
        "conf.d/{2,1}*.conf",
        "conf.d/[!1]*.conf",
        "{own,more}.conf",
        "own.conf",
        "none*.conf",
        "conf.d/../own.conf",
    ];
    let mut out = String::new();
    for _ in 0..dice.below(6) {
        let part = match dice.below(8) {
            0 if depth == 0 => format!("!include {}\n", dice.one(&PATTERNS)),
            1 if depth == 0 => format!("!include_try {}\n", dice.one(&PATTERNS)),
            2 => {
                let filter = dice.one(&["protocol imap", "protocol lda", "remote 10.0.0.0/8"]);
                let within = lines(dice, true);
                format!(
                    "{filter} {{\n{within}plugin {{\n a = {}\n}}\n}}\n",
                    dice.below(3)
                )
            }
            3 => {
                let name = dice.one(&["inbox", "\"inbox\"", "other"]);
                let mailbox = dice.one(&["Sent", "\"Sent Mail\""]);
                let number = dice.below(3);
                format!(
                    "namespace {name} {{\n  prefix = p{number}/\n  mailbox {mailbox} {{\n    \
                         comment = c{number} # no\n  }}\n}}\n"
                )
            }
            4 => format!(
                "passdb {{\n  driver = pam\n  args = n{}\n}}\n",
                dice.below(9)
            ),
            5 => format!("plugin {{ # a\n  a = b{}\n  c = 'd'\n}}\n", dice.below(4)),
            6 => format!(
                "service imap {{\n  process_limit = {}\n}}\n",
                5 + dice.below(4)
            ),
            _ => lines(dice, false),
        };
        out.push_str(&part);
    }
    out
}

#[test]
fn attack_random_configurations() {
    let (mut tried, mut accepted, mut compared) = (0, 0, 0);
    for seed in 0..40 * assay_testing::attack_factor() {
        let mut dice = Dice::new(seed);
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("conf.d")).unwrap();
        let mut context = String::new();
        for name in [
            "conf.d/1.conf",
            "conf.d/20.conf",
            "conf.d/.h.conf",
            "conf.d/b.conf",
            "own.conf",
            "main.conf",
        ] {
            let text = file(&mut dice, usize::from(name != "main.conf"));
            std::fs::write(dir.path().join(name), &text).unwrap();
            context.push_str(&format!("== {name}\n{text}"));
        }
        let main = dir.path().join("main.conf");
        let ours = read(Program::Dovecot, &main);
        let Some(theirs) = dump(&main) else { return };
        tried += 1;
        let Some(theirs) = theirs else { continue };
        assert!(!refused(&ours), "{:?}\n{context}", ours.problems);
        accepted += 1;
        compared += agree(&ours, &theirs, &context);
    }
    println!("dovecot: {tried} configurations, {accepted} accepted, {compared} values compared");
    assert!(accepted * 3 >= tried && compared > accepted);
    assay_testing::attacked(
        "random configurations of dovecot",
        tried as u64,
        tried as u64,
    );
}

#[test]
fn includes_that_it_refuses() {
    let dir = tempfile::tempdir().unwrap();
    let main = dir.path().join("main.conf");
    for (text, right) in [
        ("!include main.conf\n", false),
        ("!include_try main.conf\n", false),
        ("!include none.conf\n", false),
        ("!include_try none.conf\n", true),
        ("log_path = a\n", true),
    ] {
        std::fs::write(&main, text).unwrap();
        let Some(theirs) = dump(&main) else { return };
        assert_eq!(theirs.is_some(), right, "{text}");
        assert_eq!(!refused(&read(Program::Dovecot, &main)), right, "{text}");
    }
}

/// The test uses the complete configuration that Debian installs.
#[test]
fn the_installed_one() {
    let main = Path::new("/usr/share/dovecot/dovecot.conf");
    let dir = Path::new("/etc/dovecot");
    let main = if dir.join("dovecot.conf").exists() {
        dir.join("dovecot.conf")
    } else {
        main.into()
    };
    if !main.exists() {
        return assay_testing::skipped("doveconf", "no configuration of Dovecot is installed");
    }
    let ours = read(Program::Dovecot, &main);
    assert!(!refused(&ours), "{:?}", ours.problems);
    let Some(output) = ask(&["doveconf", "-n", "-c", main.to_str().unwrap()]) else {
        return;
    };
    let copy = tempfile::tempdir().unwrap();
    let file = copy.path().join("dump");
    std::fs::write(&file, &output.stdout).unwrap();
    let theirs = read(Program::Dovecot, &file);
    let mine = values(&ours);
    let mut compared = 0;
    for ((scope, key), said) in values(&theirs) {
        // Hidden values, settings that every block of this kind has, and settings of the plugins' packages.
        if said.value.is_empty() || said.text().contains("hidden") {
            continue;
        }
        if let Some(our) = mine.get(&(scope.clone(), key.clone())) {
            assert_eq!(with_defaults(&our.text()), said.text(), "{scope} {key}");
            compared += 1;
        } else {
            panic!("{scope} {key} = {} is not found", said.text());
        }
    }
    assert!(compared > 0);
}
