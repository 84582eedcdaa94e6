//! Every remedy of the catalogue must be executed by a test, and users must be able to paste its commands.
//!
//! Text between backticks in a step is a command if it begins with a listed program, else it is a configuration line. A
//! command must parse in two shells, use programs of Debian with options that they support, and contain only declared
//! placeholders. `cases` executes remedies, and `coverage` checks that each remedy is executed.
#![allow(
    clippy::disallowed_methods,
    reason = "reads the catalogue's own directories and asks programs for their help"
)]

mod cases;
mod coverage;
mod lists;
mod lists_applied;
mod lists_in_guest;
mod machine;

use assay_advice::Catalogue;
use lists::{CAPITALS, PLACEHOLDERS, PROGRAMS, SETTINGS};
use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock};

/// Text between backticks in a step.
struct Code {
    page: String,
    text: String,
}

fn all_codes() -> Vec<Code> {
    let catalogue = Catalogue::builtin().unwrap();
    let mut codes = Vec::new();
    for page in catalogue.all() {
        let remedy = page.check.as_ref().and_then(|check| check.remedy.as_ref());
        for step in remedy
            .iter()
            .flat_map(|remedy| remedy.steps.iter().chain(&remedy.undo))
        {
            assert_eq!(step.matches('`').count() % 2, 0, "{}: {step}", page.id);
            for text in step.split('`').skip(1).step_by(2) {
                codes.push(Code {
                    page: page.id.clone(),
                    text: text.to_owned(),
                });
            }
        }
    }
    codes
}

/// Splits a command line into simple commands. Each is a list of words without quotation marks.
fn simple_commands(text: &str) -> Vec<Vec<String>> {
    let mut commands = vec![vec![String::new()]];
    let mut quote = None;
    for letter in text.chars() {
        let command = commands.last_mut().unwrap();
        match (quote, letter) {
            (Some(open), letter) if open == letter => quote = None,
            (None, '\'' | '"') => quote = Some(letter),
            (None, ' ') => command.push(String::new()),
            (None, '|' | '&' | ';') => commands.push(vec![String::new()]),
            (_, letter) => command.last_mut().unwrap().push(letter),
        }
    }
    for command in &mut commands {
        command.retain(|word| !word.is_empty());
    }
    commands.retain(|command| !command.is_empty());
    commands
}

fn package(program: &str) -> Option<&'static str> {
    PROGRAMS
        .iter()
        .find(|(name, _)| *name == program)
        .map(|(_, package)| *package)
}

fn is_command(text: &str) -> bool {
    text.split([' ', ';'])
        .next()
        .is_some_and(|first| package(first).is_some())
}

/// Replaces every placeholder of assay by a value.
fn filled(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (_, behind) = after.split_once('}').unwrap_or(("", after));
        out.push_str(before);
        out.push_str("/a/b");
        rest = behind;
    }
    out + rest
}

