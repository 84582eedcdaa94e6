//! The help of every command: which there are, what each takes, and that it can be read.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use std::fmt::Write as _;
use std::process::Command;

fn help(words: &[String]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_assay"))
        .args(words)
        .arg("--help")
        .env("COLUMNS", "80")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{words:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A line for each command below `words` with its options, without their wording.
fn walk(words: &mut Vec<String>, found: &mut String) {
    let text = help(words);
    assert!(text.contains("Usage:"), "{words:?}");
    for line in text.lines() {
        let length = line.chars().count();
        assert!(length <= 130, "{words:?}: {length} columns: {line}");
    }
    let options = text.lines().filter_map(|line| {
        let line = line.trim_start().trim_start_matches(|c: char| c != '-');
        let at = line.starts_with('-').then(|| line.find("--"))??;
        let name = line[at..].split([' ', '=', '.', ',', '`', ')']).next()?;
        let listed = text.lines().any(|line| {
            let line = line.trim_start();
            line.starts_with(name)
                || line.starts_with('-')
                    && line[2..].starts_with(", ")
                    && line[4..].starts_with(name)
        });
        listed.then(|| name.to_owned())
    });
    let mut options: Vec<String> = options.collect();
    options.sort();
    options.dedup();
    let _ = writeln!(found, "assay {}: {}", words.join(" "), options.join(" "));
    let commands: Vec<String> = text
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| line.is_empty() || line.starts_with("  "))
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .filter(|name| name != "help")
        .collect();
    for command in commands {
        words.push(command);
        walk(words, found);
        words.pop();
    }
}

#[test]
fn every_command_says_what_it_takes() {
    let mut found = String::new();
    walk(&mut Vec::new(), &mut found);
    assert!(found.lines().count() > 40, "{found}");
    insta::assert_snapshot!(found);
}

/// `--set kb=1024` stood in the help, and the advice calls it `kib`.
#[test]
fn examples_name_parameters_that_there_are() {
    let text = help(&["trial".to_owned()]);
    let mut seen = 0;
    for line in text.lines().filter(|line| line.contains(" --set ")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.first() != Some(&"assay") {
            continue;
        }
        let at = words.iter().position(|word| *word == "--set").unwrap();
        let name = words[at + 1].split('=').next().unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_assay"))
            .args(["advice", words[2], "--json"])
            .output()
            .unwrap();
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let parameters = &answer["advice"][0]["parameters"];
        assert!(parameters[name].is_object(), "{line}: {parameters}");
        seen += 1;
    }
    assert!(seen > 0);
}

/// What is printed fits the terminal, also that of a phone; what cannot be broken (a path, a command to
/// copy) may stand out.
#[test]
fn a_narrow_terminal_is_kept_to() {
    let home = common::Home::new();
    let commands = [
        "plan layout 4T 4T 4T 4T",
        "plan layout 12T 8T 4T 4T 2T --best",
        "plan capacity 1TiB",
        "plan cache --memory 64GiB --l2arc 480G",
        "plan durability --disks 6 --survives 2",
        "advice",
        "advice noatime",
        "facts memory kernel",
        "lint fio --name=t --rw=randread --iodepth=32 --bs=4k",
        "version",
        "study",
        "runs",
    ];
    for words in commands {
        let words: Vec<&str> = words.split(' ').collect();
        let mut command = home.command(&words);
        let ran = common::ran(command.env("COLUMNS", "40").output().unwrap());
        assert!(ran.code.is_some_and(|code| code < 2), "{}", ran.stderr);
        let wide: Vec<&str> = ran
            .stdout
            .lines()
            .filter(|line| line.chars().count() > 40 && line.trim().contains(' '))
            .collect();
        assert!(wide.is_empty(), "{words:?}: {wide:#?}");
    }
}
