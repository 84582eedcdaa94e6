//! Compares this crate with `postconf -n` and `postconf -P`.

use super::{Dice, ask, read, stdout};
use assay_config::effective::{Program, ScopeId, expand_macros};
use std::path::Path;

fn postconf(dir: &Path, option: &str) -> Option<Vec<(String, String)>> {
    let output = ask(&["postconf", "-c", dir.to_str()?, option])?;
    let says = stdout(&output);
    let pairs = says.lines().filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        Some((key.trim().to_owned(), value.trim().to_owned()))
    });
    Some(pairs.collect())
}

const KEYS: [&str; 5] = [
    "smtpd_banner",
    "delay_warning_time",
    "mydestination",
    "relay_domains",
    "notify_classes",
];
const VALUES: [&str; 9] = [
    "a",
    "$myhostname b",
    "a, b,\n  c",
    "a\n# note\n\n\td # e",
    "",
    "x # y",
    "\"q\"",
    "a = b",
    "{ a }",
];

fn main_cf(dice: &mut Dice) -> String {
    let mut out = String::from("# main\nmyhostname = h.example\nmydomain = example\n");
    for _ in 0..dice.below(9) {
        let equals = dice.one(&[" = ", "=", " ="]);
        let end = dice.one(&["\n", "\n", "\r\n", "  \n", "\n#  x = y\n"]);
        out.push_str(&format!(
            "{}{equals}{}{end}",
            dice.one(&KEYS),
            dice.one(&VALUES)
        ));
    }
    out
}

fn master_cf(dice: &mut Dice) -> String {
    let mut out = String::from("# master\n");
    for (service, kind) in [
        ("smtp", "inet"),
        ("submission", "inet"),
        ("smtp", "unix"),
        ("a:b", "inet"),
    ] {
        if dice.below(3) == 0 {
            continue;
        }
        out.push_str(&format!("{service}\t{kind} n - y - - smtpd"));
        for _ in 0..dice.below(5) {
            let key = dice.one(&KEYS);
            let option = match dice.below(6) {
                0 => format!("\n  -o {key}=a"),
                // A name with another `o`: postconf parses it as an option, the daemons do not.
                1 => "\n# -o x=no\n\t-odelay_warning_time=b,c".to_owned(),
                2 => format!(" -o {{ {key} = d e }}"),
                3 => format!("\n -v -vo {key}=f"),
                4 => format!("\n -o {{{key}=g {{h}}}}"),
                _ => format!(" -D -o {key}=$mynetworks"),
            };
            out.push_str(&option);
        }
        out.push_str(if dice.below(3) == 0 {
            " end -o x=y\n"
        } else {
            "\n"
        });
    }
    out
}

#[test]
fn attack_random_configurations() {
    let mut compared = 0;
    for seed in 0..5 * assay_testing::attack_factor() {
        let mut dice = Dice::new(seed);
        let dir = tempfile::tempdir().unwrap();
        let (main, master) = (main_cf(&mut dice), master_cf(&mut dice));
        std::fs::write(dir.path().join("main.cf"), &main).unwrap();
        std::fs::write(dir.path().join("master.cf"), &master).unwrap();
        let context = format!("{main}\n== master.cf\n{master}");
        let ours = read(Program::Postfix, &dir.path().join("main.cf"));
        assert!(ours.problems.is_empty(), "{:?}\n{context}", ours.problems);
        let Some(mut theirs) = postconf(dir.path(), "-n") else {
            return;
        };
        theirs.retain(|(key, _)| KEYS.contains(&&key[..]));
        let mut mine: Vec<(String, String)> = KEYS
            .iter()
            .filter_map(|key| ours.value(ScopeId::ROOT, key))
            .map(|said| (said.key.clone(), said.text()))
            .collect();
        mine.sort();
        assert_eq!(mine, theirs, "{context}");
        compared += mine.len();
        let mut theirs = postconf(dir.path(), "-P").unwrap();
        theirs.sort();
        let mut mine = Vec::new();
        for (id, scope) in ours.scopes().skip(1) {
            for key in KEYS {
                let said = ours.value(id, key).filter(|said| said.scope == id);
                if let Some(said) = said {
                    mine.push((format!("{}/{key}", scope.head.join("/")), said.text()));
                }
            }
        }
        mine.sort();
        mine.dedup();
        assert_eq!(mine, theirs, "{context}");
        compared += mine.len();
    }
    println!("postfix: {compared} values compared");
    assert!(compared > 0);
    let tried = 5 * assay_testing::attack_factor();
    assay_testing::attacked("random configurations of postfix", tried, tried);
}