#[test]
fn every_piece_of_code_is_a_command_of_debian_or_a_line_of_a_configuration() {
    let mut wrong = BTreeSet::new();
    for Code { page, text } in all_codes() {
        let first = text.split(' ').next().unwrap_or_default();
        let like_a_program = !first.is_empty()
            && first
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
            && !first.starts_with('-');
        if !is_command(&text) {
            if like_a_program && !SETTINGS.contains(&first) {
                wrong.insert(format!(
                    "{page}: `{text}`: neither a program nor a setting of the lists"
                ));
            }
            continue;
        }
        for command in simple_commands(&text) {
            let program = command
                .iter()
                .find(|word| !word.contains('=') && *word != "time");
            let known = program.is_some_and(|program| package(program).is_some());
            if !known {
                wrong.insert(format!(
                    "{page}: `{text}`: {program:?} is no program of the list"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_command_can_be_pasted() {
    let mut wrong = BTreeSet::new();
    for Code { page, text } in all_codes()
        .into_iter()
        .filter(|code| is_command(&code.text))
    {
        let mut why = None;
        for shell in ["sh", "bash"] {
            let parsed = Command::new(shell)
                .args(["-n", "-c", &filled(&text)])
                .stderr(Stdio::null())
                .status();
            if !parsed.unwrap().success() {
                why = Some(format!("{shell} does not parse it"));
            }
        }
        if text.contains('…') || text.contains("...") || text.contains("<") {
            why = Some("it has a gap".to_owned());
        }
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        for word in words {
            let capital = word.len() > 1
                && word
                    .bytes()
                    .all(|byte| byte.is_ascii_uppercase() || byte == b'_');
            if capital && !PLACEHOLDERS.contains(&word) && !CAPITALS.contains(&word) {
                why = Some(format!("{word} is no declared placeholder"));
            }
        }
        // The name of a program, or a command without its object.
        if simple_commands(&text)
            .iter()
            .any(|command| needs_more(command))
        {
            why = Some("it says not what to do it to".to_owned());
        }
        if let Some(why) = why {
            wrong.insert(format!("{page}: `{text}`: {why}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Returns whether a command lacks an operand that its program requires.
fn needs_more(command: &[String]) -> bool {
    let operands = command
        .iter()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .count();
    let least = match command[0].as_str() {
        "chgrp" | "chmod" | "chown" => 2,
        "ldd" | "stat" | "namei" | "swapoff" | "swapon" | "mkswap" | "e2fsck" | "tune2fs"
        | "upsc" => 1,
        "dpkg" => 1,
        "virsh" if command.get(1).is_some_and(|word| word == "edit") => 2,
        "lvconvert" | "lvremove" | "lvextend" | "lvchange" | "vgreduce" => 1,
        "vgextend" => 2,
        "qemu-img" => 3,
        "btrfs" if command.get(1).is_some_and(|word| word == "scrub") => 3,
        // `zfs mount -a` is about all.
        "zfs" if command.iter().any(|word| word == "-a") => 1,
        "zpool" | "btrfs" | "qm" | "zfs" => 2,
        _ => 0,
    };
    operands < least
}

/// The help of an installed program lists every option that a remedy uses.
#[test]
fn every_option_is_one_that_the_program_knows() {
    let (mut wrong, mut asked) = (BTreeSet::new(), BTreeMap::<String, usize>::new());
    for Code { page, text } in all_codes()
        .into_iter()
        .filter(|code| is_command(&code.text))
    {
        for command in simple_commands(&text) {
            let Some(help) = help_of(&command) else {
                continue;
            };
            *asked.entry(command[0].clone()).or_default() += 1;
            for option in command
                .iter()
                .skip(1)
                .filter(|word| word.len() > 1 && word.starts_with('-'))
            {
                if !knows(&help, option) {
                    wrong.insert(format!("{page}: `{text}`: {} has no {option}", command[0]));
                }
            }
        }
    }
    assert!(asked.len() > 5, "hardly a program is installed: {asked:?}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Returns the help of a program: that of the program, that of its subcommand, or its manual page. `None` if there is
/// none.
fn help_of(command: &[String]) -> Option<String> {
    static KNOWN: OnceLock<Mutex<BTreeMap<String, Option<String>>>> = OnceLock::new();
    // These have no help, or act on any argument.
    const SILENT: [&str; 10] = [
        "apachectl",
        "assay",
        "echo",
        "mariadb-install-db",
        "pam-auth-update",
        "qshape",
        "sync",
        "time",
        "update-initramfs",
        "upsmon",
    ];
    let program = command[0].as_str();
    if SILENT.contains(&program) || which(program).is_none() {
        return None;
    }
    let is_word = |word: &&String| word.bytes().all(|byte| byte.is_ascii_lowercase());
    let words: Vec<&str> = command
        .iter()
        .skip(1)
        .take_while(is_word)
        .map(String::as_str)
        .take(2)
        .collect();
    let key = format!("{program} {}", words.join(" "));
    let mut known = KNOWN.get_or_init(Mutex::default).lock().unwrap();
    known
        .entry(key)
        .or_insert_with(|| {
            let mut text = String::new();
            let mut calls: Vec<Vec<&str>> = vec![
                vec![program, "--help"],
                vec![program, "-?"],
                vec!["man", program],
            ];
            for count in 1..=words.len() {
                let with = |help| [&[program], &words[..count], &[help]].concat();
                calls.extend([with("--help"), with("-help")]);
            }
            for call in calls {
                let ran = Command::new("timeout")
                    .arg("20")
                    .args(call)
                    .env("MANWIDTH", "200")
                    .env("MANPAGER", "cat")
                    .stdin(Stdio::null())
                    .output();
                if let Ok(ran) = ran {
                    text.push_str(&String::from_utf8_lossy(&ran.stdout));
                    text.push_str(&String::from_utf8_lossy(&ran.stderr));
                }
            }
            (text.len() > 300).then_some(text)
        })
        .clone()
}

fn which(program: &str) -> Option<std::path::PathBuf> {
    let path = format!(
        "{}:/usr/sbin:/sbin",
        std::env::var("PATH").unwrap_or_default()
    );
    std::env::split_paths(&path)
        .map(|dir| dir.join(program))
        .find(|file| file.is_file())
}

/// Returns whether a help text lists an option, either alone or as a letter in a group such as `[-46DdeGiqTtV]`.
fn knows(help: &str, option: &str) -> bool {
    let name = option.split('=').next().unwrap_or(option);
    let named = |name: &str| {
        help.match_indices(name).any(|(at, _)| {
            let before = help[..at].chars().next_back().unwrap_or(' ');
            let after = help[at + name.len()..].chars().next().unwrap_or(' ');
            let joins = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
            !joins(before) && !joins(after)
        })
    };
    let letter = |letter: char| {
        named(&format!("-{letter}"))
            || help.split([' ', '[', ']', '|', '\n', ',']).any(|word| {
                word.strip_prefix('-').is_some_and(|letters| {
                    letters.bytes().all(|byte| byte.is_ascii_alphanumeric())
                        && letters.contains(letter)
                })
            })
    };
    let short = name.trim_start_matches('-');
    named(name)
        || !name.starts_with("--") && short.chars().all(&letter)
        // `-dconvert=raid1`, `-o`: an option with its value in one word.
        || !name.starts_with("--") && short.chars().next().is_some_and(&letter) && short.len() > 1
}
