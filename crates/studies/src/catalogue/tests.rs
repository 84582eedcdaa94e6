use super::*;

#[test]
fn the_built_in_studies_are_whole() {
    for (name, text) in BUILTIN {
        let study = parse(text, name).unwrap();
        assert_eq!(study.name, *name);
        assert!(!study.published.is_empty(), "{name}: nothing is published");
    }
}

const WHOLE: &str = r#"name = "mine"
title = "t"
question = "q"
bench = "commands"

[source]
title = "s"
machine = "m"

[forms.quick]
rounds = 2
time = "1s"

[forms.full]
rounds = 3
time = "2s"

[[configuration]]
name = "a"
run = ["true"]

[[configuration]]
name = "b"
run = ["false"]

[[figure]]
name = "time"
unit = "ns"
better = "lower"
of = "time"

[[published]]
configuration = "a"
figure = "time"
value = 3

[[conclusion]]
says = "a is faster"
claim = [{ kind = "ratio", figure = "time", of = "a", to = "b", at_most = 0.5 }]
"#;

#[test]
fn a_mistake_is_told_with_file_and_line() {
    parse(WHOLE, "mine.toml").unwrap();
    for (from, to, told) in [
        ("rounds = 2", "rounds = 0", "mine.toml:10: rounds = 0"),
        (
            "bench = \"commands\"",
            "bench = \"x\"",
            "mine.toml:1: bench: there is no bench `x`",
        ),
        ("name = \"b\"", "name = \"a\"", "mine.toml:22: a second `a`"),
        (
            "configuration = \"a\"",
            "configuration = \"c\"",
            "mine.toml:32: there is no configuration `c`",
        ),
        (
            "figure = \"time\", of",
            "figure = \"tim\", of",
            "mine.toml:37: there is no figure `tim`",
        ),
        (
            "at_most = 0.5",
            "at_mots = 0.5",
            "mine.toml:39: unknown field `at_mots`",
        ),
        (
            ", at_most = 0.5",
            "",
            "mine.toml:37: give at_least, at_most, or both",
        ),
        (
            "to = \"b\"",
            "to = \"a\"",
            "mine.toml:37: it holds a configuration against itself",
        ),
        (
            "better = \"lower\"",
            "better = \"lwer\"",
            "mine.toml:29: unknown variant `lwer`",
        ),
        ("value = 3", "value = inf", "mine.toml:32: value = inf"),
        ("title = \"s\"", "title = \"s", "mine.toml:7"),
    ] {
        let text = WHOLE.replacen(from, to, 1);
        assert_ne!(text, WHOLE, "{from}");
        let error = parse(&text, "mine.toml").unwrap_err().to_string();
        assert!(error.starts_with(told), "{from} -> {to}: {error}");
    }
}

#[test]
fn a_name_that_is_nearly_right_is_named() {
    insta::assert_snapshot!(builtin_study("kvm-cache-mode").unwrap_err(), @"there is no study `kvm-cache-mode`; did you mean `kvm-cache-modes`?");
    assert!(builtin_study("nonsense-altogether").is_err());
}
