//! Tests the help of every command: the list of commands, their options, and the layout.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use std::fmt::Write as _;
use std::path::Path;
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

/// A help string of the program.
struct HelpString {
    /// Words of the command without `assay`.
    command: String,
    /// The option with dashes, the argument, or empty for the command itself.
    name: String,
    text: String,
}

/// Returns all visible help strings from the program itself.
fn help_strings() -> Vec<HelpString> {
    let output = Command::new(env!("CARGO_BIN_EXE_assay"))
        .args(["dev", "help-strings"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let one = |line: &str| {
        let [command, name, text] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        HelpString {
            command: command.trim_start_matches("assay").trim().to_owned(),
            name: name.to_owned(),
            text: text.to_owned(),
        }
    };
    text.lines().map(one).collect()
}

/// Returns the commands of [`help_strings`] with the names of their options.
fn commands(all: &[HelpString]) -> Vec<(&str, Vec<&str>)> {
    let mut commands: Vec<(&str, Vec<&str>)> = Vec::new();
    for one in all {
        match one.name.as_str() {
            "" => commands.push((&one.command, Vec::new())),
            name if name.starts_with("--") => commands.last_mut().unwrap().1.push(name),
            _ => {}
        }
    }
    commands
}

/// Lists each command with its options, without their texts.
#[test]
fn every_command_says_what_it_takes() {
    let all = help_strings();
    let mut found = String::new();
    for (command, mut options) in commands(&all) {
        options.sort_unstable();
        options.dedup();
        let _ = writeln!(found, "assay {command}: {}", options.join(" "));
        let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        let text = help(&words);
        assert!(text.contains("Usage:"), "{words:?}");
        for line in text.lines() {
            let length = line.chars().count();
            assert!(length <= 130, "{words:?}: {length} columns: {line}");
        }
    }
    assert!(found.lines().count() > 40, "{found}");
    insta::assert_snapshot!(found);
}

/// Retired words of STYLE.md, as whole words.
const RETIRED: [&str; 24] = [
    "tell",
    "tells",
    "told",
    "say",
    "says",
    "said",
    "coin",
    "coins",
    "thrown",
    "fortunes",
    "mend",
    "mended",
    "set back",
    "take back",
    "taken back",
    "let go",
    "give back",
    "make for good",
    "as it is",
    "lying about",
    "on its way",
    "not known",
    "withheld",
    "who asks",
];

#[test]
fn help_strings_are_short_and_in_words_of_the_style() {
    let all = help_strings();
    assert!(all.len() > 500, "{}", all.len());
    for HelpString {
        command,
        name,
        text,
    } in &all
    {
        let at = format!("assay {command} {name}: {text}");
        assert!(!text.is_empty(), "no help: {at}");
        assert!(text.chars().count() <= 72, "more than 72 characters: {at}");
        let plain: String = text
            .to_lowercase()
            .chars()
            .map(|c| if c.is_alphanumeric() { c } else { ' ' })
            .collect();
        let plain = format!(
            " {} ",
            plain.split_whitespace().collect::<Vec<_>>().join(" ")
        );
        for word in RETIRED {
            assert!(
                !plain.contains(&format!(" {word} ")),
                "`{word}` is retired: {at}"
            );
        }
        // "Pool" means a ZFS pool, or a thin pool of LVM.
        for (place, _) in plain.match_indices(" pool") {
            let before = &plain[..place];
            let named = ["zfs", "thin", "fleet"]
                .iter()
                .any(|kind| before.ends_with(kind));
            assert!(named, "whose pool? {at}");
        }
    }
}

/// Verbs that were at the top level before they were grouped, and the old position of `login`.
const OLD_VERBS: [&str; 30] = [
    "run",
    "runs",
    "show",
    "compare",
    "report",
    "export",
    "import",
    "lint",
    "facts",
    "disks",
    "advice",
    "check",
    "fleet",
    "changed",
    "watch",
    "dups",
    "plan",
    "stack",
    "trial",
    "pool",
    "store",
    "study",
    "probe",
    "pins",
    "web",
    "net",
    "lab",
    "demo",
    "version",
    "run login",
];

#[test]
fn old_names_of_verbs_still_parse() {
    for verb in OLD_VERBS {
        let words: Vec<String> = verb.split(' ').map(str::to_owned).collect();
        assert!(help(&words).contains("Usage: assay"), "{verb}");
    }
}

/// Returns the verbs of [`help_strings`] that are below no other.
fn top_verbs(all: &[HelpString]) -> Vec<&str> {
    commands(all)
        .into_iter()
        .map(|(command, _)| command)
        .filter(|command| !command.is_empty() && !command.contains(' '))
        .collect()
}

/// `scripts/test-quick` runs an existing test of every verb.
#[test]
fn the_quick_tests_know_every_verb() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = root.join("../../scripts/test-quick");
    let output = Command::new(script).arg("--list").output().unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    let mut verbs = Vec::new();
    for line in listed.lines() {
        let [verb, program, test] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let files = [
            format!("tests/{program}.rs"),
            format!("tests/{program}/main.rs"),
        ];
        let found = files
            .iter()
            .find_map(|file| std::fs::read_to_string(root.join(file)).ok());
        let text = found.unwrap_or_else(|| panic!("no test program {program}"));
        assert!(
            text.contains(&format!("#[test]\nfn {test}() {{")),
            "{program} has no test {test}"
        );
        verbs.push(verb.to_owned());
    }
    let all = help_strings();
    let mut top = top_verbs(&all);
    top.sort_unstable();
    verbs.sort_unstable();
    assert_eq!(verbs, top);
}

#[test]
fn few_verbs_are_at_the_top_and_each_is_in_a_group() {
    let all = help_strings();
    let top = top_verbs(&all);
    assert!(top.len() <= 20, "{}: {top:?}", top.len());
    let text = help(&[]);
    for verb in top {
        let listed = text
            .lines()
            .filter(|line| line.starts_with("  ") && line.split_whitespace().next() == Some(verb));
        assert_eq!(listed.count(), 1, "{verb}: {text}");
    }
}

#[test]
fn the_short_help_shows_few_options() {
    for (command, options) in commands(&help_strings()) {
        let output = Command::new(env!("CARGO_BIN_EXE_assay"))
            .args(command.split_whitespace())
            .arg("-h")
            .env("COLUMNS", "80")
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let shown = options
            .iter()
            .filter(|option| {
                text.lines()
                    .filter_map(|line| line.trim_start().strip_prefix('-'))
                    .any(|line| {
                        line.split_whitespace()
                            .take(2)
                            .any(|word| format!("-{}", word.trim_start_matches('-')) == option[1..])
                    })
            })
            .count();
        assert!(shown <= 18, "assay {command}: {shown} options:\n{text}");
    }
}

/// Each format gives the same bytes by its long and its short option, on standard output and in a
/// file.
#[test]
fn forms_and_files_mean_the_same_for_every_verb() {
    let home = common::Home::new();
    let run = |words: &[&str]| {
        let ran = common::ran(home.command(words).output().unwrap());
        assert_eq!(ran.code, Some(0), "{words:?}: {}", ran.stderr);
        ran.stdout
    };
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    for verb in [
        &["plan", "durability", "--disks", "6", "--survives", "2"][..],
        &["version"],
        &["advice", "noatime"],
    ] {
        let with = |more: &[&str]| run(&[verb, more].concat());
        let json = with(&["--json"]);
        assert_eq!(with(&["--format", "json"]), json, "{verb:?}");
        assert!(with(&["--output", &path("a.json")]).is_empty(), "{verb:?}");
        assert_eq!(std::fs::read_to_string(path("a.json")).unwrap(), json);
        let text = with(&[]);
        assert_eq!(with(&["--format", "text"]), text, "{verb:?}");
        assert!(with(&["--output", &path("a.txt")]).is_empty(), "{verb:?}");
        assert_eq!(std::fs::read_to_string(path("a.txt")).unwrap(), text);
    }
    let layout = ["plan", "layout", "4T", "4T", "4T"];
    let with = |more: &[&str]| run(&[&layout[..], more].concat());
    with(&["--html", &path("a.html")]);
    let page = std::fs::read_to_string(path("a.html")).unwrap();
    assert_eq!(with(&["--format", "html"]), page);
    assert!(with(&["--output", &path("b.html")]).is_empty());
    assert_eq!(std::fs::read_to_string(path("b.html")).unwrap(), page);
}

/// Regression: the help contained `--set kb=1024`, but the parameter is `kib`.
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

/// Output fits a narrow terminal, such as that of a phone; only paths and commands to copy may
/// exceed it.
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