/// Parameters that Postfix does not have. Their values therefore do not depend on defaults.
const OWN: [&str; 5] = ["own_a", "own_b", "own_c", "own_d", "own_e"];

/// Generates values with macros. Each value refers only to parameters before it in [`OWN`], because Postfix fails if
/// values refer to each other in a circle.
fn macros(dice: &mut Dice, before: &[&str]) -> String {
    let Some(name) = before.get(dice.below(before.len().max(1))) else {
        return (*dice.one(&["x", "", "permit, reject", "7"])).to_owned();
    };
    let other = before[dice.below(before.len())];
    let text = dice.one(&["yes", "", "a b", "{c}"]);
    match dice.below(12) {
        0 => format!("${name}"),
        1 => format!("a${{{name}}}b"),
        2 => format!("$({name}), ${other}"),
        3 => format!("${{{name}?{text}}}"),
        4 => format!("${{{name}:{text}}}"),
        5 => format!("${{{name}?{{{other} is ${other}}}:{{none}}}}"),
        6 => format!("$${name}"),
        7 => format!("${{{{${name}}} == {{x}} ? {{same}} : {{other}}}}"),
        8 => format!(
            "${{{{${name}}} < {{7}} ? {{less}}}} ${{{{1}} != {{1}} ? {{no}} : {{${other}}}}}"
        ),
        9 => format!("${{{name}?${{{other}:inner}}}}"),
        10 => format!("${name}$${{x}}"),
        _ => format!("reject_rbl_client ${name}"),
    }
}

/// Expanded values equal the output of `postconf -x`.
#[test]
fn attack_macros_are_expanded_as_postconf_does() {
    let mut compared = 0;
    let tried = 40 * assay_testing::attack_factor();
    for seed in 0..tried {
        let mut dice = Dice::new(seed);
        let dir = tempfile::tempdir().unwrap();
        let mut text = String::from("myhostname = h.example\nmydomain = example\n");
        for (at, name) in OWN.iter().enumerate() {
            text.push_str(&format!("{name} = {}\n", macros(&mut dice, &OWN[..at])));
        }
        // postconf does not print a parameter to which no parameter of Postfix refers.
        text.push_str(&format!(
            "smtpd_restriction_classes = {}\nsmtpd_client_restrictions = {}\n",
            OWN.join(", "),
            macros(&mut dice, &OWN)
        ));
        std::fs::write(dir.path().join("main.cf"), &text).unwrap();
        std::fs::write(dir.path().join("master.cf"), "").unwrap();
        let Some(theirs) = postconf(dir.path(), "-nx") else {
            return;
        };
        let ours = read(Program::Postfix, &dir.path().join("main.cf"));
        for (key, expected) in theirs {
            if !OWN.contains(&&key[..]) && key != "smtpd_client_restrictions" {
                continue;
            }
            let said = ours.value(ScopeId::ROOT, &key).unwrap();
            let mine = expand_macros(&ours, ScopeId::ROOT, &said.text());
            let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(words(&mine), words(&expected), "{key}\n{text}");
            compared += 1;
        }
    }
    println!("postfix: {compared} macros compared");
    assert!(compared > 0);
    assay_testing::attacked("macros of postfix", tried, tried);
}
